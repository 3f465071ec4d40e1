"""Word alignment: how well a head's attention tells which word became which, measured against links made by hand.

A character of Chinese is a word here. It knows words, the pieces that a tokenizer made of them, and the weights between
these; which model was looked at, and how, it does not know.
"""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.output import reason_of
from regard.records import Record
from regard.text.tokenizer import BOS, EOS, PAD
from regard.trace import Trace

Link = tuple[int, int]
"""A word of the source and one of the target, both counted from 0."""

Reading = Literal["read", "written"]
"""Which row of the weights is a word's: the one that has read it, or the one before, which writes it."""

LARGEST_FILE = 2**26

CONTROL = {*PAD, *BOS, *EOS}
"""Labels of tokens that stand for no text."""


class Aligned(NamedTuple):
    """A sentence and its translation, word by word; `possible` links include the `sure` ones."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    @property
    def text(self) -> str:
        """The source as people write it."""
        return re.sub(r" (?=[.,;:?!])", "", " ".join(self.source))

    @property
    def output(self) -> str:
        """The target as people write it: characters, nothing between them."""
        return "".join(self.target)


class Head(NamedTuple):
    """A head of cross-attention, layer and head counted from 0, and its alignment error rate."""

    layer: int
    head: int
    error: float


def read_aligned(path: str | os.PathLike[str]) -> list[Aligned]:
    """The pairs of a file: words, characters, and links such as `0-0` (sure) and `2?1` (possible), between tabs.

    Empty lines and those that start with # are passed over. FileError names the first bad line.
    """
    try:
        lines = read_file(Path(path), most=LARGEST_FILE).decode().splitlines()
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
    pairs = []
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            if (pair := _pair(line)) is None:
                raise FileError("alignment-line", path=str(path), line=number, found=line)
            pairs.append(pair)
    return pairs


def _pair(line: str) -> Aligned | None:
    """What a line says; None where it makes no sense, or has no sure link."""
    columns = [column.split() for column in line.split("\t")]
    if len(columns) != 3:
        return None
    source, target, links = columns
    found: dict[Link, bool] = {}
    for link in links:
        match = re.fullmatch(r"([0-9]+)([-?])([0-9]+)", link)
        if match is None:
            return None
        i, j = int(match[1]), int(match[3])
        if i >= len(source) or j >= len(target) or (i, j) in found:
            return None
        found[i, j] = match[2] == "-"
    sure = frozenset(link for link, is_sure in found.items() if is_sure)
    return Aligned(tuple(source), tuple(target), sure, frozenset(found)) if sure else None


# --- from weights to links --------------------------------------------------------------------------------


def word_weights(
    weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], pair: Aligned, reading: Reading = "read"
) -> np.ndarray:
    """Weights between pieces (…, T, S) as weights between words (…, J, I + 1): the last column is for no word.

    A word of the source receives what all of its pieces receive together; a word of the target looks as its pieces do
    on average. A piece that two words share is divided by its characters. What goes to control tokens, and to a space
    that is a piece by itself, goes to no word.

    >>> pair = Aligned(("I", "sang"), ("我", "唱"), frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
    >>> rows = np.array([[0, 0, 0, 1], [0.75, 0, 0.25, 0], [0.25, 0.5, 0.25, 0]])
    >>> word_weights(rows, ["<bos>", "我", "唱"], ["I", "sa", "ng", "<eos>"], pair)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 0.  ]])
    """
    columns = _common(keys, pair.source)  # S I
    lengths = columns.sum(1, keepdims=True)
    columns = np.hstack([columns / np.maximum(lengths, 1), lengths == 0])  # S I+1
    rows = _common(queries, pair.target).T  # J T
    if reading == "written":
        rows = np.pad(rows[:, 1:], ((0, 0), (0, 1)))
    rows = rows / np.maximum(rows.sum(1, keepdims=True), 1)
    return rows @ weights @ columns


def _common(pieces: Sequence[str], words: Sequence[str]) -> np.ndarray:
    """How many characters each piece has of each word, P W: none for a control token."""
    spelled = ["" if piece in CONTROL else _folded(piece) for piece in pieces]
    wanted = [_folded(word) for word in words]
    if "".join(spelled) != "".join(wanted):
        raise ArgumentError("alignment-spelling", pieces=" ".join(pieces), words=" ".join(words))
    piece_of = np.repeat(np.arange(len(spelled)), [len(piece) for piece in spelled])
    word_of = np.repeat(np.arange(len(wanted)), [len(word) for word in wanted])
    counts = np.zeros((len(pieces), len(words)))
    np.add.at(counts, (piece_of, word_of), 1)
    return counts


def _folded(text: str) -> str:
    """The text without spaces, case and full width, which a tokenizer may have taken away."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def links(weights: np.ndarray) -> set[Link]:
    """The link of each word of the target: to where it looks hardest, in what `word_weights` gave (J, I + 1).

    A row that looks hardest at no word, or at nothing at all, has no link. Leaving control tokens out instead would
    link words by what little they look at beside them, which no picture shows.

    >>> sorted(links(np.array([[0.7, 0.2, 0.1], [0.3, 0.2, 0.5]])))
    [(0, 0)]
    """
    last = weights.shape[1] - 1
    best = weights.argmax(1)
    return {(int(i), j) for j, i in enumerate(best) if i < last and weights[j, i] > 0}


