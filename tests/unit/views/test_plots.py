"""The matplotlib view: returns Axes, shows nothing, changes no setting, and draws any token without a warning."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from regard import Trace
from regard.errors import ArgumentError, MissingPackageError
from regard.reference import softmax
from regard.trace.trace import ScaleName
from regard.views import fonts


@pytest.fixture(autouse=True)
def _no_screen() -> Iterator[None]:
    with matplotlib.rc_context():
        pyplot.switch_backend("Agg")
        yield
        pyplot.close("all")


def trace(H: int = 1, T: int = 4, S: int = 4, tokens: list[str] | None = None, name: str = "h.0.attn") -> Trace:
    w = softmax(np.random.default_rng(0).normal(size=(1, H, T, S)))
    return Trace.from_weights(w, tokens, name=name)


def test_one_head_is_one_axes(tmp_path: Path) -> None:
    ax = trace(tokens=["the", "cat", "", "a\nb"]).plot()
    assert isinstance(ax, Axes)
    assert ax.images[0].get_cmap().name == "viridis"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["the", "cat", '""', "a↵b"]
    assert ax.get_xlabel() == "key position"
    assert ax.get_title() == "h.0.attn · self-attention"
    assert len(ax.figure.axes) == 2  # the colour bar
    ax.figure.savefig(tmp_path / "p.png")


def test_it_draws_where_it_is_told() -> None:
    _, axes = pyplot.subplots(1, 2)
    assert trace(H=3).plot(head=1, ax=axes[1]) is axes[1]
    assert not axes[0].images
    with pytest.raises(ArgumentError, match="3 were asked for"):
        trace(H=3).plot(ax=axes[0])


def test_heads_and_layers_are_grids() -> None:
    heads = trace(H=6).plot()
    assert isinstance(heads, np.ndarray)
    assert heads.shape == (2, 4)
    assert heads[1, 1].get_title() == "head 5"
    assert not heads[1, 2].axison
    layers = Trace([trace(H=2, name=f"h.{i}.attn")[0] for i in range(3)])
    both = layers.plot()
    assert isinstance(both, np.ndarray)
    assert both.shape == (3, 2)
    assert both[2, 0].get_ylabel() == "2"
    one = layers.plot(head=1)
    assert isinstance(one, np.ndarray)
    assert one.shape == (3, 1)
    assert isinstance(layers.plot(layer=1, head=1), Axes)


def test_a_grid_has_a_title_and_words_at_its_edges(tmp_path: Path) -> None:
    def words(ax: Axes, side: str) -> list[str]:
        return [label.get_text() for label in getattr(ax, f"get_{side}ticklabels")()]

    tokens = ["the", "cat", "sat", "注"]
    heads = trace(H=6, tokens=tokens).plot(lang="zh")
    assert isinstance(heads, np.ndarray)
    figure = heads[0, 0].figure
    figure.savefig(tmp_path / "p.png")
    assert figure.get_suptitle().startswith("h.0.attn · ")
    assert heads[1, 1].get_title() == fonts.drawable(["头 5"])[0]
    assert words(heads[0, 0], "y")[:3] == words(heads[1, 0], "y")[:3] == tokens[:3]
    assert words(heads[0, 1], "y") == words(heads[0, 0], "x") == []
    assert words(heads[1, 0], "x")[:3] == words(heads[0, 3], "x")[:3] == tokens[:3]  # nothing is below the last two
    long = trace(H=2, T=17, S=17, tokens=["a"] * 17).plot()
    assert isinstance(long, np.ndarray)
    assert words(long[0, 0], "y") == []


@pytest.mark.parametrize("own", [True, False])
def test_the_colour_bar_is_about_as_high_as_the_map(own: bool) -> None:
    ax = trace(T=1, S=3).plot(ax=pyplot.subplots(layout="constrained")[1] if own else None)
    assert isinstance(ax, Axes)
    ax.figure.canvas.draw()
    drawn, bar = (each.get_window_extent().height for each in ax.figure.axes)
    assert 0.7 < bar / drawn < 1.4


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ArgumentError, match="en, zh"):
        trace().plot(lang="fr")  # type: ignore[arg-type]


def test_hidden_cells_are_off_the_scale_and_weights_on_it() -> None:
    w = np.array([[1, 0, 0], [0.5, 0.5, 0], [np.nan, np.nan, np.nan]])
    image = Trace.from_weights(w).plot().images[0]  # type: ignore[union-attr]
    colours = image.to_rgba(image.get_array())
    viridis = matplotlib.colormaps["viridis"]
    assert tuple(colours[0, 0]) == viridis(1.0)
    assert tuple(colours[0, 1]) == tuple(colours[1, 2]) == pytest.approx((14 / 15, 14 / 15, 14 / 15, 1))
    assert tuple(colours[2, 0]) not in (tuple(colours[0, 1]), viridis(0.0))


def test_a_pooled_map_is_drawn_in_tokens() -> None:
    ax = Trace.from_weights(np.eye(10), [*"abcdefghij"], map=3).plot()
    assert isinstance(ax, Axes)
    assert ax.get_xlim() == (-0.5, 9.5)
    assert "a" not in [label.get_text() for label in ax.get_xticklabels()]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3, 0), (1, 50), (2, 1, 50)])
def test_odd_sizes_are_drawn(tmp_path: Path, shape: tuple[int, ...]) -> None:
    drawn = Trace.from_weights(np.full(shape, 1 / max(1, shape[-1]))).plot()
    np.ravel(drawn)[0].figure.savefig(tmp_path / "p.png")


def test_no_setting_is_changed_and_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyplot, "show", lambda *_, **__: pytest.fail("shown"))
    before = dict(matplotlib.rcParams)
    trace(H=2, tokens=["注", "意", "力", "$x^"]).plot()
    assert dict(matplotlib.rcParams) == before


def test_tokens_without_a_glyph_do_not_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Warnings are errors here; matplotlib warns of a missing glyph when the figure is drawn."""
    monkeypatch.setattr(fonts, "_CJK", ())
    for cached in (fonts.families, fonts._has, fonts._say_once):
        cached.cache_clear()
    with caplog.at_level(logging.WARNING, logger="regard"):
        for _ in range(2):
            ax = trace(tokens=["注意力", "🤗", "$x^{$", "\ud800"]).plot()
            assert isinstance(ax, Axes)
            ax.figure.savefig(tmp_path / "p.png")
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["#0", "#1"]  # where it stands, never a box
    assert ax.get_yticklabels()[2].get_text() == "$x^{$"
    assert [record.message for record in caplog.records if "Noto Sans CJK SC" in record.message] == [
        caplog.records[0].message
    ]
    for cached in (fonts.families, fonts._has, fonts._say_once):
        cached.cache_clear()


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"trace.plot needs matplotlib.*regard\[plot\]"):
        trace().plot()


