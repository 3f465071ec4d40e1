"""Explanations of common Python, NumPy and PyTorch errors, in both languages.

The messages are made here, by the libraries themselves: another version that words them otherwise is seen.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard.course.catalogue import exercise
from regard.course.grading.grader import grade
from regard.course.grading.result_texts import _MESSAGES, explanation
from regard.course.grading.sandbox import in_process
from regard.messages import catalogue, use_language

# Any: these calls are wrong on purpose and must raise at run time.
A: Any = np.ones((2, 3))
B: Any = np.ones((4, 5))
X: Any = torch.ones(2, 3)
Y: Any = torch.ones(4, 5)
HALF: Any = 6 / 2
WHOLE: Any = 4
ZEROS: Any = np.zeros
LEAF = torch.ones(3, requires_grad=True)


NOTHING: Any = None


class Hasty(torch.nn.Module):
    def __init__(self) -> None:
        self.W = torch.nn.Linear(2, 2)


def unbound() -> None:
    if A.ndim == 3:
        late = 1
    print(late)


def changed_on_the_way() -> None:
    powers = (LEAF * 2).exp()
    powers.add_(1)
    powers.sum().backward()


RAISED: dict[str, list[Callable[[], object]]] = {
    "shapes": [lambda: A + B, lambda: np.where(A > 0, B, 0)],
    "broadcast": [lambda: np.einsum("ij,jk", A, B), lambda: np.ones((2, 3, 4)) @ np.ones((5, 4, 2))],
    "assigned": [lambda: A.__setitem__(slice(None), B)],
    "joined": [lambda: np.concatenate([A, B]), lambda: torch.cat([X, Y])],
    "permuted": [lambda: A.transpose(0, 2, 1), lambda: X.permute(0, 2, 1)],
    "invert": [lambda: ~A, lambda: A & A, lambda: ~X, lambda: X | X],
    "sizes-differ": [lambda: X + Y, lambda: X.masked_fill(torch.ones(4, 4).bool(), 0.0), lambda: X.expand(3, 3)],
    "in-place-shape": [lambda: torch.ones(2, 1, 4).masked_fill_(torch.ones(4, 4).bool(), 0.0)],
    "product": [lambda: X @ Y, lambda: np.dot(A, B), lambda: torch.nn.Linear(3, 2)(torch.ones(2, 5))],
    "product-sizes": [lambda: A @ B, lambda: torch.ones(2, 2, 3) @ torch.ones(2, 4, 5)],
    "reshape": [lambda: A.reshape(4, 2), lambda: X.view(4, 2)],
    "view": [lambda: X.T.view(6)],
    "axis": [lambda: A.sum(axis=2), lambda: A.swapaxes(1, 3)],
    "axis-range": [lambda: X.sum(2), lambda: X.transpose(1, 2)],
    "index": [lambda: A[5], lambda: X[5]],
    "indices": [lambda: A[0, 0, 0], lambda: X[0, 0, 0]],
    "boolean-index": [lambda: A[A[:1] > 0], lambda: X[X[:1] > 0], lambda: np.putmask(A, A[:1] > 0, 0)],
    "boolean-minus": [lambda: -(A > 0), lambda: (A > 0) - (A > 0), lambda: -(X > 0), lambda: 1 - (X > 0)],
    "boolean-mask": [lambda: X.masked_fill(torch.ones(2, 3), 0.0)],
    "leaf-in-place": [lambda: LEAF.add_(1), lambda: LEAF.__setitem__(0, 1.0)],
    "gradient-in-place": [changed_on_the_way],
    "numpy-of-gradient": [lambda: LEAF.numpy()],
    "dtypes": [
        lambda: torch.nn.Linear(3, 2)(X.double()),
        lambda: X @ torch.ones(3, 2).double(),
        lambda: X @ torch.ones(3, 2).long(),
    ],
    "truth": [lambda: max(0, A), lambda: bool(A == 1), lambda: bool(X == 1)],
    "stacked": [lambda: np.stack([A, B]), lambda: torch.stack([X, Y])],
    "nothing": [lambda: A[:0].max(), lambda: X[:, :0].max(-1)],
    "one-number": [lambda: math.exp(A), lambda: math.sqrt(X), lambda: float(A)],
    "whole-powers": [lambda: 10000 ** -np.arange(3)],
    "infinity-as-whole": [
        lambda: np.zeros(2, int).__setitem__(0, -np.inf),
        lambda: torch.zeros(2).long().fill_(-math.inf),
        lambda: int(math.nan),
    ],
    "whole-wanted": [
        lambda: A.reshape(2, HALF),
        lambda: X.view(2, HALF),
        lambda: range(HALF),
        lambda: torch.triu(X, diagonal=HALF),
    ],
    "whole-index": [lambda: A[1 / 1], lambda: A[: 2 / 2], lambda: X[1 / 1]],
    "tensor-wanted": [lambda: torch.sqrt(WHOLE), lambda: torch.softmax(A, -1)],
    "none-used": [lambda: NOTHING**0.5, lambda: X / NOTHING, lambda: NOTHING.shape, lambda: len(NOTHING)],
    "operands": [lambda: [1] - WHOLE, lambda: A @ X],
    "undefined": [lambda: eval("scroes")],
    "one-shape": [lambda: ZEROS(2, 3)],
    "ragged": [lambda: np.array([[1, 2], [3]])],
    "whole-numbers": [lambda: torch.ones(2).long().softmax(-1), lambda: torch.ones(2).long().mean()],
    "called": [lambda: A(1), lambda: X(1)],
    "list-index": [lambda: [1][3]],
    "equal-parts": [lambda: np.split(A, 2, 1)],
    "in-a-list": [lambda: np.concatenate(A, A), lambda: torch.cat(X, X)],
    "by-zero": [lambda: 1 / int(A.ndim - 2), lambda: 1.0 // 0.0],
    "first-init": [Hasty],
    "array-method": [lambda: A.append(1), lambda: A.unsqueeze(0)],
    "tensor-method": [lambda: X.append(1), lambda: X.astype(float)],
    "unbound": [unbound],
}


@pytest.mark.parametrize("key", RAISED)
def test_exceptions_are_explained(key: str) -> None:
    for raising in RAISED[key]:
        with pytest.raises(Exception) as caught:
            raising()
        text = explanation(str(caught.value))
        start = catalogue()[f"raises-{key}"].en.partition("{")[0]
        assert text.startswith(start), caught.value
        with use_language("zh"):
            assert explanation(str(caught.value)) != text


def test_every_message_is_tested() -> None:
    assert set(RAISED) == {key for key, _ in _MESSAGES}
    assert {f"raises-{key}" for key in RAISED} == {key for key in catalogue() if key.startswith("raises-")}


def test_an_unknown_message_is_shown_unchanged() -> None:
    assert explanation("something else") == ""


def test_a_verdict_explains_the_error_with_its_line() -> None:
    tried = exercise("simple-attention")
    wrong = "def simple_attention(Q, K, V):\n    return Q @ K @ V\n"
    verdict = grade(tried, wrong, seed=1, run=in_process)
    assert str(verdict.diagnosis).startswith("line 2: in a matrix product the last axis of the first has size")
    with use_language("zh"):
        assert str(grade(tried, wrong, seed=1, run=in_process).diagnosis).startswith("第 2 行：矩阵相乘时")
