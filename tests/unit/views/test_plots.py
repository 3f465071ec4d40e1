"""The matplotlib view: returns Axes, shows no figure, changes no setting, draws any token without a warning."""

import io
import logging
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from drawn_axes import axes_of, figure_of
from matplotlib import font_manager, pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox
from matplotlib.transforms import Bbox
from narrowing import present

from regard import Mask, See, Trace, attend
from regard.errors import ArgumentError, MissingPackageError, RegardError
from regard.records import Kind
from regard.reference import softmax
from regard.trace.trace import ScaleName
from regard.views import fonts
from regard.views.plots import save_plot

pytestmark = pytest.mark.usefixtures("no_display")

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")


def trace(H: int = 1, T: int = 4, S: int = 4, tokens: list[str] | None = None, name: str = "h.0.attn") -> Trace:
    w = softmax(np.random.default_rng(0).normal(size=(1, H, T, S)))
    return Trace.from_weights(w, tokens, name=name)


def test_one_head_is_one_axes(tmp_path: Path) -> None:
    ax = axes_of(trace(tokens=["the", "cat", "", "a\nb"]))
    assert isinstance(ax, Axes)
    assert ax.images[0].get_cmap().name == "viridis"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["the", "cat", '""', "a↵b"]
    assert ax.get_xlabel() == "key position"
    assert ax.get_title() == "h.0.attn · self-attention"
    assert ax.images[0].colorbar is not None
    assert ax.images[0].colorbar.ax.get_ylabel() == "weight · square-root scale"
    figure_of(ax).savefig(tmp_path / "p.png")


def test_it_draws_on_the_given_axes() -> None:
    _, axes = pyplot.subplots(1, 2)
    assert axes_of(trace(H=3), head=1, ax=axes[1]) is axes[1]
    assert not axes[0].images
    with pytest.raises(ArgumentError, match="3 were asked for"):
        axes_of(trace(H=3), ax=axes[0])


def test_heads_and_layers_are_grids() -> None:
    heads = axes_of(trace(H=6))
    assert isinstance(heads, np.ndarray)
    assert heads.shape == (2, 4)
    assert heads[1, 1].get_title() == "head 5"
    assert not heads[1, 2].axison
    layers = Trace([trace(H=2, name=f"h.{i}.attn")[0] for i in range(3)])
    both = axes_of(layers)
    assert isinstance(both, np.ndarray)
    assert both.shape == (3, 2)
    assert both[2, 0].get_ylabel() == "layer 2"
    assert [both[0, 1].get_title(), both[2, 1].get_title()] == ["head 1", ""]
    one = axes_of(layers, head=1)
    assert isinstance(one, np.ndarray)
    assert [ax.get_title() for ax in one[0]] == ["layer 0", "layer 1", "layer 2"]
    assert one[0, 0].figure.get_suptitle() == "h.*.attn · self-attention · head 1"
    assert isinstance(axes_of(layers, layer=1, head=1), Axes)


def test_a_grid_has_a_title_and_labels_at_its_edges(tmp_path: Path) -> None:
    def words(ax: Axes, side: str) -> list[str]:
        return [label.get_text() for label in getattr(ax, f"get_{side}ticklabels")()]

    tokens = ["the", "cat", "sat", "注"]
    heads = axes_of(trace(H=6, tokens=tokens), lang="zh")
    assert isinstance(heads, np.ndarray)
    figure = heads[0, 0].figure
    figure.savefig(tmp_path / "p.png")
    assert figure.get_suptitle().startswith("h.0.attn · ")
    assert heads[1, 1].get_title() == fonts.drawable(["头 5"])[0]
    assert words(heads[0, 0], "y")[:3] == words(heads[1, 0], "y")[:3] == tokens[:3]
    assert words(heads[0, 1], "y") == words(heads[0, 0], "x") == []
    assert words(heads[1, 0], "x")[:3] == words(heads[0, 3], "x")[:3] == tokens[:3]  # nothing is below the last two
    long = axes_of(trace(H=2, T=17, S=17, tokens=["a"] * 17))
    assert isinstance(long, np.ndarray)
    assert words(long[0, 0], "y") == ["a"] * 17
    assert "too many" not in long[0, 0].figure.get_supxlabel()
    longer = axes_of(trace(H=2, T=70, S=70, tokens=["a"] * 70))
    assert isinstance(longer, np.ndarray)
    assert words(longer[0, 0], "y")[1] == "0"
    assert longer[0, 0].figure.get_supxlabel() == "key position\ntoo many tokens to name: positions"


