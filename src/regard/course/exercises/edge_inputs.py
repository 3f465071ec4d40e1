"""Edge cases of attention that random inputs never hit; each grader uses those that fit its function.

Each edge case is a matrix of scaled scores (T, S) with queries and keys that give exactly these scores: scores of
exactly 0, ties, only negative scores, equal keys, scores of ±1000, weights below 0.01; under a mask, hidden keys that
score far above the visible ones, and visible keys that score far below every common substitute for -inf. Large scores
differ by 50 or more: the softmax then gives 1 and 0, however float32 rounds the scores.

The names of the edge cases are message keys, "case-…".
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from regard.course.exercises.random_inputs import numbers

WIDTH = 4
"""d_k: √4 = 2, so that the division is exact. It allows at most four keys."""

HIGH = 1000.0
LOW = -20_000.0
"""Below -20, -100, -1e4: one of these in place of -inf would exceed a visible key with this score."""

Rng = np.random.Generator


class Edge(NamedTuple):
    """Queries (T, 4) and keys (S, 4) of one head; `visible` (T, S), True = visible, if the case has a mask."""

    about: str
    q: np.ndarray
    k: np.ndarray
    visible: np.ndarray | None = None


def with_scores(rng: Rng, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of width 4 with q kᵀ / √4 = scores, exactly.

    >>> q, k = with_scores(np.random.default_rng(0), np.array([[0.0, 1.5, -1.0]]))
    >>> (q @ k.T / 2).tolist()
    [[0.0, 1.5, -1.0]]
    """
    T, S = scores.shape
    columns = rng.permutation(WIDTH)[:S]  # each key reads one column of the queries
    q, k = numbers(rng, T, WIDTH), np.zeros((S, WIDTH))
    q[:, columns], k[np.arange(S), columns] = scores, 2.0
    return q, k


# --- without a mask -----------------------------------------------------------------------------------------


def _rows(rng: Rng, T: int, S: int, *rows: tuple[float, ...]) -> np.ndarray:
    """T rows that alternate between `rows`, each shortened to S numbers and shuffled."""
    return np.array([rng.permutation(rows[t % len(rows)][:S]) for t in range(T)])


def zero_scores(rng: Rng, T: int, S: int) -> np.ndarray:
    """Scores of exactly 0 among others; every third row is all 0."""
    return _rows(rng, T, S, (0.0, 1.5, -1.0, 0.0), (-0.5, 0.0, 1.0, 2.0), (0.0, 0.0, 0.0, 0.0))


def ties(rng: Rng, T: int, S: int) -> np.ndarray:
    """Two keys share the largest score."""
    return _rows(rng, T, S, (1.5, 1.5, -1.0, 0.5), (-0.5, -0.5, -2.0, -1.0))


def negative(rng: Rng, T: int, S: int) -> np.ndarray:
    """Every score is below 0."""
    return _rows(rng, T, S, (-0.5, -1.5, -2.5, -1.0), (-3.0, -2.0, -4.5, -2.5))


def extreme(_: Rng, T: int, S: int) -> np.ndarray:
    """±1000 in one row, only values near -1000 in the next.

    Rolled instead of shuffled: whatever column or mean is subtracted in place of the maximum, some row overflows.
    """
    rows = (-HIGH, 0.0, HIGH, 900.0)[:S], (-HIGH, -900.0, -950.0, -1050.0)[:S]
    return np.array([np.roll(rows[t % 2], t) for t in range(T)])


def far_apart(rng: Rng, T: int, S: int) -> np.ndarray:
    """Most weights are between 0.01 and 0.000001: small, but not 0."""
    return _rows(rng, T, S, (0.0, -5.0, -7.0, -9.0), (4.0, -3.0, -6.0, -10.0))


SCORES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "zero-scores": zero_scores,
    "ties": ties,
    "negative": negative,
    "extreme": extreme,
    "small-weights": far_apart,
}


def edges(rng: Rng, T: int, S: int) -> Iterator[Edge]:
    """Every edge case without a mask, for T queries and S keys (2 to 4)."""
    for about, scores in SCORES.items():
        yield Edge(about, *with_scores(rng, scores(rng, T, S)))
    yield Edge("equal-keys", numbers(rng, T, WIDTH), np.tile(numbers(rng, 1, WIDTH), (S, 1)))


