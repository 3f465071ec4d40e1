import math

import numpy as np


def attention_backward(Q, K, V, dO):
    T, S, d, d_v = len(Q), len(K), Q.shape[1], V.shape[1]
    dQ, dK, dV = np.zeros((T, d)), np.zeros((S, d)), np.zeros((S, d_v))
    for t in range(T):
        s = [sum(Q[t, i] * K[j, i] for i in range(d)) / math.sqrt(d) for j in range(S)]
        e = [math.exp(x - max(s)) for x in s]
        p = [x / sum(e) for x in e]
        dp = [sum(dO[t, c] * V[j, c] for c in range(d_v)) for j in range(S)]
        mean = sum(a * b for a, b in zip(p, dp, strict=True))
        for j in range(S):
            ds = p[j] * (dp[j] - mean) / math.sqrt(d)
            for c in range(d_v):
                dV[j, c] += p[j] * dO[t, c]
            for i in range(d):
                dQ[t, i] += ds * K[j, i]
                dK[j, i] += ds * Q[t, i]
    return dQ, dK, dV
