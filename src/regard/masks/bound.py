"""BoundMask: a Mask applied to one score matrix, evaluated by rectangles; and the combined rules `~`, `&` and `|`.

A combined rule evaluates its parts and combines the results.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from regard.arrays import Array
from regard.axes import Shape
from regard.masks.intervals import KeyRanges
from regard.masks.rules import Band, Frame, KeyRule, Keys, Rule, Segments, Visible


@dataclass(frozen=True, eq=False, slots=True)
class Not(Rule):
    """The opposite of a rule: what it masks is visible."""

    rule: Rule

    def align(self, frame: Frame) -> Rule:
        return Not(self.rule.align(frame))

    def pick(self, b: int, h: int) -> Rule:
        return Not(self.rule.pick(b, h))

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        visible = self.rule.block(frame, rows, cols)
        return (not visible) if isinstance(visible, bool) else ~visible

    def leads(self) -> Iterator[Shape]:
        return self.rule.leads()


@dataclass(frozen=True, eq=False, slots=True)
class OneHead(Rule):
    """A rule that was picked for one head of one sample, as the rule of a matrix with this head alone."""

    rule: Rule

    def pick(self, b: int, h: int) -> Rule:
        return self.rule

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        return self.rule.block(frame, rows, cols)

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return self.rule.reach(frame, rows)

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return self.rule.fully_visible(frame, rows)


@dataclass(frozen=True, eq=False, slots=True)
class Combined(Rule):
    """Several rules that are evaluated together."""

    rules: tuple[Rule, ...]

    def align(self, frame: Frame) -> Rule:
        return replace(self, rules=tuple([rule.align(frame) for rule in self.rules]))

    def pick(self, b: int, h: int) -> Rule:
        return replace(self, rules=tuple([rule.pick(b, h) for rule in self.rules]))

    def leads(self) -> Iterator[Shape]:
        for rule in self.rules:
            yield from rule.leads()


@dataclass(frozen=True, eq=False, slots=True)
class And(Combined):
    """The intersection of rules: a key is visible where all of them make it visible."""

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        visible: Visible = True
        for rule in self.rules:
            one = rule.block(frame, rows, cols)
            if one is False:
                return False
            if one is not True:
                visible = one if visible is True else visible & one
        return visible

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return _common([rule.reach(frame, rows) for rule in self.rules])

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return _common([rule.fully_visible(frame, rows) for rule in self.rules])

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        # A rule about keys alone only removes flags; the rules about queries and keys remain to be evaluated.
        others = []
        for rule in self.rules:
            if isinstance(rule, KeyRule):
                flagged = flagged & rule.visible_keys(frame)
            else:
                others.append(rule)
        if not others:
            return flagged.any(-1)[..., None]
        if len(others) == 1:
            return others[0].any_visible(frame, flagged)
        ranges = _ranges(others, frame)
        return None if ranges is None else ranges.any_visible(flagged)


@dataclass(frozen=True, eq=False, slots=True)
class Or(Combined):
    """The union of rules: a key is visible where any of them makes it visible."""

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        visible: Visible = False
        for rule in self.rules:
            one = rule.block(frame, rows, cols)
            if one is True:
                return True
            if one is not False:
                visible = one if visible is False else visible | one
        return visible

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        ranges = [rule.reach(frame, rows) for rule in self.rules]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        answers = [rule.any_visible(frame, flagged) for rule in self.rules]
        if any(answer is None for answer in answers):
            return None
        visible: Any = answers[0]
        for answer in answers[1:]:
            visible = visible | answer
        return visible

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return max((rule.fully_visible(frame, rows) for rule in self.rules), key=lambda part: part[1] - part[0])


def _ranges(rules: list[Rule], frame: Frame) -> KeyRanges | None:
    """The visible keys of bands and at most one rule of segments together; None where there is another rule."""
    bands = [rule.edges(frame) for rule in rules if isinstance(rule, Band)]
    segments = [rule for rule in rules if isinstance(rule, Segments)]
    if not bands or len(segments) > 1 or len(bands) + len(segments) < len(rules):
        return None
    low, high = bands[0]
    for other_low, other_high in bands[1:]:
        low, high = low.clip(min=other_low), high.clip(max=other_high)
    return segments[0].ranges(between=(low, high)) if segments else KeyRanges(None, low[None], high[None])


def _common(ranges: list[tuple[int, int]]) -> tuple[int, int]:
    """The intersection of the ranges."""
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    return low, max(low, high)


ANSWERS_AT_A_TIME = 2**22
"""Booleans computed at once where `any_visible` has to evaluate the mask rectangle by rectangle."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundMask:
    """The rules of a mask with their arrays fitted to B H T S."""

    rule: Rule
    frame: Frame

    def block(self, rows: slice, cols: slice) -> Visible:
        """What is visible in this rectangle: True (all), False (nothing), or an array that broadcasts to it."""
        if rows.start == rows.stop or cols.start == cols.stop:
            return False
        return self.rule.block(self.frame, rows, cols)

    def reach(self, rows: slice) -> tuple[int, int]:
        """A range of keys outside of which everything is masked for these rows."""
        return self.rule.reach(self.frame, rows)

    def max_reach(self, height: int) -> int:
        """The largest number of keys that a block of `height` rows reaches."""
        T = self.frame.T
        ranges = (self.reach(slice(at, min(T, at + height))) for at in range(0, T, height))
        return max((high - low for low, high in ranges), default=0)

    def partial_tiles(self, rows: slice, low: int, high: int, at_a_time: int) -> Iterator[tuple[slice, Visible]]:
        """The tiles of the keys low … high that are not visible to all of these rows, each with its block."""
        start, stop = self.rule.fully_visible(self.frame, rows)
        for first, last in ((low, min(start, high)), (max(low, stop), high)) if start < stop else ((low, high),):
            for at in range(first, last, at_a_time):
                part = slice(at, min(last, at + at_a_time))
                visible = self.block(rows, part)
                if visible is not True:
                    yield part, visible

    def pick(self, b: int, h: int) -> "BoundMask":
        """The same for one head of one sample; its blocks have two axes."""
        return replace(self, rule=self.rule.pick(b, h))

    def only(self, b: int, h: int) -> "BoundMask":
        """The same for a score matrix of this head and sample alone, 1 1 T S."""
        picked = self.rule.pick(b, h)
        return self if picked is self.rule else replace(self, rule=OneHead(picked))

    @property
    def is_causal(self) -> bool:
        """Whether this is exactly `Mask.causal()`, so that a kernel can use its own causal path."""
        return _is_causal(self.rule)

    @property
    def key_rows(self) -> tuple[bool, Array | None] | None:
        """(causal, keep) where the mask only selects keys, and is causal or not; else None.

        `keep` broadcasts to B 1 1 S. Such a mask needs no T × S array in any kernel.
        """
        rules = self.rule.rules if isinstance(self.rule, And) else (self.rule,)
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
        """The visible keys, (1 or B) 1 1 S, where they are the same for all queries and heads; else None."""
        T, S = self.frame.T, self.frame.S
        visible = self.block(slice(0, T), slice(0, S)) & (self.frame.positions(0, S) >= 0)
        visible = visible[(None,) * (4 - visible.ndim)]
        return visible if visible.shape[1:3] == (1, 1) else None

    def sees(self, flagged: Array, rows_at_a_time: int | None = None) -> Array:
        """… B H T: whether a flagged key is visible to each query (`flagged` is … B H S, boolean)."""
        T, S = self.frame.T, self.frame.S
        if not T or 0 in flagged.shape:
            return self._all_rows(flagged[..., :0].any(-1)[..., None], T)
        fast = self.rule.any_visible(self.frame, flagged)
        if fast is not None:
            return self._all_rows(fast, T)
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
        """The answer for each row; a rule that is the same for all rows has answered for one."""
        return answer if answer.shape[-1] == rows else answer | (self.frame.positions(0, rows) < 0)


def _is_causal(rule: Rule) -> bool:
    return isinstance(rule, Band) and rule.left is None and rule.right == 0 and not rule.from_first
