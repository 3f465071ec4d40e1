"""Calls and known mistakes of `masked-lm-inputs`. The random numbers are arguments, so one answer is right.

Every plain call contains a chosen token of each kind, and a special token with a number below 0.15.
"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call

CLS, SEP, PAD = 1, 2, 0


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def uniform(low: float, high: float, *shape: int) -> np.ndarray:
        """Numbers in [low, high) with three decimals."""
        return rng.integers(round(1000 * low), round(1000 * high), shape) / 1000

    def batch(B: int, T: int, about: str, mask_id: int = 3, **given: np.ndarray) -> Call:
        """Sentences of random words with [CLS], [SEP] and padding; arrays in `given` replace the drawn ones."""
        ids = rng.integers(10, 60, (B, T))
        ids[:, 0], ids[:, -1] = CLS, SEP
        if B > 1 and T > 3:
            ids[-1, -2:] = SEP, PAD
        choose, kind = uniform(0.16, 1, B, T), uniform(0, 1, B, T)
        middle = np.argwhere((ids >= 10) & (np.arange(T) < T - 2))  # not the last two, so that each kind has a token
        places = tuple(rng.permutation(middle)[:5].T)
        count = len(places[0])
        choose[places] = np.array([0.003, 0.04, 0.149, 0.11, 0.13])[:count]
        kind[places] = np.array(
            [uniform(*ends).item() for ends in ((0, 0.1), (0.8, 0.9), (0.9, 1), (0.2, 0.8), (0.1, 0.2))]
        )[:count]
        choose[:, 0], choose[-1, -1] = 0.01, 0.02  # special tokens
        random_ids = rng.integers(60, 99, (B, T))
        parts = {"ids": ids, "choose": choose, "kind": kind, "random_ids": random_ids} | given
        special = given.get("special", parts["ids"] < 3)
        return call(
            "mask_tokens",
            parts["ids"],
            special,
            parts["choose"],
            parts["kind"],
            parts["random_ids"],
            mask_id,
            about=about,
        )

    words = rng.integers(10, 60, (2, 4))
    none = np.zeros((2, 4), dtype=bool)
    ends = np.array([[0.15, 0.14999, 0.0, 0.15], [0.14999, 0.0, 0.1, 0.14]])
    kinds = np.array([[0.5, 0.8, 0.9, 0.1], [0.79999, 0.89999, 0.0, 0.99999]])
    return [
        batch(2, 7, "plain"),
        batch(3, 8, "plain", mask_id=103),
        batch(1, 9, "one-sentence"),
        batch(2, 6, "none-chosen", choose=np.full((2, 6), 0.5)),
        batch(2, 6, "all-chosen", choose=uniform(0, 0.15, 2, 6)),
        batch(2, 4, "ends", ids=words, special=none, choose=ends, kind=kinds),
        batch(2, 4, "same-random", ids=words, special=none, choose=uniform(0, 0.1, 2, 4), kind=kinds, random_ids=words),
        batch(2, 4, "all-special", special=~none, choose=uniform(0, 0.15, 2, 4)),
        batch(2, 4, "id-zero", ids=np.tile([0, 1], (2, 2)), special=none, choose=uniform(0, 0.15, 2, 4), kind=kinds),
        batch(1, 1, "one-token", ids=words[:1, :1], special=none[:1, :1], choose=np.array([[0.1]])),
    ]


CHOSEN = "chosen = (choose < 0.15) & ~special"
TARGETS = "targets = np.where(chosen, ids, -100)"
MASKED = "masked = chosen & (kind < 0.8)"
REPLACED = "replaced = chosen & (kind >= 0.8) & (kind < 0.9)"
INPUTS = "inputs = np.where(masked, mask_id, ids)"
RANDOM = "inputs = np.where(replaced, random_ids, inputs)"
RETURN = "return inputs, targets"

MISTAKES = (
    Mistake("always-mask", ((MASKED, "masked = chosen"), (REPLACED, "replaced = chosen & False"))),
    Mistake("never-random", ((REPLACED, "replaced = chosen & False"),)),
    Mistake("never-kept", ((REPLACED, "replaced = chosen & (kind >= 0.8)"),)),
    Mistake("random-and-kept-exchanged", ((REPLACED, "replaced = chosen & (kind >= 0.9)"),)),
    Mistake(
        "kinds-reversed",
        ((MASKED, "masked = chosen & (kind >= 0.2)"), (REPLACED, "replaced = chosen & (kind >= 0.1) & (kind < 0.2)")),
    ),
    Mistake(
        "kinds-reversed", ((MASKED, "masked = chosen & (kind >= 0.2)"), (REPLACED, "replaced = chosen & (kind < 0.1)"))
    ),
    Mistake(
        "one-draw",
        (
            (MASKED, "masked = chosen & (choose < 0.15 * 0.8)"),
            (REPLACED, "replaced = chosen & (choose >= 0.15 * 0.8) & (choose < 0.15 * 0.9)"),
        ),
    ),
    Mistake("special-chosen", ((CHOSEN, "chosen = choose < 0.15"),)),
    Mistake("special-inverted", ((CHOSEN, "chosen = (choose < 0.15) & special"),)),
    Mistake("choice-inverted", ((CHOSEN, "chosen = (choose >= 0.15) & ~special"),)),
    Mistake("choice-end", ((CHOSEN, "chosen = (choose <= 0.15) & ~special"),)),
    Mistake(
        "kind-ends",
        ((MASKED, "masked = chosen & (kind <= 0.8)"), (REPLACED, "replaced = chosen & (kind > 0.8) & (kind <= 0.9)")),
    ),
    Mistake("not-chosen-changed", ((MASKED, "masked = (kind < 0.8) & ~special"),)),
    Mistake(
        "not-chosen-changed",
        (
            (MASKED, "masked = (kind < 0.8) & ~special"),
            (REPLACED, "replaced = (kind >= 0.8) & (kind < 0.9) & ~special"),
        ),
    ),
    Mistake("random-everywhere", ((REPLACED, "replaced = (kind >= 0.8) & (kind < 0.9) & ~special"),)),
    Mistake("targets-everywhere", ((TARGETS, "targets = ids.copy()"),)),
    Mistake("targets-of-words", ((TARGETS, "targets = np.where(special, -100, ids)"),)),
    Mistake("targets-of-masked-only", ((RETURN, "return inputs, np.where(masked, ids, -100)"),)),
    Mistake("kept-not-a-target", ((RETURN, "return inputs, np.where(masked | replaced, ids, -100)"),)),
    Mistake("kept-not-a-target", ((RETURN, "return inputs, np.where(inputs != ids, ids, -100)"),)),
    Mistake("targets-from-inputs", ((RETURN, "return inputs, np.where(chosen, inputs, -100)"),)),
    Mistake("targets-inverted", ((TARGETS, "targets = np.where(chosen, -100, ids)"),)),
    Mistake("zero-for-ignored", ((TARGETS, "targets = np.where(chosen, ids, 0)"),)),
    Mistake("zero-for-ignored", ((TARGETS, "targets = np.where(chosen, ids, -1)"),)),
    Mistake("ignore-index-as-input", ((INPUTS, "inputs = np.where(masked, -100, ids)"),)),
    Mistake("order-of-results", ((RETURN, "return targets, inputs"),)),
    Mistake("targets-missing", ((RETURN, "return inputs"),)),
    Mistake("random-everywhere", ((REPLACED, "replaced = (kind >= 0.8) & (kind < 0.9)"),)),
    Mistake(
        "not-chosen-changed", ((MASKED, "masked = kind < 0.8"), (REPLACED, "replaced = (kind >= 0.8) & (kind < 0.9)"))
    ),
    Mistake(
        "special-only-restored",
        (
            ("(choose < 0.15) & ~special", "choose < 0.15"),
            ("return inputs", "inputs = np.where(special, ids, inputs)\n    return inputs"),
        ),
    ),
)

GRADER = Grader(cases, MISTAKES)
