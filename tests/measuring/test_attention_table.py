"""benchmarks/attention_table: lengths with bounds, spreads, and row names that other tests read."""

import re
import runpy
from pathlib import Path

import pytest

from benchmarks import attention_table
from benchmarks.attention_settings import BINS, JUDGED, LENGTHS, NOT_JUDGED, UNEVEN, Setting
from benchmarks.attention_table import Found, markdown, rows, spread
from benchmarks.measure import Measured
from regard.axes import bin_width

ROOT = Path(__file__).parents[2]
PLAIN = "plain forward, speed over FlashAttention-2"


@pytest.fixture(autouse=True)
def no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_table, "_triton", lambda: "0")
    monkeypatch.setenv("REGARD_COMMIT", "abc1234")


def report(*lengths: int, uneven: float = 2.0) -> str:
    """A report of one width and mask: plain takes 1 ms, FlashAttention-2 2 ms, or `uneven` ms at UNEVEN."""
    found = Found()
    for n in lengths:
        slow = uneven if n == UNEVEN else 2.0
        times = {"FlashAttention-2": [1e-3 * slow] * 3, "plain": [0.9e-3, 1e-3, 1.2e-3], "search pass": [3e-3] * 3}
        found.settings[Setting(E=64, causal=False, n=n)] = Measured(times=times)
    return markdown(found)


def cells(text: str, label: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_lengths_without_bounds_come_last_in_parentheses() -> None:
    text = report(*LENGTHS)
    assert cells(text, "ratio")[3:8] == [f"{n:,}" for n in (*JUDGED, UNEVEN)]
    assert cells(text, PLAIN)[3:] == ["2.00"] * 4 + ["(2.00)", "≥ 1.3", "≥ 1.6", "yes, the aim"]
    assert f"{UNEVEN:,} is never judged: {NOT_JUDGED[UNEVEN]}." in text


def test_the_verdict_ignores_lengths_without_bounds() -> None:
    assert cells(report(*LENGTHS, uneven=0.5), PLAIN)[-1] == "yes, the aim"
    assert cells(report(UNEVEN), PLAIN)[3:] == ["(2.00)", "≥ 1.3", "≥ 1.6", "–"]
    assert "never judged" not in report(*JUDGED)


def test_lengths_without_bounds_are_those_with_unaligned_bins() -> None:
    # By path: importing its package would import Triton.
    config = runpy.run_path(str(ROOT / "src/regard/kernels/triton/hopper/config.py"))

    def shares(n: int) -> bool:
        width = bin_width(n, BINS)
        return all(width % tile == 0 or tile % width == 0 for tile in (config["KEYS"], config["ROWS"]))

    assert {n for n in LENGTHS if not shares(n)} == NOT_JUDGED.keys()
    assert str(bin_width(UNEVEN, BINS)) in NOT_JUDGED[UNEVEN]


def test_spread_of_the_times() -> None:
    text = report(4096)
    quartiles = (1.1 - 0.95) / 2
    assert spread([0.9, 1.0, 1.2]) == pytest.approx(quartiles)
    assert f"| 64 | full | 4,096 | 0.0% | {quartiles:.1%} | plain |" in text


def test_a_single_round_has_no_spread() -> None:
    found = Found(settings={Setting(E=64, causal=False, n=4096): Measured(times={"plain": [1e-3]})})
    assert "| 64 | full | 4,096 |" in markdown(found)


def test_second_passes_are_timed_without_bounds() -> None:
    header = next(line for line in report(4096).splitlines() if line.startswith("| E | mask | tokens | Flash"))
    assert "search pass" in header
    in_ratios = {name for E in (64, 128) for row in rows(E) for name in (row.ratio.over, row.ratio.under)}
    assert not {"received pass", "search pass"} & in_ratios


def test_the_heading_names_the_commit() -> None:
    assert re.match(r"# Attention on a GPU, commit abc1234, measured on \d{4}-\d\d-\d\d\n", report(4096))


def test_row_names_match_the_newest_report() -> None:
    newest = max((ROOT / "benchmarks/results").glob("gpu-attention_*.md")).read_text(encoding="utf-8")
    old = re.findall(r"^\| (.+?) \| (?:64|128) \| \w+ \|", newest, flags=re.MULTILINE)
    new = {row.ratio.label for row in (*rows(64), attention_table.LESS_MEMORY, attention_table.MANY_HEADS)}
    assert old
    assert set(old) == new
