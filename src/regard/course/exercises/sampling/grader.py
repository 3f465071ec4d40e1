"""Calls and known mistakes of `sampling`: temperature, top-k and top-p alone and together, and the bounds of a draw."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call

# In percent, the most likely first. Every sum from the left lies far from the top_p of its call.
STEEP = (44, 21, 13, 9, 6, 4, 3)
FLAT = (24, 20, 17, 15, 13, 11)


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def filtered(percent: Sequence[float], *options: float | None, about: str, shift: float = 0.0) -> Call:
        logits = np.log(np.array(percent) / 100) + rng.uniform(-0.01, 0.01, len(percent))
        logits = np.round((rng.permutation(logits) + rng.integers(-3, 4)) * 1024) / 1024 + shift  # exact in float32
        return call("next_probabilities", logits, *options, about=about)

    # Sixteenths: every sum is exact, and u may lie exactly on a bound.
    shares = rng.permutation([5, 4, 3, 2, 1, 1])
    ends = np.cumsum(shares) / 16
    holes = np.array([0, *shares[:3], 0, shares[3:].sum(), 0]) / 16
    inside = float(ends[2] - 1 / 32)
    hidden = np.log(np.array([40.0, 30.0, 20.0, 10.0])) + rng.uniform(-0.01, 0.01, 4)
    hidden = np.insert(hidden.round(4), int(rng.integers(1, 4)), -np.inf)
    return [
        filtered(STEEP, about="plain"),
        filtered(STEEP, 0.5, about="sharper"),
        filtered(STEEP, 2.0, about="flatter"),
        filtered(STEEP, 1.0, 3, about="top-k"),
        filtered(FLAT, 0.7, 4, about="top-k"),
        filtered(STEEP, 1.0, None, 0.7, about="top-p"),
        filtered(FLAT, 1.0, None, 0.5, about="top-p"),
        filtered(FLAT, 1.5, None, 0.9, about="top-p"),
        filtered(STEEP, 0.5, None, 0.87, about="top-p"),
        filtered(FLAT, 1.0, 4, 0.7, about="both"),
        filtered(STEEP, 0.8, 5, 0.9, about="both"),
        filtered(FLAT, 1.0, 1, about="one-left"),
        filtered(FLAT, 1.0, None, 0.05, about="one-left"),
        filtered(FLAT, 1.0, 6, 1.0, about="nothing-cut"),
        filtered(FLAT, 1.0, 40, about="nothing-cut"),
        filtered(STEEP, 1.0, 3, about="large", shift=1000.0),
        call("next_probabilities", hidden, 1.0, None, 0.99, about="hidden"),
        call("pick", shares / 16, inside, about="inside"),
        call("pick", shares / 16, 0.0, about="first"),
        call("pick", shares / 16, 1 - 2**-30, about="last"),
        call("pick", shares / 16, float(ends[1]), about="bound"),
        call("pick", shares / 16, float(ends[3]), about="bound"),
        call("pick", holes, 0.0, about="holes"),
        call("pick", holes, float(np.cumsum(holes)[3]), about="holes"),
        call("pick", holes, 1 - 2**-30, about="holes"),
    ]


SCORES = "scores = logits / temperature"
POWERS = "np.exp(scores - scores.max())"
SHARES = "(powers / powers.sum())[order]"
CUT_K = "descending[top_k:] = 0\n        descending = descending / descending.sum()"
CUT_P = "descending[before >= top_p] = 0\n        descending = descending / descending.sum()"
BEFORE = "before = np.cumsum(descending) - descending"
K = f"    if top_k is not None:\n        {CUT_K}\n"
RETURN = "return probabilities\n"
DRAWN = 'int(np.searchsorted(ends, u, side="right"))'
UNCUT = "whole = descending.copy()\n    if top_k is not None:"

CUT_TO_ZERO_K = """kept = np.where(np.arange(len(order)) < top_k, scores[order], 0.0)
        descending = np.exp(kept - kept.max())
        descending = descending / descending.sum()"""
CUT_TO_ZERO_P = """kept = np.where(before < top_p, scores[order], 0.0)
        descending = np.exp(kept - kept.max())
        descending = descending / descending.sum()"""
CUT_TO_ZERO = """import numpy as np


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    scores = logits / temperature
    if top_k is not None:
        scores[np.argsort(-scores)[top_k:]] = 0.0
    if top_p is not None:
        probabilities = softmax(scores)
        order = np.argsort(-probabilities)
        before = np.cumsum(probabilities[order]) - probabilities[order]
        scores[order[before >= top_p]] = 0.0
    return softmax(scores)


