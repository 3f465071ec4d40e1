import numpy as np


def beam_search(log_probs, start, eos, beams, max_len):
    V = log_probs.shape[0]
    waiting = np.full(V, -np.inf)
    waiting[eos] = 0.0  # a finished beam repeats eos at no cost
    table = log_probs.copy()
    table[eos] = waiting
    paths, scores = np.array([[start]]), np.zeros(1)
    for _ in range(max_len):
        total = (scores[:, None] + table[paths[:, -1]]).ravel()
        best = np.argsort(-total)[:beams]
        best = best[np.isfinite(total[best])]
        paths = np.concatenate([paths[best // V], (best % V)[:, None]], axis=1)
        scores = total[best]
    tokens = paths[0].tolist()
    if eos in tokens:
        tokens = tokens[: tokens.index(eos) + 1]
    return tokens, scores[0]
