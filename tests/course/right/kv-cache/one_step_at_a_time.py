import numpy as np


class Memory:
    def __init__(self, cache, k, v):
        empty = (np.empty((0, k.shape[1])), np.empty((0, v.shape[1])))
        self.keys, self.values = empty if cache is None else cache

    def step(self, query, key, value):
        self.keys = np.append(self.keys, key[np.newaxis], axis=0)
        self.values = np.append(self.values, value[np.newaxis], axis=0)
        scores = self.keys @ query / np.sqrt(query.size)
        weights = np.exp(scores - np.logaddexp.reduce(scores))
        return weights @ self.values


def attend_with_cache(q, k, v, cache=None):
    memory = Memory(cache, k, v)
    out = np.stack([memory.step(*row) for row in zip(q, k, v, strict=True)])
    return out, [memory.keys, memory.values]
