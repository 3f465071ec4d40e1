"""`regard.explain(...)` in a notebook: the same panel as a real model, with the numbers of the hand calculation."""

import sys

import numpy as np
import pytest

import regard
from regard import Mask
from regard.views.explorer.calculated import calculation_source

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
