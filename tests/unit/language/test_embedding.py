"""`LanguageModel.embed` of folders of sentence-transformers: pooling, dense layers, prompts; what is refused."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from public_folders import SMALL, TEXTS, byte_tokenizer, saved
from safetensors.numpy import save_file
from tolerances import assert_close
from transformers import BertConfig, BertModel, Qwen3Config, Qwen3ForCausalLM

import hostile_gguf
import regard
from regard.errors import ArgumentError, FileError
from regard.language.embedding import Pooling, read_pooling
from regard.messages import LANGUAGES

MODES = {
    "cls": lambda x: x[0],
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean(0),
    "mean_sqrt_len_tokens": lambda x: x.sum(0) / len(x) ** 0.5,
    "weightedmean": lambda x: sum((i + 1) * row for i, row in enumerate(x)) / sum(range(len(x) + 1)),
    "lasttoken": lambda x: x[-1],
}
RNG = np.random.default_rng(0)
WIDE, NARROW = RNG.normal(size=(20, 16)).astype("f4"), RNG.normal(size=(12, 20)).astype("f4")
BIAS, BESIDE = RNG.normal(size=20).astype("f4"), RNG.normal(size=(12, 20)).astype("f4")


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def describe(folder: Path, *kinds: str, package: str = "sentence_transformers.models.", **pooling: Any) -> Path:
    """modules.json of a model, a pooling, and modules of these kinds."""
    names = ["", "1_Pooling", *(f"{i}_{kind}" for i, kind in enumerate(kinds, 2))]
    modules = zip(("Transformer", "Pooling", *kinds), names, strict=True)
    write(folder / "modules.json", [{"type": package + kind, "path": name} for kind, name in modules])
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16} | pooling)
    return folder


def dense(folder: Path, name: str, tensors: dict[str, np.ndarray], **settings: Any) -> None:
    out, width = tensors["linear.weight"].shape
    write(folder / name / "config.json", {"in_features": width, "out_features": out} | settings)
    save_file(tensors, folder / name / "model.safetensors")


def bert(path: Path) -> Path:
    inner = byte_tokenizer(template=("<s>", "</s>"))
    return saved(path, BertModel(BertConfig(**SMALL, vocab_size=300), add_pooling_layer=False), inner)


def qwen(path: Path) -> Path:
    """As Qwen3-Embedding: the tensors of Qwen3Model, with the class of one that writes; an end after every text."""
    config = Qwen3Config(**SMALL, vocab_size=300, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True)
    model = Qwen3ForCausalLM(config)
    saved(path, model, byte_tokenizer(template=("", "</s>")))
    save_file({name: one.numpy() for name, one in model.model.state_dict().items()}, path / "model.safetensors")
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {make.__name__: make(tmp_path_factory.mktemp(make.__name__)) for make in (bert, qwen)}


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(folders[name], tmp_path / name))


def vectors(folder: Path, text: str) -> np.ndarray:
    """Of the tokens of one text, by transformers."""
    inner = byte_tokenizer(template=("<s>" if folder.name == "bert" else "", "</s>"))
    kind = BertModel if folder.name == "bert" else Qwen3ForCausalLM
    model = kind.from_pretrained(folder).eval().base_model
    with torch.no_grad():
        found: np.ndarray = model(torch.tensor([inner.encode(text).ids])).last_hidden_state[0].numpy()
    return found


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x))


@pytest.mark.parametrize("backend", ["numpy", "torch", "transformers"])
@pytest.mark.parametrize("name", ["bert", "qwen"])
def test_every_mode(name: str, backend: Any, folder: Callable[[str], Path]) -> None:
    place = folder(name)
    package = "sentence_transformers.sentence_transformer.modules.pooling."  # as version 6 writes it
    describe(place, package=package, pooling_mode=list(MODES))
    lm = regard.load(place, backend=backend)
    found = lm.embed(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        x = vectors(place, text)
        assert_close(row, np.concatenate([mode(x) for mode in MODES.values()]), "logits")
    assert lm.embed([]).shape == (0, 96)


def test_last_token_of_a_decoder_with_prompts(folder: Callable[[str], Path]) -> None:
    place = describe(folder("qwen"), "Normalize", pooling_mode_lasttoken=True, pooling_mode_mean_tokens=False)
    query = "Instruct: find it\nQuery:"
    prompts = {"query": query, "document": None}
    write(place / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    lm = regard.load(place)
    for text, plain, asked in zip(TEXTS, lm.embed(TEXTS), lm.embed(TEXTS, prompt="query"), strict=True):
        assert_close(plain, unit(vectors(place, text)[-1]), "logits")
        assert_close(asked, unit(vectors(place, query + text)[-1]), "logits")
    np.testing.assert_array_equal(lm.embed(TEXTS, prompt="document"), lm.embed(TEXTS))
    with pytest.raises(ArgumentError, match="query, document"):
        lm.embed("a", prompt="passage")
    write(place / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": "query"})
    np.testing.assert_array_equal(lm.embed("a"), lm.embed("a", prompt="query"))
    (place / "modules.json").unlink()
    with pytest.raises(ArgumentError, match=r"modules\.json"):
        lm.embed("a")


def test_a_prompt_that_is_not_pooled(folder: Callable[[str], Path]) -> None:
    place = describe(folder("bert"), pooling_mode_mean_tokens=True, include_prompt=False)
    write(place / "config_sentence_transformers.json", {"prompts": {"query": "query: "}})
    skipped = len(byte_tokenizer(template=("<s>", "")).encode("query: ").ids)
    lm = regard.load(place)
    assert_close(lm.embed("a cat", prompt="query"), vectors(place, "query: a cat")[skipped:].mean(0), "logits")
    assert_close(lm.embed("a cat"), vectors(place, "a cat").mean(0), "logits")


def test_dense_layers(folder: Callable[[str], Path]) -> None:
    place = describe(folder("bert"), "Dense", "Dropout", "Dense", "Normalize", pooling_mode_mean_tokens=True)
    dense(place, "2_Dense", {"linear.weight": WIDE, "linear.bias": BIAS})
    more = {"activation_function": "torch.nn.modules.activation.GELU", "bias": False, "use_residual": True}
    dense(place, "4_Dense", {"linear.weight": NARROW, "residual.weight": BESIDE}, **more)
    x = np.tanh(vectors(place, "a cat").mean(0) @ WIDE.T + BIAS)
    y = torch.nn.functional.gelu(torch.from_numpy(x @ NARROW.T)).numpy() + x @ BESIDE.T
    lm = regard.load(place)
    assert_close(lm.embed("a cat"), unit(y), "logits")
    assert lm.embed([]).shape == (0, 12)


def test_reading_settings(folder: Callable[[str], Path]) -> None:
    place = describe(folder("bert"), pooling_mode_cls_token=True)
    write(place / "sentence_bert_config.json", {"max_seq_length": 6, "do_lower_case": True})
    lm = regard.load(place)
    np.testing.assert_array_equal(lm.embed("THE CAT sat on the mat"), lm.embed("the cat sat on a chair"))
    write(place / "sentence_bert_config.json", {})
    assert (lm.embed("THE CAT sat on the mat") != lm.embed("the cat sat on a chair")).any()
    write(place / "tokenizer_config.json", {"model_max_length": 6})
    np.testing.assert_array_equal(lm.embed("the cat sat on the mat"), lm.embed("the cat sat on a chair"))


def test_in_the_cache_of_the_hub(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Every file is a link there, those of modules out of their own folders."""
    place = describe(folder("bert"), "Dense", pooling_mode_mean_tokens=True)
    dense(place, "2_Dense", {"linear.weight": WIDE, "linear.bias": BIAS})
    expected = regard.load(place).embed("a cat")
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "0123", tmp_path / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    for number, file in enumerate(one for one in place.rglob("*") if one.is_file()):
        link = snapshot / file.relative_to(place)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, blobs / str(number))
        link.symlink_to(os.path.relpath(blobs / str(number), link.parent))
    np.testing.assert_array_equal(regard.load(snapshot).embed("a cat"), expected)
    (snapshot / "1_Pooling" / "config.json").unlink()
    (snapshot / "1_Pooling" / "config.json").symlink_to(tmp_path / "bert" / "1_Pooling" / "config.json")
    with pytest.raises(FileError, match="outside"):
        regard.load(snapshot).embed("a cat")


