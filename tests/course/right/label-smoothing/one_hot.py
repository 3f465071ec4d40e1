import numpy as np


def log_softmax(x):
    x = x - np.max(x, axis=1)[:, None]
    return x - np.log(np.sum(np.exp(x), axis=1))[:, None]


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    rows = np.flatnonzero(targets != ignore_index)
    V = logits.shape[1]
    hot = np.eye(V)[targets[rows]]
    soft = (1 - smoothing) * hot + smoothing * np.ones(V) / V
    return -np.einsum("nv,nv->", soft, log_softmax(logits[rows])) / rows.size
