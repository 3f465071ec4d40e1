"""Dated reports: their heading, tables, and file names."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import machine

RESULTS = Path(__file__).parent / "results"


def heading(title: str) -> list[str]:
    """Title, day, and machine."""
    return [f"# {title}, measured on {_today()}", "", "; ".join(" ".join(each) for each in machine().items()) + ".", ""]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown; bars inside cells are escaped."""
    cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings), *(f"| {row} |" for row in cells)]


def finish(name: str, text: str, *, report: bool) -> None:
    """Print a report, and if requested write it to results/NAME_DAY.md."""
    print(text)
    if report:
        (RESULTS / f"{name}_{_today()}.md").write_text(text, encoding="utf-8")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
