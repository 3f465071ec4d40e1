"""benchmarks/attention_table: which lengths are judged, how sure a number is, and names that others read."""

import re
import runpy
from pathlib import Path

import pytest

from benchmarks import attention_table
from benchmarks.attention_settings import BESIDE, BINS, JUDGED, LENGTHS, UNEVEN, Setting
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
    """Of one width and mask, where plain takes 1 ms, and FlashAttention-2 twice as long, or so much at UNEVEN."""
    found = Found()
    for n in lengths:
        slow = uneven if n == UNEVEN else 2.0
        times = {"FlashAttention-2": [1e-3 * slow] * 3, "plain": [0.9e-3, 1e-3, 1.2e-3], "search pass": [3e-3] * 3}
        found.settings[Setting(E=64, causal=False, n=n)] = Measured(times=times)
    return markdown(found)


def cells(text: str, label: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_what_is_not_judged_stands_last_and_in_parentheses() -> None:
    text = report(*LENGTHS)
    assert cells(text, "ratio")[3:8] == [f"{n:,}" for n in (*JUDGED, UNEVEN)]
    assert cells(text, PLAIN)[3:] == ["2.00"] * 4 + ["(2.00)", "≥ 1.3", "≥ 1.6", "yes, the aim"]
    assert f"{UNEVEN:,} is never judged: {BESIDE[UNEVEN]}." in text


def test_the_verdict_does_not_know_what_is_not_judged() -> None:
    assert cells(report(*LENGTHS, uneven=0.5), PLAIN)[-1] == "yes, the aim"
    assert cells(report(UNEVEN), PLAIN)[3:] == ["(2.00)", "≥ 1.3", "≥ 1.6", "–"]
    assert "never judged" not in report(*JUDGED)


def test_those_beside_are_the_ones_whose_bins_share_no_edges_with_tiles() -> None:
    crew = runpy.run_path(str(ROOT / "src/regard/kernels/triton/hopper/config.py"))  # its room would import Triton

    def shares(n: int) -> bool:
        wide = bin_width(n, BINS)
        return all(wide % tile == 0 or tile % wide == 0 for tile in (crew["KEYS"], crew["ROWS"]))

    assert {n for n in LENGTHS if not shares(n)} == BESIDE.keys()
    assert str(bin_width(UNEVEN, BINS)) in BESIDE[UNEVEN]


def test_how_sure_a_number_is() -> None:
    text = report(4096)
    quartiles = (1.1 - 0.95) / 2
    assert spread([0.9, 1.0, 1.2]) == pytest.approx(quartiles)
    assert f"| 64 | full | 4,096 | 0.0% | {quartiles:.1%} | plain |" in text


def test_a_single_round_has_no_spread() -> None:
    found = Found(settings={Setting(E=64, causal=False, n=4096): Measured(times={"plain": [1e-3]})})
    assert "| 64 | full | 4,096 |" in markdown(found)


def test_a_pass_alone_is_timed_and_asked_for_nothing() -> None:
    header = next(line for line in report(4096).splitlines() if line.startswith("| E | mask | tokens | Flash"))
    assert "search pass" in header
    asked = {name for E in (64, 128) for row in rows(E) for name in (row.ratio.over, row.ratio.under)}
    assert not {"received pass", "search pass"} & asked


def test_the_heading_names_the_commit() -> None:
    assert re.match(r"# Attention on a GPU, commit abc1234, measured on \d{4}-\d\d-\d\d\n", report(4096))


def test_no_row_of_the_newest_report_lost_its_name() -> None:
    newest = max((ROOT / "benchmarks/results").glob("gpu-attention_*.md")).read_text(encoding="utf-8")
    old = re.findall(r"^\| (.+?) \| (?:64|128) \| \w+ \|", newest, flags=re.MULTILINE)
    new = {row.ratio.label for row in (*rows(64), attention_table.LESS, attention_table.MANY)}
    assert old
    assert set(old) == new
