import math

import numpy as np


def add_tile(state, q, k, v, q_start, k_start):
    tops, totals, outputs = [np.array(part) for part in state]
    for i in range(len(q)):
        for j in range(len(k)):
            if k_start + j > q_start + i:
                break
            s = float(q[i] @ k[j]) / math.sqrt(len(q[i]))
            if s > tops[i]:  # one key at a time: a tile of size 1
                shrink = math.exp(tops[i] - s)
                totals[i] *= shrink
                outputs[i] *= shrink
                tops[i] = s
            w = math.exp(s - tops[i])
            totals[i] += w
            outputs[i] += w * v[j]
    return tops, totals, outputs


def finish(state):
    out, lse = np.zeros(state[2].shape), np.full(len(state[0]), -np.inf)
    for i, (top, total, output) in enumerate(zip(*state, strict=True)):
        if total > 0:
            out[i], lse[i] = output / total, top + math.log(total)
    return out, lse
