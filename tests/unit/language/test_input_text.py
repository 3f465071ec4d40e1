"""How a text is read: in the spelling that the model learnt, and with a word about what it does not know."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_language import translator_folder

import regard
from benchmarks.translator import HUNDRED, read_sentences
from regard.language import LanguageModel
from regard.language.input_text import (
    WORDS,
    _unknown,
    is_known,
    lost_numbers,
    read,
    read_words,
    told,
    unknown,
    words_of,
)
from regard.messages import speaking
from regard.text.segmentation import SCRIPTS, main_script


@pytest.fixture(scope="module")
def bundled() -> LanguageModel:
    return regard.load("translator")


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("i love you", "I love you"),
        ("I LOVE YOU", "I love you"),
        ("I AM VERY ANGRY.", "I am very angry."),
        ("I dont know", "I don't know"),
        ("i’m tired", "I'm tired"),
        ("hi", "Hi"),
        ("hi there", "Hi there"),
        ("tom speaks english", "Tom speaks English"),
        ("I have 1,234 books.", "I have 1234 books."),
    ],
)
def test_casual_text_is_read_as_if_it_were_written_well(bundled: LanguageModel, typed: str, written: str) -> None:
    assert read(bundled, typed) == (written, True, (), ())
    assert read(bundled, written) == (written, False, (), ())
    assert bundled.translate(typed) == bundled.translate(written)


def test_what_is_seen_is_what_was_read(bundled: LanguageModel) -> None:
    seen = bundled.see("i dont know")
    assert seen.text == "I don't know"
    assert seen.trace.select(kind="encoder")[0].queries[0] == ("I", "don't", "know", "<eos>")


def test_sentences_that_are_written_well_are_read_as_they_stand(bundled: LanguageModel) -> None:
    sentences = read_sentences(HUNDRED)
    assert [read(bundled, sentence) for sentence in sentences] == [(sentence, False, (), ()) for sentence in sentences]


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("I love 中国.", ("中国",)),
        ("I love Москва and 北京 😀", ("Москва", "北京")),
        ("Bonjour le monde", ("Bonjour", "le", "monde")),
        ("Ich liebe dich", ("Ich", "liebe", "dich")),
        ("3+4", ("3+4",)),
        ("http://example.com asdfgh qwerty", ("http://example.com", "asdfgh", "qwerty")),  # as typed
        ("See https://example.com/a?b=1 or ask me@example.org.", ("https://example.com/a?b=1", "me@example.org.")),
        ("I met Xiaoming and Kyrgyz riders.", ()),  # most of it is known
        ("$3.50", ()),
        ("12345", ()),
        ("10:30", ()),
    ],
)
def test_what_is_no_english_is_named(bundled: LanguageModel, text: str, strange: tuple[str, ...]) -> None:
    assert read(bundled, text).strange == strange


@pytest.mark.parametrize("text", ["a" * 10**5, "1" * 10**5, "a@ " * 10**4, "我a" * 10**4])
def test_long_texts_take_no_longer_than_they_should(translator: LanguageModel, text: str) -> None:
    assert sum(map(len, _unknown(translator, text))) <= 2
    assert len(lost_numbers(text, text)) == 0
    assert len(set(lost_numbers(text, ""))) <= 1
    assert main_script(text) in ("latin", None)


def test_python_is_warned_once_at_its_own_line(translator: LanguageModel) -> None:
    for call in (translator.translate, translator.see):
        with pytest.warns(UserWarning, match="'tiny' reads English only and does not know: 中国; do not") as caught:
            call("I love 中国.")
        assert [Path(each.filename).name for each in caught] == [Path(__file__).name]
    with pytest.warns(UserWarning, match="不认识：中国、北京；") as caught, speaking("zh"):
        translator.translate(["I love 中国.", "", "I love you.", "I love 北京."])
    assert len(caught) == 1


def test_only_a_few_are_named(translator: LanguageModel) -> None:
    assert told(translator, ["a" * 30, *"bcdef"]).endswith(
        f"know: {'a' * 20}…, b, c, d, e, …; do not trust what it makes of that"
    )


@pytest.mark.parametrize("language", ["zh", "de"])
def test_who_reads_no_english_reads_what_is_written(tmp_path: Path, language: str) -> None:
    model = regard.load(translator_folder(tmp_path / "m", source_language=language))
    assert read(model, "then she went to the 垫") == ("then she went to the 垫", False, (), ())


def test_a_decoder_is_not_asked(poet: LanguageModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        poet.see("明月")


# --- words that the model has never read ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["!", "???", " … "])
def test_a_text_without_a_word_is_told(bundled: LanguageModel, text: str) -> None:
    with pytest.warns(UserWarning, match="there is no word in"):
        bundled.translate(text)


@pytest.mark.parametrize(
    ("text", "unseen"),
    [
        ("The quokka sleeps.", ("quokka",)),
        ("I love blockchain", ("blockchain",)),
        ("xyzzy", ("xyzzy",)),
        ("Tom's dog saw a Zorblax and a Zorblax.", ("Zorblax",)),
        ("I DON'T KNOW KUBERNETES", ("KUBERNETES",)),  # as typed
        ("I met Tom in Boston.", ()),
        ("Is it 5 o'clock?", ()),
        ("12345", ()),
    ],
)
def test_words_that_the_model_never_read_are_named(bundled: LanguageModel, text: str, unseen: tuple[str, ...]) -> None:
    reading = read(bundled, text)
    assert (reading.strange, reading.unseen) == ((), unseen)


def test_the_words_are_those_of_the_text_that_it_learnt_from(bundled: LanguageModel) -> None:
    """The hundred sentences were translated well; of the thousands of Tatoeba's words a few stand here."""
    assert 9000 < len(bundled.words) < 10_000
    assert {"love", "tom", "umbrella", "don't", "o'clock"} <= bundled.words
    assert not {"quokka", "blockchain", "kubernetes", "xyzzy"} & bundled.words
    assert all(word == word.lower() and words_of(word) == {word} for word in bundled.words)
    assert all(is_known(word, bundled.words) for line in read_sentences(HUNDRED) for word in words_of(line))


