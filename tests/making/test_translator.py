"""Building the translator: normalised sentences, dictionary words, data augmentation, distillation; and its report."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import random_weights, torch_model
from narrowing import present
from tiny_language import PAIRS, translator_folder

import regard
from benchmarks.translator import (
    HUNDRED,
    JUDGED,
    Judgement,
    hundred,
    read_judged,
    read_sentences,
    read_set,
    scored,
)
from making.translator import data, dictionary, distil, exchange, kinds, tatoeba
from making.translator.data import lacking, punctuated, sentences, unmarked, write
from making.translator.dictionary import Word
from making.translator.ensemble import Ensemble
from making.translator.order import draw, share
from making.translator.tatoeba import Pair, written
from regard.config import TransformerConfig
from regard.generation import beam_search

# --- sampling ---------------------------------------------------------------------------------------------


def test_share_depends_only_on_the_text_and_is_uniform() -> None:
    assert share("I love you.") == 0.09381925631091192
    shares = [share(str(number)) for number in range(4000)]
    counts, _ = np.histogram(shares, bins=10, range=(0, 1))
    assert counts.sum() == 4000
    assert counts.min() > 330


@given(st.integers(0, 30), st.integers(0, 12), st.text(max_size=5))
def test_drawn_items_are_different_and_complete(size: int, count: int, key: str) -> None:
    items = list(range(size))
    found = draw(items, count, key)
    assert len(found) == len(set(found)) == min(size, count)
    assert set(found) <= set(items)
    assert draw(items, count, key) == found


# --- sentences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("你好吗? 我很好, 谢谢.", "你好吗？我很好，谢谢。"),
        ("这里是 Tom 的家。", "这里是Tom的家。"),
        ("他说「好」。", "他说“好”。"),
        ('他说"好"！', "他说“好”！"),
        ("我有1,000.5元.", "我有1,000.5元。"),
        ("妳在做甚么?", "你在做什么？"),
        ("好\u200b的!", "好的！"),
        ("Tom and Mary", "Tom and Mary"),
    ],
)
def test_chinese_punctuation(text: str, wanted: str) -> None:
    assert written(text) == wanted
    assert written(wanted) == wanted


def test_pairs_are_simplified_and_unique(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("It’s  red.\t它是紅的。\nIt's red.\t它是红的.\nHi!\t你好!\nIt's red.\t红的。\n", encoding="utf-8")
    assert tatoeba.read(path) == [
        Pair("It's red.", "它是红的。"),
        Pair("Hi!", "你好！"),
        Pair("It's red.", "红的。"),
    ]


def test_some_pairs_are_repeated_without_punctuation() -> None:
    pairs = [Pair(f"The cat has {n} mice.", f"猫有{n}只老鼠。") for n in range(400)]
    pairs += [Pair(f"I have {n}.", f"我有{n}。") for n in range(400)] + [Pair("Why?", "为什么？"), Pair("Oh.", "哦")]
    found = list(unmarked(pairs))
    assert 100 < len(found) < 220
    assert {english[:3] for english, _ in found} == {"The", "the", "I h"}  # "I" is never lower case
    assert all(Pair(english[0].upper() + english[1:] + ".", chinese + "。") in pairs for english, chinese in found)
    assert 0.3 < sum(english[0] == "t" for english, _ in found) / sum(english[0] in "tT" for english, _ in found) < 0.7


def test_words_missing_in_sentences() -> None:
    pairs = [Pair("The cat sat.", "猫坐着。")] * 8 + [Pair("A dragon!", "龙！")]
    assert lacking(pairs, ["The cat and the dragon", "a Dragon, a kite"]) == {"dragon"}


def test_stories_are_split_into_short_sentences() -> None:
    story = (
        'Once there was a cat. It said, "Hi! I am a cat." '
        + "It ran and ran and ran and ran and ran and ran and ran on."
    )
    found = list(sentences([story]))
    assert found[0] == "Once there was a cat."
    assert all(sentence.count('"') % 2 == 0 and len(sentence.split()) <= 14 for sentence in found)


def test_files_have_unique_lines_in_a_fixed_order(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(20)]
    write(tmp_path / "one", lines)
    write(tmp_path / "two", [*reversed(lines), *lines])
    one = (tmp_path / "one").read_text(encoding="utf-8")
    assert one == (tmp_path / "two").read_text(encoding="utf-8")
    assert sorted(one.splitlines()) == sorted(lines) != one.splitlines()


# --- CC-CEDICT --------------------------------------------------------------------------------------------

ENTRIES = [
    ("蘋果", "苹果", "ping2 guo3", ["apple", "CL:個|个[ge4],顆|颗[ke1]"]),
    ("平果", "平果", "ping2 guo3", ["apple"]),
    ("桌子", "桌子", "zhuo1 zi5", ["table", " desk", "CL:張|张[zhang1],套[tao4]"]),
    ("表", "表", "biao3", ["exterior", "table"]),  # not its first meaning
    ("書櫃", "书柜", "shu1 gui4", ["bookcase (with doors)", "desk (old)"]),
    ("吃", "吃", "chi1", ["to eat", " to have one's meal"]),
    ("鼯鼠", "鼯鼠", "wu2 shu3", ["squirrel"]),  # a rare character
    ("王", "王", "Wang2", ["king"]),  # pinyin of a name
    ("人工智能", "人工智能", "ren2 gong1 zhi4 neng2", ["intelligence"]),  # too long
    ("傑克", "杰克", "Jie2 ke4", ["Jack (name)"]),
    ("賈克", "贾克", "Jia3 ke4", ["Jack (name)"]),
    ("空", "空", "kong1", []),
    ("墊子", "垫子", "dian4 zi5", ["mat", " cushion"]),  # a noun without a measure word
    ("子墊", "子垫", "zi3 dian4", ["pad"]),
    ("晚安", "晚安", "wan3 an1", ["Good night!"]),
    ("安息", "安息", "an1 xi1", ["to rest", "Good night"]),  # not its first meaning
    ("好夜", "好夜", "hao3 ye4", ["Good night (said to children)"]),
    ("不客氣", "不客气", "bu4 ke4 qi5", ["you're welcome", "don't mention it"]),
    ("好人", "好人", "hao3 ren2", ["good person"]),
    ("好萊", "好莱", "Hao3 lai2", ["Good Wood"]),  # pinyin of a name
]


@pytest.fixture
def small_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("traditional", "simplified", "pinyin", "definitions")
    entries = [dict(zip(names, entry, strict=True)) for entry in ENTRIES if entry[3]]
    monkeypatch.setattr(dictionary, "_entries", lambda: entries)


@pytest.mark.usefixtures("small_dictionary")
def test_words_by_first_meaning_and_frequency() -> None:
    found = {word.english: word for word in dictionary.words(["我吃平果和平果。", "苹果"])}
    assert found == {
        "apple": Word("apple", "平果"),
        "bookcase": Word("bookcase", "书柜"),
        "cushion": Word("cushion", "垫子", frozenset("个")),
        "desk": Word("desk", "桌子", frozenset("张套")),
        "exterior": Word("exterior", "表"),
        "mat": Word("mat", "垫子", frozenset("个")),
        "pad": Word("pad", "子垫"),
        "table": Word("table", "桌子", frozenset("张套")),
        "to eat": Word("to eat", "吃"),
        "to rest": Word("to rest", "安息"),
    }
    (apple,) = (word for word in dictionary.words(["苹果"]) if word.english == "apple")
    assert apple == Word("apple", "苹果", frozenset("个颗"))


@pytest.mark.usefixtures("small_dictionary")
def test_names_of_people() -> None:
    assert dictionary.names() == [Word("Jack", "杰克")]


@pytest.mark.usefixtures("small_dictionary")
@pytest.mark.parametrize(("used", "wanted"), [("晚安晚安好夜", "晚安"), ("好夜", "好夜")])
def test_greetings_by_frequency(used: str, wanted: str) -> None:
    assert dictionary.sayings([used]) == [Word("Good night", wanted), Word("You're welcome", "不客气")]


def test_greetings_with_each_mark_and_without() -> None:
    found = list(punctuated([Word("Good night", "晚安"), Word("See you", "再见")]))
    assert found[:3] == [Pair("Good night.", "晚安。"), Pair("Good night!", "晚安！"), Pair("Good night", "晚安")]
    assert [pair.english for pair in found[3:]] == ["See you.", "See you!", "See you"]


# --- exchanged words --------------------------------------------------------------------------------------

FURNITURE = [
    Word("table", "桌子", frozenset("张")),
    Word("desk", "书桌", frozenset("张")),
    Word("cat", "猫儿", frozenset("只")),
]


@pytest.mark.parametrize(
    ("english", "chinese", "wanted"),
    [
        ("I saw a table.", "我看见了桌子。", [Pair("I saw a desk.", "我看见了书桌。")]),
        ("Tables are not a table.", "桌子。", [Pair("Tables are not a desk.", "书桌。")]),
        ("I saw two tables.", "我看见了两张桌子。", []),
        ("A table on a table.", "桌子上的桌子。", []),
        ("I saw a table.", "我看见了一张台。", []),
        ("A table-top.", "桌子面。", []),
        ("I saw a cat.", "我看见了猫儿。", []),  # no noun with the same measure word
    ],
)
def test_noun_is_replaced_by_one_with_the_same_measure_words(english: str, chinese: str, wanted: list[Pair]) -> None:
    assert list(exchange.nouns([Pair(english, chinese)], FURNITURE, {"desk"})) == wanted


def test_each_noun_is_used_a_limited_number_of_times() -> None:
    pairs = [Pair(f"I saw table {n}: a table", f"{n}") for n in range(3)]
    pairs += [Pair(f"{n} on the table.", f"{n}在桌子上。") for n in range(100)]
    found = list(exchange.nouns(pairs, FURNITURE, {"desk"}))
    assert len(found) == exchange.TIMES
    assert all(pair.english.endswith("desk.") and "书桌" in pair.chinese for pair in found)


def test_articles_match_the_noun() -> None:
    old, new = Word("table", "桌子"), Word("orange", "橘子")
    assert exchange.exchanged(Pair("A table is a table.", "桌子"), old, new).english == "An orange is an orange."
    assert exchange.exchanged(Pair("An orange.", "橘子"), new, old).english == "A table."
    assert exchange.exchanged(Pair("The table.", "桌子"), old, new).english == "The orange."


def test_other_names_replace_tom_and_mary() -> None:
    pairs = [Pair(f"Tom's number is {n}.", f"汤姆的号码是{n}。") for n in range(300)]
    pairs += [Pair("Tomorrow Tom comes.", "汤姆明天来。"), Pair("Tom knows.", "他知道。")]
    found = list(exchange.names(pairs, [Word("Jack", "杰克")]))
    assert 80 < len(found) < 160
    assert {"Jack", "Xiaoming"} <= {pair.english.partition("'")[0] for pair in found}
    assert {bool(re.match("小|杰克", pair.chinese)) for pair in found} == {True}
    for english, chinese in found:
        assert english.startswith("Xiao") == chinese.startswith("小")


def test_numbers_keep_their_length_and_agree_on_both_sides() -> None:
    pairs = [Pair("Room 839.", "839号房间。"), Pair("3 or 4", "3或4"), Pair("Ten", "10"), Pair("It's 5.", "5点了。")]
    found = list(exchange.numbers(pairs))
    digits = [(re.findall(r"\d+", english), re.findall(r"\d+", chinese)) for english, chinese in found]
    assert all(ours == theirs for ours, theirs in digits)
    assert [len(ours[0]) for ours, _ in digits] == [3] * exchange.NUMBERED + [1] * exchange.NUMBERED
    assert all(ours[0][0] != "0" for ours, _ in digits)


@pytest.mark.parametrize(
    ("english", "chinese", "wanted"),
    [
        ("She is thirty-five.", "她三十五岁。", r"She is [a-z-]+\.\t她[二三四五六七八九]?十[一二三四五六七八九]?岁。"),
        ("Come at six.", "六点来。", r"Come at [a-z]+\.\t[两三四五七八九十一二]+点来。"),
        ("See you on Monday.", "星期一见。", r"See you on \w+day\.\t星期[二三四五六天]见。"),
        ("He died in May.", "他五月去世了。", r"He died in [A-Z]\w+\.\t他[一二三四六七八九十]+月去世了。"),
        ("I live in London.", "我住在伦敦。", r"I live in [A-Z]\w+\.\t我住在(?!伦敦)[\u4e00-\u9fff]+。"),
    ],
)
def test_word_of_a_kind_is_replaced_by_others(english: str, chinese: str, wanted: str) -> None:
    found = list(kinds.others([Pair(english, chinese)]))
    assert found
    assert all(re.fullmatch(wanted, "\t".join(pair)) for pair in found)


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("Six of one, six of the other.", "六个和六个。"),
        ("He is six.", "他十六岁。"),
        ("The sixth of six.", "第六个。"),
        ("Five or six.", "五六个。"),
        ("He may come.", "他五月来。"),
    ],
)
def test_ambiguous_words_are_not_replaced(english: str, chinese: str) -> None:
    assert not list(kinds.others([Pair(english, chinese)]))


def test_command_writes_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = [f"{english}\t{chinese}" for english, chinese in PAIRS]
    train += ["I saw an apple.\t我看見了一個蘋果。", "Tom is 12.\t汤姆12岁。", "Hi!\t你好!", "Who?\t谁?"]
    (tmp_path / "train.tsv").write_text("\n".join(train), encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("Bye.\t再見.\nBye.\t再见。\n", encoding="utf-8")
    (tmp_path / "stories.json").write_text(json.dumps(["A banana. He had a banana."]), encoding="utf-8")
    options = {"--tatoeba": tmp_path, "--out": tmp_path / "out", "--stories": tmp_path / "stories.json"}
    monkeypatch.setattr("sys.argv", ["data", *(str(word) for option in options.items() for word in option)])
    data.main()
    assert "held out" in capsys.readouterr().out
    files = {path.name: path.read_text(encoding="utf-8").splitlines() for path in (tmp_path / "out").iterdir()}
    assert files["dev.tsv"] == ["Bye.\t再见。"]
    both = files["train.tsv"] + files["valid.tsv"]
    assert "I saw an apple.\t我看见了一个苹果。" in both
    assert any(re.fullmatch(r"Tom is (?!12)\d\d\.\t汤姆\d\d岁。", line) for line in both)
    assert "banana\t香蕉" in files["train.tsv"]
    assert {"Good night.\t晚安。", "Good night!\t晚安！", "Good night\t晚安"} <= {*files["train.tsv"]}
    assert "A banana." in files["english.txt"]
    assert not {line.partition("\t")[0] for line in files["valid.tsv"]} & {
        line.partition("\t")[0] for line in files["train.tsv"]
    }


# --- teachers ---------------------------------------------------------------------------------------------


def test_ensemble_is_the_mean_of_its_models() -> None:
    config = TransformerConfig.paper_2017(vocab_size=11, d_model=8, n_heads=2, d_ff=8, n_layers=1)
    models = [torch_model(config, random_weights(config, seed)) for seed in (1, 2)]
    source = np.array([[3, 4, 2]])
    with torch.no_grad():
        alone = torch.stack([model.begin(source).step([[1]]).softmax(-1) for model in models])
        torch.testing.assert_close(Ensemble(models).begin(source).step([[1]]).exp(), alone.mean(0))
        how: dict[str, Any] = {"sources": [[3, 4, 2], [5, 2]], "beams": 3, "max_new": 6, "eos": 2}
        for model in models:
            one, same = (beam_search(each, [[1], [1]], **how) for each in (model, Ensemble([model, model])))
            assert [[beam.ids for beam in beams] for beams in one] == [[beam.ids for beam in beams] for beams in same]


def test_ensemble_keeps_confident_translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = translator_folder(tmp_path / "teacher")  # 64 positions: also the limit of the last line's translation
    lines = ["The cat sat on the mat.", "I love you.", "he went home " * 12]
    monkeypatch.setattr(distil, "SURE", -100.0)
    found = list(distil.distilled([folder, folder], lines, "cpu"))
    assert [pair.english for pair in found] == [lines[1], lines[0], lines[2]]
    alone = regard.load(folder).translate([lines[1], lines[0]], beams=distil.BEAMS, length_penalty=1.0)
    assert [pair.chinese for pair in found[:2]] == alone
    monkeypatch.setattr(distil, "SURE", 0.0)
    assert list(distil.distilled([folder], lines, "cpu")) == []


@pytest.mark.parametrize(
    ("english", "chinese", "kept"),
    [
        ("I was born in 1990.", "我生于1990年。", True),
        ("I was born in 1990.", "我生于199年。", False),
        ("I was born in 1990.", "我生于19990年。", False),
        ("I have 2 cats and 12 dogs.", "我有两只猫和12只狗。", True),  # a number in words is allowed
        ("I have two cats.", "我有2只猫。", False),
        ("I have a cat.", "我有一只猫。", True),
    ],
)
def test_digits_must_occur_in_the_english(english: str, chinese: str, kept: bool) -> None:
    assert distil.keeps_numbers(Pair(english, chinese)) is kept


def test_translations_with_changed_numbers_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = translator_folder(tmp_path / "teacher")
    monkeypatch.setattr(distil, "SURE", -100.0)
    monkeypatch.setattr(distil, "keeps_numbers", lambda pair: pair.english != "I love you.")
    found = list(distil.distilled([folder], ["I love you.", "The cat sat on the mat."], "cpu"))
    assert [pair.english for pair in found] == ["The cat sat on the mat."]


# --- report -----------------------------------------------------------------------------------------------


def test_references_are_only_simplified(tmp_path: Path) -> None:
    path = tmp_path / "dev.tsv"
    path.write_text("Hair.\t頭髮.\nWho?\t谁?\nHair.\t她的头发。\n", encoding="utf-8")
    found = read_set(path)
    assert (found.sources, found.plain) == (["Hair.", "Who?"], [["头发.", "她的头发。"], ["谁?"]])
    perfect = found.scores(["她的头发。", "谁?"])
    assert [(score.name, round(score.value)) for score in perfect] == [("sacrebleu", 100), ("chrf", 100)]
    assert present(perfect[0].signature).startswith("nrefs:var|case:mixed|eff:no|tok:zh|smooth:exp")
    other = found.scores(["她的头发。", "谁？"])  # a punctuation mark of another width differs
    assert all(score.value < 99 for score in other)


def test_report_has_scores_and_judgements(tmp_path: Path) -> None:
    model = regard.load(translator_folder(tmp_path / "model"))
    path = tmp_path / "dev.tsv"
    path.write_text("".join(f"{english}\t{chinese}\n" for english, chinese in PAIRS), encoding="utf-8")
    text = "\n".join(scored(model, path))
    assert f"all {len(PAIRS)} sentences | sacrebleu" in text
    assert "- chrf: `nrefs:1|" in text
    judged = {("I.", "我。"): Judgement(True, ""), ("You.", "我。"): Judgement(False, "says I")}
    lines = hundred(["I.", "You.", "He."], ["我。", "我。", "她。"], judged)
    assert "Of the 3 sentences of first_hundred.txt, 1 are acceptable, 1 are not, and 1 are not judged yet" in lines[0]
    assert lines[4:7] == ["| I. | 我。 | yes |  |", "| You. | 我。 | no | says I |", "| He. | 她。 | – |  |"]
    assert lines[-2] == "He.\t她。\t\t"


def test_judgements_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "judged.tsv"
    path.write_text("# why\n\nI.\t我。\tyes\t\nYou.\t我。\tno\tsays I\nI.\t我。\tyes\tagain\n", encoding="utf-8")
    assert read_judged(path) == {("I.", "我。"): Judgement(True, ""), ("You.", "我。"): Judgement(False, "says I")}
    for line in ("I.\t我。\tno\tno", "I.\t我。\t\t", "I.\t我。\tyes", "\t我。\tyes\t", "I. 我。 yes"):
        path.write_text(f"I.\t我。\tyes\t\n{line}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="line 2"):
            read_judged(path)


def test_stored_judgements_are_of_the_hundred() -> None:
    sentences = read_sentences(HUNDRED)
    assert len(sentences) == len(set(sentences)) == 100
    assert {sentence for sentence, _ in read_judged(JUDGED)} <= set(sentences)


def test_sixty_new_sentences_are_judged() -> None:
    judged = read_judged(JUDGED.with_name("fresh_third_sixty_2026-11-19.tsv"))
    sentences = {sentence for sentence, _ in judged}
    assert len(judged) == len(sentences) == 60
    assert all(judgement.acceptable or judgement.why for judgement in judged.values())
    for other in ("first_hundred.txt", "fresh_sixty.txt", "fresh_second_sixty.txt"):
        assert sentences.isdisjoint(read_sentences(JUDGED.with_name(other)))
