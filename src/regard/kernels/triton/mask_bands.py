"""The masks that the Triton kernels support: a band around each query, and segments. Does not import Triton.

Kept keys and prefixes become segments: keys that are not kept get a segment that no query has.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from regard.masks import BoundMask
from regard.masks.combined import And
from regard.masks.intervals import segment_ranges
from regard.masks.rules import Band, Frame, KeyRule, Rule, Segments


@dataclass(frozen=True, slots=True, eq=False)
class MaskBands:
    """A mask as a band and segments; by default everything is visible.

    left, right  visible keys before and after the query's own; None is unlimited
    offset       the key position of query i is i + offset
    queries      the segment of each query, (1 or B) T, and `keys` of each key, (1 or B) S; integers
    """

    left: int | None = None
    right: int | None = None
    offset: int = 0
    queries: Tensor | None = None
    keys: Tensor | None = None

    def swapped(self) -> "MaskBands":
        """The same mask with the roles of queries and keys exchanged.

        >>> MaskBands(left=2, right=0, offset=3).swapped()
        MaskBands(left=0, right=2, offset=-3, queries=None, keys=None)
        """
        return MaskBands(self.right, self.left, -self.offset, self.keys, self.queries)


def is_supported(mask: BoundMask | None) -> bool:
    """Whether the kernels support this mask: a conjunction of bands, kept keys, prefixes and segments."""
    rules = [] if mask is None else _rules(mask)
    supported = all(isinstance(rule, Band | KeyRule | Segments) for rule in rules)
    return supported and sum(isinstance(rule, Segments) for rule in rules) <= 1


def mask_padding_queries(mask: BoundMask | None, is_text: Tensor, S: int) -> BoundMask:
    """The mask with queries fully masked where `is_text`, B T, is False: they get a segment that no key has."""
    B, T = is_text.shape
    ids = Segments(is_text.new_zeros((1, 1, 1, S), dtype=torch.int64), (~is_text)[:, None, :, None].to(torch.int64))
    if mask is None:
        return BoundMask(ids, Frame((B, 1), T, S, is_text))
    return replace(mask, rule=And((*_rules(mask), ids)))


def bands_of(mask: BoundMask | None) -> MaskBands:
    """The mask as MaskBands; for a mask that `is_supported`."""
    if mask is None:
        return MaskBands()
    frame, kept = mask.frame, None
    if type(mask.rule) is Band:
        return _one_band(mask.rule.left, mask.rule.right, mask.rule.offset(frame), frame.T, frame.S)
    bands = MaskBands(offset=frame.offset)
    for rule in _rules(mask):
        match rule:
            case Band():
                # Relative to the offset that all bands share; then a side may be negative.
                shift = rule.offset(mask.frame) - bands.offset
                left = None if rule.left is None else rule.left - shift
                right = None if rule.right is None else rule.right + shift
                bands = replace(bands, left=_minimum(bands.left, left), right=_minimum(bands.right, right))
            case Segments(keys=keys, queries=queries):
                assert queries is not None, "a bound mask knows its queries"
                bands = replace(bands, queries=queries[:, 0, :, 0], keys=keys[:, 0, 0])
            case KeyRule():
                keep = rule.visible_keys(mask.frame)[:, 0]
                kept = keep if kept is None else kept & keep
    bands = _without_redundant_edges(bands, mask.frame.T, mask.frame.S)
    return bands if kept is None else _with_kept_keys(bands, kept, mask.frame.T)


@lru_cache(maxsize=256)  # asked several times for each call, and layers repeat a mask
def _one_band(left: int | None, right: int | None, offset: int, T: int, S: int) -> MaskBands:
    """A single band, whose own offset becomes S − T."""
    shift = offset - (S - T)
    left, right = None if left is None else left - shift, None if right is None else right + shift
    return _without_redundant_edges(MaskBands(left, right, S - T), T, S)


def every_query_attends(bands: MaskBands) -> bool:
    """Whether every query certainly attends to some key, if there are keys: to key 0.

    >>> every_query_attends(MaskBands(right=0)), every_query_attends(MaskBands(right=0, offset=-1))
    (True, False)
    """
    sees_first = bands.right is None or bands.offset + bands.right >= 0
    return bands.queries is None and bands.left is None and sees_first


def _without_redundant_edges(bands: MaskBands, T: int, S: int) -> MaskBands:
    """The same without edges that mask nothing: kernels count in 32 bits.

    >>> _without_redundant_edges(MaskBands(left=2**40, right=0), T=4, S=4)
    MaskBands(left=None, right=0, offset=0, queries=None, keys=None)
    """
    left = None if bands.left is None or bands.left >= T - 1 + bands.offset else bands.left
    right = None if bands.right is None or bands.offset + bands.right >= S - 1 else bands.right
    return replace(bands, left=left, right=right)


def _with_kept_keys(bands: MaskBands, kept: Tensor, T: int) -> MaskBands:
    """The same, with keys masked where `kept`, (1 or B) S, is False."""
    queries = kept.new_zeros((1, T), dtype=torch.int64) if bands.queries is None else bands.queries
    keys = queries.new_zeros(()) if bands.keys is None else bands.keys
    unused_segment = queries.amin() - 1 if T else queries.new_zeros(())  # a segment that no query has
    return replace(bands, queries=queries, keys=torch.where(kept, keys, unused_segment))


def visible_ranges(bands: MaskBands, rows: int) -> Tensor:
    """The keys visible to each tile of `rows` queries by segments, (1 or B) tiles 4: two ranges of keys.

    Outside the first range every key is masked for every query of the tile; inside the second, every key is visible to
    all. Needs one sort, no synchronisation with the host, and no T × S tensor.

    >>> ids = torch.tensor([[0, 0, 0, 1, 1, 2]])
    >>> visible_ranges(MaskBands(queries=ids, keys=ids), rows=2).tolist()
    [[[0, 3, 0, 3], [0, 5, 3, 3], [3, 6, 5, 5]]]
    """
    runs = segment_ranges(bands.queries, bands.keys)
    assert runs.order is not None, "segments are sorted"
    S, has_keys = runs.order.shape[1], runs.first < runs.end
    first = torch.where(has_keys, runs.order.gather(1, runs.first.clamp(max=S - 1)), S)
    end = torch.where(has_keys, runs.order.gather(1, (runs.end - 1).clamp(min=0)) + 1, 0)
    is_contiguous = has_keys & (end - first == runs.end - runs.first)
    columns = (
        _by_tile(first, rows, S).amin(-1),
        _by_tile(end, rows, 0).amax(-1),
        _by_tile(torch.where(is_contiguous, first, S), rows, 0).amax(-1),
        _by_tile(torch.where(is_contiguous, end, 0), rows, S).amin(-1),
    )
    low, high, full_low, full_high = columns
    return torch.stack((low, high, full_low, torch.maximum(full_low, full_high)), dim=-1).int()


def _by_tile(x: Tensor, rows: int, fill: int) -> Tensor:
    """B T as B tiles rows; positions beyond the end of the last tile are `fill`."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % rows), value=fill).unflatten(1, (-1, rows))


def _rules(mask: BoundMask) -> tuple[Rule, ...]:
    return mask.rule.rules if isinstance(mask.rule, And) else (mask.rule,)


def _minimum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
