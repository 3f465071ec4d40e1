"""Typical wrong NumPy programs: none passes, on any data.

Each is the solution with some text replaced, or a text of its own. Most of them agree with the solution on random
data; the edge inputs and the printed examples tell them apart.
"""

import pytest

from wrong_programs import Swaps, each, passes

POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = powers / powers.sum(axis=-1, keepdims=True)"
MULTIPLIED = "scores = Q @ K.T / np.sqrt(K.shape[-1])"
HIDDEN = "scores = np.where(mask, scores, -np.inf)"

ATTENTION: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((POWERS, f"np.where(scores == 0, 0, {POWERS})"),),
    "-inf for a score of 0": ((POWERS, POWERS.replace("scores", "np.where(scores == 0, -np.inf, scores)")),),
    "a score near 0 gets no weight": ((POWERS, f"{POWERS} * (np.abs(scores) > 1e-9)"),),
    "only positive scores count": ((POWERS, f"{POWERS} * (scores >= 0)"),),
    "ReLU before softmax": ((POWERS, POWERS.replace("scores", "np.maximum(scores, 0)")),),
    "absolute scores": ((POWERS, POWERS.replace("scores", "np.abs(scores)")),),
    "scores cut off at 50": ((POWERS, "np.exp(np.clip(scores, -50, 50))"),),
    "scores cut off at 700": ((POWERS, "np.exp(np.clip(scores, -700, 700))"),),
    "maximum, but not below 0": ((POWERS, "np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), 0))"),),
    "the maximum of column 0": ((POWERS, "np.exp(scores - scores[:, :1])"),),
    "mean in place of maximum": ((POWERS, "np.exp(scores - scores.mean(axis=-1, keepdims=True))"),),
    "the largest key twice as heavy on ties": (
        (POWERS, f"{POWERS} * (1 + (np.arange(scores.shape[1]) == scores.argmax(axis=-1)[:, None]) * (scores == 1.5))"),
    ),
    "NaN made 0": ((WEIGHTS, f"{WEIGHTS}\n    weights = np.nan_to_num(weights)"), (POWERS, "np.exp(scores)")),
    "eps in the denominator": ((WEIGHTS, "weights = powers / (powers.sum(axis=-1, keepdims=True) + 1e-3)"),),
    "equal keys counted once": (
        (
            WEIGHTS,
            f"powers = powers * (np.arange(len(K)) == np.unique(K, axis=0, return_index=True)[1][np.unique(K, "
            f"axis=0, return_inverse=True)[1].reshape(-1)])\n    {WEIGHTS}",
        ),
    ),
    "half precision": ((MULTIPLIED, f"Q, K = Q.astype(np.float16), K.astype(np.float16)\n    {MULTIPLIED}"),),
    "a negative score is 0": ((WEIGHTS, f"powers[scores < -100] = 1\n    {WEIGHTS}"),),
}

CHANGED: dict[str, Swaps] = {
    "changes its queries": ((MULTIPLIED, f"Q *= 1 / np.sqrt(K.shape[-1])\n    {MULTIPLIED.split(' / ')[0]}"),),
    "changes its keys": ((MULTIPLIED, f"K /= np.sqrt(K.shape[-1])\n    {MULTIPLIED.split(' / ')[0]}"),),
}

MASKS: dict[str, Swaps] = {
    **{f"{fill} for -inf": ((HIDDEN, f"scores = np.where(mask, scores, {fill})"),) for fill in ("-20", "-100", "-1e4")},
    **{
        f"{fill} for -inf, empty rows made 0": (
            (HIDDEN, f"scores = np.where(mask, scores, {fill})"),
            (
                "return weights @ V",
                "weights = weights * np.any(True if mask is None else mask, -1, keepdims=True)\n    return weights @ V",
            ),
        )
        for fill in ("-30", "-1e3", "-15000")
    },
    "-1e4 added": ((HIDDEN, "scores = scores + np.where(mask, 0.0, -1e4)"),),
    "masked after softmax, divided again": (
        (HIDDEN, "pass"),
        (
            "return weights",
            "weights = weights if mask is None else np.nan_to_num(weights * mask / (weights * mask)"
            ".sum(-1, keepdims=True))\n    return weights",
        ),
    ),
    "divided again with a guard": (
        (HIDDEN, "pass"),
        (
            "return weights",
            "weights = weights if mask is None else weights * mask / np.maximum((weights * mask)"
            ".sum(-1, keepdims=True), 1e-12)\n    return weights",
        ),
    ),
    "masked before the sum, with the maximum of all": (
        (HIDDEN, "pass"),
        ("powers = np.exp(scores - largest)", "powers = np.exp(scores - largest) * (1 if mask is None else mask)"),
    ),
    "NaN made 0 in the output only": (
        ("np.where(np.isinf(largest), 0, largest)", "largest"),
        ("return weights @ V", "return np.nan_to_num(weights @ V)"),
    ),
    "an empty row looks everywhere alike": (
        ("np.where(total == 0, 1, total)", "total"),
        (
            "scores = np.where(mask, scores, -np.inf)",
            "scores = np.where(mask | ~mask.any(-1, keepdims=True), scores, -np.inf)",
        ),
    ),
    "everything hidden counts as no mask": (("if mask is not None", "if mask is not None and mask.any()"),),
    "the mask of the first sample": (("np.where(mask,", "np.where(mask[:1] if mask.ndim > 2 else mask,"),),
    "a mask of samples taken for heads": (("np.where(mask,", "np.where(mask.squeeze(),"),),
    "the mask of the first query": (("np.where(mask,", "np.where(mask[..., :1, :],"),),
    "a score of 0 gets no weight": (
        ("np.exp(scores - largest)", "np.where(scores == 0, 0, np.exp(scores - largest))"),
    ),
    "hidden where the score is 0": (("np.where(mask, scores", "np.where(mask & (scores != 0), scores"),),
    "scale from the wrong axis": (("np.sqrt(Q.shape[-1])", "np.sqrt(Q.shape[-1] if Q.ndim < 4 else Q.shape[1])"),),
    "eps in the denominator": (("np.where(total == 0, 1, total)", "(total + 1e-3)"),),
    "half precision": (("weights @ V, weights", "(weights.astype(np.float16) @ V), weights"),),
}

