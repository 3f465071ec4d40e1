"""Tokens of any vocabulary become bytes, characters and words without loss."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import split_words
from regard.text.segmentation import byte_level_bytes, character_groups, text_or_hex, token_bytes, word_groups

TEXT = "床前明月光，疑是霜。The unbelievably 🤗 span’s 龘"
# TEXT as the vocabularies of GPT-2 and of Qwen2.5 write it, a space between tokens.
GPT2 = "åº Ĭ åī į æĺ İ æľ Ī åħī ï ¼ Į ç ĸ ĳ æĺ¯ é ľ ľ ãĢĤ The Ġunbelievably ĠðŁ ¤ Ĺ Ġspan âĢ Ļ s Ġ é¾ ĺ"
QWEN = "åºĬ åīį æĺİ æľĪ åħī ï¼Į çĸĳ æĺ¯ éľľ ãĢĤ The Ġunbelie vably ĠðŁ ¤ Ĺ Ġspan âĢĻs Ġé ¾ ĺ"


def texts(tokens: list[str], by: str) -> list[str]:
    pieces = token_bytes(tokens)
    groups = {"characters": character_groups, "words": word_groups}[by](pieces)
    return [text_or_hex(b"".join(pieces[group])).strip(" ") for group in groups]


@pytest.mark.parametrize(
    ("tokens", "characters", "words"),
    [
        # GPT-2's own spelling of 月 is two, of 光 one token
        (
            ["æľ", "Ī", "åħī", "Ġis", "Ġun", "likely"],
            ["月", "光", "is", "un", "likely"],
            ["月", "光", "is", "unlikely"],
        ),
        (["⟨E6 9C⟩", "⟨88⟩", " is", " un", "likely"], ["月", "is", "un", "likely"], ["月", "is", "unlikely"]),
        (["▁un", "likely", "▁", "<0xE6>", "<0x9C>", "<0x88>"], ["un", "likely", "", "月"], ["unlikely", "月"]),
        (
            ["[CLS]", "play", "##ing", "chess", ".", "[SEP]"],
            ["[CLS]", "play", "ing", "chess", ".", "[SEP]"],
            ["[CLS]", "playing", "chess", ".", "[SEP]"],
        ),
        (["play", "ing</w>", "chess</w>"], ["play", "ing", "chess"], ["playing", "chess"]),
        (["play@@", "ing", "chess"], ["play", "ing", "chess"], ["playing", "chess"]),
        (["I", "love", "you"], ["I", "love", "you"], ["I", "love", "you"]),  # words already
        (["café", "naïve"], ["café", "naïve"], ["café", "naïve"]),  # letters of the byte alphabet, but no UTF-8
        (["mała", "ćma"], ["mała", "ćma"], ["mała", "ćma"]),
        # broken in the middle, as models write when they guess
        (["Ġa", "æľ", "Ġb", "åħī"], ["a", "⟨E6 9C⟩", "b", "光"], ["a", "⟨E6 9C⟩", "b", "光"]),
        (["<|im_start|>", "æľ", "Ī"], ["<|im_start|>", "月"], ["<|im_start|>", "月"]),
        (["⟨9C⟩", "a", "⟨E6⟩"], ["⟨9C⟩", "a", "⟨E6⟩"], ["⟨9C⟩", "a", "⟨E6⟩"]),  # begun or ended in the middle
        (["⟨E6 9C⟩", "⟨E6 9C⟩", "⟨88⟩"], ["⟨E6 9C⟩", "月"], ["⟨E6 9C⟩", "月"]),
        (["\ud800", "a"], ["⟨ED A0 80⟩", "a"], ["⟨ED A0 80⟩", "a"]),
        ([], [], []),
    ],
)
def test_groups_of_every_vocabulary_style(tokens: list[str], characters: list[str], words: list[str]) -> None:
    assert texts(tokens, "characters") == characters
    assert texts(tokens, "words") == words


@given(st.text(max_size=30), st.data())
def test_groups_restore_any_text_cut_anywhere(text: str, data: st.DataObject) -> None:
    """Bytes cut anywhere: the groups cover everything in order and split no character and no word."""
    raw = text.encode()
    cuts = sorted({0, len(raw), *data.draw(st.lists(st.integers(0, len(raw)), max_size=12))})
    pieces = [raw[a:b] for a, b in pairwise(cuts)]
    for grouped in (character_groups, word_groups):
        groups = grouped(pieces)
        assert [at for group in groups for at in range(group.start, group.stop)] == list(range(len(pieces)))
        merged = [b"".join(pieces[group]) for group in groups]
        assert "".join(piece.decode() for piece in merged) == text  # strict: none is torn
    if " " in text and pieces:
        bounds, at = set(), 0
        for piece in merged:
            bounds.add(at := at + len(piece.decode()))
        at = 0
        for word in split_words(text):
            at = text.index(word, at)
            assert not bounds & set(range(at + 1, at + len(word)))
            at += len(word)


@given(st.lists(st.binary(max_size=4), max_size=8))
def test_invalid_utf8_bytes_are_groups_of_one(pieces: list[bytes]) -> None:
    groups = character_groups(pieces)
    assert [at for group in groups for at in range(group.start, group.stop)] == list(range(len(pieces)))
    for group in groups:
        assert group.stop - group.start == 1 or "⟨" not in text_or_hex(b"".join(pieces[group]))


def test_every_byte_has_a_character() -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    assert {byte_level_bytes(character) for character in ByteLevel.alphabet()} == {bytes([byte]) for byte in range(256)}


@pytest.mark.parametrize("vocabulary", [GPT2, QWEN])
def test_chinese_in_public_vocabularies(vocabulary: str) -> None:
    raw = vocabulary.split(" ")
    pieces = [text_or_hex(piece) for piece in token_bytes(raw)]  # as in Tokenizer.pieces
    for tokens in (raw, pieces):
        for by in ("characters", "words"):
            found = texts(tokens, by)
            assert not [text for text in found if "⟨" in text or "\ufffd" in text]
            assert "".join(found).replace(" ", "") == TEXT.replace(" ", "")
        assert {*"床前明月光，疑是霜。🤗龘", "unbelievably", "span’s"} <= set(texts(tokens, "words"))
