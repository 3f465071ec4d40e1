"""Calls and known mistakes of `encoder-layer`: post-norm as in the paper of 2017, padding hidden as keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import Embedded, embedded_edges, masked_embedded
from regard.course.exercises.random_inputs import State, linear, norm, numbers, projections
from regard.course.exercises.shared_mistakes import HEADS_FOR_WIDTH, TORCH_MASK_MISTAKES, TORCH_MISTAKES

Sizes = tuple[int, int, int]
"""d_model, n_heads, d_ff. The number of heads never equals the width of a head, so that mixing them up is detected."""


def weights(rng: np.random.Generator, sizes: Sizes) -> State:
    """Every parameter of the layer, by name."""
    d_model, _, d_ff = sizes
    feed_forward = linear(rng, "linear1", d_model, d_ff) | linear(rng, "linear2", d_ff, d_model)
    norms = norm(rng, "norm1", d_model) | norm(rng, "norm2", d_model)
    return projections(rng, d_model, "attention.") | feed_forward | norms


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def encode(
        about: str,
        B: int,
        T: int,
        mask: np.ndarray | None = None,
        gradients: bool = False,
        sizes: Sizes = (6, 2, 5),
    ) -> Call:
        instance = Instance(sizes, state=weights(rng, sizes))
        args = (numbers(rng, B, T, sizes[0]),) if mask is None else (numbers(rng, B, T, sizes[0]), mask)
        return Call("EncoderLayer", args, about=about, instance=instance, gradients=gradients)

    def one_hot(about: str, edge: Embedded, mask: np.ndarray | None = None) -> Call:
        given = {"W_q.weight": edge.W_q.T, "W_k.weight": edge.W_k.T, "W_q.bias": np.zeros(8), "W_k.bias": np.zeros(8)}
        state = weights(rng, (8, 2, 5)) | {f"attention.{name}": value for name, value in given.items()}
        args = (edge.x,) if mask is None else (edge.x, mask)
        return Call("EncoderLayer", args, about=about, instance=Instance((8, 2, 5), state=state))

    real = np.array([[True, True, True, False], [True, True, False, False]])
    keys = np.repeat(real[:, None], 4, axis=1)  # B T S: padding hides keys, for every query
    return [
        encode("plain", 1, 3, gradients=True),
        encode("longer", 3, 5),
        encode("padding", 1, 5, np.array([[True, True, True, False, False]])),
        encode("as-many-as-heads", 2, 3, np.array([[1, 1, 0], [1, 0, 0]]), gradients=True),
        encode("as-many-as-tokens", 3, 3, np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]])),
        encode("all-different", 4, 5, rng.permuted(np.tile([1, 1, 1, 0, 0], (4, 1)), axis=1), sizes=(6, 2, 7)),
        encode("three-heads", 2, 4, sizes=(6, 3, 5)),
        encode("one-head", 2, 3, np.array([[1, 1, 0], [0, 1, 0]]), sizes=(4, 1, 3)),
        encode("all-the-same", 3, 3, np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]), sizes=(9, 3, 9)),
        encode("one-token", 2, 1, np.array([[True], [True]])),
        encode("nothing-hidden", 2, 4, np.ones((2, 4), dtype=bool), sizes=(6, 3, 4)),
        *(one_hot(*edge) for edge in embedded_edges(rng, 2, 4, B=2)),
        *(one_hot(*edge, real) for edge in masked_embedded(rng, 2, keys)),
    ]


KEYS = "mask = mask[:, None, None, :]"
ATTEND = "attended, weights = self.attention(x, x, mask)"
FIRST = "x = self.norm1(x + attended)"
SECOND = "x = self.norm2(x + self.feed_forward(x))"
ACTIVATE = "self.linear2(torch.relu(self.linear1(x)))"
ZEROED = f"{SECOND}\n        x = x if mask is None else x * seen"
NORMED = "normed = self.norm1(x)\n        attended, weights = self.attention(normed, normed, mask)"

MISTAKES = (
    Mistake(
        "pre-norm",
        ((ATTEND, NORMED), (FIRST, "x = x + attended"), (SECOND, "x = x + self.feed_forward(self.norm2(x))")),
    ),
    Mistake(
        "residual-from-normed",
        (
            (ATTEND, NORMED),
            (FIRST, "x = normed + attended"),
            (SECOND, "normed = self.norm2(x)\n        x = normed + self.feed_forward(normed)"),
        ),
    ),
    Mistake("shared-norm", (("self.norm2(x +", "self.norm1(x +"),)),
    Mistake("norms-swapped", ((FIRST, "x = self.norm2(x + attended)"), (SECOND, SECOND.replace("norm2", "norm1")))),
    Mistake(
        "norm-inside", ((FIRST, "x = x + self.norm1(attended)"), (SECOND, "x = x + self.norm2(self.feed_forward(x))"))
    ),
    Mistake("no-norm", ((FIRST, "x = x + attended"), (SECOND, "x = x + self.feed_forward(x)"))),
    Mistake("one-norm-only", ((FIRST, "x = x + attended"),)),
    Mistake("no-residual", ((FIRST, "x = self.norm1(attended)"), (SECOND, "x = self.norm2(self.feed_forward(x))"))),
    Mistake("no-residual-around-attention", ((FIRST, "x = self.norm1(attended)"),)),
    Mistake("no-residual-around-feed-forward", ((SECOND, "x = self.norm2(self.feed_forward(x))"),)),
    Mistake(
        "residual-from-the-start",
        ((ATTEND, f"start = x\n        {ATTEND}"), (SECOND, SECOND.replace("x +", "start +"))),
    ),
    Mistake(
        "feed-forward-first",
        (
            (ATTEND, f"x = self.norm1(x + self.feed_forward(x))\n        {ATTEND}"),
            (FIRST, "x = self.norm2(x + attended)"),
            (f"        {SECOND}\n", ""),
        ),
    ),
    Mistake(
        "feed-forward-of-input",
        ((ATTEND, f"start = x\n        {ATTEND}"), (SECOND, SECOND.replace("d(x)", "d(start)"))),
    ),
    Mistake("no-relu", ((ACTIVATE, "self.linear2(self.linear1(x))"),)),
    Mistake("gelu", (("torch.relu", "nn.functional.gelu"),)),
    Mistake("relu-too-late", ((ACTIVATE, "torch.relu(self.linear2(self.linear1(x)))"),)),
    Mistake("no-scale", ((" / math.sqrt(self.d_k)", ""),)),
    Mistake("mask-ignored", ((KEYS, "mask = None"),)),
    Mistake("polarity", ((KEYS, "mask = mask[:, None, None, :] == 0"),)),
    Mistake("padded-queries", ((KEYS, "mask = mask[:, None, :, None]"),)),
    Mistake("padded-both", ((KEYS, "mask = mask[:, None, :, None] * mask[:, None, None, :]"),)),
    Mistake("padded-rows-zeroed", ((KEYS, f"seen = mask[:, :, None]\n            {KEYS}"), (SECOND, ZEROED))),
    Mistake("mask-beside-heads", ((KEYS, "mask = mask[:, None, :]"),)),
    Mistake("mask-beside-queries", ((KEYS, "mask = mask"),)),
    HEADS_FOR_WIDTH,
    *TORCH_MISTAKES,
    *TORCH_MASK_MISTAKES,
    Mistake("detached", ((ATTEND, f"{ATTEND}\n        attended = attended.detach()"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
