"""Compares expected and actual results: type, shape, dtype kind, every value within a tolerance, then gradients.

Returns the first difference as plain data. Independent of exercises and messages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.course.exercise import CallResult, Tolerance
from regard.course.grading.serialisation import ARRAY_OF, Other

Fault = Literal["wrong-type", "wrong-count", "wrong-shape", "wrong-dtype", "not-finite", "wrong-value"]
Path = tuple[int | str, ...]

SINGLE = Tolerance(rtol=1e-5, atol=1e-6)
"""The accuracy of float32 after some arithmetic: an answer computed in float32 is accepted too."""


@dataclass(frozen=True)
class ResultDifference:
    """The first place where two results differ."""

    fault: Fault
    path: Path
    """The path into a tuple, list or dict; for a gradient ("gradient", name)."""
    expected: Any
    got: Any
    """That part of both results."""
    index: tuple[int, ...] | None = None
    """Index of the first number that differs in an array."""
    wrong: int = 0
    """The number of elements that differ."""

    @property
    def numbers(self) -> tuple[Any, Any]:
        """The two numbers at `index`."""
        return _at(self.expected, self.index), _at(self.got, self.index)


def _at(value: Any, index: tuple[int, ...] | None) -> Any:
    return np.asarray(value)[index].item() if isinstance(value, np.ndarray | np.generic) else value


def difference(expected: Any, got: Any, tolerance: Tolerance, path: Path = ()) -> ResultDifference | None:
    """The first difference, or None. Lists count as tuples, float32 as float64.

    >>> difference((1.0, 2.0), [1.0, 2.5], Tolerance()).path
    (1,)
    """
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping):
            return ResultDifference("wrong-type", path, expected, got)
        if set(got) != set(expected):
            return ResultDifference("wrong-count", path, expected, got)
        return _first(((key, expected[key], got[key]) for key in expected), tolerance, path)
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple):
            return ResultDifference("wrong-type", path, expected, got)
        if len(got) != len(expected):
            return ResultDifference("wrong-count", path, expected, got)
        return _first(zip(range(len(got)), expected, got, strict=True), tolerance, path)
    if is_number(expected):
        return _of_numbers(expected, got, tolerance, path)
    if type(got) is not type(expected):
        return ResultDifference("wrong-type", path, expected, got)
    same = np.array_equal(got, expected)  # complex numbers, which no exercise uses, arrive as arrays too
    return None if same else ResultDifference("wrong-value", path, expected, got)


def equal(left: Any, right: Any, tolerance: Tolerance) -> bool:
    """Whether there is no difference."""
    return difference(left, right, tolerance) is None


def _first(parts: Iterable[tuple[int | str, Any, Any]], tolerance: Tolerance, path: Path) -> ResultDifference | None:
    found = (difference(expected, got, tolerance, (*path, key)) for key, expected, got in parts)
    return next((one for one in found if one is not None), None)


def _of_numbers(expected: Any, got: Any, tolerance: Tolerance, path: Path) -> ResultDifference | None:
    if isinstance(got, np.ndarray | np.generic) and not is_number(got):
        return ResultDifference("wrong-dtype", path, expected, got)  # complex numbers
    if isinstance(got, Other) and got.type.startswith(ARRAY_OF):
        return ResultDifference("wrong-dtype", path, expected, got)  # an array, but of texts or objects
    if not is_number(got) or (np.ndim(expected) > 0 and not isinstance(got, np.ndarray)):
        return ResultDifference("wrong-type", path, expected, got)
    right, given = as_numbers(expected), as_numbers(got)
    if given.shape != right.shape:
        return ResultDifference("wrong-shape", path, expected, got)
    if not _same_kind(right, given):
        return ResultDifference("wrong-dtype", path, expected, got)
    wrong = ~close(right, given, tolerance)
    if not wrong.any():
        return None
    broken = wrong & (np.isfinite(right) & ~np.isfinite(given) if np.isfinite(right).all() else np.isnan(given))
    index = tuple(int(place) for place in np.argwhere(broken if broken.any() else wrong)[0])
    fault: Fault = "not-finite" if broken.any() else "wrong-value"
    return ResultDifference(fault, path, expected, got, index, int(wrong.sum()))


def as_numbers(value: Any) -> np.ndarray:
    """A number or array as an array. An integer of more than 64 bits, which NumPy would store as an object, is clipped
    to 64 bits: no exercise expects such a number, so it remains wrong.

    >>> as_numbers(2**64).dtype, as_numbers(-(10**400)).item() == -(2**63)
    (dtype('uint64'), True)
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = 2**64 - 1 if value > 0 else -(2**63)
    return np.asarray(value)


