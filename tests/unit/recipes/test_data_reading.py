"""Files of a recipe: pairs by name or by split, tokenised if necessary; texts; held-out ends."""

from pathlib import Path
from typing import Any

import pytest

from regard.errors import FileError
from regard.recipes.data import (
    files_below,
    read_pair_file,
    read_pair_files,
    read_texts,
    split_end,
    split_pairs,
)
from regard.recipes.recipe import DataSpec

SPLITS: dict[str, Any] = {"pattern": "tok/{split}.tok.{lang}", "raw": "{split}.{lang}", "source": "en", "target": "de"}
RAW = {"en": ["A man's hat.", "Two “red” dogs."], "de": ["Der Hut eines Mannes.", "Zwei „rote“ Hunde."]}
TOKENISED = (
    ["a man &apos;s hat .", "two &quot; red &quot; dogs ."],
    ["der hut eines mannes .", "zwei &quot; rote &quot; hunde ."],
)


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for lang, lines in RAW.items():
        write(tmp_path / f"train.{lang}", lines)
    return tmp_path


def test_split_is_tokenised_from_raw_files(folder: Path) -> None:
    found = read_pair_files(DataSpec(max_len=9, **SPLITS), folder, ["train"], skip_bad=False)
    assert found.columns == TOKENISED
    assert (found.name, found.lines) == ("train.en + train.de", [1, 2])


def test_tokenised_files_are_unchanged(folder: Path) -> None:
    for lang in ("en", "de"):
        write(folder / "tok" / f"train.tok.{lang}", [f"{lang} , AS IS", "x"])
    found = read_pair_files(DataSpec(max_len=9, **SPLITS), folder, ["train"], skip_bad=False)
    assert found.columns == (["en , AS IS", "x"], ["de , AS IS", "x"])


def test_single_tokenised_file_is_ignored(folder: Path) -> None:
    """Both sides are tokenised from raw text, because the rules for the existing file may differ."""
    write(folder / "tok" / "train.tok.en", ["en", "x"])
    assert read_pair_files(DataSpec(max_len=9, **SPLITS), folder, ["train"], skip_bad=False).columns == TOKENISED


def test_split_without_files_raises(folder: Path) -> None:
    with pytest.raises(FileError, match=r"val\.en"):
        read_pair_files(DataSpec(max_len=9, **SPLITS), folder, ["val"], skip_bad=False)
    with pytest.raises(FileError, match=r"train\.tok\.en"):
        read_pair_files(DataSpec(max_len=9, **{**SPLITS, "raw": None}), folder, ["train"], skip_bad=False)


def test_own_file_is_tokenised_like_the_recipes(tmp_path: Path) -> None:
    own = write(tmp_path / "own.tsv", [f"{a}\t{b}" for a, b in zip(*RAW.values(), strict=True)])
    assert read_pair_file(DataSpec(max_len=9, **SPLITS), own, skip_bad=False).columns == TOKENISED
    assert read_pair_file(DataSpec(max_len=9), own, skip_bad=False).columns == tuple(RAW.values())


def test_pairs_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", ["x\t1\t2", "y\t3\t4"])
    found = read_pair_files(DataSpec(max_len=9, columns=(3, 1)), tmp_path, ["a.tsv"], skip_bad=False)
    assert found.columns == (["2", "4"], ["x", "y"])


@pytest.mark.parametrize(
    ("name", "lines", "spec", "texts"),
    [
        ("a.txt", ["to be", "or not"], {}, ["to be\nor not\n"]),
        ("a.txt", ["to be", "or not"], {"unit": "lines"}, ["to be", "or not"]),
        ("a.tsv", ["x\tto be", "y\tor not"], {"columns": (2,)}, ["to be", "or not"]),
        ("a.jsonl", ['{"text": "to be"}', '{"text": "or not"}'], {}, ["to be", "or not"]),
        ("a.jsonl", ['{"poem": "to be"}'], {"unit": "lines", "columns": ("poem",)}, ["to be"]),
    ],
)
def test_texts(tmp_path: Path, name: str, lines: list[str], spec: dict[str, Any], texts: list[str]) -> None:
    path = write(tmp_path / name, lines)
    assert read_texts(DataSpec(max_len=9, **spec), [path], skip_bad=False).columns == (texts,)
    if not spec:
        assert read_texts(None, [path], skip_bad=False).columns == (texts,)


def test_files_are_in_the_order_of_patterns(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.tsv"):
        (tmp_path / name).touch()
    assert [path.name for path in files_below(tmp_path, ["*.txt"])] == ["a.txt", "b.txt"]
    assert [path.name for path in files_below(tmp_path, ["c.tsv", "*.txt"])] == ["c.tsv", "a.txt", "b.txt"]
    with pytest.raises(FileError, match=r"there is no .*\*\.md; check --data"):
        files_below(tmp_path, ["*.md"])


def test_end_is_held_out() -> None:
    assert split_end(["a", "b", "c", "d"], 0.25, "lines") == (["a", "b", "c"], ["d"])
    assert split_end(["abcd", "efgh"], 0.5, "text") == (["abcd"], ["efgh"])
    assert split_end(["abcd"], 0.25, "text") == (["abc"], ["d"])


def test_held_out_lines_keep_their_file(tmp_path: Path) -> None:
    names = [write(tmp_path / name, [f"{name}{i}\t{i}" for i in range(n)]) for name, n in (("a.tsv", 5), ("b.tsv", 3))]
    spec = DataSpec(max_len=9, valid_share=0.5)
    train, valid = split_pairs(read_pair_files(spec, tmp_path, ["a.tsv", "b.tsv"], skip_bad=False), spec)
    assert [train.path(i) for i in range(len(train))] == [str(names[0])] * 4
    assert [valid.path(i) for i in range(len(valid))] == [str(names[0]), *[str(names[1])] * 3]
    assert valid.columns[0] == ["a.tsv4", "b.tsv0", "b.tsv1", "b.tsv2"]
    assert (train.lines, valid.lines) == ([1, 2, 3, 4], [5, 1, 2, 3])


def test_duplicates_after_simplification_are_removed(tmp_path: Path) -> None:
    lines = ["hair\t頭髮", "river\t河", "hair\t头发", "hair\t发丝", "river\t河"]
    path = write(tmp_path / "train.tsv", lines)
    spec = DataSpec(max_len=9, simplified=True, unique=True)
    found = read_pair_file(spec, path, skip_bad=False)
    assert found.columns == (["hair", "river", "hair"], ["头发", "河", "发丝"])
    assert found.lines == [1, 2, 4]
    as_it_stands = read_pair_file(DataSpec(max_len=9), path, skip_bad=False)
    assert as_it_stands.columns[1] == ["頭髮", "河", "头发", "发丝", "河"]
    assert found.sha256 == as_it_stands.sha256
    poems = read_texts(DataSpec(max_len=9, unit="lines", columns=(2,), simplified=True, unique=True), [path], False)
    assert poems.columns == (["头发", "河", "发丝"],)


def test_lines_keep_their_file_after_deduplication(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.txt", ["甲", "甲", "乙"]), write(tmp_path / "b.txt", ["乙", "丙"])]
    found = read_texts(DataSpec(max_len=9, unit="lines", unique=True), paths, False)
    assert found.columns == (["甲", "乙", "丙"],)
    assert [Path(found.path(i)).name for i in range(3)] == ["a.txt", "a.txt", "b.txt"]
