"""The measurements as a table: in the terminal, and as a dated Markdown file."""

from datetime import date
from typing import Any

from benchmarks.cases import CASES, Case
from benchmarks.dated import table
from benchmarks.measure import Measured

HEADINGS = ("ratio or fact", "median", "quartiles", "best", "must / aim", "met")


def rows(case: Case, measured: Measured) -> list[tuple[str, ...]]:
    """The cells under HEADINGS, for each ratio and fact."""
    table: list[tuple[str, ...]] = []
    for ratio in case.ratios:
        low, middle, high = measured.ratio(ratio)
        sign = "≥" if ratio.higher_is_better else "≤"
        bounds = " / ".join("–" if bound is None else f"{sign} {bound:g}" for bound in (ratio.must, ratio.aim))
        best = f"{measured.best_ratio(ratio):.2f}"
        table.append((ratio.label, f"{middle:.2f}", f"{low:.2f}–{high:.2f}", best, bounds, ratio.verdict(middle)))
    for name, unit, most in case.fact_bounds:
        value = measured.facts[name]
        verdict = "–" if most is None else "must" if value <= most else "short"
        bounds = "–" if most is None else f"≤ {most:g}"
        table.append((name, f"{value:.2f} {unit}", "", "", bounds, verdict))
    return table


def markdown(results: dict[str, Measured], machine: dict[str, str], day: date) -> str:
    """The dated report."""
    lines = [f"# Measured on {day.isoformat()}", ""]
    lines += ["; ".join(f"{name} {value}" for name, value in machine.items()) + ".", ""]
    lines += [
        "Contenders take turns; a ratio is the median over rounds, with its quartiles, and “best” that of the shortest",
        "times. “must” and “aim” say which bound the median meets, “short” that it meets none. Times are medians in",
        "milliseconds.",
        "",
    ]
    for name, measured in results.items():
        case = CASES[name]
        rounds = max(map(len, measured.times.values()), default=1)
        lines += [f"## {name}", "", f"{case.what}; {rounds} rounds.", ""]
        lines += table(HEADINGS, rows(case, measured))
        if measured.times:
            medians = ((contender, f"{measured.median(contender) * 1e3:.1f}") for contender in measured.times)
            lines += ["", *table(("time", "ms"), medians)]
        lines.append("")
    return "\n".join(lines)


def as_json(results: dict[str, Measured], machine: dict[str, str]) -> dict[str, Any]:
    """All results, for scripts."""
    return {
        "machine": machine,
        "cases": {
            name: {
                "what": CASES[name].what,
                "times": measured.times,
                "facts": measured.facts,
                "ratios": {r.label: measured.ratio(r)[1] for r in CASES[name].ratios},
            }
            for name, measured in results.items()
        },
    }
