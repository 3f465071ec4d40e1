"""Films of attention during training: read from the folder of a run, played in the terminal, written as a GIF.

All frames of a GIF have the same size, scale and palette, so every visible change is a change of the weights.
matplotlib draws them and Pillow assembles them.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.text import Text

from regard.errors import ArgumentError, FileError, MissingPackageError
from regard.files.output import check_target, write_output
from regard.messages import Language, language, say, use_language
from regard.records import Record
from regard.trace import Trace, read_trace
from regard.trace.trace import Colour
from regard.views import caption
from regard.views.colours import CellPainter, Depth, Scale
from regard.views.curves import loss_text
from regard.views.figure_layout import PlotOptions
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.labels import cut_start, printable_label
from regard.views.picture import Picture, chosen_head, chosen_language, chosen_records, picture
from regard.views.plots import draw_on_axes
from regard.views.terminal import columns_of, console_for, depth_of, write_lines
from regard.views.terminal_heatmap import choose_layout, column_labels, notes_on, row_lines

if TYPE_CHECKING:
    from PIL.Image import Image


_FRAME = re.compile(r"step-(\d{1,15})\.safetensors")


class FilmFrame(NamedTuple):
    """The trace recorded after a number of training steps."""

    step: int
    trace: Trace


Film = list[FilmFrame]


@dataclass(frozen=True, slots=True, eq=False)
class HeadFilm:
    """One head in every frame of a film. All pictures have the same size."""

    steps: list[int]
    pictures: list[Picture]
    change: float
    """The share of attention that moved from the first frame to the last: 0 none, 1 all of it."""
    choices: int
    """The number of heads that this one was selected from as the one that changes most."""

    @property
    def record(self) -> Record:
        return self.pictures[0].record

    @property
    def head(self) -> int:
        return self.pictures[0].head

    @property
    def scale(self) -> Scale:
        """The scale shared by all frames."""
        return Scale.of(self.pictures)


def read_film(folder: Path) -> Film:
    """The frames of a run by step: RUN/film/step-00000100.safetensors and so on. Raises FileError if there are none."""
    if not folder.is_dir():
        raise FileError("curves-no-run", path=str(folder))
    found = (folder / "film").iterdir() if (folder / "film").is_dir() else ()
    files = sorted((int(name[1]), path) for path in found if (name := _FRAME.fullmatch(path.name)))
    if not files:
        raise FileError("film-none", path=str(folder / "film"))
    return [FilmFrame(step, read_trace(path, within=folder)) for step, path in files]


def head_film(film: Film, layer: int | str | None = None, head: int | None = None) -> HeadFilm:
    """The requested head. Without a layer or head, the one that changes most from the first frame to the last.

    >>> even, sharp = Trace.from_weights(np.full((2, 2), 0.5)), Trace.from_weights(np.eye(2))
    >>> head_film([FilmFrame(0, even), FilmFrame(9, sharp)]).change
    0.5
    """
    if not film:
        raise ArgumentError("trace-empty")
    first, last = film[0].trace, film[-1].trace
    candidates = []
    for record in chosen_records(first, layer):
        heads = range(record.shape[1]) if head is None else [chosen_head(record, head)]
        candidates += [(_change(_at(first, record, one), _at(last, record, one)), record, one) for one in heads]
    if not candidates:
        raise ArgumentError("trace-empty")
    change, record, number = max(candidates, key=lambda found: found[0])
    pictures = [_at(frame.trace, record, number) for frame in film]
    return HeadFilm([frame.step for frame in film], pictures, change, len(candidates))


def _at(trace: Trace, like: Record, head: int) -> Picture:
    """The same head in another frame. Raises FileError if it is missing or has another size."""
    record = trace[like.name] if like.name in trace.names else None
    if record is None or record.shape != like.shape or not record.shape[0]:
        raise FileError("film-differs", name=like.name, wanted=like.shape)
    return picture(record, head, 0)


def _change(before: Picture, after: Picture) -> float:
    """The share of attention that moved: the mean over queries of half the sum of |difference|."""
    if before.cells.shape != after.cells.shape or not before.cells.size:
        return 0.0
    moved = np.abs(after.cells - before.cells).sum(-1) / 2  # R
    return float(moved[np.isfinite(moved)].mean()) if np.isfinite(moved).any() else 0.0


def key_frames(shown: HeadFilm, most: int = 5) -> list[int]:
    """The indices of a few frames, including first and last, with about equal change between them."""
    moves = [_change(a, b) for a, b in zip(shown.pictures, shown.pictures[1:], strict=False)]
    distances = np.concatenate([[0.0], np.cumsum(moves)])
    if not distances[-1]:
        distances = np.arange(len(distances), dtype=float)
    wanted = np.linspace(0, distances[-1], most)
    chosen = {int(np.abs(distances - target).argmin()) for target in wanted}
    return sorted(chosen | {0, len(distances) - 1})


# --- frames in the terminal ------------------------------------------------------------------------------


def frame_title(shown: HeadFilm, at: int, losses: Mapping[int, float], lang: Language) -> list[str]:
    """The step, the loss if it is known, and the number of the frame."""
    step = shown.steps[at]
    pieces = [say("film-step", lang, step=step)]
    if step in losses:
        pieces.append(say("film-loss", lang, loss=loss_text(losses[step], 3)))
    return [*pieces, say("film-frame", lang, number=at + 1, count=len(shown.steps))]


def frame_lines(
    shown: HeadFilm,
    at: int,
    losses: Mapping[int, float],
    *,
    width: int,
    height: int,
    depth: Depth | None,
    lang: Language,
) -> list[Text]:
    """One frame in at most `width` columns and `height` lines; the map is pooled until it fits."""
    whole = shown.pictures[at]
    T, S = whole.record.shape[2:]
    if not whole.cells.size:
        return caption.wrap_pieces([say("screen-nothing", lang, T=T, S=S)], width)
    head = say("screen-head-of", lang, head=shown.head, count=whole.record.shape[1])
    above = caption.title(shown.record.name, [say(f"screen-{shown.record.kind}", lang), head], width)
    above += [*caption.wrap_pieces(frame_title(shown, at, losses, lang), width), Text()]
    painter = CellPainter(depth, shown.scale)
    layout = choose_layout(whole, width, depth)
    while True:
        rows = len(layout.drawn.cells)
        below = [
            Text(),
            *painter.legend(width),
            *caption.dimmed(caption.wrap_pieces(notes_on(whole, layout, lang), width)),
        ]
        lines = [*above, *column_labels(layout), *row_lines(layout, painter), *below]
        if len(lines) <= height or (rows == 1 and layout.tall == 1):
            return lines
        # Use one line per row before pooling rows.
        smaller = (
            layout if layout.tall > 1 else choose_layout(whole.fitted(rows - 1, whole.cells.shape[1]), width, depth)
        )
        layout = replace(smaller, tall=1)


def head_film_json(shown: HeadFilm, losses: Mapping[int, float]) -> dict[str, object]:
    """The head as plain values: the map of every frame; NaN becomes None."""
    tokens = [None if side is None else list(side) for side in (shown.pictures[0].queries, shown.pictures[0].keys)]
    return {
        "layer": shown.record.name,
        "kind": shown.record.kind,
        "head": shown.head,
        "change": shown.change,
        "queries": tokens[0],
        "keys": tokens[1],
        "frames": [
            {"step": step, "loss": losses.get(step), "map": _plain(one.cells)}
            for step, one in zip(shown.steps, shown.pictures, strict=True)
        ],
    }


def _plain(cells: np.ndarray) -> Sequence[Sequence[float | None]]:
    return [[float(cell) if np.isfinite(cell) else None for cell in row] for row in cells]


_ENDLESS = 10**6
"""The number of lines of an output that is not a screen."""


def play(
    shown: HeadFilm,
    losses: Mapping[int, float],
    *,
    fps: float,
    file: TextIO | None = None,
    color: Colour | None = None,
    lang: Language | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Play the frames on `file`, by default on the screen; the last one stays. Ctrl-C restores the terminal."""
    console = console_for(file, color)
    # Live writes the lines itself, so an encoding without our characters gets the few frames, which are converted.
    moving = console.is_terminal and not console.is_dumb_terminal and console.encoding.lower().startswith("utf")
    width, height = columns_of(console), console.height - 1 if moving else _ENDLESS
    depth, text_lang = depth_of(console), chosen_language(lang)

    def lines(at: int) -> list[Text]:
        return frame_lines(shown, at, losses, width=width, height=height, depth=depth, lang=text_lang)

    if not moving:
        for at in key_frames(shown):
            write_lines(console, [*lines(at), Text()])
        return
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for at in range(len(shown.steps)):
            live.update(Group(*lines(at)), refresh=True)
            wait(1 / fps)


