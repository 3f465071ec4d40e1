import numpy as np


def cross_attention(x, memory, W_q, W_k, W_v):
    """Works for batches too; float32 inside."""
    x, memory, W_q, W_k, W_v = (np.float32(a) for a in (x, memory, W_q, W_k, W_v))
    q = np.einsum("...td,dk->...tk", x, W_q) / np.sqrt(np.float32(W_q.shape[-1]))
    k = np.einsum("...sd,dk->...sk", memory, W_k)
    v = np.einsum("...sd,dv->...sv", memory, W_v)
    s = np.einsum("...tk,...sk->...ts", q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("...ts,...sv->...tv", e, v) / e.sum(-1, keepdims=True)
