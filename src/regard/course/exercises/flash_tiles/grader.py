"""Calls and known mistakes of `flash-tiles`: tiles left of the diagonal, on it and right of it, from several states.

A call holds one tile, so that the whole matrix of scores exists nowhere.
"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import MASKED, edges, with_scores, zero_scores
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import EPS, FILLS, zero_scores_lost

D_V = 3
State = tuple[np.ndarray, np.ndarray, np.ndarray]


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def start(T: int) -> State:
        return np.full(T, -np.inf), np.zeros(T), np.zeros((T, D_V))

    def later(T: int, top: float = 0.0) -> State:
        """Some state after earlier tiles: the largest exp(score - top) is 1, so `total` is at least 1."""
        return top + numbers(rng, T), 1 + np.abs(numbers(rng, T)), numbers(rng, T, D_V)

    def tile(about: str, state: State, S: int, q_start: int, k_start: int, d_k: int = 5) -> Call:
        q, k, v = numbers(rng, len(state[0]), d_k), numbers(rng, S, d_k), numbers(rng, S, D_V)
        return call("add_tile", state, q, k, v, q_start, k_start, about=about)

    def edge(about: str, q: np.ndarray, k: np.ndarray, q_start: int, k_start: int = 0) -> Call:
        return call("add_tile", start(len(q)), q, k, numbers(rng, len(k), D_V), q_start, k_start, about=about)

    def far(about: str, top: float, score: float) -> Call:
        """A state whose top is `top`, and scores around `score`, exact in float32."""
        q, k = with_scores(rng, score + rng.integers(-3, 4, (2, 3)) / 2)
        _, total, output = later(2)
        return call("add_tile", (np.full(2, top), total, output), q, k, numbers(rng, 3, D_V), 9, 2, about=about)

    nothing = start(3)
    half_empty = tuple(np.concatenate(parts) for parts in zip(start(1), later(2), strict=True))
    return [
        tile("first", start(2), 4, 8, 3),
        tile("left", later(3), 4, 12, 4),
        tile("left", later(4), 2, 6, 3, d_k=3),
        tile("diagonal", start(4), 4, 4, 4),
        tile("diagonal", later(3), 5, 3, 3, d_k=7),
        tile("shifted", later(4), 3, 2, 4),
        tile("right", later(3), 4, 0, 3),
        tile("all-hidden", nothing, 4, 0, 3),
        tile("row-hidden", start(4), 3, 5, 7),
        tile("row-hidden", half_empty, 4, 2, 3),  # type: ignore[arg-type]
        tile("one-query", later(1), 5, 6, 4),
        tile("one-key", later(3), 1, 3, 4),
        tile("one-key", start(2), 1, 4, 4),
        far("rising", -1000.0, 1000.0),
        far("falling", 1000.0, -1000.0),
        *(edge(about, q, k, 9) for about, q, k, _ in edges(rng, 3, 4)),
        *(
            edge(about, *with_scores(rng, scores(rng, np.tri(3, 4, 1, dtype=bool))), 1)
            for about, scores in MASKED.items()
        ),
        edge("one-visible", *with_scores(rng, zero_scores(rng, 1, 4)), 0),
        call("finish", later(3), about="finish"),
        call("finish", later(2, top=1000.0), about="finish-far"),
        call("finish", later(2, top=-1000.0), about="finish-far"),
        call("finish", half_empty, about="finish-empty"),
        call("finish", nothing, about="finish-empty"),
    ]


SCALE = " / np.sqrt(q.shape[-1])"
HIDDEN = "k_start + np.arange(len(k)) > q_start + np.arange(len(q))[:, None]"
HIDE = "scores = np.where(hidden, -np.inf, scores)"
TOP = "np.maximum(top, scores.max(axis=-1))"
SAFE = "safe = np.where(new_top == -np.inf, 0.0, new_top)"
RESCALE = "rescale = np.exp(top - safe)"
EACH = "np.exp(scores - safe[:, None])"
TOTAL, OUTPUT = "total * rescale + e.sum(axis=-1)", "output * rescale[:, None] + e @ v"
RETURN = f"return new_top, {TOTAL}, {OUTPUT}"
FINISH = "return output / total[:, None], top + np.log(total)"
EMPTY = "total = np.where(total == 0, 1.0, total)"

MISTAKES = (
    Mistake("output-not-rescaled", (("output * rescale[:, None]", "output"),)),
    Mistake("total-not-rescaled", (("total * rescale", "total"),)),
    Mistake("nothing-rescaled", (("output * rescale[:, None]", "output"), ("total * rescale", "total"))),
    Mistake("rescaled-the-wrong-way", ((RESCALE, "rescale = np.where(top == -np.inf, 0.0, np.exp(safe - top))"),)),
    Mistake("state-forgotten", ((TOTAL, "e.sum(axis=-1)"), (OUTPUT, "e @ v"), (TOP, "scores.max(axis=-1)"))),
    Mistake("latest-top", ((TOP, "scores.max(axis=-1)"),)),
    Mistake("top-not-kept", ((RETURN, RETURN.replace("new_top", "top")),)),
    Mistake("one-top-for-all", ((TOP, "np.full(len(q), max(top.max(), scores.max()))"),)),
    Mistake(
        "divided-each-time",
        (
            (
                RETURN,
                f"total = {TOTAL}\n    return new_top, total, ({OUTPUT}) / np.where(total == 0, 1, total)[:, None]",
            ),
        ),
    ),
    Mistake("empty-is-nan", ((SAFE, "safe = new_top"),)),
    Mistake("empty-top-zero", ((RETURN, RETURN.replace("new_top", "safe")),)),
    Mistake("causal-missing", ((HIDDEN, "np.zeros((len(q), len(k)), dtype=bool)"),)),
    Mistake("not-itself", ((HIDDEN, HIDDEN.replace(" > ", " >= ")),)),
    Mistake("one-too-far", ((HIDDEN, HIDDEN.replace(" > ", " > 1 + ")),)),
    Mistake("future-only", ((HIDDEN, HIDDEN.replace(" > ", " < ")),)),
    Mistake("starts-unused", ((HIDDEN, "np.arange(len(k)) > np.arange(len(q))[:, None]"),)),
    Mistake("starts-swapped", ((HIDDEN, "q_start + np.arange(len(k)) > k_start + np.arange(len(q))[:, None]"),)),
    Mistake("lower-right", ((HIDDEN, "np.arange(len(k)) > len(k) - len(q) + np.arange(len(q))[:, None]"),)),
    Mistake("whole-tiles", ((HIDDEN, "np.full((len(q), len(k)), k_start > q_start)"),)),
    Mistake("zero-for-infinity", ((HIDE, "scores = np.where(hidden, 0, scores)"),)),
    *(Mistake("fill-too-high", ((HIDE, HIDE.replace("-np.inf", fill)),)) for fill in (*FILLS, "-1e9")),
    Mistake("masked-too-late", ((HIDE, ""), (EACH, f"np.where(hidden, 0, {EACH})"))),
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("divided-by-d-k", ((SCALE, " / q.shape[-1]"),)),
    Mistake("sqrt-tile", ((SCALE, " / np.sqrt(len(k))"),)),
    Mistake("zero-score-zero-weight", ((EACH, zero_scores_lost(EACH)),)),
    Mistake("total-counts-keys", (("e.sum(axis=-1)", "(~hidden).sum(axis=-1)"),)),
    Mistake("total-of-all-queries", (("e.sum(axis=-1)", "e.sum()"),)),
    Mistake("unstable", ((TOP, "0 * top"), ("np.exp(top - safe)", "1 + 0 * total"), (EACH, "np.exp(scores)"))),
    Mistake("not-divided", ((FINISH, "return output, top + np.log(total)"),)),
    Mistake(
        "lse-without-top", ((FINISH, "return output / total[:, None], np.where(top == -np.inf, top, np.log(total))"),)
    ),
    Mistake("lse-without-log", ((FINISH, "return output / total[:, None], top + total"),)),
    Mistake("sum-for-lse", ((FINISH, "return output / total[:, None], state[1]"),)),
    Mistake("top-for-lse", ((FINISH, "return output / total[:, None], top"),)),
    Mistake("finish-empty-nan", ((EMPTY, "pass"),)),
    Mistake(
        "finish-empty-lse",
        ((FINISH, "return output / total[:, None], np.where(top == -np.inf, 0, top) + np.log(total)"),),
    ),
    *(Mistake("eps-for-empty", ((EMPTY, f"total = total + {eps}"),)) for eps in (*EPS, "1e-5")),
    Mistake("k-start-unused", ((HIDDEN, HIDDEN.replace("k_start + ", "")),)),
    Mistake("q-start-unused", ((HIDDEN, HIDDEN.replace("q_start + ", "")),)),
    Mistake("tile-divided", (("e @ v", "e @ v / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)"),)),
    Mistake(
        "skipped-too-early",
        (
            (
                "top, total, output = state\n    scores",
                "top, total, output = state\n    if k_start > q_start:\n        return state\n    scores",
            ),
        ),
    ),
    Mistake(
        "output-kept-divided",
        (
            (
                RETURN,
                "new = total * rescale + e.sum(axis=-1)\n"
                "    mixed = output * (total * rescale)[:, None] + e @ v\n"
                "    return new_top, new, mixed / np.where(new == 0, 1, new)[:, None]",
            ),
            ("output / total[:, None]", "output"),
        ),
    ),
    Mistake(
        "fill-too-high",
        (
            (HIDE, HIDE.replace("-np.inf", "-1e9")),
            (SAFE, "safe = new_top"),
            (
                "top, total, output = state\n    scores",
                "top, total, output = state\n    if k_start >= q_start + len(q):\n        return state\n    scores",
            ),
        ),
    ),
)

GRADER = Grader(cases, MISTAKES)
