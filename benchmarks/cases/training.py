"""Training: what its display and its log cost."""

import io
import tempfile
import time
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured

TOLD = "share of a step that telling takes"
STEPS = 300
"""Of the smallest recipe: a step of some milliseconds, against which telling weighs most."""


def telling(_: Measured) -> dict[str, float]:
    """The share of a step's time that goes into the live screen and metrics.jsonl.

    Both are timed inside one run: the calls that write and tell, on this thread, and the drawing, on its own.
    """
    from rich.live import Live

    from regard.cli.training_screen import TrainingScreen
    from regard.recipes import read_recipe
    from regard.recipes.running import train
    from regard.training.journal import Journal

    spent = {"told": 0.0, "drawn": 0.0}

    def timed(kind: type, name: str, into: str) -> None:
        plain = getattr(kind, name)

        def run(self: object, *given: object, **named: object) -> object:
            start = time.thread_time()
            try:
                return plain(self, *given, **named)
            finally:
                spent[into] += time.thread_time() - start

        setattr(kind, name, run)

    timed(Journal, "step", "told")
    timed(Live, "refresh", "drawn")
    recipe = read_recipe("copy", {"training.steps": str(STEPS), "training.valid_every": "none"})
    with tempfile.TemporaryDirectory() as folder, TrainingScreen("copy", file=_Terminal()) as screen:
        start = time.perf_counter()
        train(recipe, data=None, out=Path(folder) / "run", listeners=[screen])
        took = time.perf_counter() - start
    return {TOLD: 100 * sum(spent.values()) / took, "steps per second": STEPS / took}


class _Terminal(io.StringIO):
    """A stream that takes itself for a terminal, so that the live screen is drawn."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def nothing() -> dict[str, Contender]:
    return {}


TELLING = Case(
    name="train-telling",
    what=f"recipe copy, {STEPS} steps with the live screen and metrics.jsonl, two cores",
    prepare=nothing,
    rounds=1,
    warm_up=0,
    facts=telling,
    fact_bounds=((TOLD, "%", 1.0), ("steps per second", "", None)),
    ratios=(),
)

CASES = (TELLING,)
