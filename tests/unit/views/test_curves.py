"""Curves: reading metrics.jsonl, binning, smoothing, and drawing in any width, language and encoding."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.errors import ArgumentError, FileError, MissingPackageError, UnknownNameError
from regard.messages import LANGUAGES
from regard.views import fonts
from regard.views.curve_drawing import (
    WIDEST,
    CharacterSet,
    PlotArea,
    curve_lines,
    curve_path,
    plot_curves,
    save_curves,
    show_curves,
)
from regard.views.curves import (
    Curve,
    bin_points,
    curve,
    curves_of,
    read_metrics,
    run_names,
    running_mean,
    ticks,
    value_range,
)

numbers = st.floats(-1e6, 1e6, allow_nan=False)


def a_curve(n: int = 500, run: str = "copy", metric: str = "loss", seed: int = 0) -> Curve:
    noise = np.random.default_rng(seed).normal(scale=0.1, size=n)
    steps = np.arange(1.0, n + 1)
    return Curve(run, metric, steps, 1 + 5 * np.exp(-steps / 50) + noise)


def shown(curves: list[Curve], encoding: str = "utf-8", **options: Any) -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    chosen: dict[str, Any] = {"width": 70, "height": 8, "color": "none", "lang": "en"} | options
    show_curves(curves, file=out, **chosen)
    out.flush()
    return raw.getvalue().decode(encoding)


# --- read -------------------------------------------------------------------------------------------------


def write(run: Path, *lines: Any, end: str = "\n") -> Path:
    run.mkdir(exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end
    (run / "metrics.jsonl").write_text(text, encoding="utf-8")
    return run


def test_a_pattern_selects_metrics_and_stops_at_a_slash(tmp_path: Path) -> None:
    names = ["attention/h.0/entropy", "attention/h.1/entropy", "attention/h.1/0/entropy", "attention/entropy"]
    run = write(tmp_path / "run", {"step": 1, "loss": 2.0} | dict.fromkeys(names, 1.0))
    found = curves_of("run", read_metrics(run), "attention/*/entropy")
    assert [one.metric for one in found] == names[:2]
    with pytest.raises(UnknownNameError, match=r"attention/\*/sink.*loss, attention/h\.0/entropy"):
        curves_of("run", read_metrics(run), "attention/*/sink")


def test_a_skipped_step_has_no_point(tmp_path: Path) -> None:
    lines = read_metrics(
        write(tmp_path, {"step": 1, "loss": 9.5}, {"step": 2, "loss": None, "skipped": True}, {"step": 5, "loss": 8.0})
    )
    found = curve("copy", lines, "loss")
    assert found.steps.tolist() == [1, 5]
    assert found.values.tolist() == [9.5, 8.0]


def test_an_incomplete_last_line_is_skipped(tmp_path: Path) -> None:
    assert len(read_metrics(write(tmp_path, {"step": 1, "loss": 9.5}, '{"step": 2, "lo', end=""))) == 1


@pytest.mark.parametrize(
    "second",
    [
        *('{"step": 2, "lo', "", "[]", '{"loss": 1}', '{"step": true}', '{"step": 1}', '{"step": 0}', "[" * 100_000),
        *('{"step": 2, "loss": NaN}', f'{{"step": {10**400}}}'),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path: Path, second: str) -> None:
    with pytest.raises(FileError, match=r"metrics\.jsonl, line 2"):
        read_metrics(write(tmp_path, {"step": 1}, second, {"step": 3}))


def test_missing_folders_files_and_metrics_are_reported(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no folder"):
        read_metrics(tmp_path / "none")
    with pytest.raises(FileError, match="holds no run"):
        read_metrics(tmp_path)
    with pytest.raises(FileError, match="no whole line yet"):
        read_metrics(write(tmp_path, end=""))
    lines = read_metrics(write(tmp_path, '{"step": 1, "loss": null, "lr": 1e400, "norm": 2, "skipped": true}'))
    with pytest.raises(UnknownNameError, match=r"no numbers called 'loss'; it has: norm$"):
        curve("copy", lines, "loss")


def test_the_validation_loss_is_added_only_by_default() -> None:
    lines = [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0, "valid_loss": 2.5}]
    assert [one.metric for one in curves_of("copy", lines)] == ["loss", "valid_loss"]
    assert [one.metric for one in curves_of("copy", lines, "loss")] == ["loss"]
    assert [one.metric for one in curves_of("copy", lines[:1])] == ["loss"]


def test_runs_with_equal_names_are_named_by_path() -> None:
    assert run_names([Path("a/copy"), Path("a/sort")]) == ["copy", "sort"]
    assert run_names([Path("a/copy"), Path("b/copy")]) == [str(Path("a/copy")), str(Path("b/copy"))]


# --- binning ----------------------------------------------------------------------------------------------


@given(st.lists(numbers, min_size=1, max_size=60), st.integers(1, 40))
def test_every_point_is_in_one_column(values: list[float], columns: int) -> None:
    array = np.array(values)
    steps = np.arange(float(len(array)))
    mean, low, high = bin_points(steps, array, columns, (0.0, len(array) - 1.0))
    counts = np.bincount(np.clip((steps / max(1, len(array) - 1) * columns).astype(int), 0, columns - 1), None, columns)
    assert np.isclose(np.nansum(mean * counts), array.sum(), atol=1e-3)
    there = counts > 0
    assert (np.isnan(mean) == ~there).all()
    assert np.nanmin(low) == array.min()
    assert np.nanmax(high) == array.max()
    assert (low[there] - 1e-6 <= mean[there]).all()
    assert (mean[there] <= high[there] + 1e-6).all()


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=50), st.integers(0, 60))
def test_running_mean_matches_a_direct_computation(values: list[float], width: int) -> None:
    found, half = running_mean(np.array(values), width), width // 2
    for at in range(len(values)):
        before = min(at, half)
        ahead = min(before, len(values) - 1 - at)
        assert np.isclose(found[at], np.mean(values[at - before : at + ahead + 1]), atol=1e-9)


def test_schedules_and_short_curves_are_not_smoothed() -> None:
    assert not (a_curve().smooth == a_curve().values).all()
    assert (a_curve(metric="lr").smooth == a_curve(metric="lr").values).all()
    assert (a_curve(n=79).smooth == a_curve(n=79).values).all()


@given(numbers, st.floats(1e-6, 1e6), st.integers(1, 12))
def test_ticks_are_few_and_within_the_range(low: float, size: float, most: int) -> None:
    found = ticks(low, low + size, most)
    assert len(found) <= most
    slack = 1e-6 * (abs(low) + size)
    assert all(low - slack <= tick <= low + size + slack for tick in found)
    assert found == sorted(set(found))


def test_a_spike_does_not_set_the_value_range() -> None:
    spiky = a_curve()
    spiky.values[250] = 50
    assert value_range([spiky])[1] < 12
    assert value_range([Curve("copy", "lr", np.array([1.0]), np.array([3.0]))]) == pytest.approx((2.7, 3.3))


# --- in the terminal --------------------------------------------------------------------------------------


def test_a_straight_line_is_a_diagonal_path() -> None:
    line = Curve("copy", "lr", np.arange(0.0, 101), np.arange(0.0, 101))
    path = curve_path(line, PlotArea(10, 10, (0.0, 100.0), (0.0, 100.0)), 10, 10)
    assert (path == np.eye(10, dtype=bool)[::-1]).all()


def test_exact_text_of_a_small_curve() -> None:
    line = Curve("copy", "loss", np.array([0.0, 50, 100]), np.array([2.0, 1.0, 0.0]))
    assert shown([line], width=40, height=6) == (
        "loss over steps\n"
        "\n"
        "2 ┤⠉⠒⠢⠤⢄⣀\n"
        "  │      ⠉⠑⠒⠤⢄⣀⡀\n"
        "1 ┤            ⠈⠉⠒⠢⠤⣀⡀\n"
        "  │                  ⠈⠉⠑⠒⠤⢄⣀\n"
        "  │                         ⠉⠑⠒⠤⢄⣀⡀\n"
        "0 ┤                               ⠈⠉⠒⠢⠤⣀\n"
        "  └┬─────────────────┬─────────────────┬\n"
        "   0                50               100\n"
        "\n"
        "⠤⠤ copy · loss · last 0 · lowest 0 at\n"
        "  step 100\n"
    )


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [24, 31, 80, 200])
@pytest.mark.parametrize("color", ["none", "256", "truecolor"])
def test_no_line_is_wider_than_the_width(lang: str, width: int, color: str) -> None:
    curves = [a_curve(run="一个名字很长的训练" * 5), a_curve(3, "b", "valid_loss"), a_curve(1, "c\x1b[31m\n")]
    for drawn in (curves, curves[:1], curves[2:]):
        characters = CharacterSet.for_terminal("utf-8", color != "none", len(drawn))
        lines = curve_lines(drawn, width, 8, characters, lang)  # type: ignore[arg-type]
        assert max(line.cell_len for line in lines) <= width
        assert not any(set(line.plain) & {"\x1b", "\n"} for line in lines)


def test_letters_distinguish_curves_without_colour() -> None:
    text = shown([a_curve(run="one"), a_curve(run="two", seed=1, n=200)])
    assert "a one · loss" in text
    assert "b two · loss" in text
    assert "⠤" not in text
    colourful = shown([a_curve(run="one"), a_curve(run="two")], color="256")
    assert "⠤⠤" in colourful
    assert "\x1b[" in colourful


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_encodings_without_our_characters(encoding: str, lang: str) -> None:
    text = shown([a_curve()], encoding, lang=lang)
    assert "\n" in text
    assert max(cell_len(line) for line in text.splitlines()) <= 70
    if lang == "en":
        assert "?" not in text


def test_only_a_single_noisy_run_has_a_shade() -> None:
    assert "░" in shown([a_curve()])
    assert "░" not in shown([a_curve(metric="lr")])
    assert "░" not in shown([a_curve(run="one"), a_curve(run="two")])


def test_a_huge_width_is_limited() -> None:
    """The variable COLUMNS may hold any number."""
    assert max(map(cell_len, shown([a_curve()], width=10**30).splitlines())) <= WIDEST


def test_a_width_below_the_minimum_is_rejected() -> None:
    with pytest.raises(ArgumentError, match="at least 24"):
        shown([a_curve()], width=23)


# --- with matplotlib --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_save_curves_writes_a_png_in_both_languages(lang: str, tmp_path: Path) -> None:
    curves = [a_curve(5000, "甲"), a_curve(5, "甲", "valid_loss"), a_curve(1, "$x$")]
    save_curves(curves, tmp_path / "p.png", lang)  # type: ignore[arg-type]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    (axes,) = plot_curves(curves, lang).axes  # type: ignore[arg-type]
    assert len(axes.lines) == 3
    assert max(len(line.get_xdata()) for line in axes.lines) <= 800  # type: ignore[arg-type]
    assert axes.get_xlabel() == {"en": "step", "zh": "步"}[lang]
    assert axes.lines[0].get_color() == axes.lines[1].get_color() != axes.lines[2].get_color()


def test_without_a_chinese_font_the_text_is_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_can_draw", lambda sign: ord(sign) < 128)
    (axes,) = plot_curves([a_curve()], "zh").axes
    assert axes.get_xlabel() == "step"


def test_missing_folder_and_missing_matplotlib_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="make it first"):
        save_curves([a_curve()], tmp_path / "no" / "p.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match="--png needs matplotlib"):
        plot_curves([a_curve()])
