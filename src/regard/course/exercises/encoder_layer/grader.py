"""Calls and known slips of `encoder-layer`: post-norm as in the paper of 2017, padding hidden as keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Made, Slip
from regard.course.exercises.drawing import State, linear, norm, numbers, projections

D_MODEL, D_FF = 4, 5


def weights(rng: np.random.Generator) -> State:
    """Every parameter of the layer, by name."""
    feed_forward = linear(rng, "linear1", D_MODEL, D_FF) | linear(rng, "linear2", D_FF, D_MODEL)
    norms = norm(rng, "norm1", D_MODEL) | norm(rng, "norm2", D_MODEL)
    return projections(rng, D_MODEL, "attention.") | feed_forward | norms


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def encode(about: str, B: int, T: int, mask: np.ndarray | None = None, gradients: bool = False) -> Call:
        made = Made((D_MODEL, 2, D_FF), state=weights(rng))
        args = (numbers(rng, B, T, D_MODEL),) if mask is None else (numbers(rng, B, T, D_MODEL), mask)
        return Call("EncoderLayer", args, about=about, made=made, gradients=gradients)

    return [
        encode("plain", 1, 3, gradients=True),
        encode("longer", 3, 5),
        encode("padding", 1, 5, np.array([[True, True, True, False, False]])),
        encode("as-many-as-heads", 2, 3, np.array([[1, 1, 0], [1, 0, 0]]), gradients=True),
        encode("as-many-as-tokens", 3, 3, np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]])),
    ]


KEYS = "mask = mask[:, None, None, :]"
ATTEND = "attended, weights = self.attention(x, x, mask)"
FIRST = "x = self.norm1(x + attended)"
SECOND = "x = self.norm2(x + self.feed_forward(x))"
ACTIVATE = "self.linear2(torch.relu(self.linear1(x)))"
ZEROED = f"{SECOND}\n        x = x if mask is None else x * seen"
NORMED = "normed = self.norm1(x)\n        attended, weights = self.attention(normed, normed, mask)"

SLIPS = (
    Slip(
        "pre-norm",
        ((ATTEND, NORMED), (FIRST, "x = x + attended"), (SECOND, "x = x + self.feed_forward(self.norm2(x))")),
    ),
    Slip(
        "residual-from-normed",
        (
            (ATTEND, NORMED),
            (FIRST, "x = normed + attended"),
            (SECOND, "normed = self.norm2(x)\n        x = normed + self.feed_forward(normed)"),
        ),
    ),
    Slip("shared-norm", (("self.norm2(x +", "self.norm1(x +"),)),
    Slip("norms-swapped", ((FIRST, "x = self.norm2(x + attended)"), (SECOND, SECOND.replace("norm2", "norm1")))),
    Slip(
        "norm-inside", ((FIRST, "x = x + self.norm1(attended)"), (SECOND, "x = x + self.norm2(self.feed_forward(x))"))
    ),
    Slip("no-norm", ((FIRST, "x = x + attended"), (SECOND, "x = x + self.feed_forward(x)"))),
    Slip("one-norm-only", ((FIRST, "x = x + attended"),)),
    Slip("no-residual", ((FIRST, "x = self.norm1(attended)"), (SECOND, "x = self.norm2(self.feed_forward(x))"))),
    Slip("no-residual-around-attention", ((FIRST, "x = self.norm1(attended)"),)),
    Slip("no-residual-around-feed-forward", ((SECOND, "x = self.norm2(self.feed_forward(x))"),)),
    Slip(
        "residual-from-the-start",
        ((ATTEND, f"start = x\n        {ATTEND}"), (SECOND, SECOND.replace("x +", "start +"))),
    ),
    Slip(
        "feed-forward-first",
        (
            (ATTEND, f"x = self.norm1(x + self.feed_forward(x))\n        {ATTEND}"),
            (FIRST, "x = self.norm2(x + attended)"),
            (f"        {SECOND}\n", ""),
        ),
    ),
    Slip(
        "feed-forward-of-input",
        ((ATTEND, f"start = x\n        {ATTEND}"), (SECOND, SECOND.replace("d(x)", "d(start)"))),
    ),
    Slip("no-relu", ((ACTIVATE, "self.linear2(self.linear1(x))"),)),
    Slip("gelu", (("torch.relu", "nn.functional.gelu"),)),
    Slip("relu-too-late", ((ACTIVATE, "torch.relu(self.linear2(self.linear1(x)))"),)),
    Slip("no-scale", ((" / math.sqrt(self.d_k)", ""),)),
    Slip("mask-ignored", ((KEYS, "mask = None"),)),
    Slip("polarity", ((KEYS, "mask = mask[:, None, None, :] == 0"),)),
    Slip("padded-queries", ((KEYS, "mask = mask[:, None, :, None]"),)),
    Slip("padded-both", ((KEYS, "mask = mask[:, None, :, None] * mask[:, None, None, :]"),)),
    Slip("padded-rows-zeroed", ((KEYS, f"seen = mask[:, :, None]\n            {KEYS}"), (SECOND, ZEROED))),
    Slip("mask-beside-heads", ((KEYS, "mask = mask[:, None, :]"),)),
    Slip("mask-beside-queries", ((KEYS, "mask = mask"),)),
    Slip("detached", ((ATTEND, f"{ATTEND}\n        attended = attended.detach()"),)),
)

GRADER = Grader(cases, SLIPS, weights_too=True)
