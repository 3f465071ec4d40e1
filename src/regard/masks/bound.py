"""A Mask laid onto one score matrix, as the kernels use it: asked for rectangles, never for the whole."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from regard.arrays import Array
from regard.masks.combined import Both
from regard.masks.rules import Band, Frame, Keys, Rule, Seen

ANSWERS_AT_A_TIME = 2**22
"""Booleans made at once where a question has to be asked rectangle by rectangle."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundMask:
    """The rules of a mask with their arrays fitted to B H T S."""

    rule: Rule
    frame: Frame

    def block(self, rows: slice, cols: slice) -> Seen:
        """Who may look in this rectangle: True, False, or an array that broadcasts to it."""
        if rows.start == rows.stop or cols.start == cols.stop:
            return False
        return self.rule.block(self.frame, rows, cols)

    def reach(self, rows: slice) -> tuple[int, int]:
        """A range of keys outside of which these rows see nothing."""
        return self.rule.reach(self.frame, rows)

    def widest(self, height: int) -> int:
        """How many keys a block of so many rows reaches at most."""
        T = self.frame.T
        ranges = (self.reach(slice(at, min(T, at + height))) for at in range(0, T, height))
        return max((high - low for low, high in ranges), default=0)

    def doubtful(self, rows: slice, low: int, high: int, at_a_time: int) -> Iterator[tuple[slice, Seen]]:
        """The parts of the keys low … high that these rows do not all see: where they are, and who sees what."""
        start, stop = self.rule.certain(self.frame, rows)
        for first, last in ((low, min(start, high)), (max(low, stop), high)) if start < stop else ((low, high),):
            for at in range(first, last, at_a_time):
                part = slice(at, min(last, at + at_a_time))
                seen = self.block(rows, part)
                if seen is not True:
                    yield part, seen

    def pick(self, b: int, h: int) -> "BoundMask":
        """The same for one head of one sample; its blocks have two axes."""
        return replace(self, rule=self.rule.pick(b, h))

    @property
    def is_causal(self) -> bool:
        """Exactly `Mask.causal()`, so that a kernel's own causal path may be taken."""
        return _is_causal(self.rule)

    @property
    def key_rows(self) -> tuple[bool, Array | None] | None:
        """(causal, keep) when the mask is nothing more than kept keys, causal or not; else None.

        `keep` broadcasts to B 1 1 S. Such a mask needs no T × S array in any kernel.
        """
        rules = self.rule.rules if isinstance(self.rule, Both) else (self.rule,)
        causal, keep = False, None
        for rule in rules:
            if _is_causal(rule):
                causal = True
            elif isinstance(rule, Keys):
                keep = rule.keep if keep is None else keep & rule.keep
            else:
                return None
        return causal, keep

    @property
    def kept_keys(self) -> Array | None:
        """Which keys may be looked at, (1 or B) 1 1 S, where that is the same for all queries and heads; else None."""
        T, S = self.frame.T, self.frame.S
        seen = self.block(slice(0, T), slice(0, S)) & (self.frame.positions(0, S) >= 0)
        seen = seen[(None,) * (4 - seen.ndim)]
        return seen if seen.shape[1:3] == (1, 1) else None

    def sees(self, flagged: Array, rows_at_a_time: int | None = None) -> Array:
        """… B H T: which queries may look at a flagged key (`flagged` is … B H S, boolean)."""
        T, S = self.frame.T, self.frame.S
        if not T or 0 in flagged.shape:
            return self._all_rows(flagged[..., :0].any(-1)[..., None], T)
        quick = self.rule.sees(self.frame, flagged)
        if quick is not None:
            return self._all_rows(quick, T)
        rows_at_a_time = rows_at_a_time or max(1, ANSWERS_AT_A_TIME // prod(flagged.shape))
        answers = []
        for start in range(0, T, rows_at_a_time):
            rows = slice(start, min(T, start + rows_at_a_time))
            hit = (flagged[..., None, :] & self.block(rows, slice(0, S))).any(-1)
            answers.append(self._all_rows(hit, rows.stop - rows.start))
        if isinstance(flagged, np.ndarray):
            return np.concatenate(answers, axis=-1)
        import torch

        return torch.cat(answers, dim=-1)

    def _all_rows(self, answer: Array, rows: int) -> Array:
        """An answer for each row; a rule that does not tell rows apart answered for one of them."""
        return answer if answer.shape[-1] == rows else answer | (self.frame.positions(0, rows) < 0)


def _is_causal(rule: Rule) -> bool:
    return isinstance(rule, Band) and rule.left is None and rule.right == 0 and not rule.from_first
