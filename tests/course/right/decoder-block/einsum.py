import numpy as np


def decoder_block(x, memory, weights, n_heads, memory_mask=None):
    def linear(name, x):
        return np.einsum("...i,oi->...o", x, weights[name + ".weight"]) + weights[name + ".bias"]

    def norm(name, x):
        centred = x - x.mean(-1)[..., None]
        return centred * (centred.var(-1)[..., None] + 1e-5) ** -0.5 * weights[name + ".weight"] + weights[name + ".bias"]

    def attend(name, x, keys, added):
        def heads(part, x):
            return linear(f"{name}.{part}_proj", x).reshape(*x.shape[:2], n_heads, -1)

        q = heads("q", x)
        scores = np.einsum("bthe,bshe->bhts", q, heads("k", keys)) / np.sqrt(q.shape[-1]) + added
        weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
        return linear(f"{name}.o_proj", np.einsum("bhts,bshe->bthe", weights, heads("v", keys)).reshape(x.shape))

    T = x.shape[1]
    causal = np.triu(np.full((T, T), -np.inf), k=1)
    padding = 0.0 if memory_mask is None else np.where(memory_mask, 0.0, -np.inf)[:, None, None]
    parts = {
        "self_attention": lambda n: attend("self_attention", n, n, causal),
        "cross_attention": lambda n: attend("cross_attention", n, memory, padding),
        "feed_forward": lambda n: linear("feed_forward.down", np.maximum(linear("feed_forward.up", n), 0)),
    }
    for name, part in parts.items():
        x = x + part(norm(f"{name}_norm", x))
    return x
