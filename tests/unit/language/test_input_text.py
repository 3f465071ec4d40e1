"""Input text: spelling is corrected, and what the model does not know is reported."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from tiny_language import translator_folder

import regard
from benchmarks.translator import HUNDRED, read_sentences
from regard.language import LanguageModel
from regard.language.input_text import (
    WORDS_FILE,
    InputText,
    InputWarning,
    Note,
    _find_unknown,
    input_notes,
    is_known,
    lost_numbers,
    note_message,
    read_input,
    read_words,
    words_of,
)
from regard.messages import use_language
from regard.text.normalise import tidy
from regard.text.segmentation import SCRIPTS, main_script


def notes(model: LanguageModel, text: str) -> dict[str, tuple[str, ...]]:
    return {note.kind: note.parts for note in input_notes(model, read_input(model, text), None)}


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
def test_casual_text_is_read_with_corrected_spelling(bundled: LanguageModel, typed: str, written: str) -> None:
    assert read_input(bundled, typed).text == written
    assert notes(bundled, typed) == {"read-as": (written,)}
    assert read_input(bundled, written) == InputText(written, written)
    assert notes(bundled, written) == {}
    assert bundled.translate(typed) == bundled.translate(written)


def test_see_returns_the_text_as_read(bundled: LanguageModel) -> None:
    seen = bundled.see("i dont know")
    assert seen.text == "I don't know"
    assert present(seen.trace.select(kind="encoder")[0].query_tokens)[0] == ("I", "don't", "know", "<eos>")


def test_correct_sentences_are_read_unchanged(bundled: LanguageModel) -> None:
    sentences = read_sentences(HUNDRED)
    assert [read_input(bundled, sentence).text for sentence in sentences] == sentences
    assert [found for sentence in sentences if (found := notes(bundled, sentence))] == []


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
def test_parts_that_are_not_english_are_listed(bundled: LanguageModel, text: str, strange: tuple[str, ...]) -> None:
    assert notes(bundled, text).get("text-not-english", ()) == strange


@pytest.mark.parametrize("text", ["a" * 10**5, "1" * 10**5, "a@ " * 10**4, "我a" * 10**4])
def test_long_texts_take_linear_time(translator: LanguageModel, text: str) -> None:
    assert sum(map(len, _find_unknown(translator, InputText(text, text)))) <= 2
    assert len(lost_numbers(text, text)) == 0
    assert len(set(lost_numbers(text, ""))) <= 1
    assert main_script(text) in ("latin", None)


def test_one_warning_points_at_the_line_of_the_caller(translator: LanguageModel) -> None:
    for call in (translator.translate, translator.see):
        with pytest.warns(
            InputWarning, match="'tiny' reads English only and does not know: 中国; its output"
        ) as caught:
            call("I love 中国.")
        assert [Path(each.filename).name for each in caught] == [Path(__file__).name]
    with pytest.warns(UserWarning, match="不认识：中国、北京；") as caught, use_language("zh"):
        translator.translate(["I love 中国.", "", "I love you.", "I love 北京."])
    assert len(caught) == 1


def test_a_message_lists_only_a_few(translator: LanguageModel) -> None:
    assert note_message(translator, Note("text-not-english", ("a" * 30, *"bcdef"))).endswith(
        f"know: {'a' * 20}…, b, c, d, e, …; its output for these parts is not reliable"
    )


@pytest.mark.parametrize("language", ["zh", "de"])
def test_a_model_of_another_language_reads_text_unchanged(tmp_path: Path, language: str) -> None:
    model = regard.load(translator_folder(tmp_path / "m", source_language=language))
    assert read_input(model, "then she went to the 垫").text == "then she went to the 垫"
    assert notes(model, "then she went to the 垫") == {}


def test_a_decoder_does_not_warn(poet: LanguageModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        poet.see("明月")


# --- words that are not in training text ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["!", "???", " … "])
def test_a_text_without_words_warns(bundled: LanguageModel, text: str) -> None:
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
def test_words_not_in_training_text_are_listed(bundled: LanguageModel, text: str, unseen: tuple[str, ...]) -> None:
    found = notes(bundled, text)
    assert (found.get("text-not-english", ()), found.get("text-unseen", ())) == ((), unseen)


def test_the_bundled_words_are_those_of_the_training_text(bundled: LanguageModel) -> None:
    """All words of the hundred reference sentences are known; some words of Tatoeba are checked."""
    assert 11_000 < len(bundled.words) < 12_000
    assert {"love", "tom", "umbrella", "don't", "o'clock"} <= bundled.words
    assert not {"quokka", "blockchain", "kubernetes", "xyzzy"} & bundled.words
    assert all(word == word.lower() and words_of(word) == {word} for word in bundled.words)
    assert all(is_known(word, bundled.words) for line in read_sentences(HUNDRED) for word in words_of(line))


def test_a_word_list_is_optional_and_validated(tmp_path: Path) -> None:
    folder = translator_folder(tmp_path / "tiny")
    assert regard.load(folder).words == frozenset()
    (folder / WORDS_FILE).write_text("I\nlove\nyou\n", encoding="utf-8")
    model = regard.load(folder)
    assert notes(model, "I love the mat, you.")["text-unseen"] == ("the", "mat")
    (folder / WORDS_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(regard.RegardError, match=r"words\.txt"):
        regard.load(folder)
    (folder / WORDS_FILE).unlink()
    (folder / WORDS_FILE).mkdir()
    with pytest.raises(regard.RegardError, match=r"words\.txt"):
        regard.load(folder)


def test_a_word_list_has_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / WORDS_FILE).write_text("a\nB", encoding="utf-8")
    assert read_words(tmp_path / WORDS_FILE) == {"a", "b"}
    monkeypatch.setattr("regard.language.input_text.LARGEST_FILE", 2)
    with pytest.raises(regard.RegardError, match="the limit is 2 B"):
        read_words(tmp_path / WORDS_FILE)


# --- missing numbers --------------------------------------------------------------------------------------


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
def test_lost_numbers(text: str, output: str, lost: list[str]) -> None:
    assert lost_numbers(text, output) == lost


@given(st.integers(0, 10**9 - 1))
def test_a_number_in_chinese_characters_is_the_same_number(value: int) -> None:
    assert lost_numbers(str(value), chinese(value)) == []
    assert lost_numbers(str(value + 1), chinese(value)) == [str(value + 1)]


def chinese(value: int) -> str:
    """A number in Chinese characters."""
    if value < 10:
        return "零一二三四五六七八九"[value]
    for unit, name in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= unit:
            rest = value % unit
            zero = "零" if 0 < rest < unit // 10 else ""
            return chinese(value // unit) + name + zero + (chinese(rest) if rest else "")
    raise AssertionError


def test_words_and_numbers_warn(bundled: LanguageModel) -> None:
    with pytest.warns(UserWarning, match="the text|training") as caught:
        bundled.translate(["The quokka sleeps.", "987654"])
    found = sorted(str(warning.message) for warning in caught)
    assert len(found) == 2
    assert "never read these words in training: quokka" in found[0]
    assert "numbers of the text are missing in the translation: 987654" in found[1]
    assert {warning.filename for warning in caught} == {__file__}
    assert notes(bundled, "12345") == {}


def test_numbers_are_compared_with_the_translation_of_the_model_only(bundled: LanguageModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bundled.see("12345", output="你好").notes == ()


def test_notes_of_see_are_those_of_its_warnings(bundled: LanguageModel) -> None:
    with pytest.warns(InputWarning, match="quokka"):
        seen = bundled.see("the quokka sleeps.")
    assert seen.notes == (Note("read-as", ("The quokka sleeps.",)), Note("text-unseen", ("quokka",)))
    text, output, trace = seen
    assert (text, output, trace) == (seen.text, seen.output, seen.trace)


@pytest.mark.parametrize("method", ["see", "translate"])
def test_a_text_is_normalised_once(bundled: LanguageModel, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []

    def counted(text: str) -> str:
        texts.append(text)
        return tidy(text)

    monkeypatch.setattr("regard.language.input_text.tidy", counted)
    getattr(bundled, method)("I love you.")
    assert texts == ["I love you."]


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
def test_main_script(text: str, script: str | None) -> None:
    assert main_script(text) == script


def test_a_text_in_another_script_is_refused_with_its_script(bundled: LanguageModel) -> None:
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
    with pytest.raises(regard.RegardError, match="already in Chinese characters"):
        bundled.translate("東京大学")


def test_every_script_has_a_name() -> None:
    from regard.messages import say

    assert all(say(f"script-{script}", "zh") for script in {*SCRIPTS.values(), "other"} - {"latin", "han"})
