"""A film played: on a terminal one frame in the place of another, elsewhere a few of them, one under another."""

import time
from collections.abc import Callable, Mapping
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.text import Text

from regard.trace.trace import Colour
from regard.views.film import Scene, frame_lines, telling_frames
from regard.views.picture import chosen_language
from regard.views.terminal import columns_of, console_for, depth_of, write_lines
from regard.words import Language

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
