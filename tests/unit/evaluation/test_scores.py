"""BLEU compared with a reimplementation of multi-bleu.perl and with sacreBLEU's published numbers.

Verse forms: lengths of lines, and rhymes of modern Mandarin.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError, MissingPackageError
from regard.evaluation import Score, chrf, paper_bleu, sacre_bleu
from regard.evaluation.scores import FORMS, form_of, lines_of, rhymes, right_lines

# Few words, so that hypotheses and references have 4-grams in common; capitals, so that lower-casing matters.
sentences = st.lists(st.sampled_from(["a", "A", "b", "c", "."]), max_size=9).map(" ".join)
corpora = st.lists(st.tuples(sentences, st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=6)


def multi_bleu(hypotheses: list[str], references: list[list[str]]) -> float:
    """BLEU-4 of a corpus: clipped counts of n-grams, their geometric mean, and a penalty for being too short."""
    right, there = [0] * 4, [0] * 4
    length = closest = 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        words = hypothesis.lower().split()
        others = [line.lower().split() for line in several]
        length += len(words)
        closest += min((abs(len(other) - len(words)), len(other)) for other in others)[1]
        for n in range(1, 5):
            grams = _grams(words, n)
            most: Counter[tuple[str, ...]] = Counter()
            for other in others:
                most |= _grams(other, n)
            right[n - 1] += sum((grams & most).values())
            there[n - 1] += sum(grams.values())
    if not all(right):
        return 0.0
    brevity = min(1.0, math.exp(1 - closest / length))
    return 100 * brevity * math.exp(sum(math.log(r / t) for r, t in zip(right, there, strict=True)) / 4)


def _grams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[at:] for at in range(n)), strict=False))


@given(corpora)
def test_paper_bleu_matches_multi_bleu(corpus: list[tuple[str, list[str]]]) -> None:
    hypotheses, references = map(list, zip(*corpus, strict=True))
    assert paper_bleu(hypotheses, references).value == pytest.approx(multi_bleu(hypotheses, references), abs=1e-9)


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6))
def test_single_reference_without_a_list(corpus: list[tuple[str, str]]) -> None:
    hypotheses, references = map(list, zip(*corpus, strict=True))
    assert paper_bleu(hypotheses, references) == paper_bleu(hypotheses, [[line] for line in references])


def test_paper_bleu_by_hand() -> None:
    """5/6, 3/5, 2/4 and 1/3 of the n-grams match; the hypothesis is one word too long, which has no penalty."""
    score = paper_bleu(["A dog runs fast now ."], ["a dog runs fast ."])
    assert score.value == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert score.signature is not None
    assert "case:lc|eff:no|tok:none|smooth:none" in score.signature


def test_tokens_are_not_split() -> None:
    """Escapes of Moses are one token; sacreBLEU's own tokenizer would split them."""
    line = "the dog &apos;s red &amp; ball"
    assert paper_bleu([line], [line]).value == pytest.approx(100)
    assert paper_bleu(["a b c d,"], ["a b c d ,"]).value == 0


def test_sacre_bleu_matches_its_readme() -> None:
    """The example of sacreBLEU's README, which prints 48.53."""
    first = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
    second = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]
    hypotheses = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    score = sacre_bleu(hypotheses, [list(pair) for pair in zip(first, second, strict=True)])
    assert score.value == pytest.approx(48.53, abs=0.005)
    assert score.signature is not None
    assert score.signature.startswith("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert chrf(hypotheses, [list(pair) for pair in zip(first, second, strict=True)]).value == pytest.approx(
        59.73, abs=0.005
    )


def test_case_matters_by_default() -> None:
    hypotheses, references = ["THE dog bit the man."], ["the dog bit the man."]
    assert (
        sacre_bleu(hypotheses, references).value
        < sacre_bleu(hypotheses, references, lowercase=True).value
        == pytest.approx(100)
    )
    assert chrf(hypotheses, references).value < chrf(hypotheses, references, lowercase=True).value == pytest.approx(100)
    assert "case:lc" in (chrf(hypotheses, references, lowercase=True).signature or "")


def test_chinese_is_scored_by_characters() -> None:
    hypotheses, references = ["我喜欢看书，也喜欢音乐。"], ["我喜欢看书，也喜欢画。"]
    by_character = sacre_bleu(hypotheses, references, language="zh")
    assert by_character.value > 60
    assert sacre_bleu(hypotheses, references, language="en").value < 10  # a sentence without spaces is one word
    assert "tok:zh" in (by_character.signature or "")


