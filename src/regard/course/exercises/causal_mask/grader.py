"""Calls and known mistakes of `causal-mask`: the diagonal, the direction, and -inf instead of a substitute."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    one, another = rng.choice([4, 5]), rng.choice([6, 7, 8])
    return [
        call("create_causal_mask", 3),
        call("create_causal_mask", int(one)),
        call("create_causal_mask", int(another)),
        call("create_causal_mask", 2),
        call("create_causal_mask", 1, about="one"),
        call("create_causal_mask", int(rng.integers(11, 20)), about="long"),
    ]


CHOICE = "np.where(key > query, -np.inf, 0.0)"

# Common substitutes for minus infinity.
LARGE = (
    "-1e2",
    "-1e3",
    "-1e4",
    "-9999.0",
    "-65504.0",
    "-1e5",
    "-1e6",
    "-1e7",
    "-1e8",
    "-1e9",
    "-1e10",
    "-1e12",
    "-1e15",
    "-1e20",
    "-1e30",
    "-1e38",
    "-3.4e38",
    "float(np.finfo(np.float32).min)",
    "np.finfo(float).min",
)

MISTAKES = (
    Mistake("zero-times-infinity", ((CHOICE, "(key > query) * -np.inf"),)),
    Mistake("wrong-side", (("key > query", "key < query"),)),
    Mistake("polarity", ((CHOICE, "np.where(key > query, 0.0, -np.inf)"),)),
    Mistake("strictly-before", (("key > query", "key >= query"),)),
    Mistake("one-ahead", (("key > query", "key > query + 1"),)),
    Mistake("itself-only", (("key > query", "key != query"),)),
    Mistake("nothing-hidden", ((CHOICE, "np.zeros((n, n))"),)),
    Mistake("anti-diagonal", (("key > query", "key > n - 1 - query"),)),
    Mistake("ones-and-zeros", ((CHOICE, "np.where(key > query, 0.0, 1.0)"),)),
    Mistake("ones-and-zeros", ((CHOICE, "np.where(key > query, 0, 1)"),)),
    Mistake("one-hides", ((CHOICE, "np.where(key > query, 1.0, 0.0)"),)),
    Mistake("one-hides", ((CHOICE, "np.where(key > query, 1, 0)"),)),
    Mistake("one-beside-infinity", ((CHOICE, "np.where(key > query, -np.inf, 1.0)"),)),
    Mistake("boolean", ((CHOICE, "key <= query"),)),
    Mistake("boolean-hides", ((CHOICE, "key > query"),)),
    *(Mistake("large-number", (("-np.inf", number),)) for number in LARGE),
    Mistake("plus-infinity", (("-np.inf", "np.inf"),)),
    Mistake("extra-axis", ((CHOICE, f"{CHOICE}[None]"),)),
    Mistake("hard-coded", (("query = ", "n = 4\n    query = "),)),
)

GRADER = Grader(cases, MISTAKES)
