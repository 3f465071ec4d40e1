"""Checks of a Transformer's inputs, shared by NumPy and torch.

Only shapes, dtype names and single numbers, no arrays: each model reads them from its own array type.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from regard.arrays import is_integer, is_tensor, to_numpy
from regard.axes import Shape
from regard.config.transformer import TransformerConfig
from regard.errors import ArgumentError, DtypeError, ShapeError

NumberKind = Literal["whole", "float", "bool", "other"]
"""The kind of an array's dtype."""


def check_ids(what: str, shape: Shape, kind: NumberKind, dtype: object, config: TransformerConfig) -> None:
    """Raise unless ids are integers (B, T), or without a vocabulary float vectors (B, T, D).

    >>> check_ids("ids", (2, 5), "whole", "int64", TransformerConfig.gpt2())
    """
    shape = tuple(shape)
    if len(shape) > 1 and shape[1] == 0:  # [[]] has a float dtype in NumPy and torch
        raise ShapeError("ids-axes", what=what, found=shape)
    if config.vocab_size is None:
        if kind != "float" or len(shape) != 3 or shape[1] == 0 or shape[2] != config.d_model:
            raise ShapeError("vectors-wanted", what=what, D=config.d_model, shape=shape, found=dtype)
        return
    if kind != "whole":
        raise DtypeError("ids-kind", what=what, found=dtype)
    if len(shape) != 2 or shape[1] == 0:
        raise ShapeError("ids-axes", what=what, found=shape)


def check_range(what: str, lowest: int, highest: int, size: int, place: Callable[[int], tuple[int, ...]]) -> None:
    """Raise unless all values are from 0 to size − 1; `place` finds the index of a wrong value for the message.

    >>> check_range("ids", 0, 49, 50, lambda value: (0, 0))
    """
    if lowest < 0 or highest >= size:
        value = int(lowest if lowest < 0 else highest)
        key = "ids-out-of-range" if what in ("ids", "source") else "value-out-of-range"
        raise ArgumentError(key, what=what, place=list(place(value)), value=value, last=size - 1)


def check_length(what: str, length: int, config: TransformerConfig) -> None:
    """Raise if `length`, cached columns included, exceeds the model's max_len.

    >>> check_length("ids", 1024, TransformerConfig.gpt2())
    """
    if config.max_len is not None and length > config.max_len:
        excess = length - config.max_len
        raise ArgumentError("ids-too-long", what=what, length=length, max_len=config.max_len, excess=excess)


def check_capacity(length: int, max_len: int | None) -> None:
    """Raise if `length`, columns read before included, exceeds the max_len of a Decoding."""
    if max_len is not None and length > max_len:
        raise ArgumentError("decoding-full", length=length, max_len=max_len)


def check_sides(config: TransformerConfig, source: object, source_mask: object = None) -> None:
    """Raise unless a source is given exactly if the model is an encoder-decoder.

    >>> check_sides(TransformerConfig.gpt2(), source=None)
    """
    if config.kind != "encoder-decoder":
        if source is not None or source_mask is not None:
            raise ArgumentError("source-unneeded", kind=config.kind)
    elif source is None:
        raise ArgumentError("source-missing")


def check_samples(what: str, found: int, wanted: int) -> None:
    """Raise unless the number of samples is the expected one."""
    if found != wanted:
        raise ShapeError("batches-of-source", what=what, found=found, wanted=wanted)


def check_segments(shape: Shape, kind: NumberKind, dtype: object, ids: Shape, config: TransformerConfig) -> None:
    """Raise unless the model has segments and these are integers, one for each id."""
    if config.embeddings.n_segments is None:
        raise ArgumentError("segments-unneeded")
    if kind != "whole" or tuple(shape) != tuple(ids):
        raise ShapeError("segments-shape", wanted=tuple(ids), shape=tuple(shape), found=dtype)


def check_positions(shape: Shape, kind: NumberKind, dtype: object, ids: Shape) -> None:
    """Raise unless positions are integers, (T,) or (B, T)."""
    B, T = ids[:2]
    if kind != "whole" or tuple(shape) not in ((T,), (B, T)):
        raise ShapeError("positions-of-ids", B=B, T=T, shape=tuple(shape), found=dtype)


def check_raw_mask(found: Shape, B: int, T: int) -> None:
    """Raise for a raw mask of two axes whose rows could be samples or queries."""
    if len(found) == 2 and B > 1 and found[0] == B:
        raise ShapeError("mask-two-ways", found=tuple(found), B=B, T=T)


def check_keep(shape: Shape, kind: NumberKind, dtype: object, ids: Shape) -> None:
    """Raise unless `keep` has one boolean for each id."""
    if kind != "bool" or tuple(shape) != tuple(ids):
        raise ShapeError("keep-shape", wanted=tuple(ids), shape=tuple(shape), found=dtype)


def check_decodes(config: TransformerConfig) -> None:
    """Raise unless the model has a decoder and logits.

    >>> check_decodes(TransformerConfig.llama())
    """
    if config.kind == "encoder":
        raise ArgumentError("decoding-encoder")
    if config.output is None:
        raise ArgumentError("decoding-vectors")


def checked_rows(rows: Any, samples: int | None) -> list[int]:
    """The rows as a list of sample indices, at least one; ArgumentError if `samples` is None: nothing was read yet.

    >>> checked_rows([1, 0, 0], samples=2)
    [1, 0, 0]
    """
    if samples is None:
        raise ArgumentError("rows-too-early")
    rows = to_numpy(rows).tolist() if is_tensor(rows) else rows
    rows = list(rows) if isinstance(rows, Iterable) else [rows]
    if not rows or not all(is_integer(row) and 0 <= row < samples for row in rows):
        raise ArgumentError("rows-out-of-range", last=samples - 1, found=rows)
    return [int(row) for row in rows]


def check_crop(length: int, longest: int) -> None:
    """Raise unless `length` is from 0 to `longest`."""
    if not is_integer(length) or not 0 <= length <= longest:
        raise ArgumentError("crop-length", value=length, longest=longest)
