"""The slips of softmax(Q Kᵀ / √d_k) V that several exercises know; their solutions share the lines replaced here.

What each slip means is said by every exercise in its own task.toml. The commonest come first: where an answer holds
two slips at once, they are looked for in this order.
"""

from regard.course.exercise import Slip

SCALE = " / np.sqrt(K.shape[-1])"
SCORES = f"scores = Q @ K.T{SCALE}"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = powers / powers.sum(axis=-1, keepdims=True)"
TWICE = "weights = weights / weights.sum(axis=-1, keepdims=True)"
RETURN = "return weights @ V"

CAUSAL = "scores = np.where(np.tri(*scores.shape{}) > 0, scores, -np.inf)"

EPS = ("1e-1", "1e-2", "1e-3", "1e-4")
"""Numbers that people add to a denominator; smaller ones cannot be seen in the result."""

CUTS = ("50", "700")
"""Limits at which people cut scores off, so that exp does not overflow; those between give the same results."""

FILLS = ("-1e1", "-20.0", "-100.0", "-1e3", "-1e4")
"""Numbers in the place of -inf that a visible score can fall below. Those between give the same results as these."""


def zero_scores_lost(powers: str, scores: str = "scores") -> str:
    """The mistake of a tutorial: a score of 0 gets the weight 0."""
    return f"np.where({scores} == 0, 0, {powers})"


TORCH_WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
TORCH_FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
TORCH_CAUSAL = "scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)"
_NAIVE = "weights = scores.exp() / scores.exp().sum(-1, keepdim=True)"
_AGAIN = "weights = weights / weights.sum(-1, keepdim=True)"
_LATE = f"weights = weights if mask is None else weights * (mask != 0)\n        {_AGAIN}"

# The same slips in PyTorch: the solutions share the two lines above.
TORCH_SLIPS = (
    Slip(
        "zero-score-zero-weight",
        ((TORCH_WEIGHTS, f"scores = scores.masked_fill(scores == 0, -math.inf)\n        {TORCH_WEIGHTS}"),),
    ),
    Slip(
        "zero-score-zero-weight",
        (
            (
                TORCH_WEIGHTS,
                "weights = torch.softmax(scores.masked_fill(scores == 0, -math.inf), dim=-1).nan_to_num(0.0)",
            ),
        ),
    ),
    Slip("unstable-softmax", ((TORCH_WEIGHTS, _NAIVE),)),
    Slip("nan-made-zero", ((TORCH_WEIGHTS, f"{_NAIVE}\n        weights = weights.nan_to_num(0.0)"),)),
    *(
        Slip("scores-cut-off", ((TORCH_WEIGHTS, TORCH_WEIGHTS.replace("scores", f"scores.clamp(-{most}, {most})")),))
        for most in ("20", "80")
    ),
    Slip("causal-not-asked", ((TORCH_WEIGHTS, f"{TORCH_CAUSAL}\n        {TORCH_WEIGHTS}"),)),
)
TORCH_MASK_SLIPS = (
    *(Slip("fill-too-high", ((TORCH_FILL, TORCH_FILL.replace("-math.inf", fill)),)) for fill in FILLS[1::3]),
    Slip("masked-too-late", ((TORCH_FILL, "pass"), (TORCH_WEIGHTS, f"{TORCH_WEIGHTS}\n        {_LATE}"))),
    Slip(
        "masked-too-late",
        (
            (TORCH_FILL, "pass"),
            (TORCH_WEIGHTS, f"{TORCH_WEIGHTS}\n        {_LATE}\n        weights = weights.nan_to_num(0.0)"),
        ),
    ),
)
BIAS_SLIPS = (
    Slip("query-bias-forgotten", ((" + self.b_Q", ""),)),
    Slip("value-bias-forgotten", ((" + self.b_V", ""),)),
)
HEADS_FOR_WIDTH = Slip("heads-for-width", (("math.sqrt(self.d_k)", "math.sqrt(self.n_heads)"),))

