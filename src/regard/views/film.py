"""A film: the same attention at many steps of a training run. Read from its folder, drawn, played in the terminal."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.text import Text

from regard.errors import ArgumentError, FileError
from regard.messages import Language, say
from regard.records import Record
from regard.trace import Trace, read_trace
from regard.trace.trace import Colour
from regard.views import caption
from regard.views.colours import Depth, Ink
from regard.views.curves import loss_text
from regard.views.one_head import column_labels, lay_out, notes_on, row_lines
from regard.views.picture import Picture, chosen_head, chosen_language, chosen_records, picture
from regard.views.scales import Scale
from regard.views.terminal import columns_of, console_for, depth_of, write_lines

_FRAME = re.compile(r"step-(\d{1,15})\.safetensors")


class Moment(NamedTuple):
    """What attention was like after so many steps."""

    step: int
    trace: Trace


Film = list[Moment]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One head at every moment, its pictures all of one size."""

    steps: list[int]
    pictures: list[Picture]
    change: float
    """How much of its attention the head moved from the first moment to the last: 0 none, 1 all of it."""
    choices: int
    """Heads that it was chosen from, as the one that changes most."""

    @property
    def record(self) -> Record:
        return self.pictures[0].record

    @property
    def head(self) -> int:
        return self.pictures[0].head

    @property
    def scale(self) -> Scale:
        """The scale of the whole film, which all frames share."""
        return Scale.of(self.pictures)


def read_film(folder: Path) -> Film:
    """The moments of a run, in order: RUN/film/step-00000100.safetensors and so on. FileError where there are none."""
    if not folder.is_dir():
        raise FileError("curves-no-run", path=str(folder))
    found = (folder / "film").iterdir() if (folder / "film").is_dir() else ()
    files = sorted((int(name[1]), path) for path in found if (name := _FRAME.fullmatch(path.name)))
    if not files:
        raise FileError("film-none", path=str(folder / "film"))
    return [Moment(step, read_trace(path, within=folder)) for step, path in files]


def scene(film: Film, layer: int | str | None = None, head: int | None = None) -> Scene:
    """The head that was asked for; of those left open, the one that changes most from the first moment to the last.

    >>> even, sharp = Trace.from_weights(np.full((2, 2), 0.5)), Trace.from_weights(np.eye(2))
    >>> scene([Moment(0, even), Moment(9, sharp)]).change
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
    pictures = [_at(moment.trace, record, number) for moment in film]
    return Scene([moment.step for moment in film], pictures, change, len(candidates))


def _at(trace: Trace, like: Record, head: int) -> Picture:
    """The same head in another moment's trace; FileError where it is not there in the same size."""
    record = trace[like.name] if like.name in trace.names else None
    if record is None or record.shape != like.shape or not record.shape[0]:
        raise FileError("film-differs", name=like.name, wanted=like.shape)
    return picture(record, head, 0)


def _change(before: Picture, after: Picture) -> float:
    """The attention that went elsewhere, as the mean over queries of half the sum of |difference|."""
    if before.cells.shape != after.cells.shape or not before.cells.size:
        return 0.0
    moved = np.abs(after.cells - before.cells).sum(-1) / 2  # R
    return float(moved[np.isfinite(moved)].mean()) if np.isfinite(moved).any() else 0.0


def telling_frames(shown: Scene, most: int = 5) -> list[int]:
    """The numbers of a few frames, first and last included, between which the head moved about equally far."""
    moves = [_change(a, b) for a, b in zip(shown.pictures, shown.pictures[1:], strict=False)]
    way = np.concatenate([[0.0], np.cumsum(moves)])
    if not way[-1]:
        way = np.arange(len(way), dtype=float)
    wanted = np.linspace(0, way[-1], most)
    chosen = {int(np.abs(way - place).argmin()) for place in wanted}
    return sorted(chosen | {0, len(way) - 1})


# --- frames in the terminal ------------------------------------------------------------------------------


def frame_title(shown: Scene, at: int, losses: Mapping[int, float], lang: Language) -> list[str]:
    """The step, the loss where it is known, and how far the film is."""
    step = shown.steps[at]
    pieces = [say("film-step", lang, step=step)]
    if step in losses:
        pieces.append(say("film-loss", lang, loss=loss_text(losses[step], 3)))
    return [*pieces, say("film-frame", lang, number=at + 1, count=len(shown.steps))]


def frame_lines(
    shown: Scene, at: int, losses: Mapping[int, float], *, width: int, height: int, depth: Depth | None, lang: Language
) -> list[Text]:
    """One frame in at most so many columns and lines; the map is pooled until it fits."""
    whole = shown.pictures[at]
    T, S = whole.record.shape[2:]
    if not whole.cells.size:
        return caption.flow([say("screen-nothing", lang, T=T, S=S)], width)
    head = say("screen-head-of", lang, head=shown.head, count=whole.record.shape[1])
    above = caption.title(shown.record.name, [say(f"screen-{shown.record.kind}", lang), head], width)
    above += [*caption.flow(frame_title(shown, at, losses, lang), width), Text()]
    ink = Ink(depth, shown.scale)
    layout = lay_out(whole, width, depth)
    while True:
        rows = len(layout.drawn.cells)
        below = [Text(), *ink.legend(width), *caption.dimmed(caption.flow(notes_on(whole, layout, lang), width))]
        lines = [*above, *column_labels(layout), *row_lines(layout, ink), *below]
        if len(lines) <= height or (rows == 1 and layout.tall == 1):
            return lines
        # Rows drawn large become small before any are put together.
        smaller = layout if layout.tall > 1 else lay_out(whole.fitted(rows - 1, whole.cells.shape[1]), width, depth)
        layout = replace(smaller, tall=1)


def scene_json(shown: Scene, losses: Mapping[int, float]) -> dict[str, object]:
    """The head as plain values: who looks at whom, at every moment; what is no number is None."""
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
"""The lines of what is not a screen."""


def play(
    shown: Scene,
    losses: Mapping[int, float],
    *,
    fps: float,
    file: TextIO | None = None,
    color: Colour | None = None,
    lang: Language | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Draw the frames on `file`, by default on the screen; the last one stays. Ctrl-C leaves the terminal clean."""
    console = console_for(file, color)
    # Live writes the lines itself, so an encoding that lacks our signs gets the few frames, which are translated.
    moving = console.is_terminal and not console.is_dumb_terminal and console.encoding.lower().startswith("utf")
    width, height = columns_of(console), console.height - 1 if moving else _ENDLESS
    depth, spoken = depth_of(console), chosen_language(lang)

    def lines(at: int) -> list[Text]:
        return frame_lines(shown, at, losses, width=width, height=height, depth=depth, lang=spoken)

    if not moving:
        for at in telling_frames(shown):
            write_lines(console, [*lines(at), Text()])
        return
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for at in range(len(shown.steps)):
            live.update(Group(*lines(at)), refresh=True)
            wait(1 / fps)
