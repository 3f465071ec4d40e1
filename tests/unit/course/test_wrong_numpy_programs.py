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
    "feed-forward": {
        "0 becomes 1": (("np.maximum(hidden, 0)", "np.where(hidden == 0, 1, np.maximum(hidden, 0))"),),
        "slightly leaky": (("np.maximum(hidden, 0)", "np.maximum(hidden, 1e-3 * hidden)"),),
        "cut off at 6": (("np.maximum(hidden, 0)", "np.clip(hidden, 0, 6)"),),
        "weights turned where square": (("x @ W_1", "x @ (W_1.T if len(W_1) == W_1.shape[1] else W_1)"),),
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
    "beam-search": {
        "four tokens": (("enumerate(log_probs[tokens[-1]])", "enumerate(log_probs[tokens[-1]][:4])"),),
        "at most two beams in between": (("[:beams]", "[: min(beams, 2)]"),),
        "the last token ends": (("tokens[-1] == eos", "tokens[-1] in (eos, len(log_probs) - 1)"),),
    },
    "bug-residual": {
        "divided by the width": (("x + feed_forward(normed, p)", "x + feed_forward(normed, p) * (4 / x.shape[-1])"),),
        "no eps where constant": (("+ 1e-5)", "+ 1e-5 * (x.var(axis=-1, keepdims=True) > 0))"),),
        "scale of two": (("np.sqrt(Q.shape[-1])", "np.sqrt(2)"),),
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
    "kv-cache": CACHE,
    "attention-backward": BACKWARD,
    "online-softmax": ONLINE,
    "softmax": SOFTMAX,
    **OTHERS,
}


@pytest.mark.parametrize(("name", "swaps"), each(PROGRAMS))
def test_a_wrong_program_does_not_pass(name: str, swaps: Swaps) -> None:
    assert not any(passes(name, swaps, seed) for seed in range(2))