@pytest.mark.parametrize("own", [True, False])
def test_the_colour_bar_is_as_high_as_the_map(own: bool) -> None:
    ax = axes_of(trace(T=1, S=3), ax=pyplot.subplots(layout="constrained")[1] if own else None)
    assert isinstance(ax, Axes)
    figure_of(ax).draw_without_rendering()
    drawn, bar = (each.get_window_extent().height for each in (ax, ax.images[0].colorbar.ax))  # type: ignore[union-attr]
    assert bar == pytest.approx(drawn)


def test_an_unknown_language_is_rejected() -> None:
    with pytest.raises(ArgumentError, match="en, zh"):
        axes_of(trace(), lang="fr")


def test_masked_cells_have_no_colour_of_the_scale() -> None:
    w = np.array([[1, 0, 0], [0.5, 0.5, 0], [np.nan, np.nan, np.nan]])
    image = axes_of(Trace.from_weights(w)).images[0]
    colours = image.to_rgba(present(image.get_array()))
    viridis = matplotlib.colormaps["viridis"]
    assert tuple(colours[0, 0]) == viridis(1.0)
    assert tuple(colours[0, 1]) == tuple(colours[1, 2]) == pytest.approx((14 / 15, 14 / 15, 14 / 15, 1))
    assert tuple(colours[2, 0]) not in (tuple(colours[0, 1]), viridis(0.0))


def test_a_pooled_map_has_axes_in_tokens() -> None:
    ax = axes_of(Trace.from_weights(np.eye(10), [*"abcdefghij"], map=3))
    assert isinstance(ax, Axes)
    assert ax.get_xlim() == (-0.5, 9.5)
    assert "each cell is 4 × 4 tokens" in ax.get_xlabel()
    assert "a" not in [label.get_text() for label in ax.get_xticklabels()]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3, 0), (1, 50), (2, 1, 50)])
def test_empty_and_flat_maps_are_drawn(tmp_path: Path, shape: tuple[int, ...]) -> None:
    drawn = axes_of(Trace.from_weights(np.full(shape, 1 / max(1, shape[-1]))))
    np.ravel(drawn)[0].figure.savefig(tmp_path / "p.png")


def test_no_setting_is_changed_and_no_figure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyplot, "show", lambda *_, **__: pytest.fail("shown"))
    before = dict(matplotlib.rcParams)
    axes_of(trace(H=2, tokens=["注", "意", "力", "$x^"]))
    assert dict(matplotlib.rcParams) == before


def test_tokens_without_a_glyph_do_not_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Warnings are errors here; matplotlib warns of a missing glyph when it draws the figure."""
    monkeypatch.setattr(fonts, "_CJK", ())
    monkeypatch.setattr("regard.views.fonts.emoji_font", lambda: None)
    for cached in (fonts.families, fonts._warn_once):
        cached.cache_clear()
    with caplog.at_level(logging.WARNING, logger="regard"):
        for _ in range(2):
            ax = axes_of(trace(tokens=["注意力", "🤗", "$x^{$", "\ud800"]))
            assert isinstance(ax, Axes)
            figure_of(ax).savefig(tmp_path / "p.png")
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["#0", "#1"]  # the position, never a box
    assert ax.get_yticklabels()[2].get_text() == "$x^{$"
    assert [record.message for record in caplog.records if "Noto Sans CJK SC" in record.message] == [
        caplog.records[0].message
    ]
    for cached in (fonts.families, fonts._warn_once):
        cached.cache_clear()


def test_a_newly_installed_font_is_found(new_font: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib's font list is older than the font; an invalid font file is ignored."""
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(broken), str(new_font)])
    monkeypatch.setattr(fonts, "_CJK", ("Han of Today",))
    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    fonts.families.cache_clear()
    assert fonts.families()[0] == "Han of Today"
    fonts.families.cache_clear()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"trace.plot needs matplotlib.*regard\[plot\]"):
        axes_of(trace())


