"""`logit_attribution` against the same sum by hand, from hooks on the parts of each model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from tolerances import assert_close
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

import regard
from regard import logit_attribution
from regard.config import TransformerConfig
from regard.errors import ArgumentError
from regard.models import Transformer

SMALL: dict[str, Any] = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


class Parts(NamedTuple):
    """A model, the names of its parts, and whether its final norm subtracts the mean."""

    model: Callable[[], Any]
    embeddings: tuple[str, ...]
    projections: str
    feed_forwards: str
    norm: str
    output: str
    is_centred: bool = True


def poet() -> Any:
    return regard.load("poet", backend="torch").model


def llama_shaped() -> nn.Module:
    sizes: dict[str, Any] = {"vocab_size": 30, "d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 2, "n_kv_heads": 2}
    return Transformer(TransformerConfig.llama(**sizes))


OURS = ("decoder.layers.{}.self_attention.o_proj", "decoder.layers.{}.feed_forward", "decoder.norm")
MODELS = {
    "gpt2": Parts(
        lambda: GPT2LMHeadModel(GPT2Config(vocab_size=30, n_embd=16, n_layer=2, n_head=4)),
        ("transformer.wte", "transformer.wpe"),
        "transformer.h.{}.attn.c_proj",
        "transformer.h.{}.mlp",
        "transformer.ln_f",
        "lm_head",
    ),
    "llama": Parts(
        lambda: LlamaForCausalLM(LlamaConfig(**SMALL, intermediate_size=24, num_key_value_heads=2, rms_norm_eps=1e-5)),
        ("model.embed_tokens",),
        "model.layers.{}.self_attn.o_proj",
        "model.layers.{}.mlp",
        "model.norm",
        "lm_head",
        is_centred=False,
    ),
    "neox": Parts(
        lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**SMALL, intermediate_size=24)),
        ("gpt_neox.embed_in",),
        "gpt_neox.layers.{}.attention.dense",
        "gpt_neox.layers.{}.mlp",
        "gpt_neox.final_layer_norm",
        "lm_head",
    ),
    "poet": Parts(poet, ("embedding",), *OURS, "embedding"),
    "ours": Parts(llama_shaped, ("embedding",), *OURS, "embedding", is_centred=False),
}


def shaken(model: Any) -> Any:
    """The model with biases and gains that count."""
    with torch.no_grad():
        for name, x in model.named_parameters():
            if x.dim() == 1:
                x.add_(torch.randn_like(x) * 0.3)
            elif "embed" in name or "wte" in name:
                x.mul_(20)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_heads_and_rest_are_those_by_hand(name: str) -> None:
    torch.manual_seed(0)
    parts = MODELS[name]
    model = parts.model().eval() if name == "poet" else shaken(parts.model())
    model = model.double()
    modules: dict[str, Any] = dict(model.named_modules())
    seen: dict[str, Any] = {}
    layers = sum(parts.projections.format(i) in modules for i in range(20))

    def keep(key: str) -> None:
        def hook(_: nn.Module, args: Any, out: Any) -> None:
            seen.setdefault(key, (args[0], out))  # the first call; the norm is called again to find its gain

        modules[key].register_forward_hook(hook)

    projections = [parts.projections.format(i) for i in range(layers)]
    feed_forwards = [parts.feed_forwards.format(i) for i in range(layers)]
    for key in (*parts.embeddings, *projections, *feed_forwards, parts.norm):
        keep(key)
    found = logit_attribution(model, IDS, token=[7, 2], position=[3, 4])
    rows, at = torch.arange(2), torch.tensor([3, 4])
    norm: Any = modules[parts.norm]
    x = seen[parts.norm][0][rows, at].double()
    row = modules[parts.output].get_parameter("weight").detach()[torch.tensor([7, 2])].double()

    def frozen(added: Tensor) -> Tensor:
        """What a vector of the stream adds to the logit."""
        mean = x.mean(-1, keepdim=True) if parts.is_centred else torch.zeros_like(x[:, :1])
        scale = ((x - mean).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        own = added - added.mean(-1, keepdim=True) if parts.is_centred else added
        return (own * scale * norm.weight.detach().double() * row).sum(-1)

    assert len(found.heads) == layers
    accuracy = "float32" if name == "llama" else "float64"  # its norm computes in float32
    H = model.config.n_heads if name in ("poet", "ours") else 4
    rest = torch.zeros(2, dtype=torch.float64)
    for key, values in zip(projections, found.heads.values(), strict=True):
        weight = modules[key].get_parameter("weight").detach().double()
        weight = (weight if name == "gpt2" else weight.T).unflatten(0, (H, -1))
        given = seen[key][0][rows, at].double().unflatten(-1, (H, -1))
        assert_close(
            values, torch.stack([frozen(given[:, h] @ weight[h]) for h in range(H)], -1), "statistic", accuracy
        )
        bias = getattr(modules[key], "bias", None)
        rest += 0 if bias is None else frozen(bias.detach().double().expand_as(x))
    for key in (*parts.embeddings, *feed_forwards):
        out = seen[key][1].detach().double()
        rest += frozen(out.expand(2, -1, -1)[rows, at])
    bias = getattr(norm, "bias", None)
    rest += 0 if bias is None else (bias.detach().double() * row).sum(-1)
    assert_close(found.rest, rest, "statistic", accuracy)
    with torch.no_grad():
        out = model(IDS)
    logits = out if isinstance(out, Tensor) else out.logits
    assert_close(found.logit, logits[rows, at, torch.tensor([7, 2])].double(), "statistic", accuracy)
    assert_close(sum(values.sum(-1) for values in found.heads.values()) + rest, found.logit, "statistic", accuracy)


def small() -> Any:
    torch.manual_seed(0)
    return MODELS["gpt2"].model().double().eval()


def test_against_another_token() -> None:
    model = small()
    one, other = (logit_attribution(model, IDS, token=token) for token in (4, 9))
    both = logit_attribution(model, IDS, token=4, against=9)
    assert_close(both.logit, one.logit - other.logit)
    for name, values in both.heads.items():
        assert_close(values, one.heads[name] - other.heads[name])
    assert_close(both.rest, one.rest - other.rest)


def test_the_last_token_of_each_text_and_half_precision() -> None:
    model, keep = small(), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    found = logit_attribution(model, {"input_ids": IDS, "attention_mask": keep}, token=4)
    assert found.position.tolist() == [4, 2]
    alone = logit_attribution(model, IDS[1:, :3], token=4)
    assert_close(found.logit[1:], alone.logit)
    assert_close(found.rest[1:], alone.rest)
    coarse = logit_attribution(model.bfloat16(), IDS[1:, :3], token=4)
    assert_close(coarse.rest, alone.rest, "gradient", "bfloat16")


def test_the_table() -> None:
    found = logit_attribution(small(), IDS[:1], token=4, tokenizer=lambda ids: [f"w{i}" for i in ids])
    text = found.text("en", count=2)
    largest = found.ranked()[0]
    assert text.startswith("what adds to the logit of 'w4' at position 4\nlayer ")
    assert f"{largest.name}" in text.splitlines()[2]
    assert text.splitlines()[4].startswith("other heads")
    assert "前馈层" in found.text("zh")
    assert "minus that of 9" in logit_attribution(small(), IDS[:1], token=4, against=9).text("en")
    assert abs(largest.value) == max(float(values.abs().max()) for values in found.heads.values())


def gemma(**options: Any) -> nn.Module:
    return Gemma2ForCausalLM(Gemma2Config(**SMALL, intermediate_size=24, num_key_value_heads=2, head_dim=4, **options))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (gemma, "are not a linear function"),
        (lambda: gemma(final_logit_softcapping=None), r"layer of model\.layers\.1\.self_attn does not simply add"),
        (lambda: BertForMaskedLM(BertConfig(**SMALL, intermediate_size=24)), r"attention\.self does not simply add"),
        (lambda: BertForSequenceClassification(BertConfig(**SMALL, intermediate_size=24)), "logits for every position"),
        (lambda: GPT2LMHeadModel(GPT2Config(vocab_size=30, n_embd=16, n_layer=1, n_head=4)).train(), "eval"),
    ],
    ids=["bounded", "sandwich norms", "post-norm", "classes", "training"],
)
def test_what_is_no_such_sum_is_refused(build: Callable[[], nn.Module], message: str) -> None:
    torch.manual_seed(0)
    model = build()
    model = model if "eval" in message else shaken(model)
    with pytest.raises(ArgumentError, match=message):
        logit_attribution(model, IDS, token=4)


def test_in_inference_mode() -> None:
    model = small()
    wanted = logit_attribution(model, IDS, token=4)
    with torch.inference_mode():
        found = logit_attribution(model, IDS.clone(), token=4)
    assert_close(found.logit, wanted.logit)
    assert_close(torch.stack(list(found.heads.values())), torch.stack(list(wanted.heads.values())))


def test_errors_name_the_argument_and_the_function() -> None:
    with pytest.raises(ArgumentError, match=r"^against must be an id from 0 to"):
        logit_attribution(small(), IDS, token=4, against=10**6)
    with pytest.raises(ArgumentError, match=r"^logit_attribution needs a PyTorch model"):
        logit_attribution("gpt2", IDS)  # type: ignore[arg-type]
