"""FeedForward equals the reference, plain and gated, and refuses unknown activations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from narrowing import three
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard import reference
from regard.arrays import to_numpy
from regard.config import GATES
from regard.errors import ArgumentError
from regard.functional import rms_norm
from regard.layers import FeedForward, LayerNorm, OutputLayer, RMSNorm, TokenEmbedding

X = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 5, 6)))


def matrix(x: Tensor) -> np.ndarray:
    return to_numpy(x.detach()).T


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_plain(activation: Any, bias: bool) -> None:
    layer = FeedForward(6, 11, activation=activation, bias=bias).double()
    biases = {"b_1": to_numpy(layer.up.bias.detach()), "b_2": to_numpy(layer.down.bias.detach())} if bias else {}
    expected = reference.feed_forward(
        to_numpy(X), matrix(layer.up.weight), matrix(layer.down.weight), activation=activation, **biases
    )
    assert_close(layer(X).detach(), expected)


@pytest.mark.parametrize("activation", GATES)
def test_gated(activation: Any) -> None:
    layer = FeedForward(6, 11, activation=activation, bias=False).double()
    assert layer.gate is not None
    matrices = three(matrix(part.weight) for part in (layer.gate, layer.up, layer.down))
    expected = reference.gated_feed_forward(to_numpy(X), *matrices, activation=GATES[activation])
    assert_close(layer(X).detach(), expected)


def test_d_ff_defaults_to_four_times_d_model() -> None:
    assert FeedForward(6).up.out_features == 24
    assert FeedForward(6, 7).up.out_features == 7


def test_dropout_is_applied_to_the_hidden_layer_in_training() -> None:
    layer = FeedForward(6, 11, dropout=0.999).double()
    torch.manual_seed(0)
    assert_close(layer(X)[0, 0].detach(), layer.down.bias.detach())  # only the last bias is left
    assert not torch.allclose(layer.eval()(X)[0, 0], layer.down.bias)


def test_an_unknown_activation_is_refused_with_the_choices() -> None:
    with pytest.raises(ArgumentError, match=r"swish'?.*relu, gelu, gelu_tanh, silu, swiglu, geglu, geglu_tanh"):
        FeedForward(6, activation="swish")  # type: ignore[arg-type]


WIDE = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 5)) * 4 + 2)


def drawn(norm: nn.Module) -> nn.Module:
    for i, weight in enumerate(norm.parameters()):
        weight.data = torch.from_numpy(np.random.default_rng(i).standard_normal(weight.shape))
    return norm


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm(eps: float, bias: bool) -> None:
    norm = drawn(LayerNorm(5, eps, bias))
    assert len(list(norm.parameters())) == 1 + bias
    parts = {name: to_numpy(part.detach()) for name, part in norm.named_parameters()}
    assert_close(norm(WIDE).detach(), reference.layer_norm(to_numpy(WIDE), parts["weight"], parts.get("bias"), eps=eps))


@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_norm(eps: float) -> None:
    norm = drawn(RMSNorm(5, eps))
    (weight,) = norm.parameters()
    assert_close(norm(WIDE).detach(), reference.rms_norm(to_numpy(WIDE), to_numpy(weight.detach()), eps))


def test_rms_norm_times_one_plus_weight() -> None:
    norm = drawn(RMSNorm(5, plus_one=True))
    (weight,) = norm.parameters()
    expected = reference.rms_norm(to_numpy(WIDE), 1 + to_numpy(weight.detach()))
    assert_close(norm(WIDE).detach(), expected)
    assert_close(norm(WIDE).detach(), reference.rms_norm(to_numpy(WIDE), to_numpy(weight.detach()), plus_one=True))


def test_one_plus_weight_is_rounded_once_as_gemma_does() -> None:
    norm = drawn(RMSNorm(5, plus_one=True)).bfloat16()
    x, (weight,) = WIDE.bfloat16(), norm.parameters()
    wide = rms_norm(x.float(), 1 + weight.float()).detach()
    assert_same_bits(norm(x).detach(), wide.bfloat16())
    assert not norm(x).equal((rms_norm(x) * (1 + weight)).detach()), "the two orders must differ here"


def test_initial_weights_do_not_change_the_norm() -> None:
    for norm in (LayerNorm(5), RMSNorm(5), RMSNorm(5, plus_one=True)):
        y = norm(WIDE.float()).double()
        assert_close((y**2).mean(-1), torch.ones(3), "output", "float16")


def test_half_precision_with_norms_in_float32() -> None:
    """The output has the dtype of the input and is rounded only once."""
    x = WIDE.bfloat16()
    for norm in (LayerNorm(5), RMSNorm(5)):
        assert norm(x).dtype == torch.bfloat16
        assert_close(norm(x).detach(), norm(x.float()).detach())


W, D = 7, 4
IDS = torch.tensor([[1, 6, 1], [0, 2, 3]])


def vectors(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


# --- TokenEmbedding --------------------------------------------------------------------------------------------------


def test_each_id_selects_its_row() -> None:
    embedding = TokenEmbedding(W, D)
    assert_same_bits(embedding(IDS).detach(), embedding.weight[IDS].detach())


def test_scaled_by_the_root_of_the_width() -> None:
    plain, scaled = TokenEmbedding(W, D), TokenEmbedding(W, D, scaled=True)
    scaled.weight = plain.weight
    assert_same_bits(scaled(IDS).detach(), (2 * plain(IDS)).detach())


def test_a_rounded_scale_is_rounded_to_the_dtype_of_the_weights() -> None:
    """√3072 is 55.43, and 55.5 in bfloat16, as Gemma's models were trained."""
    embedding = TokenEmbedding(1, 3072, scaled=True, rounded_scale=True).bfloat16()
    nn.init.ones_(embedding.weight)
    assert embedding(torch.tensor([0])).unique().tolist() == [55.5]
    nn.init.constant_(embedding.weight, 3.0)
    once = TokenEmbedding(1, 3072, scaled=True).bfloat16()
    once.weight = embedding.weight
    assert (embedding(torch.tensor([0]))[0, 0].item(), once(torch.tensor([0]))[0, 0].item()) == (166.0, 166.0)
    nn.init.constant_(embedding.weight, 1.1015625)
    assert embedding(torch.tensor([0]))[0, 0] != once(torch.tensor([0]))[0, 0]


