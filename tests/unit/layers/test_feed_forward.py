"""FeedForward equals the reference, plain and gated, and refuses unknown activations."""

from typing import Any

import numpy as np
import pytest
import torch
from narrowing import three
from tolerances import assert_close
from torch import Tensor

from regard import reference
from regard.arrays import to_numpy
from regard.config import GATES
from regard.errors import ArgumentError
from regard.layers import FeedForward

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
