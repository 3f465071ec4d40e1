"""Calls and known mistakes of `label-smoothing`: with and without ignored tokens, and logits that break a naive log."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def tokens(N: int, *ignored: int, ignore: int = -100, V: int = 5) -> np.ndarray:
        """Random classes except 0, and `ignore` at the given places."""
        targets = rng.integers(1, V, N)
        targets[list(ignored)] = ignore
        return targets

    def loss(logits: np.ndarray, targets: np.ndarray, smoothing: float, about: str, **kwargs: int) -> Call:
        return call("label_smoothing_loss", logits, targets, smoothing, about=about, **kwargs)

    # Halves and eighths: float32 represents them next to 1000, so these cases test overflow, not rounding.
    halves, steep = rng.integers(-3, 4, (2, 5)) / 2, rng.integers(-3, 4, (3, 4)) / 8
    steep[[0, 1, 2], rng.integers(0, 4, 3)] += 1000
    return [
        loss(numbers(rng, 3, 5), tokens(3), 0.1, "plain"),
        loss(numbers(rng, 4, 3), tokens(4, V=3), 0.3, "more"),
        loss(numbers(rng, 3, 5), tokens(3), 0.0, "none"),
        loss(numbers(rng, 4, 5), tokens(4, 1, 3), 0.1, "ignored"),
        loss(numbers(rng, 4, 5), tokens(4, 0, ignore=0), 0.2, "padding", ignore_index=0),
        loss(halves + 1000, tokens(2), 0.1, "large"),
        loss(steep, tokens(3, V=4), 0.1, "steep"),
        loss(numbers(rng, 3, 4), np.array([0, 3, 0]), 0.2, "class-zero"),
        loss(numbers(rng, 5, 4), np.array([2, 1, 2, 3, 0]), 0.1, "class-ignored", ignore_index=2),
        loss(np.zeros((2, 6)), tokens(2, V=6), 0.1, "equal"),
        loss(numbers(rng, 1, 2), np.array([1]), 0.4, "one-token"),
        loss(numbers(rng, 4, 3), tokens(4, 0, 1, 3, V=3), 0.1, "one-counts"),
        loss(np.tile(numbers(rng, 3, 1), 3), np.array([0, 1, 2]), 1.0, "all-smooth"),
        loss(-halves - 1000, tokens(2), 0.1, "low"),
    ]


COUNTED = "logits, targets = logits[counted], targets[counted]"
ALL = "np.full((N, V), smoothing / V)"
TARGET = "wanted[np.arange(N), targets] += 1 - smoothing"
PROBS = "np.exp(shifted).sum(axis=-1, keepdims=True)"
LOG = f"shifted - np.log({PROBS})"
LOSSES = "losses = -(wanted * log_probs).sum(axis=-1)"
MEAN = "losses.mean()"
ENTROPY = "(np.where(wanted > 0, wanted * np.log(np.where(wanted > 0, wanted, 1)), 0)).sum(axis=-1)"
PROPS = ("1e-6", "1e-7", "1e-8", "1e-9", "1e-10", "1e-12", "1e-15", "1e-20", "np.finfo(float).eps")  # common choices
APART = """(
        -(1 - smoothing) * log_probs[np.arange(N), targets].mean()
        - smoothing * (everything - np.logaddexp.reduce(everything, axis=-1, keepdims=True)).mean()
    )"""
SMOOTHED = (  # an ignored token loses its target, but not the smoothing
    (COUNTED, "targets = np.where(counted, targets, 0)"),
    (LOSSES, f"wanted[~counted] = smoothing / V\n    {LOSSES}"),
)

MISTAKES = (
    Mistake(
        "others-only",
        ((ALL, "np.full((N, V), smoothing / (V - 1))"), (TARGET, "wanted[np.arange(N), targets] = 1 - smoothing")),
    ),
    Mistake("share-too-large", ((ALL, "np.full((N, V), smoothing / (V - 1))"),)),
    Mistake("sums-below-one", ((TARGET, "wanted[np.arange(N), targets] = 1 - smoothing"),)),
    Mistake("sums-above-one", (("+= 1 - smoothing", "+= 1"),)),
    Mistake("not-smoothed", ((ALL, "np.zeros((N, V))"), ("+= 1 - smoothing", "+= 1"))),
    Mistake("exchanged", ((ALL, "np.full((N, V), (1 - smoothing) / V)"), ("+= 1 - smoothing", "+= smoothing"))),
    Mistake("smoothing-per-class", ((ALL, "np.full((N, V), smoothing)"),)),
    Mistake("divergence", ((LOSSES, f"losses = {ENTROPY} - (wanted * log_probs).sum(axis=-1)"),)),
    Mistake("summed", ((MEAN, "losses.sum()"),)),
    Mistake("mean-over-everything", ((MEAN, "(wanted * -log_probs).mean()"),)),
    Mistake("ignored-in-the-mean", ((MEAN, "losses.sum() / len(counted)"),)),
    Mistake("ignored-counted", ((COUNTED, ""),)),
    Mistake("ignored-smoothed", (*SMOOTHED, (MEAN, "losses.sum() / counted.sum()"))),
    Mistake("ignored-smoothed", SMOOTHED),
    Mistake("ignored-smoothed", ((COUNTED, f"everything = logits\n    {COUNTED}"), (MEAN, APART))),
    Mistake("ignore-index-fixed", (("targets != ignore_index", "targets != -100"),)),
    Mistake("no-log", ((LOG, f"np.exp(shifted) / {PROBS}"),)),
    Mistake("no-softmax", ((LOG, "logits"),)),
    Mistake("wrong-sign", (("-(wanted", "(wanted"),)),
    Mistake("base-two", ((LOG, f"({LOG}) / np.log(2)"),)),
    Mistake("base-two", (("np.log(", "np.log2("),)),
    Mistake("log-of-zero", ((LOG, f"np.log(np.exp(shifted) / {PROBS})"),)),
    *(Mistake("log-propped-up", ((LOG, f"np.log(np.exp(shifted) / {PROBS} + {tiny})"),)) for tiny in PROPS),
    Mistake("unstable", ((" - logits.max(axis=-1, keepdims=True)", ""),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
