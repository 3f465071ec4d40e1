import numpy as np


def cross_entropy(logits: np.ndarray, targets: np.ndarray, pad: int = 0) -> float:
    counted = targets != pad
    if not counted.any():
        return 0.0
    logits, targets = logits[counted], targets[counted]  # (N, V), (N,)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    losses = -log_probs[np.arange(len(targets)), targets]
    return float(losses.mean())
