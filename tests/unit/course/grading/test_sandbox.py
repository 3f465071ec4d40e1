"""A learner's program in its own process: answers, limits, and complete cleanup."""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course.exercise import Call, CallResult, Instance, call
from regard.course.grading import child, process, sandbox, serialisation, supervisor
from regard.course.grading.process import NUMPY, TORCH, RunLimits, enforced_limits, limits_for
from regard.course.grading.sandbox import in_process, run
from regard.errors import MissingPackageError, RunError
from regard.messages import use_language

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
QUICK = RunLimits(wall=2.0)

SOFTMAX = """
import numpy as np
print("loaded")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
def rows(cache, k=None):
    cache[0][0] = 7
    return {"first": cache[0], "both": (1, 2.5, None)}
"""


@pytest.mark.parametrize("runner", [in_process, run])
def test_the_sandbox_and_this_process_give_the_same_answers(runner: Callable[..., Any]) -> None:
    x = np.array([[0.0, 1.0], [2.0, 2.0]])
    calls = [call("softmax", x), call("rows", [x, x], k=3), call("softmax", "text"), call("sofmax")]
    outcome = runner(SOFTMAX, calls, "numpy")
    good, changed, raised, missing = outcome.answers
    assert np.allclose(good.value, [[0.26894142, 0.73105858], [0.5, 0.5]])
    assert good.mutated == ()
    assert changed.value["both"] == (1, 2.5, None)
    assert changed.mutated == ("args.0",)
    assert (raised.raised, raised.line) == ("AttributeError", 5)
    assert (missing.fault, missing.details["nearest"]) == ("missing-name", "softmax")
    assert outcome.ended == ""
    assert x[0, 0] == 0


def test_printed_output_is_returned() -> None:
    outcome = run(SOFTMAX + "print('\\x1b[31mred\\x07', end='')", [], "numpy")
    assert outcome.printed == "loaded\n␛[31mred␇"
    assert 0 < outcome.seconds < 60


def test_a_source_that_does_not_load() -> None:
    for runner in (run, in_process):
        outcome = runner("x = 1\n1 / 0", [call("f")], "numpy")
        assert (outcome.ended, outcome.raised, outcome.line, outcome.answers) == ("raises", "ZeroDivisionError", 2, ())
        outcome = runner("def f（x): pass", [call("f")], "numpy")
        assert (outcome.ended, outcome.raised, outcome.line) == ("syntax", "SyntaxError", 1)
        assert "English and type (" in outcome.details["hint"]


def test_refusals_use_the_learners_language() -> None:
    with use_language("zh"):
        (answer,) = run("def f():\n    import regard", [call("f")], "numpy").answers
    assert (answer.fault, answer.line, answer.raised) == ("refused", 2, "PermissionError")
    assert answer.message.startswith("答案不能使用 regard")


def test_earlier_answers_of_a_crashed_program_are_kept() -> None:
    outcome = run("import os\ndef f(n): return n if n < 2 else os._exit(0)", [call("f", n) for n in range(4)], "numpy")
    assert [answer.value for answer in outcome.answers] == [0, 1]
    assert outcome.ended == "killed"


def test_an_infinite_loop_ends_at_the_time_limit() -> None:
    began = time.monotonic()
    outcome = run("def f():\n    while True: pass", [call("f")], "numpy", RunLimits(wall=1.0))
    assert outcome.ended == "too-slow"
    assert time.monotonic() - began < 5  # one second, loading NumPy on a busy machine, and the end


COUNTS = """
import numpy as np
print("loaded")
kept = []
np.loaded = getattr(np, "loaded", 0) + 1
def f(n):
    print("called")
    kept.append(n)
    return [n, len(kept), np.loaded]
"""


@pytest.mark.parametrize("runner", [in_process, run])
def test_one_call_is_made_again_by_the_program_as_loaded_anew(runner: Callable[..., Any]) -> None:
    def chosen(answers: Sequence[CallResult]) -> int:
        assert [answer.value for answer in answers] == [[4, 1, 1], [5, 2, 1]]
        return 1

    try:
        outcome = runner(COUNTS, [call("f", 4), call("f", 5)], "numpy", repeat=chosen)
    finally:
        vars(np).pop("loaded", None)
    assert [answer.value for answer in outcome.repeated] == [[5, turn, 2] for turn in range(1, child.REPEATS + 1)]
    if runner is run:
        assert outcome.printed == "loaded\ncalled\ncalled\n", "only what the first calls printed"
        assert run(COUNTS, [call("f", 4)], "numpy", repeat=lambda _: None).repeated == ()


