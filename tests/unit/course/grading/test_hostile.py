"""Hostile programs: none passes, none survives, each gets its verdict in time.

Each file of tests/course/hostile is a learner's answer to `softmax(x, axis)`. The table says how its run ends and
what its first answer is: "right" where the numbers are right and only the rest is odd, "wrong" for other numbers,
"-" where there is no answer, "Other …" for a value that does not travel, else the fault or the exception.
"""

import os
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.course.exercise import Call, CallResult
from regard.course.grading import process, sandbox
from regard.course.grading.process import RunLimits
from regard.course.grading.sandbox import run
from regard.course.grading.serialisation import Other

FOLDER = Path(__file__).parents[3] / "course" / "hostile"
LIMITS = RunLimits(wall=4.0, cpu=4.0, memory=128 << 20, output=50_000)
IMPATIENT = replace(LIMITS, wall=0.8)
"""For programs that never end."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what the kernel refuses, and /proc, are Linux's")

EXPECTED = {
    # infinite loops and daemons
    "loop_at_load": ("too-slow", "-"),
    "loop_in_call": ("too-slow", "-"),
    "loop_in_c": ("too-slow", "-"),
    "loop_in_regex": ("too-slow", "-"),
    "loop_on_the_second_call": ("too-slow", "right"),
    "loop_that_catches_everything": ("too-slow", "-"),
    "loop_in_the_message": ("too-slow", "-"),
    "loop_in_del": ("too-slow", "-"),
    "loop_ignoring_signals": ("too-slow", "-"),
    "loop_in_threads": ("too-slow", "-"),
    "sleeps_for_ever": ("too-slow", "-"),
    "stops_itself": ("too-slow", "-"),
    "own_session": ("too-slow", "-"),
    "half_a_message": ("too-slow", "-"),
    "exit_handler_loops": ("", "right"),
    "thread_that_stays": ("", "right"),
    "ten_thousand_threads": ("", "RuntimeError"),
    "endless_import": ("raises", "-"),
    # output and memory
    "prints_for_ever": ("too-much-output", "-"),
    "prints_for_ever_at_load": ("too-much-output", "-"),
    "prints_colours": ("", "right"),
    "prints_half_characters": ("", "right"),
    "prints_a_verdict": ("killed", "-"),
    "two_gigabytes_of_text": ("too-much-memory", "too-much-memory"),
    "memory_in_steps": ("too-much-memory", "too-much-memory"),
    "memory_by_numpy": ("too-much-memory", "too-much-memory"),
    "memory_at_load": ("too-much-memory", "-"),
    "recursion": ("", "RecursionError"),
    "recursion_without_limit": ("killed|too-much-memory", "-|too-much-memory"),
    "crash": ("killed", "-"),
    "aborts": ("killed", "-"),
    # processes and signals
    "fork_bomb": ("refused", "-"),
    "fork_by_ctypes": ("", "refused native"),
    "fork_by_an_open_library": ("", "refused native"),
    "fork_below_the_hook": ("", "PermissionError"),
    "fork_by_a_disguised_library": ("", "wrong"),
    "signals_by_a_disguised_library": ("", "wrong"),
    "daemon": ("", "refused process"),
    "another_python": ("", "refused process"),
    "a_shell": ("", "refused process"),
    "spawned": ("", "refused process"),
    "becomes_another_program": ("refused", "-"),
    "pool": ("", "refused process"),
    "pseudo_terminal": ("", "refused process"),
    "kills_its_parent": ("", "refused signal"),
    "kills_its_group": ("", "refused signal"),
    "kills_everybody": ("", "refused signal"),
    "exits_at_load": ("raises", "-"),
    "exits_in_a_call": ("", "SystemExit"),
    "exits_at_once": ("killed", "-"),
    "interrupts": ("", "KeyboardInterrupt"),
    "interrupts_from_a_thread": ("killed|too-slow|raises|", "-|KeyboardInterrupt"),
    "alarm": ("killed|", "-|wrong|RuntimeError"),
    # the grader's process, pipe and output
    "patched_numpy": ("", "AttributeError"),
    "patched_builtins": ("killed", "-"),
    "patched_json": ("garbled", "-"),
    "patched_os": ("", "wrong"),
    "patched_pytest": ("", "wrong"),
    "hidden_change": ("", "right, changed"),
    "forged_answers": ("", "wrong, changed"),
    "garbage_in_the_pipe": ("garbled", "-"),
    "closes_everything": ("killed", "-"),
    "replaced_output": ("", "right"),
    "looks_into_frames": ("", "wrong"),
    "looks_into_memory": ("", "refused inside"),
    "looks_into_its_parent": ("", "refused inside"),
    "traces_everything": ("", "wrong"),
    "own_audit_hook": ("", "right"),
    "modules_gone": ("", "ModuleNotFoundError|right"),
    "own_codec": ("", "right"),
    "swallows_refusals": ("", "wrong"),
    "state_between_calls": ("", "wrong"),
    "changes_its_input": ("", "right, changed"),
    # our own package
    "imports_regard": ("refused", "-"),
    "imports_regard_when_called": ("", "refused package"),
    "imports_deep_learning": ("refused", "-"),
    "imports_by_hand": ("refused", "-"),
    "takes_down_the_fence": ("killed|", "-|KeyError|ModuleNotFoundError|refused package"),
    "reads_the_solution": ("refused", "-"),
    "reads_the_solution_through_a_link": ("refused", "-"),
    "reads_the_solution_from_its_folder": ("refused", "-"),
    # forged or invalid values
    "lying_array": ("", "Other Right"),
    "lying_object": ("", "Other Right"),
    "lying_float": ("", "wrong"),
    "lying_list": ("", "Other Right"),
    "lying_text": ("", "Other dict"),
    "lying_metaclass": ("", "Odd"),
    "loop_in_repr": ("", "Other Endless"),
    "gives_nan": ("", "wrong"),
    "gives_its_input": ("", "wrong"),
    "gives_objects": ("", "Other ndarray[object]"),
    "gives_a_list": ("", "wrong"),
    "gives_a_masked_array": ("", "Other numpy.ma.MaskedArray"),
    "gives_a_generator": ("", "Other generator"),
    "gives_a_coroutine": ("", "Other coroutine"),
    "gives_a_module": ("", "Other module"),
    "gives_itself": ("", "Other function"),
    "gives_a_deep_list": ("", "Other list"),
    "gives_a_circle": ("", "Other list"),
    "gives_a_million_numbers": ("", "Other tuple"),
    "gives_a_huge_number": ("", "Other int"),
    "gives_a_trillion_numbers": ("", "Other numpy.ndarray"),
    "gives_much": ("too-much-output", "wrong"),
    "gives_a_file": ("", "Other numpy.memmap"),
    "gives_what_unpickles": ("", "Other Payload"),
    # keyboard, screen, files, network
    "asks_the_keyboard": ("", "EOFError"),
    "opens_a_window": ("", "TclError|ModuleNotFoundError|ImportError"),
    "opens_a_browser": ("", "wrong|refused process"),
    "deletes_its_folder": ("", "PermissionError|OSError"),
    "leaves_its_folder": ("", "right"),
    "locks_its_folder": ("", "right"),
    "plants_links": ("", "right"),
    "fills_the_disk": ("", "OSError"),
    "many_files": ("", "refused files"),
    "deep_folders": ("", "refused files"),
    "writes_elsewhere": ("", "refused write"),
    "writes_below_the_hook": ("", "PermissionError|OSError"),
    "deletes_elsewhere": ("", "refused write"),
    "moves_elsewhere": ("", "refused write"),
    "connects": ("", "refused network"),
    "downloads": ("", "refused network"),
    "connects_below_the_hook": ("", "refused network"),
    "lifts_its_limits": ("refused", "-"),
    "hides_from_proc": ("refused", "-"),
    # sources
    "homoglyph": ("", "missing-name sоftmax"),
    "zero_width": ("syntax", "-"),
    "form_feeds": ("", "right"),
    "full_width": ("syntax", "-"),
    "full_width_quotes": ("syntax", "-"),
    "not_python": ("syntax", "-"),
    "missing_package": ("raises", "-"),
    "a_constant": ("", "not-callable"),
    "deep_brackets": ("syntax", "-"),
}


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def calls() -> list[Call]:
    rng = np.random.default_rng()
    shapes = (((3, 4), -1), ((2, 5), 0), ((6,), 0))
    return [Call("softmax", (rng.normal(size=shape),), {"axis": axis}) for shape, axis in shapes]


def described(answer: CallResult, call: Call) -> str:
    """The result as named in the table."""
    if answer.fault:
        return f"{answer.fault} {answer.details.get('what') or answer.details.get('nearest') or ''}".strip()
    if answer.raised:
        return answer.raised
    if isinstance(answer.value, Other):
        return f"Other {answer.value.type}"
    right = softmax(call.args[0], call.kwargs["axis"])
    same = type(answer.value) is np.ndarray and answer.value.shape == right.shape and np.allclose(answer.value, right)
    return ("right" if same else "wrong") + (", changed" if answer.mutated else "")


def files_left() -> set[str]:
    """Files that the programs try to write."""
    places = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/dev/shm"), Path.cwd(), Path("/etc"))
    return {str(path) for place in places if place.is_dir() for path in place.glob("regard_hostile*")}


def test_the_table_lists_every_hostile_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXPECTED)
    assert len(EXPECTED) >= 60


@pytest.mark.usefixtures("signals_at_default")
@pytest.mark.parametrize("name", EXPECTED)
def test_hostile_programs_do_no_harm_and_never_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended, first = EXPECTED[name]
    limits = IMPATIENT if ended == "too-slow" else LIMITS
    requested = calls()
    began = time.monotonic()
    outcome = run((FOLDER / f"{name}.py").read_bytes(), requested, "numpy", limits)
    took = time.monotonic() - began

    answers = [described(answer, call) for answer, call in zip(outcome.answers, requested, strict=False)]
    assert outcome.ended in ended.split("|")
    assert (answers or ["-"])[0] in first.split("|")
    # Only a program that computes the result passes, and only if it answered every call.
    assert answers != ["right"] * len(requested) or first == "right"
    assert process.marked(f"{os.getpid()}-") == []
    assert took < limits.wall + 5.0  # loading NumPy beside other tests, and less than a second to end it
    assert list(tmp_path.iterdir()) == []
    assert not files_left()
    text = outcome.printed + outcome.message + "".join(answer.message for answer in outcome.answers)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)


BYTES = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t\n", "empty"),
    "ten megabytes": (b"x = 1\n" * 1_700_000, "characters"),
    "not utf-8": ("x = '注意力'\n".encode("gbk"), "UTF-8"),
    "utf-16": ("x = 1\n".encode("utf-16"), "UTF-16"),
    "nul": (b"x = 1\ny = \0\n", "line 2"),
    "another codec": (b"# coding: rot13\nqrs s(): pass\n", "rot13"),
    "unknown codec": (b"# -*- coding: nonsense -*-\n", "nonsense"),
    "half a character": (b"x = 1\n# \xe6\xb3\n", "line 2"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_not_text(name: str) -> None:
    raw, message = BYTES[name]
    outcome = run(raw, calls(), "numpy", LIMITS)
    assert outcome.ended == "syntax"
    assert message in outcome.message


def test_hostile_programs_are_harmless_without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container without namespaces the hook and the kernel rules still apply."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    isolated = sandbox._run
    monkeypatch.setattr(sandbox, "_run", lambda *args, **_: isolated(*args, isolated=False))
    for name in ("imports_regard_when_called", "reads_the_solution", "connects", "fork_below_the_hook"):
        requested = calls()
        outcome = run((FOLDER / f"{name}.py").read_bytes(), requested, "numpy", LIMITS)
        answers = [described(answer, call) for answer, call in zip(outcome.answers, requested, strict=False)]
        assert outcome.ended == EXPECTED[name][0]
        assert (answers or ["-"])[0] == EXPECTED[name][1]
