"""Lives of a run: a small program that has everything imported, and forks a child for each command it is given.

`python -m regard train …` takes two seconds to import torch; a fork takes none, so hundreds of lives can be ended. A
child calls `regard.cli.main` with arguments, environment, limits and faults of its own; what it says goes to a file.
`Lives` is the other end, in the test; it knows nothing about what is asserted.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

RECIPE = """
task = "synthetic"
[puzzle]
kind = "copy"
shortest = 2
longest = 4
valid_examples = 8
[data]
max_len = 5
batch_size = 4
[model]
preset = "paper_2017"
n_layers = 1
d_model = 16
n_heads = 2
d_ff = 16
dropout = 0.1
[training]
steps = 60
lr = 0.003
schedule = "cosine"
warmup = 5
valid_every = 10
save_every = 5
"""
"""Small and quick, with dropout, so that a step done twice or left out is seen in all that follow."""
STEPS, EVERY = 60, 5


class Ended(NamedTuple):
    """How a life ended: its exit code, or the signal's number below zero; and what it said."""

    code: int
    said: str
    data: str


class Life(NamedTuple):
    """A child that goes on."""

    lives: "Lives"
    pid: int
    said: Path
    data: Path

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def end(self, seconds: float = 60.0) -> Ended:
        """Wait for it; a child that does not end is killed and the test fails."""
        code = self.lives.ask(do="wait", pid=self.pid, seconds=seconds)
        if code is None:
            self.kill()
            self.lives.ask(do="wait", pid=self.pid, seconds=10.0)
            raise AssertionError(f"still running after {seconds} s: {self.said.read_text(errors='replace')}")
        return Ended(code, self.said.read_text(encoding="utf-8"), self.data.read_text(encoding="utf-8"))


class Lives:
    """The program, from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "PYTHONWARNINGS": "default"}
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def ask(self, **question: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, *argv: str | Path, **ways: Any) -> Life:
        """Begin a life. `ways`: env={…}, limit=bytes of a file, point=n-th call to be killed at, fault=name.

        A point that is never reached is answered with the number of those that were, in `Ended.data`.
        """
        self.count += 1
        said, data = (self.folder / f"{kind}-{self.count}" for kind in ("said", "data"))
        pid = self.ask(do="start", argv=list(map(str, argv)), said=str(said), data=str(data), **ways)
        return Life(self, pid, said, data)

    def run(self, *argv: str | Path, **ways: Any) -> Ended:
        return self.start(*argv, **ways).end()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@contextmanager
def living(folder: Path) -> Iterator[Lives]:
    lives = Lives(folder)
    try:
        yield lives
    finally:
        lives.close()


def until(wanted: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


# --- the program -----------------------------------------------------------------------------------------


def serve() -> None:
    """Answer one question a line until there are no more."""
    import regard.cli.training_screen
    import regard.recipes.running  # noqa: F401
    from regard.training import journal

    journal.SECONDS = 0.0  # nothing here is about speed
    for line in sys.stdin:
        question = json.loads(line)
        answer = _born(question) if question["do"] == "start" else _waited(question["pid"], question["seconds"])
        print(json.dumps(answer), flush=True)


def _waited(pid: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def _born(question: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    code, calls = 71, list[object]()
    try:
        for number, name in ((0, os.devnull), (1, question["data"]), (2, question["said"])):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(name, flags, 0o666), number)
        os.environ.update(question.get("env", {}))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children would ignore it
        _spoil(question, calls)
        from regard.cli import main

        code = main(question["argv"])
    finally:
        if calls:
            print(len(calls))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return 0


def _spoil(question: dict[str, Any], calls: list[object]) -> None:
    """Limits and faults of this child."""
    if "limit" in question:
        resource.setrlimit(resource.RLIMIT_FSIZE, (question["limit"], question["limit"]))
    if "point" in question:
        _die_at(question["point"], question["argv"][question["argv"].index("--out") + 1], calls)
    if "fault" in question:
        FAULTS[question["fault"]]()


def _die_at(n: int, out: str, calls: list[object]) -> None:
    """Be killed at the n-th time that something is opened, renamed or removed below `out`, or a call of a save done."""
    from regard.training import durable

    def count(call: object = None) -> None:
        calls.append(call)
        if len(calls) == n:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir") and str(arguments[0]).startswith(out):
            count()

    durable.fault_point = count
    sys.addaudithook(watch)


def _not_finite() -> None:
    """Losses that are no numbers, from the eighth step on."""
    from regard.training import loop

    class Broken(loop.Objective):
        calls = 0

        def forward(self, *arguments: Any) -> Any:
            self.calls += 1
            loss = super().forward(*arguments)
            return loss * float("nan") if self.calls > 8 else loss  # the first is the one that is measured

    loop.Objective = Broken  # type: ignore[misc]


def _slow() -> None:
    """Steps 8 to 12 take their time: time to be asked to stop."""
    from regard.training import loop

    seed_step = loop.seed_step

    def slowly(seed: int, step: int, rank: int) -> None:
        if 8 <= step <= 12:
            time.sleep(0.4)
        seed_step(seed, step, rank)

    loop.seed_step = slowly


FAULTS = {"not-finite": _not_finite, "slow": _slow}


if __name__ == "__main__":
    serve()
