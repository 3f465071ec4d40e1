import numpy as np


def attention_backward(Q, K, V, dO):
    root = np.sqrt(Q.shape[1])
    dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    for t, q in enumerate(Q):
        s = K @ q / root
        p = np.exp(s - s.max())
        p /= p.sum()
        jacobian = np.diag(p) - np.outer(p, p)
        ds = jacobian @ (V @ dO[t])
        dV += np.outer(p, dO[t])
        dQ[t] = ds @ K / root
        dK += np.outer(ds, q) / root
    return dQ, dK, dV