def test_a_folder_lists_its_words_or_does_not(tmp_path: Path) -> None:
    folder = translator_folder(tmp_path / "tiny")
    assert regard.load(folder).words == frozenset()
    (folder / WORDS).write_text("I\nlove\nyou\n", encoding="utf-8")
    model = regard.load(folder)
    assert read(model, "I love the mat, you.").unseen == ("the", "mat")
    (folder / WORDS).write_bytes(b"\xff\xfe")
    with pytest.raises(regard.RegardError, match=r"words\.txt"):
        regard.load(folder)
    (folder / WORDS).unlink()
    (folder / WORDS).mkdir()
    with pytest.raises(regard.RegardError, match=r"words\.txt"):
        regard.load(folder)


def test_a_list_of_words_is_a_file_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WORDS).write_text("a\nB", encoding="utf-8")
    assert read_words(tmp_path / WORDS) == {"a", "b"}
    monkeypatch.setattr("regard.language.input_text.LARGEST_FILE", 2)
    with pytest.raises(regard.RegardError, match="at most 2 B are read"):
        read_words(tmp_path / WORDS)


# --- numbers that are lost --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "output", "lost"),
    [
        ("12345", "125", ["12345"]),
        ("I have 7 apples", "我有7颗苹果", []),
        ("3 cats and 3 dogs", "三只猫和3只狗", []),
        ("3 cats and 3 dogs", "三只猫和狗", ["3"]),
        ("In 2024", "二〇二四年", []),
        ("100,000 people", "10万人", []),
        ("100000 people", "十万人", []),
        ("105", "一百零五", []),
        ("200", "两百", []),
        ("12000", "一万两千", []),
        ("1,000,000", "100万", []),
        ("$3.50", "3.5美元", []),
        ("3.14", "3点14分", []),
        ("3.14159", "149", ["3.14159"]),
        ("Call 911 at 10:45", "10点45分打电话", ["911"]),
        ("007", "7", []),
        ("５ books", "五本书", []),
        ("11", "十二", ["11"]),
        ("no number", "1", []),
        ("9" * 5000, "9", ["9" * 5000]),
        ("9" * 5000, "9" * 5000, []),
    ],
)
def test_numbers_that_a_translation_lacks(text: str, output: str, lost: list[str]) -> None:
    assert lost_numbers(text, output) == lost


