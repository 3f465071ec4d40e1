"""Films: selecting the head that changes, frames that fit, and GIFs with one size and one scale."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard import Trace
from regard.errors import ArgumentError, FileError, MissingPackageError, UnknownNameError
from regard.messages import LANGUAGES, language
from regard.reference import softmax
from regard.views import film, fonts
from regard.views.film import (
    MOST_FRAMES,
    Film,
    FilmFrame,
    _palette,
    frame_lines,
    gif_frames,
    head_film,
    head_film_json,
    key_frames,
    play,
    read_film,
    save_gif,
)

TOKENS = ["我", "爱", "language", "<eos>"]


class Screen(io.StringIO):
    """A stream that reports itself as a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def a_film(frames: int = 6, T: int = 4, tokens: list[str] | None = TOKENS) -> Film:
    """Two layers of three heads; only head 1 of the second layer changes, from even to the anti-diagonal."""
    still = softmax(np.random.default_rng(0).normal(size=(3, T, T)))
    film = []
    for at in range(frames):
        moving = still.copy()
        moving[1] = softmax(np.eye(T)[::-1] * 8.0 * at / max(1, frames - 1))
        layers = [Trace.from_weights(w, tokens, name=f"h.{i}.attn") for i, w in enumerate((still, moving))]
        film.append(FilmFrame(100 * at, Trace(layer[0] for layer in layers)))
    return film


def text(film: Film, at: int, width: int = 80, height: int = 99, lang: str = "en") -> list[str]:
    lines = frame_lines(head_film(film), at, {0: 9.5}, width=width, height=height, depth=None, lang=lang)  # type: ignore[arg-type]
    return [line.plain for line in lines]


# --- which head -------------------------------------------------------------------------------------------


def test_the_head_that_changes_most_is_selected() -> None:
    found = head_film(a_film())
    assert (found.record.name, found.head) == ("h.1.attn", 1)
    assert found.change == pytest.approx(0.75, abs=0.01)  # from 1/4 each to all on one key
    assert found.steps == [0, 100, 200, 300, 400, 500]
    assert found.scale.ceiling == 1


def test_a_requested_layer_and_head_are_selected() -> None:
    film = a_film()
    assert head_film(film, layer="1.attn", head=2).head == 2
    assert head_film(film, layer=0, head=1).change == 0
    assert head_film(film, head=1).record.name == "h.1.attn"
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        head_film(film, head=3)
    with pytest.raises(UnknownNameError, match=r"h\.1\.attn"):
        head_film(film, layer="h.1.attm")


def test_frames_with_different_records_are_rejected() -> None:
    with pytest.raises(FileError, match=r"'h\.0\.attn' is not in all of them with shape \(1, 3, 4, 4\)"):
        head_film([*a_film(), FilmFrame(900, a_film(T=5, tokens=None)[0].trace)])
    film = a_film()
    film[2] = FilmFrame(200, film[2].trace[:1])
    with pytest.raises(FileError, match="do not belong together"):
        head_film(film)
    with pytest.raises(ArgumentError):
        head_film([])


def test_nan_does_not_count_as_change() -> None:
    broken = np.full((2, 2, 2), 0.5)
    broken[0, 0] = np.nan
    film = [
        FilmFrame(0, Trace.from_weights(broken)),
        FilmFrame(1, Trace.from_weights(np.stack([broken[0], np.eye(2)]))),
    ]
    found = head_film(film)
    assert (found.head, found.change) == (1, 0.5)
    assert head_film(film, head=0).change == 0
    assert head_film_json(head_film(film, head=0), {})["frames"][0]["map"][0] == [None, None]  # type: ignore[index]


# --- the folder -------------------------------------------------------------------------------------------


def test_frames_are_read_in_the_order_of_their_steps(tmp_path: Path) -> None:
    (tmp_path / "film").mkdir()
    for frame in a_film():
        frame.trace.save(
            tmp_path / "film" / f"step-{frame.step}.safetensors"
        )  # sorted by name, 100 would come before 20
    (tmp_path / "film" / ".step-7.safetensors.0a1b").write_bytes(b"half")
    (tmp_path / "film" / "notes.txt").write_text("x")
    assert [frame.step for frame in read_film(tmp_path)] == [0, 100, 200, 300, 400, 500]
    (tmp_path / "film" / "step-600.safetensors").write_bytes(b"not a trace")
    with pytest.raises(FileError, match="step-600"):
        read_film(tmp_path)


def test_a_missing_film_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="train with --film"):
        read_film(tmp_path)
    with pytest.raises(FileError, match="there is no folder"):
        read_film(tmp_path / "none")


# --- frames in the terminal -------------------------------------------------------------------------------


def test_a_frame_has_a_title() -> None:
    assert text(a_film(), 0)[:2] == ["h.1.attn · self-attention · head 1 of 3", "step 0 · loss 9.500 · frame 1 of 6"]
    assert text(a_film(), 5)[1] == "step 500 · frame 6 of 6"
    assert text(a_film(), 0, lang="zh")[:2] == [
        "h.1.attn · 自注意力 · 头 1（共 3 个）",
        "第 0 步 · 损失 9.500 · 第 1 帧（共 6 帧）",
    ]
    last = [line for line in text(a_film(), 5) if line.lstrip().startswith(tuple(TOKENS))][-1]
    assert last.split() == ["<eos>", "█1.0", ".00", ".00", ".00"]


