import numpy as np


def label_smoothing_loss(logits: np.ndarray, targets: np.ndarray, smoothing: float, ignore_index: int = -100) -> float:
    counted = targets != ignore_index
    logits, targets = logits[counted], targets[counted]
    N, V = logits.shape
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    wanted = np.full((N, V), smoothing / V)
    wanted[np.arange(N), targets] += 1 - smoothing
    losses = -(wanted * log_probs).sum(axis=-1)
    return float(losses.mean())
