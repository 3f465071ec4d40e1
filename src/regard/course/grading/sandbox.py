"""A learner's program run in its own process: the calls that it is asked for, and the answers that come back."""

import importlib.util
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.course.exercise import Call, Track
from regard.course.grading import child, serialisation, supervisor
from regard.course.grading.answers import Answer, Outcome
from regard.course.grading.learner_source import look, syntax_hint
from regard.course.grading.process import HIDDEN, Limits, Process, limits_for
from regard.course.grading.verdict import plain
from regard.errors import MissingPackageError, RunError
from regard.messages import say

MODULE = "deep_learning.activations"

SOFTMAX = """
import numpy as np


def softmax(x, axis=-1):
    array = np.asarray(x, dtype=float)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"there is no axis {axis} in the shape {array.shape}")
    largest = array.max(axis=axis, keepdims=True, initial=-np.inf)
    powers = np.exp(array - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)
"""
"""As `deep_learning.activations` has it: stable, and 0 where all is -inf."""


def given(targets: Iterable[str]) -> dict[str, str]:
    """The modules that a program may import, by name, for a task that asks for these functions.

    >>> list(given(["simple_attention"])), list(given(["softmax"]))
    (['deep_learning.activations'], [])
    """
    return {} if "softmax" in targets else {MODULE: SOFTMAX}


PARAMETER_FAULTS = ("missing-parameter", "extra-parameter", "wrong-parameter")
FAULTS = ("missing-name", "not-callable", "not-a-module", *PARAMETER_FAULTS, "refused", "too-much-memory")
"""What an Answer's `fault` can be. A value that cannot travel is no fault; it arrives as `wire.Other`."""

MOST_DETAILS = 10

REFUSALS = ("package", "process", "network", "signal", "native", "inside", "limits", "write", "files", "module")


def run(source: str | bytes, calls: Sequence[Call], track: Track, limits: Limits | None = None) -> Outcome:
    """Make the calls in a process of its own.

    `ended` is "" when all calls were answered, else "syntax", "raises" or "refused" (while the text was loaded),
    "too-slow", "too-much-memory", "too-much-output", "killed" (it ended by itself or by a signal) or "garbled" (it
    wrote into the answers' pipe). The answers that came before count. This only waits: what is expected can be
    computed beside it, in another thread.
    """
    began = time.monotonic()
    looked = look(source)
    if looked.problem:
        return Outcome(ended="syntax", message=looked.problem, line=looked.line, details={"hint": looked.problem})
    if importlib.util.find_spec(track) is None:
        raise MissingPackageError("missing-package", package=track, extra=track, what=say("sandbox-exercise"))
    limits = limits or limits_for(track)
    asked = [_plain_call(call, track) for call in calls]
    request = serialisation.encode(_request(looked.text, asked, track, limits))
    outcome = _run(request, looked.text, asked, limits, fenced=True)
    if outcome is None:  # namespaces that keep Python itself from starting: it runs without them
        outcome = _run(request, looked.text, asked, limits, fenced=False)
    if outcome is None:
        raise RunError("sandbox-not-started", python=sys.executable)
    return replace(outcome, seconds=time.monotonic() - began)


def in_process(source: str, calls: Sequence[Call], track: Track) -> Outcome:
    """The same here and without limits, for programs that we wrote ourselves: solutions, slips, tests.

    >>> in_process("def double(x): return 2 * x", [Call("double", (3,))], "numpy").answers[0].value
    6
    """
    child.load_libraries(track)
    asked = [_plain_call(call, track) for call in calls]
    with _own_chance(track), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a learner would take them for warnings about the learner's own text
        try:
            namespace = child.load(source)
        except Exception as error:
            return _not_loaded(child.told(error), source)
        told = [
            serialisation.decode(serialisation.encode(child.answer(namespace, call, track), track)) for call in asked
        ]
    return Outcome(tuple(_answer(one, call, source) for one, call in zip(told, asked, strict=True)))


# --- what is asked ------------------------------------------------------------------------------------------


def _plain_call(call: Call, track: Track) -> dict[str, Any]:
    made = call.made and {
        name: _sent(getattr(call.made, name), track) for name in ("args", "kwargs", "state", "training")
    }
    arguments = {"args": _sent(call.args, track), "kwargs": _sent(call.kwargs, track)}
    return {"target": call.target, **arguments, "made": made, "gradients": call.gradients}


def _sent(value: Any, track: Track) -> Any:
    """Plain data; in the torch track float64 is float32 from here on, as PyTorch's own default has it."""
    if isinstance(value, np.ndarray) and track == "torch" and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, Mapping):
        return {key: _sent(part, track) for key, part in value.items()}
    return type(value)(_sent(part, track) for part in value) if isinstance(value, list | tuple) else value


