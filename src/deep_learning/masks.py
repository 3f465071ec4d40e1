"""The documents' three mask conventions, each turned into a `regard.Mask` (True = may look).

    003         added to the scores: 0 = visible, -inf = hidden
    000, 001    1 or True = hidden
    002, 004    0 or False = hidden

A Mask passes through untouched. An array may be (S,), (T, S), or have as many axes as the scores; without an
axis for heads beside scores that have one, it is one mask per sample. NumPy arrays and torch tensors alike,
on any device; nothing larger than the array that was given is made.
"""

import numpy as np

from regard.arrays import Array, is_tensor
from regard.errors import ArgumentError, DtypeError
from regard.masks import Mask
from regard.masks.convert import kind_of, zero_or_one
from regard.messages import say


def from_added(mask: Mask | Array | None, axes: int) -> Mask | None:
    """003's mask, laid out for scores of `axes` axes.

    >>> print(from_added(np.array([0.0, 0.0, -np.inf]), axes=2))
    Mask.from_additive([1×3])
    ■ ■ ·
    ■ ■ ·
    ■ ■ ·
    """
    if mask is None or isinstance(mask, Mask):
        return mask
    array = _laid_out(mask, axes)
    if kind_of(array) != "float":
        raise DtypeError("added-mask-dtype", dtype=array.dtype, found=tuple(np.shape(mask)))
    try:
        return Mask.from_additive(array)
    except ArgumentError as error:
        if ((array == 0) | (array == 1)).all():  # somebody's 0/1 mask, in floats
            raise DtypeError("added-mask-dtype", dtype=array.dtype, found=tuple(np.shape(mask))) from None
        # The same refusal, but this door has no bias= to point to.
        raise ArgumentError("added-mask-values", value=error.values["value"]) from None


def from_hidden(mask: Mask | Array | None, axes: int) -> Mask | None:
    """The mask of 000 and 001 (1 = hidden), laid out for scores of `axes` axes."""
    if mask is None or isinstance(mask, Mask):
        return mask
    return Mask.of(_zero_or_one(mask, axes, one="hidden", zero="visible") == 0)


def from_visible(mask: Mask | Array | None, axes: int) -> Mask | None:
    """The mask of 002 and 004 (0 = hidden), laid out for scores of `axes` axes."""
    if mask is None or isinstance(mask, Mask):
        return mask
    return Mask.of(_zero_or_one(mask, axes, one="visible", zero="hidden") != 0)


def _zero_or_one(mask: Array, axes: int, *, one: str, zero: str) -> Array:
    """The mask, laid out; a refusal tells this door's own convention."""
    try:
        return zero_or_one(_laid_out(mask, axes), "from_keep")
    except ArgumentError as error:
        said = {"one": say(f"door-{one}"), "zero": say(f"door-{zero}")}
        raise ArgumentError("door-mask-values", value=error.values["value"], **said) from None


def _laid_out(mask: Array, axes: int) -> Array:
    """The array with an axis for heads, of size one, exactly where the scores have such an axis."""
    array = mask if is_tensor(mask) else _array(mask)
    if array.ndim == 1:
        return array[None]
    while array.ndim > axes and array.shape[-3] == 1:
        array = array[..., 0, :, :]
    if 2 < array.ndim < axes:
        # Right-aligned broadcasting would give each *head* the mask of a sample whenever B = H (erratum 14).
        array = array[..., None, :, :]
        array = array[(None,) * (axes - array.ndim)]
    return array


def _array(mask: object) -> np.ndarray:
    try:
        return np.asarray(mask)
    except ValueError:  # what NumPy says of rows that differ in length
        raise DtypeError("mask-not-array", found=type(mask).__name__) from None
