"""Word alignment of sentence pairs in Pharaoh format: parse the links (`0-0 2-1`), convert them to token links.

`0-0 2-1` links word 0 of the source with word 0 of the target, 2 with 1. A word is a run of letters or digits; each
Chinese character and each punctuation mark is a word too. Independent of models.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from regard.errors import ArgumentError
from regard.text.tokenizer import BOS, EOS, PAD

Link = tuple[int, int]
"""A word of the source and one of the target, both counted from 0."""

CONTROL = {*PAD, *BOS, *EOS}
"""Labels of tokens without text."""

_HAN = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[^\W_{_HAN}]+(?:'[^\W_{_HAN}]+)*|\S")


def split_words(text: str) -> list[str]:
    """The words of a text, between which links are counted.

    >>> split_words("I don't know, Tom."), split_words("我有 20 本书。")
    (['I', "don't", 'know', ',', 'Tom', '.'], ['我', '有', '20', '本', '书', '。'])
    """
    return _WORD.findall(text)


def parse_links(text: str, n_source: int, n_target: int) -> list[Link] | None:
    """The links of a text in Pharaoh format; None if it is malformed or names a word outside the sentences.

    >>> parse_links("0-0 2-1", n_source=3, n_target=2), parse_links("0-2", n_source=3, n_target=2)
    ([(0, 0), (2, 1)], None)
    """
    found = []
    for each in text.split():
        match = re.fullmatch("([0-9]{1,7})-([0-9]{1,7})", each, re.ASCII)
        if match is None or int(match[1]) >= n_source or int(match[2]) >= n_target:
            return None
        found.append((int(match[1]), int(match[2])))
    return found


def token_links(
    source: Sequence[str], target: Sequence[str], words: tuple[Sequence[str], Sequence[str]], links: Sequence[Link]
) -> list[Link]:
    """Word links as links between tokens, (source, target), for token labels that spell the words.

    A target token is linked to all tokens of the words to which its words are linked. Source and target are taken to be
    followed by <eos>: a target token without a link, and the target's <eos>, are linked to the source's <eos>.
    Raises ArgumentError if the labels do not spell the words.

    >>> token_links(["I", " sa", "ng"], ["我", "唱", "了"], (["I", "sang"], ["我", "唱", "了"]), [(0, 0), (1, 1)])
    [(0, 0), (1, 1), (2, 1), (3, 2), (3, 3)]
    """
    of_word = [shared_characters(*each) > 0 for each in zip((source, target), words, strict=True)]
    linked = np.zeros((len(words[0]), len(words[1])), bool)
    for i, j in links:
        linked[i, j] = True
    between = of_word[0] @ linked @ of_word[1].T  # S T
    found = np.zeros((len(source) + 1, len(target) + 1), bool)
    found[:-1, :-1] = between
    found[-1] = ~found.any(0)
    return [(int(s), int(t)) for t, s in np.argwhere(found.T)]


def shared_characters(pieces: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """The number of characters that each token shares with each word, (tokens, words); 0 for a control token.

    Raises ArgumentError if the tokens do not spell the words.

    >>> shared_characters(["sa", "ng", "<eos>"], ["sang"]).tolist()
    [[2.0], [2.0], [0.0]]
    """
    spelled = ["" if piece in CONTROL else _normalised(piece) for piece in pieces]
    wanted = [_normalised(word) for word in words]
    if "".join(spelled) != "".join(wanted):
        raise ArgumentError("alignment-spelling", pieces=" ".join(pieces), words=" ".join(words))
    piece_of = np.repeat(np.arange(len(spelled)), [len(piece) for piece in spelled])
    word_of = np.repeat(np.arange(len(wanted)), [len(word) for word in wanted])
    counts = np.zeros((len(pieces), len(words)))
    np.add.at(counts, (piece_of, word_of), 1)
    return counts


def _normalised(text: str) -> str:
    """The text without spaces, case and full width, which a tokenizer may have removed."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
