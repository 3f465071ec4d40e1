"""What NumPy and PyTorch raise where shapes, axes or dtypes do not fit is told in plain words, in both languages.

The messages are made here, by the libraries themselves: another version that words them otherwise is seen.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.course.catalogue import exercise
from regard.course.grading.exceptions import _MESSAGES, explanation
from regard.course.grading.judging import grade
from regard.course.grading.sandbox import in_process
from regard.words import catalogue, speaking

A, B = np.ones((2, 3)), np.ones((4, 5))
X, Y = torch.ones(2, 3), torch.ones(4, 5)
LEAF = torch.ones(3, requires_grad=True)


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
    "invert": [lambda: ~A, lambda: A & A, lambda: ~X, lambda: X | X],  # type: ignore[operator]
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
    "boolean-mask": [lambda: X.masked_fill(torch.ones(2, 3), 0.0)],
    "leaf-in-place": [lambda: LEAF.add_(1), lambda: LEAF.__setitem__(0, 1.0)],
    "gradient-in-place": [changed_on_the_way],
    "numpy-of-gradient": [lambda: LEAF.numpy()],
    "dtypes": [lambda: X @ torch.ones(3, 2).double(), lambda: X @ torch.ones(3, 2).long()],
    "truth": [lambda: bool(A == 1), lambda: bool(X == 1)],
    "unbound": [unbound],
}


@pytest.mark.parametrize("key", RAISED)
def test_what_is_raised_is_told_in_plain_words(key: str) -> None:
    for raising in RAISED[key]:
        with pytest.raises(Exception) as caught:
            raising()
        text = explanation(str(caught.value))
        start = catalogue()[f"raises-{key}"].en.partition("{")[0]
        assert text.startswith(start), caught.value
        with speaking("zh"):
            assert explanation(str(caught.value)) != text


def test_every_sentence_is_tried() -> None:
    assert set(RAISED) == {key for key, _ in _MESSAGES}
    assert {f"raises-{key}" for key in RAISED} == {key for key in catalogue() if key.startswith("raises-")}


def test_what_is_not_known_is_shown_as_it_came() -> None:
    assert explanation("something else") == ""


def test_a_verdict_uses_the_plain_words_with_the_line() -> None:
    tried = exercise("simple-attention")
    wrong = "def simple_attention(Q, K, V):\n    return Q @ K @ V\n"
    verdict = grade(tried, wrong, seed=1, run=in_process)
    assert str(verdict.diagnosis).startswith("line 2: in a matrix product the last axis of the first has size")
    with speaking("zh"):
        assert str(grade(tried, wrong, seed=1, run=in_process).diagnosis).startswith("第 2 行：矩阵相乘时")
