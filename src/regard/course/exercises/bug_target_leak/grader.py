"""Calls and known mistakes of `bug-target-leak`. Only `training_loss` is called; one call repeats a token."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers

SHAPES = {"embedding": (6, 3), "W_q": (3, 2), "W_k": (3, 2), "W_v": (3, 5), "W_o": (5, 3)}
OTHERS = {"embedding": (9, 4), "W_q": (4, 3), "W_k": (4, 3), "W_v": (4, 2), "W_o": (2, 4)}


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def loss(B: int, T: int, about: str) -> Call:
        ids = np.array([rng.permutation(6)[:T] for _ in range(B)])
        p = {name: numbers(rng, *shape, spread=0.8) for name, shape in SHAPES.items()}
        return call("training_loss", ids, p, about=about)

    def other(ids: np.ndarray, about: str, **given: float) -> Call:
        """Other sizes; a parameter named in `given` is filled with its number."""
        p = {name: numbers(rng, *shape, spread=0.8) for name, shape in OTHERS.items()}
        p |= {name: np.full(OTHERS[name], value) for name, value in given.items()}
        return call("training_loss", ids, p, about=about)

    return [
        loss(2, 4, "two"),
        loss(1, 5, "one"),
        loss(3, 2, "short"),
        loss(2, 6, "long"),
        other(np.array([rng.permutation(9)[:6] for _ in range(5)]), "all-different"),
        other(rng.integers(0, 9, (1, 2)).repeat(2, axis=1), "repeated"),
        other(np.array([rng.permutation(9)[:4]]), "zero-scores", W_q=0.0),
        other(np.array([rng.permutation(9)[:3] for _ in range(3)]), "equal-keys", W_k=0.5),
    ]


PAIR = "inputs, targets = ids[:, :-1], ids[:, 1:]"
TRIANGLE = "np.tril(np.ones(scores.shape[-2:], dtype=bool))"
RETURN = "return cross_entropy(logits_of(inputs, p), targets)"
START = "inputs, targets = np.concatenate([np.zeros_like(ids[:, :1]), ids[:, :-1]], axis=1), ids"
AS_IT_CAME = (PAIR, "inputs, targets = ids, ids")
STRICT = (TRIANGLE, "np.tril(np.ones(scores.shape[-2:], dtype=bool), k=-1)")

MISTAKES = (
    Mistake("untouched", (AS_IT_CAME,)),
    Mistake("cut-not-shifted", ((PAIR, "inputs, targets = ids[:, :-1], ids[:, :-1]"),)),
    Mistake("cut-in-front", ((PAIR, "inputs, targets = ids[:, 1:], ids[:, 1:]"),)),
    Mistake("cut-in-front", ((RETURN, "return cross_entropy(logits_of(ids, p)[:, 1:], targets)"),)),
    Mistake("shifted-the-wrong-way", ((PAIR, "inputs, targets = ids[:, 1:], ids[:, :-1]"),)),
    Mistake("shifted-the-wrong-way", ((RETURN, "return cross_entropy(logits_of(ids, p)[:, 1:], ids[:, :-1])"),)),
    Mistake("two-ahead", ((PAIR, "inputs, targets = ids[:, :-2], ids[:, 2:]"),)),
    Mistake("wrapped-round", ((PAIR, "inputs, targets = ids, np.roll(ids, -1, axis=1)"),)),
    Mistake("start-token", ((PAIR, START),)),
    Mistake("sentences-shifted", ((PAIR, "inputs, targets = ids[:-1], ids[1:]"),)),
    Mistake("residual-removed", (AS_IT_CAME, ("x = x + causal", "x = causal"))),
    Mistake("hidden-from-itself", (AS_IT_CAME, STRICT, ("-np.inf", "-1e9"))),
    Mistake("mask-lost", ((TRIANGLE, "np.ones(scores.shape[-2:], dtype=bool)"),)),
    Mistake("mask-one-too-far", ((TRIANGLE, "np.tril(np.ones(scores.shape[-2:], dtype=bool), k=1)"),)),
    Mistake("mask-upside-down", ((TRIANGLE, "np.triu(np.ones(scores.shape[-2:], dtype=bool))"),)),
    Mistake("not-itself", (STRICT,)),
    Mistake("last-token-only", ((RETURN, "return cross_entropy(logits_of(inputs, p)[:, -1:], targets[:, -1:])"),)),
    Mistake("summed", ((RETURN, f"{RETURN} * targets.size"),)),
)

GRADER = Grader(cases, MISTAKES)