SECOND = "import os, sys\nif hasattr(sys, 'before'):\n    {}\nsys.before = 1\ndef f(): return 3\n"


@pytest.mark.parametrize(
    "hostile",
    ["os._exit(0)", "sys.exit(0)", "while True: pass", "while True: print('x' * 9999)", "os.closerange(3, 64)"],
)
def test_a_program_that_breaks_while_a_call_is_repeated_keeps_its_answers(
    hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    began = time.monotonic()
    outcome = run(SECOND.format(hostile), [call("f")], "numpy", RunLimits(wall=0.5, cpu=0.5), repeat=lambda _: 0)
    assert time.monotonic() - began < 10  # half a second, and loading NumPy on a busy machine
    assert ([answer.value for answer in outcome.answers], outcome.ended, outcome.printed) == ([3], "", "")
    assert outcome.repeated == ()
    assert process.marked(f"{os.getpid()}-") == []
    assert list(tmp_path.iterdir()) == []


def test_the_time_of_the_grader_is_not_that_of_the_program() -> None:
    def chosen(_: Sequence[CallResult]) -> int:
        time.sleep(0.8)
        return 0

    outcome = run("def f(): return 3", [call("f")], "numpy", RunLimits(wall=0.5), repeat=chosen)
    assert len(outcome.repeated) == child.REPEATS


def test_an_error_while_choosing_a_call_ends_the_program() -> None:
    with pytest.raises(ZeroDivisionError):
        run("def f(): return 3", [call("f")], "numpy", repeat=lambda _: 1 // 0)
    assert process.marked(f"{os.getpid()}-") == []


@pytest.mark.parametrize("task", ["_collect", "_listen"])
def test_too_much_output_is_reported_before_the_pipe_closes(task: str) -> None:
    """Otherwise the program's broken-pipe error might arrive first."""
    events: list[str] = []

    class Pipe:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            while not running._events.empty():
                events.append(running._events.get()[0])

        def fileno(self) -> int:
            return end

    running = process.Process(b"", RunLimits(output=3, answers=3), isolated=False)
    end, other = os.pipe()
    try:
        os.write(other, b"four")
        getattr(running, task)(Pipe())
    finally:
        os.close(end)
        os.close(other)
    assert events[-1] == "flood"


def test_threads_end_by_cpu_time() -> None:
    source = "import hashlib, threading\ndef f():\n    while True: hashlib.sha256(bytes(1 << 20))\n"
    outcome = run(source, [call("f")], "numpy", RunLimits(wall=30.0, cpu=0.5))
    assert outcome.ended == "too-slow"
    assert outcome.seconds < 20


def test_torch_modules_in_their_own_process() -> None:
    source = "from torch import nn\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    source += "        self.W = nn.Linear(n, 1, bias=False)\n    def forward(self, x): return self.W(x)\n"
    source += "def array(x): return x.numpy()\n"
    weight, x = np.array([[2.0, 3.0]]), np.array([[1.0, 1.0]])
    calls = [Call("M", (x,), instance=Instance((2,), state={"W.weight": weight}), gradients=True), call("array", x)]
    for runner in (run, in_process):
        first, second = runner(source, calls, "torch").answers
        assert first.value.tolist() == [[5.0]]
        assert first.value.dtype == np.float32
        assert first.mutated == ()
        assert first.gradients is not None
        assert np.allclose(first.gradients["W.weight"], np.sin(1.0) * x)
        assert second.value.type == "numpy.ndarray"  # a NumPy array is not a tensor


def test_the_random_state_of_the_caller_is_restored() -> None:
    np.random.seed(1)
    first = np.random.random()
    np.random.seed(1)
    in_process("import numpy as np\nnp.random.seed(5)", [], "numpy")
    assert np.random.random() == first


def test_missing_torch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError):
        run("x = 1", [], "torch")


def test_a_python_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_copy_child_modules", lambda code: None)
    with pytest.raises(RunError, match="could not be run"):
        run("x = 1", [], "numpy")


def test_the_environment_is_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    source = "import os, sys\ndef f(): return sorted(os.environ), os.listdir('.'), sys.flags.isolated, sys.stdin.read()"
    (answer,) = run(source, [call("f")], "numpy").answers
    names, files, isolated, typed = answer.value
    assert "SECRET_TOKEN" not in names
    assert (files, isolated, typed) == ([], 1, "")


PLAIN: st.SearchStrategy[Any] = (
    st.none() | st.integers() | st.text(max_size=5) | st.just(np.zeros(3)) | st.just(serialisation.Other("x"))
)
ODD = PLAIN | st.lists(PLAIN, max_size=2) | st.dictionaries(st.text(max_size=5) | st.integers(), PLAIN, max_size=2)
FIELDS = ("value", "after", "gradients", "raised", "message", "line", "fault", "details")


@given(ODD | st.dictionaries(st.sampled_from(FIELDS), ODD))
def test_forged_messages_are_read_safely(message: Any) -> None:
    plain_request = {"args": (np.ones(2),), "kwargs": {"x": 1}}
    for plain_call in (plain_request, None):
        answer = sandbox._answer(message, plain_call, "x = 1")
        assert answer.fault in ("", *sandbox.FAULTS)
        assert isinstance(answer.raised + answer.message, str)
    if isinstance(message, dict):
        message = {**message, "raised": "SyntaxError", "details": {"column": "x", "what": "y"}}
        assert sandbox._not_loaded(message, "x = 1").ended == "syntax"


# --- what is killed, and what is left ------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except (OSError, IndexError):
            continue
    return found


def running(source: str) -> tuple[threading.Thread, list[Any], int]:
    """A run in a thread, its future outcome, and the pid of its supervisor."""
    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.append(run(source, [call("f")], "numpy", QUICK)))
    before = set(children(os.getpid()))
    thread.start()
    last = time.monotonic() + 20
    while time.monotonic() < last:
        for pid in set(children(os.getpid())) - before:
            if children(pid):
                return thread, outcomes, pid
        time.sleep(0.01)
    raise AssertionError("no supervisor was started")


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_killed_or_stopped_supervisor_leaves_no_process(number: int) -> None:
    thread, outcomes, pid = running("import time\ndef f(): time.sleep(1000)")
    time.sleep(0.5)
    os.kill(pid, number)
    thread.join(timeout=30)
    assert outcomes[0].ended in ("killed", "too-slow")
    assert process.marked(f"{os.getpid()}-") == []


