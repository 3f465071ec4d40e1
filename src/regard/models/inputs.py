"""What a model reads: checks of input tensors, and `Span`, the columns that one pass of a stack reads.

Input tensors are checked by the rules of `config.inputs`, their values only where reading them is free: on the CPU,
outside of a traced graph.

A stack works the same for a whole text and for a continuation of a cache: the Span makes the difference. `full_span` is
a whole text without a cache; `GrowingPast` and `StaticPast` cache a decoder's past columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.arrays import convert_like, is_tensor
from regard.config import TransformerConfig, inputs
from regard.config.inputs import NumberKind, check_raw_mask
from regard.errors import DtypeError
from regard.layers.attention import (
    NO_CACHE,
    GrowingCache,
    KeysAndValues,
    LayerCache,
    StaticCache,
    WritePosition,
    select_rows_in_place,
)
from regard.masks import Mask
from regard.reference.inputs import as_array


def checked_ids(config: TransformerConfig, ids: Tensor, *, source: bool = False, like: Tensor | None = None) -> Tensor:
    """Ids (B, T), checked against the vocabulary and max_len; without a vocabulary vectors, in the dtype of `like`."""
    what = "source" if source else "ids"
    ids = _tensor(what, ids)
    inputs.check_ids(what, tuple(ids.shape), _kind(ids), ids.dtype, config)
    inputs.check_length(what, ids.shape[1], config)
    if config.vocab_size is None:
        return ids if like is None else ids.to(like.dtype)
    ids = ids.long()
    own = config.embeddings.source_vocab_size if source else None
    _check_range(what, ids, config.vocab_size if own is None else own)
    return ids


def checked_segments(config: TransformerConfig, segments: Tensor | None, ids: Tensor) -> Tensor | None:
    """Segments (B, T), checked; or None."""
    if segments is None:
        return None
    segments = _tensor("segments", segments)
    inputs.check_segments(tuple(segments.shape), _kind(segments), segments.dtype, tuple(ids.shape[:2]), config)
    segments = segments.long()
    _check_range("segments", segments, config.embeddings.n_segments or 0)
    return segments


def checked_positions(config: TransformerConfig, positions: Tensor | None, x: Tensor) -> Tensor | None:
    """Positions (T,) or (B, T), checked against max_len; or None."""
    if positions is None:
        return None
    positions = _tensor("positions", positions)
    inputs.check_positions(tuple(positions.shape), _kind(positions), positions.dtype, tuple(x.shape[:2]))
    positions = positions.long()
    _check_range("positions", positions, config.max_len or torch.iinfo(torch.long).max)
    return positions


def on_device(what: str, x: Any, device: torch.device) -> Tensor:
    """A tensor or array-like as a tensor on that device."""
    if is_tensor(x):
        return x.to(device)
    array = as_array(what, x)
    if array.dtype.kind not in "iufb":
        raise DtypeError("ids-kind", what=what, found=array.dtype)
    array = (
        array.astype(np.int64) if array.dtype.kind == "u" else array
    )  # torch supports few operations on unsigned integers
    return convert_like(array, torch.empty(0, device=device))


def _tensor(what: str, x: Any) -> Tensor:
    if not is_tensor(x):
        raise DtypeError("ids-tensor", what=what, found=type(x).__name__)
    return x


def _check_range(what: str, x: Tensor, size: int) -> None:
    if x.device.type != "cpu" or torch.compiler.is_compiling() or not x.numel():
        return
    lowest, highest = x.aminmax()
    inputs.check_range(what, int(lowest), int(highest), size, lambda value: tuple((x == value).nonzero()[0].tolist()))


def _kind(x: Tensor) -> NumberKind:
    if x.dtype == torch.bool:
        return "bool"
    if x.is_floating_point():
        return "float"
    return "other" if x.is_complex() else "whole"


LayerMask = Callable[[int | None], Mask | None]
"""The mask of a layer, given its window."""


@dataclass(frozen=True, slots=True)
class Span:
    """T columns, with the positions, mask and caches that a stack needs to read them.

    positions    position of each token in its text, (T,) or (B, T); padding before a text does not count
    keys         position of each key, (S,) or (B, S)
    layer_mask   the mask of a layer, given its window
    caches       the cache of each layer's self-attention
    """

    positions: Tensor
    keys: Tensor
    layer_mask: LayerMask
    caches: Sequence[LayerCache]


def full_span(x: Tensor, n_layers: int, *, causal: bool, mask: Any = None, positions: Tensor | None = None) -> Span:
    """All columns of x (B, T, D), without a cache. `mask` is combined with the stack's own mask."""
    positions = torch.arange(x.shape[1], device=x.device) if positions is None else positions
    if mask is not None and not isinstance(mask, Mask):
        check_raw_mask(tuple(mask.shape), *x.shape[:2])
    return Span(
        positions=positions,
        keys=positions,
        layer_mask=lambda window: _combined(_stack_mask(window, causal), None if mask is None else Mask.of(mask)),
        caches=[NO_CACHE] * n_layers,
    )


