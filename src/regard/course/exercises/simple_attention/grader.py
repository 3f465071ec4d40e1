"""Calls and known mistakes of `simple-attention`: one head, two axes, different numbers of queries and keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import ATTENTION_MISTAKES, SCALE, SCORES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, S: int, d_k: int, d_v: int, about: str = "") -> Call:
        Q, K, V = numbers(rng, T, d_k), numbers(rng, S, d_k), numbers(rng, S, d_v, spread=2.0)
        return call("simple_attention", Q, K, V, about=about)

    return [
        drawn(3, 5, 4, 2),
        drawn(1, 4, 3, 2, about="one-query"),
        drawn(4, 4, 3, 2, about="as-many"),  # here swapped queries and keys raise no error
        drawn(2, 4, 3, 3, about="as-wide"),  # and here swapped keys and values
        drawn(3, 1, 2, 4, about="one-key"),
        call("simple_attention", *large_scores(rng, 3, 5), numbers(rng, 5, 2), about="large"),
        *(call("simple_attention", q, k, numbers(rng, 4, 5), about=about) for about, q, k, _ in edges(rng, 3, 4)),
    ]


COSINE = (
    "lengths = [np.linalg.norm(x, axis=-1, keepdims=True){eps} for x in (Q, K)]\n"
    "    scores = (Q / lengths[0]) @ (K / lengths[1]).T"
)

MISTAKES = (
    Mistake("root-of-queries", ((SCALE, " / np.sqrt(len(Q))"),)),
    *ATTENTION_MISTAKES,
    Mistake("mutates-input", ((SCORES, f"Q /= np.sqrt(K.shape[-1])\n    {SCORES.removesuffix(SCALE)}"),)),
    Mistake(
        "hard-coded",
        source="import numpy as np\n\n\ndef simple_attention(Q, K, V):\n    return np.array([[3.3488, 3.3024]])\n",
    ),
    *(Mistake("cosine", ((SCORES, COSINE.format(eps=eps)),)) for eps in ("", " + 1e-12")),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
