"""Hand-written backward passes, compared with central differences in float64 and with torch's autograd."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import CASES, make_case
from hypothesis import given
from hypothesis import strategies as st
from strategies import LENGTHS, Call, as_tensor, calls
from tolerances import assert_close

from regard.layer_checks import Projections
from regard.masks import Mask
from regard.reference import (
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)

STEP = 1e-6  # the error of a central difference is near STEP² + 1e-16 / STEP


def central_difference(loss: Callable[[], float], x: np.ndarray) -> np.ndarray:
    """d loss / d x, by changing one element of x at a time, in place."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        kept = x[index]
        x[index] = kept + STEP
        above = loss()
        x[index] = kept - STEP
        gradient[index] = (above - loss()) / (2 * STEP)
        x[index] = kept
    return gradient


def backward(call: Call, grad: np.ndarray) -> Any:
    return scaled_dot_product_attention_backward(grad, call.q, call.k, call.v, **call.options)


def upstream(call: Call, seed: int = 1) -> np.ndarray:
    """A random gradient of the output, without any symmetry."""
    shape = (*call.sizes.lead, call.sizes.T, call.sizes.Ev)
    return np.random.default_rng(seed).standard_normal(shape).astype(call.q.dtype)


SMALL = [name for name in CASES if name not in ("63 keys", "127 keys", "five axes")]


def options_of_cases() -> list[Any]:
    """Every case as it is, and every second one with a softcap, the others with a scale."""
    plain = [pytest.param(name, {}, id=f"{name}-plain") for name in SMALL]
    softcap = [pytest.param(name, {"softcap": 1.5}, id=f"{name}-softcap") for name in SMALL[::2]]
    return plain + softcap + [pytest.param(name, {"scale": -0.7}, id=f"{name}-scale") for name in SMALL[1::2]]


@pytest.mark.parametrize(("name", "options"), options_of_cases())
def test_named_cases_against_central_differences(name: str, options: dict[str, float]) -> None:
    call = make_case(name)
    grad = upstream(call)
    arguments = call.options | options

    def loss() -> float:
        output, _ = scaled_dot_product_attention(call.q, call.k, call.v, **arguments)
        return float((output * grad).sum())

    found = scaled_dot_product_attention_backward(grad, call.q, call.k, call.v, **arguments)
    for x, gradient in zip((call.q, call.k, call.v), found[:3], strict=True):
        expected = central_difference(loss, x)
        assert_close(gradient, expected, "finite difference")


@pytest.mark.parametrize("shape", [(3, 5), (1, 5), (3, 1), (2, 4, 3, 5), (2, 1, 3, 5), (1, 4, 1, 1), (1, 1, 1, 5)])
@pytest.mark.parametrize("softcap", [None, 1.5])
def test_the_bias_against_central_differences(shape: tuple[int, ...], softcap: float | None) -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((2, 4, 3, 6)), rng.standard_normal((2, 2, 5, 6)), rng.standard_normal((2, 2, 5, 2))
    bias, grad = rng.standard_normal(shape), rng.standard_normal((2, 4, 3, 2))
    mask = Mask.causal() & Mask.padding(np.array([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0]]))

    def loss() -> float:
        output, _ = scaled_dot_product_attention(q, k, v, mask, bias, softcap=softcap)
        return float((output * grad).sum())

    found = scaled_dot_product_attention_backward(grad, q, k, v, mask, bias, softcap=softcap)
    assert found.bias is not None
    assert found.bias.shape == shape
    assert_close(found.bias, central_difference(loss, bias), "finite difference")
    assert_close(found.q, central_difference(loss, q), "finite difference")