ATTENTION_SLIPS = (
    Slip("no-scale", ((SCALE, ""),)),
    Slip("over-queries", (("axis=-1", "axis=0"),)),
    Slip("unstable", ((POWERS, "np.exp(scores)"),)),
    Slip("one-maximum", ((POWERS, "np.exp(scores - scores.max())"),)),
    Slip("root-of-length", ((SCALE, " / np.sqrt(len(K))"),)),
    Slip("no-root", ((SCALE, " / K.shape[-1]"),)),
    Slip("over-everything", (("axis=-1, keepdims=True", ""),)),
    Slip("keys-for-values", ((SCORES, f"K, V = V, K\n    {SCORES}"),)),
    Slip("keys-ask", (("Q @ K.T", "K @ Q.T"),)),
    Slip("weights-transposed", ((RETURN, "return weights.T @ V"),)),
    Slip("root-of-values", ((SCALE, " / np.sqrt(V.shape[-1])"),)),
    Slip("times-root", ((SCALE, " * np.sqrt(K.shape[-1])"),)),
    Slip("scale-after", ((SCALE, ""), (RETURN, f"{RETURN}{SCALE}"))),
    Slip("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Slip("no-exp", ((WEIGHTS, "weights = scores / scores.sum(axis=-1, keepdims=True)"),)),
    Slip("not-divided", ((WEIGHTS, "weights = powers"),)),
    Slip("softmax-twice", ((WEIGHTS, f"{WEIGHTS}\n    weights = np.exp(weights)\n    {TWICE}"),)),
    Slip("sigmoid", ((WEIGHTS, "weights = 1 / (1 + np.exp(-scores))"),)),
    Slip("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    Slip("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)), (RETURN, "return np.nan_to_num(weights) @ V"))),
    *(
        Slip("eps-added", ((WEIGHTS, f"weights = powers / (powers.sum(axis=-1, keepdims=True) + {eps})"),))
        for eps in EPS
    ),
    *(Slip("scores-cut-off", ((POWERS, f"np.exp(np.clip(scores, -{most}, {most}))"),)) for most in CUTS),
    *(Slip("scores-cut-off", ((POWERS, f"np.exp(np.minimum(scores, {most}))"),)) for most in CUTS),
    Slip("mean-for-maximum", ((POWERS, POWERS.replace("max", "mean")),)),
    Slip("nan-made-zero", ((POWERS, "np.exp(scores)"), (RETURN, "return np.nan_to_num(weights) @ V"))),
    Slip("nan-made-zero", ((POWERS, "np.exp(scores)"), (RETURN, "return np.nan_to_num(weights @ V)"))),
    Slip("causal-not-asked", ((SCORES, f"{SCORES}\n    {CAUSAL.format('')}"),)),
    Slip("causal-not-asked", ((SCORES, f"{SCORES}\n    {CAUSAL.format(', len(K) - len(Q)')}"),)),
    Slip("winner-takes-all", ((POWERS, "(scores == scores.max(axis=-1, keepdims=True)) * 1.0"),)),
    Slip("returns-weights", ((RETURN, "return weights"),)),
    Slip("returns-values", ((RETURN, "return V"),)),
    Slip("returns-queries", ((RETURN, "return Q"),)),
    Slip("mean-of-values", ((RETURN, "return np.ones((len(Q), 1)) * V.mean(axis=0)"),)),
    Slip("sum-of-values", ((RETURN, "return np.ones((len(Q), 1)) * V.sum(axis=0)"),)),
    *(Slip("fixed-scale", ((SCALE, f" / {divisor}"),)) for divisor in ("np.sqrt(2)", "np.sqrt(3)", "2", "8", "10")),
    *(Slip("rounded-on-the-way", ((RETURN, f"return np.round(weights, {places}) @ V"),)) for places in (2, 3, 4)),
    Slip("rounded", ((RETURN, "return np.round(weights @ V, 3)"),)),
)
