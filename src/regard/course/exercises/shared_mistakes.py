"""Known mistakes in softmax(Q Kᵀ / √d_k) V that several exercises share.

The solutions contain the lines replaced here. The messages are in task.toml or shared_mistakes.toml. The most
common mistakes come first: this is also the order of the search for two mistakes at once.
"""

from regard.course.exercise import Mistake

SCALE = " / np.sqrt(K.shape[-1])"
SCORES = f"scores = Q @ K.T{SCALE}"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = powers / powers.sum(axis=-1, keepdims=True)"
TWICE = "weights = weights / weights.sum(axis=-1, keepdims=True)"
RETURN = "return weights @ V"

CAUSAL = "scores = np.where(np.tri(*scores.shape{}) > 0, scores, -np.inf)"

EPS = ("1e-1", "1e-2", "1e-3", "1e-4")
"""Numbers commonly added to a denominator; smaller ones do not change the result visibly."""

CUTS = ("50", "700")
"""Common limits for clipping scores against overflow; limits in between give the same results."""

FILLS = ("-1e1", "-20.0", "-100.0", "-1e3", "-1e4")
"""Numbers used in place of -inf that can exceed a visible score. Numbers in between give the same results."""


def zero_scores_lost(powers: str, scores: str = "scores") -> str:
    """The mistake of a tutorial: a score of 0 gets weight 0."""
    return f"np.where({scores} == 0, 0, {powers})"


TORCH_WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
TORCH_FILL = "scores = scores.masked_fill(mask == 0, -math.inf)"
TORCH_CAUSAL = "scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)"
_NAIVE = "weights = scores.exp() / scores.exp().sum(-1, keepdim=True)"
_AGAIN = "weights = weights / weights.sum(-1, keepdim=True)"
_LATE = f"weights = weights if mask is None else weights * (mask != 0)\n        {_AGAIN}"

# The same mistakes in PyTorch; the solutions share the lines above.
TORCH_MISTAKES = (
    Mistake(
        "zero-score-zero-weight",
        ((TORCH_WEIGHTS, f"scores = scores.masked_fill(scores == 0, -math.inf)\n        {TORCH_WEIGHTS}"),),
    ),
    Mistake(
        "zero-score-zero-weight",
        (
            (
                TORCH_WEIGHTS,
                "weights = torch.softmax(scores.masked_fill(scores == 0, -math.inf), dim=-1).nan_to_num(0.0)",
            ),
        ),
    ),
    Mistake("unstable-softmax", ((TORCH_WEIGHTS, _NAIVE),)),
    Mistake("nan-made-zero", ((TORCH_WEIGHTS, f"{_NAIVE}\n        weights = weights.nan_to_num(0.0)"),)),
    *(
        Mistake("scores-cut-off", ((TORCH_WEIGHTS, TORCH_WEIGHTS.replace("scores", f"scores.clamp(-{most}, {most})")),))
        for most in ("20", "80")
    ),
    Mistake("causal-not-asked", ((TORCH_WEIGHTS, f"{TORCH_CAUSAL}\n        {TORCH_WEIGHTS}"),)),
)
TORCH_MASK_MISTAKES = (
    *(Mistake("fill-too-high", ((TORCH_FILL, TORCH_FILL.replace("-math.inf", fill)),)) for fill in FILLS[1::3]),
    Mistake("masked-too-late", ((TORCH_FILL, "pass"), (TORCH_WEIGHTS, f"{TORCH_WEIGHTS}\n        {_LATE}"))),
    Mistake(
        "masked-too-late",
        (
            (TORCH_FILL, "pass"),
            (TORCH_WEIGHTS, f"{TORCH_WEIGHTS}\n        {_LATE}\n        weights = weights.nan_to_num(0.0)"),
        ),
    ),
)
BIAS_MISTAKES = (
    Mistake("query-bias-forgotten", ((" + self.b_Q", ""),)),
    Mistake("value-bias-forgotten", ((" + self.b_V", ""),)),
)
HEADS_FOR_WIDTH = Mistake("heads-for-width", (("math.sqrt(self.d_k)", "math.sqrt(self.n_heads)"),))

