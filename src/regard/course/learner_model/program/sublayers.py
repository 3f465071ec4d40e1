"""The sublayers of a model, built from a learner's functions: projections, attention, feed-forward, embedding."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from regard.course.learner_model.program.part_calls import Parts

Layer = dict[str, np.ndarray]
"""The weights of one layer, by their names without the layer."""

Caches = list[Any]
"""The cache of each head: None, or its keys and values."""

HIDDEN = -50.0
"""An additive mask below this hides a key: e⁻⁵⁰ is 0 beside any other weight."""


def attention(
    p: "Parts",
    x: np.ndarray,
    memory: np.ndarray,
    weights: Layer,
    name: str,
    n_heads: int,
    visible: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head attention of x (B, T, D) over memory (B, S, D): the output, and the weights of every head, B H T S."""
    q = p.split_heads(linear(x, weights, f"{name}.q_proj"), n_heads)
    k, v = (p.split_heads(linear(memory, weights, f"{name}.{letter}_proj"), n_heads) for letter in "kv")
    heads, shares = p.scaled_dot_product_attention(q, k, v, visible)
    return linear(p.merge_heads(heads), weights, f"{name}.o_proj"), shares


def decoder_block_with_weights(
    p: "Parts", x: np.ndarray, memory: np.ndarray, weights: Layer, n_heads: int, memory_mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The decoder block, and its cross-attention, B H T S."""
    causal = visible(p.create_causal_mask(x.shape[1]))
    normed = normalised(p, x, weights, "self_attention_norm")
    x = x + attention(p, normed, normed, weights, "self_attention", n_heads, causal)[0]
    x, shares = attended_memory(p, x, memory, weights, n_heads, memory_mask)
    return x + fed_forward(p, normalised(p, x, weights, "feed_forward_norm"), weights), shares


def attended_memory(
    p: "Parts", x: np.ndarray, memory: np.ndarray, weights: Layer, n_heads: int, memory_mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """x with the cross-attention over the memory added, and the weights of every head, B H T S."""
    shown = None if memory_mask is None else memory_mask[:, None, None, :]  # B 1 1 S
    normed = normalised(p, x, weights, "cross_attention_norm")
    out, shares = attention(p, normed, memory, weights, "cross_attention", n_heads, shown)
    return x + out, shares


def attention_with_cache(
    p: "Parts", x: np.ndarray, layer: Layer, n_heads: int, caches: Caches, positions: np.ndarray | None = None
) -> np.ndarray:
    """Causal self-attention of the new positions x (1, T, D), head by head, over those in the caches and themselves."""
    q, k, v = (p.split_heads(linear(x, layer, f"self_attention.{letter}_proj"), n_heads) for letter in "qkv")
    if positions is not None:
        q, k = p.rope(q, positions), p.rope(k, positions)
    heads = []
    for h in range(n_heads):
        out, caches[h] = p.attend_with_cache(q[0, h], k[0, h], v[0, h], caches[h])
        heads.append(out)
    return linear(p.merge_heads(np.stack(heads)[None]), layer, "self_attention.o_proj")


def linear(x: np.ndarray, weights: Layer, name: str) -> np.ndarray:
    """x Wᵀ + b, with weights stored as in nn.Linear."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def normalised(p: "Parts", x: np.ndarray, weights: Layer, name: str) -> np.ndarray:
    """Layer norm with the weights of this name."""
    out: np.ndarray = p.layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
    return out


def fed_forward(p: "Parts", x: np.ndarray, weights: Layer) -> np.ndarray:
    """The feed-forward layer of the translator, with ReLU."""
    out: np.ndarray = p.feed_forward(x, *_feed_forward_weights(weights))
    return out


def fed_forward_with_gelu(p: "Parts", x: np.ndarray, weights: Layer) -> np.ndarray:
    """The feed-forward layer of the poet, with GELU."""
    out: np.ndarray = p.gelu_feed_forward(x, *_feed_forward_weights(weights))
    return out


def _feed_forward_weights(weights: Layer) -> tuple[np.ndarray, ...]:
    """W_1, b_1, W_2, b_2, used as x W."""
    up, down = (
        (weights[f"feed_forward.{name}.weight"].T, weights[f"feed_forward.{name}.bias"]) for name in ("up", "down")
    )
    return *up, *down


def embed(p: "Parts", ids: np.ndarray, weights: Mapping[str, Any]) -> np.ndarray:
    """The rows of the embedding for the ids, scaled, with their positions: B T D."""
    table = weights["embedding"]
    found: np.ndarray = table[ids] * math.sqrt(table.shape[1]) + p.positional_encoding(ids.shape[1], table.shape[1])
    return found


def visible(mask: np.ndarray) -> np.ndarray:
    """A mask to be added to the scores as a boolean one, True = visible."""
    return np.asarray(mask > HIDDEN)
