"""The parts of a Transformer in NumPy, in the order of the data: embedding, stack, block, attention, output.

Each part is a function of a Network (config and weights), a Span (the columns to read) and its input x.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from regard.config import GATES, Alibi, Learned, Relative, Rotary, Sinusoidal, TransformerConfig
from regard.config.transformer import Side, inner_activation
from regard.masks import Mask
from regard.records import Attend, Kind
from regard.reference.attention import computing_dtype, linear, merge_heads, split_heads
from regard.reference.norms import layer_norm, rms_norm
from regard.reference.position_wise import get_activation
from regard.reference.positions import (
    Rotations,
    alibi_bias_at,
    apply_rotations,
    learned_at,
    relative_bias_at,
    rotations_at,
    sinusoidal_at,
)

Observer = Callable[[str, np.ndarray], None]
"""Called with the name and the output of every part."""
KeysAndValues = tuple[np.ndarray, np.ndarray]
"""k and v, each B G S E."""


@dataclass(slots=True)
class Cache:
    """The key/value cache of one attention layer, so that each token of a text is read once.

    Its capacity doubles when it is full, so that copies are rare. It does not depend on masks or positions.

    >>> cache, column = Cache(), np.zeros((1, 1, 1, 4))
    >>> [cache.update(column, column)[0].shape[2] for _ in range(3)]
    [1, 2, 3]
    """

    length: int = 0
    _buffers: KeysAndValues | None = None

    def update(self, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        """Append the columns k, v; return all keys and values, as views."""
        stop = self.length + k.shape[2]
        buffers = self._with_capacity(stop, k, v)
        for buffer, newest in zip(buffers, (k, v), strict=True):
            buffer[:, :, self.length : stop] = newest
        self.length = stop
        return buffers[0][:, :, :stop], buffers[1][:, :, :stop]

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        self.length = length
        if length == 0:
            self._buffers = None  # the next input may have another number of samples

    def select(self, rows: list[int]) -> None:
        """Keep these samples in this order; rows may repeat."""
        if self._buffers is not None:
            self._buffers = (self._buffers[0][rows], self._buffers[1][rows])

    def _with_capacity(self, length: int, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        if self._buffers is None or length > self._buffers[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = tuple(np.empty((*x.shape[:2], size, x.shape[3]), x.dtype) for x in (k, v))
            if self._buffers is not None:
                for new, old in zip(grown, self._buffers, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._buffers = (grown[0], grown[1])
        return self._buffers


@dataclass(frozen=True, slots=True)
class Network:
    """A config, its weights by name, the function that computes attention, and an optional observer."""

    config: TransformerConfig
    weights: Mapping[str, np.ndarray]
    attend: Attend
    observer: Observer | None = None

    def observed(self, name: str, x: np.ndarray) -> np.ndarray:
        """Pass x to the observer under that name; return x."""
        if self.observer is not None:
            self.observer(name, x)
        return x

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        """x Wᵀ + b with the weights of that name, stored as in `nn.Linear`."""
        rows = x.reshape(-1, x.shape[-1])  # one product for all samples: W is read once
        y = linear(rows, self.weights[f"{name}.weight"].T, self.weights.get(f"{name}.bias"))
        return self.observed(name, y.reshape(*x.shape[:-1], y.shape[-1]))  # -1 is ambiguous for an empty batch

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        """LayerNorm or RMSNorm with the weights of that name."""
        weight, eps = self.weights[f"{name}.weight"], self.config.norm.eps
        if self.config.norm.kind == "rms":
            return self.observed(name, rms_norm(x, weight, eps, self.config.norm.plus_one))
        return self.observed(name, layer_norm(x, weight, self.weights.get(f"{name}.bias"), eps))

    def activate(self, x: np.ndarray) -> np.ndarray:
        """The activation function; of a gated feed-forward, the one of the gate."""
        return get_activation(inner_activation(self.config.activation)).forward(x)


@dataclass(frozen=True, slots=True)
class Span:
    """The T columns that one pass of a stack reads, and the keys they may attend to.

    positions     position of each token in its text, (T,) or (B, T); padding before a text does not count
    keys          position of each key, (S,) or (B, S): the cached ones, then the T columns themselves
    mask          visible keys, in addition to the mask of the stack itself
    keep          which keys are not padding, (B, S)
    caches        cache of each self-attention, by its name; empty if the whole text is read at once
    memory        the encoder's keys and values for each cross-attention, by its name
    memory_mask   which of these are visible
    """

    side: Side
    positions: np.ndarray
    keys: np.ndarray
    mask: Mask | None = None
    keep: np.ndarray | None = None
    caches: Mapping[str, Cache] = field(default_factory=dict)
    memory: Mapping[str, KeysAndValues] = field(default_factory=dict)
    memory_mask: Mask | None = None

    def layer_mask(self, window: int | None) -> Mask | None:
        """The mask of a layer with that window. In a decoder later tokens are masked."""
        mask = self.mask
        if self.side == "decoder":
            mask = _combined(Mask.window(None if window is None else window - 1, 0), mask)
        elif window is not None:
            mask = _combined(Mask.window(window - 1, window - 1), mask)
        return mask if self.keep is None else _combined(Mask.from_keep(self.keep), mask)


@dataclass(frozen=True, slots=True)
class AttentionPositions:
    """Positions that act inside attention: rotations of q and k, or a bias (1 or B, H, T, S) of the scores.

    local_rotations   the rotations of layers that have a window
    """

    rotations: Rotations | None = None
    bias: np.ndarray | None = None
    local_rotations: Rotations | None = None


def embed(net: Network, ids: np.ndarray, segments: np.ndarray | None = None, source: bool = False) -> np.ndarray:
    """One row of the embedding table for each id, (B, T, D); without a vocabulary the input vectors."""
    config, weights = net.config, net.weights
    own_table = source and config.embeddings.source_vocab_size is not None
    if config.vocab_size is None:
        x = ids.astype(next(iter(weights.values())).dtype)
    else:
        x = weights["source_embedding.weight" if own_table else "embedding.weight"][ids]
    if config.embeddings.scaled:
        # NumPy rounds a Python number to the dtype of x, as Gemma does; the 2017 paper's product is rounded once.
        wide = x if config.embeddings.rounded_scale else x.astype(computing_dtype(x), copy=False)
        x = (wide * math.sqrt(config.d_model)).astype(x.dtype, copy=False)
    if config.embeddings.n_segments is not None:
        x = x + weights["segment_embedding.weight"][0 if segments is None else segments]
    return net.observed("source_embedding" if source else "embedding", x)


def stack(net: Network, span: Span, x: np.ndarray) -> np.ndarray:
    """The encoder or the decoder: x (B, T, D) plus positions, through all blocks and the final norm."""
    config, side = net.config, span.side
    x = add_positions(net, span, x)
    if config.embeddings.norm:
        x = net.norm(f"{side}.input_norm", x)
    positions = attention_positions(net, span, like=x)
    for i in range(config.layers_of(side)):
        x = block(net, span, positions, i, x)
    return net.norm(f"{side}.norm", x) if config.norm.final else x


def block(net: Network, span: Span, positions: AttentionPositions, i: int, x: np.ndarray) -> np.ndarray:
    """Self-attention, cross-attention if there is an encoder, feed-forward; each with its residual connection."""
    name = f"{span.side}.layers.{i}"
    window = net.config.attention.window_of(i)
    own, cross, forward = (f"{name}.{part}" for part in ("self_attention", "cross_attention", "feed_forward"))
    y = residual(net, own, x, x, lambda x: self_attention(net, span, positions, window, own, x))
    if cross in span.memory:
        y = residual(net, cross, x, y, lambda x: cross_attention(net, span, cross, x))
    y = residual(net, forward, x, y, lambda x: feed_forward(net, forward, x))
    return net.observed(name, y)


def residual(
    net: Network, name: str, x: np.ndarray, y: np.ndarray, f: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The sum of the parts so far, y, and the part f; x is the input of the block.

    pre-norm: y + f(norm(y)); post-norm, the 2017 paper: norm(y + f(y)); before and after: y + norm(f(norm(y)));
    parallel: y + f(norm(x)).
    """
    place = net.config.norm.place
    if place == "post":
        return net.norm(f"{name}_norm", net.observed(f"{name}_residual", y + f(y)))
    added = f(net.norm(f"{name}_norm", x if place == "parallel" else y))
    if place == "both":
        added = net.norm(f"{name}_output_norm", added)
    return net.observed(f"{name}_residual", y + added)


