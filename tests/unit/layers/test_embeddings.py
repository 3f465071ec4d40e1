"""Both ends of a model: looked up and scaled on the way in, compared with rows on the way out."""

import math

import torch
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard.layers import LayerNorm, OutputLayer, TokenEmbedding

W, D = 7, 4
IDS = torch.tensor([[1, 6, 1], [0, 2, 3]])


def vectors(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


# --- in --------------------------------------------------------------------------------------------------


def test_each_id_is_its_row() -> None:
    embedding = TokenEmbedding(W, D)
    assert_same_bits(embedding(IDS).detach(), embedding.weight[IDS].detach())


def test_scaled_by_the_root_of_the_width() -> None:
    plain, scaled = TokenEmbedding(W, D), TokenEmbedding(W, D, scaled=True)
    scaled.weight = plain.weight
    assert_same_bits(scaled(IDS).detach(), (2 * plain(IDS)).detach())


# --- out -------------------------------------------------------------------------------------------------


def test_tied_it_has_no_weight_and_compares_with_the_rows_it_is_given() -> None:
    layer, rows, x = OutputLayer(W, D), vectors(W, D), vectors(2, 3, D)
    assert not list(layer.parameters())
    assert_close(layer(x, rows), x @ rows.T)


def test_untied_it_compares_with_its_own() -> None:
    layer, x = OutputLayer(W, D, tied=False, bias=True).double(), vectors(2, 3, D)
    assert layer.weight is not None
    assert layer.bias is not None
    nn.init.normal_(layer.bias)
    found = layer(x, torch.full((W, D), float("nan")))
    assert_close(found.detach(), (x @ layer.weight.T + layer.bias).detach())


def test_tied_rows_learn_from_both_ends() -> None:
    embedding, layer = TokenEmbedding(W, D), OutputLayer(W, D)
    layer(embedding(IDS), embedding.weight)[..., 5].sum().backward()
    assert embedding.weight.grad is not None
    used = embedding.weight.grad.any(-1).tolist()
    assert used == [True, True, True, True, False, True, True]  # 4 is neither read nor asked for, 5 only asked for


def test_scaled_it_divides_by_the_root_of_the_width() -> None:
    rows, x = vectors(W, D), vectors(2, 3, D)
    assert_close(OutputLayer(W, D, scaled=True)(x, rows), x @ rows.T / math.sqrt(D))


def test_transformed_as_berts_masked_word_head() -> None:
    norm = LayerNorm(D)
    layer = OutputLayer(W, D, bias=True, transform=(torch.tanh, norm)).double()
    rows, x = vectors(W, D), vectors(2, 3, D)
    assert layer.transform is not None
    assert layer.bias is not None
    nn.init.normal_(layer.bias)
    expected = norm(torch.tanh(layer.transform(x))) @ rows.T + layer.bias
    assert_close(layer(x, rows).detach(), expected.detach())
