"""`See(outputs=True)`: the output of each head as the call computed it, on every backend and in every watched call."""

from typing import Any

import pytest
import torch
from hypothesis import given
from narrowing import present
from strategies import Call, calls
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaModel

import regard
from regard import See, attend
from regard.arrays import to_numpy

SEE = See(map=None, sink=False, outputs=True)
SMALL: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.mark.parametrize("backend", ["blocked", "reference", "chunked", "eager"])
@given(call=calls(dtypes=("float32", "float64")))
def test_they_are_what_attend_returns(backend: str, call: Call) -> None:
    given_call = call if backend in ("blocked", "reference") else call.as_torch()
    out, record = attend(given_call.q, given_call.k, given_call.v, **given_call.options, see=SEE, backend=backend)
    found, wanted = to_numpy(present(record.outputs)), to_numpy(out).reshape(*record.shape[:3], out.shape[-1])
    if record.padding is None or record.padding.queries is None:
        assert_same_bits(found, wanted)
    else:
        text = to_numpy(record.padding.queries)[:, None].repeat(record.shape[1], 1)
        assert_same_bits(found[text], wanted[text])
        assert not found[~text].any()


def test_they_are_a_copy_without_gradient() -> None:
    q, k, v = (torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
    out, record = attend(q, k, v, see=SEE)
    before = present(record.outputs).clone()
    out.data.zero_()
    assert_same_bits(present(record.outputs), before)
    assert out.requires_grad
    assert not present(record.outputs).requires_grad


def before_projection(projection: nn.Module, H: int) -> list[Tensor]:
    """What the output projection is called with, B H T Ev, while the model runs."""
    found: list[Tensor] = []
    projection.register_forward_pre_hook(
        lambda _module, args: found.append(args[0].detach().unflatten(-1, (H, -1)).transpose(1, 2))
    )
    return found


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("see", [SEE, See(outputs=True, qk=True, fused=True)], ids=["alone", "with all"])
def test_a_watched_model(implementation: str, see: See) -> None:
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**SMALL, intermediate_size=16, num_key_value_heads=2)).eval()
    model.set_attn_implementation(implementation)
    layers: Any = model.layers
    wanted = [before_projection(layer.self_attn.o_proj, 4) for layer in layers]
    with torch.no_grad(), regard.watch(model, see=see) as trace:
        model(torch.arange(14).view(2, 7))
    for record, found in zip(trace, wanted, strict=True):
        assert_same_bits(present(record.outputs), found[0])


def test_padding_and_generation(tmp_path: Any) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 50,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 4,
        "bos_token_id": 0,
        "eos_token_id": 49,
    }
    model = GPT2LMHeadModel(GPT2Config(**sizes)).eval()
    ids = torch.tensor([[3, 4, 5, 6], [9, 9, 7, 8]])
    keep = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
    options: dict[str, Any] = {"attention_mask": keep, "max_new_tokens": 4, "min_new_tokens": 4, "pad_token_id": 9}
    with torch.no_grad(), regard.watch(model, see=See(outputs=True)) as trace:
        text = model.generate(ids, do_sample=False, **options)
    whole = trace.stitched(text)[1]
    with torch.no_grad(), regard.watch(model, see=See(outputs=True)) as at_once:
        mask = torch.cat([keep, torch.ones(2, 3, dtype=keep.dtype)], 1)
        model(text[:, :-1], attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp_min(0))
    assert_close(present(whole.outputs), present(at_once[1].outputs))
    assert not present(whole.outputs)[1, :, :2].any()
    trace.save(tmp_path / "t.safetensors")
    again = regard.read_trace(tmp_path / "t.safetensors").stitched(text)[1]
    assert_same_bits(again.outputs, to_numpy(whole.outputs))


@pytest.mark.parametrize("need_weights", [False, True])
def test_keys_that_a_module_adds_count(need_weights: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True)
    x = torch.randn(2, 5, 16)
    with regard.watch(layer, see=See(outputs=True)) as trace:
        out, _ = layer(x, x, x, need_weights=need_weights)
    found = present(trace[0].outputs)
    assert_close(layer.out_proj(found.transpose(1, 2).flatten(2)), out)


def test_unknown_outputs_are_none_with_a_warning() -> None:
    layer = LlamaModel(LlamaConfig(**SMALL, intermediate_size=16, attention_dropout=0.5)).train()
    layer.set_attn_implementation("eager")
    warning = pytest.warns(UserWarning, match="the outputs are None")
    with warning, torch.no_grad(), regard.watch(layer, see=SEE) as trace:
        layer(torch.arange(7)[None])
    assert trace[0].outputs is None


def test_a_fused_encoder_layer() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True).eval()
    x, found = torch.randn(2, 4, 8), []
    for gradients in (False, True):  # as one operator, and in parts
        with torch.set_grad_enabled(gradients), regard.watch(layer, see=SEE) as trace:
            layer(x)
        found.append(present(trace[0].outputs))
    assert_close(*found)