@given(st.integers(0, 10**9 - 1))
def test_a_number_in_chinese_characters_is_the_same_number(value: int) -> None:
    assert lost_numbers(str(value), chinese(value)) == []
    assert lost_numbers(str(value + 1), chinese(value)) == [str(value + 1)]


def chinese(value: int) -> str:
    """A number as Chinese writes it."""
    if value < 10:
        return "零一二三四五六七八九"[value]
    for unit, sign in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= unit:
            rest = value % unit
            zero = "零" if 0 < rest < unit // 10 else ""
            return chinese(value // unit) + sign + zero + (chinese(rest) if rest else "")
    raise AssertionError


def test_python_is_warned_of_words_and_numbers(bundled: LanguageModel) -> None:
    with pytest.warns(UserWarning, match="the text|trained") as caught:
        bundled.translate(["The quokka sleeps.", "12345"])
    found = sorted(str(warning.message) for warning in caught)
    assert len(found) == 2
    assert "never read these words while it was trained: quokka" in found[0]
    assert "lacks these numbers of the text: 12345" in found[1]
    assert {warning.filename for warning in caught} == {__file__}
    assert unknown(bundled, "12345", None) == {}


# --- scripts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("こんにちは", "japanese"),
        ("東京へ行きたい", "japanese"),
        ("ﾊﾛｰ", "japanese"),
        ("今日はいい天気ですね。", "japanese"),
        ("我们都喜欢吃の这个字有意思", "han"),
        ("안녕하세요", "korean"),
        ("Привет, мир", "cyrillic"),
        ("Γειά σου", "greek"),
        ("مرحبا", "arabic"),
        ("שלום", "hebrew"),
        ("नमस्ते", "devanagari"),
        ("สวัสดี", "thai"),
        ("ᎣᏏᏲ", "other"),
        ("我爱你。", "han"),
        ("〇", "han"),
        ("I love 中国", "latin"),
        ("ＯＫ", "latin"),
        ("Ça va", "latin"),
        ("3 + 4 = 7", None),
        ("😀", None),
    ],
)
def test_the_script_of_a_text(text: str, script: str | None) -> None:
    assert main_script(text) == script


def test_a_text_in_another_script_is_told_which(bundled: LanguageModel) -> None:
    for text, english, chinese_name in (
        ("こんにちは、世界", "is in Japanese", "是日文"),
        ("안녕하세요", "is in Korean", "是韩文"),
        ("Привет", "is in Cyrillic letters", "是西里尔字母"),
        ("ᎣᏏᏲ", "letters that are not Latin", "非拉丁字母"),
    ):
        for call in (bundled.translate, bundled.see):
            with pytest.raises(regard.RegardError) as caught:
                call(text)
            assert english in caught.value.text("en")
            assert "reads English" in caught.value.text("en")
            assert chinese_name in caught.value.text("zh")
    with pytest.raises(regard.RegardError, match="in Chinese characters already"):
        bundled.translate("東京大学")


def test_every_script_has_a_name() -> None:
    from regard.messages import say

    assert all(say(f"script-{script}", "zh") for script in {*SCRIPTS.values(), "other"} - {"latin", "han"})
