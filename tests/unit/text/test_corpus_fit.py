"""Lines that fit into a model."""

from pathlib import Path

import pytest

from regard.errors import ArgumentError, FileError
from regard.text import fitting, read_pairs


def test_lines_longer_than_max_len_are_reported_or_skipped(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_text("a\tb\naaaa\tb\n\na\tb\n", encoding="utf-8")
    second.write_text("a\tbbbbb\na\tb\n", encoding="utf-8")
    corpus = read_pairs([first, second], skip_bad=True)
    ids = [[[7] * len(text) for text in column] for column in corpus.columns]
    assert fitting(corpus, ids, max_len=6)[0] is corpus
    with pytest.raises(FileError, match=r"a\.tsv, line 2 makes 5 tokens, and the model reads 4.*and 1 more bad line"):
        fitting(corpus, ids, max_len=4)
    with pytest.raises(FileError, match=r"b\.tsv, line 1 makes 6 tokens.*--skip-bad$"):
        fitting(corpus, ids, max_len=5)
    fit, kept = fitting(corpus, ids, max_len=4, skip_bad=True)
    assert (fit.lines, fit.skipped, len(fit.problems)) == ([1, 4, 2], 3, 3)
    assert kept == ([[7]] * 3, [[7]] * 3)
    assert [Path(fit.path(i)).name for i in range(3)] == ["a.tsv", "a.tsv", "b.tsv"]
    assert fit.columns == (["a"] * 3, ["b"] * 3)
    with pytest.raises(FileError, match="and 4 more"):
        fitting(corpus, ids, max_len=1, skip_bad=True)
    with pytest.raises(ArgumentError, match="5 lines"):
        fitting(corpus, [[[1]]], max_len=4)