MOST_FRAMES = 300
"""Limits the file size; a longer film skips frames evenly."""
_PAUSE_MS = 2000
"""How long the last frame stays."""
_WIDEST_NAME = 36
_CROWDED = 28
"""Number of tokens on one side above which the map grows and its labels shrink."""


def save_gif(
    shown: HeadFilm, path: Path, losses: Mapping[int, float], *, fps: float, lang: Language | None = None
) -> None:
    """Write the GIF, completely or not at all. Raises FileError and MissingPackageError."""
    check_target(path)
    with use_language(drawable_language(chosen_language(lang))):
        frames = list(gif_frames(shown, losses))
    durations = [round(1000 / fps)] * (len(frames) - 1) + [_PAUSE_MS]
    first, *rest = frames
    options: dict[str, Any] = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    drawn = BytesIO()
    first.save(drawn, format="GIF", **options)
    write_output(path, drawn.getvalue())


def gif_frames(shown: HeadFilm, losses: Mapping[int, float]) -> Iterator["Image"]:
    """The frames as images in the colours of the palette."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--gif") from error
    figure = Figure(figsize=_size(shown), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw_on_axes(axes, shown.pictures[0], PlotOptions(scale=shown.scale))
    if max(shown.record.shape[2:]) > _CROWDED:
        axes.tick_params(labelsize=7)
    title = axes.set_title(_title(shown, 0, losses), fontsize="medium", **text_style())
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # arranged once: the map must not move when the title grows
    palette, count = _palette(), len(shown.steps)
    for at in np.unique(np.linspace(0, count - 1, min(count, MOST_FRAMES)).round().astype(int)).tolist():
        cells = shown.pictures[at].cells
        title.set_text(_title(shown, at, losses))
        for image in axes.images:
            # As in `heatmap`: exactly 0 is masked and has no colour of the scale.
            image.set_data(np.where(cells == 0, -1.0, cells))
        canvas.draw()
        yield _with_palette(np.asarray(canvas.buffer_rgba())[..., :3], palette)


def _size(shown: HeadFilm) -> tuple[float, float]:
    """The figure size in inches; many tokens get a larger map."""
    T, S = (max(1, size) for size in shown.record.shape[2:])
    larger = min(2.0, max(1.0, max(T, S) / _CROWDED))
    wide, high = min(1.0, max(0.25, S / T)), min(1.0, max(0.25, T / S))
    return 2.6 + 4 * larger * wide, 1.6 + 3.8 * larger * high


def _title(shown: HeadFilm, at: int, losses: Mapping[int, float]) -> str:
    name = cut_start(printable_label(shown.record.name), _WIDEST_NAME)
    about = [name, say(f"screen-{shown.record.kind}"), say("screen-head", head=shown.head)]
    return "\n".join(drawable(" · ".join(line) for line in (about, frame_title(shown, at, losses, language()))))


def _with_palette(pixels: np.ndarray, palette: np.ndarray) -> "Image":
    """The image with each colour replaced by the nearest of the palette. Pillow's own search is approximate."""
    from PIL import Image

    packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colours, places = np.unique(packed, return_inverse=True)
    spread = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1).astype(np.int32)
    nearest = np.array([((palette - one) ** 2).sum(-1).argmin() for one in spread], dtype=np.uint8)
    image = Image.fromarray(nearest[places].reshape(packed.shape))
    image.putpalette(palette.astype(np.uint8).tobytes())  # the pixel values are indices into the palette
    return image


def _palette() -> np.ndarray:
    """All colours of a frame: viridis, greys for the text, and the colours of masked cells and NaN.

    A palette per frame would flicker.
    """
    from matplotlib import colormaps

    scale = colormaps["viridis"](np.linspace(0, 1, 208))[:, :3] * 255
    greys = np.linspace(0, 255, 46)[:, None].repeat(3, axis=1)
    return np.concatenate([scale, greys, [[0xEE, 0xEE, 0xEE], [0xD6, 0x27, 0x28]]]).round().astype(np.int32)
