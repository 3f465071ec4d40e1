"""Inputs of the reference: lists and tensors read as NumPy arrays, and model inputs checked before use."""

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
    """x as an array, if it is rectangular; a tensor leaves its gradients behind.

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
    """The function, with lists and tensors among its arguments read as arrays, and those in a NamedTuple too.

    >>> array_likes(np.transpose)([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    names = tuple(signature(function).parameters)

    @wraps(function)
    def taking(*args: P.args, **kwargs: P.kwargs) -> R:
        read = [*map(_read, names, args), *args[len(names) :]]  # of too many, Python says so itself
        return function(*read, **{name: _read(name, x) for name, x in kwargs.items()})

    return taking


def _read(name: str, x: Any) -> Any:
    """An argument as an array, if it is like one; a number, a Mask or a word stays what it is."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    if hasattr(x, "_make"):  # a NamedTuple
        return x._make(map(_read, x._fields, x))
    if not (isinstance(x, list | tuple) or hasattr(x, "__array__")):
        return x
    array = as_array(name, x)
    if array.dtype.kind not in "biufc":
        raise ShapeError("ids-ragged", what=name)
    return array


_KINDS: dict[str, NumberKind] = {"i": "whole", "u": "whole", "f": "float", "b": "bool"}


def given_ids(what: str, ids: Any, config: TransformerConfig, vocab_size: int | None = None) -> np.ndarray:
    """Ids (B, T) of that vocabulary, the model's own unless told, and no longer than the model reads."""
    ids = as_array(what, ids)
    check_ids(what, ids.shape, _kind(ids), ids.dtype, config)
    check_length(what, ids.shape[1], config)
    if config.vocab_size is not None:
        _in_range(what, ids, vocab_size or config.vocab_size)
    return ids


def given_segments(segments: Any, ids: np.ndarray, config: TransformerConfig) -> np.ndarray | None:
    """Segments (B, T), or None."""
    if segments is None:
        return None
    segments = as_array("segments", segments)
    check_segments(segments.shape, _kind(segments), segments.dtype, ids.shape[:2], config)
    _in_range("segments", segments, config.embeddings.n_segments or 0)
    return segments


def given_positions(positions: Any, ids: np.ndarray, config: TransformerConfig) -> np.ndarray:
    """Positions (T,) or (B, T); 0 … T − 1 unless told."""
    if positions is None:
        return np.arange(ids.shape[1])
    positions = as_array("positions", positions)
    check_positions(positions.shape, _kind(positions), positions.dtype, ids.shape)
    _in_range("positions", positions, config.max_len or np.iinfo(np.int64).max)
    return positions


def given_mask(mask: Any, keys: np.ndarray, config: TransformerConfig, *queries: np.ndarray) -> Mask | None:
    """A Mask that fits the attention of keys to themselves, and of `queries` to them; or None."""
    if mask is None:
        return None
    B, S = keys.shape[:2]
    if not isinstance(mask, Mask):
        mask = as_array("mask", mask)
        check_raw_mask(mask.shape, B, S)
    mask = Mask.of(mask)
    for side in (keys, *queries):
        mask.bind((B, config.n_heads), side.shape[1], S)  # what does not fit is said before anything runs
    return mask


def padding_after(keep: Any, ids: Shape, length: int, before: np.ndarray | None) -> np.ndarray | None:
    """How many columns before each text are padding, (B,), once ids of this shape are read; None for none at all.

    keep     booleans (B, T), False for padding; padding may only stand before a text
    length   how many columns were read already
    before   how many of them are padding

    >>> padding_after([[False, True], [True, True]], (2, 2), length=0, before=None).tolist()
    [1, 0]
    """
    keep = as_array("keep", keep)
    check_keep(keep.shape, _kind(keep), keep.dtype, ids[:2])
    B, T = keep.shape
    before = np.zeros(B, int) if before is None else before
    newest = (~keep).sum(1)
    begun = before < length
    if (keep != (np.arange(T) >= newest[:, None])).any() or (begun & (newest > 0)).any():
        raise ArgumentError("keep-order")
    after = before + newest
    return after if after.any() else None


def kept_keys(mask: Mask, source: np.ndarray) -> np.ndarray:
    """Which tokens of the source may be looked at, (B, S), by a mask that is alike for all queries."""
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
