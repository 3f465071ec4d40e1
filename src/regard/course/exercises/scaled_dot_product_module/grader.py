"""Calls and known mistakes of `scaled-dot-product-module`. The module has no parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.course.exercise import Call, Grader, Instance, Mistake
from regard.course.exercises.edge_inputs import edges, heads, masked_edges
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import FILLS, TORCH_MISTAKES


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def qkv(*lead: int, T: int, S: int, d_k: int = 5, d_v: int = 2) -> tuple[np.ndarray, ...]:
        return numbers(rng, *lead, T, d_k), numbers(rng, *lead, S, d_k), numbers(rng, *lead, S, d_v)

    def attention(*args: Any, about: str, causal: bool = False, gradients: bool = False, **kwargs: Any) -> Call:
        instance = Instance(kwargs={"causal": causal})
        return Call("ScaledDotProductAttention", args, kwargs, about, instance, gradients)

    hidden = np.zeros((3, 4), dtype=bool)
    hidden[[0, 1, 1, 2], [1, 0, 3, 2]] = True
    padding = np.array([[[False, False, False, True]], [[False, False, True, True]]])  # B 1 S
    fully_masked = hidden.copy()
    fully_masked[1] = True
    two = np.eye(2)[None]
    return [
        attention(two, two, np.array([[[1.0], [2.0]]]), about="example", causal=True),
        attention(*qkv(2, T=3, S=4), about="plain", gradients=True),
        attention(*qkv(2, T=3, S=4), about="hidden", mask=hidden, gradients=True),
        attention(*qkv(2, T=4, S=4), about="causal", causal=True, gradients=True),
        attention(*qkv(1, T=3, S=4), about="cached", causal=True),
        attention(*qkv(2, T=4, S=4), about="both", causal=True, mask=padding),
        attention(*qkv(2, T=3, S=4), about="integers", mask=padding.astype(np.int64)),
        attention(*qkv(1, 2, T=3, S=4), about="heads", mask=hidden),
        attention(*qkv(2, 1, T=3, S=4), about="heads", mask=hidden),  # B = H would hide a missing axis
        attention(*qkv(1, T=3, S=4), about="blind", mask=fully_masked),
        attention(*qkv(2, 2, T=3, S=4), about="samples-as-heads", mask=padding),
        attention(*qkv(2, 2, T=4, S=4), about="samples-as-heads", mask=padding.astype(np.int64), causal=True),
        attention(*qkv(2, 3, T=5, S=4, d_k=6, d_v=7), about="all-different", mask=padding),
        attention(*qkv(3, 3, T=3, S=3, d_k=3, d_v=3), about="all-the-same", causal=True),
        attention(*qkv(2, T=1, S=5), about="one-query", causal=True),
        attention(*qkv(2, T=3, S=1), about="one-key"),
        attention(*qkv(1, T=2, S=2), about="all-hidden", mask=np.array([[[True, True]]])),
        *(attention(q[None], k[None], numbers(rng, 1, 4, 3), about=about) for about, q, k, _ in edges(rng, 3, 4)),
        *(attention(q[None], k[None], numbers(rng, 1, 2, 4, 3), about=about) for about, q, k in heads(rng, 2, 3, 4)),
        *(
            attention(q[None], k[None], numbers(rng, 1, 4, 3), about=about, mask=~visible)
            for about, q, k, visible in masked_edges(rng, 3, 4, empty_rows=True)
            if visible is not None
        ),
    ]


FILL = "scores = scores.masked_fill(hidden, -math.inf)"
CLEAN = "weights = weights.masked_fill(hidden, 0.0)"
TRIU = "triu(S - T + 1)"
SOFTMAX = "torch.softmax(scores, dim=-1)"

AGAIN = "weights = weights / weights.sum(-1, keepdim=True)"

# As in the notes of day one: the causal mask is built from the number of keys only.
SQUARE = """import math

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_k=None, causal=False):
        super().__init__()
        self.d_k, self.causal = d_k, causal

    def forward(self, Q, K, V, mask=None):
        scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
        if self.causal:
            S = scores.size(-1)
            {causal}(torch.triu(torch.ones((S, S)), diagonal=1).bool(), -math.inf)
        if mask is not None:
            {mask}
            scores = scores.masked_fill(mask.bool(), -math.inf)
        weights = torch.softmax(scores, dim=-1){clean}
        return weights @ V, weights
