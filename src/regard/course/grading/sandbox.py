"""Runs a learner's program in a separate process: sends the calls, receives the answers."""

import importlib.util
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.course.exercise import Call, CallResult, Repeat, RunResult, Track
from regard.course.grading import child, serialisation, supervisor
from regard.course.grading.process import HIDDEN, Process, RunLimits, limits_for
from regard.course.grading.python_source import read_source, syntax_hint
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
"""The softmax of `deep_learning.activations`: stable, and 0 for a row of -inf."""


def given(targets: Iterable[str]) -> dict[str, str]:
    """The modules that a program may import, by name, for a task with these functions.

    >>> list(given(["simple_attention"])), list(given(["softmax"]))
    (['deep_learning.activations'], [])
    """
    return {} if "softmax" in targets else {MODULE: SOFTMAX}


PARAMETER_FAULTS = ("missing-parameter", "plain-tensor", "layer-for-parameter", "extra-parameter", "wrong-parameter")
FAULTS = ("missing-name", "not-callable", "not-a-module", *PARAMETER_FAULTS, "refused", "too-much-memory")
"""Possible values of a CallResult's `fault`. A value that cannot be sent is no fault; it arrives as
`serialisation.Other`."""

MOST_DETAILS = 10

REFUSALS = ("package", "process", "network", "signal", "native", "inside", "limits", "write", "files", "module")


def run(
    source: str | bytes,
    calls: Sequence[Call],
    track: Track,
    limits: RunLimits | None = None,
    *,
    repeat: Repeat | None = None,
) -> RunResult:
    """Make the calls in a separate process, and then in the same process the one that `repeat` chooses, again.

    `ended` is "" if all calls were answered, otherwise "syntax", "raises" or "refused" (while loading), "too-slow",
    "too-much-memory", "too-much-output", "killed" (it exited, or a signal ended it) or "garbled" (it wrote into the
    pipe of the answers). Earlier answers are kept. This function only waits: the expected answers can be computed in
    another thread meanwhile.
    """
    began = time.monotonic()
    source_text = read_source(source)
    if source_text.problem:
        return RunResult(
            ended="syntax", message=source_text.problem, line=source_text.line, details={"hint": source_text.problem}
        )
    if importlib.util.find_spec(track) is None:
        raise MissingPackageError("missing-package", package=track, extra=track, what=say("sandbox-exercise"))
    limits = limits or limits_for(track)
    calls_data = [_plain_call(call, track) for call in calls]
    request = serialisation.encode(_request(source_text.text, calls_data, track, limits))
    outcome = _run(request, source_text.text, calls_data, limits, repeat, isolated=True)
    if outcome is None:  # Python does not start inside namespaces: run without them
        outcome = _run(request, source_text.text, calls_data, limits, repeat, isolated=False)
    if outcome is None:
        raise RunError("sandbox-not-started", python=sys.executable)
    return replace(outcome, seconds=time.monotonic() - began)


def in_process(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
    """The same in this process and without limits, for trusted programs: solutions, known mistakes, tests.

    >>> in_process("def double(x): return 2 * x", [Call("double", (3,))], "numpy").answers[0].value
    6
    """
    child.load_libraries(track)
    calls_data = [_plain_call(call, track) for call in calls]
    with _own_random_state(track), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a learner would take them for warnings about their own code
        try:
            namespace = child.load(source)
        except Exception as error:
            return _not_loaded(child.exception_data(error), source)
        results = (child.answer(namespace, call, track, place) for place, call in enumerate(calls_data))
        answers = _received(results, calls_data, source, track)
        place = None if repeat is None else repeat(answers)
        if place is None:
            return RunResult(answers)
        again = calls_data[place]
        repeats = child.answer_repeatedly(source, again, track, place)
        return RunResult(answers, repeated=_received(repeats, [again] * child.REPEATS, source, track))


def _received(
    results: Iterable[Any], calls_data: Iterable[Mapping[str, Any]], source: str, track: Track
) -> tuple[CallResult, ...]:
    """Results of this process, as they would arrive from another one."""
    data = (serialisation.decode(serialisation.encode(result, track)) for result in results)
    return tuple(_answer(one, call, source) for one, call in zip(data, calls_data, strict=False))


# --- the request --------------------------------------------------------------------------------------------


def _plain_call(call: Call, track: Track) -> dict[str, Any]:
    instance = call.instance and {
        name: _sent(getattr(call.instance, name), track) for name in ("args", "kwargs", "state", "training")
    }
    arguments = {"args": _sent(call.args, track), "kwargs": _sent(call.kwargs, track)}
    return {"target": call.target, **arguments, "instance": instance, "gradients": call.gradients}


def _sent(value: Any, track: Track) -> Any:
    """Plain data; in the torch track float64 becomes float32, PyTorch's default dtype."""
    if isinstance(value, np.ndarray) and track == "torch" and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, Mapping):
        return {key: _sent(part, track) for key, part in value.items()}
    return type(value)(_sent(part, track) for part in value) if isinstance(value, list | tuple) else value


def _request(text: str, calls_data: list[dict[str, Any]], track: Track, limits: RunLimits) -> dict[str, Any]:
    libraries = [importlib.util.find_spec(name) for name in {"numpy", track}]
    return {
        "source": np.frombuffer(
            text.encode(), dtype=np.uint8
        ),  # as an array, since strings in messages have a length limit
        "calls": calls_data,
        "track": track,
        "limits": asdict(limits),
        "hidden": HIDDEN,
        # An isolated Python does not search the user's site-packages.
        "paths": [str(Path(spec.origin).parents[1]) for spec in libraries if spec and spec.origin],
        "messages": {what: say(f"sandbox-refused-{what}") for what in REFUSALS},
        "given": given(call["target"] for call in calls_data),
    }


