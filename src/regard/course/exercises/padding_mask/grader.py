"""Calls and known slips of `padding-mask`: which token pads, which axis is hidden, and -inf rather than 1."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call
from regard.course.exercises.causal_mask.grader import LARGE


def padded(rng: np.random.Generator, lengths: Sequence[int], S: int, pad: int) -> np.ndarray:
    """Tokens 0 … 9 without `pad`, B S; each row is filled up with `pad` after its length."""
    tokens = rng.choice([token for token in range(10) if token != pad], (len(lengths), S))
    return np.where(np.arange(S) < np.array(lengths)[:, None], tokens, pad)


def cases(rng: np.random.Generator) -> Sequence[Call]:
    # Real tokens on both sides of the one that pads, 0 among them: only "is it equal?" is right.
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

SLIPS = (
    Slip("polarity", ((CHOICE, "np.where(seq == pad_token, 0.0, -np.inf)"),)),
    Slip("only-zero", (("seq == pad_token", "seq == 0"),)),
    Slip("smaller-too", (("seq == pad_token", "seq <= pad_token"),)),
    Slip("rest-of-row", (("seq == pad_token", "np.cumsum(seq == pad_token, axis=1) > 0"),)),
    Slip("end-only", (("seq == pad_token", "np.cumprod((seq == pad_token)[:, ::-1], axis=1)[:, ::-1] > 0"),)),
    Slip("by-length", (("seq == pad_token", "np.arange(seq.shape[1]) >= (seq != pad_token).sum(axis=1)[:, None]"),)),
    Slip("first-row", (("seq == pad_token", "np.ones(seq.shape) * seq[0] == pad_token"),)),
    Slip("zero-times-infinity", ((CHOICE, "(seq == pad_token) * -np.inf"),)),
    Slip("two-axes", ((RETURN, "mask"),)),
    Slip("four-axes", ((RETURN, "mask[:, None, None, :]"),)),
    Slip("queries-hidden", ((RETURN, "mask[:, :, None]"),)),
    Slip("square", ((RETURN, "np.repeat(mask[:, None, :], seq.shape[1], axis=1)"),)),
    Slip("axis-in-front", ((RETURN, "mask[None]"),)),
    Slip("one-keeps", ((CHOICE, "np.where(seq == pad_token, 0.0, 1.0)"),)),
    Slip("one-keeps", ((CHOICE, "np.where(seq == pad_token, 0, 1)"),)),
    Slip("one-hides", ((CHOICE, "np.where(seq == pad_token, 1.0, 0.0)"),)),
    Slip("one-hides", ((CHOICE, "np.where(seq == pad_token, 1, 0)"),)),
    Slip("boolean", ((CHOICE, "seq != pad_token"),)),
    Slip("boolean-hides", ((CHOICE, "seq == pad_token"),)),
    *(Slip("large-number", (("-np.inf", number),)) for number in LARGE),
    Slip("plus-infinity", (("-np.inf", "np.inf"),)),
    Slip("nothing-hidden", ((CHOICE, "np.zeros(seq.shape)"),)),
    Slip("hard-coded", ((RETURN, "np.array([[[0, 0, 0, -np.inf, -np.inf]], [[0, 0, -np.inf, -np.inf, -np.inf]]])"),)),
)

GRADER = Grader(cases, SLIPS)
