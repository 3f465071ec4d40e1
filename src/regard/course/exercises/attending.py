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
    Slip("root-of-values", ((SCALE, " / np.sqrt(V.shape[-1])"),)),
    Slip("times-root", ((SCALE, " * np.sqrt(K.shape[-1])"),)),
    Slip("scale-after", ((SCALE, ""), (RETURN, f"{RETURN}{SCALE}"))),
    Slip("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Slip("no-exp", ((WEIGHTS, "weights = scores / scores.sum(axis=-1, keepdims=True)"),)),
    Slip("not-divided", ((WEIGHTS, "weights = powers"),)),
    Slip("softmax-twice", ((WEIGHTS, f"{WEIGHTS}\n    weights = np.exp(weights)\n    {TWICE}"),)),
    Slip("sigmoid", ((WEIGHTS, "weights = 1 / (1 + np.exp(-scores))"),)),
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
