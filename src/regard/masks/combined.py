"""Combined rules: `~`, `&` and `|` of masks. Each evaluates its parts and combines the results."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from regard.arrays import Array
from regard.axes import Shape
from regard.masks.intervals import KeyRanges
from regard.masks.rules import Band, Frame, KeyRule, Rule, Segments, Visible


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
