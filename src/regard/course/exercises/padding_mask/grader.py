"""Calls and known mistakes of `padding-mask`: the padding token, the masked axis, and -inf instead of 1."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.causal_mask.grader import LARGE


def padded(rng: np.random.Generator, lengths: Sequence[int], S: int, pad: int) -> np.ndarray:
    """Tokens 0 … 9 except `pad`, B S; each row is padded after its length."""
    tokens = rng.choice([token for token in range(10) if token != pad], (len(lengths), S))
    return np.where(np.arange(S) < np.array(lengths)[:, None], tokens, pad)


def cases(rng: np.random.Generator) -> Sequence[Call]:
    # Real tokens below and above the padding token, also 0: only a test for equality is right.
    pad = int(rng.integers(3, 7))
    other = padded(rng, rng.permutation([1, 3, 4]).tolist(), 4, pad)
    other[:, 0] = rng.permutation([0, 1, 9])
    inside = padded(rng, [4, 5], 5, 0)
    inside[0, 1] = 0  # a gap: the token after it is real
    return [
        call("create_padding_mask", padded(rng, rng.permutation([2, 4, 5]).tolist(), 5, 0)),
        call("create_padding_mask", other, pad, about="other-token"),
        call("create_padding_mask", inside, 0, about="inside"),
        call("create_padding_mask", padded(rng, [2], 3, 0), about="one-sample"),
        call("create_padding_mask", padded(rng, [3, 3], 3, -1), -1, about="none"),
        call("create_padding_mask", padded(rng, [3, 1], 3, -1), -1, about="minus-one"),
        call("create_padding_mask", padded(rng, [2, 0, 1], 2, 0), about="only-padding"),
        call("create_padding_mask", padded(rng, [3, 1, 2], 3, 0), about="all-the-same"),
        call("create_padding_mask", padded(rng, [1, 0, 1, 0], 1, 7), 7, about="one-key"),
    ]


CHOICE = "np.where(seq == pad_token, -np.inf, 0.0)"
RETURN = "mask[:, None, :]"

MISTAKES = (
    Mistake("polarity", ((CHOICE, "np.where(seq == pad_token, 0.0, -np.inf)"),)),
    Mistake("only-zero", (("seq == pad_token", "seq == 0"),)),
    Mistake("smaller-too", (("seq == pad_token", "seq <= pad_token"),)),
    Mistake("rest-of-row", (("seq == pad_token", "np.cumsum(seq == pad_token, axis=1) > 0"),)),
    Mistake("end-only", (("seq == pad_token", "np.cumprod((seq == pad_token)[:, ::-1], axis=1)[:, ::-1] > 0"),)),
    Mistake("by-length", (("seq == pad_token", "np.arange(seq.shape[1]) >= (seq != pad_token).sum(axis=1)[:, None]"),)),
    Mistake("first-row", (("seq == pad_token", "np.ones(seq.shape) * seq[0] == pad_token"),)),
    Mistake("zero-times-infinity", ((CHOICE, "(seq == pad_token) * -np.inf"),)),
    Mistake("two-axes", ((RETURN, "mask"),)),
    Mistake("four-axes", ((RETURN, "mask[:, None, None, :]"),)),
    Mistake("queries-hidden", ((RETURN, "mask[:, :, None]"),)),
    Mistake("square", ((RETURN, "np.repeat(mask[:, None, :], seq.shape[1], axis=1)"),)),
    Mistake("axis-in-front", ((RETURN, "mask[None]"),)),
    Mistake("one-keeps", ((CHOICE, "np.where(seq == pad_token, 0.0, 1.0)"),)),
    Mistake("one-keeps", ((CHOICE, "np.where(seq == pad_token, 0, 1)"),)),
    Mistake("one-hides", ((CHOICE, "np.where(seq == pad_token, 1.0, 0.0)"),)),
    Mistake("one-hides", ((CHOICE, "np.where(seq == pad_token, 1, 0)"),)),
    Mistake("ones-for-words", ((CHOICE, "np.where(seq == pad_token, -np.inf, 1.0)"),)),
    Mistake("boolean", ((CHOICE, "seq != pad_token"),)),
    Mistake("boolean-hides", ((CHOICE, "seq == pad_token"),)),
    *(Mistake("large-number", (("-np.inf", number),)) for number in LARGE),
    Mistake("plus-infinity", (("-np.inf", "np.inf"),)),
    Mistake("nothing-hidden", ((CHOICE, "np.zeros(seq.shape)"),)),
    Mistake(
        "hard-coded", ((RETURN, "np.array([[[0, 0, 0, -np.inf, -np.inf]], [[0, 0, -np.inf, -np.inf, -np.inf]]])"),)
    ),
)

GRADER = Grader(cases, MISTAKES)
