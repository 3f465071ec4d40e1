"""Rules about rules: what `~`, `&` and `|` make of masks. Each asks its parts and puts their answers together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from regard.arrays import Array
from regard.axes import Shape
from regard.masks.intervals import Runs
from regard.masks.rules import Band, Frame, OfKeys, Rule, Seen, Segments


@dataclass(frozen=True, eq=False, slots=True)
class Not(Rule):
    """What the rule hides, and nothing else."""

    rule: Rule

    def align(self, frame: Frame) -> Rule:
        return Not(self.rule.align(frame))

    def pick(self, b: int, h: int) -> Rule:
        return Not(self.rule.pick(b, h))

    def block(self, frame: Frame, rows: slice, cols: slice) -> Seen:
        seen = self.rule.block(frame, rows, cols)
        return (not seen) if isinstance(seen, bool) else ~seen

    def leads(self) -> Iterator[Shape]:
        return self.rule.leads()


@dataclass(frozen=True, eq=False, slots=True)
class Joined(Rule):
    """Several rules asked together."""

    rules: tuple[Rule, ...]

    def align(self, frame: Frame) -> Rule:
        return replace(self, rules=tuple([rule.align(frame) for rule in self.rules]))

    def pick(self, b: int, h: int) -> Rule:
        return replace(self, rules=tuple([rule.pick(b, h) for rule in self.rules]))

    def leads(self) -> Iterator[Shape]:
        for rule in self.rules:
            yield from rule.leads()


@dataclass(frozen=True, eq=False, slots=True)
class Both(Joined):
    """What all of the rules allow."""

    def block(self, frame: Frame, rows: slice, cols: slice) -> Seen:
        seen: Seen = True
        for rule in self.rules:
            one = rule.block(frame, rows, cols)
            if one is False:
                return False
            if one is not True:
                seen = one if seen is True else seen & one
        return seen

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return _common([rule.reach(frame, rows) for rule in self.rules])

    def certain(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return _common([rule.certain(frame, rows) for rule in self.rules])

    def sees(self, frame: Frame, flagged: Array) -> Array | None:
        # What is said of keys alone only thins out what is flagged; then the rules about both sides are left to ask.
        others = []
        for rule in self.rules:
            if isinstance(rule, OfKeys):
                flagged = flagged & rule.keeps(frame)
            else:
                others.append(rule)
        if not others:
            return flagged.any(-1)[..., None]
        if len(others) == 1:
            return others[0].sees(frame, flagged)
        runs = _runs(others, frame)
        return None if runs is None else runs.see(flagged)


@dataclass(frozen=True, eq=False, slots=True)
class Either(Joined):
    """What any of the rules allows."""

    def block(self, frame: Frame, rows: slice, cols: slice) -> Seen:
        seen: Seen = False
        for rule in self.rules:
            one = rule.block(frame, rows, cols)
            if one is True:
                return True
            if one is not False:
                seen = one if seen is False else seen | one
        return seen

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        ranges = [rule.reach(frame, rows) for rule in self.rules]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def sees(self, frame: Frame, flagged: Array) -> Array | None:
        answers = [rule.sees(frame, flagged) for rule in self.rules]
        if any(answer is None for answer in answers):
            return None
        seen: Any = answers[0]
        for answer in answers[1:]:
            seen = seen | answer
        return seen

    def certain(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return max((rule.certain(frame, rows) for rule in self.rules), key=lambda part: part[1] - part[0])


def _runs(rules: list[Rule], frame: Frame) -> Runs | None:
    """What bands, and segments at most once, allow together; None where there is something else."""
    bands = [rule.edges(frame) for rule in rules if isinstance(rule, Band)]
    segments = [rule for rule in rules if isinstance(rule, Segments)]
    if not bands or len(segments) > 1 or len(bands) + len(segments) < len(rules):
        return None
    low, high = bands[0]
    for other_low, other_high in bands[1:]:
        low, high = low.clip(min=other_low), high.clip(max=other_high)
    return segments[0].runs(between=(low, high)) if segments else Runs(None, low[None], high[None])


def _common(ranges: list[tuple[int, int]]) -> tuple[int, int]:
    """What all of the ranges hold."""
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    return low, max(low, high)
