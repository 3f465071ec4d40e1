"""Calls and known mistakes of `cross-attention`: two sequences of different lengths, equal and different widths."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import ATTENTION_MISTAKES, RETURN, SCALE


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, S: int, widths: tuple[int, int], d_k: int, d_v: int, about: str = "") -> Call:
        d_x, d_memory = widths
        # Spread chosen for scores of order 1 at any width.
        W_q, W_k = numbers(rng, d_x, d_k, spread=d_x**-0.5), numbers(rng, d_memory, d_k, spread=d_memory**-0.5)
        x, memory, W_v = numbers(rng, T, d_x), numbers(rng, S, d_memory), numbers(rng, d_memory, d_v)
        return call("cross_attention", x, memory, W_q, W_k, W_v, about=about)

    def with_keys(q: np.ndarray, k: np.ndarray, about: str) -> Call:
        """One-hot rows of memory: each selects a key from W_k and a value from W_v."""
        W_k = np.concatenate([k, numbers(rng, 5 - len(k), 4)])
        return call("cross_attention", q, np.eye(5)[: len(k)], np.eye(4), W_k, numbers(rng, 5, 2), about=about)

    x, memory = large_scores(rng, 3, 2)
    return [
        drawn(3, 5, (4, 4), 2, 3),
        drawn(4, 2, (5, 5), 3, 3, about="long-target"),
        drawn(2, 4, (3, 5), 2, 4, about="other-width"),
        drawn(4, 4, (3, 3), 3, 2, about="as-long"),  # here using x in place of memory raises no error
        drawn(3, 5, (2, 2), 2, 2, about="square-weights"),
        drawn(1, 3, (4, 4), 3, 2, about="one-query"),
        call("cross_attention", x, memory, np.eye(4), np.eye(4), numbers(rng, 4, 3), about="large"),
        drawn(6, 1, (3, 2), 4, 5, about="one-key"),
        *(with_keys(q, k, about) for about, q, k, _ in edges(rng, 3, 4)),
    ]


ROLES = "Q = x @ W_q  # T d_k\n    K = memory @ W_k  # S d_k\n    V = memory @ W_v"

MISTAKES = (
    Mistake("roles-swapped", ((ROLES, "Q = memory @ W_q\n    K = x @ W_k\n    V = x @ W_v"),)),
    Mistake("root-of-input", ((SCALE, " / np.sqrt(x.shape[-1])"),)),
    Mistake("root-of-input", ((SCALE, " / np.sqrt(memory.shape[-1])"),)),
    Mistake("root-of-queries", ((SCALE, " / np.sqrt(len(x))"),)),
    *(mistake for mistake in ATTENTION_MISTAKES if mistake.id != "keys-ask"),
    Mistake("only-x", (("memory @", "x @"),)),
    Mistake("only-memory", (("x @ W_q", "memory @ W_q"),)),
    Mistake("values-from-x", (("memory @ W_v", "x @ W_v"),)),
    Mistake("keys-from-x", (("memory @ W_k", "x @ W_k"),)),
    Mistake("weights-swapped", (("x @ W_q", "x @ W_k"), ("memory @ W_k", "memory @ W_q"))),
    Mistake("transposed-weights", (("W_q  #", "W_q.T  #"), ("W_k  #", "W_k.T  #"), ("W_v  #", "W_v.T  #"))),
    Mistake("residual", ((RETURN, "return x + weights @ V"),)),
    Mistake("mutates-input", (("Q = x", "x /= np.sqrt(W_q.shape[-1])\n    Q = x"), (SCALE, ""))),
    Mistake("hard-coded", ((RETURN, "return np.array([[6.0], [4.9815]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