def torch_attention(call: Call, q: Any, k: Any, v: Any, bias: Any) -> Any:
    """The same with torch operations, for autograd; without fully masked rows."""
    sizes = call.sizes
    if sizes.G != sizes.H:
        k, v = (x.repeat_interleave(sizes.H // sizes.G, -3) for x in (k, v))
    scale = sizes.E**-0.5 if call.scale is None else call.scale
    scores = scale * q @ k.transpose(-1, -2)
    scores = scores if call.softcap is None else call.softcap * torch.tanh(scores / call.softcap)
    scores = scores if bias is None else scores + bias
    allowed = torch.from_numpy(call.allowed.copy())
    unmasked = allowed.any(-1, keepdim=True)
    weights = scores.masked_fill(~allowed & unmasked, -torch.inf).softmax(-1) if sizes.S else scores
    return (weights * unmasked) @ v


@given(calls(dtypes=("float64",)), st.integers(0, 99))
def test_any_call_against_autograd(call: Call, seed: int) -> None:
    grad = upstream(call, seed)
    inputs = [None if x is None else as_tensor(x).clone().requires_grad_() for x in (call.q, call.k, call.v, call.bias)]
    output = torch_attention(call, *inputs)
    found_output, _ = scaled_dot_product_attention(call.q, call.k, call.v, **call.options)
    assert_close(found_output, output, "output")
    output.backward(torch.from_numpy(grad))
    for gradient, x in zip(backward(call, grad), inputs, strict=True):
        assert (gradient is None) == (x is None)
        if x is not None:
            assert_close(gradient, x.grad, "gradient")


@given(calls(dtypes=("float16", "float32")), st.integers(0, 99))
def test_lower_precision_against_float64(call: Call, seed: int) -> None:
    grad = upstream(call, seed)
    exact = backward(call.as_dtype("float64"), grad.astype("float64"))
    for gradient, x, expected in zip(backward(call, grad), (call.q, call.k, call.v, call.bias), exact, strict=True):
        if x is not None:
            assert gradient.dtype == x.dtype
            assert_close(gradient, expected, "gradient")


@given(calls(dtypes=("float64",), lengths=tuple(n for n in LENGTHS if n)))
def test_masked_keys_have_no_gradient(call: Call) -> None:
    """Causality by the Jacobian: a query's output depends on its visible keys only."""
    if call.allowed.size == 0:
        return
    grad = np.zeros((*call.sizes.lead, call.sizes.T, call.sizes.Ev))
    index = (*(0 for _ in call.sizes.lead), call.sizes.T // 2)
    grad[index] = 1
    found = backward(call, grad)
    at = (*index[:-2], 0) if call.sizes.has_heads else index[:-1]
    hidden = ~call.allowed[index]
    assert not found.k[at][hidden].any()
    assert not found.v[at][hidden].any()
    elsewhere = np.ones(grad.shape[:-1], bool)
    elsewhere[index] = False
    assert not found.q[elsewhere].any()


def test_a_query_that_sees_nan_has_no_gradient() -> None:
    call = make_case("causal")
    call.k[0, 0, 3] = np.nan
    call.v[1, 2, 5] = np.inf
    for gradient in backward(call, upstream(call))[:3]:
        assert np.isfinite(gradient).all()


# --- many heads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("biases", [True, False], ids=["biases", "no biases"])
@pytest.mark.parametrize(("H", "G"), [(1, 1), (2, 2), (4, 2), (4, 1)])
@pytest.mark.parametrize(
    "mask",
    [None, Mask.causal(), Mask.padding(np.array([[1, 0, 0, 1], [0, 0, 0, 0]]))],
    ids=["no mask", "causal", "a sample of padding"],
)
def test_multi_head_attention_against_central_differences(mask: Mask | None, H: int, G: int, biases: bool) -> None:
    B, T, S, D, E, Ev = 2, 3, 4, 3, 2, 1
    rng = np.random.default_rng(H * 7 + G)
    q, k, v = rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D)), rng.standard_normal((B, S, D))
    grad = rng.standard_normal((B, T, D))
    shapes = ((D, H * E), (D, G * E), (D, G * Ev), (H * Ev, D))
    p = Projections(
        *(rng.standard_normal(shape) for shape in shapes),
        *(rng.standard_normal(shape[1]) if biases else None for shape in shapes),
    )

    def loss() -> float:
        output, _ = multi_head_attention(q, k, v, p, H, G, mask)
        return float((output * grad).sum())

    found = multi_head_attention_backward(grad, q, k, v, p, H, G, mask)
    pairs = [(found.q, q), (found.k, k), (found.v, v), *zip(found.projections, p, strict=True)]
    for gradient, x in pairs:
        assert (gradient is None) == (x is None)
        if x is not None:
            assert_close(gradient, central_difference(loss, x), "finite difference")


def test_multi_head_attention_with_a_bias_per_head() -> None:
    rng = np.random.default_rng(3)
    x, grad, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4)), rng.standard_normal((1, 2, 3, 3))
    p = Projections(*(rng.standard_normal((4, 4)) for _ in range(4)))

    def loss() -> float:
        output, _ = multi_head_attention(x, x, x, p, 2, bias=bias)
        return float((output * grad).sum())

    found = multi_head_attention_backward(grad, x, x, x, p, 2, bias=bias)
    assert_close(found.q + found.k + found.v, central_difference(loss, x), "finite difference")
