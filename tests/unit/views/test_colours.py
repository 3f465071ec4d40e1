"""The colours are viridis, can be written on, and rise in lightness in either depth."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import colormaps

from regard import Trace
from regard.views.colours import Depth, Ink, contrast, on, paint, warning
from regard.views.picture import picture
from regard.views.scales import Scale

EVEN = picture(Trace.from_weights(np.full((20, 20), 1 / 20))[0], 0, 0)
LEVELS = [i / 255 for i in range(256)]


def test_it_is_viridis() -> None:
    for level in LEVELS:
        wanted = [round(255 * part) for part in colormaps["viridis"](level)[:3]]
        assert max(abs(a - b) for a, b in zip(paint(level).rgb, wanted, strict=True)) <= 6


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_numbers_can_be_read_on_every_colour(depth: Depth) -> None:
    for ground in [*(paint(level, depth) for level in LEVELS), warning(depth)]:
        style = on(ground)
        assert style.color is not None
        text = style.color.get_truecolor()
        assert contrast((text.red, text.green, text.blue), ground.rgb) >= 4.5


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_a_larger_weight_is_never_darker(depth: Depth) -> None:
    lightness = [contrast(paint(level, depth).rgb, (0, 0, 0)) for level in LEVELS]
    assert all(later > earlier - 0.01 for earlier, later in pairwise(lightness))  # a hundredth is rounding
    assert lightness[-1] > 8 * lightness[0]


def test_the_numbered_colours_are_those_of_terminals() -> None:
    from rich.color import Color

    for level in LEVELS:
        chosen = paint(level, "256")
        assert tuple(Color.parse(chosen.name).get_truecolor()) == chosen.rgb


def test_hidden_and_broken_weights_are_no_colours_of_the_scale() -> None:
    ink = Ink("truecolor", Scale(1.0))
    assert ink.ground(0.0) is None
    assert ink.ground(float("nan")) == warning()
    assert ink.ground(1e-9) == paint(0.0)
    assert ink.ground(2.0) == paint(1.0)


def test_the_legend_says_at_least_only_where_weights_share_a_colour() -> None:
    cells = np.full((20, 20), 0.02)
    cells[0, 0] = 0.9

    def legend(ceiling: float | None = None) -> str:
        return Ink("256", Scale.of([replace(EVEN, cells=cells)], ceiling)).legend(80)[0].plain

    assert "≥" not in legend()
    assert legend().split() == ["0", ".0027", ".011", ".049", ".22", "1"]
    assert "≥ .5" in legend(0.5)