def pick(probabilities, u):
    return int(np.searchsorted(np.cumsum(probabilities), u, side="right"))
"""

MISTAKES = (
    Mistake("temperature-unused", ((SCORES, "scores = logits"),)),
    Mistake("temperature-times", ((SCORES, "scores = logits * temperature"),)),
    Mistake("temperature-after", ((SCORES, "scores = logits"), (SHARES, f"{SHARES} / temperature"))),
    Mistake(
        "temperature-last",
        (
            (SCORES, "scores = logits"),
            (
                RETURN,
                "probabilities = probabilities ** (1 / temperature)\n    return probabilities / probabilities.sum()\n",
            ),
        ),
    ),
    Mistake("unstable", ((POWERS, "np.exp(scores)"),)),
    Mistake("shares-of-logits", (("powers = np.exp(scores - scores.max())", "powers = scores - scores.min()"),)),
    Mistake("top-k-unused", ((K, ""),)),
    Mistake("top-k-not-divided", ((CUT_K, "descending[top_k:] = 0"),)),
    Mistake("cut-to-zero", source=CUT_TO_ZERO),
    Mistake("cut-to-zero", ((CUT_K, CUT_TO_ZERO_K),)),
    Mistake("cut-to-zero", ((CUT_P, CUT_TO_ZERO_P),)),
    Mistake("top-k-least", ((CUT_K, "descending[:-top_k] = 0\n        descending = descending / descending.sum()"),)),
    Mistake(
        "top-k-first-tokens", (("np.argsort(-scores)", "np.arange(len(scores)) if top_k else np.argsort(-scores)"),)
    ),
    Mistake("top-k-one-more", (("descending[top_k:]", "descending[top_k + 1 :]"),)),
    Mistake("top-k-one-less", (("descending[top_k:]", "descending[max(top_k - 1, 1) :]"),)),
    Mistake("top-p-unused", (("if top_p is not None:", "if False:"),)),
    Mistake("top-p-not-divided", ((CUT_P, "descending[before >= top_p] = 0"),)),
    Mistake("top-p-one-less", ((BEFORE, "before = np.cumsum(descending)\n        before[0] = 0"),)),
    Mistake("top-p-one-more", ((BEFORE, f"{BEFORE}\n        before = np.append(0, before[:-1])"),)),
    Mistake("top-p-as-least", (("before >= top_p", "descending < min(top_p, descending.max())"),)),
    Mistake("top-p-as-rest", (("before >= top_p", "descending < min(1 - top_p, descending.max())"),)),
    Mistake(
        "top-p-of-all",
        (("if top_k is not None:", UNCUT), (BEFORE, "before = np.cumsum(whole) - whole")),
    ),
    Mistake("still-sorted", ((RETURN, "return descending\n"),)),
    Mistake("order-twice", (("probabilities[order] = descending", "probabilities[:] = descending[order]"),)),
    Mistake("logarithms", ((RETURN, "return np.log(probabilities)\n"),)),
    Mistake("most-likely", ((DRAWN, "int(np.argmax(probabilities))"),)),
    Mistake("left-bound", ((DRAWN, 'int(np.searchsorted(ends, u, side="left"))'),)),
    Mistake("not-summed", (("ends = np.cumsum(probabilities)", "ends = probabilities"),)),
    Mistake("one-too-late", ((DRAWN, f"min({DRAWN} + 1, len(ends) - 1)"),)),
    Mistake("one-too-early", ((DRAWN, f"max({DRAWN} - 1, 0)"),)),
    Mistake("from-the-end", ((DRAWN, 'int(np.searchsorted(ends, 1 - u, side="left"))'),)),
    Mistake("share-of-tokens", ((DRAWN, "int(u * len(ends))"),)),
    Mistake(
        "sorted-draw",
        (("ends = np.cumsum(probabilities)", "ends = np.cumsum(-np.sort(-probabilities))"),),
    ),
    Mistake("not-repeatable", ((DRAWN, "int(np.random.choice(len(ends), p=probabilities))"),)),
    Mistake("probability-returned", ((DRAWN, f"float(probabilities[{DRAWN}])"),)),
    Mistake("top-p-one-less", ((BEFORE, "before = np.cumsum(descending)"),)),
    Mistake("top-p-one-less", ((BEFORE, "before = np.cumsum(descending)"), ("before >= top_p", "before > top_p"))),
    Mistake(
        "top-p-one-less",
        ((BEFORE, "before = np.cumsum(descending)\n        before[0] = 0"), ("before >= top_p", "before > top_p")),
    ),
    Mistake("min-p", (("before >= top_p", "descending < (1 - top_p) * descending.max()"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
