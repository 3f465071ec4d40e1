"""The text of tokens in any vocabulary: bytes, merged into characters, then into words.

Byte-level vocabularies split 月 into three tokens that mean nothing alone. Tokens are recognised by their spelling only
(Ġcat, ▁cat, ##s, cat</w>, ca@@, ⟨E6 9C⟩, <0xE6>); no tokenizer is needed.
"""

import codecs
import re
from collections.abc import Iterable, Sequence
from itertools import chain

from regard.text.segmentation import split_words

MARK = "▁"
"""Stands for a space, as in SentencePiece."""

_FRAGMENT = re.compile(r"⟨([0-9A-F]{2}(?: [0-9A-F]{2})*)⟩|<0x([0-9A-F]{2})>")
_CONTROL = re.compile(r"[<\[].+[>\]]", re.DOTALL)


def _byte_characters() -> dict[str, int]:
    """The character for each byte in byte-level tokens: the byte's own if it is printable, else one above 255."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return dict(
        chain(((chr(byte), byte) for byte in printable), ((chr(256 + i), byte) for i, byte in enumerate(hidden)))
    )


_BYTES = _byte_characters()


def byte_level_bytes(token: str) -> bytes | None:
    """The bytes of a token of a byte-level vocabulary; None for an added token, which is plain text.

    >>> byte_level_bytes("Ġcat"), byte_level_bytes("æľ"), byte_level_bytes("注")
    (b' cat', b'\\xe6\\x9c', None)
    """
    return bytes(_BYTES[character] for character in token) if all(character in _BYTES for character in token) else None


def text_or_hex(piece: bytes) -> str:
    """The text of some bytes, or the bytes in hexadecimal where they are not whole characters.

    >>> text_or_hex("月".encode()), text_or_hex(b"\\xe6\\x9c")
    ('月', '⟨E6 9C⟩')
    """
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return f"⟨{piece.hex(' ').upper()}⟩"


def token_bytes(tokens: Sequence[str]) -> list[bytes]:
    """The bytes of each token of one text, with the space before a word where the vocabulary marks it.

    >>> token_bytes(["play", "##ing", "chess"]), token_bytes(["æľ", "Ī", "Ġis"])
    ([b' play', b'ing', b' chess'], [b'\\xe6\\x9c', b'\\x88', b' is'])
    """
    if _is_byte_level(tokens):
        return [raw if (raw := byte_level_bytes(token)) is not None else _encoded(token) for token in tokens]
    fragments = [_FRAGMENT.fullmatch(token) for token in tokens]
    return [
        bytes.fromhex(found[1] or found[2]) if found else _encoded(text)
        for found, text in zip(fragments, _spaced(tokens), strict=True)
    ]


def character_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The smallest groups of tokens that split no character; bytes that are not UTF-8 are groups of one.

    >>> character_groups([b"a", b"\\xe6\\x9c", b"\\x88", b"\\xff"])
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    groups: list[slice] = []
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0

    def ungrouped(stop: int) -> None:
        nonlocal start
        groups.extend(slice(at, at + 1) for at in range(start, stop))
        start = stop

    for at, piece in enumerate(pieces):
        if not _continues(decoder, piece):
            ungrouped(at)  # the character that was begun is never completed; this piece may begin another
            if not _continues(decoder, piece):
                ungrouped(at + 1)
                continue
        if not decoder.getstate()[0]:
            groups.append(slice(start, at + 1))
            start = at + 1
    ungrouped(len(pieces))
    return groups


def word_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The smallest groups of tokens that split no word, as `split_words` finds words.

    Tokens without any space among them are treated as words.

    >>> word_groups([b"un", b"likely", b" yes", b"!"])
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    groups = character_groups(pieces)
    texts = [text_or_hex(b"".join(pieces[group])) for group in groups]
    if not any(" " in text for text in texts):
        return groups
    inside = _inside_words("".join(texts))
    joined: list[slice] = []
    at, space = 0, False
    for group, text in zip(groups, texts, strict=True):
        if joined and (at in inside or (space and text[:1].strip())):  # a single space belongs to the next word
            joined[-1] = slice(joined[-1].start, group.stop)
        else:
            joined.append(group)
        at, space = at + len(text), text == " "
    return joined


def _inside_words(text: str) -> set[int]:
    """The positions between two letters of one word."""
    inside: set[int] = set()
    at = 0
    for word in split_words(text):
        at = text.index(word, at)
        inside.update(range(at + 1, at + len(word)))
        at += len(word)
    return inside


def _continues(decoder: codecs.IncrementalDecoder, piece: bytes) -> bool:
    """Whether the piece continues the bytes decoded so far; if not, the decoder is reset."""
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        decoder.reset()
        return False
    return True


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # half a surrogate pair is then not UTF-8, and shown as bytes


def _is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether the tokens are byte-level, as those of GPT-2 and Qwen: Ġcat, æľ.

    Decided by decoding them: other text in these letters (café) is almost never UTF-8 when read as bytes. A model may
    write broken characters among whole ones.
    """
    raw = b""
    spaces = 0
    for token in tokens:
        found = byte_level_bytes(token)
        if found is None and not _CONTROL.fullmatch(token):
            return False
        raw += found or b""
        spaces += token.count("Ġ") + token.count("Ċ")
    text = raw.decode(errors="replace")
    broken = text.count("\ufffd")
    whole = sum(not character.isascii() for character in text) - broken
    return spaces + whole > broken


def _spaced(tokens: Sequence[str]) -> Sequence[str]:
    """The tokens with plain spaces in place of the vocabulary's markers for a space or for no space."""
    if any(MARK in token for token in tokens):
        return [token.replace(MARK, " ") for token in tokens]
    if any(token.startswith("##") and len(token) > 2 for token in tokens):
        return [token[2:] if token.startswith("##") and len(token) > 2 else f" {token}" for token in tokens]
    if any(token.endswith("</w>") for token in tokens):
        return [token.removesuffix("</w>") + " " * token.endswith("</w>") for token in tokens]
    if any(token.endswith("@@") and len(token) > 2 for token in tokens):
        return [token[:-2] if token.endswith("@@") and len(token) > 2 else f"{token} " for token in tokens]
    return tokens
