"""Unusual results: each gets a short verdict, and none passes."""

import json
import re
import struct
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.course.catalogue import exercise
from regard.course.exercise import Call, CallResult, Exercise, Repeat, RunResult, Track, call
from regard.course.grading.comparison import as_numbers
from regard.course.grading.grader import grade
from regard.course.grading.python_source import shown
from regard.course.grading.sandbox import in_process
from regard.course.grading.serialisation import NODES, Other, decode
from regard.course.grading.verdict import Verdict

ODD = {
    "past 64 bits": "2**64",
    "far below": "-(2**64)",
    "past a float": "2**1024 - 1",
    "past what is sent": "2**5000",
    "at the edge": "2**63",
    "in a list": "[2**64, 1.0]",
    "in a tuple": "(2**64, None)",
    "in a dict": "{'a': 2**64, 2**64: 1}",
    "an array of objects": "np.array([2**64])",
    "uint64": "np.uint64(2**64 - 1)",
    "a complex number": "1j",
    "a text": "'a' * 1999999",
    "short texts": "['a' * 9000] * 50",
    "a text that steers": "'\\x1b[31m\\u202e' * 5",
    "a type that steers": "type('\\x1b[31m\\u202ex', (), {})()",
    "many parts": "[1] * 19000",
    "deep": "[[[[[[[[[[1]]]]]]]]]]",
    "long keys": "{'k' * 5000: 1}",
    "bytes": "b'x' * 100000",
    "not a number": "float('nan')",
    "empty": "np.zeros((0, 2**40))",
    "many axes": "np.zeros((1,) * 32)",
    "dates": "np.array(['2026-01-01'], dtype='datetime64[D]')",
    "letters": "np.array(['a'])",
}


def readable(verdict: Verdict) -> str:
    """One test in the text, all of them in the JSON."""
    most = {verdict.text(): 40_000, json.dumps(verdict.as_json(), ensure_ascii=False): 5_000 * (1 + len(verdict.tests))}
    for text, length in most.items():
        assert len(text) < length
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    return verdict.text()


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("track", ["shift", "attention-backward"])
def test_every_program_gets_a_verdict(name: str, track: str, shift: Exercise) -> None:
    tested = shift if track == "shift" else exercise(track)
    assert tested.grader is not None
    targets = {call.target for call in tested.grader.cases(np.random.default_rng(0))}
    text = "import numpy as np\n" + "".join(f"def {target}(*a, **k): return {ODD[name]}\n" for target in targets)
    verdict = grade(tested, text, run=in_process, seed=1)
    assert not verdict.passed
    readable(verdict)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**1023), 2**1023)
    | st.floats()
    | st.text(max_size=500)
    | st.builds(Other, st.text(max_size=20), st.sampled_from(["", "large"]))
    | st.builds(lambda kind, shape: np.ones(shape, kind), st.sampled_from(["bool", "int8", "uint64", "float16"]),
                st.lists(st.integers(0, 3), max_size=4).map(tuple))
    | st.builds(lambda shape: np.full(shape, 1j), st.lists(st.integers(0, 3), max_size=3).map(tuple)),
    lambda inner: st.lists(inner, max_size=4)
    | st.tuples(inner, inner)
    | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_any_result_gets_a_verdict(data: st.DataObject) -> None:
    """Values, gradients and exceptions that can be sent, in any place."""
    tested = exercise(data.draw(st.sampled_from(["softmax", "self-attention", "encoder-layer", "beam-search", "gqa"])))

    flowed = st.none() | st.dictionaries(st.just("args.0") | st.text(max_size=3), VALUES, max_size=2)
    forged = data.draw(st.lists(st.builds(CallResult, VALUES, gradients=flowed), min_size=1, max_size=3))

    def run(source: str | bytes, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        return RunResult(tuple(forged[place % len(forged)] for place in range(len(calls))))

    verdict = grade(tested, "x = 1", run=run, seed=1)
    assert not verdict.passed
    readable(verdict)


def test_long_results_are_shortened_and_show_their_length() -> None:
    assert shown("a" * 400).endswith("a' … (400 characters)")
    assert "… and 981 more" in shown(list(range(1000)))
    assert len(shown([["x" * 1000] * 50] * 50)) < 5000
    assert shown(2**64) == "18446744073709551616"
    assert shown(2**1000) == "<int of 1001 bits>"
    assert shown((np.array([0.5]), "short")) == "(np.array([0.5]), 'short')"


def test_integers_of_more_than_64_bits_are_clipped() -> None:
    assert as_numbers(2**64) > as_numbers(2**63)
    assert as_numbers(-(2**70)) == -(2**63)
    assert as_numbers(True).dtype == bool


# --- forged messages ------------------------------------------------------------------------------------------


FORGED = {
    "numbers": b'{"tree":{"l":[' + b"1," * 14_000_000 + b'1]},"arrays":[]}',
    "fewer numbers": b'{"tree":{"l":[' + b"1," * (3 * NODES * 10) + b'1]},"arrays":[]}',
    "brackets": b'{"tree":{"l":[' + b"{}," * 1_000_000 + b'{}]},"arrays":[]}',
    "brackets elsewhere": b'{"tree":1,"more":[' + b"{}," * 1_000_000 + b'{}],"arrays":[]}',
    "arrays": b'{"tree":1,"arrays":[' + b'["bool",[0]],' * 250_000 + b'["bool",[0]]]}',
    "depth": b'{"tree":' + b'{"l":[' * 500_000 + b"]}" * 500_000 + b',"arrays":[]}',
    "digits": b'{"tree":' + b"9" * 4_000_000 + b',"arrays":[]}',
    "axes": b'{"tree":1,"arrays":[["bool",[' + b"0," * 1_000_000 + b"0]]]}",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_message_is_refused_before_decoding(name: str) -> None:
    header = FORGED[name]
    began = time.process_time()
    with pytest.raises(ValueError):
        decode(struct.pack("!I", len(header)) + header)
    assert time.process_time() - began < 2


def test_the_largest_allowed_result_arrives() -> None:
    source = "import numpy as np\ndef f(): return [0.1] * 19_000, {'a' * 9_999: np.zeros(2_000_000)}\ndef g(): return 7"
    first, second = in_process(source, [call("f"), call("g")], "numpy").answers
    numbers, arrays = first.value
    assert numbers == [0.1] * 19_000
    assert arrays["a" * 9_999].shape == (2_000_000,)
    assert second.value == 7