def heads(rng: Rng, H: int, T: int, S: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The same for H heads, each with different numbers: queries (H, T, 4) and keys (H, S, 4)."""
    for each in zip(*(edges(rng, T, S) for _ in range(H)), strict=True):
        yield each[0].about, np.stack([edge.q for edge in each]), np.stack([edge.k for edge in each])


def merged(heads: np.ndarray) -> np.ndarray:
    """Heads (H, T, E) concatenated: (T, H · E)."""
    return np.concatenate(list(heads), axis=-1)


# --- under a mask -------------------------------------------------------------------------------------------


def hidden_above(rng: Rng, visible: np.ndarray) -> np.ndarray:
    """Hidden keys score 1000, visible ones about 0: a softmax before the mask gives the visible ones weight 0."""
    return np.where(visible, rng.integers(-3, 4, visible.shape) / 2, HIGH)


def visible_below(rng: Rng, visible: np.ndarray) -> np.ndarray:
    """Visible keys score -20,000 and less, hidden ones 0."""
    steps = rng.permuted(np.tile(np.arange(visible.shape[1]), (len(visible), 1)), axis=1)
    return np.where(visible, LOW - 500.0 * steps, 0.0)


MASKED: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "hidden-above": hidden_above,
    "visible-below": visible_below,
}


def some_visible(rng: Rng, T: int, S: int) -> np.ndarray:
    """A mask (T, S): each row has at least one visible and one hidden key; rows differ."""
    shown = [rng.permutation(S) < 1 + (t + 1) % max(S - 1, 1) for t in range(T)]
    return np.array(shown)


def masked_edges(rng: Rng, T: int, S: int, *, empty_rows: bool = False) -> Iterator[Edge]:
    """Every edge case with a mask (T, S); with `empty_rows` also fully masked queries."""
    for about, scores in MASKED.items():
        visible = some_visible(rng, T, S)
        yield Edge(about, *with_scores(rng, scores(rng, visible)), visible)

    def plain() -> tuple[np.ndarray, np.ndarray]:
        return with_scores(rng, zero_scores(rng, T, S))

    yield Edge("nothing-hidden", *plain(), np.ones((T, S), dtype=bool))
    yield Edge("one-visible", *plain(), np.array([rng.permutation(S) == 0 for _ in range(T)]))
    if empty_rows:
        row = some_visible(rng, T, S)
        row[rng.integers(T)] = False
        yield Edge("row-hidden", *with_scores(rng, hidden_above(rng, row)), row)
        yield Edge("all-hidden", *plain(), np.zeros((T, S), dtype=bool))


# --- inside a module ----------------------------------------------------------------------------------------


class Embedded(NamedTuple):
    """Tokens and projections with given scores: x (B, T, D), Q = x W_q and K = x W_k with W (D, D)."""

    x: np.ndarray
    W_q: np.ndarray
    W_k: np.ndarray


def embedded(rng: Rng, scores: np.ndarray) -> Embedded:
    """Self-attention with the scores (B, H, T, T): each one-hot token selects a row of W; B · T ≤ D = 4 H.

    >>> edge = embedded(np.random.default_rng(0), np.zeros((1, 1, 2, 2)))
    >>> (edge.x[0] @ edge.W_q @ (edge.x[0] @ edge.W_k).T).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    B, H, T, _ = scores.shape
    D = WIDTH * H
    x = np.eye(D)[: B * T].reshape(B, T, D)
    W_q, W_k = numbers(rng, D, D), numbers(rng, D, D)
    for b, h in np.ndindex(B, H):
        rows, columns = slice(b * T, (b + 1) * T), slice(h * WIDTH, (h + 1) * WIDTH)
        W_q[rows, columns], W_k[rows, columns] = with_scores(rng, scores[b, h])
    return Embedded(x, W_q, W_k)


def embedded_edges(rng: Rng, H: int, T: int, B: int = 1) -> Iterator[tuple[str, Embedded]]:
    """Self-attention on every edge case without a mask."""
    for about, scores in SCORES.items():
        drawn = [[scores(rng, T, T) for _ in range(H)] for _ in range(B)]
        yield about, embedded(rng, np.array(drawn))


def masked_embedded(rng: Rng, H: int, visible: np.ndarray) -> Iterator[tuple[str, Embedded]]:
    """Self-attention on the edge cases with a mask (B, T, T), different for each sample."""
    for about, scores in MASKED.items():
        drawn = [[scores(rng, each) for _ in range(H)] for each in visible]
        yield about, embedded(rng, np.array(drawn))
