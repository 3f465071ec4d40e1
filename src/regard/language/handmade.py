"""One attention layer with weights set by hand, so that the function of each head is known.

A token enters as x = [word ; position], D = 128 wide. `word` is ±1/8 in each of 64 places, from a hash of the word: the
same word has the same vector, and the vectors of two words are nearly orthogonal. `position` is the sinusoid of the
2017 paper. What a head attends to is set by its W_q and W_k, which read only one half of x:

    previous word   W_q rotates the position back by one step, W_k keeps it: q_i · k_j is largest at j = i − 1.
                    Rotating each (sin, cos) pair by its own angle does that exactly.
    same word       W_q and W_k both keep the word: q_i · k_j is largest where the words are equal.
    first word      b_q is the position of the first word, the same for every query.
    all so far      W_q is 0: every score is 0, and softmax gives every visible key the same weight.

Every value is the word, and W_o averages the four heads. No training, no vocabulary, no meaning.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from regard.dispatch import attend
from regard.layer_checks import Projections
from regard.masks import Mask
from regard.records import See
from regard.reference import linear, merge_heads, split_heads
from regard.reference.positions import sinusoidal_positions
from regard.trace import Trace

NAME = "handmade.attention"
HEADS = ("previous-word", "same-word", "first-word", "all-so-far")
"""What each head attends to; the displayed names are the messages `head-…`."""

WIDTH = 64
"""Of each half of x, and of each head."""
SHARPNESS = 8.0
"""The factor of the scores: large enough that the best key gets 99 % of the weight."""


class LayerOutput(NamedTuple):
    """The output of the layer, x + attention (T D), and the Trace of its attention."""

    x: np.ndarray
    trace: Trace


def run_layer(words: Sequence[str], see: See | None = None) -> LayerOutput:
    """Run the layer on `words` with a causal mask.

    >>> record = run_layer(["I", "see", "what", "I", "see"]).trace[0]
    >>> [int(row.argmax()) for row in record.map[0, HEADS.index("previous-word")]]
    [0, 0, 1, 2, 3]
    """
    x = embed(words)
    p = projections()
    q = split_heads(linear(x, p.W_q, p.b_q), len(HEADS))[None]  # B H T E
    k = split_heads(linear(x, p.W_k), len(HEADS))[None]
    v = split_heads(linear(x, p.W_v), len(HEADS))[None]
    attended, record = attend(q, k, v, mask=Mask.causal(), see=see or See(qk=True, v=True))
    record = record.named(NAME, "decoder").with_tokens(list(words), list(words))
    return LayerOutput(x + linear(merge_heads(attended[0]), p.W_o), Trace([record]))


def embed(words: Sequence[str]) -> np.ndarray:
    """[word ; position] for each word, T D."""
    vectors = np.array([word_vector(word) for word in words]).reshape(len(words), WIDTH)
    return np.concatenate([vectors, sinusoidal_positions(len(words), WIDTH)], axis=1)


def word_vector(word: str) -> np.ndarray:
    """±1/8 in 64 places, from a hash of the word; upper and lower case are the same word."""
    digest = blake2b(word.casefold().encode("utf-8", "surrogatepass"), digest_size=WIDTH // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    vector: np.ndarray = np.where(bits == 1, 1.0, -1.0) / np.sqrt(WIDTH)
    return vector


@cache
def projections() -> Projections:
    """The weights of the layer, head by head as in the module's docstring."""
    zero, identity = np.zeros((WIDTH, WIDTH)), np.eye(WIDTH)
    word, position = np.vstack([identity, zero]), np.vstack([zero, identity])  # D E: each reads one half
    # attend divides by √E; multiplied here, so that SHARPNESS is in units of the scores before softmax.
    scale = SHARPNESS * np.sqrt(WIDTH)
    first = sinusoidal_positions(1, WIDTH)[0]
    W_q = [position @ step_back() * scale, word * 4 * scale, position * 0, position * 0]
    b_q = [0 * first, 0 * first, first * scale, 0 * first]
    W_k = [position, word, position, position]
    W_v = [word] * len(HEADS)
    W_o = np.vstack([word.T / len(HEADS)] * len(HEADS))
    return Projections(np.hstack(W_q), np.hstack(W_k), np.hstack(W_v), W_o, b_q=np.concatenate(b_q))


def step_back() -> np.ndarray:
    """The rotation R with position(p) R = position(p − 1), E E.

    Columns 2i and 2i + 1 of a position are sin(ω p) and cos(ω p), with ω = 10000^(−2i / E); one step back is
    sin(ω p − ω) = sin(ω p) cos ω − cos(ω p) sin ω, and cos(ω p − ω) = cos(ω p) cos ω + sin(ω p) sin ω.
    """
    sines, cosines = sinusoidal_positions(1, WIDTH, start=1)[0].reshape(-1, 2).T
    rotation = np.zeros((WIDTH, WIDTH))
    even = np.arange(0, WIDTH, 2)
    rotation[even, even] = rotation[even + 1, even + 1] = cosines
    rotation[even, even + 1] = sines
    rotation[even + 1, even] = -sines
    return rotation
