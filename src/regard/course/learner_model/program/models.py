"""The translator and the poet, with the parts: a search or sampling, then the text read once more for its attention."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from regard.course.learner_model.program.our_parts import encoder_block
from regard.course.learner_model.program.part_calls import Parts
from regard.course.learner_model.program.sublayers import (
    Caches,
    attended_memory,
    attention_with_cache,
    decoder_block_with_weights,
    embed,
    fed_forward,
    fed_forward_with_gelu,
    linear,
    normalised,
    visible,
)

IMPOSSIBLE = -1000.0
"""The log-probability of a step that the tree of a search does not have."""


def translate(
    p: Parts,
    weights: Mapping[str, Any],
    *,
    source: np.ndarray,
    n_heads: int,
    bos: int,
    eos: int,
    pad: int,
    beams: int,
    max_len: int,
) -> dict[str, Any]:
    """Search a translation of the padded source (S,), then read both once more for the attention weights."""
    source_mask = visible(p.create_padding_mask(source[None], pad))[:, 0]  # 1 S

    def next_log_probs(prefixes: list[list[int]]) -> np.ndarray:
        B, target = len(prefixes), np.array(prefixes)
        sources, masks = np.repeat(source[None], B, axis=0), np.repeat(source_mask, B, axis=0)
        logits = p.transformer(sources, target, weights, n_heads, masks)
        with np.errstate(divide="ignore"):
            found: np.ndarray = np.log(p.softmax(logits[:, -1], -1))  # B W
        return found

    tree = Tree(bos, eos)
    tree.grow(next_log_probs, beams, max_len)
    for narrow, steps in ((1, 1), (1, tree.depth), (2, tree.depth - 1), (2, tree.depth), (3, tree.depth)):
        p.beam_search(tree.table(), 0, 1, narrow, max(steps, 1))  # an easy sentence hides mistakes: only compared
    path, score = p.beam_search(tree.table(), 0, 1, beams, max(tree.depth, 1))
    tokens = [tree.tokens[node] for node in path]
    written = tokens[1:] if tokens[:1] == [bos] else tokens
    ended = written[-1:] == [eos]
    ids = [token for token in written if token not in (bos, eos)]
    following = [*ids, eos] if ended else ids
    memory = _encoded(p, weights, source, source_mask, n_heads)
    at_once, cross = _read_at_once(p, weights, memory, source_mask, [bos, *ids], n_heads)
    stepwise = _read_with_cache(p, weights, memory, source_mask, [bos, *ids], n_heads)
    again, cached = (
        float(sum(log_probs[at, token] for at, token in enumerate(following))) for log_probs in (at_once, stepwise)
    )
    return {"ids": ids, "ended": ended, "score": score, "again": again, "cached": cached, "weights": cross}


class Tree:
    """The beginnings of a translation that a search can reach, as the table of the beam-search exercise.

    Node 0 is the beginning and node 1 the end; every other node is one beginning, with the token it ends in. The table
    holds the log-probability of each step from a node to one of its children.
    """

    def __init__(self, bos: int, eos: int) -> None:
        self.tokens, self.eos, self.depth = [bos, eos], eos, 0
        self._steps: list[tuple[int, int, float]] = []

    def grow(self, next_log_probs: Callable[[list[list[int]]], np.ndarray], beams: int, max_len: int) -> None:
        """Follow the `beams` best beginnings, each to its `beams` best continuations, until the best one has ended."""
        kept: list[tuple[list[int], float]] = [([0], 0.0)]
        while self.depth < max_len and kept[0][0][-1] != 1:
            self.depth += 1
            candidates = [beam for beam in kept if beam[0][-1] == 1]
            alive = [beam for beam in kept if beam[0][-1] != 1]
            rows = next_log_probs([[self.tokens[node] for node in path] for path, _ in alive])
            rows = np.maximum(np.nan_to_num(rows, nan=IMPOSSIBLE), IMPOSSIBLE)
            for (path, score), row in zip(alive, rows, strict=True):
                best = np.argsort(-row, kind="stable")[: beams + 1].tolist()
                for token in dict.fromkeys([*best, self.eos]):
                    node = 1 if token == self.eos else len(self.tokens)
                    if node > 1:
                        self.tokens.append(token)
                    self._steps.append((path[-1], node, float(row[token])))
                    candidates.append(([*path, node], score + float(row[token])))
            kept = sorted(candidates, key=lambda beam: -beam[1])[:beams]

    def table(self) -> np.ndarray:
        """log_probs (V, V): row = the node now, column = the next one."""
        found = np.full((len(self.tokens),) * 2, IMPOSSIBLE)
        for now, following, log_prob in self._steps:
            found[now, following] = log_prob
        return found


def _encoded(
    p: Parts, weights: Mapping[str, Any], source: np.ndarray, source_mask: np.ndarray, n_heads: int
) -> np.ndarray:
    """The encoder's output, 1 S D, by the small parts: the blocks of the exercises do not return their weights."""
    memory = embed(p, source[None], weights)
    for layer in weights["encoder"]:
        memory = encoder_block(p, memory, layer, n_heads, source_mask)
    out: np.ndarray = p.layer_norm(memory, *weights["encoder_norm"])
    return out


def _read_at_once(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities (T, W) after each token, and the cross-attention of every head, L H T S, by the small parts."""
    y, cross = embed(p, np.array([target]), weights), []
    for layer in weights["decoder"]:
        y, shares = decoder_block_with_weights(p, y, memory, layer, n_heads, source_mask)
        cross.append(shares[0])
    return _log_probs(p, y, weights), np.stack(cross)


def _read_with_cache(
    p: Parts, weights: Mapping[str, Any], memory: np.ndarray, source_mask: np.ndarray, target: list[int], n_heads: int
) -> np.ndarray:
    """The same log-probabilities with a cache: the first half of the tokens together, then one by one."""
    embedded, half = embed(p, np.array([target]), weights), (len(target) + 1) // 2
    caches: list[Caches] = [[None] * n_heads for _ in weights["decoder"]]
    rows = []
    for chunk in (slice(0, half), *(slice(at, at + 1) for at in range(half, len(target)))):
        y = embedded[:, chunk]
        for layer, cache in zip(weights["decoder"], caches, strict=True):
            y = y + attention_with_cache(p, normalised(p, y, layer, "self_attention_norm"), layer, n_heads, cache)
            y, _ = attended_memory(p, y, memory, layer, n_heads, source_mask)
            y = y + fed_forward(p, normalised(p, y, layer, "feed_forward_norm"), layer)
        rows.append(_log_probs(p, y, weights))
    return np.concatenate(rows)


def _log_probs(p: Parts, y: np.ndarray, weights: Mapping[str, Any]) -> np.ndarray:
    """Log-probabilities (T, W) from the decoder's output, 1 T D."""
    logits = p.layer_norm(y, *weights["decoder_norm"])[0] @ weights["embedding"].T
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.log(p.softmax(logits, -1))
    return found


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
            x = x + fed_forward_with_gelu(p, normalised(p, x, layer, "feed_forward_norm"), layer)
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
        x = x + fed_forward_with_gelu(p, normalised(p, x, layer, "feed_forward_norm"), layer)
    return np.stack(found)
