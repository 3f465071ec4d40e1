"""The sentence pairs written for the translator: their form, and that no test sentence is among them."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.translator import read_sentences
from making.translator import own, tatoeba
from making.translator.tatoeba import Pair, written

FILES = sorted(own.FOLDER.glob("*.tsv"))
BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "sentences"
TATOEBA = Path(__file__).parents[2].parent / "shared" / "data" / "tatoeba"
AT_LEAST = 18_000
# Common characters that have another, simplified form.
TRADITIONAL = "們個說這時來會國對發學點還沒過邊讓從麼樣見開車門問間話認識請謝錢買賣書長東電腦網頁"


def problems(pair: Pair) -> list[str]:
    """What is wrong with the form of a pair."""
    english, chinese = pair
    found = {
        "no final mark in English": not re.search(r"[.?!][\"']?$", english),
        "no final mark in Chinese": not re.search(r"[。？！…][”』》）]?$", chinese),
        "a Chinese or curly mark in English": re.search(r"[，。？！；：“”‘’]", english),
        "Chinese in English": re.search(r"[\u4e00-\u9fff]", english),
        "a space in Chinese": re.search(r"[\u4e00-\u9fff] +[\u4e00-\u9fff]", chinese),
        "a half-width mark in Chinese": re.search(r"[\u4e00-\u9fff][,.?!;:]|[,?!;] ?[\u4e00-\u9fff]", chinese),
        "a traditional character": re.search(f"[{TRADITIONAL}]", chinese),
        "spaces at an end": english != english.strip() or chinese != chinese.strip(),
        "two spaces": "  " in english,
        "not as Tatoeba's pairs are written": written(chinese) != chinese,
    }
    return [what for what, is_so in found.items() if is_so]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_form_of_every_pair(path: Path) -> None:
    pairs = [Pair(*line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
    wrong = [(number, pair, problems(pair)) for number, pair in enumerate(pairs, 1) if problems(pair)]
    assert wrong == []


def test_there_are_enough_pairs() -> None:
    assert len(own.read()) >= AT_LEAST


def test_no_sentence_is_repeated() -> None:
    counts = Counter(own.key(pair.english) for pair in own.read())
    assert [key for key, times in counts.items() if times > 1] == []


def test_the_card_counts_the_files() -> None:
    counts = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    card = (own.FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+\.tsv)` \| ([\d,]+) \|", card, re.MULTILINE)
    assert {name: int(count.replace(",", "")) for name, count in rows} == counts
    assert f"{sum(counts.values()):,} sentence pairs" in card
    assert f"{sum(counts.values()):,} 个句对" in card


@pytest.mark.parametrize("path", sorted([*BENCHMARKS.glob("*.txt"), *BENCHMARKS.glob("fresh*.tsv")]), ids=str)
def test_no_test_sentence_is_among_them(path: Path) -> None:
    tests = {own.key(line.split("\t")[0]) for line in read_sentences(path)}
    assert sorted(tests & {own.key(pair.english) for pair in own.read()}) == []


def test_no_sentence_of_dev_is_among_them() -> None:
    if not (TATOEBA / "dev.tsv").exists():
        pytest.skip(f"Tatoeba's dev.tsv is not in {TATOEBA}")
    tests = {own.key(pair.english) for pair in tatoeba.read(TATOEBA / "dev.tsv")}
    assert sorted(tests & {own.key(pair.english) for pair in own.read()}) == []


# --- reading ----------------------------------------------------------------------------------------------


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text("I see.\t我明白。\nI go.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"some\.tsv, line 2: not English, a tab and Chinese: I go\."):
        own.read(tmp_path)


def test_test_sentences_and_repeats_are_left_out() -> None:
    pairs = [Pair("I see.", "我明白。"), Pair("I go.", "我去。"), Pair("I go!", "我走！")]
    assert own.without(pairs, ["I SEE"]) == [Pair("I go.", "我去。")]


def test_one_file_has_every_pair_in_an_order_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `regard train en-zh --data` takes: its last 5 % are held out, and come from every file of sentences."""
    path = tmp_path / "pairs.tsv"
    monkeypatch.setattr(sys, "argv", ["own", str(path)])
    own.main()
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = own.without(own.read(), [])
    assert Counter(lines) == Counter(f"{english}\t{chinese}" for english, chinese in pairs)
    assert own.mixed(reversed(pairs)) == own.mixed(pairs)
    held_out = set(lines[-len(lines) // 20 :])
    assert all(held_out & set(file.read_text(encoding="utf-8").splitlines()) for file in FILES)
