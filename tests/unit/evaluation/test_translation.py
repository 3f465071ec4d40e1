"""Translation in batches: the same result as for single lines, in order, within the length limit."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights, torch_model

from regard.errors import ArgumentError, FileError
from regard.evaluation import encode_sources, translate, translate_lines
from regard.generation import beam_search
from regard.generation.beams import max_translation_length
from regard.reference import Transformer as NumpyTransformer
from regard.text.tokenizer import Tokenizer

BOS, EOS = 1, 2
LETTERS = "abcdefghijklmnopqrs"


class Spelling:
    """A tokenizer of nineteen letters, after <pad> <bos> <eos> <unk>."""

    pad, bos, eos, unknown = 0, BOS, EOS, 3
    vocab_size = 23
    special = Tokenizer.special

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [[4 + LETTERS.index(letter) for letter in text if letter != " "] for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(LETTERS[id - 4] if id >= 4 else "?" for id in ids)


TOKENIZER: Any = Spelling()
CONFIG = CONFIGS["paper_2017"]
MODEL = torch_model(CONFIG, random_weights(CONFIG, dtype="float64"))
SHORT = CONFIGS["pre-norm translator"]  # 32 positions


class Echo:
    """A model that copies its source; its Decoding stores only the position."""

    config = CONFIG

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def begin(self, source: Any = None, *, source_mask: Any = None) -> "Echoing":
        self.shapes.append(source.shape)
        return Echoing(source)


class Echoing:
    vocab_size, max_len = 23, None

    def __init__(self, source: np.ndarray) -> None:
        self.source, self.length = source, 0

    def step(self, ids: np.ndarray, keep: Any = None) -> np.ndarray:
        assert ids.shape == (len(self.source), 1)
        assert (ids[:, 0] == BOS).all() == (self.length == 0)
        self.length += 1
        at = min(self.length, self.source.shape[1]) - 1
        logits = np.zeros((len(ids), 23))
        logits[:, EOS] = -np.inf  # no text ends before its source
        logits[np.arange(len(ids)), self.source[:, at]] = 30.0
        return logits

    def select(self, rows: list[int]) -> None:
        self.source = self.source[rows]

    def crop(self, length: int) -> None:
        raise NotImplementedError


@given(
    lines=st.lists(st.text(LETTERS, max_size=12) | st.just(" "), max_size=12),
    beams=st.integers(1, 4),
    batch_tokens=st.integers(1, 200),
)
def test_translations_are_in_the_order_of_lines(lines: list[str], beams: int, batch_tokens: int) -> None:
    model = Echo()
    found = translate_lines(model, TOKENIZER, lines, beams=beams, batch_tokens=batch_tokens)
    assert found == [line.strip() for line in lines]
    assert all(rows * length * beams <= batch_tokens or rows == 1 for rows, length in model.shapes)


def test_batches_have_sources_of_similar_length() -> None:
    model = Echo()
    translate_lines(model, TOKENIZER, ["a" * n for n in (1, 9, 2, 3, 3, 3, 7, 30, 1)], beams=2, batch_tokens=40)
    assert model.shapes == [(1, 31), (2, 10), (5, 4), (1, 2)]


def test_batch_equals_single_lines() -> None:
    lines = ["abcdefgh", "hgfedcba", "aaaabbbb", "qrsqrsqr"]
    wanted = []
    for ids in TOKENIZER.encode_all(lines):
        source = [*ids, EOS]
        how: dict[str, Any] = {
            "beams": 3,
            "max_new": max_translation_length(source, None),
            "eos": EOS,
            "length_penalty": 0.5,
        }
        best = beam_search(MODEL, [BOS], sources=[source], **how)
        wanted.append(TOKENIZER.decode(best[0].ids))
    assert translate_lines(MODEL, TOKENIZER, lines, beams=3, length_penalty=0.5) == wanted


def test_numpy_model_gives_the_same_translations() -> None:
    weights = random_weights(CONFIG, dtype="float64")
    lines = ["abc", "dea", "bcd"]
    ours = translate_lines(NumpyTransformer(CONFIG, weights), TOKENIZER, lines, beams=3)
    assert ours == translate_lines(MODEL, TOKENIZER, lines, beams=3, device="cpu")


def test_too_long_line_raises_or_is_truncated() -> None:
    model = torch_model(SHORT, random_weights(SHORT))
    lines = ["a" * 31, "b" * 32]  # with an eos: 32 and 33
    with pytest.raises(
        FileError, match=r"line 2 has 33 tokens including the end token, but the model reads at most 32"
    ):
        translate_lines(model, TOKENIZER, lines)
    sources = encode_sources(TOKENIZER, lines, 32, cut=True)
    assert sources.cut == 1
    assert [len(ids) for ids in sources.ids] == [32, 32]
    assert all(ids[-1] == EOS for ids in sources.ids)
    texts = translate(model, TOKENIZER, sources.ids, beams=2)  # the output fits the model too
    assert all(1 <= len(text) <= 32 for text in texts)


def test_tokenizer_without_eos_raises() -> None:
    class Endless(Spelling):
        eos = None  # type: ignore[assignment]

    with pytest.raises(ArgumentError, match="no control token <eos>"):
        translate_lines(MODEL, Endless(), ["a"])  # type: ignore[arg-type]


def test_no_lines() -> None:
    assert translate_lines(MODEL, TOKENIZER, []) == []
    assert translate_lines(MODEL, TOKENIZER, ["", ""]) == ["", ""]
