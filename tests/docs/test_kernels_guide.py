"""docs/kernels: every block works as it stands, the numbers in its prose are the code's, both languages agree."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from narrowing import present
from pages import Page, spans

from regard import Mask, See, backends
from regard.axes import bin_width
from regard.kernels.triton.support import DTYPES, MAX_HEAD_WIDTH, MAX_TOP, MIN_CAPABILITY
from regard.messages import LANGUAGES, Language, use_language

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
GUIDE = Page("docs/kernels.md", "docs/kernels.zh-CN.md")
README = Page("README.md", "README.zh-CN.md")
EACH = pytest.mark.parametrize("lang", LANGUAGES)

QUOTED = (
    "plain forward, speed over FlashAttention-2",
    "plain forward, speed over cuDNN",
    "own backward, speed over FlashAttention-2's",
    "map, speed over eager with weights",
    "+ LSE + 256² map, time over cuDNN's forward alone",
    "+ LSE + 256² map, time over own plain forward",
    "the same + entropy, time over own plain forward",
    "map + received attention, time over own plain forward",
    "map + top-8, time over own plain forward",
    "everything, time over own plain forward",
    "bit-equal: cuDNN + second pass for the map, time over cuDNN alone",
    "`attend` with the map, time over the kernels alone",
)
"""What the rows of the guide's last table are called in the report."""


def newest(name: str) -> Path:
    return max(RESULTS.glob(f"{name}_*.md"))


def measured(name: str, least: int = 4) -> list[list[float]]:
    """A ratio in the newest report, heads and masks together: at the shortest length, at the others that are judged,
    and at the one whose bins begin anywhere.
    """
    lines = newest("gpu-attention").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[4:9] for line in lines if line.startswith(f"| {name} |")]
    assert least <= len(rows) <= 4
    cells = [[cell.strip(" ()") for cell in row] for row in rows]
    found = ([row[:1] for row in cells], [row[1:4] for row in cells], [row[4:] for row in cells])
    return [[float(cell) for row in part for cell in row if cell] for part in found]


def assert_range(quoted: str, values: list[float]) -> None:
    """Least and most, to the digits that are quoted; a dash where there are none."""
    if not values:
        assert quoted == "–"
        return
    digits = len(quoted) - quoted.rindex(".") - 1
    assert quoted == f"{min(values):.{digits}f}–{max(values):.{digits}f}"


@EACH
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    GUIDE.run(lang, monkeypatch)


