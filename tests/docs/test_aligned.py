"""benchmarks/sentences/aligned.tsv: fifty pairs that keep the rules of its header, and the benchmark that reads it."""

import re
from pathlib import Path

import pytest
from models import random_weights

from benchmarks import alignment as benchmark
from regard.checkpoints import save_model
from regard.config import TransformerConfig
from regard.evaluation.alignment import Aligned, alignment_error_rate, diagonal, read_aligned
from regard.text import learn_tokenizer, split_words

SENTENCES = Path(__file__).parents[2] / "benchmarks" / "sentences"
PAIRS = read_aligned(SENTENCES / "aligned.tsv")

GRAMMAR = set("了过的得把吗")
"""Characters that are never surely linked, unless as part of a word."""
WORDS_WITH_GRAMMAR = {"难过"}
ARTICLES = {"a", "an", "the"}
SAME_MARKS = {".": "。", "?": "？", ",": "，", "!": "！"}


each_pair = pytest.mark.parametrize("pair", PAIRS, ids=[pair.text for pair in PAIRS])


def test_there_are_fifty_and_no_two_alike() -> None:
    assert len(PAIRS) == len({pair.text for pair in PAIRS}) == len({pair.output for pair in PAIRS}) == 50
    assert (PAIRS[0].text, PAIRS[0].output) == ("I love you.", "我爱你。")
    assert PAIRS[0].sure == PAIRS[0].possible == {(0, 0), (1, 1), (2, 2), (3, 3)}


def test_none_but_the_first_is_among_the_hundred() -> None:
    hundred = {
        line.casefold().rstrip(".?!") for line in (SENTENCES / "first_hundred.txt").read_text("utf-8").splitlines()
    }
    assert [pair.text for pair in PAIRS if pair.text.casefold().rstrip(".?!") in hundred] == ["I love you."]


@each_pair
def test_sentences_are_cut_as_the_header_says(pair: Aligned) -> None:
    assert list(pair.source) == split_words(pair.text)
    assert all(re.fullmatch(r"[\u4e00-\u9fff，。？！]", character) for character in pair.target)
    assert 3 <= sum(word not in SAME_MARKS for word in pair.source) <= 14


@each_pair
def test_marks_stand_for_each_other(pair: Aligned) -> None:
    ends = len(pair.source) - 1, len(pair.target) - 1
    assert SAME_MARKS[pair.source[-1]] == pair.target[-1]
    assert ends in pair.sure
    for i, j in pair.sure:
        word, character = pair.source[i], pair.target[j]
        assert SAME_MARKS.get(word) == character or (word not in SAME_MARKS and character not in SAME_MARKS.values())


@each_pair
def test_grammar_is_possible_at_most(pair: Aligned) -> None:
    for i, j in pair.sure:
        assert pair.source[i].casefold() not in ARTICLES
        word = "".join(pair.target[at] for at in range(len(pair.target)) if (i, at) in pair.sure)
        assert pair.target[j] not in GRAMMAR or word in WORDS_WITH_GRAMMAR, word


@each_pair
def test_a_character_surely_belongs_to_one_word(pair: Aligned) -> None:
    """English words that are one Chinese word only together are possible, so that no head has to choose."""
    assert len({j for _, j in pair.sure}) == len(pair.sure)


@each_pair
def test_most_of_a_sentence_is_sure(pair: Aligned) -> None:
    assert len({j for _, j in pair.sure}) >= len(pair.target) / 2


def test_word_order_differs_enough_to_tell_heads_from_the_diagonal() -> None:
    assert alignment_error_rate((pair, diagonal(pair)) for pair in PAIRS) > 0.5
    assert alignment_error_rate((pair, set(pair.possible)) for pair in PAIRS) == 0


def test_the_benchmark_ranks_the_heads_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = learn_tokenizer([text for pair in PAIRS[:40] for text in (pair.text, pair.output)], "pieces", 420)
    config = TransformerConfig.paper_2017(vocab_size=tokenizer.vocab_size, d_model=8, n_heads=2, d_ff=8, n_layers=2)
    save_model(tmp_path, config, random_weights(config))
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "generation_config.json").write_text('{"alignment_heads": [[1, 0]]}', encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["alignment", "--model", str(tmp_path)])
    benchmark.main()
    printed = capsys.readouterr().out
    heads = re.findall(r"^\| layer (\d), head (\d) \| (0\.\d{3}) \| (0\.\d{3}) \|$", printed, flags=re.MULTILINE)
    assert sorted(head[:2] for head in heads) == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]
    best = min(heads, key=lambda head: head[2])
    assert f"by the row that has read is layer {best[0]}, head {best[1]} ({best[2]})" in printed
    assert "alignment_heads begin with [1, 0]" in printed or "begin with the same: [1, 0]" in printed
    known, _ = re.findall(r"^(\d+) of the (\d+) sentences", printed, flags=re.MULTILINE)[0]
    assert 40 <= int(known) < 50, "characters that only the last ten sentences have are not known"