PADDED: dict[str, Swaps] = {
    "-20 for -inf": (("-np.inf)  # True", "-20.0)  # True"),),
    "-1e4 for -inf": (("-np.inf)  # True", "-1e4)  # True"),),
    "divided again": (
        ("scores = np.where(mask[:, None, :], scores, -np.inf)", "scores = scores"),
        (
            "return softmax(scores) @ V",
            "w = softmax(scores) * mask[:, None, :]\n    return w / w.sum(-1, keepdims=True) @ V",
        ),
    ),
    "PAD is what comes last": (("return ids != PAD", "return np.arange(ids.shape[1]) < (ids != PAD).sum(1)[:, None]"),),
    "only the last column is PAD": (("return ids != PAD", "return ids != np.where(ids[:, -1:] == PAD, PAD, -1)"),),
    "a score of 0 gets no weight": (("e = np.exp(", "e = (x != 0) * np.exp("),),
    "sizes written down": (("np.sqrt(Q.shape[-1])", "np.sqrt(2)"),),
    "PAD keys are zero vectors": (
        ("np.where(mask[:, None, :], scores, -np.inf)", "scores"),
        ("x @ W_k,", "x @ W_k * (ids != PAD)[..., None],"),
    ),
}

VECTORS: dict[str, Swaps] = {
    "-20 for -inf": (("-1e9", "-20.0"),),
    "-1e4 for -inf": (("-1e9", "-1e4"),),
    "the mask beside the heads": (("real[:, None, None, :]", "real[:, None, :]"),),
    "divided again": (
        ("np.where(real[:, None, None, :], scores, -1e9)", "scores"),
        (
            "(softmax(scores) @ V)",
            "((w := softmax(scores) * real[:, None, None, :]) / (w.sum(-1, keepdims=True) + 1e-12) @ V)",
        ),
    ),
    "the mean of the first tokens": (
        ("(out * real[:, :, None]).sum(axis=1)", "np.stack([o[:n].sum(0) for o, n in zip(out, real.sum(1))])"),
    ),
    "scale of the whole model": (("np.sqrt(Q.shape[-1])", "np.sqrt(Q.shape[-1] * n_heads)"),),
    "scale of the number of heads": (("np.sqrt(Q.shape[-1])", "np.sqrt(n_heads)"),),
}

BESIDE: dict[str, Swaps] = {
    "-100 for -inf": (("-np.inf", "-100.0"),),
    "-1e4 for -inf": (("-np.inf", "-1e4"),),
    "divided again": (
        ("np.where(mask[:, None], scores, -np.inf)", "scores"),
        ("softmax(scores) @ V", "(w := softmax(scores) * mask[:, None]) / w.sum(-1, keepdims=True) @ V"),
    ),
    "heads and samples swapped": (("mask[:, None]", "mask[None].swapaxes(0, 1) if len(mask) != n_heads else mask"),),
    "the key mask of the first query": (("mask[:, None]", "mask[:, None, :1]"),),
    "keys that any query sees": (("mask[:, None]", "mask.any(axis=1)[:, None, None]"),),
    "scale of the number of heads": (("np.sqrt(Q.shape[-1])", "np.sqrt(n_heads)"),),
}

