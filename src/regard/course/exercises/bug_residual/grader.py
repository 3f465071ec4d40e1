"""Calls and known mistakes of `bug-residual`. Only `block` is called; gamma and beta differ from one and zero."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def block(x: np.ndarray, about: str, d_model: int = 4, d_k: int = 2, **given: np.ndarray) -> Call:
        shapes = {
            "W_q": (d_model, d_k),
            "W_k": (d_model, d_k),
            "W_v": (d_model, 3),
            "W_o": (3, d_model),
            "W_1": (d_model, 7),
            "b_1": (7,),
            "W_2": (7, d_model),
            "b_2": (d_model,),
        }
        p = {name: numbers(rng, *shape, spread=0.7) for name, shape in shapes.items()}
        for n in (1, 2):
            p[f"gamma_{n}"] = 1 + numbers(rng, d_model, spread=0.4)
            p[f"beta_{n}"] = numbers(rng, d_model, spread=0.4)
        return call("block", x, p | given, about=about)

    return [
        block(numbers(rng, 3, 4), "plain"),
        block(numbers(rng, 1, 4), "one-token"),
        block(numbers(rng, 5, 4, spread=10.0) + 30, "large"),
        block(numbers(rng, 2, 4, spread=0.1), "small"),
        block(numbers(rng, 4, 4), "all-the-same"),
        block(np.zeros((3, 4)), "zeros"),
        block(numbers(rng, 5, 6), "all-different", 6, 3),
        block(numbers(rng, 3, 4), "zero-scores", W_q=np.zeros((4, 2))),
    ]


NORM_1, NORM_2 = ('layer_norm(x, p["gamma_1"], p["beta_1"])', 'layer_norm(x, p["gamma_2"], p["beta_2"])')
FIRST, SECOND = "    x = x + self_attention(normed, p)\n", "    return x + feed_forward(normed, p)\n"
ORIGIN = (f"    normed = {NORM_1}\n", f"    start = x\n    normed = {NORM_1}\n")
AFTER = (
    (f"    normed = {NORM_1}\n{FIRST}", f"    x = x + {NORM_1.replace('(x', '(self_attention(x, p)')}\n"),
    (f"    normed = {NORM_2}\n{SECOND}", f"    return x + {NORM_2.replace('(x', '(feed_forward(x, p)')}\n"),
)

MISTAKES = (
    Mistake("untouched", (("x = x + self", "x = normed + self"), ("return x + feed", "return normed + feed"))),
    Mistake("attention-still-wrong", (("x = x + self", "x = normed + self"),)),
    Mistake("feed-forward-still-wrong", (("return x + feed", "return normed + feed"),)),
    Mistake(
        "post-norm",
        (
            (f"    normed = {NORM_1}\n{FIRST}", f"    x = x + self_attention(x, p)\n    x = {NORM_1}\n"),
            (f"    normed = {NORM_2}\n{SECOND}", f"    x = x + feed_forward(x, p)\n    return {NORM_2}\n"),
        ),
    ),
    Mistake("normed-twice", ((SECOND, f"    x = x + feed_forward(normed, p)\n    return {NORM_2}\n"),)),
    Mistake("norm-after-sublayer", AFTER),
    Mistake("norm-lost", (("self_attention(normed", "self_attention(x"), ("feed_forward(normed", "feed_forward(x"))),
    Mistake("attention-not-normed", (("self_attention(normed", "self_attention(x"),)),
    Mistake("feed-forward-not-normed", (("feed_forward(normed", "feed_forward(x"),)),
    Mistake("residual-lost", (("x = x + self", "x = self"), ("return x + feed", "return feed"))),
    Mistake("last-residual-lost", (("return x + feed", "return feed"),)),
    Mistake("first-residual-lost", (("x = x + self", "x = self"),)),
    Mistake("from-the-start", (ORIGIN, ("return x + feed", "return start + feed"))),
    Mistake("side-by-side", (ORIGIN, (NORM_2, NORM_2.replace("(x", "(start")))),
    Mistake(
        "added-twice", (("return x + feed", "return normed + x + feed"), ("x = x + self", "x = normed + x + self"))
    ),
    Mistake("norms-exchanged", ((NORM_1, "N1"), (NORM_2, NORM_1), ("N1", NORM_2))),
    Mistake("one-norm-for-both", (('_2"], p["beta_2', '_1"], p["beta_1'),)),
)

GRADER = Grader(cases, MISTAKES)
