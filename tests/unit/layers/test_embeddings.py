"""TokenEmbedding and OutputLayer: lookup, scaling, tied and own weights."""

import math

import torch
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard.layers import LayerNorm, OutputLayer, TokenEmbedding

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
