"""Calls and known mistakes of `masked-self-attention-module`: one head, masks of three dtypes."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import Embedded, embedded_edges, masked_embedded, some_visible
from regard.course.exercises.random_inputs import matrices, numbers, visible
from regard.course.exercises.shared_mistakes import BIAS_MISTAKES, TORCH_MASK_MISTAKES, TORCH_MISTAKES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attend(about: str, B: int, T: int, d_model: int, mask: np.ndarray | None, gradients: bool = False) -> Call:
        instance = Instance((d_model,), state=matrices(rng, d_model))
        args = (numbers(rng, B, T, d_model),) if mask is None else (numbers(rng, B, T, d_model), mask)
        return Call("SingleHeadSelfAttentionWithMask", args, about=about, instance=instance, gradients=gradients)

    def one_hot(about: str, edge: Embedded, mask: np.ndarray | None = None) -> Call:
        state = matrices(rng, 4) | {"W_Q": edge.W_q, "W_K": edge.W_k, "b_Q": np.zeros(4), "b_K": np.zeros(4)}
        args = (edge.x,) if mask is None else (edge.x, mask)
        return Call("SingleHeadSelfAttentionWithMask", args, about=about, instance=Instance((4,), state=state))

    some = some_visible(rng, 4, 4)[None]
    padding = np.ones((2, 4, 4), dtype=np.int64)
    padding[0, :, 3:] = padding[1, :, 2:] = 0
    window = np.tril(np.triu(np.ones((1, 4, 4)), -2))  # itself and two before; inverted, no row is empty
    return [
        attend("plain", 1, 2, 3, None),
        attend("mask", 2, 3, 4, visible(rng, 2, 3), gradients=True),
        attend("window", 2, 4, 3, window),
        attend("padding", 2, 4, 3, padding),
        attend("another-mask", 3, 4, 2, visible(rng, 3, 4)),
        attend("all-different", 2, 5, 3, visible(rng, 2, 5)),
        attend("all-the-same", 3, 3, 3, visible(rng, 3, 3)),
        attend("one-key", 2, 1, 3, np.ones((2, 1, 1), dtype=bool)),
        attend("nothing-hidden", 2, 3, 4, np.ones((2, 3, 3))),
        attend("one-visible", 2, 3, 4, np.stack([np.eye(3, dtype=bool), np.eye(3, dtype=bool)[::-1]])),
        *(one_hot(*edge) for edge in embedded_edges(rng, 1, 4)),
        *(one_hot(*edge, some) for edge in masked_embedded(rng, 1, some)),
    ]


FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
HIDE_LATE = "\n        weights = weights if mask is None else weights.masked_fill(mask == 0, 0.0)"
ROOT = "math.sqrt(self.d_model)"
BIASES = (" + self.b_Q", " + self.b_K", " + self.b_V", " + self.b_O")

MISTAKES = (
    Mistake("polarity", (("mask == 0", "mask != 0"),)),
    Mistake("mask-after-softmax", ((FILL, "pass"), (WEIGHTS, WEIGHTS + HIDE_LATE))),
    Mistake("zero-for-infinity", ((FILL, "scores = scores.masked_fill(mask == 0, 0.0)"),)),
    Mistake("mask-added", ((FILL, "scores = scores + mask"),)),
    Mistake("mask-ignored", ((FILL, "pass"),)),
    Mistake("mask-transposed", (("mask == 0", "mask.transpose(-2, -1) == 0"),)),
    Mistake("first-mask-for-all", (("mask == 0", "mask[:1] == 0"),)),
    Mistake("values-hidden-only", ((FILL, "V = V * mask[:, -1].unsqueeze(-1)"),)),
    Mistake("no-scale", ((f" / {ROOT}", ""),)),
    Mistake("divided-by-d-k", ((ROOT, "self.d_model"),)),
    Mistake("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"),)),
    # A column of padding, softmaxed, is NaN with -inf and even with a very small number.
    Mistake("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"), ("-math.inf", "-1e9"))),
    Mistake("bias-forgotten", tuple((bias, "") for bias in BIASES)),
    Mistake("input-biases-forgotten", tuple((bias, "") for bias in BIASES[:3])),
    *BIAS_MISTAKES,
    Mistake("output-bias-forgotten", ((BIASES[3], ""),)),
    Mistake("weight-transposed", tuple((f" @ self.W_{letter}", f" @ self.W_{letter}.T") for letter in "QKVO")),
    Mistake("no-output-matrix", (("out @ self.W_O + self.b_O", "out"),)),
    *TORCH_MISTAKES,
    *TORCH_MASK_MISTAKES,
    Mistake("detached", ((WEIGHTS, f"{WEIGHTS}.detach()"),)),
    Mistake("logarithm-of-mask", ((FILL, "scores = scores + torch.log(mask.float() + 1e-9)"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
