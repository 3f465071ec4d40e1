import numpy as np


def add_tile(state, q, k, v, q_start, k_start):
    m, l, o = state
    s = np.einsum("ie,je->ij", q, k) * q.shape[-1] ** -0.5
    qi, kj = np.ogrid[q_start : q_start + len(q), k_start : k_start + len(k)]
    s[kj > qi] = -np.inf
    new = np.maximum(m, s.max(1))
    with np.errstate(invalid="ignore"):
        a = np.nan_to_num(np.exp(m - new))
        p = np.nan_to_num(np.exp(s - new[:, None]))
    return new, l * a + p.sum(1), o * a[:, None] + np.einsum("ij,jv->iv", p, v)


def finish(state):
    m, l, o = state
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(o / l[:, None]), np.where(l > 0, m + np.log(l), -np.inf)
