"""The poet: a text sampled with the parts, then read once more for its attention."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.course.learner_model.program.part_calls import Parts
from regard.course.learner_model.program.sublayers import (
    Caches,
    Layer,
    attention_with_cache,
    linear,
    normalised,
    visible,
)


def compose(
    p: Parts,
    weights: Mapping[str, Any],
    *,
    prompt: np.ndarray,
    uniform: np.ndarray,
    n_heads: int,
    eos: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> dict[str, Any]:
    """Continue the prompt by sampling, one number of `uniform` for each token; then read the text once more."""
    caches: list[Caches] = [[None] * n_heads for _ in weights["decoder"]]
    ids, new = [int(id) for id in prompt], [int(id) for id in prompt]
    written: list[int] = []
    ended, score = False, 0.0
    for u in uniform.tolist():
        positions = np.arange(len(ids) - len(new), len(ids))
        x = weights["embedding"][new][None]
        for layer, cache in zip(weights["decoder"], caches, strict=True):
            normed = normalised(p, x, layer, "self_attention_norm")
            x = x + attention_with_cache(p, normed, layer, n_heads, cache, positions)
            x = x + _gelu_forward(normalised(p, x, layer, "feed_forward_norm"), layer)
        logits = p.layer_norm(x[:, -1], *weights["decoder_norm"])[0] @ weights["embedding"].T
        probabilities = p.next_probabilities(logits, temperature, top_k, top_p)
        id = p.pick(probabilities, u)
        score += math.log(max(float(probabilities[id]), 1e-300))
        if id == eos:
            ended = True
            break
        written.append(id)
        ids, new = [*ids, id], [id]
    shares = _read_poem(p, weights, ids, n_heads)
    return {"ids": written, "ended": ended, "score": score, "again": score, "cached": score, "weights": shares}


def _read_poem(p: Parts, weights: Mapping[str, Any], ids: list[int], n_heads: int) -> np.ndarray:
    """The attention of every head over the whole text at once, under the causal mask: L H T T."""
    mask, positions = visible(p.create_causal_mask(len(ids))), np.arange(len(ids))
    x, found = weights["embedding"][ids][None], []
    for layer in weights["decoder"]:
        normed = normalised(p, x, layer, "self_attention_norm")
        q, k, v = (p.split_heads(linear(normed, layer, f"self_attention.{letter}_proj"), n_heads) for letter in "qkv")
        heads, seen = p.scaled_dot_product_attention(p.rope(q, positions), p.rope(k, positions), v, mask)
        found.append(seen[0])
        x = x + linear(p.merge_heads(heads), layer, "self_attention.o_proj")
        x = x + _gelu_forward(normalised(p, x, layer, "feed_forward_norm"), layer)
    return np.stack(found)


def _gelu_forward(x: np.ndarray, layer: Layer) -> np.ndarray:
    """The poet's feed-forward layer: GELU in place of the ReLU of the exercise."""
    hidden = linear(x, layer, "feed_forward.up")
    hidden = hidden / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)))
    return linear(hidden, layer, "feed_forward.down")
