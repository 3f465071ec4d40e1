"""Calls and known slips of `scaled-dot-product-module`. No parameters here: all the numbers are arguments."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.course.exercise import Call, Grader, Made, Slip
from regard.course.exercises.drawing import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def qkv(*lead: int, T: int, S: int) -> tuple[np.ndarray, ...]:
        return numbers(rng, *lead, T, 5), numbers(rng, *lead, S, 5), numbers(rng, *lead, S, 2)

    def attention(*args: Any, about: str, causal: bool = False, gradients: bool = False, **kwargs: Any) -> Call:
        made = Made(kwargs={"causal": causal})
        return Call("ScaledDotProductAttention", args, kwargs, about, made, gradients)

    hidden = np.zeros((3, 4), dtype=bool)
    hidden[[0, 1, 1, 2], [1, 0, 3, 2]] = True
    padding = np.array([[[False, False, False, True]], [[False, False, True, True]]])  # B 1 S
    blind = hidden.copy()
    blind[1] = True
    return [
        attention(*qkv(2, T=3, S=4), about="plain", gradients=True),
        attention(*qkv(2, T=3, S=4), about="hidden", mask=hidden, gradients=True),
        attention(*qkv(2, T=4, S=4), about="causal", causal=True, gradients=True),
        attention(*qkv(1, T=3, S=4), about="cached", causal=True),
        attention(*qkv(2, T=4, S=4), about="both", causal=True, mask=padding),
        attention(*qkv(2, T=3, S=4), about="integers", mask=padding.astype(np.int64)),
        attention(*qkv(1, 2, T=3, S=4), about="heads", mask=hidden),
        attention(*qkv(2, 1, T=3, S=4), about="heads", mask=hidden),  # as many heads as samples hides a lost axis
        attention(*qkv(1, T=3, S=4), about="blind", mask=blind),
    ]


FILL = "scores = scores.masked_fill(hidden, -math.inf)"
CLEAN = "weights = weights.masked_fill(hidden, 0.0)"
TRIU = "triu(S - T + 1)"
SOFTMAX = "torch.softmax(scores, dim=-1)"

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
    Slip("scores-for-weights", (("return weights @ V, weights", "return weights @ V, scores"),)),
    Slip("detached", ((SOFTMAX, f"{SOFTMAX}.detach()"),)),
    Slip("not-weighted", (("weights @ V", "V.mean(-2, keepdim=True).expand(*Q.shape[:-1], V.shape[-1])"),)),
)

GRADER = Grader(cases, SLIPS, weights_too=True)
