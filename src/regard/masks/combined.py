"""Rules about rules: what `~`, `&` and `|` make of masks. Each asks its parts and puts their answers together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from regard.axes import Shape
from regard.kinds import Array
from regard.masks.rules import Frame, Keys, Rule, Seen


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
        # Kept keys only thin out what is flagged; then one rule by position is left to ask.
        others = [rule for rule in self.rules if not isinstance(rule, Keys)]
        for rule in self.rules:
            flagged = rule.kept(flagged) if isinstance(rule, Keys) else flagged
        if not others:
            return flagged.any(-1)[..., None]
        return others[0].sees(frame, flagged) if len(others) == 1 else None


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


def _common(ranges: list[tuple[int, int]]) -> tuple[int, int]:
    """What all of the ranges hold."""
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    return low, max(low, high)
