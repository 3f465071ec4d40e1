"""The blocks of a Transformer in NumPy: embedding, attention, feed-forward, residual and norm, stack, output."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from regard.config import GATES, Alibi, Learned, Relative, Rotary, Sinusoidal, TransformerConfig
from regard.config.transformer import Side, bent_by
from regard.masks import Mask
from regard.records import Attend, Kind
from regard.reference.cache import Cache, KeysAndValues
from regard.reference.heads import linear, merge_heads, split_heads
from regard.reference.norms import layer_norm, rms_norm
from regard.reference.position_wise import activation_called
from regard.reference.positions import (
    Turns,
    alibi_bias_at,
    learned_at,
    relative_bias_at,
    rotary_turns,
    sinusoidal_at,
    turn,
)

Tell = Callable[[str, np.ndarray], None]
"""Told what each part gave, under the part's name."""


@dataclass(frozen=True, slots=True)
class Run:
    """A model at work: what it is, its weights by name, who computes attention, and who is told of every part."""

    config: TransformerConfig
    weights: Mapping[str, np.ndarray]
    attend: Attend
    tell: Tell | None = None

    def told(self, name: str, x: np.ndarray) -> np.ndarray:
        """x, after whoever wants to know has seen it."""
        if self.tell is not None:
            self.tell(name, x)
        return x

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        """x Wᵀ + b for the weights of that name, which lie as in `nn.Linear`."""
        rows = x.reshape(-1, x.shape[-1])  # one product for all samples: W is read once
        y = linear(rows, self.weights[f"{name}.weight"].T, self.weights.get(f"{name}.bias"))
        return self.told(name, y.reshape(*x.shape[:-1], y.shape[-1]))  # -1 could not be told where there are no samples

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        """The norm of that name."""
        weight, eps = self.weights[f"{name}.weight"], self.config.norm.eps
        if self.config.norm.kind == "rms":
            return self.told(name, rms_norm(x, weight, eps))
        return self.told(name, layer_norm(x, weight, self.weights.get(f"{name}.bias"), eps))

    def bend(self, x: np.ndarray) -> np.ndarray:
        """The activation; of a gated feed-forward, the one inside."""
        return activation_called(bent_by(self.config.activation)).forward(x)


@dataclass(frozen=True, slots=True)
class Span:
    """The T columns that one pass of a stack reads, and what there is for them to look at.

    positions     where the tokens stand in their text, (T,) or (B, T); padding before a text does not count
    keys          where the keys stand, (S,) or (B, S): those that a cache holds, then the T columns themselves
    mask          who may look where, beside what the stack itself allows
    keep          which keys are no padding, (B, S)
    caches        of each self-attention, by its name; none where a text is read at once
    memory        the encoder's keys and values for each cross-attention, by its name
    memory_mask   who may look at these
    """

    side: Side
    positions: np.ndarray
    keys: np.ndarray
    mask: Mask | None = None
    keep: np.ndarray | None = None
    caches: Mapping[str, Cache] = field(default_factory=dict)
    memory: Mapping[str, KeysAndValues] = field(default_factory=dict)
    memory_mask: Mask | None = None

    def allowed(self, window: int | None) -> Mask | None:
        """Who may look where in a layer with that window: a decoder's tokens only at what came before."""
        seen = self.mask
        if self.side == "decoder":
            seen = _both(Mask.window(None if window is None else window - 1, 0), seen)
        elif window is not None:
            seen = _both(Mask.window(window - 1, window - 1), seen)
        return seen if self.keep is None else _both(Mask.from_keep(self.keep), seen)


@dataclass(frozen=True, slots=True)
class Where:
    """Positions as attention takes them: turns of q and k, or a bias (1 or B, H, T, S) of the scores."""

    turns: Turns | None = None
    bias: np.ndarray | None = None


def stack(run: Run, span: Span, x: np.ndarray) -> np.ndarray:
    """x (B, T, D) through positions, layers and the last norm."""
    config, side = run.config, span.side
    x = add_positions(run, span, x)
    if config.embeddings.norm:
        x = run.norm(f"{side}.input_norm", x)
    where = attention_positions(run, span, like=x)
    for i in range(config.layers_of(side)):
        x = block(run, span, where, i, x)
    return run.norm(f"{side}.norm", x) if config.norm.final else x


def block(run: Run, span: Span, where: Where, i: int, x: np.ndarray) -> np.ndarray:
    """Self-attention, attention to the encoder's output where there is one, feed-forward; each added to x."""
    name = f"{span.side}.layers.{i}"
    window = run.config.attention.window_of(i)
    own, cross, forward = (f"{name}.{part}" for part in ("self_attention", "cross_attention", "feed_forward"))
    x = residual(run, own, x, lambda x: self_attention(run, span, where, window, own, x))
    if cross in span.memory:
        x = residual(run, cross, x, lambda x: cross_attention(run, span, cross, x))
    x = residual(run, forward, x, lambda x: feed_forward(run, forward, x))
    return run.told(name, x)


