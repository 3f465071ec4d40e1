import numpy as np


def add_tile(state, q, k, v, q_start, k_start):
    top, total, output = state
    T, S = len(q), len(k)
    scores = (q / np.sqrt(q.shape[-1])) @ k.T
    visible = np.tri(T, S, q_start - k_start, dtype=bool)
    scores = np.where(visible, scores, -np.inf)
    new = np.max(np.concatenate([top[:, None], scores], axis=1), axis=1)
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(np.exp(scores - new[:, None]), nan=0.0)
        old = np.nan_to_num(np.exp(top - new), nan=0.0)
    return [new, old * total + weights.sum(1), old[:, None] * output + weights @ v]


def finish(state):
    top, total, output = state
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(output / total[:, None]), np.log(total) + np.maximum(top, -1e300)
