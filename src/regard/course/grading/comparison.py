"""What was expected against what came: type, shape, kind of number, every value to a tolerance, then gradients.

Answers with the first thing that is different, as plain data. It knows neither exercises nor sentences.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.course.exercise import Tolerance
from regard.course.grading.answers import Answer
from regard.course.grading.serialisation import ARRAY_OF, Other

Fault = Literal["wrong-type", "wrong-count", "wrong-shape", "wrong-dtype", "not-finite", "wrong-value"]
Path = tuple[int | str, ...]

SINGLE = Tolerance(rtol=1e-5, atol=1e-6)
"""What float32 can hold after some arithmetic: an answer calculated in it is right as well."""


@dataclass(frozen=True)
class Difference:
    """The first place where two results differ."""

    fault: Fault
    path: Path
    """Which part of a tuple, list or dict; a gradient is under "gradient" and its name."""
    expected: Any
    got: Any
    """That part, in both."""
    index: tuple[int, ...] | None = None
    """Where in an array the first number differs."""
    wrong: int = 0
    """How many of its numbers differ."""

    @property
    def numbers(self) -> tuple[Any, Any]:
        """The two numbers at that place."""
        return _at(self.expected, self.index), _at(self.got, self.index)


def _at(value: Any, index: tuple[int, ...] | None) -> Any:
    return np.asarray(value)[index].item() if isinstance(value, np.ndarray | np.generic) else value


def difference(expected: Any, got: Any, tolerance: Tolerance, path: Path = ()) -> Difference | None:
    """The first difference, or None where there is none. A list is as good as a tuple, float32 as float64.

    >>> difference((1.0, 2.0), [1.0, 2.5], Tolerance()).path
    (1,)
    """
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping):
            return Difference("wrong-type", path, expected, got)
        if set(got) != set(expected):
            return Difference("wrong-count", path, expected, got)
        return _first(((key, expected[key], got[key]) for key in expected), tolerance, path)
    if isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple):
            return Difference("wrong-type", path, expected, got)
        if len(got) != len(expected):
            return Difference("wrong-count", path, expected, got)
        return _first(zip(range(len(got)), expected, got, strict=True), tolerance, path)
    if is_number(expected):
        return _of_numbers(expected, got, tolerance, path)
    if type(got) is not type(expected):
        return Difference("wrong-type", path, expected, got)
    same = np.array_equal(got, expected)  # complex numbers, which no exercise asks for, come as arrays too
    return None if same else Difference("wrong-value", path, expected, got)


def equal(left: Any, right: Any, tolerance: Tolerance) -> bool:
    """Whether there is no difference."""
    return difference(left, right, tolerance) is None


def _first(parts: Iterable[tuple[int | str, Any, Any]], tolerance: Tolerance, path: Path) -> Difference | None:
    found = (difference(expected, got, tolerance, (*path, key)) for key, expected, got in parts)
    return next((one for one in found if one is not None), None)


def _of_numbers(expected: Any, got: Any, tolerance: Tolerance, path: Path) -> Difference | None:
    if isinstance(got, np.ndarray | np.generic) and not is_number(got):
        return Difference("wrong-dtype", path, expected, got)  # complex numbers
    if isinstance(got, Other) and got.type.startswith(ARRAY_OF):
        return Difference("wrong-dtype", path, expected, got)  # an array, but of texts or objects
    if not is_number(got) or (np.ndim(expected) > 0 and not isinstance(got, np.ndarray)):
        return Difference("wrong-type", path, expected, got)
    right, given = as_numbers(expected), as_numbers(got)
    if given.shape != right.shape:
        return Difference("wrong-shape", path, expected, got)
    if not _same_kind(right, given):
        return Difference("wrong-dtype", path, expected, got)
    wrong = ~close(right, given, tolerance)
    if not wrong.any():
        return None
    broken = wrong & (np.isfinite(right) & ~np.isfinite(given) if np.isfinite(right).all() else np.isnan(given))
    index = tuple(int(place) for place in np.argwhere(broken if broken.any() else wrong)[0])
    fault: Fault = "not-finite" if broken.any() else "wrong-value"
    return Difference(fault, path, expected, got, index, int(wrong.sum()))


def as_numbers(value: Any) -> np.ndarray:
    """A number or array as an array. A whole number of more than 64 bits, which NumPy would keep as an object, is the
    nearest one of 64 bits: no exercise asks for such a number, so it stays a wrong one.

    >>> as_numbers(2**64).dtype, as_numbers(-(10**400)).item() == -(2**63)
    (dtype('uint64'), True)
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = 2**64 - 1 if value > 0 else -(2**63)
    return np.asarray(value)