@EACH
def test_the_table_is_what_backends_say_on_a_gpu(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.dispatch.torch_backends.refusal", lambda *_, **__: None)  # as if there were one
    q, k, v = torch.zeros(3, 1, 4, 2048, 64)
    with use_language(lang):
        assert GUIDE.blocks(lang, "text") == [f"{backends(q, k, v, mask=Mask.causal(), see=See(map=256))}\n"]


@EACH
def test_numbers_in_the_prose_are_those_of_the_code(lang: Language) -> None:
    words = GUIDE.prose(lang)
    assert re.findall(r"(?:compute capability|不低于) (\d\.\d)|(?:below capability|能力低于) (\d\.\d)", words) == [
        ("8.0", ""),
        ("", "8.0"),
    ]
    assert MIN_CAPABILITY == (8, 0)
    assert re.findall(r"(?:wider than|头宽超过) (\d+)", words) == [str(MAX_HEAD_WIDTH)]
    assert re.findall(r"`top` (?:above|超过) (\d+)", words) == [str(MAX_TOP)]
    assert all(str(dtype).removeprefix("torch.") in words for dtype in DTYPES)
    # Run as a file: importing its package would import Triton.
    config = runpy.run_path(str(ROOT / "src/regard/kernels/triton/hopper/config.py"))
    (smallest,) = re.findall(r"(?:no smaller than|不小于) (\d+) × \1", words)
    (shortest,) = re.findall(r"(?:from|从) ([\d,]+) (?:tokens on\.|个词元起就)", words)
    least = int(shortest.replace(",", ""))
    assert [bin_width(n, present(See().map)) for n in (least - 1, least)] == [int(smallest) - 1, int(smallest)]
    assert int(smallest) == config["NARROWEST"]
    assert re.findall(r"(\d+) (?:or|或) (\d+)(?: wide|，值)", words) == [tuple(map(str, config["WIDTHS"]))]
    tiles = {(str(config["KEYS"]), str(config["ROWS"]))}
    assert set(re.findall(r"(\d+) (?:keys and|个键、)\s?(\d+) (?:queries|个查询)", words)) == tiles


@EACH
def test_figures_are_those_of_the_newest_reports(lang: Language) -> None:
    rows = GUIDE.tables(lang)[-1][1:]
    for (_, *quoted), name in zip(rows, QUOTED, strict=True):
        for one, values in zip(quoted, measured(name), strict=True):
            assert_range(one, values)
    words = GUIDE.prose(lang)
    less = measured("map, how many times less memory than eager with weights")[1]
    hundreds = tuple(f"{x:,.0f}" for x in (round(min(less), -2), round(max(less), -2)))
    assert re.findall(r"([\d,]+)–([\d,]+) (?:times less|倍)", words) == [hundreds]
    memory = measured("extra memory of the map of 32 heads, MB", least=1)[1]  # time may be up before all four
    assert re.findall(r"131,072 .*\D(\d+) MB", words) == [f"{max(memory):.0f}"]
    million = newest("million").read_text(encoding="utf-8")
    (seconds,) = re.findall(r"median of three \| ([\d.]+) \|", million)
    (megabytes,) = re.findall(r"beyond q and k, MB \| (\d+) \|", million)
    assert re.findall(r"([\d.]+) (?:s and|秒、)\s?(\d+) MB", words) == [(f"{float(seconds):.2f}", megabytes)]
    for report in (newest("gpu-attention"), newest("million")):
        assert f"](../benchmarks/results/{report.name})" in words


@EACH
def test_what_is_named_is_there(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE.prose(lang)):
        assert (ROOT / "docs" / target).exists(), target
    for span in spans(GUIDE.prose(lang)):
        if span.startswith(("src/", "tests/")):
            assert (ROOT / span).exists(), span


def test_both_languages_have_the_same_code_commands_and_rows() -> None:
    commands = [re.sub(r" *#.*", "", "".join(GUIDE.blocks(lang, "bash"))) for lang in LANGUAGES]
    assert commands[0] == commands[1]
    GUIDE.assert_same_code()
    GUIDE.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|", r"^- ", r"[\d.]+–[\d.]+", r"\]\(([^)]+)\)")
    GUIDE.assert_same_names()
    GUIDE.assert_chinese_punctuation()


@EACH
def test_the_figures_of_ten_million_tokens_follow_from_the_report(lang: Language) -> None:
    report = newest("million").read_text(encoding="utf-8")
    seconds, megabytes = (
        float(found[1])
        for name in ("seconds, median of three", "memory beyond q and k, MB")
        if (found := re.search(rf"\| {name} \| ([\d.]+) \|", report))
    )
    assert (seconds, megabytes) == (0.259, 314)
    cells = [[float(cell.split()[0]) for cell in row[1:]] for row in GUIDE.tables(lang)[-2][1:]]
    minute, hour = 60, 3600
    wanted = [
        [100 * seconds / n for n in (1, 8, 64)],
        [3200 * seconds / n / unit for n, unit in ((1, minute), (8, 1), (64, 1))],
        [102400 * seconds / n / unit for n, unit in ((1, hour), (8, minute), (64, minute))],
        [10 * megabytes / 1000 / n for n in (1, 8, 64)],
    ]
    for found_row, row in zip(cells, wanted, strict=True):
        assert found_row == pytest.approx(row, rel=0.03)
