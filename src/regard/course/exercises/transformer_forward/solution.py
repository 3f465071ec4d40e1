from typing import Any

import numpy as np

Weights = dict[str, Any]


def transformer(
    source: np.ndarray, target: np.ndarray, weights: Weights, n_heads: int, source_mask: np.ndarray
) -> np.ndarray:
    # The encoder reads the source once. 编码器把原文读一遍。
    scale = np.sqrt(weights["embedding"].shape[1])
    x = weights["embedding"][source] * scale  # B S D
    x = x + positional_encoding(x.shape[1], x.shape[2])
    for layer in weights["encoder"]:
        x = encoder_block(x, layer, n_heads, source_mask)
    memory = layer_norm(x, *weights["encoder_norm"])
    # Every decoder layer attends to the same memory. 解码器每一层看的都是同一份 memory。
    y = weights["embedding"][target] * scale  # B T D
    y = y + positional_encoding(y.shape[1], y.shape[2])
    for layer in weights["decoder"]:
        y = decoder_block(y, memory, layer, n_heads, source_mask)
    y = layer_norm(y, *weights["decoder_norm"])
    return y @ weights["embedding"].T  # B T V


# Given: short stand-ins with the arguments of the real parts. `regard learn build` puts your own in their place.
# 已给出：参数与真实部件相同的简短替身。`regard learn build` 会换上你自己写的部件。


def positional_encoding(length: int, d_model: int) -> np.ndarray:
    return np.cos(np.outer(np.arange(length), 1 + np.arange(d_model)))


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return gamma * x / np.abs(x).max(axis=-1, keepdims=True) + beta


def encoder_block(x: np.ndarray, layer: Weights, n_heads: int, mask: np.ndarray) -> np.ndarray:
    return x + mean_of_visible(x, mask[:, None]) @ layer["W"] / n_heads


def decoder_block(
    y: np.ndarray, memory: np.ndarray, layer: Weights, n_heads: int, memory_mask: np.ndarray
) -> np.ndarray:
    y = y + mean_of_visible(y, np.tri(y.shape[1])) @ layer["W"] / n_heads
    return y + mean_of_visible(memory, memory_mask[:, None]) @ layer["U"] / n_heads


def mean_of_visible(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return mask @ x / mask.sum(axis=-1, keepdims=True)
