"""Value lengths of watched models against doing it by hand, in models that keep W_o in different places."""

from typing import Any

import pytest
import torch
from tolerances import assert_close
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, GPT2Model, LlamaConfig, LlamaModel

import regard
from regard import See
from regard.capture.projections import output_projection
from regard.errors import NotKeptError
from regard.trace import Trace

IDS = torch.arange(7)[None]
SMALL: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4}


def watched(model: nn.Module, **inputs: Any) -> Trace:
    with regard.watch(model.eval(), see=See(values=True, qk=True)) as trace, torch.no_grad():
        model(**inputs)
    return trace


def by_hand(v: torch.Tensor, W_o: torch.Tensor, heads: int) -> torch.Tensor:
    """v B G S Ev, W_o (H·Ev) D; the vectors themselves, then their lengths."""
    v = v.repeat_interleave(heads // v.shape[1], 1)
    return torch.einsum("bhse,hed->bhsd", v, W_o.unflatten(0, (heads, -1))).norm(dim=-1)


def heard(module: nn.Module) -> list[torch.Tensor]:
    """What a module gives while the model runs."""
    found: list[torch.Tensor] = []
    module.register_forward_hook(lambda _module, _given, out: found.append(out.detach()))
    return found


def test_llama_has_it_in_the_module_and_groups_its_heads() -> None:
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**SMALL, intermediate_size=16, num_key_value_heads=2))
    attention = model.layers[0].self_attn
    values = heard(attention.v_proj)
    (record,) = watched(model, input_ids=IDS)
    v = values[0].unflatten(-1, (2, 4)).transpose(1, 2)
    assert_close(record.values, by_hand(v, attention.o_proj.weight.T.detach(), 4))


def test_gpt2_has_it_transposed() -> None:
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(vocab_size=50, n_embd=16, n_head=4, n_layer=1))
    attention = model.h[0].attn
    qkv = heard(attention.c_attn)
    (record,) = watched(model, input_ids=IDS)
    v = qkv[0][..., 32:].unflatten(-1, (4, 4)).transpose(1, 2)
    assert_close(record.values, by_hand(v, attention.c_proj.weight.detach(), 4))


def test_bert_has_it_beside_the_module() -> None:
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SMALL, intermediate_size=16))
    attention = model.encoder.layer[0].attention
    values = heard(attention.self.value)
    trace = watched(model, input_ids=IDS)
    v = values[0].unflatten(-1, (4, 4)).transpose(1, 2)
    expected = by_hand(v, attention.output.dense.weight.T.detach(), 4)
    assert_close(trace[0].values, expected)
    moved = trace[0].weights() * expected[:, :, None]
    assert_close(trace.value_weighted()[0].weights(), moved / moved.sum(-1, keepdim=True))


def test_without_one_values_are_taken_as_they_are() -> None:
    v = torch.randn(1, 2, 5, 3)

    class Bare(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(v, v, v) + x

    (record,) = watched(Bare(), x=torch.zeros(1))
    assert_close(record.values, v.norm(dim=-1))
    assert output_projection([nn.Sequential(nn.Linear(6, 6))], 6) is None


def test_what_cannot_be_known_says_so() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    trace = watched(layer, src=torch.randn(1, 4, 8))
    assert trace[0].values is None
    with pytest.raises(NotKeptError, match="fused encoder layer"):
        trace.value_weighted()


def test_values_are_saved_and_read(tmp_path: Any) -> None:
    model = BertModel(BertConfig(**SMALL, intermediate_size=16))
    trace = watched(model, input_ids=IDS)
    trace.save(tmp_path / "t.safetensors", qk=True)
    again = regard.read_trace(tmp_path / "t.safetensors")
    assert_close(again[0].values, trace[0].values)
    assert_close(again.value_weighted()[0].weights(), trace.value_weighted()[0].weights())


def test_a_written_text_has_those_of_all_its_keys() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_embd=16, n_head=4, n_layer=1, bos_token_id=0, eos_token_id=None)
    )
    with regard.watch(model.eval(), see=See(values=True, qk=True)) as trace:
        written = model.generate(IDS + 1, max_new_tokens=4, do_sample=False, pad_token_id=0)
    whole = watched(model, input_ids=written[:, :-1])
    assert_close(trace.stitched()[0].values, whole[0].values)
    assert_close(trace.stitched().value_weighted()[0].weights(), whole.value_weighted()[0].weights())
