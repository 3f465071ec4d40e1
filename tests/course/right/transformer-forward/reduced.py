from functools import reduce

import numpy as np


def transformer(source, target, weights, n_heads, source_mask):
    E = weights["embedding"]
    start = [np.sqrt(E.shape[1]) * E[ids] + positional_encoding(ids.shape[1], E.shape[1]) for ids in (source, target)]
    x = reduce(lambda x, layer: encoder_block(x, layer, n_heads, source_mask), weights["encoder"], start[0])
    memory = layer_norm(x, *weights["encoder_norm"])
    y = reduce(
        lambda y, layer: decoder_block(y, memory, layer, n_heads, source_mask),
        weights["decoder"],
        start[1],
    )
    return layer_norm(y, *weights["decoder_norm"]) @ E.swapaxes(0, 1)


# Given: short stand-ins with the arguments of the real parts. `regard learn build` puts your own in their place.
# 已给出：参数与真实部件相同的简短替身。`regard learn build` 会换上你自己写的部件。


def positional_encoding(length, d_model):
    return np.cos(np.outer(np.arange(length), 1 + np.arange(d_model)))


def layer_norm(x, gamma, beta):
    return gamma * x / np.abs(x).max(axis=-1, keepdims=True) + beta


def encoder_block(x, layer, n_heads, mask):
    return x + mean_of_visible(x, mask[:, None]) @ layer["W"] / n_heads


def decoder_block(y, memory, layer, n_heads, memory_mask):
    y = y + mean_of_visible(y, np.tri(y.shape[1])) @ layer["W"] / n_heads
    return y + mean_of_visible(memory, memory_mask[:, None]) @ layer["U"] / n_heads


def mean_of_visible(x, mask):
    return mask @ x / mask.sum(axis=-1, keepdims=True)
