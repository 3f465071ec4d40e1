"""One attention layer of a Transformer whose weights are built by hand, so that what each head does is known.

A token enters as x = [word ; position], D = 128 wide. `word` is ±1/8 in each of 64 places, read off a hash of
the word: the same word has the same vector, two words have nearly nothing in common. `position` is the 2017
paper's sinusoid. What a head looks for is written into its W_q and W_k, which read one half of x only:

    previous word   W_q turns the position back by one step, W_k leaves it: q_i · k_j is largest at j = i − 1.
                    Turning each (sin, cos) pair by its own angle does that exactly; it is a plain rotation.
    same word       W_q and W_k both pass the word on: q_i · k_j is largest where the words are equal.
    first word      b_q is the position of the first word, for every query alike.
    all so far      W_q is 0: every score is 0, and softmax gives everything that may be seen the same weight.

Every value is the word, and W_o averages the four heads back into it. No training, no vocabulary, no meaning.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from regard.dispatch import attend
from regard.masks import Mask
from regard.projections import Projections
from regard.records import See
from regard.reference import linear, merge_heads, split_heads
from regard.reference.positions import sinusoidal_positions
from regard.trace import Trace

NAME = "handmade.attention"
HEADS = ("previous-word", "same-word", "first-word", "all-so-far")
"""What each head does; `words` has the names that people read, under `head-…`."""

WIDTH = 64
"""Of each half of x, and of each head."""
SHARP = 8.0
"""What a score is multiplied by: enough that the best key gets 99 % of the weight."""


class Seen(NamedTuple):
    """What the layer made of some words: x + attention, T D, and the Trace of where each head looked."""

    x: np.ndarray
    trace: Trace


def look(words: Sequence[str], see: See | None = None) -> Seen:
    """Run the layer on `words`; each looks at itself and at what is before it.

    >>> record = look(["I", "see", "what", "I", "see"]).trace[0]
    >>> [int(row.argmax()) for row in record.map[0, HEADS.index("previous-word")]]
    [0, 0, 1, 2, 3]
    """
    x = embed(words)
    p = projections()
    q = split_heads(linear(x, p.W_q, p.b_q), len(HEADS))[None]  # B H T E
    k = split_heads(linear(x, p.W_k), len(HEADS))[None]
    v = split_heads(linear(x, p.W_v), len(HEADS))[None]
    attended, record = attend(q, k, v, mask=Mask.causal(), see=see or See(qk=True))
    record = record.named(NAME, "decoder").with_tokens(list(words), list(words))
    return Seen(x + linear(merge_heads(attended[0]), p.W_o), Trace([record]))


def embed(words: Sequence[str]) -> np.ndarray:
    """[word ; position] for each word, T D."""
    vectors = np.array([word_vector(word) for word in words]).reshape(len(words), WIDTH)
    return np.concatenate([vectors, sinusoidal_positions(len(words), WIDTH)], axis=1)


def word_vector(word: str) -> np.ndarray:
    """64 signs from a hash of the word, of length 1; upper and lower case are one word."""
    digest = blake2b(word.casefold().encode("utf-8", "surrogatepass"), digest_size=WIDTH // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))
    vector: np.ndarray = np.where(bits == 1, 1.0, -1.0) / np.sqrt(WIDTH)
    return vector


@cache
def projections() -> Projections:
    """The weights of the layer, head by head as the module's docstring says."""
    nothing, itself = np.zeros((WIDTH, WIDTH)), np.eye(WIDTH)
    word, position = np.vstack([itself, nothing]), np.vstack([nothing, itself])  # D E: what reads which half
    # attend divides by √E; undone here, so that SHARP is in units of the scores that softmax sees.
    sharp = SHARP * np.sqrt(WIDTH)
    first = sinusoidal_positions(1, WIDTH)[0]
    W_q = [position @ step_back() * sharp, word * 4 * sharp, position * 0, position * 0]
    b_q = [0 * first, 0 * first, first * sharp, 0 * first]
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
    turned = np.zeros((WIDTH, WIDTH))
    even = np.arange(0, WIDTH, 2)
    turned[even, even] = turned[even + 1, even + 1] = cosines
    turned[even, even + 1] = sines
    turned[even + 1, even] = -sines
    return turned
