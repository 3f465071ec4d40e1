"""Calls and known mistakes of `alibi`: slopes for any number of heads, and the bias with fewer queries than keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    T = int(rng.integers(2, 5))
    S = T + int(rng.integers(1, 4))
    return [
        call("alibi_slopes", 8, about="eight"),
        call("alibi_slopes", 2, about="power"),
        call("alibi_slopes", 16, about="power"),
        call("alibi_slopes", 1, about="one-head"),
        call("alibi_slopes", 3, about="not-a-power"),
        call("alibi_slopes", 6, about="not-a-power"),
        call("alibi_slopes", 12, about="not-a-power"),
        call("alibi_slopes", int(rng.choice([5, 7, 10, 11, 13, 20])), about="not-a-power"),
        call("alibi_bias", 4, T, S, about="fewer-queries"),
        call("alibi_bias", 2, S, S, about="square"),
        call("alibi_bias", 4, 4, 4, about="all-the-same"),
        call("alibi_bias", 8, 1, 5, about="one-query"),
        call("alibi_bias", 1, 3, 4, about="one-head"),
        call("alibi_bias", 3, 2, 5, about="not-a-power"),
        call("alibi_bias", 2, 1, 1, about="one-key"),
        call("alibi_bias", 2, 2, int(rng.integers(40, 60)), about="long"),
    ]


SLOPES = "slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)"
FINER = "finer = 2.0 ** (-8 * np.arange(1, 2 * power + 1) / (2 * power))"
JOINED = "return np.concatenate([slopes, finer[0::2][: n_heads - power]])"
DISTANCE = "distance = np.abs(query - key)"
RETURN = "return alibi_slopes(n_heads)[:, None, None] * -distance"


def towards_zero(slopes: str) -> str:
    """The same with an exponent rounded towards 0."""
    return slopes.replace("(-8 * ", "-(8 * ").replace(" / ", " // ")


MISTAKES = (
    Mistake("formula-for-any", ((JOINED, "return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)"),)),
    Mistake("powers-of-a-half", ((JOINED, "return 2.0 ** -np.arange(1.0, n_heads + 1)"),)),
    Mistake("starts-at-one", (("np.arange(1, power + 1) / power", "np.arange(power) / power"),)),
    Mistake("eight-missing", ((SLOPES, SLOPES.replace("-8 *", "-")), (FINER, FINER.replace("-8 *", "-")))),
    Mistake("linear-slopes", ((JOINED, "return np.arange(n_heads, 0, -1) / n_heads"),)),
    Mistake("integer-exponents", ((SLOPES, SLOPES.replace(" / ", " // ")), (FINER, FINER.replace(" / ", " // ")))),
    Mistake("integer-exponents", ((SLOPES, towards_zero(SLOPES)), (FINER, towards_zero(FINER)))),
    Mistake("base-e", (("2.0 **", "np.exp(1) **"),)),
    Mistake("growing", (("-8 *", "8 *"),)),
    Mistake("reversed", ((JOINED, JOINED.replace("return ", "return (") + ")[::-1]"),)),
    Mistake("sorted", ((JOINED, JOINED.replace("return ", "return np.sort(") + ")[::-1]"),)),
    Mistake("others-first", ((JOINED, "return np.concatenate([finer[0::2][: n_heads - power], slopes])"),)),
    Mistake("every-other-from-second", (("finer[0::2]", "finer[1::2]"),)),
    Mistake("neighbours-of-the-finer", (("finer[0::2]", "finer"),)),
    Mistake("last-of-the-finer", (("finer[0::2][: n_heads - power]", "finer[0::2][2 * power - n_heads :]"),)),
    Mistake("next-power", ((JOINED, "return slopes if n_heads == power else finer[:n_heads]"),)),
    Mistake("next-power", ((JOINED, "return slopes if n_heads == power else finer[0::2][:n_heads]"),)),
    Mistake("only-the-power", ((JOINED, "return slopes"),)),
    Mistake("negative-slopes", ((JOINED, JOINED.replace("return ", "return -")), ("* -distance", "* distance"))),
    Mistake("reward", ((RETURN, RETURN.replace("-distance", "distance")),)),
    Mistake("signed", ((DISTANCE, "distance = query - key"),)),
    Mistake("later-free", ((DISTANCE, "distance = np.maximum(query - key, 0)"),)),
    Mistake("causal-inside", ((RETURN, "return np.where(key > query, -np.inf, " + RETURN[7:] + ")"),)),
    Mistake("from-the-left", (("np.arange(S - T, S)[:, None]", "np.arange(T)[:, None]"),)),
    Mistake("from-the-last-key", ((DISTANCE, "distance = np.abs(S - 1 - key) + 0 * query"),)),
    Mistake("key-position", ((DISTANCE, "distance = -(key + 0 * query)"),)),
    Mistake("counted-from-one", ((DISTANCE, f"{DISTANCE} + 1"),)),
    Mistake("squared", ((DISTANCE, "distance = (query - key) ** 2"),)),
    Mistake("logarithm", ((DISTANCE, "distance = np.log1p(np.abs(query - key))"),)),
    Mistake("divided-by-length", ((DISTANCE, "distance = np.abs(query - key) / S"),)),
    Mistake("exp-of-bias", ((RETURN, RETURN.replace("return ", "return np.exp(") + ")"),)),
    *(Mistake("distance-clipped", ((DISTANCE, f"{DISTANCE}.clip(max={most})"),)) for most in (4, 5, 8, 10, 16, 32)),
    Mistake("divided", ((RETURN, "return -distance / alibi_slopes(n_heads)[:, None, None]"),)),
    Mistake("heads-last", ((RETURN, f"{RETURN.replace('return ', 'return (')}).transpose(1, 2, 0)"),)),
    Mistake(
        "same-in-all-heads",
        (("alibi_slopes(n_heads)[:, None, None]", "alibi_slopes(n_heads)[:1, None, None] * np.ones((n_heads, 1, 1))"),),
    ),
    Mistake(
        "starts-at-one",
        tuple((f"np.arange(1, {most} + 1)", f"np.arange({most})") for most in ("power", "2 * power")),
    ),
)

GRADER = Grader(cases, MISTAKES)
