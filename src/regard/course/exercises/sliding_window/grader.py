"""Calls and known mistakes of `sliding-window`: both ends of the window, and fewer queries than keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    S = int(rng.integers(6, 10))
    return [
        call("sliding_window_mask", S, S, 3, about="square"),
        call("sliding_window_mask", 3, S, 2, about="fewer-queries"),
        call("sliding_window_mask", 4, 7, 3, about="fewer-queries"),
        call("sliding_window_mask", 1, S, 4, about="one-query"),
        call("sliding_window_mask", 5, 5, 1, about="itself"),
        call("sliding_window_mask", 2, 6, 1, about="itself"),
        call("sliding_window_mask", 4, 6, 6, about="as-long"),
        call("sliding_window_mask", 4, 5, 99, about="longer"),
        call("sliding_window_mask", 1, 1, 1, about="one-key"),
        call("sliding_window_mask", 1, 1, 3, about="one-key"),
        call("sliding_window_mask", 4, 4, 4, about="all-the-same"),
        call("sliding_window_mask", int(rng.integers(11, 14)), int(rng.integers(15, 20)), 5, about="long"),
    ]


QUERY = "np.arange(S - T, S)[:, None]"
CAUSAL, RECENT = "(key <= query)", "(key > query - window)"
RETURN = f"return {CAUSAL} & {RECENT}"
NEGATIVE_START = """mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        mask[i, S - T + i - window + 1 : S - T + i + 1] = True
    return mask"""

MISTAKES = (
    Mistake("one-too-many", ((RECENT, "(key >= query - window)"),)),
    Mistake("one-too-few", ((RECENT, "(key > query - max(window - 1, 1))"),)),
    Mistake("one-too-few", ((RECENT, "(key > query - window + 1)"),)),
    Mistake("not-itself", ((CAUSAL, "(key < query)"),)),
    Mistake("before-itself", ((CAUSAL, "(key < query)"), (RECENT, "(key >= query - window)"))),
    Mistake("from-the-left", ((QUERY, "np.arange(T)[:, None]"),)),
    Mistake("polarity", ((RETURN, f"return ~({CAUSAL} & {RECENT})"),)),
    Mistake("causal-only", ((RETURN, f"return {CAUSAL}"),)),
    Mistake("not-causal", ((RETURN, f"return {RECENT}"),)),
    Mistake("both-sides", ((RETURN, "return np.abs(query - key) < window"),)),
    Mistake("centred", ((RETURN, "return np.abs(query - key) <= window // 2"),)),
    Mistake("future", ((RETURN, "return (key >= query) & (key < query + window)"),)),
    Mistake("far-keys", ((RETURN, f"return {CAUSAL} & ~{RECENT}"),)),
    Mistake("chunks", ((RETURN, f"return {CAUSAL} & (key // window == query // window)"),)),
    Mistake("first-keys", ((RETURN, f"return {CAUSAL} & (key < window)"),)),
    Mistake("last-keys", ((RETURN, f"return {CAUSAL} & (key >= S - window)"),)),
    Mistake("every-window-th", ((RETURN, f"return {CAUSAL} & ((query - key) % window == 0)"),)),
    Mistake("itself-only", ((RETURN, "return key == query"),)),
    Mistake("nothing-hidden", ((RETURN, "return np.ones((T, S), dtype=bool)"),)),
    Mistake("transposed-mask", ((RETURN, f"return ({CAUSAL} & {RECENT}).T"),)),
    Mistake("additive", ((RETURN, f"return np.where({CAUSAL} & {RECENT}, 0.0, -np.inf)"),)),
    Mistake("additive", ((RETURN, f"return np.where({CAUSAL} & {RECENT}, 0.0, -1e9)"),)),
    Mistake("ones-and-zeros", ((RETURN, f"return ({CAUSAL} & {RECENT}).astype(int)"),)),
    Mistake("ones-and-zeros", ((RETURN, f"return ({CAUSAL} & {RECENT}).astype(float)"),)),
    Mistake("extra-axis", ((RETURN, f"return ({CAUSAL} & {RECENT})[None]"),)),
    Mistake("extra-axis", ((RETURN, f"return ({CAUSAL} & {RECENT})[None, None]"),)),
    Mistake("all-queries", ((QUERY, "np.arange(S)[:, None]"),)),
    Mistake("fixed-window", (("query - window", "query - 3"),)),
    Mistake("start-below-zero", ((RETURN, NEGATIVE_START),)),
    Mistake("first-key-kept", ((RETURN, f"return {CAUSAL} & ({RECENT} | (key == 0))"),)),
)

GRADER = Grader(cases, MISTAKES)
