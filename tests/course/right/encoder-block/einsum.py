import numpy as np


class Weights:
    def __init__(self, values):
        self.values = values

    def linear(self, name, x):
        return np.einsum("...i,oi->...o", x, self.values[name + ".weight"]) + self.values[name + ".bias"]

    def norm(self, name, x):
        return (x - x.mean(-1)[..., None]) / (x.var(-1)[..., None] + 1e-5) ** 0.5 * self.values[
            name + ".weight"
        ] + self.values[name + ".bias"]


def encoder_block(x, weights, n_heads, mask=None):
    net = Weights(weights)
    B, T, D = x.shape

    def attend(x):
        q, k, v = (net.linear(f"self_attention.{n}_proj", x).reshape(B, T, n_heads, -1) for n in "qkv")
        scores = np.einsum("bthe,bshe->bhts", q, k) / np.sqrt(D // n_heads)
        added = np.zeros((B, T)) if mask is None else np.where(mask, 0.0, -np.inf)
        scores = scores + added[:, None, None]
        scores -= np.logaddexp.reduce(scores, axis=-1, keepdims=True)
        return net.linear("self_attention.o_proj", np.einsum("bhts,bshe->bthe", np.exp(scores), v).reshape(B, T, D))

    def feed(x):
        return net.linear("feed_forward.down", np.maximum(0, net.linear("feed_forward.up", x)))

    for name, part in (("self_attention", attend), ("feed_forward", feed)):
        x = x + part(net.norm(f"{name}_norm", x))
    return x
