import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    x = logits / temperature
    if top_k is not None and top_k < len(x):
        x = np.where(x >= np.partition(x, -top_k)[-top_k], x, -np.inf)
    if top_p is not None:
        ranked = np.sort(softmax(x))[::-1]
        so_far = 0.0
        for least in ranked:
            so_far += least
            if so_far >= top_p:
                break
        x = np.where(softmax(x) >= least, x, -np.inf)
    return softmax(x)


def pick(probabilities, u):
    return np.argmax(np.cumsum(probabilities) > u)