HEADS: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((POWERS, f"np.where(scores == 0, 0, {POWERS})"),),
    "scale of the number of heads": (("np.sqrt(d_head)", "np.sqrt(n_heads)"),),
    "scale of two": (("np.sqrt(d_head)", "np.sqrt(2)"),),
    "the maximum of all heads": ((POWERS, "np.exp(scores - scores.max(axis=0, keepdims=True))"),),
    "positions taken for heads": (
        (
            "x.reshape(T, n_heads, d_head).transpose(1, 0, 2)",
            "x.reshape(n_heads, T, d_head) if T == n_heads else x.reshape(T, n_heads, d_head).transpose(1, 0, 2)",
        ),
    ),
    "heads merged by reshape where it fits": (
        ("heads.transpose(1, 0, 2).reshape", "(heads if T == n_heads else heads.transpose(1, 0, 2)).reshape"),
    ),
    "eps in the denominator": ((WEIGHTS, "weights = powers / (powers.sum(axis=-1, keepdims=True) + 1e-2)"),),
}

SHARED = "np.repeat({0}, shared_by, axis=0)"
EXP = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
GROUPS: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((EXP, f"(scores != 0) * {EXP}"),),
    "scale of the number of heads": (("np.sqrt(Q.shape[-1])", "np.sqrt(len(Q))"),),
    "scale of the number of groups": (("np.sqrt(Q.shape[-1])", "np.sqrt(len(K))"),),
    "keys turned where square": (("K.swapaxes(-1, -2)", "(K if K.shape[1] == K.shape[2] else K.swapaxes(-1, -2))"),),
    "the maximum of all heads": ((EXP, "np.exp(scores - scores.max(axis=0, keepdims=True))"),),
    "two a group": (
        (SHARED.format("K"), "np.repeat(K, 2 if len(K) == 3 else shared_by, axis=0)"),
        ("Q.shape[-1]", "3 if Q.shape[1] < 5 else 2"),
    ),
}

ADDITIVE: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((POWERS, f"np.where(scores == 0, 0, {POWERS})"),),
    "only positive scores count": ((POWERS, f"{POWERS} * (scores >= 0)"),),
    "maximum, but not below 0": ((POWERS, "np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), 0))"),),
    "the maximum of column 0": ((POWERS, "np.exp(scores - scores[:, :1])"),),
    "NaN made 0": ((WEIGHTS, f"{WEIGHTS}\n    weights = np.nan_to_num(weights)"), (POWERS, "np.exp(scores)")),
    "half precision": (("np.tanh(pairs)", "np.tanh(pairs).astype(np.float16)"),),
    "weights turned where square": (("Q @ W_q", "Q @ (W_q.T if len(W_q) == W_q.shape[1] > 3 else W_q)"),),
    "tanh by exponentials": (("np.tanh(pairs)", "((np.exp(2 * pairs) - 1) / (np.exp(2 * pairs) + 1 - 1e-4))"),),
    "changes its queries": (("pairs = ", "Q *= 2\n    Q /= 2.000001\n    pairs = "),),
}

CACHE: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((EXP, f"(scores != 0) * {EXP}"),),
    "-20 for -inf": (("-np.inf", "-20.0"),),
    "-1e4 for -inf": (("-np.inf", "-1e4"),),
    "masked before the sum": (("scores = np.where(hidden, -np.inf, scores)", ""), (EXP, f"{EXP} * ~hidden")),
    "the cache is changed": (
        (
            "K, V = np.concatenate([cache[0], k]), np.concatenate([cache[1], v])",
            "K, V = np.concatenate([cache[0], k]), np.concatenate([cache[1], v])\n        cache[0][:] *= 1.5",
        ),
    ),
    "a width written down": (("np.sqrt(q.shape[-1])", "2.0"),),
}

BACKWARD: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((EXP, f"(scores != 0) * {EXP}"),),
    "no gradient where the score is 0": (("d_scores = weights", "d_scores = (scores != 0) * weights"),),
    "scale of the number of values": (("np.sqrt(Q.shape[-1])", "np.sqrt(V.shape[-1])"),),
    "the gradient of V divided by the number of queries": (("weights.T @ dO", "weights.T @ dO / len(Q)"),),
    "no gradient on ties": (("d_scores = weights", "d_scores = (scores < scores.max(-1, keepdims=True)) * weights"),),
}

ONLINE: dict[str, Swaps] = {
    "a score of 0 gets no weight": (("e = np.exp(scores", "e = (scores != 0) * np.exp(scores"),),
    "starts from 0": (("np.full(len(Q), -np.inf)", "np.zeros(len(Q))"),),
    "starts from -100": (("np.full(len(Q), -np.inf)", "np.full(len(Q), -100.0)"),),
    "an even number of keys": (("range(0, len(K), block)", "range(0, len(K) - len(K) % 2 or 1, block)"),),
    "rescaled once for all queries": (("np.exp(top - new_top)", "np.exp((top - new_top).max() + 0 * top)"),),
    "ties are not added": (("e.sum(axis=-1)", "np.array([np.unique(row).sum() for row in e])"),),
}

