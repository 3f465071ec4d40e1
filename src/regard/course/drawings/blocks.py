"""Drawing and its parts, as data to be drawn: Matrix, Flow, Curves, Bars, and Links between words.

A drawing is data: `svg` and `terminal` draw the same one, in either language. Independent of lessons and of files.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from regard.messages import Language, Message
from regard.views.curves import ticks

Label: TypeAlias = str | Message
"""A text that is the same in both languages, or one in each."""
BoxKind = Literal["plain", "attention", "position-wise", "input", "quiet"]


def text_in(label: Label, lang: Language) -> str:
    """The text of a label in one language.

    >>> text_in(Message("scores", "得分"), "zh"), text_in("Q", "zh")
    ('得分', 'Q')
    """
    return getattr(label, lang) if isinstance(label, Message) else label


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """Numbers as coloured cells. Booleans are a mask: True is visible.

    decimals  of the printed numbers; None for cells without numbers
    highest   the value of the last colour; by default the largest absolute value. Negative values get a second hue
    marked    cells with a frame
    """

    values: np.ndarray
    title: Label = ""
    rows: Sequence[Label] = ()
    columns: Sequence[Label] = ()
    decimals: int | None = 2
    highest: float | None = None
    marked: frozenset[tuple[int, int]] = frozenset()

    @property
    def is_mask(self) -> bool:
        return self.values.dtype == bool

    @property
    def is_signed(self) -> bool:
        """Whether a finite value is below 0; −∞ alone, as in masked scores, does not count."""
        return bool((self.values[np.isfinite(self.values)] < 0).any())

    def level(self, row: int, column: int) -> float:
        """The value as a share of the highest, from -1 to 1; NaN stays NaN."""
        top = self.highest or float(np.nanmax(np.abs(self.values), initial=0)) or 1.0
        return float(np.clip(self.values[row, column] / top, -1, 1))

    def number(self, row: int, column: int) -> str:
        """The text in a cell: the rounded value without a minus before zero, or "" without numbers."""
        value = self.values[row, column]
        if self.is_mask or self.decimals is None:
            return ""
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        rounded = round(float(value), self.decimals)
        return f"{rounded + 0.0:.{self.decimals}f}".replace("-", "−")


@dataclass(frozen=True)
class Sign:
    """A sign between two parts of a line: ×, =, →, or a word above an arrow."""

    text: Label


@dataclass(frozen=True)
class Line:
    """Parts side by side, as in Q × Kᵀ = scores."""

    parts: tuple[Matrix | Sign, ...]


@dataclass(frozen=True, kw_only=True)
class Box:
    """One step of a flow chart: what is done, and the shape of its result."""

    text: Label
    shape: str = ""
    kind: BoxKind = "plain"
    begins: bool = False
    """Whether no arrow comes from the box above."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A flow chart, from top to bottom: lanes side by side, each a column of boxes; None leaves a place empty.

    All lanes have the same number of places. Arrows run down within a lane.

    titles  of the lanes
    across  (row, from lane, to lane): an arrow between boxes at the same height
    skips   (lane, from row, to row): an arrow around the boxes between, as a residual connection
    """

    lanes: Sequence[Sequence[Box | None]]
    titles: Sequence[Label] = ()
    across: Sequence[tuple[int, int, int]] = ()
    skips: Sequence[tuple[int, int, int]] = ()

    @property
    def height(self) -> int:
        return len(self.lanes[0])

    def has_arrow_into(self, lane: int, row: int) -> bool:
        """Whether an arrow comes into this box from one above it."""
        box = self.lanes[lane][row]
        return box is not None and not box.begins and any(self.lanes[lane][at] is not None for at in range(row))


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """Curves over one axis: `series` maps a label to the values at `x`.

    log_x, log_y  for axes in powers of ten; points at or below 0 are left out
    marked_x      gets a dashed vertical line
    """

    x: np.ndarray
    series: Mapping[Label, np.ndarray]
    x_label: Label = ""
    y_label: Label = ""
    log_x: bool = False
    log_y: bool = False
    marked_x: float | None = None


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Values as horizontal bars, each with its label and number."""

    values: Mapping[Label, float]
    title: Label = ""
    unit: str = ""
    decimals: int = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """Queries above, keys below, and a line for each weight: the thicker, the larger. `weights` is queries × keys."""

    queries: Sequence[str]
    keys: Sequence[str]
    weights: np.ndarray
    title: Label = ""
    least: float = 0.05
    """Weights below this get no line."""
    tight: bool = False
    """Smaller spaces between the words, for long sentences."""


Block: TypeAlias = Matrix | Line | Flow | Curves | Bars | Links


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One picture of a lesson: a title, its blocks from top to bottom, and a sentence on what to see."""

    title: Message
    blocks: Sequence[Block] = field(default_factory=tuple)
    caption: Message = field(default=Message("", ""))


MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with a tick at each of `values`."""

    low: float
    high: float
    log: bool
    values: tuple[float, ...]

    def place(self, value: float) -> float:
        """The place of a value as a share of the axis."""
        low, high, at = (math.log10(x) if self.log else x for x in (self.low, self.high, value))
        return (at - low) / (high - low) if high > low else 0.5


def axis_of(curves: Curves, name: Literal["x", "y"]) -> Axis:
    """The axis that fits all points. A linear y axis of values above 0 that come near it begins at 0."""
    log = curves.log_x if name == "x" else curves.log_y
    numbers = curves.x if name == "x" else np.concatenate(list(curves.series.values()))
    known = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))].astype(float)
    low, high = float(known.min()), float(known.max())
    if log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        step = math.ceil(max(1, last - first) / MOST_TICKS)
        if name == "y":
            low, high = 10.0**first, 10.0 ** max(last, first + 1)
        return Axis(low, high, True, tuple(10.0**at for at in range(first, last + 1, step) if low <= 10.0**at <= high))
    if name == "y":
        low = 0.0 if 0 < low < 0.4 * high else low
        space = 0.05 * (high - low) or 1.0
        high, low = high + space, low if low == 0 else low - space
    return Axis(low, high, False, tuple(ticks(low, high, MOST_TICKS)))


def tick_text(value: float) -> str:
    """A short number: powers of ten beyond four digits, and k for thousands.

    >>> [tick_text(x) for x in (0.0, 0.25, 12.0, 4096.0, 20000.0, 1e6, 1e-5)]
    ['0', '0.25', '12', '4,096', '20k', '1M', '1e-5']
    """
    size = abs(value)
    if size == 0 or 0.001 <= size < 10_000:
        return f"{value:,.4g}" if size < 1000 else f"{value:,.0f}"
    if size >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if size >= 1 else f"{value:.0e}".replace("e-0", "e-")
