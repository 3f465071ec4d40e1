"""A fork server for fault tests: a program with all imports done that forks a child process for each command.

`python -m regard train …` takes two seconds to import torch; a fork takes none, so that hundreds of processes can be
killed. A child calls `regard.cli.main` with its own arguments, environment, limits and faults; its output goes to a
file. `ForkServer` is the client side, used by the tests.
"""

import importlib
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
"""Small and fast, with dropout, so that a repeated or missing step changes all later ones."""
STEPS, EVERY = 60, 5


class ChildResult(NamedTuple):
    """The exit code of a child, or the negative number of its signal; and its output."""

    code: int
    output: str
    data: str


class Child(NamedTuple):
    """A running child process."""

    server: "ForkServer"
    pid: int
    output: Path
    data: Path

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def end(self, seconds: float = 60.0) -> ChildResult:
        """Wait for its end. After the timeout the child is killed and the test fails."""
        code = self.server.request(do="wait", pid=self.pid, seconds=seconds)
        if code is None:
            self.kill()
            self.server.request(do="wait", pid=self.pid, seconds=10.0)
            raise AssertionError(f"still running after {seconds} s: {self.output.read_text(errors='replace')}")
        return ChildResult(code, self.output.read_text(encoding="utf-8"), self.data.read_text(encoding="utf-8"))


class ForkServer:
    """The client of the fork server. `modules` are imported once, before the forks."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder, self.count = folder, 0
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "PYTHONWARNINGS": "default"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def request(self, **values: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(values) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, *argv: str | Path, **options: Any) -> Child:
        """Start a child. Options: env={…}, limit=largest file in bytes, point=n-th call to be killed at, fault=name.

        If the child ends before that call, `ChildResult.data` is the number of calls.
        """
        self.count += 1
        output, data = (self.folder / f"{kind}-{self.count}" for kind in ("output", "data"))
        pid = self.request(do="start", argv=list(map(str, argv)), output=str(output), data=str(data), **options)
        return Child(self, pid, output, data)

    def run(self, *argv: str | Path, **options: Any) -> ChildResult:
        return self.start(*argv, **options).end()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@contextmanager
def fork_server(folder: Path, *modules: str) -> Iterator[ForkServer]:
    server = ForkServer(folder, *modules)
    try:
        yield server
    finally:
        server.close()


def wait_until(wanted: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.002)


# --- the server ------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer one request per line until the input ends."""
    import regard.cli.training_screen
    import regard.recipes.running  # noqa: F401
    from regard.training import run_reports

    run_reports.SECONDS = 0.0  # speed is not tested here
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        answer = _fork_child(request) if request["do"] == "start" else _wait(request["pid"], request["seconds"])
        print(json.dumps(answer), flush=True)


def _wait(pid: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def _fork_child(request: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    code, calls = 71, list[object]()
    try:
        for number, name in ((0, os.devnull), (1, request["data"]), (2, request["output"])):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(name, flags, 0o666), number)
        os.environ.update(request.get("env", {}))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children of a background job would ignore it
        _apply_faults(request, calls)
        from regard.cli import main

        code = main(request["argv"])
    finally:
        if calls:
            print(len(calls))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return 0


def _apply_faults(request: dict[str, Any], calls: list[object]) -> None:
    """Apply limits and faults to this child."""
    if "limit" in request:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], request["limit"]))
    if "point" in request:
        _kill_at(request["point"], request["argv"][request["argv"].index("--out") + 1], calls)
    if "fault" in request:
        FAULTS[request["fault"]]()


def _kill_at(n: int, out: str, calls: list[object]) -> None:
    """Kill the process at the n-th call: a file below `out` is opened, renamed or removed, or a save makes a call."""
    from regard.training import run_files

    def count(call: object = None) -> None:
        calls.append(call)
        if len(calls) == n:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir") and str(arguments[0]).startswith(out):
            count()

    run_files.fault_point = count
    sys.addaudithook(watch)


def _not_finite() -> None:
    """Make losses NaN from the eighth step on."""
    from regard.training import loop
    from regard.training.step import Objective

    class Broken(Objective):
        calls = 0

        def forward(self, *arguments: Any) -> Any:
            self.calls += 1
            loss = super().forward(*arguments)
            return loss * float("nan") if self.calls > 8 else loss  # the first call measures the operations

    vars(loop)["Objective"] = Broken


def _slow() -> None:
    """Make steps 8 to 12 slow, so that a stop request can arrive during them."""
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