def is_number(value: Any) -> bool:
    """Whether the value is a Python or NumPy number or an array of numbers; booleans included."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biuf"
    return isinstance(value, bool | int | float)


def _same_kind(right: np.ndarray, given: np.ndarray) -> bool:
    """Whether the dtype kinds match: booleans only match booleans; for scalars, 1 may stand for 1.0."""
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float"}
    expected, got = kinds[right.dtype.kind], kinds[given.dtype.kind]
    return expected == got or (right.ndim == 0 and (expected, got) == ("float", "int"))


def close(expected: np.ndarray, got: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """Elementwise: within the tolerance, the same infinity, or NaN where NaN is expected."""
    right, given = expected.astype(np.float64), got.astype(np.float64)
    single = np.float32 in (expected.dtype, got.dtype)
    rtol = max(tolerance.rtol, SINGLE.rtol) if single else tolerance.rtol
    atol = max(tolerance.atol, SINGLE.atol) if single else tolerance.atol
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(given - right) <= atol + rtol * np.abs(right)
    same = (given == right) | (np.isnan(given) & np.isnan(right))
    return np.where(np.isfinite(right), near & np.isfinite(given), same)


def comparable_parts(expected: Any, got: Any) -> tuple[Any, Any]:
    """The parts of both results to compare where returning the weights is optional.

    `out`, `(out, None)` and `(out, weights)` are all accepted.
    """
    if not isinstance(expected, list | tuple) or len(expected) != 2:
        return expected, got
    if isinstance(got, list | tuple) and len(got) == 2 and got[1] is None:
        return expected[0], got[0]
    return (expected, got) if isinstance(got, list | tuple) else (expected[0], got)


def answer_difference(
    expected: CallResult, got: CallResult, tolerance: Tolerance, weights_optional: bool = False
) -> ResultDifference | None:
    """The first difference of two answers without exceptions: values, then gradients, under the path "gradient"."""
    pair = comparable_parts(expected.value, got.value) if weights_optional else (expected.value, got.value)
    found = difference(*pair, tolerance)
    if found or not expected.gradients or np.isnan(pair[0][0] if isinstance(pair[0], tuple) else pair[0]).any():
        return found  # the gradient of NaN depends on how the code is written, so it is not compared
    flowed = got.gradients or {}
    parts = ((name, right, flowed.get(name)) for name, right in expected.gradients.items())
    # An unused leaf has gradient zero, whether it is given as None or as zeros.
    written = ((name, *_zeros_for_none(right, given)) for name, right, given in parts)
    return _first(written, tolerance, ("gradient",))


def _zeros_for_none(right: Any, given: Any) -> tuple[Any, Any]:
    if right is None:
        return (None, None) if given is None else (np.zeros_like(given), given)
    return right, np.zeros_like(right) if given is None else given


# --- a call -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallComparison:
    """One call: the expected answer, the actual answer, and their difference."""

    target: str
    expected: CallResult
    got: CallResult
    difference: ResultDifference | None = None

    @property
    def same(self) -> bool:
        """Whether the call returned the expected value, or raised where an error is expected."""
        if self.expected.raised:
            return self.got.raised == self.expected.raised or {self.got.raised, self.expected.raised} == REFUSALS
        return not self.got.raised and not self.got.fault and self.difference is None

    @property
    def changed_arguments(self) -> tuple[str, ...]:
        """Arguments that the learner's code changed and the solution does not."""
        return tuple(name for name in self.got.mutated if name not in self.expected.mutated)

    @property
    def right(self) -> bool:
        """Whether the answer is the same and no argument was changed."""
        return self.same and not self.changed_arguments


REFUSALS = {"AssertionError", "ValueError"}
"""`assert` and `raise ValueError` are both accepted for a bad argument."""


def compare(
    target: str, expected: CallResult, got: CallResult, tolerance: Tolerance, weights_optional: bool = False
) -> CallComparison:
    """Compare the two answers to one call."""
    if expected.raised or got.raised or got.fault:
        return CallComparison(target, expected, got)
    return CallComparison(target, expected, got, answer_difference(expected, got, tolerance, weights_optional))
