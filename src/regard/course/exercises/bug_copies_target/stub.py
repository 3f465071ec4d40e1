"""The training loss of a small translation model. It contains one mistake.

一个小翻译模型的训练损失。这里面有一处错误。
"""

import numpy as np

PAD, BOS, EOS = 0, 1, 2
Parameters = dict[str, np.ndarray]


def attention(x: np.ndarray, memory: np.ndarray, p: Parameters, name: str, mask: np.ndarray) -> np.ndarray:
    """x (B, T, D) attends to memory (B, S, D); mask (B or 1, T or 1, S), True = visible."""
    Q, K, V = x @ p[f"{name}_q"], memory @ p[f"{name}_k"], memory @ p[f"{name}_v"]
    scores = np.where(mask, Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V


def logits_of(source: np.ndarray, decoder_input: np.ndarray, p: Parameters) -> np.ndarray:
    """(B, S) and (B, T) -> (B, T, V): at each position of the decoder, a score for every token of the translation."""
    memory, x = p["embedding"][source], p["embedding"][decoder_input]
    causal = np.tril(np.ones((x.shape[1], x.shape[1]), dtype=bool))[None]
    x = x + attention(x, x, p, "self", causal)
    x = x + attention(x, memory, p, "cross", (source != PAD)[:, None, :])
    return x @ p["embedding"].T


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> float:
    """The mean of -log softmax(logits)[target] over the targets that are not PAD."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    losses = -np.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    return float(losses[targets != PAD].mean())


def training_loss(source: np.ndarray, target: np.ndarray, p: Parameters) -> float:
    """The loss of a batch of sentence pairs with teacher forcing."""
    decoder_input = target
    return cross_entropy(logits_of(source, decoder_input, p), target)
