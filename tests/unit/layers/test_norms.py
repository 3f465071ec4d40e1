"""LayerNorm and RMSNorm as modules equal the reference."""

import numpy as np
import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import nn

from regard import reference
from regard.arrays import to_numpy
from regard.functional import rms_norm
from regard.layers import LayerNorm, RMSNorm

X = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 5)) * 4 + 2)


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
    assert_close(norm(X).detach(), reference.layer_norm(to_numpy(X), parts["weight"], parts.get("bias"), eps=eps))


@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_norm(eps: float) -> None:
    norm = drawn(RMSNorm(5, eps))
    (weight,) = norm.parameters()
    assert_close(norm(X).detach(), reference.rms_norm(to_numpy(X), to_numpy(weight.detach()), eps))


def test_rms_norm_times_one_plus_weight() -> None:
    norm = drawn(RMSNorm(5, plus_one=True))
    (weight,) = norm.parameters()
    expected = reference.rms_norm(to_numpy(X), 1 + to_numpy(weight.detach()))
    assert_close(norm(X).detach(), expected)
    assert_close(norm(X).detach(), reference.rms_norm(to_numpy(X), to_numpy(weight.detach()), plus_one=True))


def test_one_plus_weight_is_rounded_once_as_gemma_does() -> None:
    norm = drawn(RMSNorm(5, plus_one=True)).bfloat16()
    x, (weight,) = X.bfloat16(), norm.parameters()
    wide = rms_norm(x.float(), 1 + weight.float()).detach()
    assert_same_bits(norm(x).detach(), wide.bfloat16())
    assert not norm(x).equal((rms_norm(x) * (1 + weight)).detach()), "the two orders must differ here"


def test_initial_weights_do_not_change_the_norm() -> None:
    for norm in (LayerNorm(5), RMSNorm(5), RMSNorm(5, plus_one=True)):
        y = norm(X.float()).double()
        assert_close((y**2).mean(-1), torch.ones(3), "output", "float16")


def test_half_precision_with_norms_in_float32() -> None:
    """The output has the dtype of the input and is rounded only once."""
    x = X.bfloat16()
    for norm in (LayerNorm(5), RMSNorm(5)):
        assert norm(x).dtype == torch.bfloat16
        assert_close(norm(x).detach(), norm(x.float()).detach())
