"""Choice of the next id: the most likely one, or one sampled from the distribution.

A `Pick` is a frozen value; its `start` returns the function that picks for one batch, with its state (generators, ids
seen). Independent of where logits come from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from regard.arrays import Array, check_counts, is_number, is_tensor, to_numpy
from regard.errors import ArgumentError

Picker = Callable[[Array], Array]
"""A function from logits (B, W) to ids (B,)."""


class Pick(Protocol):
    """A method of choosing the next id."""

    def start(self, prompts: list[list[int]], vocab_size: int) -> Picker:
        """The function that picks the next ids for these prompts, once per step."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """Always the most likely id; the lowest one of equals."""

    def start(self, prompts: list[list[int]], vocab_size: int) -> Picker:
        """A function that computes on the device of the logits, without a conversion or synchronisation."""
        return lambda logits: logits.argmax(-1)


GREEDY = Greedy()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Ids sampled at random after these changes to the logits, in this order; None means "off".

    repetition_penalty   for ids in the prompt or the text so far: positive logits divided by it, negative multiplied
    temperature          logits divided by it: below 1 sharper, above 1 more uniform
    top_k                only the k most likely ids; all where the vocabulary is not larger
    top_p                only the smallest set of most likely ids that reaches this probability
    min_p                only ids with at least this share of the highest probability
    seed                 the same seed gives the same ids, in NumPy and in torch

    Ties with the last id that is kept are kept too; the most likely id always is. Row r of a batch has its own
    generator, seeded with (seed, r): its text does not depend on the other rows, and equal prompts differ.

    >>> Sampling(top_p=0.8).probabilities(np.log([0.5, 0.25, 0.15, 0.1])).round(3)
    array([0.556, 0.278, 0.167, 0.   ])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (is_number(self.temperature) and self.temperature > 0):
            raise ArgumentError("temperature-value", value=self.temperature)
        if self.top_k is not None:
            check_counts(top_k=(self.top_k, 1))
        if self.top_p is not None and not (is_number(self.top_p) and 0 < self.top_p <= 1):
            raise ArgumentError("top-p-value", value=self.top_p)
        if self.min_p is not None and not (is_number(self.min_p) and 0 <= self.min_p <= 1):
            raise ArgumentError("min-p-value", value=self.min_p)
        penalty = self.repetition_penalty
        if penalty is not None and not (is_number(penalty) and penalty > 0):
            raise ArgumentError("repetition-penalty-value", value=penalty)
        if self.seed is not None:
            check_counts(seed=(self.seed, 0))

    def start(self, prompts: list[list[int]], vocab_size: int) -> Picker:
        """A function with one generator and one set of seen ids per row."""
        rows = range(len(prompts))
        generators = [np.random.default_rng(None if self.seed is None else (self.seed, row)) for row in rows]
        seen = np.zeros((len(prompts), vocab_size), dtype=bool)  # B W
        for row, prompt in enumerate(prompts):
            seen[row, prompt] = True

        def pick(logits: Array) -> np.ndarray:
            probabilities = self.probabilities(self.penalised(scores_of(logits), seen))
            ids = np.array([_draw(*each) for each in zip(probabilities, generators, strict=True)])
            seen[rows, ids] = True
            return ids

        return pick

    def penalised(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Scores with the repetition penalty applied to the ids `seen`. Both (…, W)."""
        penalty = self.repetition_penalty
        if penalty is None:
            return scores
        return np.where(seen, np.where(scores > 0, scores / penalty, scores * penalty), scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of drawing each id, (…, W)."""
        # Relative to the most likely id, which has exactly 1: nothing overflows, and min_p is a simple bound.
        with np.errstate(over="ignore"):
            p = np.exp((scores - scores.max(-1, keepdims=True)) / self.temperature)
        if self.top_k is not None and self.top_k < p.shape[-1]:
            p[p < np.partition(p, -self.top_k)[..., -self.top_k, None]] = 0
        if self.top_p is not None and self.top_p < 1:
            descending = -np.sort(-p)
            before = descending.cumsum(-1) - descending  # the sum of all more likely ids
            is_kept = before < self.top_p * p.sum(-1, keepdims=True)
            p[p < np.where(is_kept, descending, np.inf).min(-1, keepdims=True)] = 0
        if self.min_p is not None:
            p[p < self.min_p] = 0
        return p / p.sum(-1, keepdims=True)


def check_not_sampling(options: dict[str, Any]) -> None:
    """ArgumentError if an option is a field of Sampling: it belongs in `pick`."""
    for field in fields(Sampling):
        if field.name in options:
            raise ArgumentError("sampling-option", name=field.name, value=options[field.name])


def _draw(probabilities: np.ndarray, generator: np.random.Generator) -> int:
    """One id by inverse transform sampling: a random number is looked up in the cumulative probabilities."""
    ends = probabilities.cumsum()
    # random() is at least 0 and below 1, so an id with probability 0 is never chosen.
    return int(np.searchsorted(ends, generator.random() * ends[-1], side="right"))


def scores_of(logits: Array) -> np.ndarray:
    """Logits as a new NumPy array of float64, (B, W). ArgumentError for a row whose maximum is not finite."""
    scores = to_numpy(logits).astype(np.float64)
    for row, highest in enumerate(scores.max(-1).tolist()):
        if not math.isfinite(highest):
            raise ArgumentError("logits-not-finite", found=highest, row=row)
    return scores


def check_logits(logits: Array) -> None:
    """The same check on the device of the logits, for all rows at once: the maximum is NaN if any logit is."""
    if not math.isfinite(to_numpy(logits.max())):
        scores_of(logits)  # raises the error with the row


def is_on_other_device(logits: Array) -> bool:
    """Whether the logits are on a device other than the CPU, so that reading them waits for it."""
    return is_tensor(logits) and logits.device.type != "cpu"


def nan_if_invalid(logits: Array) -> Array:
    """0 for each row with a finite maximum, NaN for the others, (B,); computed without waiting for the device."""
    highest = logits.max(-1)
    highest = getattr(highest, "values", highest)  # torch also returns the indices
    return highest - highest
