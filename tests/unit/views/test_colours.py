"""Terminal colours: viridis, readable text on every colour, increasing lightness at both depths."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import colormaps

from regard import Trace
from regard.views.colours import CellPainter, Depth, contrast, nan_colour, text_on, viridis
from regard.views.picture import picture
from regard.views.scales import Scale

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
