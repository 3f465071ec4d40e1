"""The pictures of what `regard see` prints in a terminal, drawn as SVG that needs nothing from anywhere.

    python docs/pictures/draw.py

Blocks of colour become rectangles, so that they look alike in every font; every other character is put where
a terminal would put it, a Chinese one two columns wide. The hint on stderr is left out. `tests/docs/test_readme.py`
compares the words with the screen of today.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS = 112
CELL, LINE, EDGE = 10, 20, 20
"""Pixels: a column, a line, the margin."""
GROUND, INK = "#14141b", "#e6e6ea"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', 'PingFang SC', "
FONTS += "'Microsoft YaHei', monospace"
HALVES = {"▀": (0, LINE // 2), "▄": (LINE // 2, LINE // 2), "█": (0, LINE)}
"""What a block character fills: from where in its line, and how much of it."""


class Screen(NamedTuple):
    """One picture: its file, the language, what is typed, and what `regard` gets of it."""

    file: str
    lang: str
    typed: str
    arguments: tuple[str, ...]


POEM = "床前明月光，疑是地上霜。举头望明月，低头思故"
RHYME = ("see", "--model", "poet", "--layer", "5", "--head", "6", "--silence", POEM)

SCREENS = (
    Screen("see.en.svg", "en", "make see", ("see",)),
    Screen("see.zh.svg", "zh", "make see", ("see",)),
    Screen("rhyme.en.svg", "en", "make rhyme", RHYME),
    Screen("rhyme.zh.svg", "zh", "make rhyme", RHYME),
    Screen("handmade.en.svg", "en", "regard see --model handmade", ("see", "--model", "handmade")),
    Screen("handmade.zh.svg", "zh", "regard see --model handmade", ("see", "--model", "handmade")),
)


def printed(screen: Screen) -> str:
    """What is typed, and what that writes to stdout on a terminal of 112 columns with all colours."""
    surroundings = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-m", "regard", *screen.arguments, "--lang", screen.lang],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**kept, **surroundings, "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    return f"\x1b[1m$ {screen.typed}\x1b[0m\n{done.stdout.rstrip()}"


def svg(written: str, title: str) -> str:
    """A terminal's characters and colours as one SVG file, as wide as its longest line."""
    console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
    lines = [list(line.render(console)) for line in Text.from_ansi(written).split("\n")]
    columns = max(sum(segment.cell_length for segment in line) for line in lines)
    wide, high = columns * CELL + 2 * EDGE, len(lines) * LINE + 2 * EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        f' font-family="{FONTS}" font-size="16" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{wide}" height="{high}" rx="10" fill="{GROUND}"/>',
    ]
    for number, segments in enumerate(lines):
        top = EDGE + number * LINE
        parts += [*blocks(segments, top), *words(segments, top)]
    return "\n".join([*parts, "</svg>", ""])


def placed(segments: list[Segment]) -> Iterator[tuple[str, int, int, Style]]:
    """Every character of a line with its column, its width in columns and its style."""
    column = 0
    for segment in segments:
        for sign in segment.text:
            yield sign, column, cell_len(sign), segment.style or Style.null()
            column += cell_len(sign)


@dataclass
class Block:
    """A rectangle of one colour."""

    x: int
    y: int
    width: int
    height: int
    fill: str

    def continues(self, other: "Block") -> bool:
        """Whether the other begins where this one ends, alike in all else."""
        return (self.x + self.width, self.y, self.height, self.fill) == (other.x, other.y, other.height, other.fill)


def blocks(segments: list[Segment], top: int) -> Iterator[str]:
    """The rectangles of a line; neighbours of one colour are one rectangle."""
    runs: list[Block] = []
    for sign, column, columns, style in placed(segments):
        fills = [(0, LINE, style.bgcolor)] if style.bgcolor else []
        if sign in HALVES and style.color:
            fills.append((*HALVES[sign], style.color))
        for start, height, colour in fills:
            new = Block(EDGE + column * CELL, top + start, columns * CELL, height, colour.get_truecolor().hex)
            # The last two: the upper and the lower half of the column before.
            before = next((run for run in runs[-2:] if run.continues(new)), None)
            if before is None:
                runs.append(new)
            else:
                before.width += new.width
    for run in runs:
        sizes = " ".join(f'{name}="{value}"' for name, value in vars(run).items())
        yield f'<rect {sizes} shape-rendering="crispEdges"/>'


def words(segments: list[Segment], top: int) -> Iterator[str]:
    """The words of a line, each letter with its own place."""
    word, look = "", ""
    places: list[str] = []
    for sign, column, _, style in [*placed(segments), (" ", 0, 1, Style.null())]:
        looks = attributes(style)
        if word and (sign == " " or sign in HALVES or looks != look):
            yield f'<text x="{" ".join(places)}" y="{top + 15}"{look}>{escape(word)}</text>'
            word, places = "", []
        if sign != " " and sign not in HALVES:
            word, look = word + sign, looks
            places.append(str(EDGE + column * CELL))


def attributes(style: Style) -> str:
    colour = f' fill="{style.color.get_truecolor().hex}"' if style.color else ""
    return colour + ' font-weight="bold"' * bool(style.bold) + ' opacity="0.65"' * bool(style.dim)


if __name__ == "__main__":
    for screen in SCREENS:
        path = HERE / screen.file
        path.write_text(svg(printed(screen), screen.typed), encoding="utf-8")
        print(f"{path.relative_to(Path.cwd())}: {path.stat().st_size} bytes")