# --- OutputLayer -------------------------------------------------------------------------------------------------


def test_a_tied_layer_uses_the_given_rows() -> None:
    layer, rows, x = OutputLayer(W, D), vectors(W, D), vectors(2, 3, D)
    assert not list(layer.parameters())
    assert_close(layer(x, rows), x @ rows.T)


def test_an_untied_layer_uses_its_own_weight() -> None:
    layer, x = OutputLayer(W, D, tied=False, bias=True).double(), vectors(2, 3, D)
    assert layer.weight is not None
    assert layer.bias is not None
    nn.init.normal_(layer.bias)
    found = layer(x, torch.full((W, D), float("nan")))
    assert_close(found.detach(), (x @ layer.weight.T + layer.bias).detach())


def test_tied_rows_get_gradients_from_input_and_output() -> None:
    embedding, layer = TokenEmbedding(W, D), OutputLayer(W, D)
    layer(embedding(IDS), embedding.weight)[..., 5].sum().backward()
    assert embedding.weight.grad is not None
    used = embedding.weight.grad.any(-1).tolist()
    assert used == [True, True, True, True, False, True, True]  # 4 is neither input nor target, 5 only a target


def test_a_scaled_layer_divides_by_the_root_of_the_width() -> None:
    rows, x = vectors(W, D), vectors(2, 3, D)
    assert_close(OutputLayer(W, D, scaled=True)(x, rows), x @ rows.T / math.sqrt(D))


def test_a_softcap_bounds_the_logits() -> None:
    rows, x = vectors(W, D), 10 * vectors(2, 3, D)
    found = OutputLayer(W, D, softcap=3.0)(x, rows)
    assert_close(found, 3 * torch.tanh(x @ rows.T / 3))
    assert found.abs().max() <= 3 < (x @ rows.T).abs().max()


def test_the_transform_of_berts_masked_language_head() -> None:
    norm = LayerNorm(D)
    layer = OutputLayer(W, D, bias=True, transform=(torch.tanh, norm)).double()
    rows, x = vectors(W, D), vectors(2, 3, D)
    assert layer.transform is not None
    assert layer.bias is not None
    nn.init.normal_(layer.bias)
    expected = norm(torch.tanh(layer.transform(x))) @ rows.T + layer.bias
    assert_close(layer(x, rows).detach(), expected.detach())
