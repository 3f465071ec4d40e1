"""Hand-written backward passes, compared with central differences in float64 and autograd of the torch versions.

The torch versions are also tested with `gradcheck`. The seeds are fixed, so that no input is near 0, where ReLU has no
derivative and a difference is meaningless.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from narrowing import Three
from tolerances import assert_close
from torch.autograd import gradcheck

from regard.functional import position_wise as f_activations
from regard.functional import position_wise as f_feed_forward
from regard.functional import position_wise as f_norms
from regard.functional import positions as f_positions
from regard.layer_checks import Pairing
from regard.reference import norms as r_norms
from regard.reference import position_wise as r_activations
from regard.reference import position_wise as r_feed_forward
from regard.reference import positions as r_positions
from regard.reference.position_wise import ActivationName

ACTIVATIONS: tuple[ActivationName, ...] = ("relu", "gelu", "gelu_tanh", "silu")
POSITIONS = np.array([0, 1, 5, 1000])


class Case(NamedTuple):
    """A function of arrays, its backward pass, its torch version, and the shapes to test."""

    forward: Callable[..., np.ndarray]
    backward: Callable[..., Sequence[np.ndarray | None]]
    torch_version: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name in ACTIVATIONS:
        f, torch_version = r_activations.get_activation(name), f_activations.get_activation(name)
        found[name] = Case(f.forward, lambda g, x, f=f: (f.backward(g, x),), torch_version, ((3, 5),))
        option = {"activation": name}
        found[f"feed_forward {name}"] = Case(
            *with_option(r_feed_forward, f_feed_forward, "feed_forward", **option),
            ((2, 3, 4), (4, 5), (5, 3), (5,), (3,)),
        )
        found[f"gated_feed_forward {name}"] = Case(
            *with_option(r_feed_forward, f_feed_forward, "gated_feed_forward", **option),
            ((2, 3, 4), (4, 5), (4, 5), (5, 4)),
        )
    for shapes in (((2, 3, 7),), ((2, 3, 7), (7,)), ((1, 2), (2,)), ((5,), (5,))):
        given = "without weight" if len(shapes) == 1 else "with weight"
        found[f"rms_norm {shapes[0]} {given}"] = Case(*with_option(r_norms, f_norms, "rms_norm"), shapes)
        found[f"layer_norm {shapes[0]} {given}"] = Case(*with_option(r_norms, f_norms, "layer_norm"), shapes)
    found["rms_norm plus one"] = Case(*with_option(r_norms, f_norms, "rms_norm", plus_one=True), ((3, 7), (7,)))
    found["layer_norm with bias"] = Case(*with_option(r_norms, f_norms, "layer_norm", eps=0.1), ((3, 7), (7,), (7,)))
    found["feed_forward one row, no biases"] = Case(
        *with_option(r_feed_forward, f_feed_forward, "feed_forward"), ((4,), (4, 5), (5, 4))
    )
    pairing: Pairing
    for pairing in ("halves", "pairs"):
        # The backward pass of a rotation is the inverse rotation, as its docstring says.
        found[f"rotate {pairing}"] = Case(
            lambda x, p=pairing: r_positions.rotate(x, POSITIONS, pairing=p),
            lambda g, x, p=pairing: (r_positions.rotate(g, -POSITIONS, pairing=p),),
            lambda x, p=pairing: f_positions.rotate(x, torch.tensor(POSITIONS), pairing=p),
            ((2, 4, 6),),
        )
    return found


def with_option(package: Any, torch_version: Any, name: str, **options: Any) -> Three[Callable[..., Any]]:
    """The function of that name, its backward pass and its torch version, with these options."""
    forward, backward = getattr(package, name), getattr(package, f"{name}_backward")
    other = getattr(torch_version, name)
    return (
        lambda *arrays: forward(*arrays, **options),
        lambda grad, *arrays: backward(grad, *arrays, **options),
        lambda *tensors: other(*tensors, **options),
    )


CASES = cases()


def inputs(case: Case, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in case.shapes]


def central_difference(
    f: Callable[..., np.ndarray], arrays: list[np.ndarray], which: int, grad_output: np.ndarray
) -> np.ndarray:
    """Σ grad_output ∘ ∂f/∂x for each element x of one array, by central differences."""
    step, found = 1e-6, np.zeros_like(arrays[which])
    for index in np.ndindex(found.shape):
        sides = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[which][index] += sign * step
            sides.append((f(*moved) * grad_output).sum())
        found[index] = (sides[0] - sides[1]) / (2 * step)
    return found


@pytest.mark.parametrize("name", CASES)
def test_backward_equals_central_differences(name: str) -> None:
    case = CASES[name]
    arrays = inputs(case)
    grad_output = np.random.default_rng(1).standard_normal(case.forward(*arrays).shape)
    gradients = [g for g in case.backward(grad_output, *arrays) if g is not None]
    assert len(gradients) == len(arrays)
    for which, gradient in enumerate(gradients):
        expected = central_difference(case.forward, arrays, which, grad_output)
        assert_close(gradient, expected, "finite difference")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_backward_equals_autograd(name: str, dtype: str) -> None:
    case = CASES[name]
    arrays = inputs(case, dtype)
    grad_output = np.random.default_rng(1).standard_normal(case.forward(*arrays).shape).astype(dtype)
    # Expected values: autograd in float64, on the same rounded numbers.
    tensors = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    case.torch_version(*tensors).backward(torch.tensor(grad_output, dtype=torch.float64))
    gradients = [g for g in case.backward(grad_output, *arrays) if g is not None]
    for gradient, tensor in zip(gradients, tensors, strict=True):
        assert gradient.dtype == np.dtype(dtype)
        assert tensor.grad is not None
        assert_close(gradient, tensor.grad, "gradient")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_autograd_of_the_torch_versions_in_lower_precision(name: str, dtype: str) -> None:
    case = CASES[name]
    tensors = [torch.tensor(a).to(getattr(torch, dtype)).requires_grad_() for a in inputs(case)]
    output = case.torch_version(*tensors)
    grad_output = torch.tensor(np.random.default_rng(1).standard_normal(output.shape)).to(output.dtype)
    output.backward(grad_output)
    arrays = [t.detach().double().numpy() for t in tensors]
    expected = [g for g in case.backward(grad_output.double().numpy(), *arrays) if g is not None]
    for tensor, gradient in zip(tensors, expected, strict=True):
        assert tensor.grad is not None
        assert tensor.grad.dtype == tensor.dtype
        scale = max(1.0, float(np.abs(gradient).max()))  # products of several numbers: relative to the largest
        assert_close(tensor.grad.double() / scale, gradient / scale, "gradient", dtype)


@pytest.mark.parametrize("name", CASES)
def test_gradcheck_of_the_torch_versions(name: str) -> None:
    case = CASES[name]
    assert gradcheck(case.torch_version, [torch.tensor(a, requires_grad=True) for a in inputs(case)])


def test_gradcheck_of_tables() -> None:
    table = torch.tensor(np.random.default_rng(0).standard_normal((8, 2)), requires_grad=True)
    assert gradcheck(lambda t: f_positions.learned_positions(t, 3, start=4), [table])
    assert gradcheck(lambda t: f_positions.relative_bias(t, 5, 6, max_distance=9), [table])


def test_unused_rows_of_a_table_get_no_gradient() -> None:
    table = torch.ones(8, 2, requires_grad=True)
    f_positions.learned_positions(table, 3, start=4).sum().backward()
    assert table.grad is not None
    assert table.grad.any(-1).tolist() == [False] * 4 + [True] * 3 + [False]


def test_relu_below_zero_has_no_gradient() -> None:
    x, W = np.ones((2, 3)), np.ones((3, 3))
    grads = r_feed_forward.feed_forward_backward(np.ones((2, 3)), x, -W, W, b_1=np.zeros(3))
    assert not any(np.any(g) for g in (grads.x, grads.W_1, grads.W_2, grads.b_1))
