"""Calls and known slips of `scaled-dot-product-module`. No parameters here: all the numbers are arguments."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.course.exercise import Call, Grader, Made, Slip
from regard.course.exercises.edge_inputs import edges, heads, masked_edges
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_slips import FILLS, TORCH_SLIPS


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def qkv(*lead: int, T: int, S: int, d_k: int = 5, d_v: int = 2) -> tuple[np.ndarray, ...]:
        return numbers(rng, *lead, T, d_k), numbers(rng, *lead, S, d_k), numbers(rng, *lead, S, d_v)

    def attention(*args: Any, about: str, causal: bool = False, gradients: bool = False, **kwargs: Any) -> Call:
        made = Made(kwargs={"causal": causal})
        return Call("ScaledDotProductAttention", args, kwargs, about, made, gradients)

    hidden = np.zeros((3, 4), dtype=bool)
    hidden[[0, 1, 1, 2], [1, 0, 3, 2]] = True
    padding = np.array([[[False, False, False, True]], [[False, False, True, True]]])  # B 1 S
    blind = hidden.copy()
    blind[1] = True
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
        attention(*qkv(2, 1, T=3, S=4), about="heads", mask=hidden),  # as many heads as samples hides a lost axis
        attention(*qkv(1, T=3, S=4), about="blind", mask=blind),
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

# As the day-one notes have it: the causal mask comes from the number of keys alone.
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

SLIPS = (
    Slip("no-scale", ((" / math.sqrt(d_k)", ""),)),
    Slip("divided-by-d-k", (("math.sqrt(d_k)", "d_k"),)),
    Slip("sqrt-length", (("d_k = Q.shape[-1]", "d_k = K.shape[-2]"),)),
    Slip("over-queries", ((SOFTMAX, "torch.softmax(scores, dim=-2)"),)),
    Slip("fixed-axes", (("K.transpose(-2, -1)", "K.transpose(1, 2)"),)),
    Slip("polarity", (("mask.bool()", "(mask == 0)"),)),
    Slip("mask-after-softmax", ((FILL, ""),)),
    Slip("zero-for-infinity", ((FILL, "scores = scores.masked_fill(hidden, 0.0)"), (CLEAN, ""))),
    Slip("mask-added", ((FILL, "scores = scores + hidden"), (CLEAN, ""))),
    Slip("causal-missing", (("if self.causal:", "if False:"),)),
    Slip("causal-strict", ((TRIU, "triu(S - T)"),)),
    Slip("causal-upside-down", ((TRIU, "tril(S - T - 1)"),)),
    Slip("causal-from-the-left", ((TRIU, "triu(1)"),)),
    Slip("one-mask-only", (("hidden | mask.bool()", "mask.bool()"),)),
    Slip("blind-is-nan", ((CLEAN, ""),)),
    Slip("blind-is-mean", ((FILL, "scores = scores.masked_fill(hidden, -1e9)"), (CLEAN, ""))),
    *(slip for slip in TORCH_SLIPS if slip.id != "causal-not-asked"),
    *(Slip("fill-too-high", ((FILL, FILL.replace("-math.inf", fill)),)) for fill in FILLS[1::3]),
    *(Slip("fill-too-high", ((FILL, FILL.replace("-math.inf", fill)), (CLEAN, ""))) for fill in FILLS[1::3]),
    Slip("masked-too-late", ((FILL, ""), (CLEAN, f"{CLEAN}\n        {AGAIN}"))),
    Slip(
        "masked-too-late",
        ((FILL, ""), (CLEAN, f"{CLEAN}\n        weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)")),
    ),
    Slip("mask-beside-heads", (("if mask.ndim == 3 and scores.ndim == 4:", "if False:"),)),
    Slip("mask-beside-heads", (("if mask.ndim == 3 and scores.ndim == 4:", "if False:"), (CLEAN, ""))),
    Slip("mask-beside-heads", (("mask.ndim == 3 and scores.ndim == 4", "mask.ndim == 3 and len(mask) == 1"),)),
    Slip(
        "causal-square", ((f"torch.ones(T, S, dtype=torch.bool).{TRIU}", "torch.ones(S, S, dtype=torch.bool).triu(1)"),)
    ),
    *(Slip("causal-square", source=SQUARE.format(**parts)) for parts in SQUARES),
    Slip("scores-for-weights", (("return weights @ V, weights", "return weights @ V, scores"),)),
    Slip("detached", ((SOFTMAX, f"{SOFTMAX}.detach()"),)),
    Slip("not-weighted", (("weights @ V", "V.mean(-2, keepdim=True).expand(*Q.shape[:-1], V.shape[-1])"),)),
)

GRADER = Grader(cases, SLIPS, weights_too=True)