"""
SQUARES = [
    {"causal": causal, "mask": mask, "clean": clean}
    for causal in ("scores.masked_fill_", "scores = scores.masked_fill")
    for mask in ("pass", "mask = mask[:, None] if mask.dim() == 3 and Q.dim() == 4 else mask")
    for clean in ("", ".nan_to_num(0.0)")
]

MISTAKES = (
    Mistake("no-scale", ((" / math.sqrt(d_k)", ""),)),
    Mistake("divided-by-d-k", (("math.sqrt(d_k)", "d_k"),)),
    Mistake("root-of-values", (("d_k = Q.shape[-1]", "d_k = V.shape[-1]"),)),
    Mistake("sqrt-length", (("d_k = Q.shape[-1]", "d_k = K.shape[-2]"),)),
    Mistake("over-queries", ((SOFTMAX, "torch.softmax(scores, dim=-2)"),)),
    Mistake("fixed-axes", (("K.transpose(-2, -1)", "K.transpose(1, 2)"),)),
    Mistake("polarity", (("mask.bool()", "(mask == 0)"),)),
    Mistake("mask-after-softmax", ((FILL, ""),)),
    Mistake("zero-for-infinity", ((FILL, "scores = scores.masked_fill(hidden, 0.0)"), (CLEAN, ""))),
    Mistake("mask-added", ((FILL, "scores = scores + hidden"), (CLEAN, ""))),
    Mistake("causal-missing", (("if self.causal:", "if False:"),)),
    Mistake("causal-strict", ((TRIU, "triu(S - T)"),)),
    Mistake("causal-upside-down", ((TRIU, "tril(S - T - 1)"),)),
    Mistake("causal-from-the-left", ((TRIU, "triu(1)"),)),
    Mistake("one-mask-only", (("hidden | mask.bool()", "mask.bool()"),)),
    Mistake("blind-is-nan", ((CLEAN, ""),)),
    Mistake("blind-is-mean", ((FILL, "scores = scores.masked_fill(hidden, -1e9)"), (CLEAN, ""))),
    *(mistake for mistake in TORCH_MISTAKES if mistake.id != "causal-not-asked"),
    *(Mistake("fill-too-high", ((FILL, FILL.replace("-math.inf", fill)),)) for fill in FILLS[1::3]),
    *(Mistake("fill-too-high", ((FILL, FILL.replace("-math.inf", fill)), (CLEAN, ""))) for fill in FILLS[1::3]),
    Mistake("masked-too-late", ((FILL, ""), (CLEAN, f"{CLEAN}\n        {AGAIN}"))),
    Mistake(
        "masked-too-late",
        ((FILL, ""), (CLEAN, f"{CLEAN}\n        weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)")),
    ),
    Mistake("mask-beside-heads", (("if mask.ndim == 3 and scores.ndim == 4:", "if False:"),)),
    Mistake("mask-beside-heads", (("if mask.ndim == 3 and scores.ndim == 4:", "if False:"), (CLEAN, ""))),
    Mistake("mask-beside-heads", (("mask.ndim == 3 and scores.ndim == 4", "mask.ndim == 3 and len(mask) == 1"),)),
    Mistake(
        "causal-square", ((f"torch.ones(T, S, dtype=torch.bool).{TRIU}", "torch.ones(S, S, dtype=torch.bool).triu(1)"),)
    ),
    *(Mistake("causal-square", source=SQUARE.format(**parts)) for parts in SQUARES),
    Mistake("scores-for-weights", (("return weights @ V, weights", "return weights @ V, scores"),)),
    Mistake("detached", ((SOFTMAX, f"{SOFTMAX}.detach()"),)),
    Mistake("not-weighted", (("weights @ V", "V.mean(-2, keepdim=True).expand(*Q.shape[:-1], V.shape[-1])"),)),
    Mistake("softmax-axis-one", ((SOFTMAX, "torch.softmax(scores, dim=1)"),)),
    Mistake("integers-inverted", (("mask.bool()", "(~mask).bool()"),)),
)

GRADER = Grader(cases, MISTAKES, weights_optional=True)
