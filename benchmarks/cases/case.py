"""A benchmark case: its contenders and the bounds of its ratios."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Contender, Measured, Ratio, race


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table of the report."""

    name: str
    what: str
    prepare: Callable[[], dict[str, Contender]]
    ratios: tuple[Ratio, ...]
    rounds: int = 15
    pause: float = 0.0
    warm_up: int = 2
    gpu: bool = False
    """Whether it needs a CUDA device; on a machine that has one, only such cases are measured unless named."""
    on_request: bool = False
    """Whether it needs files that are not in the repository, and is measured only if named."""
    facts: Callable[[Measured], dict[str, float]] = lambda _: {}
    """Numbers measured besides the race, or computed from it, by name."""
    fact_bounds: tuple[tuple[str, str, float | None], ...] = ()
    """(name, unit, at most) of each fact."""

    def run(self, rounds: int | None = None) -> Measured:
        measured = race(self.prepare(), rounds or self.rounds, self.pause, self.warm_up)
        measured.facts = self.facts(measured)
        return measured
