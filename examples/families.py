"""The attention of four Transformer families for one sentence, in the terminal.

    python examples/families.py [--lang zh|en]

The 2017 paper, BERT, GPT-2 and Llama at toy size, with random weights and NumPy only: which positions are visible is
not learned, so no training is needed. With torch, the PyTorch versions run with the same weights. docs/families.md
explains the choices of the four.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from math import prod
from typing import Any, NamedTuple

import numpy as np

from regard import Trace
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.messages import LANGUAGES, Language, language
from regard.reference import Transformer
from regard.trace import Recorder

Tell = Callable[[str, str], str]
"""Chooses between an English and a Chinese text."""

SENTENCE = ("cats love fish and fish love water", "猫 爱 鱼 而 鱼 爱 水")
IDS = np.array([[1, 2, 3, 4, 3, 2, 5]])
CHANGED = np.array([[1, 2, 3, 4, 3, 2, 6]])  # another last word
BEGUN = np.array([[0, 7, 8, 9]])  # a start sign and the first three words of a translation


class Family(NamedTuple):
    """A preset at toy size and at its published size."""

    name: str
    toy: TransformerConfig
    real: TransformerConfig


TOY: dict[str, Any] = {"n_layers": 2, "d_model": 16, "n_heads": 4, "d_ff": 32, "vocab_size": 12}
FAMILIES = (
    Family("Transformer 2017", TransformerConfig.paper_2017(**TOY), TransformerConfig.paper_2017()),
    Family("BERT", TransformerConfig.bert(**TOY), TransformerConfig.bert()),
    Family("GPT-2", TransformerConfig.gpt2(**TOY), TransformerConfig.gpt2()),
    Family("Llama", TransformerConfig.llama(**TOY, n_kv_heads=2), TransformerConfig.llama()),
)


def build(config: TransformerConfig) -> Transformer:
    """A model with random weights, large enough that its heads have clear patterns."""
    rng, weights = np.random.default_rng(0), {}
    for name, shape in weight_shapes(config).items():
        weights[name] = np.ones(shape) if name.endswith("norm.weight") else rng.normal(0, 0.3, shape)
    return Transformer(config, weights)


def given(config: TransformerConfig, sentence: np.ndarray = IDS) -> tuple[np.ndarray, np.ndarray | None]:
    """The ids and the source: for an encoder-decoder the sentence is the source."""
    return (BEGUN, sentence) if config.kind == "encoder-decoder" else (sentence, None)


def see(model: Transformer, tell: Tell) -> Trace:
    """The attention of one forward pass, labelled; a translation is into the other language."""
    words, translation = tell(*SENTENCE).split(), tell(*reversed(SENTENCE)).split()
    look = Recorder()
    model(*given(model.config), attend=look)
    if model.config.kind == "encoder-decoder":
        return look.label(["<s>", *translation[:3]], source=words)
    return look.label(words)


def size(family: Family, tell: Tell) -> str:
    """The number of parameters, of the toy and of the published model."""
    toy, real = (sum(prod(shape) for shape in weight_shapes(config).values()) for config in (family.toy, family.real))
    return tell(
        f"parameters: {toy:,} here, {real / 1e6:,.0f} M in the published model",
        f"参数：这个小模型 {toy:,} 个，发布的模型 {real / 1e6:,.0f} M",
    )


def reach(model: Transformer, tell: Tell) -> str:
    """How far another last word changes the logits before it, or those of a translation."""
    moved = np.abs(model(*given(model.config, CHANGED)) - model(*given(model.config)))
    earlier = moved[:, :-1].max()
    match model.config.kind:
        case "encoder":
            return tell(
                f"another last word changes the logits before it by {earlier:.2f}: an encoder looks both ways",
                f"换掉最后一个词，它前面的 logits 变化 {earlier:.2f}：编码器前后都看",
            )
        case "decoder":
            return tell(
                f"another last word changes the logits before it by {earlier:g}: a decoder looks only back",
                f"换掉最后一个词，它前面的 logits 变化 {earlier:g}：解码器只看前面",
            )
    return tell(
        f"another last source word changes the logits by {moved.max():.2f}: a translation sees its whole source",
        f"换掉原文的最后一个词，logits 变化 {moved.max():.2f}：译文能看到整句原文",
    )


def decoded(model: Transformer, tell: Tell) -> str:
    """The difference when the text is decoded word by word."""
    ids, source = given(model.config)
    decoding = model.begin(source)
    for column in ids.T:
        logits = decoding.step(column[:, None])
    gap = np.abs(logits - model(ids, source)[:, -1]).max()
    return tell(
        f"decoded word by word with a cache, the last logits differ by {gap:.5f}",
        f"用缓存逐词解码，最后的 logits 相差 {gap:.5f}",
    )


def twinned(model: Transformer, tell: Tell) -> str:
    """The difference from PyTorch with the same weights, if it is installed."""
    if find_spec("torch") is None:
        return tell(
            "PyTorch is not installed: pip install 'regard[torch]'", "没有安装 PyTorch：pip install 'regard[torch]'"
        )
    import torch

    from regard import models

    twin = models.Transformer(model.config).double().eval()
    twin.load_state_dict({name: torch.from_numpy(weight) for name, weight in model.weights.items()})
    inputs = given(model.config)
    with torch.no_grad():
        logits = twin(*(None if array is None else torch.from_numpy(array) for array in inputs))
    gap = np.abs(logits.numpy() - model(*inputs)).max()
    return tell(f"PyTorch with the same weights differs by {gap:.5f}", f"PyTorch 用同一组权重，相差 {gap:.5f}")


def main(arguments: list[str] | None = None) -> None:
    """Show all four."""
    parser = argparse.ArgumentParser(description="Four families of Transformers / Transformer 的四个家族")
    parser.add_argument("--lang", choices=LANGUAGES, help="default: from LANG / 默认取自 LANG")
    lang: Language = parser.parse_args(arguments).lang or language()

    def tell(en: str, zh: str) -> str:
        return zh if lang == "zh" else en

    for number, family in enumerate(FAMILIES, 1):
        model = build(family.toy)
        trace = see(model, tell)
        print(f"{number}  {family.name}\n")
        for kind in dict.fromkeys(record.kind for record in trace):
            trace.select(kind=kind).show(0, head=0, lang=lang)
            print()
        print(size(family, tell), reach(model, tell), sep="\n")
        if family.toy.kind != "encoder":
            print(decoded(model, tell))
        print(twinned(model, tell), end="\n\n")


if __name__ == "__main__":
    main()
