"""Word alignment: how well a head's attention links source and target words, compared with links made by hand.

Each Chinese character counts as a word. Works on words, their tokens and the attention weights between them;
independent of the model.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError, FileError
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.records import Record
from regard.text.word_links import Link, shared_characters
from regard.trace import Trace

RowChoice = Literal["read", "written"]
"""Which row of the weights belongs to a token: the one that has it as input, or the one before, which predicts it."""

LARGEST_FILE = 2**26


class Aligned(NamedTuple):
    """A sentence and its translation, word by word; `possible` links include the `sure` ones."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    @property
    def text(self) -> str:
        """The source as plain text."""
        return re.sub(r" (?=[.,;:?!])", "", " ".join(self.source))

    @property
    def output(self) -> str:
        """The target as plain text: characters without spaces."""
        return "".join(self.target)


class AlignedHead(NamedTuple):
    """A head of cross-attention, layer and head counted from 0, and its alignment error rate."""

    layer: int
    head: int
    error: float


def read_aligned(path: str | os.PathLike[str]) -> list[Aligned]:
    """The pairs of a file: words, characters, and links such as `0-0` (sure) and `2?1` (possible), separated by tabs.

    Empty lines and lines that start with # are ignored. FileError names the first bad line.
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
    """The pair on a line; None if it is invalid or has no sure link."""
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
    weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], pair: Aligned, row_choice: RowChoice = "read"
) -> np.ndarray:
    """Weights between tokens (…, T, S) as weights between words (…, J, I + 1); the last column stands for no word.

    A source word receives the sum of the weights on its tokens; a target word's row is the mean over its tokens. A
    token that two words share is divided by its characters. Weight on control tokens, and on a token that is only a
    space, goes to the last column.

    >>> pair = Aligned(("I", "sang"), ("我", "唱"), frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
    >>> rows = np.array([[0, 0, 0, 1], [0.75, 0, 0.25, 0], [0.25, 0.5, 0.25, 0]])
    >>> word_weights(rows, ["<bos>", "我", "唱"], ["I", "sa", "ng", "<eos>"], pair)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 0.  ]])
    """
    columns = shared_characters(keys, pair.source)  # S I
    lengths = columns.sum(1, keepdims=True)
    columns = np.hstack([columns / np.maximum(lengths, 1), lengths == 0])  # S I+1
    rows = shared_characters(queries, pair.target).T  # J T
    if row_choice == "written":
        rows = np.pad(rows[:, 1:], ((0, 0), (0, 1)))
    rows = rows / np.maximum(rows.sum(1, keepdims=True), 1)
    return rows @ weights @ columns


def links(weights: np.ndarray) -> set[Link]:
    """The links of the target words, each to the source word with the largest of its `word_weights` (J, I + 1).

    A row whose maximum is in the last column, or 0, has no link. Ignoring control tokens instead would link words by
    small remaining weights, which no picture shows.

    >>> sorted(links(np.array([[0.7, 0.2, 0.1], [0.3, 0.2, 0.5]])))
    [(0, 0)]
    """
    last = weights.shape[1] - 1
    best = weights.argmax(1)
    return {(int(i), j) for j, i in enumerate(best) if i < last and weights[j, i] > 0}


def head_links(record: Record, pair: Aligned, row_choice: RowChoice = "read") -> list[set[Link]]:
    """The links of each head of a labelled record. Raises ArgumentError if its tokens do not spell the pair."""
    if record.query_tokens is None or record.key_tokens is None:
        raise ArgumentError("alignment-trace", text=pair.text)
    weights = to_numpy(record.weights())[0]  # H T S
    return [
        links(each) for each in word_weights(weights, record.query_tokens[0], record.key_tokens[0], pair, row_choice)
    ]


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


def best_heads(seen: Iterable[tuple[Aligned, Trace]], row_choice: RowChoice = "read") -> list[AlignedHead]:
    """Every cross-attention head with its alignment error rate over the set, best first.

    Each Trace is of one forward pass over its pair, as from `LanguageModel.see(pair.text, output=pair.output)`:
    labelled, with one record per layer. Raises ArgumentError otherwise, or if its tokens do not spell the pair.
    """
    found: dict[tuple[int, int], list[tuple[Aligned, set[Link]]]] = defaultdict(list)
    for pair, trace in seen:
        records = trace.select("cross")
        if not len(records):
            raise ArgumentError("alignment-trace", text=pair.text)
        for layer, record in enumerate(records):
            for head, each in enumerate(head_links(record, pair, row_choice)):
                found[layer, head].append((pair, each))
    heads = [AlignedHead(layer, head, alignment_error_rate(each)) for (layer, head), each in found.items()]
    return sorted(heads, key=lambda head: (head.error, head))


# --- baselines --------------------------------------------------------------------------------------------


def diagonal(pair: Aligned) -> set[Link]:
    """The links along the diagonal: each target word to the source word at the same relative position.

    >>> sorted(diagonal(Aligned(("I", "sang"), ("我", "唱", "了"), frozenset(), frozenset())))
    [(0, 0), (1, 1), (1, 2)]
    """
    n_source, n_target = len(pair.source), len(pair.target)
    return {((2 * j + 1) * n_source // (2 * n_target), j) for j in range(n_target)}


def chance_error_rate(pairs: Iterable[Aligned]) -> float:
    """The expected alignment error rate if each target word is linked to a random source word."""
    right = size = 0.0
    for pair in pairs:
        right += (len(pair.sure) + len(pair.possible)) / len(pair.source)
        size += len(pair.target) + len(pair.sure)
    return 1 - right / size if size else 0.0