ATTENTION_MISTAKES = (
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("over-queries", (("axis=-1", "axis=0"),)),
    Mistake("unstable", ((POWERS, "np.exp(scores)"),)),
    Mistake("one-maximum", ((POWERS, "np.exp(scores - scores.max())"),)),
    Mistake("root-of-length", ((SCALE, " / np.sqrt(len(K))"),)),
    Mistake("no-root", ((SCALE, " / K.shape[-1]"),)),
    Mistake("over-everything", (("axis=-1, keepdims=True", ""),)),
    Mistake("keys-for-values", ((SCORES, f"K, V = V, K\n    {SCORES}"),)),
    Mistake("keys-ask", (("Q @ K.T", "K @ Q.T"),)),
    Mistake("weights-transposed", ((RETURN, "return weights.T @ V"),)),
    Mistake("root-of-values", ((SCALE, " / np.sqrt(V.shape[-1])"),)),
    Mistake("times-root", ((SCALE, " * np.sqrt(K.shape[-1])"),)),
    Mistake("scale-after", ((SCALE, ""), (RETURN, f"{RETURN}{SCALE}"))),
    Mistake("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Mistake("no-exp", ((WEIGHTS, "weights = scores / scores.sum(axis=-1, keepdims=True)"),)),
    Mistake("not-divided", ((WEIGHTS, "weights = powers"),)),
    Mistake("softmax-twice", ((WEIGHTS, f"{WEIGHTS}\n    weights = np.exp(weights)\n    {TWICE}"),)),
    Mistake("sigmoid", ((WEIGHTS, "weights = 1 / (1 + np.exp(-scores))"),)),
    Mistake("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    Mistake(
        "zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)), (RETURN, "return np.nan_to_num(weights) @ V"))
    ),
    *(
        Mistake("eps-added", ((WEIGHTS, f"weights = powers / (powers.sum(axis=-1, keepdims=True) + {eps})"),))
        for eps in EPS
    ),
    *(Mistake("scores-cut-off", ((POWERS, f"np.exp(np.clip(scores, -{most}, {most}))"),)) for most in CUTS),
    *(Mistake("scores-cut-off", ((POWERS, f"np.exp(np.minimum(scores, {most}))"),)) for most in CUTS),
    Mistake("mean-for-maximum", ((POWERS, POWERS.replace("max", "mean")),)),
    Mistake("nan-made-zero", ((POWERS, "np.exp(scores)"), (RETURN, "return np.nan_to_num(weights) @ V"))),
    Mistake("nan-made-zero", ((POWERS, "np.exp(scores)"), (RETURN, "return np.nan_to_num(weights @ V)"))),
    Mistake("causal-not-asked", ((SCORES, f"{SCORES}\n    {CAUSAL.format('')}"),)),
    Mistake("causal-not-asked", ((SCORES, f"{SCORES}\n    {CAUSAL.format(', len(K) - len(Q)')}"),)),
    Mistake("winner-takes-all", ((POWERS, "(scores == scores.max(axis=-1, keepdims=True)) * 1.0"),)),
    Mistake("winner-takes-all", ((WEIGHTS, "weights = np.eye(len(K))[scores.argmax(axis=-1)]"),)),
    Mistake("powers-of-two", ((POWERS, POWERS.replace("np.exp(", "np.exp2(")),)),
    Mistake("returns-weights", ((RETURN, "return weights"),)),
    Mistake("returns-values", ((RETURN, "return V"),)),
    Mistake("returns-queries", ((RETURN, "return Q"),)),
    Mistake("mean-of-values", ((RETURN, "return np.ones((len(Q), 1)) * V.mean(axis=0)"),)),
    Mistake("sum-of-values", ((RETURN, "return np.ones((len(Q), 1)) * V.sum(axis=0)"),)),
    *(Mistake("fixed-scale", ((SCALE, f" / {divisor}"),)) for divisor in ("np.sqrt(2)", "np.sqrt(3)", "2", "8", "10")),
    *(Mistake("rounded-on-the-way", ((RETURN, f"return np.round(weights, {places}) @ V"),)) for places in (2, 3, 4)),
    Mistake("rounded", ((RETURN, "return np.round(weights @ V, 3)"),)),
)
