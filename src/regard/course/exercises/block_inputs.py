"""Weights of a pre-norm block by the names of the bundled translator, and inputs with given attention scores.

A weight is stored as in `nn.Linear`, (out, in). The names are those of one block of the translator without
"encoder.layers.0.".
"""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.course.exercises.edge_inputs import MASKED, SCORES, WIDTH, with_scores
from regard.course.exercises.random_inputs import State, linear, norm, numbers

Sizes = tuple[int, int, int]
"""d_model, n_heads, d_ff. In most calls the number of heads differs from the width of a head."""

HEADS = 2
D_MODEL = HEADS * WIDTH
SHRUNK = 1 / np.sqrt(1 + 1e-5)
"""What layer norm makes of 1 in a row with mean 0 and variance 1."""

Rng = np.random.Generator


def block_weights(rng: Rng, sizes: Sizes, attentions: Sequence[str] = ("self_attention",)) -> State:
    """Every weight and bias of a block, different from ones and zeros."""
    d_model, _, d_ff = sizes
    parts = [norm(rng, f"{part}_norm", d_model) for part in (*attentions, "feed_forward")]
    parts += [linear(rng, f"{part}.{letter}_proj", d_model, d_model) for part in attentions for letter in "qkvo"]
    parts += [linear(rng, "feed_forward.up", d_model, d_ff), linear(rng, "feed_forward.down", d_ff, d_model)]
    return {name: value for part in parts for name, value in part.items()}


def signs(B: int, T: int) -> np.ndarray:
    """x (B, T, 8) of ±1, B · T ≤ 7: rows with mean 0 and variance 1, each orthogonal to the others.

    >>> x = signs(2, 3).reshape(6, 8)
    >>> bool((x @ x.T == 8 * np.eye(6)).all()), float(abs(x.mean(axis=-1)).max())
    (True, 0.0)
    """
    one = np.array([[1.0, 1.0], [1.0, -1.0]])
    return np.kron(np.kron(one, one), one)[1 : 1 + B * T].reshape(B, T, D_MODEL)


def _plain_norm() -> State:
    return {"self_attention_norm.weight": np.ones(D_MODEL), "self_attention_norm.bias": np.zeros(D_MODEL)}


def self_attention_scores(rng: Rng, scores: np.ndarray) -> tuple[np.ndarray, State]:
    """x (B, T, 8) of ±1, and the weights that give it the scores (B, 2, T, T) after the layer norm."""
    B, H, T, _ = scores.shape
    x = signs(B, T)
    weights = {letter: np.zeros((D_MODEL, D_MODEL)) for letter in "qk"}
    for b, h in np.ndindex(B, H):
        rows = slice(h * WIDTH, (h + 1) * WIDTH)
        for letter, wanted in zip("qk", with_scores(rng, scores[b, h]), strict=True):
            weights[letter][rows] += wanted.T @ x[b] / (D_MODEL * SHRUNK)
    given = {f"self_attention.{letter}_proj.weight": value for letter, value in weights.items()}
    return x, given | {f"self_attention.{letter}_proj.bias": np.zeros(D_MODEL) for letter in "qk"} | _plain_norm()


def exact_zeros(rng: Rng, T: int) -> tuple[np.ndarray, State]:
    """x (1, T, 8), and weights with which half of the scores are exactly 0, whatever the layer norm rounds.

    Every query is the same, and a key is the sum of two numbers that are equal or opposite.
    """
    at = rng.integers(WIDTH)
    q, k = np.zeros(D_MODEL), np.zeros((D_MODEL, D_MODEL))
    q[[at, WIDTH + at]] = 1.5
    k[at, :2], k[WIDTH + at, [0, 2]] = 0.5, -0.75
    given = {"q_proj.weight": np.zeros((D_MODEL, D_MODEL)), "q_proj.bias": q}
    given |= {"k_proj.weight": k, "k_proj.bias": np.zeros(D_MODEL)}
    return signs(1, T), {f"self_attention.{name}": value for name, value in given.items()} | _plain_norm()


def scored(rng: Rng) -> Iterator[tuple[str, np.ndarray, State]]:
    """x (1, 4, 8) and weights for every edge case without a mask."""
    for about, scores in SCORES.items():
        yield about, *self_attention_scores(rng, np.array([[scores(rng, 4, 4) for _ in range(HEADS)]]))
    yield "zero-scores", *exact_zeros(rng, 4)
    x, given = self_attention_scores(rng, np.zeros((1, HEADS, 4, 4)))
    blank = {f"self_attention.{letter}_proj.weight": np.zeros((D_MODEL, D_MODEL)) for letter in "qk"}
    yield "zero-scores", x, given | blank


def masked_scored(rng: Rng, visible: np.ndarray) -> Iterator[tuple[str, np.ndarray, State]]:
    """x (B, T, 8) and weights for the edge cases with a mask (B, T, T)."""
    for about, scores in MASKED.items():
        drawn = np.array([[scores(rng, each) for _ in range(HEADS)] for each in visible])
        yield about, *self_attention_scores(rng, drawn)


def cross_attention_scores(rng: Rng, scores: np.ndarray) -> tuple[np.ndarray, State]:
    """A memory (1, 4, 8) of one-hot rows, and weights that give its keys these scores (1, 4) for every query."""
    q, k = with_scores(rng, scores)
    W_k = np.zeros((D_MODEL, D_MODEL))
    W_k[: len(k), :WIDTH] = W_k[: len(k), WIDTH:] = k
    given = {"q_proj.weight": np.zeros_like(W_k), "q_proj.bias": np.tile(q[0], HEADS)}
    given |= {"k_proj.weight": W_k.T, "k_proj.bias": np.zeros(D_MODEL)}
    return np.eye(D_MODEL)[None, : len(k)], {f"cross_attention.{name}": value for name, value in given.items()}


def drawn(rng: Rng, B: int, T: int, d_model: int, spread: float = 1.0) -> np.ndarray:
    """x (B, T, d_model)."""
    return numbers(rng, B, T, d_model, spread=spread)
