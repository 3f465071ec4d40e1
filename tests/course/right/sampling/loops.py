from math import exp

import numpy as np


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    scores = [value / temperature for value in logits.tolist()]
    highest = max(scores)
    weights = {token: exp(score - highest) for token, score in enumerate(scores)}
    ranked = sorted(weights, key=weights.get, reverse=True)
    if top_k is not None:
        ranked = ranked[:top_k]
    if top_p is not None:
        total, so_far, kept = sum(weights[token] for token in ranked), 0.0, []
        for token in ranked:
            kept.append(token)
            so_far += weights[token]
            if so_far >= top_p * total:
                break
        ranked = kept
    total = sum(weights[token] for token in ranked)
    out = np.zeros(len(scores))
    for token in ranked:
        out[token] = weights[token] / total
    return out


def pick(probabilities, u):
    so_far = 0.0
    for token, probability in enumerate(probabilities):
        so_far += probability
        if u < so_far:
            return token
    return int(np.flatnonzero(probabilities)[-1])