def residual(run: Run, name: str, x: np.ndarray, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """x + f(norm(x)), today's way ("pre"), or norm(x + f(x)), the paper's ("post")."""
    if run.config.norm.place == "pre":
        return run.told(f"{name}_residual", x + f(run.norm(f"{name}_norm", x)))
    return run.norm(f"{name}_norm", run.told(f"{name}_residual", x + f(x)))


def feed_forward(run: Run, name: str, x: np.ndarray) -> np.ndarray:
    """Widened, bent, narrowed again; where there is a gate, it is bent and opens for the rest."""
    if run.config.activation in GATES:
        hidden = run.bend(run.linear(f"{name}.gate", x)) * run.linear(f"{name}.up", x)  # B T F
    else:
        hidden = run.bend(run.linear(f"{name}.up", x))
    return run.told(name, run.linear(f"{name}.down", run.told(f"{name}.activation", hidden)))


def self_attention(run: Run, span: Span, where: Where, window: int | None, name: str, x: np.ndarray) -> np.ndarray:
    """Each token looks at the tokens of its own text."""
    q, (k, v) = queries(run, name, x), keys_and_values(run, name, x)
    if where.turns is not None:
        assert isinstance(run.config.positions, Rotary)
        q, k = (turn(part, where.turns, run.config.positions.pairing) for part in (q, k))
    if name in span.caches:
        k, v = span.caches[name].extended(k, v)
    return attention(run, name, span.side, (q, k, v), span.allowed(window), where.bias)


def cross_attention(run: Run, span: Span, name: str, x: np.ndarray) -> np.ndarray:
    """Each token of the decoder looks at what the encoder made of the source."""
    return attention(run, name, "cross", (queries(run, name, x), *span.memory[name]), span.memory_mask)


def attention(
    run: Run,
    name: str,
    kind: Kind,
    qkv: tuple[np.ndarray, np.ndarray, np.ndarray],
    mask: Mask | None,
    bias: np.ndarray | None = None,
) -> np.ndarray:
    """Concat(head₁ … head_H) W_o, each head by `attend`; q B H T E, k and v B G S E."""
    for letter, part in zip("qkv", qkv, strict=True):
        run.told(f"{name}.{letter}", part)
    style = run.config.attention
    heads = run.attend(*qkv, name=name, kind=kind, mask=mask, bias=bias, scale=style.scale, softcap=style.softcap)
    return run.told(name, run.linear(f"{name}.o_proj", merge_heads(run.told(f"{name}.heads", heads))))


def queries(run: Run, name: str, x: np.ndarray) -> np.ndarray:
    """B H T E."""
    q = split_heads(run.linear(f"{name}.q_proj", x), run.config.n_heads)
    return run.norm(f"{name}.q_norm", q) if run.config.attention.qk_norm else q


def keys_and_values(run: Run, name: str, x: np.ndarray) -> KeysAndValues:
    """B G S E twice."""
    k, v = (split_heads(run.linear(f"{name}.{part}_proj", x), run.config.key_value_heads) for part in "kv")
    return run.norm(f"{name}.k_norm", k) if run.config.attention.qk_norm else k, v


def add_positions(run: Run, span: Span, x: np.ndarray) -> np.ndarray:
    """x with the positions that are added to it, if they are of that kind."""
    match run.config.positions:
        case Sinusoidal(base=base, pairing=pairing):
            x = x + sinusoidal_at(span.positions, x.shape[-1], base, pairing, like=x)
        case Learned():
            x = x + learned_at(run.weights[f"{span.side}.positions.table"], span.positions)
    return run.told(f"{span.side}.positions", x)


def attention_positions(run: Run, span: Span, like: np.ndarray) -> Where:
    """The positions that attention takes, computed once for all layers."""
    config = run.config
    match config.positions:
        case Rotary(base=base, scaling=scaling):
            at = span.positions if span.positions.ndim == 1 else span.positions[:, None]  # B 1 T: alike for all heads
            return Where(turns=rotary_turns(at, config.head_width, base, scaling, like=like))
        case Alibi():
            bias = alibi_bias_at(config.n_heads, span.positions, span.keys, like=like)
        case Relative(max_distance=furthest):
            table = run.weights[f"{span.side}.positions.table"]
            bias = relative_bias_at(table, span.positions, span.keys, furthest, bidirectional=span.side == "encoder")
        case _:
            return Where()
    return Where(bias=bias if bias.ndim == 4 else bias[None])


def _both(one: Mask, other: Mask | None) -> Mask:
    return one if other is None else one & other


def embed(run: Run, ids: np.ndarray, segments: np.ndarray | None = None, source: bool = False) -> np.ndarray:
    """A row of the vocabulary's table for each id, (B, T, D); vectors stay what they are."""
    config, weights = run.config, run.weights
    own = source and config.embeddings.source_vocab_size is not None
    if config.vocab_size is None:
        x = ids.astype(next(iter(weights.values())).dtype)
    else:
        x = weights["source_embedding.weight" if own else "embedding.weight"][ids]
    if config.embeddings.scaled:
        x = x * math.sqrt(config.d_model)  # Python's float: NumPy's own would turn float32 into float64
    if config.embeddings.n_segments is not None:
        x = x + weights["segment_embedding.weight"][0 if segments is None else segments]
    return run.told("source_embedding" if source else "embedding", x)


def logits_of(run: Run, x: np.ndarray) -> np.ndarray:
    """x (B, T, D) compared with each token's vector, (B, T, W); x itself where the config has no output."""
    output, weights = run.config.output, run.weights
    if output is None:
        return x
    if output.transform:
        x = run.norm("output.transform_norm", run.bend(run.linear("output.transform", x)))
    if output.scaled:
        x = x / math.sqrt(run.config.d_model)
    rows = x.reshape(-1, x.shape[-1]) @ weights["embedding.weight" if output.tied else "output.weight"].T
    if run.config.biases.output:
        rows = rows + weights["output.bias"]
    return run.told("logits", rows.reshape(*x.shape[:-1], rows.shape[-1]))