def self_attention(
    net: Network, span: Span, positions: AttentionPositions, window: int | None, name: str, x: np.ndarray
) -> np.ndarray:
    """Each token attends to the visible tokens of its own text."""
    q, (k, v) = queries(net, name, x), keys_and_values(net, name, x)
    rotations = positions.rotations if window is None else positions.local_rotations
    if rotations is not None:
        q, k = rotated(net, rotations, q), rotated(net, rotations, k)
    if name in span.caches:
        k, v = span.caches[name].update(k, v)
    return attention(net, name, span.side, (q, k, v), span.layer_mask(window), positions.bias)


def rotated(net: Network, rotations: Rotations, x: np.ndarray) -> np.ndarray:
    """The first numbers of each head of q or k rotated, all of them unless the config says a fraction."""
    assert isinstance(net.config.positions, Rotary)
    width = net.config.positions.width(x.shape[-1])
    first = apply_rotations(x[..., :width], rotations, net.config.positions.pairing)
    return np.concatenate((first, x[..., width:]), axis=-1) if width < x.shape[-1] else first


def cross_attention(net: Network, span: Span, name: str, x: np.ndarray) -> np.ndarray:
    """Each token of the decoder attends to the encoder's output."""
    return attention(net, name, "cross", (queries(net, name, x), *span.memory[name]), span.memory_mask)


