"""Who may look where, as the kernels of this room know it: a band around each query, and segments. No Triton here.

Kept keys and prefixes are segments too: those that are not kept get a segment that no query has.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.masks import BoundMask
from regard.masks.combined import Both
from regard.masks.intervals import own_segment
from regard.masks.rules import Band, Frame, OfKeys, Rule, Segments


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Who may look where; all of it where nothing is said.

    left, right  so many keys before and after the query's own; None is without end
    offset       query i stands at key i + offset
    queries      the segment of each query, (1 or B) T, and `keys` of each key, (1 or B) S; whole numbers
    """

    left: int | None = None
    right: int | None = None
    offset: int = 0
    queries: Tensor | None = None
    keys: Tensor | None = None

    def swapped(self) -> "Sight":
        """The same seen from the keys: who is looked at by whom.

        >>> Sight(left=2, right=0, offset=3).swapped()
        Sight(left=0, right=2, offset=-3, queries=None, keys=None)
        """
        return Sight(self.right, self.left, -self.offset, self.keys, self.queries)


def is_known(mask: BoundMask | None) -> bool:
    """Whether the kernels can do this mask: bands, kept keys, prefixes and segments, all of which must allow."""
    rules = [] if mask is None else _rules(mask)
    known = all(isinstance(rule, Band | OfKeys | Segments) for rule in rules)
    return known and sum(isinstance(rule, Segments) for rule in rules) <= 1


def for_text(mask: BoundMask | None, text: Tensor, S: int) -> BoundMask:
    """The mask with queries that see nothing where `text`, B T, is False: a segment of their own, which no key has."""
    B, T = text.shape
    ids = Segments(text.new_zeros((1, 1, 1, S), dtype=torch.int64), (~text)[:, None, :, None].to(torch.int64))
    if mask is None:
        return BoundMask(ids, Frame((B, 1), T, S, text))
    return replace(mask, rule=Both((*_rules(mask), ids)))


def sight_of(mask: BoundMask | None) -> Sight:
    """The mask as the kernels know it; one that `is_known`."""
    sight, kept = Sight(), None
    if mask is None:
        return sight
    sight = replace(sight, offset=mask.frame.offset)
    for rule in _rules(mask):
        match rule:
            case Band():
                # Seen from the place that all bands share; then one of its sides may be less than nothing.
                moved = rule.offset(mask.frame) - sight.offset
                left = None if rule.left is None else rule.left - moved
                right = None if rule.right is None else rule.right + moved
                sight = replace(sight, left=_least(sight.left, left), right=_least(sight.right, right))
            case Segments(keys=keys, queries=queries):
                assert queries is not None, "a bound mask knows its queries"
                sight = replace(sight, queries=queries[:, 0, :, 0], keys=keys[:, 0, 0])
            case OfKeys():
                keep = rule.keeps(mask.frame)[:, 0]
                kept = keep if kept is None else kept & keep
    sight = _within(sight, mask.frame.T, mask.frame.S)
    return sight if kept is None else _keeping(sight, kept, mask.frame.T)


def _within(sight: Sight, T: int, S: int) -> Sight:
    """The same without edges that hide nothing: kernels count in 32 bits.

    >>> _within(Sight(left=2**40, right=0), T=4, S=4)
    Sight(left=None, right=0, offset=0, queries=None, keys=None)
    """
    left = None if sight.left is None or sight.left >= T - 1 + sight.offset else sight.left
    right = None if sight.right is None or sight.offset + sight.right >= S - 1 else sight.right
    return replace(sight, left=left, right=right)


def _keeping(sight: Sight, kept: Tensor, T: int) -> Sight:
    """The same without the keys that are not kept, which is (1 or B) S."""
    queries = kept.new_zeros((1, T), dtype=torch.int64) if sight.queries is None else sight.queries
    keys = queries.new_zeros(()) if sight.keys is None else sight.keys
    nobody = queries.amin() - 1 if T else queries.new_zeros(())  # a segment that no query has
    return replace(sight, queries=queries, keys=torch.where(kept, keys, nobody))


def reach_of(sight: Sight, rows: int) -> Tensor:
    """What segments let each tile of so many queries see, (1 or B) tiles 4: a range of keys, and what all of it sees.

    Outside of the first range no query of the tile sees anything; inside of the second, all see everything. One sort,
    no look at the numbers from the host, and nothing T × S.

    >>> ids = torch.tensor([[0, 0, 0, 1, 1, 2]])
    >>> reach_of(Sight(queries=ids, keys=ids), rows=2).tolist()
    [[[0, 3, 0, 3], [0, 5, 3, 3], [3, 6, 5, 5]]]
    """
    runs = own_segment(sight.queries, sight.keys)
    assert runs.order is not None, "segments are sorted"
    S, seeing = runs.order.shape[1], runs.first < runs.end
    first = torch.where(seeing, runs.order.gather(1, runs.first.clamp(max=S - 1)), S)
    end = torch.where(seeing, runs.order.gather(1, (runs.end - 1).clamp(min=0)) + 1, 0)
    unbroken = seeing & (end - first == runs.end - runs.first)
    columns = (
        _by_tile(first, rows, S).amin(-1),
        _by_tile(end, rows, 0).amax(-1),
        _by_tile(torch.where(unbroken, first, S), rows, 0).amax(-1),
        _by_tile(torch.where(unbroken, end, 0), rows, S).amin(-1),
    )
    low, high, sure_low, sure_high = columns
    return torch.stack((low, high, sure_low, torch.maximum(sure_low, sure_high)), dim=-1).int()


def _by_tile(x: Tensor, rows: int, beyond: int) -> Tensor:
    """B T as B tiles rows; what the last tile has too many is `beyond`."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % rows), value=beyond).unflatten(1, (-1, rows))


def _rules(mask: BoundMask) -> tuple[Rule, ...]:
    return mask.rule.rules if isinstance(mask.rule, Both) else (mask.rule,)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
