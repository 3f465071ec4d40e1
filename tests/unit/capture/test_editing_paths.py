"""`edit` on every attention path: PyTorch's own modules, flex, folded heads, compiled, checkpointed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

import regard
from regard import See, edit
from regard.config import TransformerConfig
from regard.errors import ArgumentError
from regard.models import Transformer
from small_models import ROADS, D, H, Model, gradients, inputs


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(params=ROADS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_multihead_attention(need_weights: bool, batch_first: bool, training: bool) -> None:
    layer = nn.MultiheadAttention(D, H, batch_first=batch_first).train(training)
    x = torch.randn(3, 5, D)
    T = 5 if batch_first else 3
    see = torch.ones(T, T, dtype=torch.bool).tril()
    mask = ~see
    with edit(layer, cut={"attention": [(2, 0)]}, silence={"attention": [1]}), torch.set_grad_enabled(training):
        edited, weights = layer(x, x, x, attn_mask=mask, need_weights=need_weights, average_attn_weights=False)
    with torch.no_grad():
        layer.out_proj.weight[:, D // H : 2 * D // H] = 0
        by_hand, _ = layer(x, x, x, attn_mask=mask | (torch.arange(T) == 0) & (torch.arange(T)[:, None] == 2))
    assert_close(edited, by_hand)
    assert (weights is not None) == need_weights
    if weights is not None:
        assert not weights[:, :, 2, 0].any()


def test_a_fused_encoder_layer_under_both_of_its_names() -> None:
    layer = nn.TransformerEncoderLayer(D, H, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, D)
    with torch.no_grad():
        with edit(model, silence={"layers.0": [1]}):
            one = model(x)
        with edit(model, silence={"layers.0.self_attn": [1]}):
            other = model(x)
        model.layers[0].self_attn.out_proj.weight[:, D // H : 2 * D // H] = 0
        assert_same_bits(one, other)
        assert_close(one, model(x))


def test_heads_that_share_an_axis_with_samples() -> None:
    class Folded(nn.Module):
        num_heads = 2

        def forward(self, q: Tensor) -> Tensor:
            return torch.softmax(q @ q.mT, -1) @ q

    model, q = Folded(), torch.randn(6, 5, 4)
    with edit(model, silence={"attention": [1]}):
        out = model(q)
    assert_same_bits(out[0::2], model(q)[0::2])
    assert not out[1::2].any()


def test_grouped_heads_can_be_frozen() -> None:
    class Grouped(nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k, enable_gqa=True)

    model, q, k = Grouped(), torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8)
    with regard.watch(model, see=See(qk=True)) as trace:
        expected = model(q, k)
    with edit(model, freeze={"attention": trace[0]}):
        assert_close(model(torch.randn_like(q), k), expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention() -> None:
    class Flexible(nn.Module):
        def forward(self, q: Tensor, cut: bool = False) -> Tensor:
            def score(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
                hidden = (i < j) | (i == 5) & (j == 2) if cut else i < j
                return torch.where(hidden, -torch.inf, score + 0.1 * j)

            return flex_attention(q, q, q, score_mod=score)

    model, q = Flexible(), torch.randn(1, 2, 16, 16)
    with edit(model, cut={"attention": [(5, 2)]}, silence={"attention": [0]}):
        out = model(q)
    assert not out[:, 0].any()
    assert_close(out[:, 1], model(q, cut=True)[:, 1])
    with edit(model, freeze={"attention": np.eye(16)}):
        assert_close(model(q), q)


def test_our_own_layers() -> None:
    model = Transformer(TransformerConfig.gpt2(vocab_size=11, d_model=D, n_heads=H, d_ff=32, n_layers=2)).eval()
    ids = torch.randint(0, 11, (2, 6))
    with torch.no_grad():
        plain = model(ids)
        with edit(model, cut={"decoder.layers.1.self_attention": [(4, 1)]}):
            cut = model(ids)
    assert_close(cut[:, [0, 1, 2, 3, 5]], plain[:, [0, 1, 2, 3, 5]])
    assert (cut[:, 4] - plain[:, 4]).abs().max() > 1e-5


def test_a_compiled_model_and_its_compiled_code_after_the_block() -> None:
    model = Model()
    x = inputs()
    with edit(model, silence={"layers.0.attn": [0]}):
        expected = model(x)
    compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
    plain = compiled(x)
    with edit(compiled, silence={"layers.0.attn": [0]}):
        assert_close(compiled(x), expected)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert_same_bits(compiled(x), plain)


def test_checkpointed_activations_are_edited_the_same(model: Model) -> None:
    x = inputs()
    with edit(model, silence={"layers.0.attn": [0]}):
        expected = gradients(model, model(x))
        found = gradients(model, checkpoint(model, x, use_reentrant=False))
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, "gradient")
    with pytest.raises(ArgumentError, match="checkpoint"), edit(model, silence={"layers.0.attn#0": [0]}):
        gradients(model, checkpoint(model, x, use_reentrant=False))


@pytest.mark.parametrize("backward", [Tensor.backward, torch.autograd.backward])
def test_checkpointed_activations_are_edited_in_every_backward(model: Model, backward: Any) -> None:
    found = []
    for run in (model, lambda x: checkpoint(model, x, use_reentrant=False)):
        torch.manual_seed(0)
        x = inputs()
        with edit(model, silence={"layers.0.attn": [0]}):
            backward(run(x).sum())
        found.append(x.grad)
    assert_close(found[1], found[0], "gradient")


def test_a_frozen_pattern_passes_gradients_to_the_values(model: Model) -> None:
    x, pattern = inputs(), torch.rand(2, H, 7, 7).softmax(-1)
    with edit(model, freeze={"0.attn": pattern}):
        found = gradients(model, model(x))
    layer = model.attention(0)
    v = layer.qkv(x).chunk(3, -1)[2].unflatten(-1, (H, -1)).transpose(1, 2)
    first = x + layer.out((pattern @ v).transpose(1, 2).flatten(2))
    expected = gradients(model, first + model.attention(1)(first))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, "gradient")
