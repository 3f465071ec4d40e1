"""Constants of a notebook written as Python: numbers, texts, and lists, tuples, dicts and sets of them; NumPy's too.

Only exact types, told apart by `is`, and of those only what Python's and NumPy's own code says about them: a value of a
learner's own class, or that class's own class, could do anything in its methods.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

MOST = 10_000
"""Numbers and texts that a constant may hold."""
LONGEST = 100_000
"""Characters of one text or number."""

_KINDS = "biufcU"
"""Arrays of truth values, numbers and texts."""


def as_constant(value: Any) -> str | None:
    """An expression that gives the value back, `numpy` imported; None where there is none.

    >>> as_constant([1, -float("inf"), "a"]), as_constant(np.float32(0.5)), as_constant(object())
    ("[1, float('-inf'), 'a']", "numpy.dtype('float32').type(0.5)", None)
    """
    try:
        return _written(value, iter(range(MOST)), 0)
    except _UnfitError:
        return None


class _UnfitError(Exception):
    pass


_BRACKETS: tuple[tuple[type, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ",)"),
    (set, "{*(", ",)}"),
    (frozenset, "frozenset((", ",))"),
)


def _written(value: Any, left: Iterator[int], depth: int) -> str:
    kind = type(value)
    if next(left, None) is None or depth > 50:
        raise _UnfitError
    if value is None or value is Ellipsis or kind is bool:
        return repr(value)
    if kind is int and value.bit_length() <= 10_000:  # Python reads no number of more than 4,300 digits
        return repr(value)
    if (kind is str or kind is bytes) and len(value) <= LONGEST:
        return repr(value)
    if kind is float:
        return _float(value)
    if kind is complex:
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    for known, opening, closing in _BRACKETS:
        if kind is known:
            parts = [_written(part, left, depth + 1) for part in value]
            return f"{opening}{', '.join(parts)}{closing if parts else closing.removeprefix(',')}"
    if kind is dict:
        pairs = [(_written(key, left, depth + 1), _written(part, left, depth + 1)) for key, part in value.items()]
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    is_scalar = issubclass(kind, np.generic) and is_native(kind)
    from_numpy = kind is np.ndarray or is_scalar or issubclass(kind, np.dtype)
    return _of_numpy(value, left, depth) if from_numpy else _of_torch(value, left, depth)


def is_native(kind: type) -> bool:
    """Whether a type is written in C, so that asking its values runs nothing of a notebook's.

    >>> is_native(np.float64), is_native(type("Mine", (np.float64,), {}))
    (True, False)
    """
    return not type.__dict__["__flags__"].__get__(kind) & 1 << 9  # what every class statement sets


def _float(value: float) -> str:
    """Infinities and NaN have no literal of their own."""
    return repr(value) if value - value == 0 else f"float({repr(value)!r})"


def _of_numpy(value: Any, left: Iterator[int], depth: int) -> str:
    kind: Any = type(value)
    if issubclass(kind, np.dtype):
        return f"numpy.dtype({_dtype(value)!r})"
    if kind is not np.ndarray and not issubclass(kind, np.generic):
        raise _UnfitError
    dtype = _dtype(value.dtype)
    if kind is not np.ndarray:
        return f"numpy.dtype({dtype!r}).type({_written(value.item(), left, depth + 1)})"
    if value.size > MOST:
        raise _UnfitError
    numbers = _written(value.ravel().tolist(), left, depth + 1)
    return f"numpy.array({numbers}, dtype={dtype!r}).reshape({value.shape!r})"


def _dtype(dtype: Any) -> str:
    """A dtype by name; neither objects, dates, fields, nor numbers wider than Python's."""
    native = dtype.newbyteorder("=")
    widest = {"c": 16, "U": 4 * LONGEST}.get(native.kind, 8)
    if native.kind not in _KINDS or native.itemsize > widest:
        raise _UnfitError
    return native.str if native.kind == "U" else native.name


def _of_torch(value: Any, left: Iterator[int], depth: int) -> str:
    """A dtype, or a tensor of numbers on the CPU that nothing is to be learnt of."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) is torch.dtype:
        return f"__import__('torch').{str(value).removeprefix('torch.')}"
    if torch is None or type(value) is not torch.Tensor or value.requires_grad or value.layout != torch.strided:
        raise _UnfitError
    if value.device.type != "cpu" or value.is_quantized or value.numel() > MOST:
        raise _UnfitError
    numbers, dtype = _written(value.flatten().tolist(), left, depth + 1), _of_torch(value.dtype, left, depth)
    return f"__import__('torch').tensor({numbers}, dtype={dtype}).reshape({tuple(value.shape)!r})"