def head_links(record: Record, pair: Aligned, reading: Reading = "read") -> list[set[Link]]:
    """The links of each head of a labelled record. ArgumentError where its tokens do not spell the pair."""
    if record.queries is None or record.keys is None:
        raise ArgumentError("alignment-trace", text=pair.text)
    weights = to_numpy(record.weights())[0]  # H T S
    return [links(each) for each in word_weights(weights, record.queries[0], record.keys[0], pair, reading)]


# --- from links to a number -------------------------------------------------------------------------------


def alignment_error_rate(found: Iterable[tuple[Aligned, set[Link]]]) -> float:
    """1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all pairs together (Och and Ney 2003, section 5): 0 is best.

    A are the links found, S the sure ones, P the possible ones, sure ones included.

    >>> pair = Aligned(("I", "sang"), ("我", "唱"), frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
    >>> alignment_error_rate([(pair, {(0, 0), (0, 1)})])
    0.5
    """
    right = size = 0
    for pair, A in found:
        right += len(A & pair.sure) + len(A & pair.possible)
        size += len(A) + len(pair.sure)
    return 1 - right / size if size else 0.0


def best_heads(seen: Iterable[tuple[Aligned, Trace]], reading: Reading = "read") -> list[Head]:
    """Every head of cross-attention by its alignment error rate over the set, best first.

    Each Trace is of one run over its pair, as `LanguageModel.see(pair.text, output=pair.output)` has it: labelled, and
    a record for each layer. ArgumentError where one is not, or its tokens do not spell the pair.
    """
    found: dict[tuple[int, int], list[tuple[Aligned, set[Link]]]] = defaultdict(list)
    for pair, trace in seen:
        records = trace.select("cross")
        if not len(records):
            raise ArgumentError("alignment-trace", text=pair.text)
        for layer, record in enumerate(records):
            for head, each in enumerate(head_links(record, pair, reading)):
                found[layer, head].append((pair, each))
    heads = [Head(layer, head, alignment_error_rate(each)) for (layer, head), each in found.items()]
    return sorted(heads, key=lambda head: (head.error, head))


# --- what a head must beat --------------------------------------------------------------------------------


def diagonal(pair: Aligned) -> set[Link]:
    """The links of one who goes through both sentences at an even pace.

    >>> sorted(diagonal(Aligned(("I", "sang"), ("我", "唱", "了"), frozenset(), frozenset())))
    [(0, 0), (1, 1), (1, 2)]
    """
    n_source, n_target = len(pair.source), len(pair.target)
    return {((2 * j + 1) * n_source // (2 * n_target), j) for j in range(n_target)}


def chance_error_rate(pairs: Iterable[Aligned]) -> float:
    """The expected alignment error rate where each word of the target is linked to any of the source by lot."""
    right = size = 0.0
    for pair in pairs:
        right += (len(pair.sure) + len(pair.possible)) / len(pair.source)
        size += len(pair.target) + len(pair.sure)
    return 1 - right / size if size else 0.0
