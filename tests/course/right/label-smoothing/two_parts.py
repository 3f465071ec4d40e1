import numpy as np


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    keep = (targets != ignore_index).astype(float)
    safe = np.where(keep > 0, targets, 0)
    right = -np.take_along_axis(log_p, safe[:, None], axis=1)[:, 0]
    even = -log_p.mean(axis=1)
    per_token = (1 - smoothing) * right + smoothing * even
    return (per_token * keep).sum() / keep.sum()
