"""Conversion of the documents' three mask conventions to `regard.Mask` (True = visible).

    003         added to the scores: 0 = visible, -inf = masked
    000, 001    1 or True = masked
    002, 004    0 or False = masked

A Mask is returned unchanged. An array may be (S,), (T, S), or have as many axes as the scores; an array without a
head axis, for scores that have one, is one mask per sample. NumPy arrays and torch tensors on any device; no array
larger than the input is created.
"""

import numpy as np

from regard.arrays import Array, is_tensor
from regard.errors import ArgumentError, DtypeError
from regard.masks import Mask
from regard.masks.mask import kind_of, zero_or_one
from regard.messages import say


def from_additive(mask: Mask | Array | None, axes: int) -> Mask | None:
    """The mask of 003 (added to the scores), for scores of `axes` axes.

    >>> print(from_additive(np.array([0.0, 0.0, -np.inf]), axes=2))
    Mask.from_additive([1×3])
    ■ ■ ·
    ■ ■ ·
    ■ ■ ·
    """
    if mask is None or isinstance(mask, Mask):
        return mask
    array = _with_head_axis(mask, axes)
    if kind_of(array) != "float":
        raise DtypeError("added-mask-dtype", dtype=array.dtype, found=tuple(np.shape(mask)))
    try:
        return Mask.from_additive(array)
    except ArgumentError as error:
        if ((array == 0) | (array == 1)).all():  # a 0/1 mask in floats
            raise DtypeError("added-mask-dtype", dtype=array.dtype, found=tuple(np.shape(mask))) from None
        # Another message: the functions of 003 have no `bias` argument.
        raise ArgumentError("added-mask-values", value=error.values["value"]) from None


def from_masked(mask: Mask | Array | None, axes: int) -> Mask | None:
    """The mask of 000 and 001 (1 = masked), for scores of `axes` axes."""
    if mask is None or isinstance(mask, Mask):
        return mask
    return Mask.of(_zero_or_one(mask, axes, one="hidden", zero="visible") == 0)


def from_visible(mask: Mask | Array | None, axes: int) -> Mask | None:
    """The mask of 002 and 004 (0 = masked), for scores of `axes` axes."""
    if mask is None or isinstance(mask, Mask):
        return mask
    return Mask.of(_zero_or_one(mask, axes, one="visible", zero="hidden") != 0)


def _zero_or_one(mask: Array, axes: int, *, one: str, zero: str) -> Array:
    """The mask with a head axis; an error names the convention of the document."""
    try:
        return zero_or_one(_with_head_axis(mask, axes), "from_keep")
    except ArgumentError as error:
        meanings = {"one": say(f"mask-{one}"), "zero": say(f"mask-{zero}")}
        raise ArgumentError("mask-zero-or-one", value=error.values["value"], **meanings) from None


def _with_head_axis(mask: Array, axes: int) -> Array:
    """The array with a head axis of size 1 if the scores have a head axis, and without it otherwise."""
    array = mask if is_tensor(mask) else _array(mask)
    if array.ndim == 1:
        return array[None]
    while array.ndim > axes and array.shape[-3] == 1:
        array = array[..., 0, :, :]
    if 2 < array.ndim < axes:
        # Right-aligned broadcasting would apply the mask of a sample to a *head* if B = H (erratum 14).
        array = array[..., None, :, :]
        array = array[(None,) * (axes - array.ndim)]
    return array


def _array(mask: object) -> np.ndarray:
    try:
        return np.asarray(mask)
    except ValueError:  # NumPy's error for rows of different lengths
        raise DtypeError("mask-not-array", found=type(mask).__name__) from None
