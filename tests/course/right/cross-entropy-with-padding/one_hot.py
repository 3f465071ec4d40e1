import numpy as np


def cross_entropy(logits, targets, pad=0):
    V = logits.shape[-1]
    hot = (targets[..., None] == np.arange(V)) & (targets != pad)[..., None]
    x = logits - logits.max(-1)[..., None]
    log_p = x - np.log(np.einsum("btv->bt", np.exp(x)))[..., None]
    count = np.count_nonzero(hot)
    return 0.0 if count == 0 else -np.sum(log_p, where=hot) / count