# --- scales, tokens, texts -------------------------------------------------------------------------------


def test_a_sink_is_told_and_does_not_set_the_scale() -> None:
    w = np.full((2, 10, 10), 0.1 / 9)
    w[:, :, 0] = 0.9
    ax = Trace.from_weights(w).plot(head=0)
    assert isinstance(ax, Axes)
    assert "first token receives 90 %" in ax.get_title()
    assert ax.images[0].norm.vmax == pytest.approx(0.1 / 9)
    assert ax.images[0].colorbar.extend == "max"  # type: ignore[union-attr]
    grid = Trace.from_weights(w).plot(lang="zh")
    assert isinstance(grid, np.ndarray)
    assert grid[0, 1].get_title() == "头 1 · 首词元 90%"


@pytest.mark.parametrize("scale", ["linear", "log", "renormalised", "hidden"])
def test_every_scale_is_drawn_and_hides_what_is_hidden(scale: ScaleName, tmp_path: Path) -> None:
    w = softmax(np.where(np.tri(4, dtype=bool), np.random.default_rng(0).normal(size=(4, 4)), -np.inf))
    ax = Trace.from_weights(w).plot(scale=scale)
    assert isinstance(ax, Axes)
    image = ax.images[0]
    colours = image.to_rgba(image.get_array())
    assert tuple(colours[0, 3]) == pytest.approx((14 / 15, 14 / 15, 14 / 15, 1))
    assert tuple(colours[3, 3]) != tuple(colours[0, 3])
    assert (tuple(colours[3, 0]) == tuple(colours[0, 3])) == (scale in ("renormalised", "hidden"))
    assert " · " in ax.images[0].colorbar.ax.get_ylabel()  # type: ignore[union-attr]
    ax.figure.savefig(tmp_path / "p.png")


def test_tokens_are_merged_and_the_prompt_ends_with_a_line() -> None:
    record = replace(trace(tokens=["æľ", "Ī", "Ġun", "likely"])[0], prompt=2)
    ax = Trace([record]).plot(merge="words")
    assert isinstance(ax, Axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["月", "unlikely"]
    assert ax.lines[0].get_ydata()[0] == 0.5  # type: ignore[index]


def test_without_a_font_for_chinese_words_are_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_has", lambda: frozenset(range(128)))
    ax = trace().plot(lang="zh")
    assert isinstance(ax, Axes)
    assert ax.get_xlabel() == "key position"


def test_many_layers_and_heads_are_small_and_have_no_words_at_their_edges(tmp_path: Path) -> None:
    w = np.full((1, 8, 4, 4), 0.1 / 3)
    w[..., 0] = 0.9
    layers = Trace(Trace.from_weights(w, list("abcd"), name=f"h.{i}.attn")[0] for i in range(7))
    axes = layers.plot()
    assert isinstance(axes, np.ndarray)
    assert axes.shape == (7, 8)
    assert [axes[0, 3].get_title(), axes[1, 3].get_title()] == ["head 3", ""]
    assert not axes[6, 0].get_xticklabels()
    assert axes[6, 0].get_ylabel() == "6"
    figure = axes[0, 0].figure
    assert "56 of 56 heads" in figure.get_suptitle()
    assert max(figure.get_size_inches()) < 16
    figure.savefig(tmp_path / "p.png")