# --- scales, tokens, texts -------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [[0, 2], (2, 0), range(1, 3), np.array([1, 0])])
def test_several_heads_are_drawn_in_the_given_order(heads: Any) -> None:
    layers = Trace(Trace.from_weights(np.full((3, 4, 4), 0.25), name=f"h.{at}")[0] for at in range(2))
    one, both = axes_of(layers, 0, head=heads), axes_of(layers, head=heads)
    assert isinstance(one, np.ndarray)
    assert isinstance(both, np.ndarray)
    assert [ax.get_title() for ax in one.flat] == [f"head {head}" for head in heads]
    assert both.shape == (2, len(heads))
    for wrong in ([], [0, 3], ["mean"]):
        with pytest.raises(ArgumentError, match="0 to 2"):
            axes_of(layers, head=wrong)
    out = io.StringIO()
    layers.show(1, head=heads, file=out, width=60, color="none")
    assert re.findall(r"head (\d) of 3", out.getvalue()) == [str(head) for head in heads]


@pytest.mark.parametrize(
    ("lang", "expected"), [("en", "token read → token written"), ("zh", "读入的词元 → 写出的词元")]
)
def test_row_labels_show_the_token_read_and_the_token_written(lang: Any, expected: str) -> None:
    record = Trace.from_weights(np.eye(3), ["<s>", "a", "b"], ["x", "y", "z"], kind="cross")[0]
    trace = Trace(record.with_tokens(written=["a", "b", ""]))
    ax = axes_of(trace, lang=lang)
    assert isinstance(ax, Axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["<s> → a", "a → b", "b"]
    assert ax.get_ylabel() == expected
    grid = axes_of(Trace([trace[0], trace[0]]), lang=lang)
    assert isinstance(grid, np.ndarray)
    assert [label.get_text() for label in grid[0, 0].get_yticklabels()] == ["<s> → a", "a → b", "b"]
    out = io.StringIO()
    trace.show(file=out, width=70, color="none", lang=lang)
    assert ["<s> → a" in out.getvalue(), "  a → b" in out.getvalue(), expected in out.getvalue()] == [True] * 3


def test_emoji_are_drawn_as_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """🚀 was labelled by its position, since no outline font has it. Here DejaVu Sans stands in for an emoji font."""
    from PIL import ImageFont

    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 109)
    found: Any = (font, frozenset({ord("🚀")}))
    monkeypatch.setattr("regard.views.fonts.emoji_font", lambda: found)
    tokens = ["go", "🚀", "ok🚀", "\ue000"]
    ax = axes_of(Trace.from_weights(np.eye(4), tokens))
    assert isinstance(ax, Axes)
    ax.figure.canvas.draw()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["go", "", "", "#3"]
    boxes = [artist for artist in ax.get_children() if isinstance(artist, AnnotationBbox)]
    assert len(boxes) == 4
    assert {box.xy for box in boxes} == {(1, 0), (2, 0), (0, 1), (0, 2)}
    monkeypatch.setattr("regard.views.fonts.emoji_font", lambda: None)
    ax = axes_of(Trace.from_weights(np.eye(4), tokens))
    assert isinstance(ax, Axes)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["go", "#1", "#2", "#3"]


def test_a_sink_is_reported_and_does_not_set_the_scale() -> None:
    w = np.full((2, 10, 10), 0.1 / 9)
    w[:, :, 0] = 0.9
    ax = axes_of(Trace.from_weights(w), head=0)
    assert isinstance(ax, Axes)
    assert "first token receives 90 %" in ax.get_title()
    assert ax.images[0].norm.vmax == 1
    norm: Any = ax.images[0].norm
    assert norm(0.1 / 9) > 0.6
    assert ax.images[0].colorbar.extend == "neither"  # type: ignore[union-attr]
    grid = axes_of(Trace.from_weights(w), lang="zh")
    assert isinstance(grid, np.ndarray)
    assert grid[0, 1].get_title() == "头 1 · 首词元 90%"


def test_figures_are_saved_as_in_the_docs(tmp_path: Path) -> None:
    drawn = Trace.from_weights(np.full((5, 3, 3), 1 / 3))
    for figure, name in ((drawn.plot(0, head=0), "head.png"), (drawn.plot(0), "heads.png")):
        assert isinstance(figure, Figure)
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(("lang", "expected"), [("en", "mean of all heads"), ("zh", "各头平均")])
def test_a_mean_over_heads_is_named(lang: Any, expected: str) -> None:
    layers = Trace([Trace.from_weights(np.full((2, 3, 3), 1 / 3), name=f"h.{at}.attn")[0] for at in range(2)])
    one, both = axes_of(layers, 0, "mean", lang=lang), axes_of(layers, head="mean", lang=lang)
    assert isinstance(one, Axes)
    assert isinstance(both, np.ndarray)
    above = both[0, 0].figure.get_suptitle()
    for title in (one.get_title(), above):
        assert expected in title.replace("\n", " ")
        assert ".mean" not in title
    assert above.startswith("h.*.attn")


