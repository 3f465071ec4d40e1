import numpy as np


def transformer(source, target, weights, n_heads, source_mask):
    table = weights["embedding"]
    root = np.sqrt(table.shape[1])
    logits = []
    for b in range(len(source)):
        one = slice(b, b + 1)
        x = np.take(table, source[one], axis=0) * root + positional_encoding(source.shape[1], table.shape[1])
        for i in range(len(weights["encoder"])):
            x = encoder_block(x, weights["encoder"][i], n_heads, source_mask[one])
        x = layer_norm(x, weights["encoder_norm"][0], weights["encoder_norm"][1])
        y = np.take(table, target[one], axis=0) * root + positional_encoding(target.shape[1], table.shape[1])
        for i in range(len(weights["decoder"])):
            y = decoder_block(y, x, weights["decoder"][i], n_heads, source_mask[one])
        y = layer_norm(y, weights["decoder_norm"][0], weights["decoder_norm"][1])
        logits.append(np.matmul(y[0], table.T))
    return np.stack(logits)


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
