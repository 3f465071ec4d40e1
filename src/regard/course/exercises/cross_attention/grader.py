"""Calls and known slips of `cross-attention`: two texts of different length, and of the same and different width."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import numbers, towering
from regard.course.exercises.shared_slips import ATTENTION_SLIPS, RETURN, SCALE


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, S: int, widths: tuple[int, int], d_k: int, d_v: int, about: str = "") -> Call:
        d_x, d_memory = widths
        # Narrow enough for scores of order 1, whatever the widths.
        W_q, W_k = numbers(rng, d_x, d_k, spread=d_x**-0.5), numbers(rng, d_memory, d_k, spread=d_memory**-0.5)
        x, memory, W_v = numbers(rng, T, d_x), numbers(rng, S, d_memory), numbers(rng, d_memory, d_v)
        return call("cross_attention", x, memory, W_q, W_k, W_v, about=about)

    def asked(q: np.ndarray, k: np.ndarray, about: str) -> Call:
        """One-hot rows of memory: each picks a key from W_k and a value from W_v."""
        W_k = np.concatenate([k, numbers(rng, 5 - len(k), 4)])
        return call("cross_attention", q, np.eye(5)[: len(k)], np.eye(4), W_k, numbers(rng, 5, 2), about=about)

    x, memory = towering(rng, 3, 2)
    return [
        drawn(3, 5, (4, 4), 2, 3),
        drawn(4, 2, (5, 5), 3, 3, about="long-target"),
        drawn(2, 4, (3, 5), 2, 4, about="other-width"),
        drawn(4, 4, (3, 3), 3, 2, about="as-long"),  # here x in the place of memory gives numbers, not an error
        drawn(3, 5, (2, 2), 2, 2, about="square-weights"),
        drawn(1, 3, (4, 4), 3, 2, about="one-query"),
        call("cross_attention", x, memory, np.eye(4), np.eye(4), numbers(rng, 4, 3), about="large"),
        drawn(6, 1, (3, 2), 4, 5, about="one-key"),
        *(asked(q, k, about) for about, q, k, _ in edges(rng, 3, 4)),
    ]


ROLES = "Q = x @ W_q  # T d_k\n    K = memory @ W_k  # S d_k\n    V = memory @ W_v"

SLIPS = (
    Slip("roles-swapped", ((ROLES, "Q = memory @ W_q\n    K = x @ W_k\n    V = x @ W_v"),)),
    Slip("root-of-input", ((SCALE, " / np.sqrt(x.shape[-1])"),)),
    Slip("root-of-input", ((SCALE, " / np.sqrt(memory.shape[-1])"),)),
    Slip("root-of-queries", ((SCALE, " / np.sqrt(len(x))"),)),
    *(slip for slip in ATTENTION_SLIPS if slip.id != "keys-ask"),
    Slip("only-x", (("memory @", "x @"),)),
    Slip("only-memory", (("x @ W_q", "memory @ W_q"),)),
    Slip("values-from-x", (("memory @ W_v", "x @ W_v"),)),
    Slip("keys-from-x", (("memory @ W_k", "x @ W_k"),)),
    Slip("weights-swapped", (("x @ W_q", "x @ W_k"), ("memory @ W_k", "memory @ W_q"))),
    Slip("transposed-weights", (("W_q  #", "W_q.T  #"), ("W_k  #", "W_k.T  #"), ("W_v  #", "W_v.T  #"))),
    Slip("residual", ((RETURN, "return x + weights @ V"),)),
    Slip("mutates-input", (("Q = x", "x /= np.sqrt(W_q.shape[-1])\n    Q = x"), (SCALE, ""))),
    Slip("hard-coded", ((RETURN, "return np.array([[6.0], [4.9815]])"),)),
)

GRADER = Grader(cases, SLIPS, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