@pytest.mark.parametrize("scale", ["linear", "log", "renormalised", "hidden"])
def test_every_scale_is_drawn_and_masked_cells_stay_grey(scale: ScaleName, tmp_path: Path) -> None:
    w = softmax(np.where(np.tri(4, dtype=bool), np.random.default_rng(0).normal(size=(4, 4)), -np.inf))
    ax = axes_of(Trace.from_weights(w), scale=scale)
    assert isinstance(ax, Axes)
    image = ax.images[0]
    colours = image.to_rgba(present(image.get_array()))
    assert tuple(colours[0, 3]) == pytest.approx((14 / 15, 14 / 15, 14 / 15, 1))
    assert tuple(colours[3, 3]) != tuple(colours[0, 3])
    assert (tuple(colours[3, 0]) == tuple(colours[0, 3])) == (scale in ("renormalised", "hidden"))
    assert " · " in ax.images[0].colorbar.ax.get_ylabel()  # type: ignore[union-attr]
    figure_of(ax).savefig(tmp_path / "p.png")


def test_tokens_are_merged_and_a_line_ends_the_prompt() -> None:
    record = replace(trace(tokens=["æľ", "Ī", "Ġun", "likely"])[0], prompt=2)
    ax = axes_of(Trace([record]), merge="words")
    assert isinstance(ax, Axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["月", "unlikely"]
    assert ax.lines[0].get_ydata()[0] == 0.5  # type: ignore[index]


def test_a_token_without_a_font_is_labelled_by_its_position() -> None:
    record = trace(T=6, S=6, tokens=["\ue000"] * 6)
    ax = axes_of(record, rows=slice(3, 5), cols=slice(1, 4))
    assert isinstance(ax, Axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["#3", "#4"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["#1", "#2", "#3"]


@pytest.mark.parametrize("T", [50, 300, 1000, 5000])
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
def test_no_text_of_a_long_map_is_cut_off(T: int, mask: Mask | None) -> None:
    q = np.random.default_rng(0).standard_normal((1, 1, T, 8)).astype(np.float32)
    _, record = attend(q, q, q, mask=mask, see=See(map=64))
    ax = axes_of(Trace([record]))
    assert isinstance(ax, Axes)
    figure = figure_of(ax)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    wide, high = figure.get_size_inches() * figure.dpi
    for words in [ax.xaxis.label, ax.yaxis.label, ax.title, ax.images[0].colorbar.ax.yaxis.label]:  # type: ignore[union-attr]
        (left, low), (right, top) = words.get_window_extent(renderer).get_points()
        assert left >= 0, words
        assert low >= 0, words
        assert right <= wide, words
        assert top <= high, words


@pytest.mark.parametrize(("T", "last"), [(1024, ""), (1000, ", the last ones fewer")])
def test_smaller_cells_at_the_end_are_noted(T: int, last: str) -> None:
    q = np.zeros((1, 1, T, 8), np.float32)
    _, record = attend(q, q, q, see=See(map=64))
    ax = axes_of(Trace([record]))
    assert isinstance(ax, Axes)
    assert " ".join(ax.get_xlabel().split()).endswith(f"each cell is 16 × 16 tokens{last}")


def test_the_title_names_the_sample() -> None:
    two = Trace.from_weights(softmax(np.zeros((2, 1, 3, 3))), name="h.0.attn")
    ax = axes_of(two, sample=1)
    assert isinstance(ax, Axes)
    assert ax.get_title() == "h.0.attn · self-attention · sample 1 of 2"


def test_without_a_chinese_font_the_text_is_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_can_draw", lambda sign: ord(sign) < 128)
    ax = axes_of(trace(), lang="zh")
    assert isinstance(ax, Axes)
    assert ax.get_xlabel() == "key position"


def test_many_layers_and_heads_are_small(tmp_path: Path) -> None:
    w = np.full((1, 9, 40, 40), 0.1 / 39)
    w[..., 0] = 0.9
    layers = Trace(Trace.from_weights(w, ["a"] * 40, name=f"h.{i}.attn")[0] for i in range(4))
    axes = axes_of(layers)
    assert isinstance(axes, np.ndarray)
    assert axes.shape == (4, 9)
    assert [axes[0, 3].get_title(), axes[1, 3].get_title()] == ["head 3", ""]
    assert "a" not in [label.get_text() for label in axes[3, 0].get_xticklabels()]
    assert axes[3, 0].get_ylabel() == "layer 3"
    figure = axes[0, 0].figure
    assert "36 of 36 heads" in figure.get_suptitle()
    assert "positions" in figure.get_supxlabel()
    assert max(figure.get_size_inches()) < 18
    figure.savefig(tmp_path / "p.png")


def test_maps_of_several_shapes_have_their_own_labels() -> None:
    w = [softmax(np.zeros((2, *shape))) for shape in [(4, 4), (6, 6), (6, 4)]]
    tokens = [("abcd", "abcd"), ("uvwxyz", "uvwxyz"), ("uvwxyz", "abcd")]
    names = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"]
    records = [
        Trace.from_weights(each, list(t), list(s), name=name, kind=kind)[0]
        for each, (t, s), name, kind in zip(w, tokens, names, KINDS, strict=True)
    ]
    axes = axes_of(Trace(records), head=0)
    assert isinstance(axes, np.ndarray)
    assert axes.shape == (1, 3)
    assert [ax.get_yticklabels()[0].get_text() for ax in axes[0]] == ["a", "u", "u"]
    assert axes[0, 2].get_title() == "layer 0\ncross-attention"
    figure = axes[0, 0].figure
    assert figure.get_suptitle() == "encoder self-attention · decoder self-attention · cross-attention · head 0"
    rows = axes_of(Trace(records), lang="zh")
    assert isinstance(rows, np.ndarray)
    assert rows[2, 0].get_ylabel() == "第 0 层 · 交叉注意力"


# --- no overlap --------------------------------------------------------------------------------------------


def overlaps(boxes: list[Bbox]) -> list[tuple[int, int]]:
    """The pairs of boxes that overlap by more than a pixel."""
    inner = [Bbox.from_extents(b.x0 + 0.5, b.y0 + 0.5, b.x1 - 0.5, b.y1 - 0.5) for b in boxes]
    return [(i, j) for j, b in enumerate(inner) for i, a in enumerate(inner[:j]) if a.overlaps(b)]


def assert_no_labels_overlap(ax: Axes) -> None:
    figure_of(ax).draw_without_rendering()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert labels
        assert overlaps([label.get_window_extent() for label in labels if label.get_text()]) == []


SENTENCE = ["while", "internationalization", "of", "extraordinarily", "long", "words", "makes", "each", "label", "lie"]
SENTENCE += ["on", "its", "neighbours"]


@pytest.mark.parametrize("T", [1, 30, 65, 250])
@pytest.mark.parametrize("text", [["春", "江", "潮", "水"], SENTENCE])
def test_token_labels_never_overlap(T: int, text: list[str]) -> None:
    tokens = (text * T)[:T]
    ax = axes_of(trace(T=T, S=T, tokens=tokens))
    assert isinstance(ax, Axes)
    assert_no_labels_overlap(ax)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    step = -(-T // len(shown))
    assert (step > 1) == ("is named" in ax.get_xlabel())
    assert len(shown) >= min(T, 60)
    assert ax.get_title() == "h.0.attn · self-attention"


@pytest.mark.parametrize("shape", [(5, 24), (40, 3)])
def test_labels_of_stretched_maps_never_overlap(shape: tuple[int, int]) -> None:
    T, S = shape
    w = np.full(shape, 1 / S)
    ax = axes_of(Trace.from_weights(w, (SENTENCE * T)[:T], (SENTENCE * S)[:S], kind="cross"))
    assert isinstance(ax, Axes)
    assert_no_labels_overlap(ax)


@pytest.mark.parametrize(("H", "T"), [(2, 6), (8, 17), (2, 25), (2, 100)])
def test_labels_of_grids_never_overlap(H: int, T: int) -> None:
    axes = axes_of(trace(H=H, T=T, S=T, tokens=(SENTENCE * T)[:T]))
    assert isinstance(axes, np.ndarray)
    assert_no_labels_overlap(axes[-1, 0])


def test_a_title_is_complete_with_every_scale() -> None:
    w = np.full((2, 8, 8), 1 / 8)
    for scale in ("linear", "log", "auto"):
        ax = axes_of(Trace.from_weights(w, name="encoder.layers.0.self_attention"), head=1, scale=scale)
        assert isinstance(ax, Axes)
        figure_of(ax).draw_without_rendering()
        box, whole = ax.title.get_window_extent(), ax.figure.bbox
        assert whole.x0 <= box.x0
        assert box.x1 <= whole.x1
        assert "…" not in ax.get_title()
        assert ax.get_window_extent().width > 0.6 * whole.width


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("places", [(1, 2), (2, 2)])
def test_neighbours_in_the_callers_grid_are_not_covered(layout: Any, places: tuple[int, int]) -> None:
    figure, axes = pyplot.subplots(*places, layout=layout)
    drawn = trace(H=2, T=9, S=9, tokens=SENTENCE[:9], name="encoder.layers.0.self_attention")
    for ax in axes.flat:
        for _ in range(2):  # a second picture gets the same area
            ax.clear()
            axes_of(drawn, head=1, ax=ax)
    figure.draw_without_rendering()
    boxes = [ax.get_tightbbox(for_layout_only=False) for ax in axes.flat]
    assert overlaps(boxes) == []
    assert all(ax.get_window_extent().width > 0.1 * figure.bbox.width for ax in axes.flat)


# --- options of the caller -------------------------------------------------------------------------------


def test_an_array_of_axes_is_rejected() -> None:
    with pytest.raises(ArgumentError, match=r"found ndarray; .* ax=axes\[0\]"):
        axes_of(trace(), ax=pyplot.subplots(1, 2)[1])


def test_vmax_makes_two_figures_comparable() -> None:
    low, high = (axes_of(Trace.from_weights(w), vmax=1, cmap="magma") for w in (np.full((4, 4), 0.25), np.eye(4)))
    assert isinstance(low, Axes)
    assert isinstance(high, Axes)
    assert low.images[0].norm.vmax == high.images[0].norm.vmax == 1
    assert low.images[0].get_cmap().name == "magma"
    clipped = axes_of(Trace.from_weights(np.eye(4)), vmax=0.5)
    assert clipped.images[0].colorbar.extend == "max"
    grid = axes_of(trace(H=2), vmax=0.9)
    assert grid[0, 1].images[0].norm.vmax == 0.9


@pytest.mark.parametrize(
    "option", [{"vmax": 0}, {"vmax": float("nan")}, {"vmax": "1"}, {"cmap": "viridi"}, {"cmap": 3}]
)
def test_invalid_vmax_and_cmap_are_rejected(option: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(option))):
        axes_of(trace(), **option)


def test_the_colour_bar_can_be_left_out() -> None:
    ax = axes_of(trace(), colorbar=False)
    assert isinstance(ax, Axes)
    assert ax.images[0].colorbar is None
    grid = axes_of(trace(H=2), colorbar=False)
    assert grid[0, 0].images[0].colorbar is None


def test_positions_are_whole_numbers() -> None:
    for T in (1, 2, 3, 10):
        ax = axes_of(trace(T=T, S=T))
        assert isinstance(ax, Axes)
        figure_of(ax).draw_without_rendering()
        assert all(float(tick).is_integer() for tick in [*ax.get_xticks(), *ax.get_yticks()])


def test_grey_and_red_are_explained() -> None:
    w = np.array([[1, 0], [np.nan, np.nan]])
    ax = axes_of(Trace.from_weights(w))
    assert isinstance(ax, Axes)
    assert ax.get_xlabel() == "key position\ngrey: hidden or exactly 0 · red: NaN"
    assert "灰色" in axes_of(Trace.from_weights(np.eye(2)), lang="zh").get_xlabel()


def test_the_callers_rcparams_apply() -> None:
    with matplotlib.rc_context({"font.family": "serif", "figure.figsize": (9, 3)}):
        ax = axes_of(trace(tokens=["the", "cat", "春", "x"]))
        assert isinstance(ax, Axes)
        assert tuple(figure_of(ax).get_size_inches()) == (9, 3)
        assert ax.title.get_fontfamily()[0] == matplotlib.rcParams["font.serif"][0]
        assert set(fonts.families()) <= set(ax.title.get_fontfamily())
        assert_no_labels_overlap(ax)
        grid = axes_of(trace(H=3, T=12, S=12, tokens=SENTENCE[:12]))
        assert isinstance(grid, np.ndarray)
        assert tuple(grid[0, 0].figure.get_size_inches()) == (9, 3)
        assert_no_labels_overlap(grid[0, 0])


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_the_extension_sets_the_file_format(tmp_path: Path, ending: str, start: bytes) -> None:
    save_plot(trace(), tmp_path / f"p.{ending}")
    assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)
    with pytest.raises(RegardError, match="gif"):
        save_plot(trace(), tmp_path / "p.gif")
