"""Examples for the tests of the explorer's panels: hand-made words, a wide head, a generation, a picture."""

import base64
import struct
import zlib
from typing import Any

import numpy as np

from explorer_pages import MadeUp, explain_answer
from regard import Record, Trace
from regard.hand_calculation.calculation import Calculation, calculate
from regard.views.explorer.answers import Answer
from regard.views.explorer.compared import ComparisonSource

EVERYTHING = {"rectangle": "exact", "explain": "full", "effect": True}
WORDS = ["the", "cat", "sat"]
Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
V = np.array([[10.0, 0.0], [0.0, 20.0], [30.0, 5.0]])
TEXT = "the cat sat on the mat because it was tired and the dog had left the warm mat to it".split()  # noqa: SIM905


def calculated(q: np.ndarray, k: np.ndarray, v: np.ndarray, words: list[str], *more: np.ndarray) -> MadeUp:
    """Causal heads over some words; the first one answers `explain` from its q, k and v."""
    mask = np.tril(np.ones((len(words), len(words)), bool))
    heads = [calculate(queries, k, v, mask, None).weights for queries in (q, *more)]
    requests = {"explain": lambda request: explain_answer(q, k, v, mask, request, words)}
    return MadeUp(Trace.from_weights(np.stack(heads), words), record={"can": EVERYTHING}, requests=requests)


def hand_made() -> MadeUp:
    """Three words with two numbers each, as in the tutorial."""
    return calculated(Q, K, V, WORDS)


def wide_head(E: int = 64) -> tuple[MadeUp, Calculation]:
    """Two heads of a usual width over twenty words, and the numbers of the first."""
    draw = np.random.default_rng(0)
    n = len(TEXT)
    k, v, noise = (draw.normal(size=(n, E)) for _ in range(3))
    q = noise + 0.5 * k
    calculation = calculate(q, k, v, np.tril(np.ones((n, n), bool)), None)
    return calculated(q, k, v, TEXT, draw.normal(size=(n, E))), calculation


SOURCE = ["the", "weather", "is", "nice"]
TARGET = ["<s>", "今天", "天气", "很", "好", "</s>"]
ALIGNED = [0, 1, 2, 3, 3]
NEXT = np.array([0.6, 0.25, 0.06, 0.05, 0.04])
"""The probabilities of a vocabulary of five tokens, of which two are not listed."""
STOPS = [0.5, 1.0, 2.0]


def translation() -> MadeUp:
    """A translation: cross-attention of five written tokens to four source words, with candidates and beams."""
    weights = np.full((5, 4), 0.02)
    weights[np.arange(5), ALIGNED] = 0.94
    candidates = [[[TARGET[i + 1], 0.6], ["的", 0.25], ["我", 0.06]] for i in range(5)]
    beams = [
        {"tokens": TARGET[1:], "score": -2.31, "sample": 0},
        {"tokens": ["今日", *TARGET[2:]], "score": -3.02, "sample": 1},
    ]
    temperatures = {"stops": STOPS, "logSums": [[float(np.log((NEXT ** (1 / T)).sum())) for T in STOPS]] * 5}
    generation = {"prompt": 1, "tokens": TARGET, "candidates": candidates, "beams": beams, "temperatures": temperatures}
    trace = Trace.from_weights(weights[None], TARGET[:-1], SOURCE, kind="cross")
    return MadeUp(trace, overview={"generation": generation})


def continuation() -> MadeUp:
    """A language model that continues a prompt of three tokens."""
    words = ["once", "upon", "a", "time", "there", "was"]
    weights = np.tril(np.ones((5, 5)))
    generation = {"prompt": 3, "tokens": words, "candidates": None, "beams": None}
    trace = Trace.from_weights((weights / weights.sum(1, keepdims=True))[None], words[:-1])
    return MadeUp(trace, overview={"generation": generation})


GRID = (2, 3)
READ = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.02, 0.02, 0.9, 0.02, 0.02, 0.02]])