def attention(
    net: Network,
    name: str,
    kind: Kind,
    qkv: tuple[np.ndarray, np.ndarray, np.ndarray],
    mask: Mask | None,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """Concat(head₁ … head_H) W_o, each head by `net.attend`; q B H T E, k and v B G S E."""
    for letter, part in zip("qkv", qkv, strict=True):
        net.observed(f"{name}.{letter}", part)
    style = net.config.attention
    heads = net.attend(*qkv, name=name, kind=kind, mask=mask, bias=bias, scale=style.scale, softcap=style.softcap)
    return net.observed(name, net.linear(f"{name}.o_proj", merge_heads(net.observed(f"{name}.heads", heads))))


def queries(net: Network, name: str, x: np.ndarray) -> np.ndarray:
    """q, B H T E."""
    q = split_heads(net.linear(f"{name}.q_proj", x), net.config.n_heads)
    return net.norm(f"{name}.q_norm", q) if net.config.attention.qk_norm else q


def keys_and_values(net: Network, name: str, x: np.ndarray) -> KeysAndValues:
    """k and v, each B G S E."""
    n_heads = net.config.key_value_heads
    k, v = (split_heads(net.linear(f"{name}.{part}_proj", x), n_heads) for part in "kv")
    return net.norm(f"{name}.k_norm", k) if net.config.attention.qk_norm else k, v


def feed_forward(net: Network, name: str, x: np.ndarray) -> np.ndarray:
    """down(f(up(x))); gated: down(f(gate(x)) ∘ up(x))."""
    if net.config.activation in GATES:
        hidden = net.activate(net.linear(f"{name}.gate", x)) * net.linear(f"{name}.up", x)  # B T F
    else:
        hidden = net.activate(net.linear(f"{name}.up", x))
    return net.observed(name, net.linear(f"{name}.down", net.observed(f"{name}.activation", hidden)))


def add_positions(net: Network, span: Span, x: np.ndarray) -> np.ndarray:
    """x plus sinusoidal or learned positions; x itself with the other kinds."""
    match net.config.positions:
        case Sinusoidal(base=base, pairing=pairing):
            x = x + sinusoidal_at(span.positions, x.shape[-1], base, pairing, like=x)
        case Learned():
            x = x + learned_at(net.weights[f"{span.side}.positions.table"], span.positions)
    return net.observed(f"{span.side}.positions", x)


def attention_positions(net: Network, span: Span, like: np.ndarray) -> AttentionPositions:
    """Rotary, ALiBi or relative positions, computed once for all layers."""
    config = net.config
    match config.positions:
        case Rotary() as rotary:
            at = span.positions if span.positions.ndim == 1 else span.positions[:, None]  # B 1 T: the same in all heads
            width = rotary.width(config.head_width)
            everywhere, local = (
                rotations_at(at, width, one.base, one.scaling, like=like) for one in (rotary, rotary.local)
            )
            return AttentionPositions(rotations=everywhere, local_rotations=local)
        case Alibi():
            bias = alibi_bias_at(config.n_heads, span.positions, span.keys, like=like)
        case Relative(max_distance=furthest):
            table = net.weights[f"{span.side}.positions.table"]
            bias = relative_bias_at(table, span.positions, span.keys, furthest, bidirectional=span.side == "encoder")
        case _:
            return AttentionPositions()
    return AttentionPositions(bias=bias if bias.ndim == 4 else bias[None])


def logits_of(net: Network, x: np.ndarray) -> np.ndarray:
    """x (B, T, D) times each token's vector, (B, T, W); x itself if the config has no output layer."""
    output, weights = net.config.output, net.weights
    if output is None:
        return x
    if output.transform:
        x = net.norm("output.transform_norm", net.activate(net.linear("output.transform", x)))
    if output.scaled:
        x = x / math.sqrt(net.config.d_model)
    rows = x.reshape(-1, x.shape[-1]) @ weights["embedding.weight" if output.tied else "output.weight"].T
    if net.config.biases.output:
        rows = rows + weights["output.bias"]
    if output.softcap is not None:
        rows = np.tanh(rows / output.softcap) * output.softcap
    return net.observed("logits", rows.reshape(*x.shape[:-1], rows.shape[-1]))


def _combined(one: Mask, other: Mask | None) -> Mask:
    return one if other is None else one & other
