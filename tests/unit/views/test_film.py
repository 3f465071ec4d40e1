"""Films: the head that changes is found, frames fit where they are drawn, and a GIF has one size and one scale."""

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
from regard.views import film_gif, fonts
from regard.views.film import Film, Moment, frame_lines, play, read_film, scene, scene_json, telling_frames
from regard.views.film_gif import MOST_FRAMES, _palette, gif_frames, save_gif

TOKENS = ["我", "爱", "language", "<eos>"]


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def a_film(frames: int = 6, T: int = 4, tokens: list[str] | None = TOKENS) -> Film:
    """Two layers of three heads; only head 1 of the second layer changes, from even to the anti-diagonal."""
    still = softmax(np.random.default_rng(0).normal(size=(3, T, T)))
    moments = []
    for at in range(frames):
        moving = still.copy()
        moving[1] = softmax(np.eye(T)[::-1] * 8.0 * at / max(1, frames - 1))
        layers = [Trace.from_weights(w, tokens, name=f"h.{i}.attn") for i, w in enumerate((still, moving))]
        moments.append(Moment(100 * at, Trace(layer[0] for layer in layers)))
    return moments


def text(film: Film, at: int, width: int = 80, height: int = 99, lang: str = "en") -> list[str]:
    lines = frame_lines(scene(film), at, {0: 9.5}, width=width, height=height, depth=None, lang=lang)  # type: ignore[arg-type]
    return [line.plain for line in lines]


# --- which head -------------------------------------------------------------------------------------------


def test_the_head_that_changes_most() -> None:
    found = scene(a_film())
    assert (found.record.name, found.head) == ("h.1.attn", 1)
    assert found.change == pytest.approx(0.75, abs=0.01)  # from 1/4 each to all on one
    assert found.steps == [0, 100, 200, 300, 400, 500]
    assert found.scale.ceiling == 1


def test_a_head_that_is_asked_for() -> None:
    film = a_film()
    assert scene(film, layer="1.attn", head=2).head == 2
    assert scene(film, layer=0, head=1).change == 0
    assert scene(film, head=1).record.name == "h.1.attn"
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        scene(film, head=3)
    with pytest.raises(UnknownNameError, match=r"h\.1\.attn"):
        scene(film, layer="h.1.attm")


def test_frames_that_do_not_belong_together() -> None:
    with pytest.raises(FileError, match=r"'h\.0\.attn' is not in all of them with shape \(1, 3, 4, 4\)"):
        scene([*a_film(), Moment(900, a_film(T=5, tokens=None)[0].trace)])
    film = a_film()
    film[2] = Moment(200, film[2].trace[:1])
    with pytest.raises(FileError, match="do not belong together"):
        scene(film)
    with pytest.raises(ArgumentError):
        scene([])


def test_nan_neither_wins_nor_stops() -> None:
    broken = np.full((2, 2, 2), 0.5)
    broken[0, 0] = np.nan
    film = [Moment(0, Trace.from_weights(broken)), Moment(1, Trace.from_weights(np.stack([broken[0], np.eye(2)])))]
    found = scene(film)
    assert (found.head, found.change) == (1, 0.5)
    assert scene(film, head=0).change == 0
    assert scene_json(scene(film, head=0), {})["frames"][0]["map"][0] == [None, None]  # type: ignore[index]


# --- the folder -------------------------------------------------------------------------------------------


def test_a_folder_is_read_in_the_order_of_its_steps(tmp_path: Path) -> None:
    (tmp_path / "film").mkdir()
    for moment in a_film():
        moment.trace.save(tmp_path / "film" / f"step-{moment.step}.safetensors")  # 100 before 0, by name
    (tmp_path / "film" / ".step-7.safetensors.0a1b").write_bytes(b"half")
    (tmp_path / "film" / "notes.txt").write_text("x")
    assert [moment.step for moment in read_film(tmp_path)] == [0, 100, 200, 300, 400, 500]
    (tmp_path / "film" / "step-600.safetensors").write_bytes(b"not a trace")
    with pytest.raises(FileError, match="step-600"):
        read_film(tmp_path)


def test_no_film(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="train with --film"):
        read_film(tmp_path)
    with pytest.raises(FileError, match="there is no folder"):
        read_film(tmp_path / "none")


# --- frames in the terminal -------------------------------------------------------------------------------


def test_a_frame_says_what_it_is() -> None:
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
    assert even.split()[1:] == ["▒.25"] * 4  # a quarter of the film's highest, though the highest of its frame


