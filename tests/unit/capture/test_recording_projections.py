"""Value norms of watched models against a direct computation, in models that store W_o in different places."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from narrowing import present
from tolerances import assert_close
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2Model,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
)

import regard
from regard import See
from regard.capture.recording import output_projection
from regard.errors import NotKeptError
from regard.trace import Trace

IDS = torch.arange(7)[None]
SMALL: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4}


def watched(model: nn.Module, **inputs: Any) -> Trace:
    with regard.watch(model.eval(), see=See(values=True, qk=True)) as trace, torch.no_grad():
        model(**inputs)
    return trace


def by_hand(v: torch.Tensor, W_o: torch.Tensor, heads: int) -> torch.Tensor:
    """v B G S Ev, W_o (H·Ev) D; the vectors themselves, then their norms."""
    v = v.repeat_interleave(heads // v.shape[1], 1)
    return torch.einsum("bhse,hed->bhsd", v, W_o.unflatten(0, (heads, -1))).norm(dim=-1)


def outputs_of(module: nn.Module) -> list[torch.Tensor]:
    """The outputs of a module while the model runs."""
    found: list[torch.Tensor] = []
    module.register_forward_hook(lambda _module, _given, out: found.append(out.detach()))
    return found


def test_llama_with_grouped_heads() -> None:
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**SMALL, intermediate_size=16, num_key_value_heads=2))
    attention: Any = model.layers[0].self_attn
    values = outputs_of(attention.v_proj)
    (record,) = watched(model, input_ids=IDS)
    v = values[0].unflatten(-1, (2, 4)).transpose(1, 2)
    assert_close(record.value_norms, by_hand(v, attention.o_proj.weight.T.detach(), 4))


def test_gpt2_with_a_transposed_projection() -> None:
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(vocab_size=50, n_embd=16, n_head=4, n_layer=1))
    attention: Any = model.h[0].attn
    qkv = outputs_of(attention.c_attn)
    (record,) = watched(model, input_ids=IDS)
    v = qkv[0][..., 32:].unflatten(-1, (4, 4)).transpose(1, 2)
    assert_close(record.value_norms, by_hand(v, attention.c_proj.weight.detach(), 4))


def test_bert_with_the_projection_beside_the_module() -> None:
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SMALL, intermediate_size=16))
    attention: Any = model.encoder.layer[0].attention
    values = outputs_of(attention.self.value)
    trace = watched(model, input_ids=IDS)
    v = values[0].unflatten(-1, (4, 4)).transpose(1, 2)
    expected = by_hand(v, attention.output.dense.weight.T.detach(), 4)
    assert_close(trace[0].value_norms, expected)
    moved = trace[0].weights() * expected[:, :, None]
    assert_close(trace.value_weighted()[0].weights(), moved / moved.sum(-1, keepdim=True))


def test_without_a_projection_the_values_themselves_are_measured() -> None:
    v = torch.randn(1, 2, 5, 3)

    class Bare(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(v, v, v) + x

    (record,) = watched(Bare(), x=torch.zeros(1))
    assert_close(record.value_norms, v.norm(dim=-1))
    assert output_projection([nn.Sequential(nn.Linear(6, 6))], 6) is None


FAMILIES: dict[str, Callable[..., nn.Module]] = {
    "grouped": lambda how: LlamaModel(LlamaConfig(**SMALL, **how, intermediate_size=16, num_key_value_heads=2)),
    "projection beside": lambda how: BertModel(BertConfig(**SMALL, **how, intermediate_size=16)),
    "fused weights": lambda how: GPT2Model(GPT2Config(vocab_size=50, n_embd=16, n_head=4, n_layer=1, **how)),
}


@pytest.mark.parametrize("made", FAMILIES.values(), ids=FAMILIES)
def test_eager_attention_gives_the_same_norms(made: Callable[..., nn.Module]) -> None:
    """With as many samples as heads, so that they could be confused."""
    ids = torch.randint(0, 50, (4, 7))
    found = []
    for how in ("sdpa", "eager"):
        torch.manual_seed(0)
        (record,) = watched(made({"attn_implementation": how}), input_ids=ids)
        found.append(record.value_norms)
    assert_close(found[1], found[0])


def test_gemma_2_with_grouped_heads_and_its_own_softmax() -> None:
    torch.manual_seed(0)
    model = Gemma2Model(Gemma2Config(**SMALL, intermediate_size=16, num_key_value_heads=2, head_dim=4))
    attention: Any = model.layers[0].self_attn
    values = outputs_of(attention.v_proj)
    trace = watched(model, input_ids=IDS)
    v = values[0].unflatten(-1, (2, 4)).transpose(1, 2)
    assert_close(trace[0].value_norms, by_hand(v, attention.o_proj.weight.T.detach(), 4))
    assert trace.value_weighted()[0].shape == (1, 4, 7, 7)


class HandWritten(nn.Module):
    """B = H = 2, and a product in another order than the softmax, or transposed."""

    def __init__(self, order: str) -> None:
        super().__init__()
        self.order, self.v = order, torch.randn(2, 2, 5, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, v = x.softmax(-1), self.v
        match self.order:
            case "turned around":
                return v.mT @ weights.mT
            case "heads first":
                return weights.transpose(0, 1).reshape(4, 5, 5) @ v.transpose(0, 1).reshape(4, 5, 3)
            case "shared":  # one matrix of both heads, one of values
                return weights.reshape(2, 10, 5) @ v[:, 0]
            case _:
                return self.drop(weights) @ v


def test_transposed_products() -> None:
    x = torch.randn(2, 2, 5, 5)
    for order in ("turned around", "as usual"):
        model = HandWritten(order)
        assert_close(watched(model, x=x)[0].value_norms, model.v.norm(dim=-1))
    model = HandWritten("shared")
    assert_close(watched(model, x=x)[0].value_norms, model.v[:, :1].norm(dim=-1).expand(2, 2, 5))


@pytest.mark.parametrize("order", ["heads first", "dropped"])
def test_ambiguous_values_are_not_assigned(order: str) -> None:
    model, x, see = HandWritten(order).train(), torch.randn(2, 2, 5, 5), See(values=True)
    message = r"values of attention could not be captured.*model\.eval\(\)"
    with pytest.warns(UserWarning, match=message) as caught_warnings, regard.watch(model, see=see) as trace:
        torch.stack([model(x), model(x)])  # warned once
    assert trace[0].value_norms is None
    assert [warning.filename for warning in caught_warnings] == [__file__]


def test_a_fused_layer_and_values_that_were_not_asked_for() -> None:
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(1, 4, 8)
    fused = watched(layer, src=x)
    with regard.watch(layer) as trace:
        layer(x)
    with pytest.raises(NotKeptError, match=r"not asked for, .* or the model did not show them"):
        trace.value_weighted()
    with regard.watch(layer, see=See(values=True)) as trace:  # with gradients it runs in parts
        layer(x)
    assert_close(fused[0].value_norms, present(trace[0].value_norms))


def test_value_norms_are_saved_and_read(tmp_path: Any) -> None:
    model = BertModel(BertConfig(**SMALL, intermediate_size=16))
    trace = watched(model, input_ids=IDS)
    trace.save(tmp_path / "t.safetensors", qk=True)
    again = regard.read_trace(tmp_path / "t.safetensors")
    assert_close(again[0].value_norms, trace[0].value_norms)
    assert_close(again.value_weighted()[0].weights(), trace.value_weighted()[0].weights())


def test_a_generated_text_has_the_norms_of_all_keys() -> None:
    torch.manual_seed(0)
    model: Any = GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_embd=16, n_head=4, n_layer=1, bos_token_id=0, eos_token_id=None)
    )
    with regard.watch(model.eval(), see=See(values=True, qk=True)) as trace:
        written = model.generate(IDS + 1, max_new_tokens=4, do_sample=False, pad_token_id=0)
    whole = watched(model, input_ids=written[:, :-1])
    assert_close(trace.stitched()[0].value_norms, whole[0].value_norms)
    assert_close(trace.stitched().value_weighted()[0].weights(), whole.value_weighted()[0].weights())
