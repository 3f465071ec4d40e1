"""The hand-written backward passes of `reference.recurrent`, compared with central differences and with autograd."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tolerances import assert_close

from regard import functional, reference

MASK = np.array([[False, False, False], [True, False, True], [True, True, True], [True, False, False]])


class Case(NamedTuple):
    """A function with one output, its backward pass, its torch version, and the shapes to test."""

    forward: Callable[..., Any]
    backward: Callable[..., Sequence[np.ndarray | None]]
    torch_version: Callable[..., torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]


def zero_c(grad_h: np.ndarray, *arrays: np.ndarray) -> Sequence[np.ndarray | None]:
    return reference.lstm_cell_backward(grad_h, np.zeros_like(grad_h), *arrays)


def c_only(grad_c: np.ndarray, *arrays: np.ndarray) -> Sequence[np.ndarray | None]:
    no_output = np.zeros((*arrays[0].shape[:-1], grad_c.shape[-1]))
    return reference.lstm_backward(no_output, *arrays, grad_c=grad_c)


ELMAN, LSTM = ((2, 3), (3, 3), (3,), (3,)), ((2, 12), (3, 12), (12,), (12,))
ADDITIVE = ((2, 4, 3), (2, 3, 5), (2, 3, 2), (3, 6), (5, 6), (6,))
GENERAL = ((2, 4, 3), (2, 3, 5), (2, 3, 2), (3, 5))
CASES = {
    "elman_cell": Case(
        reference.elman_cell, reference.elman_cell_backward, functional.elman_cell, ((4, 2), (4, 3), *ELMAN)
    ),
    "elman": Case(reference.elman, reference.elman_backward, functional.elman, ((2, 5, 2), (2, 3), *ELMAN)),
    "elman of one text": Case(reference.elman, reference.elman_backward, functional.elman, ((5, 2), (3,), *ELMAN)),
    "elman without biases": Case(
        reference.elman, reference.elman_backward, functional.elman, ((2, 5, 2), (2, 3), *ELMAN[:2])
    ),
    "lstm_cell": Case(
        lambda *arrays: reference.lstm_cell(*arrays).h,
        zero_c,
        lambda *tensors: functional.lstm_cell(*tensors).h,
        ((4, 2), (4, 3), (4, 3), *LSTM),
    ),
    "lstm": Case(
        lambda *arrays: reference.lstm(*arrays)[0],
        reference.lstm_backward,
        lambda *tensors: functional.lstm(*tensors)[0],
        ((2, 5, 2), (2, 3), (2, 3), *LSTM),
    ),
    "lstm without biases": Case(
        lambda *arrays: reference.lstm(*arrays)[0],
        reference.lstm_backward,
        lambda *tensors: functional.lstm(*tensors)[0],
        ((2, 5, 2), (2, 3), (2, 3), *LSTM[:2]),
    ),
    "the last c of an lstm": Case(
        lambda *arrays: reference.lstm(*arrays)[1].c,
        c_only,
        lambda *tensors: functional.lstm(*tensors)[1].c,
        ((2, 5, 2), (2, 3), (2, 3), *LSTM),
    ),
    "additive": Case(
        lambda *arrays: reference.additive_attention(*arrays)[0],
        reference.additive_attention_backward,
        lambda *tensors: functional.additive_attention(*tensors)[0],
        ADDITIVE,
    ),
    "additive with a mask": Case(
        lambda *arrays: reference.additive_attention(*[*arrays, MASK])[0],
        lambda grad, *arrays: reference.additive_attention_backward(grad, *[*arrays, MASK]),
        lambda *tensors: functional.additive_attention(*[*tensors, torch.tensor(MASK)])[0],
        ADDITIVE,
    ),
    "dot": Case(
        lambda *arrays: reference.multiplicative_attention(*arrays)[0],
        reference.multiplicative_attention_backward,
        lambda *tensors: functional.multiplicative_attention(*tensors)[0],
        ((2, 4, 3), (2, 3, 3), (2, 3, 2)),
    ),
    "general with a mask": Case(
        lambda *arrays: reference.multiplicative_attention(*[*arrays, MASK])[0],
        lambda grad, *arrays: reference.multiplicative_attention_backward(grad, *[*arrays, MASK]),
        lambda *tensors: functional.multiplicative_attention(*[*tensors, torch.tensor(MASK)])[0],
        GENERAL,
    ),
}


def arrays_of(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in case.shapes]


def gradients_of(case: Case, arrays: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """A random gradient of the output, and the gradients of all inputs by hand."""
    grad_output = np.random.default_rng(1).standard_normal(case.forward(*arrays).shape)
    found = [each for each in case.backward(grad_output, *arrays) if each is not None]
    assert len(found) == len(arrays)
    return grad_output, found


@pytest.mark.parametrize("name", CASES)
def test_backward_equals_central_differences(name: str) -> None:
    case = CASES[name]
    arrays = arrays_of(case)
    grad_output, gradients = gradients_of(case, arrays)
    step = 1e-6
    for which, gradient in enumerate(gradients):
        expected = np.zeros_like(arrays[which])
        for index in np.ndindex(expected.shape):
            sides = []
            for sign in (1, -1):
                moved = [each.copy() for each in arrays]
                moved[which][index] += sign * step
                sides.append((case.forward(*moved) * grad_output).sum())
            expected[index] = (sides[0] - sides[1]) / (2 * step)
        assert_close(gradient, expected, "finite difference")


@pytest.mark.parametrize("name", CASES)
def test_backward_equals_autograd(name: str) -> None:
    case = CASES[name]
    arrays = arrays_of(case)
    grad_output, gradients = gradients_of(case, arrays)
    tensors = [torch.tensor(each, requires_grad=True) for each in arrays]
    case.torch_version(*tensors).backward(torch.tensor(grad_output))
    for tensor, gradient in zip(tensors, gradients, strict=True):
        assert tensor.grad is not None
        assert_close(tensor.grad, gradient, "gradient")


def test_backward_without_steps_or_states() -> None:
    x, _h, c, *weights = arrays_of(CASES["lstm"])
    empty = reference.lstm_backward(np.zeros((2, 0, 3)), x[:, :0], None, c, *weights)
    assert empty.x.shape == (2, 0, 2)
    assert empty.h is None
    assert empty.c is not None
    assert not empty.c.any()
    assert not empty.W_x.any()
