import numpy as np


def norm(row, gamma, beta):
    n = len(row)
    mean = sum(row) / n
    variance = sum((a - mean) ** 2 for a in row) / n
    return np.array([(a - mean) / (variance + 1e-5) ** 0.5 for a in row]) * gamma + beta


def block(x, p):
    normed = np.array([norm(row, p["gamma_1"], p["beta_1"]) for row in x])
    queries, keys, values = (normed @ p[name] for name in ("W_q", "W_k", "W_v"))
    rows = []
    for row, query in zip(x, queries, strict=True):
        scores = keys @ query / np.sqrt(len(query))
        weights = np.exp(scores - max(scores))
        middle = row + (weights @ values / sum(weights)) @ p["W_o"]
        hidden = norm(middle, p["gamma_2"], p["beta_2"]) @ p["W_1"] + p["b_1"]
        rows.append(middle + np.where(hidden > 0, hidden, 0) @ p["W_2"] + p["b_2"])
    return np.stack(rows)
