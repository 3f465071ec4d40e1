"""Timing of contenders in turns, so that a slow minute of the machine affects all of them."""

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Contender = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The comparison of two contenders: `over` divided by `under`, in time unless `work` is given.

    `must` and `aim` are bounds: upper ones, or lower ones if `higher_is_better`.
    """

    label: str
    over: str
    under: str
    must: float | None = None
    aim: float | None = None
    higher_is_better: bool = False
    work: tuple[float, float] = (1.0, 1.0)
    """The work of one run of `over` and of `under`; with it the ratio compares rates instead of times."""

    def value(self, over: float, under: float) -> float:
        """The ratio for two times in seconds."""
        if self.work == (1.0, 1.0):
            return over / under
        return (self.work[0] / over) / (self.work[1] / under)

    def verdict(self, value: float) -> str:
        """aim, must, short, or a dash where there is no bound."""
        for name, bound in (("aim", self.aim), ("must", self.must)):
            if bound is not None and (value >= bound if self.higher_is_better else value <= bound):
                return name
        return "–" if self.must is None and self.aim is None else "short"


@dataclass(kw_only=True)
class Measured:
    """The times of every contender, by round, and facts that are not times."""

    times: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])

    def best_ratio(self, ratio: Ratio) -> float:
        """The ratio of the shortest times: the least affected by other processes."""
        return ratio.value(min(self.times[ratio.over]), min(self.times[ratio.under]))

    def ratio(self, ratio: Ratio) -> tuple[float, float, float]:
        """The median over rounds, and the quartiles around it: each round compares runs at the same moment."""
        pairs = zip(self.times[ratio.over], self.times[ratio.under], strict=True)
        values = sorted(ratio.value(over, under) for over, under in pairs)
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return low, middle, high


def race(contenders: dict[str, Contender], rounds: int, pause: float = 0.0, warm_up: int = 2) -> Measured:
    """Run every contender once per round, in varying order, after warming up.

    `pause` is slept before each run, for contenders that leave spinning threads behind.
    """
    order = list(contenders.items())
    shuffle = random.Random(0).shuffle
    measured = Measured(times={name: [] for name in contenders})
    for _ in range(warm_up):
        for run in contenders.values():
            run()
    for _ in range(rounds):
        shuffle(order)
        for name, run in order:
            time.sleep(pause)
            start = time.perf_counter()
            run()
            measured.times[name].append(time.perf_counter() - start)
    return measured