def is_number(value: Any) -> bool:
    """A number of Python's or NumPy's, or an array of them; truth values included."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biuf"
    return isinstance(value, bool | int | float)


def _same_kind(right: np.ndarray, given: np.ndarray) -> bool:
    """Truth values only for truth values; outside of arrays, 1 may stand for 1.0."""
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float"}
    expected, got = kinds[right.dtype.kind], kinds[given.dtype.kind]
    return expected == got or (right.ndim == 0 and (expected, got) == ("float", "int"))


def close(expected: np.ndarray, got: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """Place by place: near enough, the same infinity, or NaN where NaN was expected."""
    right, given = expected.astype(np.float64), got.astype(np.float64)
    single = np.float32 in (expected.dtype, got.dtype)
    rtol = max(tolerance.rtol, SINGLE.rtol) if single else tolerance.rtol
    atol = max(tolerance.atol, SINGLE.atol) if single else tolerance.atol
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(given - right) <= atol + rtol * np.abs(right)
    same = (given == right) | (np.isnan(given) & np.isnan(right))
    return np.where(np.isfinite(right), near & np.isfinite(given), same)


def settled(expected: Any, got: Any) -> tuple[Any, Any]:
    """Both sides where it is left open whether weights come beside the output: only what was given is compared.

    `out`, `(out, None)` and `(out, weights)` are all right.
    """
    if not isinstance(expected, list | tuple) or len(expected) != 2:
        return expected, got
    if isinstance(got, list | tuple) and len(got) == 2 and got[1] is None:
        return expected[0], got[0]
    return (expected[0], got) if isinstance(got, np.ndarray) else (expected, got)


def between(expected: Answer, got: Answer, tolerance: Tolerance, weights_too: bool = False) -> Difference | None:
    """The first difference of two answers that came back; gradients after values, under the path "gradient"."""
    pair = settled(expected.value, got.value) if weights_too else (expected.value, got.value)
    found = difference(*pair, tolerance)
    if found or not expected.gradients or np.isnan(pair[0][0] if isinstance(pair[0], tuple) else pair[0]).any():
        return found  # what flows back from NaN depends on how things are written, and tells nothing
    flowed = got.gradients or {}
    parts = ((name, right, flowed.get(name)) for name, right in expected.gradients.items())
    # Where nothing flows back, the gradient is zero, whether or not somebody wrote the zeros down.
    written = ((name, *_zeros_for_none(right, given)) for name, right, given in parts)
    return _first(written, tolerance, ("gradient",))


def _zeros_for_none(right: Any, given: Any) -> tuple[Any, Any]:
    if right is None:
        return (None, None) if given is None else (np.zeros_like(given), given)
    return right, np.zeros_like(right) if given is None else given


# --- a call -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """One call: what was expected, what came, and how they differ."""

    target: str
    expected: Answer
    got: Answer
    difference: Difference | None = None

    @property
    def same(self) -> bool:
        """The expected value, or an error where there should be one."""
        if self.expected.raised:
            return self.got.raised == self.expected.raised or {self.got.raised, self.expected.raised} == REFUSALS
        return not self.got.raised and not self.got.fault and self.difference is None

    @property
    def spoilt(self) -> tuple[str, ...]:
        """Arguments that the learner changed and the solution leaves alone."""
        return tuple(name for name in self.got.mutated if name not in self.expected.mutated)

    @property
    def right(self) -> bool:
        """The same, and no argument changed."""
        return self.same and not self.spoilt


REFUSALS = {"AssertionError", "ValueError"}
"""`assert` and `raise ValueError` both say that an argument is bad."""


def compared(target: str, expected: Answer, got: Answer, tolerance: Tolerance, weights_too: bool = False) -> Compared:
    """The two answers to one call, side by side."""
    if expected.raised or got.raised or got.fault:
        return Compared(target, expected, got)
    return Compared(target, expected, got, between(expected, got, tolerance, weights_too))
