import numpy as np


def norm(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def encoder_block(x, weights, n_heads, mask=None):
    w = weights
    d = x.shape[-1] // n_heads
    out = []
    for b, sample in enumerate(x):
        n = norm(sample, w["self_attention_norm.weight"], w["self_attention_norm.bias"])
        q, k, v = (n @ w[f"self_attention.{c}_proj.weight"].T + w[f"self_attention.{c}_proj.bias"] for c in "qkv")
        heads = []
        for h in range(n_heads):
            part = slice(h * d, (h + 1) * d)
            s = q[:, part] @ k[:, part].T / d**0.5
            if mask is not None:
                s[:, ~mask[b]] = -np.inf
            p = np.exp(s - s.max(1, keepdims=True))
            heads.append(p / p.sum(1, keepdims=True) @ v[:, part])
        y = sample + np.hstack(heads) @ w["self_attention.o_proj.weight"].T + w["self_attention.o_proj.bias"]
        n = norm(y, w["feed_forward_norm.weight"], w["feed_forward_norm.bias"])
        hidden = (n @ w["feed_forward.up.weight"].T + w["feed_forward.up.bias"]).clip(min=0)
        out.append(y + hidden @ w["feed_forward.down.weight"].T + w["feed_forward.down.bias"])
    return np.stack(out)