def test_convert_keeps_the_modules(folder: Callable[[str], Path], tmp_path: Path) -> None:
    place = describe(folder("bert"), "Dense", "Normalize", pooling_mode_cls_token=True)
    dense(place, "2_Dense", {"linear.weight": WIDE, "linear.bias": BIAS})
    write(place / "config_sentence_transformers.json", {"prompts": {"q": "q: "}, "default_prompt_name": "q"})
    from regard.language.loading import convert

    convert(place, tmp_path / "new")
    np.testing.assert_array_equal(regard.load(tmp_path / "new").embed(TEXTS), regard.load(place).embed(TEXTS))


def test_pooling_of_a_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for kind, modes in {1: ("mean",), 2: ("cls",), 3: ("lasttoken",)}.items():
        path.write_bytes(hostile_gguf.content({"llama.pooling_type": kind}))
        assert read_pooling(path) == Pooling(modes)
    path.write_bytes(hostile_gguf.content())
    assert read_pooling(path) is None
    path.write_bytes(hostile_gguf.content({"llama.pooling_type": 4}))
    with pytest.raises(FileError, match="pooling_type = 4"):
        read_pooling(path)


# --- what is refused ----------------------------------------------------------------------------------------


def _module(**changed: Any) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        modules = json.loads((place / "modules.json").read_text())
        modules[2] |= changed
        write(place / "modules.json", modules)

    return change