@LINUX
def test_the_supervisor_kills_daemons(tmp_path: Path) -> None:
    """Only the supervisor, with a program that becomes a daemon."""
    daemon = tmp_path / "daemon.py"
    daemon.write_text(
        "import os, signal, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork() == 0:\n        os.setsid()\n        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    time.sleep(1000)\n"
        "time.sleep(0.2)\n"
    )
    mark = f"{os.getpid()}-daemon"
    options = [str(os.getpid()), "20", "0", "0", "", ""]
    command = [sys.executable, "-I", "-S", "-B", supervisor.__file__, *options, sys.executable, str(daemon)]
    began = time.monotonic()
    done = subprocess.run(command, env={process.MARK: mark}, check=False)
    assert done.returncode == supervisor.DONE
    assert time.monotonic() - began < 10
    assert process.marked(mark) == []


@LINUX
def test_processes_of_a_dead_supervisor_are_found_by_their_mark() -> None:
    mark = f"{os.getpid()}-left"
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], env={process.MARK: mark})
    while left.pid not in process.marked(mark):
        time.sleep(0.01)
    process.kill_marked(mark)
    assert left.wait(timeout=5) == -signal.SIGKILL


@LINUX
def test_the_supervisor_enforces_the_time_limit() -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(1000)"]
    command = [
        sys.executable,
        "-I",
        "-S",
        "-B",
        supervisor.__file__,
        str(os.getpid()),
        "0.5",
        "0",
        "0",
        "",
        "",
        *sleeper,
    ]
    assert subprocess.run(command, check=False).returncode == supervisor.OUT_OF_TIME
    missing = [*command[:-3], "/no/such/program"]
    assert subprocess.run(missing, check=False, stderr=-3).returncode == supervisor.NOT_STARTED


def test_folders_are_removed_with_any_content(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    folder = tmp_path / "run"
    (folder / "locked" / "inside").mkdir(parents=True)
    (folder / "locked" / "link").symlink_to(kept)
    (folder / "link").symlink_to(kept)
    (folder / "locked").chmod(0)
    supervisor.remove(folder)
    assert not folder.exists()
    assert (kept / "file").exists()


def test_limits_of_the_tracks() -> None:
    assert (limits_for("numpy"), limits_for("torch")) == (NUMPY, TORCH)
    assert {"wall", "output"} <= set(enforced_limits())
