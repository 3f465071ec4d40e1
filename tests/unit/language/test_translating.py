"""Translation: the same with NumPy and torch, in the order of the texts, and defined for any input."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_language import PAIRS, translator_folder

import regard
from regard.errors import ArgumentError
from regard.generation import beam_search
from regard.generation.beams import max_translation_length
from regard.language import LanguageModel
from regard.language.input_text import read_input
from regard.language.translating import Translation, _fitting, translate_each
from regard.text import split_sentences

TEXTS = [english for english, _ in PAIRS]


@pytest.mark.parametrize("int8", [False, True])
def test_numpy_and_torch_write_the_same(tmp_path: Path, int8: bool) -> None:
    folder = translator_folder(tmp_path / "m", int8=int8)
    texts = [*TEXTS, " ".join(TEXTS), "cat", "", "he\nshe"]
    ours = regard.load(folder).translate(texts)
    assert ours == regard.load(folder, backend="torch").translate(texts)
    assert len(set(ours)) >= 5  # not the same output for every text


def test_a_sentence_equals_beam_search(translator: LanguageModel) -> None:
    tokenizer = translator.tokenizer
    source = [*tokenizer.encode("I love you."), tokenizer.special("eos")]
    max_new = max_translation_length(source, translator.config.max_len)
    cases: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({}, {"beams": 3, "length_penalty": 0.8}),  # the settings
        ({"beams": 1, "length_penalty": 0.0}, {"beams": 1, "length_penalty": 0.0}),
    )
    for given_options, expected in cases:
        best = beam_search(
            translator.model,
            [tokenizer.special("bos")],
            sources=[source],
            eos=tokenizer.eos,
            max_new=max_new,
            **expected,
        )
        assert translator.translate("I love you.", **given_options) == tokenizer.decode(best[0].ids)


def test_a_long_text_is_translated_by_sentences_and_keeps_its_lines(translator: LanguageModel) -> None:
    one, two, three, _ = TEXTS
    a, b, c = translator.translate([one, two, three])
    assert translator.translate(f" {one} {two}\r\n\n{three} ") == f"{a}{b}\n\n{c}"


def test_other_languages_have_a_space_between_sentences(tmp_path: Path) -> None:
    model = regard.load(translator_folder(tmp_path / "m", target_language="de"))
    a, b = model.translate(TEXTS[:2])
    assert model.translate(" ".join(TEXTS[:2])) == f"{a} {b}"


def test_empty_texts_are_allowed_in_a_list_only(translator: LanguageModel) -> None:
    found = translator.translate(["", "cat", " \t\u200b\n"])
    assert (found[0], found[2]) == ("", "")
    assert found[1]
    assert translator.translate([]) == []
    for nothing in ("", "  ", "\x00\x1b", "\u200b\ufeff"):
        with pytest.raises(ArgumentError, match="nothing to translate") as caught:
            translator.translate(nothing)
        assert "没有要翻译的内容" in caught.value.text("zh")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("我爱你。", "translate-chinese"),
        ("我" * 5000, "translate-chinese"),
        ("😀 🎉", "translate-unreadable"),
        ("Привет", "translate-script"),
    ],
)
def test_unreadable_texts_raise_a_one_line_error(translator: LanguageModel, text: str, key: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        translator.translate(text)
    assert caught.value.key == key
    for lang in ("en", "zh"):
        assert "\n" not in caught.value.text(lang)
        assert len(caught.value.text(lang)) < 200


def test_a_model_of_few_characters_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = regard.load(translator_folder(tmp_path / "m", source_language="fr"))
    monkeypatch.setattr("regard.language.input_text._FEW", model.tokenizer.vocab_size)
    with pytest.raises(ArgumentError, match=r"knows none of the characters in '😀': it knows only .*c.*t") as caught:
        model.translate("😀")
    assert "它只认识 " in caught.value.text("zh")


@pytest.mark.parametrize(
    ("text", "found"), [(b"cat", "bytes"), ([b"cat"], "bytes"), (None, "NoneType"), (["a", 5], "int"), ({"a"}, "set")]
)
def test_other_types_are_refused(translator: LanguageModel, text: Any, found: str) -> None:
    with pytest.raises(ArgumentError, match=f"give a text, a str; found {found}"):
        translator.translate(text)


def test_a_model_that_reads_chinese_accepts_chinese(tmp_path: Path) -> None:
    model = regard.load(translator_folder(tmp_path / "m", source_language="zh", target_language="en"))
    assert model.translate("我爱你。")


def test_one_bad_text_does_not_stop_the_others(translator: LanguageModel) -> None:
    good = translator.translate("cat")
    found = translate_each(translator, ["cat", "我爱你", "", "😀", "cat"])
    assert (found[0], found[4]) == (Translation(good), Translation(good))
    assert [each.key for each in found[1:4] if isinstance(each, ArgumentError)] == [
        "translate-chinese",
        "translate-empty",
        "translate-unreadable",
    ]


def test_unknown_characters_are_left_out(translator: LanguageModel) -> None:
    assert read_input(translator, "I 😀 love\x07 y\u200bou…").text == "I love you..."
    assert read_input(translator, "thé\ncat 🎉").text == "the\ncat"
    assert translator.translate("I love 😀 you.") == translator.translate("I love you.")


def test_a_decoder_does_not_translate(poet: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match="'bard' does not translate but continues a text: use generate"):
        poet.translate("cat")


@given(words=st.lists(st.sampled_from(["cat", "love,", "home!", "u", "then" * 30]), min_size=1, max_size=80))
def test_parts_fit_without_loss(translator: LanguageModel, words: list[str]) -> None:
    sentence = " ".join(words)
    tokenizer = translator.tokenizer
    parts = _fitting(tokenizer, sentence, 20)
    assert all(1 <= len(ids) <= 20 for ids in parts)
    written = "".join(tokenizer.decode(ids).strip() for ids in parts)
    assert written.replace(" ", "") == sentence.replace(" ", "")


def test_a_long_sentence_is_cut_at_its_commas(translator: LanguageModel) -> None:
    sentence = "the cat sat on the mat, then he went home, and she went to the shop"
    whole = len(translator.tokenizer.encode(sentence))
    parts = [translator.tokenizer.decode(ids) for ids in _fitting(translator.tokenizer, sentence, whole - 1)]
    assert parts == ["the cat sat on the mat, then he went home,", "and she went to the shop"]


@pytest.mark.filterwarnings("ignore:.* reads English only", "ignore:there is no word in")
@pytest.mark.parametrize("text", ["cat " * 3000, "a" * 4000, "." * 3000, "cat,\n" * 300])
def test_texts_longer_than_the_model_are_translated(translator: LanguageModel, text: str) -> None:
    assert translator.translate(text, beams=1)


@pytest.mark.filterwarnings(
    "ignore:.* reads English only", "ignore:these numbers of the text", "ignore:there is no word in"
)
@given(text=st.text(max_size=60))
def test_any_text_is_translated_or_refused(translator: LanguageModel, text: str) -> None:
    try:
        found = translator.translate(text, beams=1)
    except ArgumentError as error:
        assert error.key in ("translate-empty", "translate-chinese", "translate-script", "translate-unreadable")  # noqa: PT017
    else:
        assert len(split_sentences(text)) == 0 or found.isprintable() or "\n" in found
