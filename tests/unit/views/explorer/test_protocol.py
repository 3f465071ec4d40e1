"""Messages are answered or refused by a sentence in both languages; nothing raises, so that no front end waits."""

from typing import Any

import numpy as np
import pytest

from regard.trace import Trace
from regard.views.explorer.answers import Answer
from regard.views.explorer.protocol import answered
from regard.views.explorer.source import TraceSource


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
            raise MemoryError("no room")

    reply, _ = answered(Broken(), {"id": 3, "ask": "overview"})
    assert reply["error"]["text"]["en"] == "the kernel could not answer: MemoryError: no room"
