"""Calls and known mistakes of `multi-head-self-attention-module`: parameters by name, a mask with an axis for heads."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import Embedded, embedded_edges, masked_embedded, some_visible
from regard.course.exercises.random_inputs import matrices, numbers, visible
from regard.course.exercises.shared_mistakes import BIAS_MISTAKES, TORCH_MASK_MISTAKES, TORCH_MISTAKES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attend(
        about: str, B: int, T: int, sizes: tuple[int, int], mask: np.ndarray | None = None, gradients: bool = False
    ) -> Call:
        instance = Instance(sizes, state=matrices(rng, sizes[0]))
        args = (numbers(rng, B, T, sizes[0]),) if mask is None else (numbers(rng, B, T, sizes[0]), mask)
        return Call("MultiHeadSelfAttention", args, about=about, instance=instance, gradients=gradients)

    def one_hot(about: str, edge: Embedded, mask: np.ndarray | None = None) -> Call:
        zeros = np.zeros(8)
        state = matrices(rng, 8) | {"W_Q": edge.W_q, "W_K": edge.W_k, "b_Q": zeros, "b_K": zeros}
        args = (edge.x,) if mask is None else (edge.x, mask)
        return Call("MultiHeadSelfAttention", args, about=about, instance=Instance((8, 2), state=state))

    some = np.stack([some_visible(rng, 4, 4), some_visible(rng, 4, 4)])
    return [
        attend("plain", 1, 3, (4, 2), gradients=True),
        attend("three-heads", 2, 5, (6, 3)),
        attend("one-head", 2, 4, (3, 1)),
        attend("mask", 3, 4, (6, 2), visible(rng, 3, 4)[:, None]),
        attend("numbers", 2, 3, (4, 2), visible(rng, 2, 3)[:, None].astype(np.float64), gradients=True),
        attend("all-different", 5, 7, (6, 2), visible(rng, 5, 7)[:, None]),
        attend("all-the-same", 3, 3, (9, 3), visible(rng, 3, 3)[:, None]),
        attend("samples-as-heads", 2, 4, (6, 2), visible(rng, 2, 4)[:, None]),
        attend("one-token", 2, 1, (6, 3)),
        attend("nothing-hidden", 2, 3, (6, 3), np.ones((2, 1, 3, 3), dtype=np.int64)),
        attend("one-visible", 1, 4, (6, 3), np.eye(4, dtype=bool)[None, None]),
        *(one_hot(*edge) for edge in embedded_edges(rng, 2, 4, B=2)),
        *(one_hot(*edge, some[:, None]) for edge in masked_embedded(rng, 2, some)),
    ]


SCALE = " / math.sqrt(self.d_k)"
FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
HIDE_LATE = "\n        weights = weights if mask is None else weights.masked_fill(mask == 0, 0.0)"
SPLIT = "x.view(B, T, self.num_heads, self.d_k).transpose(1, 2)"
MERGE = "(weights @ V).transpose(1, 2).reshape(B, T, self.d_model)"
VIEW_IN, VIEW_OUT = "x.view(B, self.num_heads, T, self.d_k)", "(weights @ V).reshape(B, T, self.d_model)"
BIASES = (" + self.b_Q", " + self.b_K", " + self.b_V", " + self.b_O")

MISTAKES = (
    Mistake("keys-like-queries", (("x @ self.W_K + self.b_K", "x @ self.W_Q + self.b_Q"),)),
    Mistake("values-like-keys", (("x @ self.W_V + self.b_V", "x @ self.W_K + self.b_K"),)),
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("sqrt-d-model", ((SCALE, " / math.sqrt(self.d_model)"),)),
    Mistake("divided-by-d-k", ((SCALE, " / self.d_k"),)),
    Mistake("wrong-split", ((SPLIT, VIEW_IN),)),
    Mistake("wrong-merge", ((MERGE, VIEW_OUT),)),
    Mistake("view-only", ((SPLIT, VIEW_IN), (MERGE, VIEW_OUT))),
    Mistake(
        "interleaved",
        (
            (SPLIT, "x.view(B, T, self.d_k, self.num_heads).permute(0, 3, 1, 2)"),
            (MERGE, "(weights @ V).permute(0, 2, 3, 1).reshape(B, T, self.d_model)"),
        ),
    ),
    Mistake("one-head-only", (("self.d_k = d_model // num_heads", "self.num_heads, self.d_k = 1, d_model"),)),
    Mistake("no-projection", tuple((f"x @ self.W_{letter} + self.b_{letter}", "x") for letter in "QKV")),
    Mistake("no-output-matrix", (("merged @ self.W_O + self.b_O", "merged"),)),
    Mistake("bias-forgotten", tuple((bias, "") for bias in BIASES)),
    Mistake("input-biases-forgotten", tuple((bias, "") for bias in BIASES[:3])),
    *BIAS_MISTAKES,
    Mistake("output-bias-forgotten", ((BIASES[3], ""),)),
    Mistake("weight-transposed", tuple((f" @ self.W_{letter} ", f" @ self.W_{letter}.T ") for letter in "QKVO")),
    Mistake("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=-2)"),)),
    Mistake("over-heads", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"),)),
    Mistake("keys-ask", (("Q @ K.transpose(-2, -1)", "K @ Q.transpose(-2, -1)"),)),
    Mistake("polarity", (("mask == 0", "mask != 0"),)),
    Mistake("mask-after-softmax", ((FILL, "pass"), (WEIGHTS, WEIGHTS + HIDE_LATE))),
    Mistake("zero-for-infinity", ((FILL, "scores = scores.masked_fill(mask == 0, 0.0)"),)),
    Mistake("mask-added", ((FILL, "scores = scores + mask"),)),
    Mistake("mask-ignored", ((FILL, "pass"),)),
    Mistake("first-mask-for-all", (("mask == 0", "mask[:1] == 0"),)),
    Mistake("heads-summed", ((MERGE, "(weights @ V).sum(1).repeat(1, 1, self.num_heads)"),)),
    Mistake("weights-averaged", (("+ self.b_O, weights", "+ self.b_O, weights.mean(1)"),)),
    Mistake("heads-for-width", ((SCALE, " / math.sqrt(self.num_heads)"),)),
    *TORCH_MISTAKES,
    *TORCH_MASK_MISTAKES,
    Mistake("detached", ((WEIGHTS, f"{WEIGHTS}.detach()"),)),
    Mistake("merged-interleaved", ((MERGE, "(weights @ V).permute(0, 2, 3, 1).reshape(B, T, self.d_model)"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