def test_all_frames_share_a_scale() -> None:
    legends = {next(line for line in text(a_film(), at) if line.startswith("░ ≥")) for at in range(6)}
    assert len(legends) == 1
    assert "█ ≥ .64" in legends.pop()
    even = [line for line in text(a_film(), 0) if line.lstrip().startswith("我")][-1]
    assert even.split()[1:] == ["▒.25"] * 4  # the highest weight of this frame, but a quarter of the film's highest


@given(st.integers(1, 70), st.integers(24, 120), st.integers(20, 60), st.sampled_from(["truecolor", "256", None]))
def test_a_frame_fits_in_width_and_height(T: int, width: int, height: int, depth: str | None) -> None:
    shown = head_film(a_film(2, T, tokens=None))
    lines = frame_lines(shown, 1, {}, width=width, height=height, depth=depth, lang="zh")  # type: ignore[arg-type]
    assert max(line.cell_len for line in lines) <= width
    assert len(lines) <= height


def test_few_rows_are_drawn_small_before_they_are_pooled() -> None:
    shown = head_film(a_film())
    tall, low = (
        frame_lines(shown, 5, {}, width=80, height=height, depth="truecolor", lang="en") for height in (30, 14)
    )
    assert len(tall) == len(low) + 8  # three lines per row, or one
    assert all(any(token in line.plain for line in low) for token in TOKENS)


def test_a_pooled_frame_shows_its_cell_size() -> None:
    film = a_film(2, 60, tokens=None)
    assert any("each cell is" in line for line in text(film, 1, height=24))
    assert not any("each cell is" in line for line in text(film, 1, width=200))


@given(st.integers(1, 40), st.integers(2, 8))
def test_key_frames_include_the_first_and_the_last(frames: int, most: int) -> None:
    chosen = key_frames(head_film(a_film(frames)), most)
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert chosen[-1] == frames - 1
    assert len(chosen) <= most


def test_key_frames_are_where_attention_changes() -> None:
    before, after = a_film(2)
    film = [FilmFrame(n, before.trace) for n in range(50)] + [FilmFrame(n, after.trace) for n in range(50, 100)]
    assert key_frames(head_film(film)) == [0, 50, 99]


# --- playing ------------------------------------------------------------------------------------------------


def test_a_file_gets_a_few_frames() -> None:
    out, waits = io.StringIO(), list[float]()
    play(head_film(a_film(50)), {}, fps=4, file=out, wait=waits.append)
    assert not waits
    assert "\x1b" not in out.getvalue()
    assert 2 <= out.getvalue().count("frame ") <= 5


def test_a_terminal_gets_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out, waits = Screen(), list[float]()
    play(head_film(a_film(7)), {}, fps=4, file=out, lang="zh", wait=waits.append)
    assert waits == [0.25] * 7
    assert all(f"第 {at} 帧" in out.getvalue() for at in range(1, 8))


def test_ctrl_c_restores_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    out = Screen()
    with pytest.raises(KeyboardInterrupt):
        play(head_film(a_film()), {}, fps=4, file=out, wait=interrupt)
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


# --- an animated picture ----------------------------------------------------------------------------------


def test_without_a_chinese_font_a_gif_is_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: list[str] = []

    def frames(*_: object) -> list[Image.Image]:
        spoken.append(language())
        return [Image.new("P", (2, 2))]

    monkeypatch.setattr(film, "gif_frames", frames)
    for has, lang in ((True, "zh"), (False, "en")):
        monkeypatch.setattr(fonts, "_can_draw", lambda sign, has=has: has)
        save_gif(head_film(a_film(2)), tmp_path / "f.gif", {}, fps=5, lang="zh")
        assert spoken[-1] == lang


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_gif_has_one_size_and_one_palette(lang: str, tmp_path: Path) -> None:
    path = tmp_path / "birth.gif"
    save_gif(head_film(a_film(4)), path, {0: 9.5}, fps=5, lang=lang)  # type: ignore[arg-type]
    colours = {tuple(colour) for colour in _palette().tolist()}
    with Image.open(path) as gif:
        assert gif.n_frames == 4  # type: ignore[attr-defined]
        sizes, durations = set(), []
        for at in range(4):
            gif.seek(at)
            sizes.add(gif.size)
            durations.append(gif.info["duration"])
            frame = gif.convert("RGB")
            assert frame.getpixel((0, 0)) == (255, 255, 255)
            assert {colour for _, colour in frame.getcolors(1 << 16)} <= colours  # type: ignore[union-attr]
    assert len(sizes) == 1
    assert durations == [200, 200, 200, 2000]
    assert [file.name for file in tmp_path.iterdir()] == ["birth.gif"]


def test_an_even_head_keeps_its_colour_if_a_later_frame_is_sharp() -> None:
    """The scale belongs to the film: drawn alone, the quarters of the first frame would have the brightest colour."""
    first, last = gif_frames(head_film(a_film(2)), {})
    middle = first.size[0] // 3, first.size[1] // 3
    brightest = _palette()[207].tolist()
    assert first.convert("RGB").getpixel(middle) != tuple(brightest)
    assert brightest in [list(colour) for _, colour in last.convert("RGB").getcolors(1 << 16)]  # type: ignore[union-attr,arg-type]


def test_a_long_film_skips_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_FRAMES > 100
    monkeypatch.setattr("regard.views.film.MOST_FRAMES", 3)
    assert len(list(gif_frames(head_film(a_film(9)), {}))) == 3


def test_missing_folder_and_missing_matplotlib_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="make it first"):
        save_gif(head_film(a_film(2)), tmp_path / "no" / "f.gif", {}, fps=5)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match="--gif needs matplotlib"):
        save_gif(head_film(a_film(2)), tmp_path / "f.gif", {}, fps=5)
