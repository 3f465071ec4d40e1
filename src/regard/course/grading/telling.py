"""A comparison told: one test of the verdict with its call, both results and the place; a diagnosis as a sentence."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.course.exercise import Call, Track
from regard.course.grading.answers import Answer
from regard.course.grading.comparing import Compared, Difference
from regard.course.grading.sandbox import REFUSALS
from regard.course.grading.verdict import Test, plain
from regard.course.grading.writing import kind_of, pair, type_of, written, written_call
from regard.words import say

SPOKEN_OF = ("name", "nearest", "wanted", "found", "what", "type", "message", "line")
"""What the sentences of diagnoses name."""

LONGEST = 300
"""Characters of a learner's own message that are shown."""


def told(name: str, call: Call, test: Compared, track: Track) -> Test:
    """A test of a verdict."""
    if test.right:
        return Test(name, True, written_call(call))
    expected, got = ("", "") if test.same else _results(test)
    where, message = _where(test, track)
    return Test(name, False, written_call(call), expected, got, where, message)


def unanswered(name: str, call: Call, reached: bool) -> Test:
    """A test whose call never came back, or was never made."""
    return Test(name, False, written_call(call), message=say("verdict-ended" if reached else "verdict-not-run"))


def _results(test: Compared) -> tuple[str, str]:
    if test.difference is not None:
        return pair(test.difference.expected, test.difference.got)
    return _result(test.expected), _result(test.got)


def _result(answer: Answer) -> str:
    if answer.fault:
        return ""  # the diagnosis says it
    if not answer.raised:
        return written(answer.value, 4)
    text = (
        say("verdict-error-got", type=answer.raised, message=_short(answer.message))
        if answer.message
        else answer.raised
    )
    return text if answer.line is None else text + say("verdict-error-line", line=answer.line)


def _where(test: Compared, track: Track) -> tuple[str, str]:
    """The place, and what is said about it."""
    found = test.difference
    if found is None:
        return "", say("slip-mutates-input", names=", ".join(map(named, test.spoilt))) if test.spoilt else ""
    where = _place(found)
    if found.index is None:
        return where, sentence(found.fault, {}, found, track)
    expected, got = pair(*found.numbers)
    count = np.size(found.expected)
    return where, say("verdict-place", where=where, expected=expected, got=got, wrong=found.wrong, count=count)


def _place(found: Difference) -> str:
    """Where, as one would write it: `result[1][0, 2]`, or in the gradient of what."""
    inside = f"[{', '.join(map(str, found.index))}]" if found.index else ""
    if found.path[:1] == ("gradient",):
        return say("verdict-gradient", name=named(str(found.path[1]))) + inside
    return say("verdict-result") + "".join(f"[{key!r}]" for key in found.path) + inside


def sentence(name: str, values: Mapping[str, Any], found: Difference | None = None, track: Track = "numpy") -> str:
    """A general diagnosis in words. What the learner's process told of it may be missing or made up."""
    texts = dict.fromkeys(SPOKEN_OF, "") | {key: plain(_short(str(value))) for key, value in values.items()}
    if name == "syntax":
        return texts["hint"]  # a sentence already, made where the text was looked at
    if name == "raises":
        return say("slip-raises" if values.get("line") is None else "slip-raises-line", **texts)
    if name == "refused" and texts["what"] in REFUSALS:
        texts["what"] = say(f"sandbox-refused-{texts['what']}")
    if texts["nearest"]:
        texts["nearest"] = say("slip-nearest", nearest=texts["nearest"])
    if found is not None:
        texts |= _both(name, found, track)
    return say(f"slip-{name}", **texts)


def _both(name: str, found: Difference, track: Track) -> dict[str, str]:
    """`expected` and `got` as that diagnosis speaks of them."""
    if name == "wrong-shape":
        return {"expected": str(np.shape(found.expected)), "got": str(np.shape(found.got))}
    if name == "wrong-dtype":
        return {"expected": kind_of(found.expected), "got": kind_of(found.got)}
    if name == "wrong-type":
        return {"expected": type_of(found.expected, track), "got": type_of(found.got, track)}
    if name == "wrong-count":
        return {"expected": str(len(found.expected)), "got": str(len(found.got))}
    if found.path[:1] == ("gradient",):
        return {"name": named(str(found.path[1]))}
    if found.index is None:
        return dict(zip(("expected", "got"), pair(found.expected, found.got), strict=True))
    return dict(zip(("expected", "got"), pair(*found.numbers), strict=True))


def named(path: str) -> str:
    """An argument or parameter as a learner knows it: "args.0" is the first argument, "kwargs.mask" is mask."""
    kind, _, name = path.partition(".")
    if kind == "args":
        return say("verdict-argument", place=int(name) + 1)
    return name if kind == "kwargs" else path


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
