import math

import numpy as np


def online_softmax_attention(Q, K, V, block):
    out, lse = [], []
    for q in Q:
        m, total, acc = -math.inf, 0.0, np.zeros(V.shape[1])
        for key, value in zip(K, V, strict=True):
            s = float(q @ key) / math.sqrt(len(q))
            if s > m:
                total *= math.exp(m - s)
                acc = acc * math.exp(m - s)
                m = s
            total += math.exp(s - m)
            acc = acc + math.exp(s - m) * value
        out.append(acc / total)
        lse.append(m + math.log(total))
    return np.array(out), np.array(lse)
