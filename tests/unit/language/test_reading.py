"""How a text is read: in the spelling that the model learnt, and with a word about what it does not know."""

import warnings
from pathlib import Path

import pytest
from tiny_language import translator_folder

import regard
from benchmarks.translator import HUNDRED, read_sentences
from regard.language import LanguageModel
from regard.language.reading import _strange, read, told
from regard.words import speaking


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
    assert read(bundled, typed) == (written, True, ())
    assert read(bundled, written) == (written, False, ())
    assert bundled.translate(typed) == bundled.translate(written)


def test_what_is_seen_is_what_was_read(bundled: LanguageModel) -> None:
    seen = bundled.see("i dont know")
    assert seen.text == "I don't know"
    assert seen.trace.select(kind="encoder")[0].queries[0] == ("I", "don't", "know", "<eos>")


def test_sentences_that_are_written_well_are_read_as_they_stand(bundled: LanguageModel) -> None:
    sentences = read_sentences(HUNDRED)
    assert [read(bundled, sentence) for sentence in sentences] == [(sentence, False, ()) for sentence in sentences]


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("I love 中国.", ("中国",)),
        ("I love Москва and 北京 😀", ("Москва", "北京")),
        ("Bonjour le monde", ("Bonjour", "monde")),
        ("Ich liebe dich", ("Ich", "dich")),
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
    assert len(_strange(translator, text)) <= 2


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
    assert read(model, "then she went to the 垫") == ("then she went to the 垫", False, ())


def test_a_decoder_is_not_asked(poet: LanguageModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        poet.see("明月")
