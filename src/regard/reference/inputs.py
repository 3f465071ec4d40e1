"""Inputs of the reference: conversion of lists and tensors to NumPy arrays, and checks of model inputs."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from regard.arrays import is_tensor, to_numpy
from regard.axes import Shape
from regard.config import TransformerConfig
from regard.config.inputs import (
    NumberKind,
    check_ids,
    check_keep,
    check_length,
    check_positions,
    check_range,
    check_raw_mask,
    check_segments,
)
from regard.errors import ArgumentError, ShapeError
from regard.masks import Mask

P = ParamSpec("P")
R = TypeVar("R")


def as_array(what: str, x: Any) -> np.ndarray:
    """x as an array; ShapeError if it is ragged. A tensor is detached.

    >>> as_array("x", [[1, 0]])
    array([[1, 0]])
    """
    if is_tensor(x):
        return to_numpy(x)
    try:
        return np.asarray(x)
    except (ValueError, OverflowError):
        raise ShapeError("ids-ragged", what=what) from None


def array_likes(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator that converts list and tensor arguments to arrays, also inside a NamedTuple.

    >>> array_likes(np.transpose)([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    names = tuple(signature(function).parameters)

    @wraps(function)
    def converted(*args: P.args, **kwargs: P.kwargs) -> R:
        arrays = [*map(_convert, names, args), *args[len(names) :]]  # too many arguments: Python raises
        return function(*arrays, **{name: _convert(name, x) for name, x in kwargs.items()})

    return converted


def _convert(name: str, x: Any) -> Any:
    """An array-like argument as an array; numbers, Masks and strings unchanged."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    if hasattr(x, "_make"):  # a NamedTuple
        return x._make(map(_convert, x._fields, x))
    if not (isinstance(x, list | tuple) or hasattr(x, "__array__")):
        return x
    array = as_array(name, x)
    if array.dtype.kind not in "biufc":
        raise ShapeError("ids-ragged", what=name)
    return array


_KINDS: dict[str, NumberKind] = {"i": "whole", "u": "whole", "f": "float", "b": "bool"}


def checked_ids(what: str, ids: Any, config: TransformerConfig, vocab_size: int | None = None) -> np.ndarray:
    """Ids (B, T), checked against the vocabulary (default: the model's own) and max_len."""
    ids = as_array(what, ids)
    check_ids(what, ids.shape, _kind(ids), ids.dtype, config)
    check_length(what, ids.shape[1], config)
    if config.vocab_size is not None:
        _in_range(what, ids, vocab_size or config.vocab_size)
    return ids


def checked_segments(segments: Any, ids: np.ndarray, config: TransformerConfig) -> np.ndarray | None:
    """Segments (B, T), checked; or None."""
    if segments is None:
        return None
    segments = as_array("segments", segments)
    check_segments(segments.shape, _kind(segments), segments.dtype, ids.shape[:2], config)
    _in_range("segments", segments, config.embeddings.n_segments or 0)
    return segments


def checked_positions(positions: Any, ids: np.ndarray, config: TransformerConfig) -> np.ndarray:
    """Positions (T,) or (B, T), checked; default 0 … T − 1."""
    if positions is None:
        return np.arange(ids.shape[1])
    positions = as_array("positions", positions)
    check_positions(positions.shape, _kind(positions), positions.dtype, ids.shape)
    _in_range("positions", positions, config.max_len or np.iinfo(np.int64).max)
    return positions


def checked_mask(mask: Any, keys: np.ndarray, config: TransformerConfig, *queries: np.ndarray) -> Mask | None:
    """The mask as a Mask, checked against self-attention of `keys` and attention from `queries` to them; or None."""
    if mask is None:
        return None
    B, S = keys.shape[:2]
    if not isinstance(mask, Mask):
        mask = as_array("mask", mask)
        check_raw_mask(mask.shape, B, S)
    mask = Mask.of(mask)
    for side in (keys, *queries):
        mask.bind((B, config.n_heads), side.shape[1], S)  # raises for a mask that does not fit, before anything runs
    return mask


def padding_after(keep: Any, ids: Shape, length: int, before: np.ndarray | None) -> np.ndarray | None:
    """The number of padding columns before each text, (B,), after ids of this shape are read; None for no padding.

    keep     booleans (B, T), False for padding, which is allowed only before a text
    length   the number of columns read before
    before   how many of these are padding

    >>> padding_after([[False, True], [True, True]], (2, 2), length=0, before=None).tolist()
    [1, 0]
    """
    keep = as_array("keep", keep)
    check_keep(keep.shape, _kind(keep), keep.dtype, ids[:2])
    B, T = keep.shape
    before = np.zeros(B, int) if before is None else before
    newest = (~keep).sum(1)
    started = before < length
    if (keep != (np.arange(T) >= newest[:, None])).any() or (started & (newest > 0)).any():
        raise ArgumentError("keep-order")
    after = before + newest
    return after if after.any() else None


def kept_keys(mask: Mask, source: np.ndarray) -> np.ndarray:
    """Which source tokens are visible, (B, S), for a mask that is the same for all queries."""
    B, S = source.shape[:2]
    keep = mask.bind((B, 1), S, S).kept_keys
    if keep is None:
        raise ArgumentError("source-mask-keys", mask=mask.name)
    return np.broadcast_to(keep[:, 0, 0], (B, S))


def _kind(x: np.ndarray) -> NumberKind:
    return _KINDS.get(x.dtype.kind, "other")


def _in_range(what: str, x: np.ndarray, size: int) -> None:
    if x.size:
        check_range(what, x.min(), x.max(), size, lambda value: tuple(np.argwhere(x == value)[0].tolist()))
