"""Calls and known mistakes of `cross-entropy-with-padding`: sentences of unequal length, and logits that overflow."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def padded(lengths: Sequence[int], V: int = 5, pad: int = 0, T: int = 0, left: bool = False) -> np.ndarray:
        """Random targets other than `pad`; each sentence is filled up with `pad` to T, or to the longest length."""
        T = max(*lengths, T)
        classes = np.setdiff1d(np.arange(V), [pad])
        real = np.arange(T) < np.array(lengths)[:, None]
        return np.where(real[:, ::-1] if left else real, rng.choice(classes, (len(lengths), T)), pad)

    def loss(logits: np.ndarray, targets: np.ndarray, about: str, **kwargs: int) -> Call:
        return call("cross_entropy", logits, targets, about=about, **kwargs)

    # Halves: float32 represents them next to 1000, so these cases test overflow, not rounding.
    halves, steep = rng.integers(-3, 4, (2, 2, 5)) / 2, rng.integers(-3, 4, (1, 3, 4)) / 2
    highest = rng.integers(0, 4, 3)
    steep[0, [0, 1, 2], highest] += 1000
    apart = rng.integers(-3, 4, (2, 2, 4)) / 2 + np.array([1000, -1000])[:, None, None]
    return [
        loss(numbers(rng, 2, 4, 5), padded([4, 2]), "unequal"),
        loss(numbers(rng, 3, 5, 7), padded([1, 5, 3], 7), "unequal"),
        loss(numbers(rng, 2, 3, 5), padded([3, 3]), "no-padding"),
        loss(numbers(rng, 2, 4, 5), padded([1, 3], T=4, left=True), "left"),
        loss(numbers(rng, 3, 4, 5), padded([4, 0, 2]), "empty-sentence"),
        loss(numbers(rng, 2, 3, 4), np.zeros((2, 3), dtype=int), "only-padding"),
        loss(numbers(rng, 1, 4, 6), padded([2], 6, -100, T=4), "negative-pad", pad=-100),
        loss(numbers(rng, 2, 3, 4), np.array([[0, 3, 2], [0, 0, 2]]), "middle-pad", pad=2),
        loss(halves + 1000, padded([2, 1]), "large"),
        loss(-halves - 1000, padded([1, 2]), "low"),
        loss(steep, (highest[None] + [1, 0, 2]) % 4, "steep", pad=-1),
        loss(apart, padded([2, 2], 4), "far-apart"),
        loss(np.zeros((2, 2, 8)), padded([2, 1], 8), "equal"),
        loss(numbers(rng, 1, 1, 3), np.array([[rng.integers(1, 3)]]), "one-token"),
    ]


COUNTED = "logits, targets = logits[counted], targets[counted]  # (N, V), (N,)"
FLAT = "N, logits, targets = len(targets), logits.reshape(-1, logits.shape[-1]), targets.ravel()"
COUNTS = "counted = targets != pad"
ZEROED = f"logits = np.where(counted[..., None], logits, 0.0)\n    {FLAT}"
BY = ("counted.size", "counted.sum()")
EMPTY = "    if not counted.any():\n        return 0.0\n"
SUM = "np.exp(shifted).sum(axis=-1, keepdims=True)"
LOG = f"shifted - np.log({SUM})"
SHIFT = "shifted = logits - logits.max(axis=-1, keepdims=True)"
MEAN = "return float(losses.mean())"
EACH = """each = np.zeros(counted.shape)
    each[counted] = losses
    lengths = counted.sum(axis=1)
    return float((each.sum(axis=1) / {}).mean())"""
PROPS = ("1e-6", "1e-8", "1e-9", "1e-10", "1e-12", "np.finfo(float).eps")

MISTAKES = (
    Mistake("padding-counted", ((COUNTED, FLAT),)),
    Mistake("padding-in-the-mean", ((MEAN, "return float(losses.sum() / counted.size)"),)),
    Mistake("mean-of-means", ((MEAN, EACH.format("np.maximum(lengths, 1)")),)),
    Mistake("mean-of-means", ((MEAN, EACH.format("lengths")),)),
    Mistake("mean-of-means", ((MEAN, EACH.replace(").mean", ")[lengths > 0].mean").format("np.maximum(lengths, 1)")),)),
    Mistake("per-sentence", ((MEAN, "return float(losses.sum() / len(counted))"),)),
    Mistake("summed", ((MEAN, "return float(losses.sum())"),)),
    Mistake("divided-by-classes", ((MEAN, "return float(losses.sum() / logits.size)"),)),
    Mistake("shifted-inside", ((COUNTS, f"logits, targets = logits[:, :-1], targets[:, 1:]\n    {COUNTS}"),)),
    *(Mistake("padded-logits-zero", ((COUNTED, ZEROED), (MEAN, f"return float(losses.sum() / {by})"))) for by in BY),
    Mistake("nan-when-empty", ((EMPTY, ""), (MEAN, "return float(losses.sum() / np.float64(len(losses)))"))),
    Mistake("pad-fixed", (("targets != pad", "targets != 0"),)),
    Mistake("positive-only", (("targets != pad", "targets > 0"),)),
    Mistake("negative-only", (("targets != pad", "targets >= 0"),)),
    Mistake("first-sentence-length", (("targets != pad", "(targets != pad) & (targets[0] != pad)"),)),
    Mistake(
        "pad-class-removed",
        ((SHIFT, f"logits = np.where(np.arange(logits.shape[-1]) == pad, -np.inf, logits)\n    {SHIFT}"),),
    ),
    Mistake("over-tokens", (("axis=-1, keepdims=True", "axis=0, keepdims=True"),)),
    Mistake("no-softmax", ((LOG, "logits"),)),
    Mistake("no-log", ((LOG, f"np.exp(shifted) / {SUM}"),)),
    Mistake("wrong-sign", (("-log_probs[", "log_probs["),)),
    Mistake("base-two", ((LOG, f"({LOG}) / np.log(2)"),)),
    Mistake("base-two", (("np.log(", "np.log2("),)),
    Mistake("log-of-zero", ((LOG, f"np.log(np.exp(shifted) / {SUM})"),)),
    *(Mistake("log-propped-up", ((LOG, f"np.log(np.exp(shifted) / {SUM} + {tiny})"),)) for tiny in PROPS),
    Mistake("unstable", ((SHIFT, "shifted = logits"),)),
    Mistake("one-maximum", ((SHIFT, "shifted = logits - logits.max()"),)),
    Mistake("perplexity", ((MEAN, "return float(np.exp(losses.mean()))"),)),
    Mistake("stops-at-padding", ((COUNTS, "counted = np.cumprod(targets != pad, axis=1).astype(bool)"),)),
    Mistake(
        "padding-at-the-end-only",
        ((COUNTS, "counted = np.cumsum((targets != pad)[:, ::-1], axis=1)[:, ::-1] > 0"),),
    ),
    Mistake("one-too-many", ((MEAN, "return float(losses.sum() / (len(losses) + 1))"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
