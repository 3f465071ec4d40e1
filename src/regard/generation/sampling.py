"""Which id comes next: the most likely one, or one drawn by chance from the likely ones.

A way of picking is a frozen value; `start` gives the function that picks for one batch, with the state it needs
(generators, ids seen). Nothing here knows where logits come from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from regard.arrays import Array, is_tensor, to_numpy
from regard.errors import ArgumentError
from regard.position_rules import check_counts, is_number

Picker = Callable[[Array], Array]
"""From logits (B, W) to ids (B,)."""


class Pick(Protocol):
    """A way of picking."""

    def start(self, prompts: list[list[int]], vocab_size: int) -> Picker:
        """The function that picks for these prompts, call after call."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """Always the most likely id; of equals the lowest."""

    def start(self, prompts: list[list[int]], vocab_size: int) -> Picker:
        """Stays where the logits are: nothing is converted, nothing waits for a device."""
        return lambda logits: logits.argmax(-1)


GREEDY = Greedy()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Ids drawn by chance, after what is done to the logits in this order; None means "not at all".

    repetition_penalty   of ids in the prompt or the text so far: positive logits divided by it, negative multiplied
    temperature          logits divided by it: below 1 sharper, above 1 more even
    top_k                only the k most likely
    top_p                only the most likely, as few as together reach this probability
    min_p                only ids with at least this share of the likeliest one's probability
    seed                 the same seed gives the same ids, in NumPy and in torch

    Ids as likely as the last one that stays, stay too; the most likely always does. Row r of a batch draws from its
    own generator, made of (seed, r): its text does not depend on its neighbours, and equal prompts differ.

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
        """One generator and one list of ids seen for each row."""
        if self.top_k is not None and self.top_k > vocab_size:
            raise ArgumentError("top-k-vocabulary", value=self.top_k, W=vocab_size)
        rows = range(len(prompts))
        generators = [np.random.default_rng(None if self.seed is None else (self.seed, row)) for row in rows]
        seen = np.zeros((len(prompts), vocab_size), dtype=bool)  # B W
        for row, prompt in enumerate(prompts):
            seen[row, prompt] = True

        def pick(logits: Array) -> np.ndarray:
            chances = self.probabilities(self.penalised(scores_of(logits), seen))
            ids = np.array([_drawn(*each) for each in zip(chances, generators, strict=True)])
            seen[rows, ids] = True
            return ids

        return pick

    def penalised(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Scores with those of ids `seen` made less likely (or more, below 1). Both (…, W)."""
        penalty = self.repetition_penalty
        if penalty is None:
            return scores
        return np.where(seen, np.where(scores > 0, scores / penalty, scores * penalty), scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """How likely each id is to be drawn, (…, W)."""
        # Relative to the most likely, which has exactly 1: so nothing overflows, and min_p is a plain bound.
        with np.errstate(over="ignore"):
            p = np.exp((scores - scores.max(-1, keepdims=True)) / self.temperature)
        if self.top_k is not None:
            p[p < np.partition(p, -self.top_k)[..., -self.top_k, None]] = 0
        if self.top_p is not None and self.top_p < 1:
            falling = -np.sort(-p)
            before = falling.cumsum(-1) - falling  # what the more likely ones have together
            stays = before < self.top_p * p.sum(-1, keepdims=True)
            p[p < np.where(stays, falling, np.inf).min(-1, keepdims=True)] = 0
        if self.min_p is not None:
            p[p < self.min_p] = 0
        return p / p.sum(-1, keepdims=True)


def check_not_sampling(options: dict[str, Any]) -> None:
    """No option is a field of Sampling, which goes into `pick`; else an ArgumentError that shows how."""
    for field in fields(Sampling):
        if field.name in options:
            raise ArgumentError("sampling-option", name=field.name, value=options[field.name])


def _drawn(chances: np.ndarray, generator: np.random.Generator) -> int:
    """One id by chance: ids are laid end to end in their order, each as long as its chance, and one place is drawn."""
    ends = chances.cumsum()
    # random() is at least 0 and below 1, so the place is in some id's own stretch, and ids without a chance have none.
    return int(np.searchsorted(ends, generator.random() * ends[-1], side="right"))


def scores_of(logits: Array) -> np.ndarray:
    """Logits as a fresh NumPy array of float64, (B, W), each row with something to choose; else an ArgumentError."""
    scores = to_numpy(logits).astype(np.float64)
    for row, highest in enumerate(scores.max(-1).tolist()):
        if not math.isfinite(highest):
            raise ArgumentError("logits-not-finite", found=highest, row=row)
    return scores


def check_logits(logits: Array) -> None:
    """The same question asked where the logits are, all rows at once: their highest is NaN where any is."""
    if not math.isfinite(to_numpy(logits.max())):
        scores_of(logits)  # which says the row


def is_elsewhere(logits: Array) -> bool:
    """Whether looking at the logits would mean to wait for another device."""
    return is_tensor(logits) and logits.device.type != "cpu"


def doubt_about(logits: Array) -> Array:
    """0 for each row with something to choose, NaN for the others, (B,); nobody waits for it."""
    highest = logits.max(-1)
    highest = getattr(highest, "values", highest)  # torch says where they are, too
    return highest - highest
