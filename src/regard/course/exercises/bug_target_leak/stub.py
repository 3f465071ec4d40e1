"""The training loss of a small language model. It contains one mistake.

一个小语言模型的训练损失。这里面有一处错误。
"""

import numpy as np

Parameters = dict[str, np.ndarray]


def causal_attention(x: np.ndarray, p: Parameters) -> np.ndarray:
    """x (B, T, d_model) -> (B, T, d_model); a position looks at itself and at what came before."""
    Q, K, V = x @ p["W_q"], x @ p["W_k"], x @ p["W_v"]
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, T, T)
    may_look = np.tril(np.ones(scores.shape[-2:], dtype=bool))
    scores = np.where(may_look, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V @ p["W_o"]


def logits_of(ids: np.ndarray, p: Parameters) -> np.ndarray:
    """ids (B, T) -> (B, T, V): at each position, a score for every token that may come next."""
    x = p["embedding"][ids]
    x = x + causal_attention(x, p)
    return x @ p["embedding"].T


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> float:
    """The mean of -log softmax(logits)[target]."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return float(-np.take_along_axis(log_probs, targets[..., None], axis=-1).mean())


def training_loss(ids: np.ndarray, p: Parameters) -> float:
    """How badly the model predicts each next token of the sentences ids (B, T)."""
    inputs, targets = ids, ids
    return cross_entropy(logits_of(inputs, p), targets)
