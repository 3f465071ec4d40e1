"""Exact parts of a map: exact weights, correct positions, and one clear error for an invalid part."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_axes import axes_of, figure_of
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from tolerances import assert_close

from regard import Mask, Record, See, Trace, attend
from regard.errors import ArgumentError, NotKeptError
from regard.messages import LANGUAGES, Language
from regard.records import DecodeStep
from regard.reference import softmax
from regard.views.exact_part import MOST, ExactPart, cut_out
from regard.views.picture import merged_or_cut, picture

pytestmark = pytest.mark.usefixtures("no_display")

T = 300
TOKENS = [f"w{at}" for at in range(T)]
ROWS, COLS = slice(200, 206), slice(195, 203)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def long_text(tokens: list[str] | None = TOKENS, name: str = "h.0.attn", **see: Any) -> Trace:
    """A trace longer than its map, causal, with q and k kept."""
    q, k = np.random.default_rng(0).normal(size=(2, 1, 2, T, 4))
    _, record = attend(q, k, k, mask=Mask.causal(), see=See(**{"map": 64, "qk": True} | see))
    return Trace([record.named(name, "decoder").with_tokens(tokens, tokens)])


def shown(trace: Trace, **options: Any) -> str:
    out = io.StringIO()
    chosen: dict[str, Any] = {"width": 80, "color": "none", "lang": "en"} | options
    trace.show(file=out, **chosen)
    return out.getvalue()


# --- cutting ----------------------------------------------------------------------------------------------


@given(data=st.data(), high=st.integers(1, 12), wide=st.integers(1, 12))
def test_a_part_has_the_exact_weights(data: st.DataObject, high: int, wide: int) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, high, wide)))
    top, left = data.draw(st.integers(0, high - 1)), data.draw(st.integers(0, wide - 1))
    bottom, right = data.draw(st.integers(top + 1, high)), data.draw(st.integers(left + 1, wide))
    whole = Trace.from_weights(weights, map=2)[0]
    for rows in (slice(top, bottom), range(top, bottom), slice(top - high, bottom if bottom < high else None)):
        part = cut_out(whole, 1, rows, slice(left, right))
        assert isinstance(part, ExactPart)
        assert part.shape == (2, 3, bottom - top, right - left)
        one = picture(part, 2, 1)
        assert_close(one.cells, weights[1, 2, top:bottom, left:right])
        assert one.origin == (top, left)


def test_without_rows_all_rows_are_kept() -> None:
    part, _ = merged_or_cut(long_text()[0], 0, None, cols=slice(0, 3))
    assert part.shape == (1, 2, T, 3)


def test_each_sample_has_its_tokens_and_a_part_can_be_renamed() -> None:
    record = Trace.from_weights(np.tile(np.eye(3), (2, 1, 1, 1)), [list("abc"), list("def")])[0]
    part = cut_out(record, 1, slice(1, 3), None)
    assert (part.query_tokens, part.key_tokens) == ((("e", "f"),), (("d", "e", "f"),))
    assert isinstance(part.named("other"), ExactPart)


def test_tokens_are_decoded_before_they_are_cut() -> None:
    record = Trace.from_weights(np.eye(4), ["æľ", "Ī", "Ġun", "likely"])[0]
    assert cut_out(record, 0, slice(0, 1), None).query_tokens == (
        ("⟨E6 9C⟩",),
    )  # alone, it could not be distinguished from Latin letters


def test_tensors_are_cut_too() -> None:
    weights = torch.softmax(torch.randn(2, 5, 5), -1)
    ax = axes_of(Trace.from_weights(weights, map=2), head=1, rows=slice(1, 3), cols=slice(2, 5))
    assert isinstance(ax, Axes)
    assert_close(np.asarray(ax.images[0].get_array()), weights[1, 1:3, 2:5].numpy())


@pytest.mark.parametrize("see", [{"lse": True}, {"lse": False}])
def test_a_query_that_attends_outside_of_the_part_is_not_fully_masked(see: dict[str, bool]) -> None:
    q = np.random.default_rng(0).normal(size=(1, 1, 6, 4))
    mask = np.tri(6, dtype=bool)
    mask[1] = False
    _, record = attend(q, q, q, mask=mask, see=See(qk=True, map=2, **see))
    attending = picture(cut_out(record, 0, slice(0, 3), slice(3, 6)), 0, 0).attending
    assert attending.tolist() == [1, 0, 1]
    weights = Trace.from_weights(record.weights(), map=2)[0]
    assert picture(cut_out(weights, 0, slice(0, 3), slice(3, 6)), 0, 0).attending.tolist() == [1, 0, 1]


def test_the_first_token_counts_only_if_it_is_drawn() -> None:
    weights = np.full((8, 8), 0.2 / 7)
    weights[:, 0] = 0.8
    record = Trace.from_weights(weights)[0]
    with_it, without = (picture(cut_out(record, 0, slice(4, 8), cols), 0, 0) for cols in (slice(0, 4), slice(4, 8)))
    assert with_it.first == pytest.approx(0.8)
    assert with_it.first_column == 0
    assert (without.first, without.first_column) == (None, -1)
    assert (picture(without.record, 0, 0, "hidden").cells == without.cells).all()
    assert (picture(with_it.record, 0, 0, "hidden").cells[:, 0] == 0).all()
    assert "first token receives 80 %" in shown(Trace([record]), rows=slice(4, 8), cols=slice(0, 4))
    hidden = [
        shown(Trace([record]), scale="hidden", rows=slice(4, 8), cols=cols) for cols in (slice(0, 4), slice(4, 8))
    ]
    assert ["left out" in text for text in hidden] == [True, False]


def test_a_part_reports_the_share_of_a_learned_sink_in_its_rows(tmp_path: Path) -> None:
    """The share of a part raised IndexError: its rows were compared with all queries of the record."""
    weights = np.full((1, 1, 4, 4), 0.25)
    mass = np.array([0.8, 0.6, 0.4, 0.2]).reshape(1, 1, 4)
    trace = Trace(Trace.from_weights(weights)[0].changed(map=weights * (1 - mass[..., None]), sink_mass=mass))
    assert "learned sink receives 50 %" in shown(trace)
    assert "learned sink receives 30 %" in shown(trace, rows=slice(2, 4))
    axes_of(trace, rows=slice(2, 4), cols=slice(0, 2))
    trace.html(tmp_path / "part.html", rows=slice(2, 4))


# --- drawing ----------------------------------------------------------------------------------------------


def test_the_terminal_title_names_the_part() -> None:
    text = shown(long_text(None), head=1, rows=slice(200, 203), cols=slice(198, 202))
    weights = long_text()[0].weights(slice(200, 203), slice(198, 202))[0, 1]
    title, kept, _, columns, *rows = text.splitlines()
    assert title == "h.0.attn · decoder self-attention · head 1 of 2 · queries 200–202 · keys 198–201"
    assert kept == "of 300 × 300"
    assert columns.split() == ["198", "199", "200", "201"]
    assert [row.split()[0] for row in rows[:3]] == ["200", "201", "202"]
    seen = [float(number) for row in rows[:3] for number in re.findall(r"[\d.]+", row)[1:]]
    assert seen == pytest.approx([1000 * float(value) for value in weights.ravel() if value > 0], abs=0.5)
    assert "numbers are thousandths" in text
    assert "each cell" not in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_rows_are_labelled_in_both_languages(lang: Language) -> None:
    text = shown(long_text(), head=0, rows=ROWS, cols=COLS, lang=lang)
    assert all(f"{token} " in text for token in TOKENS[ROWS])
    assert TOKENS[206] not in text
    assert {"en": "queries 200–205", "zh": "查询 200–205"}[lang] in text
    assert {"en": "of 300 × 300", "zh": "全图 300 × 300"}[lang] in text


def test_column_positions_start_at_the_part() -> None:
    text = shown(long_text(None), head=0, rows=slice(200, 264), cols=slice(190, 254))
    assert re.search(r"\n +190  195  200  205  210 ", text)
    assert text.splitlines()[4].startswith("200 ")


def test_several_heads_and_layers_can_be_parts() -> None:
    both = Trace([long_text(name=f"h.{at}.attn")[0] for at in range(2)])
    for options in ({}, {"layer": 0}, {"head": 1}, {"layer": 0, "head": "mean"}):
        assert "queries 200–205" in shown(both, rows=ROWS, cols=COLS, **options), options
    other = long_text()[0].named("h.2.attn")
    shorter = Record(shape=(1, 2, 5, 5), map=np.full((1, 2, 5, 5), 0.2), name="h.3.attn")
    text = shown(Trace([other, shorter]), layer="all", cols=slice(0, 5))
    assert "keys 0–4" in text
    assert "queries 0" not in text


@pytest.mark.parametrize("color", ["none", "truecolor"])
def test_a_part_too_large_for_the_screen_reports_what_fits(color: str) -> None:
    with pytest.raises(ArgumentError, match=r"64 rows × 164 cols .* 80 columns.*plot") as error:
        shown(long_text(), head=0, rows=slice(200, 264), cols=slice(100, 264), color=color)
    high, wide = error.value.values["high"], error.value.values["wide"]
    for rows, cols in ((high, wide), (high, 4), (2, wide)):
        text = ANSI.sub("", shown(long_text(), head=0, rows=slice(100, 100 + rows), cols=slice(0, cols), color=color))
        assert "each cell" not in text
        assert max(map(len, text.splitlines())) <= 80
    with pytest.raises(ArgumentError, match=f"at most {high} × "):
        shown(long_text(), head=0, rows=slice(100, 101 + high), cols=slice(0, 4), color=color)
    with pytest.raises(ArgumentError, match=f"× {wide} do"):
        shown(long_text(), head=0, rows=slice(100, 104), cols=slice(0, wide + 1), color=color)


def test_matplotlib_uses_positions_of_the_whole_map(tmp_path: Path) -> None:
    trace = long_text()
    ax = axes_of(trace, head=1, rows=ROWS, cols=COLS)
    assert isinstance(ax, Axes)
    weights = trace[0].weights(ROWS, COLS)[0, 1]
    drawn = np.asarray(ax.images[0].get_array())
    assert_close(drawn[weights > 0], weights[weights > 0])
    assert list(ax.images[0].get_extent()) == [194.5, 202.5, 205.5, 199.5]
    assert (ax.get_xlim(), ax.get_ylim()) == ((194.5, 202.5), (205.5, 199.5))
    assert ax.get_yticks().tolist() == list(range(200, 206))
    assert [label.get_text() for label in ax.get_xticklabels()] == TOKENS[COLS]
    assert "queries 200–205" in ax.get_title()
    figure_of(ax).savefig(tmp_path / "part.png")


def test_matplotlib_writes_positions_without_an_offset() -> None:
    ax = axes_of(long_text(None), head=1, rows=slice(200, 260), cols=slice(101, 281), lang="zh")
    assert isinstance(ax, Axes)
    figure_of(ax).draw_without_rendering()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [f"{tick:.0f}" for tick in ax.get_xticks()]
    assert {"120", "200"} <= set(labels)
    assert "键 101–280" in ax.get_title()
    ax.set_xlim(131000.5, 131064.5)  # where matplotlib would write an offset beside the axis
    figure_of(ax).draw_without_rendering()
    assert "131020" in [label.get_text() for label in ax.get_xticklabels()]


def test_a_grid_of_parts_names_the_part_once() -> None:
    axes = axes_of(long_text(), rows=ROWS, cols=COLS, lang="zh")
    assert isinstance(axes, np.ndarray)
    assert axes[0, 0].figure.get_suptitle() == "h.0.attn · 解码器自注意力 · 查询 200–205 · 键 195–202\n全图 300 × 300"
    assert axes[0, 0].get_yticks().tolist() == list(range(200, 206))
    lengths = [np.full((1, 1, n, n), 1 / n) for n in (5, 7)]
    ends = axes_of(Trace.from_weights(lengths), rows=slice(-2, None), cols=slice(-2, None))
    assert isinstance(ends, np.ndarray)
    assert [ax.get_ylim() for ax in ends[0]] == [(4.5, 2.5), (6.5, 4.5)]
    assert all(len(ax.get_yticks()) for ax in ends[0])  # neighbours with different positions share no labels


def test_every_weight_of_the_largest_part_gets_a_pixel() -> None:
    flat = np.full((1, MOST), 1 / MOST)
    ax = axes_of(Trace.from_weights(flat), rows=slice(0, 1), cols=slice(0, MOST))
    assert isinstance(ax, Axes)
    figure_of(ax).draw_without_rendering()
    assert ax.get_window_extent().width >= MOST


def test_the_prompt_line_keeps_its_position() -> None:
    record = long_text()[0].changed(prompt=203, step=DecodeStep(0, ()))
    part = cut_out(record, 0, ROWS, COLS)
    assert part.prompt == 3
    ax = axes_of(Trace([record]), head=0, rows=ROWS, cols=COLS)
    assert isinstance(ax, Axes)
    assert np.asarray(ax.lines[0].get_ydata()).tolist() == [202.5, 202.5]
    assert cut_out(record, 0, slice(203, 206), COLS).prompt is None
    assert cut_out(record, 0, slice(190, 203), COLS).prompt is None


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": slice(290, 310)}, r"rows=slice\(290, 310, None\).*0 to 299; try rows=slice\(280, 300\)"),
        ({"cols": range(-3, 4)}, r"cols=range\(-3, 4\).*0 to 299; try cols=slice\(0, 7\)"),
        ({"rows": slice(-400, 5)}, r"0 to 299; try rows=slice\(0, 105\)"),
        ({"rows": range(9999)}, r"try rows=slice\(0, 300\)"),
        ({"rows": slice(5, 5)}, r"rows=slice\(5, 5, None\) holds no position.*'h.0.attn'.*slice\(0, 64\)"),
        ({"cols": range(9, 3)}, "holds no position"),
        ({"rows": slice(0, 9, 2)}, r"found slice\(0, 9, 2\)"),
        ({"rows": range(9, 0, -1)}, r"found range\(9, 0, -1\)"),
        ({"rows": slice("a", "b")}, r"rows= takes positions.*found slice\('a', 'b', None\)"),
        ({"cols": 7}, "cols= takes positions.*found 7"),
        ({"rows": ROWS, "merge": "words"}, r"trace.merged\('words'\)"),
        ({"cols": COLS, "rows": ROWS, "scale": "renormalised"}, "8 of 300 keys.*scale='hidden'"),
    ],
)
def test_an_invalid_part_raises_one_clear_error(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    trace = long_text()
    for draw in (trace.show, trace.plot, lambda **given: trace.html(tmp_path / "p.html", **given)):
        with pytest.raises(ArgumentError, match=words) as error:
            draw(**options)
        assert error.value.text("zh") != error.value.text("en")


def test_a_part_that_is_too_large_reports_the_limit() -> None:
    trace = Trace.from_weights(np.eye(MOST + 1), map=8)
    with pytest.raises(ArgumentError, match=f"{MOST + 1} rows × 4 cols.*at most {MOST} × {MOST}"):
        axes_of(trace, cols=slice(0, 4))
    assert isinstance(axes_of(trace, rows=slice(0, MOST), cols=slice(0, 4)), Axes)


def test_without_q_and_k_the_error_names_the_setting(tmp_path: Path) -> None:
    trace = long_text(qk=False)
    for draw in (trace.show, trace.plot, lambda **given: trace.html(tmp_path / "p.html", **given)):
        with pytest.raises(NotKeptError, match=r"See\(qk=True\)"):
            draw(rows=ROWS, cols=COLS)


def test_complete_rows_can_be_renormalised_and_tokens_are_not_merged() -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(6, 6)))
    part = cut_out(Trace.from_weights(weights)[0], 0, slice(2, 4), None)
    assert_close(picture(part, 0, 0, "renormalised").cells.sum(-1), np.ones(2))
    torn = Trace.from_weights(np.eye(4), ["æľ", "Ī", "Ġun", "likely"])
    assert "merged" in shown(torn)
    assert "merged" not in shown(torn, rows=slice(0, 4))
    assert "un" in shown(torn.merged("words"), rows=slice(1, 2))


def test_a_record_without_weights_has_nothing_to_draw() -> None:
    assert "nothing to draw: 0 queries" in shown(Trace.from_weights(np.zeros((0, 4))), cols=slice(0, 2))
