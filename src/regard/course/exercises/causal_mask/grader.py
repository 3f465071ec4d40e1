"""Calls and known slips of `causal-mask`: the diagonal, the direction, and -inf rather than something like it."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call


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

# Every constant that people write for "minus infinity".
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

SLIPS = (
    Slip("zero-times-infinity", ((CHOICE, "(key > query) * -np.inf"),)),
    Slip("wrong-side", (("key > query", "key < query"),)),
    Slip("polarity", ((CHOICE, "np.where(key > query, 0.0, -np.inf)"),)),
    Slip("strictly-before", (("key > query", "key >= query"),)),
    Slip("one-ahead", (("key > query", "key > query + 1"),)),
    Slip("itself-only", (("key > query", "key != query"),)),
    Slip("nothing-hidden", ((CHOICE, "np.zeros((n, n))"),)),
    Slip("anti-diagonal", (("key > query", "key > n - 1 - query"),)),
    Slip("ones-and-zeros", ((CHOICE, "np.where(key > query, 0.0, 1.0)"),)),
    Slip("ones-and-zeros", ((CHOICE, "np.where(key > query, 0, 1)"),)),
    Slip("one-hides", ((CHOICE, "np.where(key > query, 1.0, 0.0)"),)),
    Slip("one-hides", ((CHOICE, "np.where(key > query, 1, 0)"),)),
    Slip("one-beside-infinity", ((CHOICE, "np.where(key > query, -np.inf, 1.0)"),)),
    Slip("boolean", ((CHOICE, "key <= query"),)),
    Slip("boolean-hides", ((CHOICE, "key > query"),)),
    *(Slip("large-number", (("-np.inf", number),)) for number in LARGE),
    Slip("plus-infinity", (("-np.inf", "np.inf"),)),
    Slip("extra-axis", ((CHOICE, f"{CHOICE}[None]"),)),
    Slip("hard-coded", (("query = ", "n = 4\n    query = "),)),
)

GRADER = Grader(cases, SLIPS)
