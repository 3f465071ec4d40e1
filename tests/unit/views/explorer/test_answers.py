"""The binary form of answers: what is written is read back, and half floats keep masked apart from small."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from regard.trace import Trace
from regard.views.explorer.answers import Answer, answered, half_floats, read_answer, read_compressed
from regard.views.explorer.source import TraceSource

DTYPES = st.sampled_from([np.float64, np.float32, np.float16, np.int32, np.uint8])
NAMES = st.text("abcdef_", min_size=1, max_size=6)
ARRAYS = DTYPES.flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))


@given(st.dictionaries(NAMES, ARRAYS, max_size=4), st.dictionaries(NAMES, st.text() | st.integers(), max_size=3))
def test_an_answer_is_read_back_as_written(held: dict[str, np.ndarray], about: dict[str, str | int]) -> None:
    found = read_compressed(Answer(about, held).compressed())
    assert found.about == about
    assert list(found.arrays) == list(held)
    for name, array in held.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_arrays_start_at_multiples_of_eight() -> None:
    binary = Answer({"a": "字"}, {"one": np.ones(3, np.uint8), "two": np.array([1.5, 2.5])}).binary()
    assert read_answer(binary).arrays["two"].tolist() == [1.5, 2.5]
    assert binary.index(np.array([1.5, 2.5]).tobytes()) % 8 == 0


def test_big_endian_arrays_become_little_endian() -> None:
    (buffer,) = Answer({}, {"x": np.array([1, 2], ">i4")}).buffers()
    assert buffer == np.array([1, 2], "<i4").tobytes()


def test_a_dtype_that_the_front_end_cannot_read_is_refused() -> None:
    with pytest.raises(AssertionError, match="int64"):
        Answer({}, {"x": np.arange(3, dtype=np.int64)}).buffers()


def test_a_small_weight_is_not_masked() -> None:
    cells = half_floats(np.array([0.0, 1e-30, 0.25, np.nan]))
    assert cells[0] == 0
    assert cells[1] > 0
    assert cells[2] == 0.25
    assert np.isnan(cells[3])


def source() -> TraceSource:
    return TraceSource(Trace.from_weights(np.eye(4), list("abcd")))


def test_a_head_comes_with_its_buffers() -> None:
    reply, buffers = answered(source(), {"id": 7, "ask": "head", "layer": 0, "head": 0})
    assert (reply["id"], reply["about"]["R"]) == (7, 4)
    assert [form["name"] for form in reply["arrays"]] == ["cells", "attending"]
    cells = np.frombuffer(buffers[0], np.float16).reshape(4, 4)
    np.testing.assert_array_equal(cells, np.eye(4))


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ({"id": 1, "ask": "head", "layer": 5, "head": 0}, "choice-range"),
        (
            {"id": 1, "ask": "rectangle", "layer": 0, "head": 0, "rows": [9, 12], "cols": [0, 4], "most": [8, 8]},
            "source-range",
        ),
        ({"id": 1, "ask": "explain", "layer": 0, "head": 0, "query": 1, "most": 4}, "numbers-not-kept"),
        ({"id": 1, "ask": "effect", "silence": {"layer": 0, "head": 0}}, "effect-no-model"),
        ({"id": 1, "ask": "__init__"}, "option-unknown"),
        ({"id": 1, "ask": "picture", "layer": 0, "head": 0}, "option-unknown"),
        ({"id": 1, "ask": ["head"]}, "option-unknown"),
        ({"id": 1, "ask": "head", "layer": "0", "head": 0}, "source-argument"),
        ({"id": 1, "ask": "head", "layer": 0.5, "head": 0}, "source-argument"),
        ({"id": 1, "ask": "head", "layer": True, "head": 0}, "source-argument"),
        ({"id": 1, "ask": "head"}, "source-failed"),
        (
            {"id": 1, "ask": "rectangle", "layer": 0, "head": 0, "rows": [1], "cols": [0, 4], "most": [8, 8]},
            "source-failed",
        ),
        ("head", "option-unknown"),
        (None, "option-unknown"),
    ],
)
def test_bad_requests_are_sentences(message: Any, key: str) -> None:
    reply, buffers = answered(source(), message)
    assert reply["error"]["key"] == key
    assert all(reply["error"]["text"][lang] for lang in ("en", "zh"))
    assert buffers == []
    assert reply["id"] == (message["id"] if isinstance(message, dict) else None)


def test_an_unexpected_error_is_a_sentence_too() -> None:
    class Broken:
        def overview(self) -> Answer:
            raise MemoryError("out of memory")

    reply, _ = answered(Broken(), {"id": 3, "ask": "overview"})
    assert reply["error"]["text"]["en"] == "the kernel could not answer: MemoryError: out of memory"
