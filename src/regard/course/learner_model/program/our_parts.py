"""The sublayers of a model, and our own parts, each made of smaller ones, with the signatures of their exercises."""

import math
from collections.abc import Callable, Mapping
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


FUNCTIONS: dict[str, tuple[str, ...]] = {
    "softmax": ("softmax",),
    "scaled-dot-product": ("scaled_dot_product_attention",),
    "split-heads": ("split_heads",),
    "merge-heads": ("merge_heads",),
    "layer-norm": ("layer_norm",),
    "feed-forward": ("feed_forward",),
    "gelu-feed-forward": ("gelu_feed_forward",),
    "positional-encoding": ("positional_encoding",),
    "rope": ("rope",),
    "causal-mask": ("create_causal_mask",),
    "padding-mask": ("create_padding_mask",),
    "kv-cache": ("attend_with_cache",),
    "encoder-block": ("encoder_block",),
    "decoder-block": ("decoder_block",),
    "transformer-forward": ("transformer",),
    "beam-search": ("beam_search",),
    "sampling": ("next_probabilities", "pick"),
}
"""The functions of each part, by the id of its exercise."""
PART_OF = {function: part for part, functions in FUNCTIONS.items() for function in functions}
STAND_INS = ("layer_norm", "positional_encoding", "encoder_block", "decoder_block")
"""In the file of transformer-forward: the model's parts take their place."""


def softmax(p: "Parts", x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def scaled_dot_product_attention(
    p: "Parts", Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])  # … T S
    weights = p.softmax(scores if mask is None else np.where(mask, scores, -np.inf), -1)
    return weights @ V, weights


def split_heads(p: "Parts", x: np.ndarray, n_heads: int) -> np.ndarray:
    B, T, D = x.shape
    return x.reshape(B, T, n_heads, D // n_heads).transpose(0, 2, 1, 3)  # B H T E


def merge_heads(p: "Parts", x: np.ndarray) -> np.ndarray:
    B, H, T, E = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * E)


def layer_norm(p: "Parts", x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) + beta


def feed_forward(
    p: "Parts", x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray
) -> np.ndarray:
    return np.maximum(x @ W_1 + b_1, 0) @ W_2 + b_2


def gelu_feed_forward(
    p: "Parts", x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray
) -> np.ndarray:
    h = x @ W_1 + b_1
    return h / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))) @ W_2 + b_2


def positional_encoding(p: "Parts", length: int, d_model: int) -> np.ndarray:
    angle = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model)


def rope(p: "Parts", x: np.ndarray, positions: np.ndarray, base: float = 10000.0) -> np.ndarray:
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-2 * np.arange(d // 2) / d)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)


def create_causal_mask(p: "Parts", n: int) -> np.ndarray:
    return np.where(np.tri(n) > 0, 0.0, -np.inf)


def create_padding_mask(p: "Parts", seq: np.ndarray, pad_token: int = 0) -> np.ndarray:
    return np.where(seq == pad_token, -np.inf, 0.0)[:, None, :]


def attend_with_cache(p: "Parts", q: np.ndarray, k: np.ndarray, v: np.ndarray, cache: Any = None) -> tuple[Any, Any]:
    K, V = (k, v) if cache is None else (np.concatenate([cache[0], k]), np.concatenate([cache[1], v]))
    T, S = len(q), len(K)
    mask = np.arange(S) <= np.arange(S - T, S)[:, None]
    return p.scaled_dot_product_attention(q, K, V, mask)[0], (K, V)


def encoder_block(
    p: "Parts", x: np.ndarray, weights: Layer, n_heads: int, mask: np.ndarray | None = None
) -> np.ndarray:
    visible = None if mask is None else mask[:, None, None, :]  # B 1 1 S
    normed = normalised(p, x, weights, "self_attention_norm")
    x = x + attention(p, normed, normed, weights, "self_attention", n_heads, visible)[0]
    return x + fed_forward(p, normalised(p, x, weights, "feed_forward_norm"), weights)


def decoder_block(
    p: "Parts",
    x: np.ndarray,
    memory: np.ndarray,
    weights: Layer,
    n_heads: int,
    memory_mask: np.ndarray | None = None,
) -> np.ndarray:
    return decoder_block_with_weights(p, x, memory, weights, n_heads, memory_mask)[0]


def transformer(
    p: "Parts",
    source: np.ndarray,
    target: np.ndarray,
    weights: Mapping[str, Any],
    n_heads: int,
    source_mask: np.ndarray,
) -> np.ndarray:
    memory = embed(p, source, weights)
    for layer in weights["encoder"]:
        memory = p.encoder_block(memory, layer, n_heads, source_mask)
    memory = p.layer_norm(memory, *weights["encoder_norm"])
    y = embed(p, target, weights)
    for layer in weights["decoder"]:
        y = p.decoder_block(y, memory, layer, n_heads, source_mask)
    return p.layer_norm(y, *weights["decoder_norm"]) @ weights["embedding"].T


def beam_search(
    p: "Parts", log_probs: np.ndarray, start: int, eos: int, beams: int, max_len: int
) -> tuple[list[int], float]:
    kept = [([start], 0.0)]
    for _ in range(max_len):
        candidates = []
        for tokens, score in kept:
            if tokens[-1] == eos:
                candidates.append((tokens, score))
            else:
                row = log_probs[tokens[-1]].tolist()
                candidates += [([*tokens, token], score + step) for token, step in enumerate(row)]
        kept = sorted(candidates, key=lambda beam: -beam[1])[:beams]
    return kept[0]


def next_probabilities(
    p: "Parts", logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    probabilities = p.softmax(logits / temperature, -1)
    order = np.argsort(-probabilities)
    descending = probabilities[order]
    if top_k is not None:
        descending[top_k:] = 0
    if top_p is not None:
        descending = descending / descending.sum()
        descending[np.cumsum(descending) - descending >= top_p] = 0
    kept = np.zeros_like(probabilities)
    kept[order] = descending
    return kept / kept.sum()


def pick(p: "Parts", probabilities: np.ndarray, u: float) -> int:
    ends = np.cumsum(probabilities)
    # A wrong softmax may give NaN or negative numbers: the text is then nonsense, as it should be.
    return min(int(np.searchsorted(ends, u * ends[-1], side="right")), len(ends) - 1)


OURS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in PART_OF}
