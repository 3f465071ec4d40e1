"""Puzzles: five synthetic tasks with generated examples, and the keys that a head must attend to for each.

    copy        dxbq      → dxbq        reverse     dxbq → qbxd
    sort        dxbq      → bdqx        no letter twice, so that the next one is the smallest above the last
    addition    275+648   → 3290        numbers of equal width; the sum is written from its last digit, as by hand
    induction   dxbq      → dxbq        one text for a decoder-only model: a block of different letters, repeated

A hash of the example decides whether it is for training or validation, so that no seed can mix the two sets.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Literal, NamedTuple
from zlib import crc32

import numpy as np
import torch

from regard.arrays import to_numpy
from regard.recipes.recipe import LETTERS, Puzzle, PuzzleKind
from regard.records import Kind
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import learn_tokenizer
from regard.trace import Trace
from regard.training.batches import IGNORED, Batch, PairBatches, noise

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HELD_OUT = 10
"""One example in this many is held out for validation."""
EPOCH = 1000
"""Batches per epoch; the examples themselves are unlimited."""

Split = Literal["train", "valid"]


class Example(NamedTuple):
    """The input text and the expected output text."""

    source: str
    target: str


class Expected(NamedTuple):
    """The keys that a head of this kind of attention should attend to, by query. Other queries do not count."""

    name: str
    kind: Kind
    keys: Mapping[int, frozenset[int]]


class Agreement(NamedTuple):
    """The head that fits best, and its share of queries whose top key is an expected one."""

    name: str
    head: int
    share: float


# --- the tasks -------------------------------------------------------------------------------------------


def solve(kind: PuzzleKind, source: str) -> Example:
    """A puzzle with its answer.

    >>> solve("sort", "dxbq").target, solve("addition", "275+648").target
    ('bdqx', '3290')
    """
    if kind == "addition":
        left, _, right = source.partition("+")
        return Example(source, f"{int(left) + int(right):0{len(left) + 1}d}"[::-1])
    answers = {"copy": source, "reverse": source[::-1], "sort": "".join(sorted(source)), "induction": source}
    return Example(source, answers[kind])


def puzzle_tokenizer(kind: PuzzleKind) -> Tokenizer:
    """A tokenizer with one token per letter, digit and sign, after the four special tokens."""
    return learn_tokenizer([DIGITS + "+" if kind == "addition" else ALPHABET], "characters")


def held_out(source: str) -> bool:
    """Whether an example belongs to the validation set."""
    return crc32(source.encode()) % HELD_OUT == 0


def _random_source(puzzle: Puzzle, numbers: np.ndarray) -> str:
    """The source of an example, from 1 + 2 · LETTERS random numbers."""
    n = puzzle.shortest + int(numbers[0] % (puzzle.longest - puzzle.shortest + 1))
    if puzzle.kind == "addition":
        digits = "".join(DIGITS[i] for i in numbers[1 : 1 + 2 * n] % 10)
        return f"{digits[:n]}+{digits[n:]}"
    different = puzzle.kind in ("sort", "induction")
    letters = np.argsort(numbers[1 : 1 + LETTERS])[:n] if different else numbers[1 : 1 + n] % LETTERS
    return "".join(ALPHABET[i] for i in letters)


def examples(puzzle: Puzzle, n: int, split: Split, *key: int) -> list[Example]:
    """`n` examples of the training or the validation set, a pure function of the key.

    >>> examples(Puzzle(kind="copy", shortest=2, longest=4), 2, "valid", 0)
    [Example(source='wybe', target='wybe'), Example(source='gqnr', target='gqnr')]
    """
    found: list[Example] = []
    for attempt in count():
        numbers = noise(n * (1 + 2 * LETTERS), *key, attempt).reshape(n, -1)
        sources = (_random_source(puzzle, row) for row in numbers)
        found += [solve(puzzle.kind, source) for source in sources if held_out(source) == (split == "valid")]
        if len(found) >= n:
            break
    return found[:n]


# --- batches ---------------------------------------------------------------------------------------------


class PuzzleBatches:
    """A puzzle as `training.batches.Data`: new training examples in every epoch, a fixed validation set."""

    def __init__(self, puzzle: Puzzle, tokenizer: Tokenizer, *, batch_size: int, seed: int, split: Split) -> None:
        self.puzzle, self.tokenizer = puzzle, tokenizer
        self.batch_size, self.seed, self.split = batch_size, seed, split
        self._fixed = examples(puzzle, puzzle.valid_examples, "valid", 0) if split == "valid" else []

    @property
    def batches_per_epoch(self) -> int:
        """The same in every epoch."""
        return EPOCH if self.split == "train" else -(-self.puzzle.valid_examples // self.batch_size)

    @property
    def fingerprint(self) -> str:
        """A hash of the puzzle, the batch size, the seed and the split."""
        return hashlib.sha256(repr((self.puzzle, self.batch_size, self.seed, self.split)).encode()).hexdigest()

    def examples(self, epoch: int, index: int) -> list[Example]:
        """The examples of a batch, as text. Validation examples depend neither on the epoch nor on the seed."""
        if self.split == "train":
            return examples(self.puzzle, self.batch_size, "train", self.seed, epoch, index)
        return self._fixed[index * self.batch_size : (index + 1) * self.batch_size]

    def batch(self, epoch: int, index: int) -> Batch:
        """The same examples as ids, numbered across all epochs."""
        batch = batch_of(self.puzzle.kind, self.examples(epoch, index), self.tokenizer)
        first = (epoch * self.batches_per_epoch + index) * self.batch_size
        return batch._replace(examples=tuple(first + i for i in batch.examples))


def batch_of(kind: PuzzleKind, examples: Sequence[Example], tokenizer: Tokenizer) -> Batch:
    """Examples as a batch of ids; `Batch.examples` gives the index of each row's example.

    >>> batch_of("induction", [solve("induction", "dxb")], puzzle_tokenizer("induction")).targets.tolist()
    [[-100, -100, -100, 27, 5]]
    """
    sources = tokenizer.encode_all([example.source for example in examples])
    targets = tokenizer.encode_all([example.target for example in examples])
    marks = tokenizer.marks()
    if kind != "induction":
        return PairBatches(sources, targets, tokens_per_batch=2**31, seed=0, shuffle=False, **marks).batch(0, 0)
    # Targets only where the answer is determined: the repeated block after its first letter.
    longest = max(map(len, sources))
    ids = torch.full((len(sources), 2 * longest - 1), marks["pad"])
    predicted = torch.full_like(ids, IGNORED)
    for row, block in enumerate(sources):
        n = len(block)
        repeated = torch.tensor(block + block)
        ids[row, : 2 * n - 1] = repeated[:-1]
        predicted[row, n : 2 * n - 1] = repeated[n + 1 :]
    return Batch({"ids": ids}, predicted, tuple(range(len(sources))))


# --- expected attention ----------------------------------------------------------------------------------


def expected(kind: PuzzleKind, example: Example) -> tuple[Expected, ...]:
    """The keys that a head must attend to: query t writes letter t of the answer, so it needs that letter's key.

    copy: the diagonal. reverse: the antidiagonal. sort: the position of the next smallest letter. addition: one of the
    two digits of the current column. induction: two heads, one that attends to the previous letter, and one that
    attends to the letter that followed the same letter in the first block.

    >>> expected("reverse", solve("reverse", "abc"))[0].keys
    {0: frozenset({2}), 1: frozenset({1}), 2: frozenset({0})}
    """
    n = len(example.source)
    if kind == "induction":
        before = Expected("previous", "decoder", {t: frozenset({t - 1}) for t in range(1, 2 * n - 1)})
        return before, Expected("induction", "decoder", {t: frozenset({t - n + 1}) for t in range(n, 2 * n - 1)})
    if kind == "addition":
        width = n // 2
        columns = {t: frozenset({width - 1 - t, n - 1 - t}) for t in range(width)}
        return (Expected("addition", "cross", columns),)
    places = {
        "copy": lambda t: t,
        "reverse": lambda t: n - 1 - t,
        "sort": lambda t: example.source.index(example.target[t]),
    }
    return (Expected(kind, "cross", {t: frozenset({places[kind](t)}) for t in range(n)}),)


def agreement(trace: Trace, expected: Sequence[Expected]) -> Agreement:
    """The head of the trace that agrees best with the expected keys, one Expected for each sample of the trace.

    >>> trace = Trace.from_weights(np.eye(3)[::-1], kind="cross")
    >>> agreement(trace, expected("reverse", solve("reverse", "abc")))
    Agreement(name='attention', head=0, share=1.0)
    """
    found = []
    for record in trace.select(kind=expected[0].kind):
        top_keys = to_numpy(record.weights()).argmax(-1)  # B H T
        for head in range(top_keys.shape[1]):
            right = [
                top_keys[row, head, query] in keys
                for row, wanted in enumerate(expected)
                for query, keys in wanted.keys.items()
            ]
            found.append(Agreement(record.name, head, float(np.mean(right))))
    return max(found, key=lambda each: each.share)
