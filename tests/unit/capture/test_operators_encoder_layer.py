"""`torch.nn`'s fused encoder layer and its four modes of MultiheadAttention, against its own slow path."""

from functools import partial
from typing import Any

import pytest
import torch
from capturing import assert_unchanged, captured_in, records_of
from tolerances import assert_close
from torch import Tensor, nn

from regard.capture.operators import CapturedCall

B, T, D, H = 2, 5, 8, 2
BLOCKED = torch.ones(T, T, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[False] * 3 + [True] * 2, [False] * 5])
MASKS: dict[str, dict[str, Tensor]] = {
    "none": {},
    "scores": {"attn_mask": BLOCKED},
    "keys": {"key_padding_mask": PADDING},
    "both": {"attn_mask": BLOCKED, "key_padding_mask": PADDING},
}
# The prototype of nested tensors warns about itself, watched or not.
nested = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(B, T, D)


def reference_weights(attention: nn.MultiheadAttention, x: Tensor, **masks: Tensor) -> Tensor:
    """Its own weights, by the slow path, which gradients enforce."""
    with torch.enable_grad():
        weights = attention(x, x, x, need_weights=True, average_attn_weights=False, **masks)[1]
    return weights.detach()


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("grad", [True, False], ids=["slow", "fast"])
def test_the_four_modes_of_multi_head_attention(masks: str, need_weights: bool, grad: bool, x: Tensor) -> None:
    attention = nn.MultiheadAttention(D, H, batch_first=True).eval()

    def run() -> Tensor:
        with torch.set_grad_enabled(grad):
            return attention(x, x, x, need_weights=need_weights, **MASKS[masks])[0]

    (record,) = assert_unchanged(run, attention)
    assert record.shape == (B, H, T, T)
    assert_close(record.weights(), reference_weights(attention, x, **MASKS[masks]), "weights")


def test_the_fast_path_is_still_used(x: Tensor) -> None:
    attention = nn.MultiheadAttention(D, H, batch_first=True).eval()
    with torch.no_grad():
        (found,) = captured_in(lambda: attention(x, x, x))
    assert isinstance(found, CapturedCall)


@pytest.mark.parametrize("batch_first", [True, False])
def test_cross_attention_and_other_widths(batch_first: bool, x: Tensor) -> None:
    attention = nn.MultiheadAttention(D, H, kdim=6, vdim=4, batch_first=batch_first).eval()
    memory = torch.randn(B, 7, 6)
    q, k, v = (x, memory, memory[..., :4])
    if not batch_first:
        q, k, v = (one.transpose(0, 1) for one in (q, k, v))
    expected = attention(q, k, v, average_attn_weights=False)[1]
    for need_weights in (True, False):
        (record,) = records_of(partial(attention, q, k, v, need_weights=need_weights), attention)
        assert_close(record.weights(), expected.detach(), "weights")


def test_training_captures_the_weights_before_dropout(x: Tensor) -> None:
    attention = nn.MultiheadAttention(D, H, dropout=0.5, batch_first=True).train()
    for need_weights in (True, False):

        def run(need: bool = need_weights) -> Tensor:
            return attention(x, x, x, need_weights=need)[0]

        (record,) = assert_unchanged(run, attention)
        assert_close(record.weights(), reference_weights(attention.eval(), x), "weights")
        attention.train()


@nested
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("masks", ["none", "mask", "keys", "both"])
def test_the_fused_encoder_layer(norm_first: bool, masks: str, x: Tensor) -> None:
    layer = nn.TransformerEncoderLayer(D, H, 16, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    options: dict[str, Any] = {"mask": BLOCKED} if masks in ("mask", "both") else {}
    options |= {"src_key_padding_mask": PADDING} if masks in ("keys", "both") else {}

    def run(grad: bool = False) -> Tensor:
        with torch.set_grad_enabled(grad):
            return encoder(x, **options)

    attention = encoder.layers[0].self_attn
    fused = assert_unchanged(run, attention)
    slow = records_of(lambda: run(grad=True), attention)
    assert len(fused) == len(slow) == 2
    there = ~PADDING if "src_key_padding_mask" in options else torch.ones(B, T, dtype=torch.bool)
    for one, other in zip(fused, slow, strict=True):
        rows = there[:, None, :, None]
        assert_close(one.weights() * rows, other.weights() * rows, "weights")


@nested
def test_every_layer_of_a_transformer_is_captured() -> None:
    model = nn.Transformer(D, H, 2, 2, 16, batch_first=True)
    source, target = torch.randn(B, 7, D), torch.randn(B, T, D)
    causal = nn.Transformer.generate_square_subsequent_mask(T)
    for train in (True, False):
        model.train(train)
        records = assert_unchanged(lambda: model(source, target, tgt_mask=causal, tgt_is_causal=True), model)
        shapes = [record.shape[2:] for record in records]
        assert shapes == [(7, 7), (7, 7), (T, T), (T, 7), (T, T), (T, 7)]
        assert all(record.weights().tril().equal(record.weights()) for record in records if record.shape[2:] == (T, T))
