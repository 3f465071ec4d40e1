"""The help page fits the columns of the terminal."""

import pytest
from command_line import Run
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.views.labels import fold


@given(st.text(alphabet="abc 注意力，。（）“”-", max_size=80), st.integers(12, 40))
def test_folded_lines_are_complete_and_fit(text: str, width: int) -> None:
    lines = fold(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    # A word longer than the line is not broken, so that options can be copied.
    assert all(cell_len(line) <= width or " " not in line.strip() for line in lines)


@pytest.mark.parametrize("width", [8, 9, 10, 11])
def test_no_line_begins_with_closing_punctuation(width: int) -> None:
    lines = fold("注意力（注意，力）。看，看，看：LC_ALL、LANG（见“doctor”）。", width)
    assert not any(line[0] in "，。）、”" for line in lines)
    assert not any(line[-1] in "（“" for line in lines)


def test_help_fits_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        for command in ([], ["see"], ["translate"], ["generate"], ["explain"], ["doctor"]):
            for lang in ("en", "zh"):
                page = run(*command, "--help", "--lang", lang).out.split("\n\n")
                widest = max(cell_len(line) for block in page for line in block.splitlines())
                assert widest <= int(columns), (command, lang)
