"""What a learner waits for: a check from the command line, the list of exercises, and the model of own parts."""

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.measure import Contender, Measured
from regard.course.catalogue import exercise
from regard.course.learner_model.building import USED
from regard.course.passed_answers import PassedAnswers

LIST = "regard learn list"
# A wrong answer that no known mistake explains takes longest: every mistake is tried, and then every pair.
UNEXPLAINED = {"self-attention": ("np.sqrt(K.shape[-1])", "3.3"), "encoder-layer": ("math.sqrt(self.d_k)", "1.7")}
BOUNDS = {"self-attention": 1.0, "encoder-layer": 3.0}
"""Bounds in seconds for 95 of 100 checks, with NumPy and with PyTorch."""


def learn(folder: Path, *arguments: str | Path, expected: int = 0) -> None:
    """Run one command in a fresh process with its own progress file; another exit code is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", "learn", *arguments],
        env={**os.environ, "REGARD_HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == expected, (arguments, done.returncode)


def checks() -> dict[str, Contender]:
    folder = Path(tempfile.mkdtemp())
    contenders: dict[str, Contender] = {LIST: partial(learn, folder, "list")}
    for name, (old, new) in UNEXPLAINED.items():
        right = exercise(name).solution
        assert old in right
        for kind, text in (("right", right), ("wrong", right.replace(old, new))):
            file = folder / f"{name}-{kind}.py"
            file.write_text(text, encoding="utf-8")
            arguments = ("check", name, file, "--json")
            contenders[f"{name}, {kind}"] = partial(learn, folder, *arguments, expected=int(kind == "wrong"))
    return contenders


def facts(measured: Measured) -> dict[str, float]:
    """p50 and p95 of each."""
    found: dict[str, float] = {}
    for contender, times in measured.times.items():
        hundredths = statistics.quantiles(times, n=100, method="inclusive")
        found |= {f"{contender}: p50": hundredths[49], f"{contender}: p95": hundredths[94]}
    return found


def _bounds() -> tuple[tuple[str, str, float | None], ...]:
    rows: list[tuple[str, str, float | None]] = [(f"{LIST}: p50", "s", None), (f"{LIST}: p95", "s", 0.4)]
    for name, bound in BOUNDS.items():
        for kind in ("right", "wrong"):
            rows += [(f"{name}, {kind}: p50", "s", None), (f"{name}, {kind}: p95", "s", bound)]
    return tuple(rows)


CHECK = Case(
    name="learn-check",
    what="`regard learn check ID FILE --json` in a fresh process, of an answer that is right and of one that no known "
    "mistake explains, with NumPy (self-attention) and with PyTorch (encoder-layer); and `regard learn list`",
    prepare=checks,
    rounds=20,
    warm_up=1,
    facts=facts,
    fact_bounds=_bounds(),
    ratios=(),
)

BUILD = "regard learn build"


def builds() -> dict[str, Contender]:
    folder = Path(tempfile.mkdtemp())
    for part in USED["translator"]:
        PassedAnswers(folder).keep(part, exercise(part).solution)
    return {BUILD: partial(learn, folder, "build", "I love you")}


BUILDING = Case(
    name="learn-build",
    what="`regard learn build` in a fresh process: the bundled translator translates “I love you” with every part from "
    "passed programs, in the sandbox, and once more with ours",
    prepare=builds,
    rounds=10,
    warm_up=1,
    facts=facts,
    fact_bounds=((f"{BUILD}: p50", "s", None), (f"{BUILD}: p95", "s", 3.0)),
    ratios=(),
)

CASES = (CHECK, BUILDING)