@contextmanager
def _own_random_state(track: Track) -> Iterator[None]:
    """Restore the caller's random state afterwards; torch uses one thread inside."""
    kept = np.random.get_state()
    try:
        if track == "torch":
            import torch

            threads = torch.get_num_threads()
            torch.set_num_threads(1)  # for so few numbers, synchronising threads costs more than it gains
            try:
                with torch.random.fork_rng(devices=[]):
                    yield
            finally:
                torch.set_num_threads(threads)
        else:
            yield
    finally:
        np.random.set_state(kept)


# --- the answers --------------------------------------------------------------------------------------------


def _run(
    request: bytes,
    text: str,
    calls_data: list[dict[str, Any]],
    limits: RunLimits,
    repeat: Repeat | None,
    *,
    isolated: bool,
) -> RunResult | None:
    """One run; None if the program did not reach the learner's source."""
    answers: list[CallResult] = []
    repeated: list[CallResult] = []
    failed: RunResult | None = None
    with Process(request, limits, isolated=isolated) as process:
        messages = process.messages()
        ready = next(messages, None)
        loaded = next(messages, None) if ready is not None else None
        if isinstance(loaded, dict) and isinstance(loaded.get("load"), dict):
            failed = _not_loaded(loaded["load"], text)
        elif loaded is not None:
            # The calls first: after the last answer the program waits, and there is no message.
            for call, message in zip(calls_data, messages, strict=False):
                answers.append(_answer(message, call, text))
            place = repeat(answers) if repeat is not None and len(answers) == len(calls_data) else None
            if place is not None:
                process.request(serialisation.encode(place))
                given = islice(messages, child.REPEATS)
                repeated += [_answer(message, calls_data[place], text) for message in given]
        code = process.stop()
        printed = plain(process.printed.decode("utf-8", errors="replace"))
    if ready is None and process.ended not in ("too-much-output", "cancelled"):
        return None
    solution_readable = "files" not in _enforced(ready)
    if failed is not None:
        return replace(failed, printed=printed, solution_readable=solution_readable)
    ended = "" if len(answers) == len(calls_data) else process.ended or _END.get(code, "killed")
    if answers and answers[-1].fault == "too-much-memory":
        ended = "too-much-memory"
    details = {"what": "files"} if ended == "refused" else {}
    return RunResult(
        tuple(answers),
        ended,
        printed=printed,
        details=details,
        repeated=tuple(repeated),
        solution_readable=solution_readable,
    )


_END: dict[int | None, str] = {supervisor.CPU: "too-slow", supervisor.OUT_OF_DISK: "refused"}
"""Why a program ended before its last answer, by the supervisor's exit code."""


def _enforced(ready: Any) -> Sequence[str]:
    """What the kernel enforces, as reported before any of the learner's code ran."""
    return ready["enforced"] if isinstance(ready, dict) and isinstance(ready.get("enforced"), list) else ()


def _not_loaded(data: Mapping[str, Any], text: str) -> RunResult:
    """The outcome if loading failed: a syntax error, or an exception at import."""
    found = _answer(data, None, text)
    if found.raised in ("SyntaxError", "IndentationError", "TabError") and "column" in found.details:
        hint = syntax_hint(text, found.raised, found.message, found.line or 1)
        details = {**found.details, "hint": hint}
        return RunResult((), "syntax", found.message, found.line, raised=found.raised, details=details)
    ended = found.fault if found.fault in ("refused", "too-much-memory") else "raises"
    return RunResult((), ended, found.message, found.line, raised=found.raised, details=found.details)


def _answer(data: Any, call: Mapping[str, Any] | None, text: str) -> CallResult:
    """A message as a CallResult. Messages are untrusted: each part is validated."""
    if not isinstance(data, dict):
        return CallResult(serialisation.Other(serialisation.type_name(data)))
    if "value" in data and call is not None:
        gradients = data.get("gradients") if isinstance(data.get("gradients"), dict) else None
        return CallResult(data["value"], mutated=_mutated(data.get("after"), call), gradients=gradients)
    line, details, fault = data.get("line"), data.get("details"), _short(data.get("fault"), 30)
    pairs = list(details.items())[:MOST_DETAILS] if isinstance(details, dict) else []
    details = {_short(k, 20): _short(v, 200) for k, v in pairs}
    known = fault in FAULTS and (fault != "refused" or details.get("what") in REFUSALS)
    return CallResult(
        raised=" ".join(_short(data.get("raised"), 100).split()),  # a type's name can contain anything, even newlines
        message=_short(data.get("message"), 500),
        line=line if type(line) is int and 1 <= line <= text.count("\n") + 1 else None,
        fault=fault if known else "",
        details=details,
    )


def _short(text: Any, length: int) -> str:
    return plain(text[: 4 * length])[:length] if isinstance(text, str) else ""


def _mutated(after: Any, call: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments whose digest differs from the one sent. Arrays and tensors with equal numbers have equal digests."""
    digests = after if isinstance(after, dict) else {}
    sent = child.by_name(call).items()
    return tuple(name for name, value in sent if _short(digests.get(name), 40) != child.digest(value, "numpy"))
