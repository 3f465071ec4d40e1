"""Calls and known mistakes of `self-attention`: the projections alone, then attention within one sequence."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import ATTENTION_MISTAKES, RETURN, SCALE, SCORES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def projected(T: int, d_model: int, d_k: int, d_v: int, about: str) -> Call:
        weights = (numbers(rng, d_model, width) for width in (d_k, d_k, d_v))
        return call("compute_qkv", numbers(rng, T, d_model), *weights, about=about)

    def attended(T: int, d_k: int, d_v: int, about: str = "") -> Call:
        return call("self_attention", numbers(rng, T, d_k), numbers(rng, T, d_k), numbers(rng, T, d_v), about=about)

    return [
        projected(3, 4, 2, 5, about="projections"),
        projected(2, 3, 3, 3, about="square-weights"),  # here W and its transpose both fit
        attended(5, 3, 2),
        attended(2, 4, 4, about="as-wide"),  # here swapped keys and values raise no error
        attended(1, 3, 2, about="one-position"),
        attended(4, 2, 3, about="wider-values"),
        call("self_attention", *large_scores(rng, 3, 3), numbers(rng, 3, 2), about="large"),
        *(call("self_attention", q, k, numbers(rng, 3, 2), about=about) for about, q, k, _ in edges(rng, 3, 3)),
    ]


PROJECT = "return X @ W_q, X @ W_k, X @ W_v"

MISTAKES = (
    *ATTENTION_MISTAKES,
    Mistake("transposed-weights", ((PROJECT, "return X @ W_q.T, X @ W_k.T, X @ W_v.T"),)),
    Mistake("wrong-order", ((PROJECT, "return X @ W_k, X @ W_q, X @ W_v"),)),
    Mistake("one-projection", ((PROJECT, "return X @ W_q, X @ W_q, X @ W_v"),)),
    Mistake("values-not-projected", ((PROJECT, "return X @ W_q, X @ W_k, X"),)),
    Mistake("mutates-input", ((SCORES, f"Q /= np.sqrt(K.shape[-1])\n    {SCORES.removesuffix(SCALE)}"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[1.660477, 2.660477], [2.339523, 3.339523]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
