"""Calls and known slips of `bug-residual`. Only `block` is called; gamma and beta are far from one and zero."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call
from regard.course.exercises.drawing import numbers

SHAPES = {
    "W_q": (4, 2),
    "W_k": (4, 2),
    "W_v": (4, 3),
    "W_o": (3, 4),
    "W_1": (4, 5),
    "b_1": (5,),
    "W_2": (5, 4),
    "b_2": (4,),
}


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def block(x: np.ndarray, about: str) -> Call:
        p = {name: numbers(rng, *shape, spread=0.7) for name, shape in SHAPES.items()}
        for n in (1, 2):
            p[f"gamma_{n}"], p[f"beta_{n}"] = 1 + numbers(rng, 4, spread=0.4), numbers(rng, 4, spread=0.4)
        return call("block", x, p, about=about)

    return [
        block(numbers(rng, 3, 4), "plain"),
        block(numbers(rng, 1, 4), "one-token"),
        block(numbers(rng, 5, 4, spread=10.0) + 30, "large"),
        block(numbers(rng, 2, 4, spread=0.1), "small"),
    ]


NORM_1, NORM_2 = ('layer_norm(x, p["gamma_1"], p["beta_1"])', 'layer_norm(x, p["gamma_2"], p["beta_2"])')
FIRST, SECOND = "    x = x + self_attention(normed, p)\n", "    return x + feed_forward(normed, p)\n"
ORIGIN = (f"    normed = {NORM_1}\n", f"    start = x\n    normed = {NORM_1}\n")
AFTER = (
    (f"    normed = {NORM_1}\n{FIRST}", f"    x = x + {NORM_1.replace('(x', '(self_attention(x, p)')}\n"),
    (f"    normed = {NORM_2}\n{SECOND}", f"    return x + {NORM_2.replace('(x', '(feed_forward(x, p)')}\n"),
)

SLIPS = (
    Slip("untouched", (("x = x + self", "x = normed + self"), ("return x + feed", "return normed + feed"))),
    Slip("attention-still-wrong", (("x = x + self", "x = normed + self"),)),
    Slip("feed-forward-still-wrong", (("return x + feed", "return normed + feed"),)),
    Slip(
        "post-norm",
        (
            (f"    normed = {NORM_1}\n{FIRST}", f"    x = x + self_attention(x, p)\n    x = {NORM_1}\n"),
            (f"    normed = {NORM_2}\n{SECOND}", f"    x = x + feed_forward(x, p)\n    return {NORM_2}\n"),
        ),
    ),
    Slip("normed-twice", ((SECOND, f"    x = x + feed_forward(normed, p)\n    return {NORM_2}\n"),)),
    Slip("norm-after-sublayer", AFTER),
    Slip("norm-lost", (("self_attention(normed", "self_attention(x"), ("feed_forward(normed", "feed_forward(x"))),
    Slip("attention-not-normed", (("self_attention(normed", "self_attention(x"),)),
    Slip("feed-forward-not-normed", (("feed_forward(normed", "feed_forward(x"),)),
    Slip("residual-lost", (("x = x + self", "x = self"), ("return x + feed", "return feed"))),
    Slip("last-residual-lost", (("return x + feed", "return feed"),)),
    Slip("first-residual-lost", (("x = x + self", "x = self"),)),
    Slip("from-the-start", (ORIGIN, ("return x + feed", "return start + feed"))),
    Slip("side-by-side", (ORIGIN, (NORM_2, NORM_2.replace("(x", "(start")))),
    Slip("added-twice", (("return x + feed", "return normed + x + feed"), ("x = x + self", "x = normed + x + self"))),
    Slip("norms-exchanged", ((NORM_1, "N1"), (NORM_2, NORM_1), ("N1", NORM_2))),
    Slip("one-norm-for-both", (('_2"], p["beta_2', '_1"], p["beta_1'),)),
)

GRADER = Grader(cases, SLIPS)