@given(st.integers(1, 70), st.integers(24, 120), st.integers(20, 60), st.sampled_from(["truecolor", "256", None]))
def test_a_frame_fits(T: int, width: int, height: int, depth: str | None) -> None:
    shown = scene(a_film(2, T, tokens=None))
    lines = frame_lines(shown, 1, {}, width=width, height=height, depth=depth, lang="zh")  # type: ignore[arg-type]
    assert max(line.cell_len for line in lines) <= width
    assert len(lines) <= height


def test_few_rows_are_small_before_they_are_pooled() -> None:
    shown = scene(a_film())
    tall, low = (
        frame_lines(shown, 5, {}, width=80, height=height, depth="truecolor", lang="en") for height in (30, 14)
    )
    assert len(tall) == len(low) + 8  # three lines a row, or one
    assert all(any(token in line.plain for line in low) for token in TOKENS)


def test_a_pooled_frame_says_so() -> None:
    film = a_film(2, 60, tokens=None)
    assert any("each cell is" in line for line in text(film, 1, height=24))
    assert not any("each cell is" in line for line in text(film, 1, width=200))


@given(st.integers(1, 40), st.integers(2, 8))
def test_telling_frames(frames: int, most: int) -> None:
    chosen = telling_frames(scene(a_film(frames)), most)
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert chosen[-1] == frames - 1
    assert len(chosen) <= most


def test_telling_frames_are_where_something_happens() -> None:
    before, after = a_film(2)
    film = [Moment(n, before.trace) for n in range(50)] + [Moment(n, after.trace) for n in range(50, 100)]
    assert telling_frames(scene(film)) == [0, 50, 99]


# --- played -----------------------------------------------------------------------------------------------


def test_off_a_terminal_a_few_frames() -> None:
    out, waits = io.StringIO(), list[float]()
    play(scene(a_film(50)), {}, fps=4, file=out, wait=waits.append)
    assert not waits
    assert "\x1b" not in out.getvalue()
    assert 2 <= out.getvalue().count("frame ") <= 5


def test_on_a_terminal_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out, waits = Screen(), list[float]()
    play(scene(a_film(7)), {}, fps=4, file=out, lang="zh", wait=waits.append)
    assert waits == [0.25] * 7
    assert all(f"第 {at} 帧" in out.getvalue() for at in range(1, 8))


def test_ctrl_c_gives_the_cursor_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    out = Screen()
    with pytest.raises(KeyboardInterrupt):
        play(scene(a_film()), {}, fps=4, file=out, wait=interrupt)
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


# --- an animated picture ----------------------------------------------------------------------------------


def test_a_gif_without_a_font_for_chinese_is_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: list[str] = []

    def frames(*_: object) -> list[Image.Image]:
        spoken.append(language())
        return [Image.new("P", (2, 2))]

    monkeypatch.setattr(film_gif, "gif_frames", frames)
    for has, lang in ((True, "zh"), (False, "en")):
        monkeypatch.setattr(fonts, "_has", lambda sign, has=has: has)
        save_gif(scene(a_film(2)), tmp_path / "f.gif", {}, fps=5, lang="zh")
        assert spoken[-1] == lang


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_gif(lang: str, tmp_path: Path) -> None:
    path = tmp_path / "birth.gif"
    save_gif(scene(a_film(4)), path, {0: 9.5}, fps=5, lang=lang)  # type: ignore[arg-type]
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


def test_an_even_head_keeps_its_colour_while_another_frame_is_sharp() -> None:
    """The scale is the film's: drawn alone, the first frame's quarters would be the brightest there are."""
    first, last = gif_frames(scene(a_film(2)), {})
    middle = first.size[0] // 3, first.size[1] // 3
    brightest = _palette()[207].tolist()
    assert list(first.convert("RGB").getpixel(middle)) != brightest  # type: ignore[call-overload]
    assert brightest in [list(colour) for _, colour in last.convert("RGB").getcolors(1 << 16)]  # type: ignore[union-attr,arg-type]


def test_a_long_film_leaves_out_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_FRAMES > 100
    monkeypatch.setattr("regard.views.film_gif.MOST_FRAMES", 3)
    assert len(list(gif_frames(scene(a_film(9)), {}))) == 3


def test_no_folder_and_no_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="make it first"):
        save_gif(scene(a_film(2)), tmp_path / "no" / "f.gif", {}, fps=5)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match="--gif needs matplotlib"):
        save_gif(scene(a_film(2)), tmp_path / "f.gif", {}, fps=5)
