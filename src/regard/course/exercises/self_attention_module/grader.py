"""Calls and known mistakes of `self-attention-module`: the weights are given, not random."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import Embedded, embedded_edges, masked_embedded, some_visible
from regard.course.exercises.random_inputs import numbers, projections, visible
from regard.course.exercises.shared_mistakes import HEADS_FOR_WIDTH, TORCH_MASK_MISTAKES, TORCH_MISTAKES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attend(
        about: str,
        B: int,
        T: int,
        *,
        d_model: int = 4,
        n_heads: int = 2,
        masked: type | None = None,
        grad: bool = False,
    ) -> Call:
        instance = Instance((d_model, n_heads), state=projections(rng, d_model))
        args: tuple[np.ndarray, ...] = (numbers(rng, B, T, d_model),)
        if masked:
            args += (visible(rng, B, T).astype(masked),)
        return Call("SelfAttention", args, about=about, instance=instance, gradients=grad)

    def one_hot(about: str, edge: Embedded, mask: np.ndarray | None = None) -> Call:
        given = {"W_q.weight": edge.W_q.T, "W_k.weight": edge.W_k.T, "W_q.bias": np.zeros(8), "W_k.bias": np.zeros(8)}
        args = (edge.x,) if mask is None else (edge.x, mask)
        return Call("SelfAttention", args, about=about, instance=Instance((8, 2), state=projections(rng, 8) | given))

    some = np.stack([some_visible(rng, 4, 4), some_visible(rng, 4, 4)])
    return [
        attend("plain", 1, 3, grad=True),
        attend("three-heads", 2, 5, d_model=6, n_heads=3),
        attend("one-head", 2, 3, n_heads=1),
        attend("mask", 3, 4, d_model=6, masked=bool),
        attend("as-many-samples-as-heads", 2, 3, masked=int, grad=True),
        attend("all-different", 5, 7, d_model=6, masked=bool),
        attend("all-the-same", 3, 3, d_model=9, n_heads=3, masked=bool),
        attend("one-token", 2, 1, d_model=6, n_heads=3),
        one_hot("nothing-hidden", next(embedded_edges(rng, 2, 4, B=2))[1], np.ones((2, 4, 4), dtype=bool)),
        one_hot("one-visible", next(embedded_edges(rng, 2, 4))[1], np.eye(4, dtype=np.int64)[None]),
        *(one_hot(*edge) for edge in embedded_edges(rng, 2, 4, B=2)),
        *(one_hot(*edge, some) for edge in masked_embedded(rng, 2, some)),
    ]


SCALE = " / math.sqrt(self.d_k)"
FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
SPLIT = "x.view(B, T, self.n_heads, self.d_k).transpose(1, 2)"
MERGE = "x.transpose(1, 2).reshape(B, T, self.d_model)"
WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
RETURN = "return weights @ V"
HIDE_LATE = "weights = weights if mask is None else weights.masked_fill(mask == 0, 0.0)\n        "
PROJECT = "self.W_q(x), self.W_k(x), self.W_v(x)"

MISTAKES = (
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("sqrt-d-model", ((SCALE, " / math.sqrt(self.d_model)"),)),
    Mistake("divided-by-d-k", ((SCALE, " / self.d_k"),)),
    Mistake("wrong-split", ((SPLIT, "x.view(B, self.n_heads, T, self.d_k)"),)),
    Mistake("wrong-merge", ((MERGE, "x.reshape(B, T, self.d_model)"),)),
    Mistake("view-only", ((SPLIT, "x.view(B, self.n_heads, T, self.d_k)"), (MERGE, "x.reshape(B, T, self.d_model)"))),
    Mistake(
        "between-heads",
        (
            (SPLIT, "x.view(B, T, self.n_heads, self.d_k)"),
            ("B, _, T, _ = x.shape", "B, T = x.shape[:2]"),
            (MERGE, "x.reshape(B, T, self.d_model)"),
        ),
    ),
    Mistake(
        "interleaved",
        (
            (SPLIT, "x.view(B, T, self.d_k, self.n_heads).permute(0, 3, 1, 2)"),
            (MERGE, "x.permute(0, 2, 3, 1).reshape(B, T, self.d_model)"),
        ),
    ),
    Mistake("one-head-only", (("self.d_k = d_model // n_heads", "self.n_heads, self.d_k = 1, d_model"),)),
    Mistake("no-projection", ((PROJECT, "x, x, x"),)),
    Mistake("no-output-layer", (("self.W_o(self.merge(out))", "self.merge(out)"),)),
    Mistake("bias-forgotten", ((PROJECT, "x @ self.W_q.weight.T, x @ self.W_k.weight.T, x @ self.W_v.weight.T"),)),
    Mistake("weight-not-transposed", ((PROJECT, "*(x @ W.weight + W.bias for W in (self.W_q, self.W_k, self.W_v)),"),)),
    Mistake("over-queries", ((WEIGHTS, "weights = torch.softmax(scores, dim=-2)"),)),
    Mistake("over-heads", ((WEIGHTS, "weights = torch.softmax(scores, dim=1)"),)),
    Mistake("keys-ask", (("Q @ K.transpose(-2, -1)", "K @ Q.transpose(-2, -1)"),)),
    Mistake("one-projection", ((PROJECT, "self.W_q(x), self.W_q(x), self.W_v(x)"),)),
    Mistake("polarity", (("mask == 0", "mask != 0"),)),
    Mistake("mask-after-softmax", ((FILL, "pass"), (RETURN, HIDE_LATE + RETURN))),
    Mistake("zero-for-infinity", ((FILL, "scores = scores.masked_fill(mask == 0, 0.0)"),)),
    Mistake("mask-ignored", (("mask = mask.unsqueeze(1)", "mask = None"),)),
    Mistake("mask-beside-heads", (("mask = mask.unsqueeze(1)", "mask = mask"),)),
    Mistake("weights-averaged", (("self.merge(out)), weights", "self.merge(out)), weights.mean(1)"),)),
    HEADS_FOR_WIDTH,
    *TORCH_MISTAKES,
    *TORCH_MASK_MISTAKES,
    Mistake("detached", ((WEIGHTS, f"{WEIGHTS}.detach()"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
