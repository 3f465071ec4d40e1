"""What tokens write, whichever way their vocabulary spells it: bytes, put together to characters, then to words.

Byte-level vocabularies cut 月 into three tokens that mean nothing alone. Tokens are known here by their spelling only
(Ġcat, ▁cat, ##s, cat</w>, ca@@, ⟨E6 9C⟩, <0xE6>); no tokenizer is asked.
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


def _byte_signs() -> dict[str, int]:
    """The character by which byte-level tokens write each byte: itself where it can be seen, else one past 255."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in seen]
    return dict(chain(((chr(byte), byte) for byte in seen), ((chr(256 + i), byte) for i, byte in enumerate(hidden))))


_BYTES = _byte_signs()


def sign_bytes(token: str) -> bytes | None:
    """The bytes of a token of a byte-level vocabulary; None for one that was added by hand, in plain letters.

    >>> sign_bytes("Ġcat"), sign_bytes("æľ"), sign_bytes("注")
    (b' cat', b'\\xe6\\x9c', None)
    """
    return bytes(_BYTES[sign] for sign in token) if all(sign in _BYTES for sign in token) else None


def spelled(piece: bytes) -> str:
    """The text of a piece, or its bytes where it is no whole character.

    >>> spelled("月".encode()), spelled(b"\\xe6\\x9c")
    ('月', '⟨E6 9C⟩')
    """
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return f"⟨{piece.hex(' ').upper()}⟩"


def token_bytes(tokens: Sequence[str]) -> list[bytes]:
    """What each token of one text writes, the space before a word included where the vocabulary tells it.

    >>> token_bytes(["play", "##ing", "chess"]), token_bytes(["æľ", "Ī", "Ġis"])
    ([b' play', b'ing', b' chess'], [b'\\xe6\\x9c', b'\\x88', b' is'])
    """
    if _is_byte_level(tokens):
        return [raw if (raw := sign_bytes(token)) is not None else _encoded(token) for token in tokens]
    fragments = [_FRAGMENT.fullmatch(token) for token in tokens]
    return [
        bytes.fromhex(found[1] or found[2]) if found else _encoded(text)
        for found, text in zip(fragments, _spaced(tokens), strict=True)
    ]


def character_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The fewest tokens that belong together so that no character is torn; what is no UTF-8 stands alone.

    >>> character_groups([b"a", b"\\xe6\\x9c", b"\\x88", b"\\xff"])
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    groups: list[slice] = []
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0

    def alone(stop: int) -> None:
        nonlocal start
        groups.extend(slice(at, at + 1) for at in range(start, stop))
        start = stop

    for at, piece in enumerate(pieces):
        if not _goes_on(decoder, piece):
            alone(at)  # what was begun is never finished; this piece may begin anew
            if not _goes_on(decoder, piece):
                alone(at + 1)
                continue
        if not decoder.getstate()[0]:
            groups.append(slice(start, at + 1))
            start = at + 1
    alone(len(pieces))
    return groups


def word_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The fewest tokens that belong together so that no word, as `split_words` sees it, is torn.

    Tokens among which no space is ever written are taken for words already.

    >>> word_groups([b"un", b"likely", b" yes", b"!"])
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    groups = character_groups(pieces)
    texts = [spelled(b"".join(pieces[group])) for group in groups]
    if not any(" " in text for text in texts):
        return groups
    inside = _inside_words("".join(texts))
    joined: list[slice] = []
    at, space = 0, False
    for group, text in zip(groups, texts, strict=True):
        if joined and (at in inside or (space and text[:1].strip())):  # a lone space belongs to the word after it
            joined[-1] = slice(joined[-1].start, group.stop)
        else:
            joined.append(group)
        at, space = at + len(text), text == " "
    return joined


def _inside_words(text: str) -> set[int]:
    """The places between two letters of one word."""
    inside: set[int] = set()
    at = 0
    for word in split_words(text):
        at = text.index(word, at)
        inside.update(range(at + 1, at + len(word)))
        at += len(word)
    return inside


def _goes_on(decoder: codecs.IncrementalDecoder, piece: bytes) -> bool:
    """Whether the piece may follow what was decoded so far; if not, the decoder is as new."""
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        decoder.reset()
        return False
    return True


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # half a character is then no UTF-8, and shown as its bytes


def _is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether the tokens are spelled in signs for bytes, as GPT-2 and Qwen have them: Ġcat, æľ.

    Told by what they would say: other text in these letters (café) is as good as never UTF-8 when read as bytes. A
    model may write broken characters among whole ones.
    """
    raw = b""
    spaces = 0
    for token in tokens:
        found = sign_bytes(token)
        if found is None and not _CONTROL.fullmatch(token):
            return False
        raw += found or b""
        spaces += token.count("Ġ") + token.count("Ċ")
    text = raw.decode(errors="replace")
    broken = text.count("\ufffd")
    whole = sum(not sign.isascii() for sign in text) - broken
    return spaces + whole > broken


def _spaced(tokens: Sequence[str]) -> Sequence[str]:
    """The tokens with plain spaces where their vocabulary writes something else for one, or for its absence."""
    if any(MARK in token for token in tokens):
        return [token.replace(MARK, " ") for token in tokens]
    if any(token.startswith("##") and len(token) > 2 for token in tokens):
        return [token[2:] if token.startswith("##") and len(token) > 2 else f" {token}" for token in tokens]
    if any(token.endswith("</w>") for token in tokens):
        return [token.removesuffix("</w>") + " " * token.endswith("</w>") for token in tokens]
    if any(token.endswith("@@") and len(token) > 2 for token in tokens):
        return [token[:-2] if token.endswith("@@") and len(token) > 2 else f"{token} " for token in tokens]
    return tokens