TILES: dict[str, Swaps] = {
    "a score of 0 gets no weight": (("e = np.exp(scores", "e = (scores != 0) * np.exp(scores"),),
    "hidden keys score -1e30": (("np.where(hidden, -np.inf, scores)", "np.where(hidden, -1e30, scores)"),),
    "an empty query makes all queries 0": (
        ("np.where(new_top == -np.inf, 0.0, new_top)", "new_top * 1.0"),
        ("+ e @ v", "+ np.nan_to_num(e) @ v"),
    ),
    "NaN made 0 in the state only": (
        ("safe = np.where(new_top == -np.inf, 0.0, new_top)", "safe = new_top"),
        ("rescale = np.exp(top - safe)", "rescale = np.nan_to_num(np.exp(top - safe), nan=1.0)"),
    ),
    "a top of at least -5000": (
        (
            "np.maximum(top, scores.max(axis=-1))",
            "np.maximum(top, np.where(hidden.all(axis=-1), -np.inf, np.maximum(scores.max(axis=-1), -5000)))",
        ),
    ),
    "the start of the keys only": (("> q_start +", "> q_start // 4 * 4 +"),),
    "the state is changed": (
        (
            "top, total, output = state\n    scores",
            "top, total, output = state\n    output += 0.3\n    output -= 0.3000001\n    scores",
        ),
    ),
    "rescaled once for all queries": (
        ("rescale = np.exp(top - safe)", "rescale = np.exp((top - safe).max() + 0 * total)"),
    ),
}

BLOCKS: dict[str, Swaps] = {
    "a score of 0 gets no weight": ((POWERS, f"(scores != 0) * {POWERS}"),),
    "-20 for -inf": (("scores, -np.inf)", "scores, -20.0)"),),
    "-1e4 for -inf": (("scores, -np.inf)", "scores, -1e4)"),),
    "NaN made 0": ((POWERS, "np.nan_to_num(np.exp(scores))"),),
    "another eps": (("+ 1e-5)", "+ 1e-6)"),),
    "variance of a sample": (("x.var(axis=-1,", "x.var(axis=-1, ddof=1,"),),
    "ReLU6": (
        (
            'np.maximum(linear(x, weights, "feed_forward.up"), 0)',
            'np.clip(linear(x, weights, "feed_forward.up"), 0, 6)',
        ),
    ),
    "slightly leaky": (
        ('"feed_forward.up"), 0)', '"feed_forward.up"), 1e-3 * linear(x, weights, "feed_forward.up"))'),
    ),
    "reshaped where it fits": (
        (
            "x.reshape(B, T, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)",
            "(x.reshape(B, n_heads, T, -1) if T == n_heads else x.reshape(B, T, n_heads, -1).transpose(0, 2, 1, 3))",
        ),
    ),
    "weights turned where square": (
        (
            'x @ weights[f"{name}.weight"].T',
            'x @ (lambda W: W if len(W) == W.shape[1] == 9 else W.T)(weights[f"{name}.weight"])',
        ),
    ),
    "scale of two": (("np.sqrt(q.shape[-1])", "np.sqrt(2)"),),
    "half precision": (("return powers / powers", "return powers.astype(np.float16).astype(float) / powers"),),
}

SOFTMAX: dict[str, Swaps] = {
    "0 gets no share": (("np.exp(shifted)", "np.where(x == 0, 0.0, np.exp(shifted))"),),
    "the maximum is set to 1": (("np.exp(shifted)", "np.exp(shifted) + (shifted == 0) * (x < 0) * 1e-3"),),
    "eps in the denominator": (
        ("powers.sum(axis=axis, keepdims=True)", "(powers.sum(axis=axis, keepdims=True) + 1e-3)"),
    ),
    "cut off below -700": (
        ("x - x.max(axis=axis, keepdims=True)", "np.maximum(x, -700) - x.max(axis=axis, keepdims=True)"),
    ),
    "negative numbers are 0": (("shifted = x -", "x = np.maximum(x, 0)\n    shifted = x -"),),
    "equal numbers share": (
        ("np.exp(shifted)", "np.exp(shifted) / np.where(shifted == 0, (shifted == 0).sum(axis, keepdims=True), 1)"),
    ),
    "one number along the axis": (
        (
            "powers / powers.sum(axis=axis, keepdims=True)",
            "powers / powers.sum(axis=axis, keepdims=True) if x.shape[axis] > 1 else x",
        ),
    ),
    "half precision": (("np.exp(shifted)", "np.exp(shifted.astype(np.float16)).astype(float)"),),
    "axis 2 taken for -1 only": (
        ("shifted = x", "axis = -1 if axis == 0 and x.ndim == 2 and len(x) == 4 else axis\n    shifted = x"),
    ),
}

