"""Training: the cost of its screen and its log."""

import io
import tempfile
import time
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured

SHARE = "share of a step spent on reporting"
STEPS = 300
"""Steps of the smallest recipe: they take a few milliseconds, so reporting has the largest share."""


def reporting_share(_: Measured) -> dict[str, float]:
    """The share of a step's time spent on the live screen and metrics.jsonl.

    Both are timed inside one run: writing and notifying on this thread, and drawing on its own.
    """
    from rich.live import Live

    from regard.cli.training_screen import TrainingScreen
    from regard.recipes import read_recipe
    from regard.recipes.running import train
    from regard.training.run_reports import RunReports

    spent = {"logged": 0.0, "drawn": 0.0}

    def time_method(kind: type, name: str, into: str) -> None:
        plain = getattr(kind, name)

        def run(self: object, *args: object, **kwargs: object) -> object:
            start = time.thread_time()
            try:
                return plain(self, *args, **kwargs)
            finally:
                spent[into] += time.thread_time() - start

        setattr(kind, name, run)

    time_method(RunReports, "step", "logged")
    time_method(Live, "refresh", "drawn")
    recipe = read_recipe("copy", {"training.steps": str(STEPS), "training.valid_every": "none"})
    with tempfile.TemporaryDirectory() as folder, TrainingScreen("copy", file=_Terminal()) as screen:
        start = time.perf_counter()
        train(recipe, data=None, out=Path(folder) / "run", listeners=[screen])
        took = time.perf_counter() - start
    return {SHARE: 100 * sum(spent.values()) / took, "steps per second": STEPS / took}


class _Terminal(io.StringIO):
    """A stream that claims to be a terminal, so that the live screen is drawn."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def nothing() -> dict[str, Contender]:
    return {}


REPORTING = Case(
    name="train-display",
    what=f"recipe copy, {STEPS} steps with the live screen and metrics.jsonl, two cores",
    prepare=nothing,
    rounds=1,
    warm_up=0,
    facts=reporting_share,
    fact_bounds=((SHARE, "%", 1.0), ("steps per second", "", None)),
    ratios=(),
)

CASES = (REPORTING,)
