import math

import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    front, (T, d_k), S = Q.shape[:-2], Q.shape[-2:], K.shape[-2]
    mask = np.broadcast_to(True if mask is None else mask, (*front, T, S))
    weights = np.zeros((*front, T, S))
    output = np.zeros((*front, T, V.shape[-1]))
    for where in np.ndindex(*front, T):
        sample = where[:-1]
        seen = [s for s in range(S) if mask[where][s]]
        scores = [float(Q[where] @ K[sample][s]) / math.sqrt(d_k) for s in seen]
        powers = [math.exp(score - max(scores)) for score in scores]
        for s, power in zip(seen, powers, strict=True):
            weights[where][s] = power / sum(powers)
            output[where] += weights[where][s] * V[sample][s]
    return output, weights