OTHERS: dict[str, dict[str, Swaps]] = {
    "causal-mask": {
        "right up to ten positions": (("query = np.arange(n)", "query = np.minimum(np.arange(n), 9)"),),
        "-1e9": (("-np.inf", "-1e9"),),
        "integers": (("np.where(key > query, -np.inf, 0.0)", "np.where(key > query, -10**9, 0)"),),
    },
    "padding-mask": {
        "0 is never hidden": (
            (
                "seq == pad_token",
                "(seq == pad_token) & ((seq != 0) | (np.arange(seq.shape[1]) > 0))",
            ),
        ),
        "ids below the padding": (("seq == pad_token", "(seq == pad_token) | (seq < 0)"), ("-np.inf", "-1e30")),
        "a sentence of padding stays visible": (
            ("seq == pad_token", "(seq == pad_token) & (seq != pad_token).any(axis=1, keepdims=True)"),
        ),
        "transposed where square": (
            ("return mask[:, None, :]", "return (mask.T if len(mask) == mask.shape[1] else mask)[:, None, :]"),
        ),
    },
    "split-heads": {
        "reshaped where it fits": (
            (
                "parts.transpose(0, 2, 1, 3)",
                "parts.reshape(B, n_heads, T, -1) if T == n_heads else parts.transpose(0, 2, 1, 3)",
            ),
        ),
        "samples and positions swapped where equal": (
            ("parts.transpose(0, 2, 1, 3)", "parts.transpose(1, 2, 0, 3) if B == T else parts.transpose(0, 2, 1, 3)"),
        ),
        "at most four samples": (("return parts", "parts = parts[:4]\n    return parts"),),
    },
    "merge-heads": {
        "reshaped where it fits": (("x.transpose(0, 2, 1, 3)", "x if H == T else x.transpose(0, 2, 1, 3)"),),
        "widths and heads swapped where equal": (
            ("x.transpose(0, 2, 1, 3)", "x.transpose(0, 2, 3, 1) if H == E else x.transpose(0, 2, 1, 3)"),
        ),
    },
    "positional-encoding": {
        "a table of 64 positions": (("position = np.arange(length)", "position = np.minimum(np.arange(length), 63)"),),
        "at most eight pairs": (("i = np.arange(d_model // 2)", "i = np.minimum(np.arange(d_model // 2), 8)"),),
        "single precision constants": (("10000 **", "9999 **"),),
    },
    "layer-norm": {
        "a row of zeros stays": (
            ("return gamma * normal + beta", "return np.where(variance == 0, 0, gamma * normal + beta)"),
        ),
        "positive gamma": (("return gamma", "return np.abs(gamma)"),),
        "axis 1 where square": (("axis=-1", "axis=1 if x.ndim == 3 and x.shape[1] == x.shape[2] else -1"),),
        "variance in half precision": (("variance + eps", "variance.astype(np.float16) + eps"),),
    },
    "rms-norm": {
        "the mean subtracted where small": (
            (
                "mean_square = ",
                "x = np.where(abs(x) < 0.01, x - x.mean(axis=-1, keepdims=True), x)\n    mean_square = ",
            ),
        ),
        "positive gamma": (("gamma * x", "np.abs(gamma) * x"),),
        "axis 1 where square": (("axis=-1", "axis=1 if x.ndim == 3 and x.shape[1] == x.shape[2] else -1"),),
        "mean square in half precision": (("np.sqrt(mean_square", "np.sqrt(mean_square.astype(np.float16)"),),
        "a row of zeros becomes gamma": (("gamma * x /", "gamma * np.where(x.any(-1, keepdims=True), x, 1) /"),),
    },
    "feed-forward": {
        "0 becomes 1": (("np.maximum(hidden, 0)", "np.where(hidden == 0, 1, np.maximum(hidden, 0))"),),
        "slightly leaky": (("np.maximum(hidden, 0)", "np.maximum(hidden, 1e-3 * hidden)"),),
        "cut off at 6": (("np.maximum(hidden, 0)", "np.clip(hidden, 0, 6)"),),
        "weights turned where square": (("x @ W_1", "x @ (W_1.T if len(W_1) == W_1.shape[1] else W_1)"),),
    },
    "gelu-feed-forward": {
        "0 becomes 1": (("hidden = h / 2", "h = np.where(h == 0, 1, h)\n    hidden = h / 2"),),
        "another constant": (("0.044715", "0.04471"), ("np.sqrt(2 / np.pi)", "0.8")),
        "nothing below 0": (
            ("hidden = h / 2 * (1 + np.tanh(inner))", "hidden = np.maximum(h, 0) / 2 * (1 + np.tanh(inner))"),
        ),
        "exact where large": (
            ("hidden = h / 2 * (1 + np.tanh(inner))", "hidden = np.where(h > 1.9, h, h / 2 * (1 + np.tanh(inner)))"),
        ),
        "half precision": (("np.tanh(inner)", "np.tanh(inner.astype(np.float16))"),),
        "weights turned where square": (("x @ W_1", "x @ (W_1.T if len(W_1) == W_1.shape[1] else W_1)"),),
    },
    "swiglu": {
        "a gate of 0 lets half through": (("gate * sigmoid * up", "np.where(gate == 0, 0.5, gate * sigmoid) * up"),),
        "negative gates are closed": (("gate * sigmoid * up", "np.maximum(gate * sigmoid, -0.2) * up"),),
        "low gates are closed at -5": (("gate * sigmoid * up", "np.where(gate < -5, 0, gate * sigmoid + 1e-4) * up"),),
        "cut off at 700": (("gate * sigmoid * up", "np.minimum(gate, 700) * sigmoid * up"),),
        "the hard version": (("(1 + np.tanh(gate / 2)) / 2", "np.clip(gate / 6 + 0.5, 0, 1)"),),
        "weights turned where square": (("x @ W_up", "x @ (W_up.T if len(W_up) == W_up.shape[1] else W_up)"),),
    },
    "rope": {
        "positions counted where they repeat": (
            (
                "positions[:, None]",
                "np.unique(positions)[np.arange(len(positions)) % len(np.unique(positions))][:, None]",
            ),
        ),
        "angles in single precision": (
            ("positions[:, None] * frequencies", "(positions[:, None] * frequencies).astype(np.float32)"),
        ),
        "heads taken for positions where equal": (
            (
                "angles = positions[:, None] * frequencies",
                "angles = positions[:, None] * frequencies\n"
                "    x = x.swapaxes(0, 1) if x.ndim == 3 and len(x) == x.shape[1] else x",
            ),
        ),
        "base never above 10000": (("base **", "min(base, 10000.0) **"),),
    },
    "alibi": {
        "right up to eight heads": (("power = 2 **", "n_heads = min(n_heads, 8)\n    power = 2 **"),),
        "one more slope at most": (("[: n_heads - power]", "[np.minimum(np.arange(n_heads - power), 1)]"),),
        "distances up to 32": (("np.abs(query - key)", "np.minimum(np.abs(query - key), 32)"),),
        "transposed where square": (
            ("np.arange(S - T, S)[:, None]", "np.arange(S - T, S)[:, None] if T < S else np.arange(S)[::-1, None]"),
        ),
        "later keys cost half": (("np.abs(query - key)", "np.where(key > query, (key - query) / 2, query - key)"),),
        "half precision": (("* -distance", "* -distance * np.float64(np.float16(0.1)) * 10"),),
    },
    "sliding-window": {
        "a window of at most four": (("query - window", "query - min(window, 4)"),),
        "a window of at least two": (("query - window", "query - max(window, 2)"),),
        "the first key is always visible": (
            (
                "return (key <= query) & (key > query - window)",
                "return (key <= query) & ((key > query - window) | (key == 0))",
            ),
        ),
        "right up to ten positions": (("key > query - window", "key > np.minimum(query, 10) - window"),),
        "a window longer than the text hides nothing": (
            ("return (key <= query)", "return ((key <= query) | (window > S))"),
        ),
        "aligned left where T is 1": (("np.arange(S - T, S)", "np.arange(S - T, S) * (T > 1)"),),
    },
    "lstm-cell": {
        "a gate of 0 is closed": (
            ("return (1 + np.tanh(z / 2)) / 2", "return np.where(z == 0, 0, (1 + np.tanh(z / 2)) / 2)"),
        ),
        "c kept between -10 and 10": (("h_new = ", "c_new = np.clip(c_new, -10, 10)\n    h_new = "),),
        "the hard sigmoid": (("(1 + np.tanh(z / 2)) / 2", "np.clip(z / 6 + 0.5, 0, 1)"),),
        "weights turned where square": (
            (
                "h @ W_hh.T",
                "h @ (np.concatenate([W.T for W in np.split(W_hh, 4)]) if len(h) == h.shape[1] else W_hh).T",
            ),
        ),
        "the state of the first sample": (("sigmoid(f) * c +", "sigmoid(f) * c[:1] +"),),
        "no bias without input": (("+ b_hh", "+ b_hh * x.any()"),),
    },
    "label-smoothing": {
        "class 0 is never counted": (("targets != ignore_index", "(targets != ignore_index) & (targets > 0)"),),
        "negative targets are ignored": (
            ("targets != ignore_index", "(targets >= 0) & (targets != 0 if ignore_index == 0 else True)"),
        ),
        "divided by one more": (("losses.mean()", "losses.sum() / (len(losses) + 1e-3)"),),
        "smoothing below one half": (("1 - smoothing", "1 - min(smoothing, 0.5)"),),
        "low logits cut off": (("shifted = logits", "logits = np.maximum(logits, -700)\n    shifted = logits"),),
        "clipped log": (
            (
                "shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))",
                "np.maximum(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)), -100)",
            ),
        ),
    },
    "cross-entropy-with-padding": {
        "class 0 is never counted": (("targets != pad", "(targets != pad) & (targets > 0)"),),
        "padding only at the end": (("targets != pad", "np.cumsum(targets == pad, axis=1) == 0"),),
        "one for a batch of padding": (("return 0.0", "return 1.0"),),
        "divided by one more": (("losses.mean()", "losses.sum() / (len(losses) + 1e-3)"),),
        "low logits cut off": (("shifted = logits", "logits = np.maximum(logits, -700)\n    shifted = logits"),),
        "the loss cut off at 100": (("losses.mean()", "np.minimum(losses, 100).mean()"),),
        "empty sentences end the batch": (
            ("targets != pad", "(targets != pad) & (np.cumsum((targets == pad).all(axis=1)) == 0)[:, None]"),
        ),
        "half precision": (("shifted = logits", "logits = logits.astype(np.float16)\n    shifted = logits"),),
    },
    "beam-search": {
        "four tokens": (("enumerate(log_probs[tokens[-1]])", "enumerate(log_probs[tokens[-1]][:4])"),),
        "at most two beams in between": (("[:beams]", "[: min(beams, 2)]"),),
        "the last token ends": (("tokens[-1] == eos", "tokens[-1] in (eos, len(log_probs) - 1)"),),
    },
    "bpe-merges": {
        "at most two letters": (("counts[pair] += count", "counts[pair] += count * (len(pair[0]) < 2)"),),
        "single letters on the right": (("counts[pair] += count", "counts[pair] += count * (len(pair[1]) < 2)"),),
        "rare words left out": (("counts[pair] += count", "counts[pair] += count if count > 1 else 0"),),
        "long pieces first": (("(-counts[pair], pair)", "(-counts[pair], -len(pair[0] + pair[1]), pair)"),),
        "short pieces first": (("(-counts[pair], pair)", "(-counts[pair], len(pair[0] + pair[1]), pair)"),),
        "the same letter never twice": (("if tuple(", "if pair[0] != pair[1] and tuple("),),
        "only the start of a word": (("pairwise(pieces)", "pairwise(pieces[:3])"),),
        "words of one letter": (("split = {word: list(word)", "split = {word: list(word * (2 // len(word) or 1))"),),
        "no words": (("if not counts:", "if not counts and words:"),),
    },
    "masked-lm-inputs": {
        "tokens below 3 are special": (("& ~special", "& ~special & (ids > 2)"),),
        "the first token is special": (("& ~special", "& ~special & (np.arange(ids.shape[1]) > 0)"),),
        "0 is never chosen": (("& ~special", "& ~special & (ids != 0)"),),
        "at least one is chosen": (
            ("targets = np", "chosen |= ~chosen.any() & (np.arange(ids.shape[1]) == 1)\n    targets = np"),
        ),
        "the mask of BERT": (("np.where(masked, mask_id, ids)", "np.where(masked, 103, ids)"),),
        "a changed token is a target": (("chosen, ids, -100", "chosen & (ids != random_ids), ids, -100"),),
        "kept tokens below 0.95": (("(kind < 0.9)", "(kind < 0.95)"),),
        "chosen below 0.149": (("choose < 0.15", "choose < 0.149"),),
        "floating-point targets": (("return inputs, targets", "return inputs, targets * 1.0"),),
    },
    "sampling": {
        "the most likely is always kept twice": (("before >= top_p", "before > max(top_p, 0.3)"),),
        "top_k never below two": (("descending[top_k:]", "descending[max(top_k, 2) :]"),),
        "a masked token gets a little": (("np.exp(scores - scores.max())", "np.exp(scores - scores.max()) + 1e-3"),),
        "never the last token": (('side="right")', 'side="right").clip(0, len(ends) - 2)'),),
    },
    "transformer-forward": {
        "at most two layers": (('in weights["encoder"]', 'in weights["encoder"][:2]'),),
        "positions of the source for the target": (
            ("positional_encoding(y.shape[1], y.shape[2])", "positional_encoding(99, y.shape[2])[-y.shape[1] :]"),
        ),
        "the mask of the first sentence": (
            ("memory, layer, n_heads, source_mask", "memory, layer, n_heads, source_mask[:1]"),
        ),
    },
    "bug-residual": {
        "divided by the width": (("x + feed_forward(normed, p)", "x + feed_forward(normed, p) * (4 / x.shape[-1])"),),
        "no eps where constant": (("+ 1e-5)", "+ 1e-5 * (x.var(axis=-1, keepdims=True) > 0))"),),
        "scale of two": (("np.sqrt(Q.shape[-1])", "np.sqrt(2)"),),
    },
    "bug-copies-target": {
        "BOS also for PAD": (
            ("return cross_entropy(", "decoder_input = np.maximum(decoder_input, BOS)\n    return cross_entropy("),
            ("losses[targets != PAD]", "losses[:, : (targets != PAD).all(axis=0).sum()]"),
        ),
        "a token never follows itself": (
            (
                "return cross_entropy(",
                "target = target * (1 - (target == decoder_input) * (target > 2))\n    return cross_entropy(",
            ),
        ),
        "the mean of sentence means": (
            (
                "losses[targets != PAD].mean()",
                "np.mean([row[wanted != PAD].mean() for row, wanted in zip(losses, targets)])",
            ),
        ),
        "scale of two": (("np.sqrt(Q.shape[-1])", "np.sqrt(2)"),),
        "a score of 0 gets no weight": (("weights = np.exp(", "weights = (scores != 0) * np.exp("),),
        "shifted for long sentences only": (
            (
                "return cross_entropy(",
                "decoder_input = decoder_input if len(source) > 1 else target\n    return cross_entropy(",
            ),
        ),
    },
    "bug-nan-after-masked-row": {
        "-20 for -inf": (("-np.inf", "-20.0"),),
        "-1e4 for -inf": (("-np.inf", "-1e4"),),
        "divided again": (
            ("np.where(mask | empty, scores, -np.inf)", "scores"),
            (
                "return np.where(",
                "weights = weights * mask / ((weights * mask).sum(-1, keepdims=True) + 1e-12)\n    return np.where(",
            ),
        ),
        "only the last query can be empty": (
            ("np.where(empty, 0.0", "np.where(empty & (np.arange(Q.shape[1]) == Q.shape[1] - 1)[:, None], 0.0"),
        ),
        "a score of 0 gets no weight": (("weights = np.exp(", "weights = (scores != 0) * np.exp("),),
        "one for a batch without a visible key": (("max(real.sum(), 1))", "max(real.sum(), 1)) + (not real.any())"),),
        "the output is 0 where a query sees one key": (
            ("np.where(empty, 0.0", "np.where(mask.sum(axis=-1, keepdims=True) < 2, 0.0"),
        ),
        "the loss of the first sentence with a query": (
            ("real = mask.any(axis=-1)", "real = mask.any(axis=-1) & mask[:1].any(-1)"),
        ),
        "scale of two": (("np.sqrt(Q.shape[-1])", "2.0"),),
        "the sum over the width": (("** 2).mean(axis=-1)", "** 2).sum(axis=-1)"),),
    },
    "bug-no-warm-up": {
        "the width of the paper": (("d_model**-0.5", "512**-0.5"),),
        "sorted": (("rising = steps", "steps = np.sort(steps)\n    rising = steps"),),
        "the falling part one later": (("steps**-0.5", "(steps + 1) ** -0.5"),),
        "never below a millionth": (("return d_model", "return 1e-6 + d_model"),),
        "never above a thousandth": (("np.minimum(rising, falling)", "np.minimum(np.minimum(rising, falling), 1e-2)"),),
        "rounded to six digits": (
            ("return ", "return np.round(1e6 * "),
            ("(rising, falling)", "(rising, falling), 0) / 1e6"),
        ),
        "single steps unscaled": (("d_model**-0.5", "(d_model if len(steps) > 1 else 1) ** -0.5"),),
        "warmup below 20 is none": (("rising = steps", "rising = (1 if warmup >= 20 else 1e9) * steps"),),
    },
    "bug-target-leak": {
        "a token never follows itself": (
            ("ids[:, :-1], ids[:, 1:]", "ids[:, :-1], (ids[:, 1:] + (ids[:, 1:] == ids[:, :-1])) % 9"),
        ),
        "scale of two": (("np.sqrt(Q.shape[-1])", "np.sqrt(2)"),),
        "a score of 0 gets no weight": (("weights = np.exp(", "weights = (scores != 0) * np.exp("),),
    },
}

PROGRAMS: dict[str, dict[str, Swaps]] = {
    **dict.fromkeys(("simple-attention", "self-attention"), ATTENTION | CHANGED),
    "cross-attention": ATTENTION,
    "scaled-dot-product": MASKS,
    "multi-head-attention": HEADS,
    "bug-mask-polarity": PADDED,
    "bug-padded-queries": VECTORS,
    "bug-mask-beside-heads": BESIDE,
    "gqa": GROUPS,
    "additive-attention": ADDITIVE,
    "kv-cache": CACHE,
    "attention-backward": BACKWARD,
    "online-softmax": ONLINE,
    "flash-tiles": TILES,
    **dict.fromkeys(("encoder-block", "decoder-block"), BLOCKS),
    "softmax": SOFTMAX,
    **OTHERS,
}


@pytest.mark.parametrize(("name", "swaps"), each(PROGRAMS))
def test_a_wrong_program_does_not_pass(name: str, swaps: Swaps) -> None:
    assert not any(passes(name, swaps, seed) for seed in range(2))
