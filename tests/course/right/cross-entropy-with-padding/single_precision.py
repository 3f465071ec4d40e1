import numpy as np


def cross_entropy(logits, targets, pad=0):
    keep = np.flatnonzero(targets != pad)
    x = logits.reshape(-1, logits.shape[-1])[keep].astype(np.float32)
    x = x - x.max(axis=1, keepdims=True) if len(keep) else x
    losses = np.log(np.exp(x).sum(axis=1)) - x[np.arange(len(keep)), targets.ravel()[keep]]
    return float(losses.sum() / np.float32(len(keep) + 1e-9))
