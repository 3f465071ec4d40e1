"""Test sets: found by split or read from one file, and scored by the available references."""

from pathlib import Path

import pytest

from regard.errors import FileError
from regard.evaluation import Languages, pair_set, paper_bleu, sacre_bleu, split_set
from regard.text.corpus import read_pairs

GERMAN = Languages(source="en", target="de", tokenised=True)
CHINESE = Languages(source="en", target="zh", tokenised=False)
PATTERN, RAW = "tok/{split}.tok.{lang}", "{split}.{lang}"

ENGLISH_RAW = ["A man's dog runs.", "Two “red” hats."]
ENGLISH_TOK = ["a man &apos;s dog runs .", "two &quot; red &quot; hats ."]
GERMAN_RAW = ["Der Hund eines Mannes rennt.", "Zwei „rote“ Hüte."]
GERMAN_TOK = ["der hund eines mannes rennt .", "zwei &quot; rote &quot; hüte ."]


def write_files(folder: Path, files: dict[str, list[str]]) -> Path:
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_split_has_both_kinds_of_references(tmp_path: Path) -> None:
    files = {"tok/t.tok.en": ENGLISH_TOK, "tok/t.tok.de": ["x", "y"], "t.de": GERMAN_RAW}
    found = split_set(write_files(tmp_path, files), "t", GERMAN, pattern=PATTERN, raw=RAW)
    assert found.sources == ENGLISH_TOK
    assert found.written == [["x"], ["y"]]  # unchanged from the file
    assert found.plain == [[line] for line in GERMAN_RAW]


def test_missing_tokenised_text_is_made_from_raw_text(tmp_path: Path) -> None:
    found = split_set(
        write_files(tmp_path, {"t.en": ENGLISH_RAW, "t.de": GERMAN_RAW}), "t", GERMAN, pattern=PATTERN, raw=RAW
    )
    assert found.sources == ENGLISH_TOK
    assert found.written == [[line] for line in GERMAN_TOK]


def test_scores_of_a_tokenised_set(tmp_path: Path) -> None:
    found = split_set(
        write_files(tmp_path, {"t.en": ENGLISH_RAW, "t.de": GERMAN_RAW}), "t", GERMAN, pattern=PATTERN, raw=RAW
    )
    right = {score.name: score for score in found.scores(GERMAN_TOK)}
    assert list(right) == ["bleu", "sacrebleu", "chrf"]
    assert right["bleu"].value == pytest.approx(100)
    assert right["bleu"] == paper_bleu(GERMAN_TOK, GERMAN_TOK)
    # detokenised and lower-cased; only the typographic quotes of the raw reference differ
    assert right["sacrebleu"] == sacre_bleu(
        ["der hund eines mannes rennt.", 'zwei "rote" hüte.'], GERMAN_RAW, lowercase=True, language="de"
    )
    assert right["sacrebleu"].value > 40
    assert "case:lc" in (right["chrf"].signature or "")


def test_without_raw_references_only_paper_bleu(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"tok/t.tok.en": ENGLISH_TOK, "tok/t.tok.de": GERMAN_TOK})
    for raw in (RAW, None):
        found = split_set(folder, "t", GERMAN, pattern=PATTERN, raw=raw)
        assert found.plain is None
        assert [score.name for score in found.scores(GERMAN_TOK)] == ["bleu"]


def test_missing_split_raises(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no set 'x'.*tok/x\.tok\.en.*x\.en"):
        split_set(tmp_path, "x", GERMAN, pattern=PATTERN, raw=RAW)
    with pytest.raises(FileError, match=r"there is no file .*x\.tok\.en"):
        split_set(tmp_path, "x", GERMAN, pattern=PATTERN, raw=None)


@pytest.mark.parametrize("short", ["tok/t.tok.de", "t.de"])
def test_files_of_different_lengths_raise(tmp_path: Path, short: str) -> None:
    files = {"tok/t.tok.en": ENGLISH_TOK, "tok/t.tok.de": GERMAN_TOK, "t.de": GERMAN_RAW}
    write_files(tmp_path, files | {short: files[short][:1]})
    with pytest.raises(FileError, match="set 't' has 2 source lines and 1 lines of references"):
        split_set(tmp_path, "t", GERMAN, pattern=PATTERN, raw=RAW)


def test_references_of_one_sentence_are_grouped(tmp_path: Path) -> None:
    write_files(tmp_path, {"p.tsv": ["Hi.\t你好。", "Bye.\t再见。", "Hi.\t嗨。"]})
    found = pair_set(read_pairs(tmp_path / "p.tsv"), CHINESE)
    assert found.sources == ["Hi.", "Bye."]
    assert found.lines == [1, 2]
    assert found.plain == [["你好。", "嗨。"], ["再见。"]]
    assert found.written is None
    scores = {score.name: score for score in found.scores(["嗨。", "再见。"])}
    assert list(scores) == ["sacrebleu", "chrf"]
    assert "tok:zh" in (scores["sacrebleu"].signature or "")
    assert "case:mixed" in (scores["sacrebleu"].signature or "")
    assert scores["chrf"].value == pytest.approx(100)


def test_own_pairs_for_a_model_of_tokenised_text(tmp_path: Path) -> None:
    lines = [f"{english}\t{german}" for english, german in zip(ENGLISH_RAW, GERMAN_RAW, strict=True)]
    found = pair_set(read_pairs(write_files(tmp_path, {"p.tsv": lines}) / "p.tsv"), GERMAN)
    assert found.sources == ENGLISH_TOK
    assert found.written == [[line] for line in GERMAN_TOK]
    assert found.plain == [[line] for line in GERMAN_RAW]