def _request(text: str, asked: list[dict[str, Any]], track: Track, limits: Limits) -> dict[str, Any]:
    libraries = [importlib.util.find_spec(name) for name in {"numpy", track}]
    return {
        "source": np.frombuffer(text.encode(), dtype=np.uint8),  # as bytes, since texts that come back are short
        "calls": asked,
        "track": track,
        "limits": asdict(limits),
        "hidden": HIDDEN,
        # An isolated Python does not look where a user's own packages may be.
        "paths": [str(Path(spec.origin).parents[1]) for spec in libraries if spec and spec.origin],
        "words": {what: say(f"sandbox-refused-{what}") for what in REFUSALS},
        "given": given(call["target"] for call in asked),
    }


@contextmanager
def _own_chance(track: Track) -> Iterator[None]:
    """Random numbers drawn inside leave the caller's as they were; torch works on one thread."""
    kept = np.random.get_state()
    try:
        if track == "torch":
            import torch

            threads = torch.get_num_threads()
            torch.set_num_threads(1)  # for so few numbers, several would wait for each other longer than they work
            try:
                with torch.random.fork_rng(devices=[]):
                    yield
            finally:
                torch.set_num_threads(threads)
        else:
            yield
    finally:
        np.random.set_state(kept)


# --- what came back -----------------------------------------------------------------------------------------


def _run(request: bytes, text: str, asked: list[dict[str, Any]], limits: Limits, *, fenced: bool) -> Outcome | None:
    """One try; None where the program did not get as far as its text."""
    answers: list[Answer] = []
    failed: Outcome | None = None
    with Process(request, limits, fenced=fenced) as process:
        messages = process.messages()
        ready = next(messages, None)
        loaded = next(messages, None) if ready is not None else None
        if isinstance(loaded, dict) and isinstance(loaded.get("load"), dict):
            failed = _not_loaded(loaded["load"], text)
        elif loaded is not None:
            for message, call in zip(messages, asked, strict=False):
                answers.append(_answer(message, call, text))
                if len(answers) == len(asked):
                    break
        code = process.stop()
        printed = plain(process.printed.decode("utf-8", errors="replace"))
    if ready is None and process.ended not in ("too-much-output", "cancelled"):
        return None
    readable = "files" not in _holds(ready)
    if failed is not None:
        return replace(failed, printed=printed, readable=readable)
    ended = "" if len(answers) == len(asked) else process.ended or _END.get(code, "killed")
    if answers and answers[-1].fault == "too-much-memory":
        ended = "too-much-memory"
    details = {"what": "files"} if ended == "refused" else {}
    return Outcome(tuple(answers), ended, printed=printed, details=details, readable=readable)


_END: dict[int | None, str] = {supervisor.CPU: "too-slow", supervisor.OUT_OF_DISK: "refused"}
"""Why a program ended before its last answer, by the guard's code."""


def _holds(ready: Any) -> Sequence[str]:
    """What the fence said that the kernel holds; sent before any of the learner's text ran."""
    return ready["holds"] if isinstance(ready, dict) and isinstance(ready.get("holds"), list) else ()


def _not_loaded(told: Mapping[str, Any], text: str) -> Outcome:
    """What went wrong before any call: Python could not read the text, or running it raised."""
    found = _answer(told, None, text)
    if found.raised in ("SyntaxError", "IndentationError", "TabError") and "column" in found.details:
        hint = syntax_hint(text, found.raised, found.message, found.line or 1)
        details = {**found.details, "hint": hint}
        return Outcome((), "syntax", found.message, found.line, raised=found.raised, details=details)
    ended = found.fault if found.fault in ("refused", "too-much-memory") else "raises"
    return Outcome((), ended, found.message, found.line, raised=found.raised, details=found.details)


def _answer(told: Any, call: Mapping[str, Any] | None, text: str) -> Answer:
    """A message as an Answer. Nothing in it is believed: each part is taken only if it is what it should be."""
    if not isinstance(told, dict):
        return Answer(serialisation.Other(serialisation.type_name(told)))
    if "value" in told and call is not None:
        gradients = told.get("gradients") if isinstance(told.get("gradients"), dict) else None
        return Answer(told["value"], mutated=_mutated(told.get("after"), call), gradients=gradients)
    line, details, fault = told.get("line"), told.get("details"), _short(told.get("fault"), 30)
    pairs = list(details.items())[:MOST_DETAILS] if isinstance(details, dict) else []
    details = {_short(k, 20): _short(v, 200) for k, v in pairs}
    known = fault in FAULTS and (fault != "refused" or details.get("what") in REFUSALS)
    return Answer(
        raised=" ".join(_short(told.get("raised"), 100).split()),  # a type's name can hold anything, even new lines
        message=_short(told.get("message"), 500),
        line=line if type(line) is int and 1 <= line <= text.count("\n") + 1 else None,
        fault=fault if known else "",
        details=details,
    )


def _short(text: Any, length: int) -> str:
    return plain(text[: 4 * length])[:length] if isinstance(text, str) else ""


def _mutated(after: Any, call: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments whose digest is not the one of what was sent. Arrays and tensors of the same numbers have the same."""
    told = after if isinstance(after, dict) else {}
    sent = child.by_name(call).items()
    return tuple(name for name, value in sent if _short(told.get(name), 40) != child.digest(value, "numpy"))
