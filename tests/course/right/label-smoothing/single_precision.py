import numpy as np


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    rows = np.flatnonzero(targets != ignore_index)
    x = logits[rows].astype(np.float32)
    x = x - x.max(axis=1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    nll, spread = -log_p[np.arange(len(rows)), targets[rows]], -log_p.mean(axis=1)
    return float(((1 - smoothing) * nll + smoothing * spread).mean())
