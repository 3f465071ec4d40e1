import numpy as np


def norm(x, w, name):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def attend(x, y, w, name, n_heads, hidden):
    d = x.shape[-1] // n_heads
    q, k, v = (z @ w[f"{name}.{c}_proj.weight"].T + w[f"{name}.{c}_proj.bias"] for c, z in zip("qkv", (x, y, y), strict=True))
    heads = []
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        s = q[:, part] @ k[:, part].T / d**0.5
        s[hidden] = -np.inf
        p = np.exp(s - s.max(1, keepdims=True))
        heads.append(p / p.sum(1, keepdims=True) @ v[:, part])
    return np.hstack(heads) @ w[f"{name}.o_proj.weight"].T + w[f"{name}.o_proj.bias"]


def decoder_block(x, memory, weights, n_heads, memory_mask=None):
    w, T, S = weights, x.shape[1], memory.shape[1]
    out = []
    for b in range(len(x)):
        y, m = x[b], memory[b]
        n = norm(y, w, "self_attention_norm")
        y = y + attend(n, n, w, "self_attention", n_heads, np.triu(np.ones((T, T), dtype=bool), 1))
        padding = np.zeros(S, dtype=bool) if memory_mask is None else ~memory_mask[b]
        y = y + attend(norm(y, w, "cross_attention_norm"), m, w, "cross_attention", n_heads, np.tile(padding, (T, 1)))
        hidden = norm(y, w, "feed_forward_norm") @ w["feed_forward.up.weight"].T + w["feed_forward.up.bias"]
        out.append(y + hidden.clip(min=0) @ w["feed_forward.down.weight"].T + w["feed_forward.down.bias"])
    return np.array(out)
