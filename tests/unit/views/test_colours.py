"""Terminal colours: viridis, readable text on every colour, increasing lightness at both depths."""

import io
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn_axes import axes_of
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colormaps
from matplotlib.axes import Axes

from regard import Trace
from regard.errors import ArgumentError
from regard.trace.trace import ScaleName
from regard.views.colours import CellPainter, Depth, Scale, chosen_scale, contrast, nan_colour, short, text_on, viridis
from regard.views.picture import picture

EVEN = picture(Trace.from_weights(np.full((20, 20), 1 / 20))[0], 0, 0)
LEVELS = [i / 255 for i in range(256)]


def test_viridis_matches_matplotlib() -> None:
    for level in LEVELS:
        wanted = [round(255 * part) for part in colormaps["viridis"](level)[:3]]
        assert max(abs(a - b) for a, b in zip(viridis(level).rgb, wanted, strict=True)) <= 6


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_text_is_readable_on_every_colour(depth: Depth) -> None:
    for background in [*(viridis(level, depth) for level in LEVELS), nan_colour(depth)]:
        style = text_on(background)
        assert style.color is not None
        text = style.color.get_truecolor()
        assert contrast((text.red, text.green, text.blue), background.rgb) >= 4.5


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_a_larger_weight_is_never_darker(depth: Depth) -> None:
    lightness = [contrast(viridis(level, depth).rgb, (0, 0, 0)) for level in LEVELS]
    assert all(later > earlier - 0.01 for earlier, later in pairwise(lightness))  # 0.01 allows for rounding
    assert lightness[-1] > 8 * lightness[0]


def test_the_256_colours_have_the_rgb_values_of_rich() -> None:
    from rich.color import Color

    for level in LEVELS:
        chosen = viridis(level, "256")
        assert tuple(Color.parse(chosen.name).get_truecolor()) == chosen.rgb


def test_masked_weights_and_nan_have_no_colour_of_the_scale() -> None:
    painter = CellPainter("truecolor", Scale(1.0))
    assert painter.background(0.0) is None
    assert painter.background(float("nan")) == nan_colour()
    assert painter.background(1e-9) == viridis(0.0)
    assert painter.background(2.0) == viridis(1.0)


def test_the_legend_shows_at_least_only_if_weights_share_a_colour() -> None:
    cells = np.full((20, 20), 0.02)
    cells[0, 0] = 0.9

    def legend(ceiling: float | None = None) -> str:
        return CellPainter("256", Scale.of([replace(EVEN, cells=cells)], ceiling)).legend(80)[0].plain

    assert "≥" not in legend()
    assert legend().split() == ["0", ".0027", ".011", ".049", ".22", "1"]
    assert "≥ .5" in legend(0.5)


def sink(T: int = 10, share: float = 0.9) -> Trace:
    """Every query gives this share to the first key and the rest evenly to the others."""
    w = np.full((T, T), (1 - share) / (T - 1))
    w[:, 0] = share
    return Trace.from_weights(w)


def scale_of(trace: Trace, name: Any = "auto") -> Scale:
    return Scale.of([picture(trace[0], 0, 0, name)])


def test_a_sink_does_not_darken_the_others() -> None:
    found = scale_of(sink())
    assert (found.ceiling, found.clipped) == (1.0, False)
    assert found.log_threshold == pytest.approx(0.1 / 9)
    assert 0.6 < found.level(0.1 / 9) < 0.7
    assert scale_of(sink(), "linear") == Scale(1.0, name="linear")
    even = scale_of(sink(share=0.1))
    assert even.ceiling == pytest.approx(0.1)
    assert even == Scale(even.ceiling, log_threshold=None)


def painted(scale: Scale, weight: float) -> np.ndarray:
    return np.array(viridis(float(scale.level(weight))).rgb, float)


@pytest.mark.parametrize("others", [0.17, 0.05, 0.01, 0.001, 0.0002])
@pytest.mark.parametrize("name", ["auto", "hidden", "renormalised", "linear"])
def test_very_different_weights_have_different_colours(others: float, name: Any) -> None:
    """0.17 and 0.93 had the same colour, because a sink of 0.93 was left out of the scale."""
    w = np.full((30, 30), others / 29)
    w[:, 0] = 1 - others
    w[3], w[4] = [0.07, 0.93, *[0.0] * 28], [0.83, 0.17, *[0.0] * 28]
    w[5] = [0.5, 0.45, 0.05, *[0.0] * 27]
    found = scale_of(Trace.from_weights(w), name)
    assert not found.clipped
    weights = np.linspace(0, found.ceiling, 2001)
    assert (np.diff(found.level(weights)) > 0).all()
    for one, other in ((0.17, 0.93), (0.05, 0.17), (0.45, 0.93)):
        assert np.abs(painted(found, one) - painted(found, other)).max() >= 24, (one, other)