def test_lines_may_have_different_numbers_of_references() -> None:
    hypotheses = ["我爱你。", "好的，谢谢你。"]
    more = [["我爱你！", "我爱你。"], ["好的，谢谢。"]]
    one = sacre_bleu(hypotheses, [line[:1] for line in more], language="zh")
    several = sacre_bleu(hypotheses, more, language="zh")
    assert several.value > one.value
    assert (several.signature or "").startswith("nrefs:var|")
    assert chrf(hypotheses, more).value > chrf(hypotheses, [line[:1] for line in more]).value


def test_empty_hypotheses_score_zero() -> None:
    for score in (paper_bleu(["", ""], ["a b", "c"]), sacre_bleu(["", ""], ["a b", "c"]), chrf(["", ""], ["a b", "c"])):
        assert isinstance(score, Score)
        assert score.value == 0


@pytest.mark.parametrize("count", [paper_bleu, sacre_bleu, chrf])
def test_invalid_input_raises(count: Callable[..., Score]) -> None:
    with pytest.raises(ArgumentError, match="2 hypotheses and 1 lines of references"):
        count(["a", "b"], ["a"])
    with pytest.raises(ArgumentError, match="nothing to score"):
        count([], [])
    with pytest.raises(ArgumentError, match="line 2 has no reference"):
        count(["a", "b"], [["a"], []])


def test_missing_sacrebleu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingPackageError, match=r"needs sacrebleu.*regard\[train\]"):
        paper_bleu(["a"], ["a"])


HERON = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
DAWN = "朝辞白帝彩云间，千里江陵一日还。两岸猿声啼不住，轻舟已过万重山。"


def test_lines_end_at_five_punctuation_marks() -> None:
    assert lines_of("何处？此处！山；水，云。") == ["何处", "此处", "山", "水", "云"]
    assert lines_of("白日依山尽，\n黄河入海流。\n欲穷") == ["白日依山尽", "黄河入海流", "欲穷"]
    assert lines_of("，。 ") == lines_of("") == []


def test_form_by_line_lengths() -> None:
    assert [form_of(poem) for poem in (HERON, DAWN, HERON * 2, DAWN * 2)] == ["五绝", "七绝", "五律", "七律"]
    assert [form_of(poem) for poem in (HERON * 3, HERON + DAWN, HERON[:-6], "", HERON[1:])] == [None] * 5


@pytest.mark.parametrize(
    ("poem", "form", "wanted"),
    [
        (HERON, "五绝", 1.0),
        (HERON, "七绝", 0.0),
        (HERON, "五律", 0.5),
        (HERON * 2, "五绝", 0.5),
        (HERON[1:], "五绝", 0.75),
        (DAWN, "七绝", 1.0),
        ("", "五绝", 0.0),
    ],
)
def test_missing_and_extra_lines_are_wrong(poem: str, form: str, wanted: float) -> None:
    assert right_lines(poem, FORMS[form]) == wanted


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ("山天", True),
        ("山远", True),
        ("山关", True),
        ("心门", True),
        ("门春", True),
        ("春云", True),
        ("青生", True),
        ("花家", True),
        ("月雪", True),
        ("归飞", True),
        ("流楼", True),
        ("居鱼", True),
        ("诗时", True),
        ("中穷", True),
        ("山光", False),
        ("心星", False),
        ("诗西", False),
        ("鱼湖", False),
        ("东生", False),
        ("月花", False),
        ("鼓雨", False),
        ("儿诗", False),
        ("还山", True),  # huán or hái
        ("还来", True),
        ("行光", True),  # háng or xíng
        ("行声", True),
        ("山山", False),
        ("山𪒶", False),  # its reading is unknown
    ],
)
def test_rhymes(ends: str, wanted: bool) -> None:
    assert rhymes(f"一二三四五，一二三四{ends[0]}。一二三四五，一二三四{ends[1]}。") is wanted
    assert rhymes(f"一，二{ends[1]}！三？四{ends[0]}；五。") is wanted


def test_famous_poems() -> None:
    assert rhymes(HERON)
    assert rhymes(DAWN)
    assert not rhymes("千山鸟飞绝，万径人踪灭。孤舟蓑笠翁，独钓寒江山。")
    assert not rhymes("白日依山尽，黄河入海流。欲穷千里目。")


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypinyin", None)
    with pytest.raises(MissingPackageError) as caught:
        rhymes("一，蠹。一，蠱。")  # used in no other test, so that nothing is cached
    assert "pypinyin" in caught.value.text("en")
    assert "pypinyin" in caught.value.text("zh")
