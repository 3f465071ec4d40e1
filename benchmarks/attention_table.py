"""The results of `benchmarks.gpu_attention` as a table: ratios, their bounds, and whether they are met."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from benchmarks.attention_settings import BINS, NOT_JUDGED, Setting, in_order
from benchmarks.commit import with_commit
from benchmarks.dated import heading, table
from benchmarks.measure import Measured, Ratio

MIN_TOKENS = 16_384
"""Tokens from which on some of the ratios have bounds."""
REACHED = {"aim": "yes, the aim", "must": "yes", "short": "no", "–": "–"}
"""By verdict, the best first."""
HOST = ("FlashAttention-2", "cuDNN", "plain", "map", "attend")
"""Calls whose host time is measured too."""
AGREEMENT = ("output beside cuDNN's", "map in one pass beside two", "cuDNN with LSE beside without")


@dataclass
class Found:
    """Everything measured so far; `missing` holds the reasons for the rest."""

    settings: dict[Setting, Measured] = field(default_factory=dict)
    ceilings: dict[str, float] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    compiling: float = 0.0


class Row(NamedTuple):
    """A line of the table: a ratio, and the number of tokens from which on its bounds hold."""

    ratio: Ratio
    min_tokens: int = 0

    def has_bounds(self, n: int) -> bool:
        """Whether its bounds hold at this length; otherwise its value is shown in parentheses."""
        return n >= self.min_tokens and n not in NOT_JUDGED


LESS_MEMORY = Row(
    Ratio(
        label="map, how many times less memory than eager with weights",
        over="",
        under="",
        must=500,
        higher_is_better=True,
    )
)
MANY_HEADS = Row(Ratio(label="extra memory of the map of 32 heads, MB", over="", under="", must=128, aim=80))


def rows(E: int) -> tuple[Row, ...]:
    """The ratios, with the bounds for heads of width E."""
    wide = E >= 128

    def speed(label: str, over: str, under: str, must: float, aim: float, min_tokens: int = 0) -> Row:
        return Row(Ratio(label=label, over=over, under=under, must=must, aim=aim, higher_is_better=True), min_tokens)

    def time(label: str, over: str, under: str, must: float, aim: float, min_tokens: int = 0) -> Row:
        return Row(Ratio(label=label, over=over, under=under, must=must, aim=aim), min_tokens)

    with_map = f"+ LSE + {BINS}² map"
    return (
        speed("plain forward, speed over FlashAttention-2", "FlashAttention-2", "plain", 1.3, 1.6),
        speed("plain forward, speed over cuDNN", "cuDNN", "plain", 0.80 if wide else 0.95, 1.0, MIN_TOKENS),
        time(f"{with_map}, time over own plain forward", "map", "plain", 1.06 if wide else 1.12, 1.03, MIN_TOKENS),
        time(f"{with_map}, time over cuDNN's forward alone", "map", "cuDNN", 1.30, 1.05, MIN_TOKENS),
        time("the same + entropy, time over own plain forward", "entropy", "plain", 1.18, 1.08),
        time("map + received attention, time over own plain forward", "received", "plain", 1.8, 1.6),
        time("map + top-8, time over own plain forward", "top-8", "plain", 1.9, 1.5),
        time("everything, time over own plain forward", "everything", "plain", 2.1, 1.8),
        time("bit-equal: cuDNN + second pass for the map, time over cuDNN alone", "cuDNN + map", "cuDNN", 1.75, 1.5),
        speed(
            "own backward, speed over FlashAttention-2's", "FlashAttention-2 backward", "backward", must=1.0, aim=1.3
        ),
        Row(
            Ratio(label="map, speed over eager with weights", over="eager", under="map", must=12, higher_is_better=True)
        ),
        Row(Ratio(label="`attend` with the map, time over the kernels alone", over="attend", under="map")),
    )


def markdown(found: Found) -> str:
    """The report."""
    rounds = sorted({len(times) for each in found.settings.values() for times in each.times.values()})
    many = f"{rounds[0]} to {rounds[-1]}" if rounds else "no"
    lines = [
        *heading(with_commit("Attention on a GPU")),
        f"triton {_triton()}; CUDA {torch.version.cuda}; cuDNN {torch.backends.cudnn.version()}. One sample, 16 heads, "
        f"bfloat16, random numbers; {many} rounds in turns, {found.compiling:.0f} s of compiling before. Ratios are "
        "of medians. Times are the device's alone, by events, not by CUDA graphs: before each turn the cache is "
        "flushed, and the device sleeps until the host has launched everything. Only a call that waits for the device "
        "in between includes time of the host.",
        "",
        f"Ceilings in the same run: {found.ceilings.get('products', 0) / 1e12:.0f} TFLOP/s (bfloat16 products, 8192³), "
        f"{found.ceilings.get('copy', 0) / 1e12:.2f} TB/s (copies, read and written).",
        "",
        *_ratios(found),
        "",
        " ".join(_notes(found)),
        "",
        *_times(found),
        "",
        *_spreads(found),
        "",
        *_other_facts(found),
        *(f"- {line}" for line in found.missing),
        "",
        "Clocks, power and temperature: " + "; ".join(map(" ".join, found.clocks.items())) + ".",
        "",
    ]
    return "\n".join(lines)


def _triton() -> str:
    import triton

    return triton.__version__


# --- ratios ----------------------------------------------------------------------------------------------


def _ratios(found: Found) -> list[str]:
    lengths = in_order({setting.n for setting in found.settings})
    headings = ["ratio", "E", "mask", *(f"{n:,}" for n in lengths), "must", "aim", "reached"]
    return table(headings, [*_lines_of_ratios(found, lengths), *_lines_of_memory(found, lengths)])


def _notes(found: Found) -> Iterator[str]:
    yield "In parentheses: lengths without bounds. “reached” is the worst of the others."
    for n in in_order({setting.n for setting in found.settings} & NOT_JUDGED.keys()):
        yield f"{n:,} is never judged: {NOT_JUDGED[n]}."


def _by_width_and_mask(found: Found) -> Iterator[tuple[int, str, dict[int, Measured]]]:
    """Width, mask, and the measurements at each length."""
    for E, mask in dict.fromkeys((setting.E, setting.mask) for setting in found.settings):
        own = {setting.n: each for setting, each in found.settings.items() if (setting.E, setting.mask) == (E, mask)}
        yield E, mask, own


def _lines_of_ratios(found: Found, lengths: Sequence[int]) -> list[list[str]]:
    lines: list[tuple[int, list[str]]] = []
    for E, mask, own in _by_width_and_mask(found):
        for position, row in enumerate(rows(E)):
            ratio = row.ratio
            values = {
                n: each.median(ratio.over) / each.median(ratio.under)
                for n, each in own.items()
                if each.times.get(ratio.over) and each.times.get(ratio.under)
            }
            if values:
                lines.append((position, [ratio.label, str(E), mask, *_cells(row, values, lengths)]))
    return [line for _, line in sorted(lines, key=lambda one: one[0])]


def _cells(row: Row, values: dict[int, float], lengths: Sequence[int]) -> list[str]:
    """A value for each length, the bounds, and whether they are met at every length where they hold."""
    ratio = row.ratio
    shown = [
        "" if n not in values else f"{values[n]:.2f}" if row.has_bounds(n) else f"({values[n]:.2f})" for n in lengths
    ]
    verdicts = [ratio.verdict(value) for n, value in values.items() if row.has_bounds(n)] or ["–"]
    sign = "≥" if ratio.higher_is_better else "≤"
    bounds = ["–" if bound is None else f"{sign} {bound:g}" for bound in (ratio.must, ratio.aim)]
    return [*shown, *bounds, REACHED[max(verdicts, key=list(REACHED).index)]]


def _lines_of_memory(found: Found, lengths: Sequence[int]) -> list[list[str]]:
    """Memory beyond inputs and output: that of all weights over that of the map, and of the map of many heads."""
    lines = []
    for row, get in ((LESS_MEMORY, _less_memory), (MANY_HEADS, _many_heads)):
        for E, mask, own in _by_width_and_mask(found):
            values = {n: value for n, each in own.items() if (value := get(each)) is not None}
            if values:
                lines.append([row.ratio.label, str(E), mask, *_cells(row, values, lengths)])
    return lines


def _less_memory(each: Measured) -> float | None:
    eager, ours = each.facts.get("eager, bytes"), each.facts.get("map, bytes")
    return eager / max(1.0, ours) if eager is not None and ours is not None else None


def _many_heads(each: Measured) -> float | None:
    found = each.facts.get("many heads, bytes")
    return None if found is None else found / 1e6


# --- times -----------------------------------------------------------------------------------------------


def _times(found: Found) -> list[str]:
    """Medians in milliseconds; for forwards also the rate of their two matrix products."""
    names = list(dict.fromkeys(name for each in found.settings.values() for name in each.times))
    lines = []
    for setting, each in found.settings.items():
        cells = [_time(setting, each, name) if name in each.times else "" for name in names]
        lines.append([str(setting.E), setting.mask, f"{setting.n:,}", *cells])
    return [
        "Milliseconds; in brackets TFLOP/s, not for calls that compute more than the two products.",
        "",
        *table(["E", "mask", "tokens", *names], lines),
    ]


def _time(setting: Setting, each: Measured, name: str) -> str:
    seconds = each.median(name)
    rate = f" [{setting.operations / seconds / 1e12:.0f}]" if name in ("FlashAttention-2", "cuDNN", "plain") else ""
    return f"{seconds * 1e3:.3g}{rate}" if seconds < 1e-2 else f"{seconds * 1e3:.1f}{rate}"


def _spreads(found: Found) -> list[str]:
    """The spread of the times, for each setting."""
    lines = []
    for setting, each in found.settings.items():
        spreads = {name: spread(times) for name, times in each.times.items() if len(times) > 1}
        if spreads:
            widest = max(spreads, key=spreads.__getitem__)
            numbers = f"{statistics.median(spreads.values()):.1%}", f"{spreads[widest]:.1%}"
            lines.append([str(setting.E), setting.mask, f"{setting.n:,}", *numbers, widest])
    return [
        "Spread: half the distance between the quartiles, in percent of the median, is at most",
        "",
        *table(["E", "mask", "tokens", "for half of the contenders", "for all", "widest for"], lines),
    ]


def spread(times: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median.

    >>> spread([1.0, 2.0, 3.0, 4.0, 5.0])
    0.3333333333333333
    """
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / 2 / middle


def _other_facts(found: Found) -> list[str]:
    """Host time to start a call, in microseconds; and differences between results that should be equal."""
    measured = [(setting, each.facts) for setting, each in found.settings.items() if each.facts]
    lines: list[str] = []
    for title, names, unit, style in (
        ("host time to start a call, µs", [f"{name}, host" for name in HOST], 1e6, ".0f"),
        ("largest differences", AGREEMENT, 1.0, ".1e"),
    ):
        cells = [
            [str(setting), *(f"{facts[name] * unit:{style}}" if name in facts else "" for name in names)]
            for setting, facts in measured
            if any(name in facts for name in names)
        ]
        if cells:
            lines += [*table([title, *(name.removesuffix(", host") for name in names)], cells), ""]
    return lines
