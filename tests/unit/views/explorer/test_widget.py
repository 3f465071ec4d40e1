"""The widget answers messages in the kernel, and its output holds a picture for places where scripts do not run."""

import sys
from typing import Any

import anywidget
import numpy as np
import pytest

import regard
from regard import Mask
from regard.errors import ArgumentError, MissingPackageError
from regard.trace import Trace
from regard.views.explorer.widget import calculation_source

TRACE = Trace.from_weights(np.eye(3), list("abc"), name="h.0.attn")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The messages that widgets send, without a notebook."""
    found: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        anywidget.AnyWidget, "send", lambda self, content, buffers=None: found.append((content, buffers))
    )
    return found


def test_the_widget_answers_in_the_kernel(sent: list[tuple[Any, Any]]) -> None:
    widget = TRACE.widget(lang="zh")
    widget._handle_custom_msg({"id": 5, "ask": "head", "layer": 0, "head": 0}, [])
    ((reply, buffers),) = sent
    assert reply["id"] == 5
    np.testing.assert_array_equal(np.frombuffer(buffers[0], np.float16).reshape(3, 3), np.eye(3))
    assert widget.lang == "zh"


def test_errors_are_answers(sent: list[tuple[Any, Any]]) -> None:
    TRACE.widget()._handle_custom_msg({"id": 6, "ask": "head", "layer": 9, "head": 0}, [])
    assert sent[0][0]["error"]["text"]["zh"].startswith("没有 layer=9")


def test_the_output_holds_widget_picture_and_text(sent: list[tuple[Any, Any]]) -> None:
    data, _ = TRACE.widget()._repr_mimebundle_()
    assert data["image/svg+xml"].startswith("<svg ")
    assert data["text/plain"] == repr(TRACE)
    assert "application/vnd.jupyter.widget-view+json" in data


def test_two_widgets_answer_for_themselves(sent: list[tuple[Any, Any]]) -> None:
    other = Trace.from_weights(np.eye(5))
    one, two = TRACE.widget(), other.widget()
    for widget in (one, two):
        widget._handle_custom_msg({"id": 1, "ask": "head", "layer": 0, "head": 0}, [])
    assert [reply["about"]["R"] for reply, _ in sent] == [3, 5]


def test_the_script_has_no_imports_and_one_default_export(sent: list[tuple[Any, Any]]) -> None:
    script = TRACE.widget()._esm
    assert "export default" in script
    assert not [line for line in script.splitlines() if line.startswith("import ")]


def test_without_anywidget_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingPackageError, match=r"regard\[notebook\]"):
        TRACE.widget()


def test_an_empty_trace_is_refused_before_anything_else() -> None:
    with pytest.raises(ArgumentError, match="no records"):
        Trace().widget()


Q, K, V = [[1, 0], [0, 2]], [[1, 0], [0, 1], [1, 1]], [[10, 0], [0, 20], [30, 0]]


@pytest.mark.parametrize("mask", [None, Mask.causal(), np.array([[1, 0, 1], [0, 0, 0]], bool)])
@pytest.mark.parametrize("scale", [None, 2.0])
def test_the_panel_has_the_numbers_of_the_calculation(mask: object, scale: float | None) -> None:
    steps = regard.explain(Q, K, V, mask, scale=scale)
    source = calculation_source(steps)
    overview = source.overview().about
    assert overview["depth"] == "numbers"
    assert overview["records"][0]["can"]["explain"] == "full"
    for query in (0, 1):
        answer = source.explain(0, 0, query)
        assert answer.about["labels"]["keys"] == ["k0", "k1", "k2"]
        np.testing.assert_allclose(answer.arrays["weights"], steps.weights[query], rtol=1e-12)
        np.testing.assert_allclose(answer.arrays["output"], steps.output[query], rtol=1e-12)
    cells = source.head(0, 0).arrays["cells"]
    np.testing.assert_allclose(cells, steps.weights, rtol=1e-3)


def test_a_notebook_shows_the_widget_and_a_picture() -> None:
    data, _ = regard.explain(Q, K, V)._repr_mimebundle_()
    assert data["image/svg+xml"].startswith("<svg ")
    assert "application/vnd.jupyter.widget-view+json" in data


def test_without_anywidget_a_notebook_shows_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    steps = regard.explain(Q, K, V)
    assert steps._repr_mimebundle_() == ({"text/plain": steps.text()}, {})