def _settings(**changed: Any) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        path = place / "2_Dense" / "config.json"
        write(path, json.loads(path.read_text()) | changed)

    return change


def _pooling(**changed: Any) -> Callable[[Path], None]:
    return lambda place: write(place / "1_Pooling" / "config.json", changed)


def _pickled(place: Path) -> None:
    (place / "2_Dense" / "model.safetensors").rename(place / "2_Dense" / "pytorch_model.bin")


def _prompts(**values: Any) -> Callable[[Path], None]:
    return lambda place: write(place / "config_sentence_transformers.json", values)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "code of its author": (_module(type="custom_st.Dense"), "custom_st.Dense"),
    "an unknown module": (_module(type="sentence_transformers.models.LSTM"), "LSTM"),
    "a module outside": (_module(path="../bert/2_Dense"), r"\.\./bert"),
    "a module in a deeper folder": (_module(path="2_Dense/2_Dense"), "2_Dense/2_Dense"),
    "a path that is a number": (_module(path=3), ": 3 is not valid"),
    "two poolings": (_module(type="sentence_transformers.models.Pooling"), "Pooling"),
    "modules that are no list": (lambda place: write(place / "modules.json", {}), r"\[…\]"),
    "no module": (lambda place: write(place / "modules.json", []), "modules.json"),
    "any function": (_settings(activation_function="os.system"), "os.system"),
    "a function of torch": (_settings(activation_function="torch.nn.functional.tanh"), "functional.tanh"),
    "a class without": (_settings(activation_function="torch.load"), "torch.load"),
    "no activation": (_settings(activation_function=None), "None"),
    "other sizes": (_settings(out_features=10**9), "1000000000"),
    "sizes as text": (_settings(in_features="16"), "embed|16"),
    "no bias expected": (_settings(bias=False), "linear.bias"),
    "of single tokens": (_settings(module_input_name="token_embeddings"), "token_embeddings"),
    "settings as a list": (lambda place: write(place / "2_Dense" / "config.json", []), "{…}"),
    "a pickle": (_pickled, "pickle"),
    "no weights": (lambda place: (place / "2_Dense" / "model.safetensors").unlink(), "model.safetensors"),
    "an unknown flag": (_pooling(pooling_mode_median=True), "pooling_mode_median"),
    "an unknown mode": (_pooling(pooling_mode="median"), "median"),
    "a mode that is a list": (_pooling(pooling_mode=[["mean"]]), "mean"),
    "many modes": (_pooling(pooling_mode=["mean"] * 10_000), "pooling_mode"),
    "another width": (_pooling(pooling_mode=["mean", "max"]), "16 ≠ 32"),
    "a default prompt that is missing": (_prompts(prompts={}, default_prompt_name="q"), "default_prompt_name"),
    "a default prompt that is a list": (_prompts(prompts={}, default_prompt_name=[]), "default_prompt_name"),
    "prompts that are numbers": (_prompts(prompts={"q": 3}), "prompts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, folder: Callable[[str], Path]) -> None:
    place = describe(folder("bert"), "Dense", pooling_mode_mean_tokens=True)
    dense(place, "2_Dense", {"linear.weight": WIDE, "linear.bias": BIAS})
    change, message = REFUSED[name]
    change(place)
    with pytest.raises(FileError, match=message) as caught:
        regard.load(place).embed("a")
    assert all(caught.value.text(lang) for lang in LANGUAGES)
