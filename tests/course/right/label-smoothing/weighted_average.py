import numpy as np


def label_smoothing_loss(logits, targets, smoothing, ignore_index=-100):
    V = logits.shape[-1]
    lse = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
    is_target = np.arange(V) == targets[:, None]  # an ignored token has none
    wanted = np.where(is_target, 1 - smoothing + smoothing / V, smoothing / V)
    losses = lse * wanted.sum(1) - (wanted * logits).sum(1)
    return np.average(losses, weights=targets != ignore_index)