def picture() -> MadeUp:
    """Two words that attend to the six patches of a picture."""
    trace = Trace.from_weights(READ[None], ["tree", "sun"], [f"patch {i}" for i in range(6)], kind="cross")

    def rectangle(request: dict[str, Any]) -> Answer:
        (top, bottom), (left, right) = request["rows"], request["cols"]
        about = {"rows": [top, bottom], "cols": [left, right], "high": 1, "wide": 1, "exact": True, "note": None}
        cells = READ[top:bottom, left:right].astype(np.float32)
        return Answer(about, {"cells": cells, "attending": np.ones(bottom - top, np.int32)})

    image: dict[str, Any] = {"picture": 0, "grid": list(GRID), "first": 0, "positions": None, "side": "keys"}
    image |= {"name": "a tree and the sun", "title": {"en": "", "zh": ""}, "extra": []}
    pictures = [{"width": 90, "height": 60, "data": png(90, 60)}]
    record = {"can": EVERYTHING, "images": [image]}
    return MadeUp(
        trace, overview={"pictures": pictures, "texts": None}, record=record, requests={"rectangle": rectangle}
    )


def png(width: int, height: int) -> str:
    """A picture of one colour gradient as a data URL."""
    shades = np.linspace(40, 220, width).astype(np.uint8)
    row = b"\0" + np.stack([shades, shades[::-1], np.full(width, 160, np.uint8)], axis=1).tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(row * height))
    return (
        "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")).decode()
    )


def patterned() -> MadeUp:
    """Three layers of four heads over a sentence, each with a pattern: previous token, first token, same word, near."""
    words = "the cat saw the dog and the cat ran away".split()  # noqa: SIM905
    n, draw = len(words), np.random.default_rng(0)
    at = np.arange(n)
    before = np.array([[j > 0 and words[j - 1] == words[i] for j in range(n)] for i in range(n)])
    scores = [
        6.0 * (at[:, None] - 1 == at),  # the token before
        5.0 * (at == 0)[None, :] + np.zeros((n, 1)),  # the first token
        6.0 * before,  # what followed the same word
        -0.7 * np.abs(at[:, None] - at),  # near tokens
    ]
    found: list[Record] = []
    for layer in range(3):
        noisy = np.stack([one / (1 + layer) + draw.normal(size=(n, n)) * 0.4 * layer for one in scores])
        powers = np.where(np.tri(n, dtype=bool), np.exp(noisy), 0)
        weights = powers / powers.sum(-1, keepdims=True)
        found += Trace.from_weights(weights, words, name=f"h.{layer}.attn", kind="decoder")
    return MadeUp(Trace(found))


def pooled() -> MadeUp:
    """A map of a long text: one cell is many tokens."""
    at = np.arange(64)
    powers = np.exp(-np.abs(at[:, None] - at) / 6) + 0.3 * (at % 16 == 3)
    powers = np.where(np.tri(64, dtype=bool), powers, 0)
    cells = (powers / powers.sum(-1, keepdims=True))[None, None]
    record = Record(shape=(1, 1, 32768, 32768), map=cells, name="h.0.attn", kind="decoder")
    return MadeUp(Trace([record]))


def compared() -> MadeUp:
    """Two traces side by side: a head that attends to the word before, and one that does so less."""
    first = patterned().trace
    second = Trace.from_weights(np.asarray(first[2].weights())[0], first[0].key_tokens[0], name="h.0.attn")  # type: ignore[index]
    source = ComparisonSource(Trace([first[0]]).compare(second))
    about = source.overview().about["compare"]
    requests = {"compare": lambda request: source.compare(**request)}
    return MadeUp(Trace([first[0]]), overview={"compare": about}, requests=requests)


def with_effects() -> MadeUp:
    """A head whose effect on the next token is known."""
    weights = np.array([[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0.3, 0.2]])

    def effect(request: dict[str, Any]) -> Answer:
        before, after = [["mat", 0.52], ["bed", 0.08]], [["bed", 0.38], ["mat", 0.22], ["sofa", 0.05]]
        return Answer({"before": before, "after": after, "kl": 0.312, "position": 2})

    trace = Trace.from_weights(weights[None], WORDS)
    return MadeUp(trace, record={"can": EVERYTHING}, requests={"effect": effect})


def from_the_future() -> MadeUp:
    """A file that a later version wrote."""
    return MadeUp(patterned().trace, overview={"version": 99})