class GrowingPast:
    """The cached columns of a decoder, any number of them.

    padding   the number of padding columns before each text, (B, 1); None if there are none
    """

    def __init__(self, n_layers: int) -> None:
        self.padding: Tensor | None = None
        self._caches = [GrowingCache() for _ in range(n_layers)]
        self._length = 0

    def span(self, ids: Tensor) -> Span:
        """The next T columns."""
        T, start = ids.shape[1], self._length
        self._length += T
        keys = torch.arange(self._length, device=ids.device)
        not_padding = None if self.padding is None else Mask.from_keep(keys >= self.padding)

        def layer_mask(window: int | None) -> Mask | None:
            # A single query sees every key so far: no mask is faster than one that masks nothing.
            band = None if T == 1 and window is None else _stack_mask(window, causal=True)
            return _combined(band, not_padding)

        positions = _text_positions(keys, self.padding)
        return Span(positions=positions[..., start:], keys=positions, layer_mask=layer_mask, caches=self._caches)

    @property
    def length(self) -> int:
        """The number of columns."""
        return self._length

    def memory_for_next(self) -> list[KeysAndValues] | None:
        """The memory of each layer, at least one column larger than what was read; None where nothing was read yet."""
        found = [cache.memory_for_next() for cache in self._caches]
        return [each for each in found if each is not None] if None not in found else None

    def append(self) -> None:
        """The caller has written one column to the memory of `memory_for_next`."""
        for cache in self._caches:
            cache.length += 1
        self._length += 1

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; rows may repeat."""
        for cache in self._caches:
            cache.select(rows)
        self.padding = None if self.padding is None else self.padding[rows]

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        for cache in self._caches:
            cache.crop(length)
        self._length = length


class StaticPast:
    """The cached columns of a decoder, at most `max_len`, at a fixed address; their number is a tensor too.

    Every step is the same operations on the same addresses, as a compiled or captured step requires.

    padding   the number of padding columns before each text, (B, 1); None if there are none
    """

    def __init__(self, n_layers: int, max_len: int, device: torch.device) -> None:
        self.padding: Tensor | None = None
        self._max_len = max_len
        self._length = torch.zeros((), dtype=torch.long, device=device)
        self._position = WritePosition(self._length)
        self._caches = [StaticCache(self._position, max_len) for _ in range(n_layers)]

    def span(self, ids: Tensor) -> Span:
        """The next T columns."""
        columns = self._position.columns = self._length + torch.arange(ids.shape[1], device=ids.device)
        self._length += ids.shape[1]
        keys = torch.arange(self._max_len, device=ids.device)
        padding = self.padding

        def layer_mask(window: int | None) -> Mask:
            visible = keys <= columns[:, None]  # T S
            if window is not None:
                visible = visible & (keys > columns[:, None] - window)
            return Mask.of(visible if padding is None else visible & (keys >= padding)[:, None, None])

        return Span(
            positions=_text_positions(columns, padding),
            keys=_text_positions(keys, padding),
            layer_mask=layer_mask,
            caches=self._caches,
        )

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; in the same memory if their number does not change."""
        for cache in self._caches:
            cache.select(rows)
        self.padding = None if self.padding is None else select_rows_in_place(self.padding, rows)

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        self._length.fill_(length)


Past = GrowingPast | StaticPast


def _stack_mask(window: int | None, causal: bool) -> Mask | None:
    """The stack's own mask: causal in a decoder, limited to the window."""
    side = None if window is None else window - 1
    if causal:
        return Mask.window(side, 0)
    return None if side is None else Mask.window(side, side)


def _combined(one: Mask | None, other: Mask | None) -> Mask | None:
    return other if one is None else one if other is None else one & other


def _text_positions(columns: Tensor, padding: Tensor | None) -> Tensor:
    """The positions of columns, (T,) or (B, T). Padding, which is masked, gets 0."""
    return columns if padding is None else (columns - padding).clamp(min=0)