def test_terminal_and_plot_use_the_same_scale() -> None:
    """The explorer computes the same scale in the browser, which tests/web compares with this one."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 24, 24)) + 4 * (np.arange(24) == 0)
    scores[1, :, 0] -= 4
    scores[2] += 5 * np.eye(24)
    trace = Trace.from_weights(np.exp(scores) / np.exp(scores).sum(-1, keepdims=True), kind="decoder")
    for head in range(3):
        for name in get_args(ScaleName):
            found = Scale.of([picture(trace[0], head, 0, name)])
            ax = axes_of(trace, head=head, scale=name)
            assert isinstance(ax, Axes)
            norm: Any = ax.images[0].norm
            for level in (0.1, 0.5, 0.9, 1.0):
                assert float(norm(found.weight(level))) == pytest.approx(level, abs=1e-6)
            out = io.StringIO()
            trace.show(head=head, scale=name, file=out, width=200, color="none")
            lowest = [f"≥ {short(found.weight(step / 5))}" for step in range(1, 5)]
            assert all(each in out.getvalue() for each in lowest), (head, name, lowest)
            plt.close(ax.figure)  # type: ignore[arg-type]


def test_a_map_with_nothing_but_a_sink_has_a_ceiling_of_one() -> None:
    assert scale_of(Trace.from_weights(np.eye(10)[np.zeros(10, int)])).ceiling == 1.0
    assert scale_of(Trace.from_weights(np.zeros((3, 3)))).ceiling == 1.0


@pytest.mark.parametrize("T", [2, 5, 26, 200])
def test_negligible_weights_beside_a_sink_are_dark(T: int) -> None:
    """The other weights of a row summed to 0.00017 and had the brightest colour."""
    found = scale_of(sink(T, share=0.99983))
    assert found == Scale(1.0)
    assert found.level(0.00017) < 0.02


def test_a_few_large_weights_among_many_set_the_ceiling() -> None:
    """A head that attends to itself: 300 of 90,000 weights are large, all others negligible."""
    found = scale_of(Trace.from_weights(np.eye(300) * (1 - 3e-4) + 1e-6))
    assert found.ceiling == pytest.approx(1, abs=1e-3)


def test_hidden_and_renormalised_clear_the_first_token() -> None:
    hidden, again = (picture(sink()[0], 0, 0, name) for name in ("hidden", "renormalised"))
    assert not hidden.cells[:, 0].any()
    assert hidden.cells[:, 1:] == pytest.approx(0.1 / 9)
    assert not again.cells[:, 0].any()
    assert again.cells.sum(-1) == pytest.approx(1.0)
    assert hidden.first == again.first == pytest.approx(0.9)  # still reported


def test_a_row_with_only_the_first_token_stays_empty() -> None:
    again = picture(Trace.from_weights(np.array([[1.0, 0.0], [0.5, 0.5]]))[0], 0, 0, "renormalised")
    assert again.cells.tolist() == [[0, 0], [0, 1]]


@given(
    st.sampled_from(["auto", "linear", "log"]), st.floats(1e-3, 1), st.floats(0, 1), st.floats(1e-4, 0.9) | st.none()
)
def test_level_and_weight_are_inverse(name: Any, ceiling: float, level: float, log_threshold: float | None) -> None:
    scale = Scale(ceiling, name=name, log_threshold=None if log_threshold is None else log_threshold * ceiling)
    assert scale.level(scale.weight(level)) == pytest.approx(level, abs=1e-6)
    assert scale.level(2 * ceiling) == 1
    assert scale.level(0.0) == 0


@pytest.mark.parametrize("name", ["linear", "log", "renormalised", "hidden"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("head", [None, 0])
def test_every_scale_is_named_below_the_picture(name: Any, lang: Any, head: int | None) -> None:
    out = io.StringIO()
    two = Trace.from_weights(np.concatenate([sink()[0].weights()] * 2, 1))
    two.show(file=out, width=120, color="none", lang=lang, scale=name, head=head)
    words = {
        "en": {
            "linear": "proportional to the weight",
            "log": "logarithm",
            "renormalised": "sum of 1",
            "hidden": "left out",
        },
        "zh": {"linear": "成正比", "log": "对数", "renormalised": "重新归一", "hidden": "略去前 1 个词元"},
    }
    assert words[lang][name] in out.getvalue()
    assert ("90 %" if lang == "en" else "90%") in out.getvalue() or head is None


def test_an_unknown_scale_lists_the_choices() -> None:
    assert chosen_scale(None) == "auto"
    with pytest.raises(ArgumentError, match="auto, linear, log, renormalised, hidden"):
        sink().show(scale="square")  # type: ignore[arg-type]
