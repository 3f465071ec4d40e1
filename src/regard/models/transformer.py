"""Transformer: one model for the 2017 paper, BERT, GPT-2 and Llama. Its config says which.

From the parts to the whole: initial weights, the layers that a config selects, one block, a stack of blocks, the model.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.checkpoints import read_model, save_model
from regard.config import Alibi, Learned, Relative, Rotary, Sinusoidal, TransformerConfig, inputs
from regard.config.transformer import Side, bent_by
from regard.dispatch import attend_within
from regard.errors import ArgumentError
from regard.functional.position_wise import activation_called
from regard.layers import (
    AlibiPositions,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    MultiHeadAttention,
    NoPositions,
    OutputLayer,
    RelativePositions,
    RMSNorm,
    RotaryPositions,
    SinusoidalPositions,
    TokenEmbedding,
)
from regard.layers.attention import Turn
from regard.layers.cache import UNCACHED, KeysAndValues, LayerCache
from regard.layers.embeddings import SPREAD
from regard.masks import Mask
from regard.models.decoding import Decoding, begun
from regard.models.inputs import given_ids, given_positions, given_segments
from regard.models.span import Span, whole
from regard.records import Attend, Kind


def initialise(model: "Transformer") -> None:
    """Pre-norm as GPT-2, whose last projection of each sub-layer is smaller the more of them add up; post-norm Xavier.

    Under pre-norm a sum of n sub-layers would otherwise grow like √n; under post-norm each sum is normed at once.
    """
    pre_norm = model.config.norm.place == "pre"
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if pre_norm:
                nn.init.normal_(module.weight, std=SPREAD)
            else:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding) and module.factor is not None:
            nn.init.normal_(module.weight, std=1 / module.factor)  # × √d_model follows
    for stack in (model.encoder, model.decoder) if pre_norm else ():
        last = (
            []
            if stack is None
            else [
                weight
                for name, weight in stack.named_parameters()
                if name.endswith(("o_proj.weight", "feed_forward.down.weight"))
            ]
        )
        for weight in last:
            nn.init.normal_(weight, std=SPREAD / math.sqrt(len(last)))


def attention_of(config: TransformerConfig, name: str, kind: Kind) -> MultiHeadAttention:
    """Self- or cross-attention."""
    style = config.attention
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.d_head,
        bias=config.biases.attention,
        output_bias=config.biases.attention_output,
        norm=partial(norm_of, config) if style.qk_norm else None,
        scale=style.scale,
        softcap=style.softcap,
        dropout=style.dropout,
        name=name,
        kind=kind,
    )


def feed_forward_of(config: TransformerConfig) -> FeedForward:
    """Plain or gated."""
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        bias=config.biases.feed_forward,
        dropout=config.dropout,
    )


def norm_of(config: TransformerConfig, width: int | None = None) -> LayerNorm | RMSNorm:
    """LayerNorm or RMSNorm, over the model's width unless told another."""
    width, eps = config.d_model if width is None else width, config.norm.eps
    return RMSNorm(width, eps) if config.norm.kind == "rms" else LayerNorm(width, eps, config.biases.norm)


def positions_of(config: TransformerConfig, *, bidirectional: bool) -> NoPositions:
    """For an encoder, which looks both ways, or a decoder."""
    match config.positions:
        case Sinusoidal(base=base, pairing=pairing):
            return SinusoidalPositions(config.d_model, base, pairing)
        case Learned():
            assert config.max_len is not None  # the config sees to it
            return LearnedPositions(config.max_len, config.d_model)
        case Rotary(base=base, pairing=pairing, scaling=scaling):
            return RotaryPositions(config.head_width, base, pairing, scaling)
        case Alibi():
            return AlibiPositions(config.n_heads)
        case Relative(n_buckets=n_buckets, max_distance=max_distance):
            return RelativePositions(config.n_heads, n_buckets, max_distance, bidirectional)
    return NoPositions()


def output_of(config: TransformerConfig) -> OutputLayer | None:
    """The layer that scores the vocabulary; None where vectors are what comes out."""
    if config.output is None or config.vocab_size is None:
        return None
    activation = activation_called(bent_by(config.activation))
    return OutputLayer(
        config.vocab_size,
        config.d_model,
        tied=config.output.tied,
        scaled=config.output.scaled,
        bias=config.biases.output,
        transform=(activation, norm_of(config)) if config.output.transform else None,
    )


class Block(nn.Module):
    """x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm), for each f of self-attention, cross-attention, FFN.

    An encoder's block has no cross-attention; neither has a decoder's where there is no encoder.

    >>> import torch
    >>> block = Block(TransformerConfig.gpt2(d_model=8, n_heads=2, d_ff=16), kind="decoder")
    >>> block(torch.zeros(1, 3, 8), mask=Mask.causal()).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig, *, kind: Kind = "self", cross: bool = False) -> None:
        super().__init__()
        self.pre_norm = config.norm.place == "pre"
        self.self_attention = attention_of(config, "self_attention", kind)
        self.self_attention_norm = norm_of(config)
        self.cross_attention = attention_of(config, "cross_attention", "cross") if cross else None
        self.cross_attention_norm = norm_of(config) if cross else None
        self.feed_forward = feed_forward_of(config)
        self.feed_forward_norm = norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysAndValues | None = None,
        *,
        mask: Mask | Tensor | None = None,
        memory_mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        turn: Turn | None = None,
        cache: LayerCache = UNCACHED,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D); `memory` (B, S, D) is what the encoder made of the source, or the keys and values of that."""
        if (memory is None) != (self.cross_attention is None):
            raise ArgumentError("memory-missing" if memory is None else "memory-unneeded")
        look = partial(self.self_attention, mask=mask, bias=bias, turn=turn, cache=cache, attend=attend)
        x = self._residual(x, self.self_attention_norm, look)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            look = partial(self.cross_attention, memory=memory, mask=memory_mask, attend=attend)
            x = self._residual(x, self.cross_attention_norm, look)
        return self._residual(x, self.feed_forward_norm, self.feed_forward)

    def _residual(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return x + self._dropped(part(norm(x)))
        return norm(x + self._dropped(part(x)))

    def _dropped(self, x: Tensor) -> Tensor:
        return self.dropout(x) if self.training else x  # a module that does nothing still costs a call


class Stack(nn.Module):
    """The left or the right half of the drawing in the 2017 paper (figure 1), without embeddings and output layer."""

    def __init__(self, config: TransformerConfig, side: Side) -> None:
        super().__init__()
        n_layers = config.layers_of(side)
        cross = side == "decoder" and config.kind == "encoder-decoder"
        self.windows = [config.attention.window_of(i) for i in range(n_layers)]
        self.positions = positions_of(config, bidirectional=side == "encoder")
        self.input_norm = norm_of(config) if config.embeddings.norm else nn.Identity()
        self.dropout = nn.Dropout(0.0 if config.vocab_size is None else config.dropout)  # it is for embeddings
        self.layers = nn.ModuleList(Block(config, kind=side, cross=cross) for _ in range(n_layers))
        self.norm = norm_of(config) if config.norm.final else nn.Identity()

    def forward(
        self,
        x: Tensor,
        span: Span,
        memory: Tensor | Sequence[KeysAndValues] | None = None,
        memory_mask: Mask | Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D), the T columns of `span`.

        memory   what the encoder made of the source, (B, S, D), or each layer's keys and values of that
        """
        x = self.dropout(self.input_norm(self.positions.added(x, span.positions)))
        turn = self.positions.turn(span.positions, like=x)
        bias = self.positions.bias(span.positions, span.keys, like=x)
        masks = {window: span.allowed(window) for window in self.windows}
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                memory if memory is None or isinstance(memory, Tensor) else memory[i],
                mask=masks[self.windows[i]],
                memory_mask=memory_mask,
                bias=bias,
                turn=turn,
                cache=span.caches[i],
                attend=attend,
            )
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder, decoder or both, as `config` says.

    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_layers=2))
    >>> model(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if not isinstance(config, TransformerConfig):
            raise ArgumentError("config-kind", name="config", found=type(config).__name__, choices="TransformerConfig")
        self.config = config
        D, tables = config.d_model, config.embeddings

        def embedding(rows: int | None, scaled: bool = tables.scaled) -> TokenEmbedding | None:
            return None if rows is None else TokenEmbedding(rows, D, scaled)

        self.embedding = embedding(config.vocab_size)
        self.source_embedding = embedding(tables.source_vocab_size)
        self.segment_embedding = embedding(tables.n_segments, scaled=False)
        self.encoder = None if config.n_encoder_layers is None else Stack(config, "encoder")
        self.decoder = None if config.n_decoder_layers is None else Stack(config, "decoder")
        self.output = output_of(config)
        for name, module in self.named_modules():
            if isinstance(module, MultiHeadAttention):
                module.name = name  # a Record is called what its weights are called
        initialise(self)

    def forward(
        self,
        ids: Tensor,
        source: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """Logits (B, T, W) for ids (B, T); of an encoder-decoder for ids that continue, given `source` (B, S).

        mask          who may look where among the ids, beside what the model itself forbids
        source_mask   the same among the source, and for the decoder that looks at it
        segments      which kind of sentence each id belongs to, (B, T), where the model tells them apart
        positions     where the ids stand, (T,) or (B, T); None for 0 … T − 1
        attend        who computes: a `regard.trace.Looking` also records where it looked

        Without a vocabulary, ids and source are vectors (B, T, D), and vectors come back. Ids outside the vocabulary
        are told where looking at values costs nothing: on the CPU, outside of a traced graph.
        """
        inputs.check_sides(self.config, source, source_mask)
        if self.decoder is None:
            return self.logits(self.encode(ids, segments=segments, mask=mask, positions=positions, attend=attend))
        memory = None if source is None else self.encode(source, mask=source_mask, attend=attend)
        x = self.embed(ids, segments)
        if memory is not None:
            inputs.check_samples("source", len(memory), len(x))
        positions = given_positions(self.config, positions, x)
        span = whole(x, len(self.decoder.layers), causal=True, mask=mask, positions=positions)
        return self.logits(self.decoder(x, span, memory, source_mask, attend))

    def embed(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """Ids (B, T) as vectors (B, T, D); vectors as they are where the model has no vocabulary."""
        ids = given_ids(self.config, ids, source=source, like=next(self.parameters()))
        return self.vectors(ids, given_segments(self.config, segments, ids), source=source)

    def vectors(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """What `embed` gives, of ids that have been looked at."""
        table = self.source_embedding if source and self.source_embedding is not None else self.embedding
        x = ids if table is None else table(ids)
        if self.segment_embedding is None:
            return x
        return x + self.segment_embedding(torch.zeros_like(ids) if segments is None else segments)

    def encode(
        self,
        ids: Tensor,
        *,
        segments: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_within,
    ) -> Tensor:
        """What the encoder makes of ids (B, S), or of the source where there is a decoder too: vectors (B, S, D)."""
        if self.encoder is None:
            raise ArgumentError("no-encoder")
        x = self.embed(ids, segments, source=self.decoder is not None)
        positions = given_positions(self.config, positions, x)
        span = whole(x, len(self.encoder.layers), causal=False, mask=mask, positions=positions)
        return self.encoder(x, span, attend=attend)

    def logits(self, x: Tensor) -> Tensor:
        """How well each token goes with vectors (…, D), (…, W); the vectors where the model has no output layer."""
        return x if self.output is None or self.embedding is None else self.output(x, self.embedding.weight)

    def begin(
        self,
        source: Any = None,
        *,
        source_mask: Any = None,
        cache: Literal["growing", "static"] = "growing",
        max_len: int | None = None,
        compile: bool = False,
        attend: Attend = attend_within,
    ) -> Decoding:
        """A text to be read and continued step by step, as `generation` does.

        source, source_mask   what the encoder reads, (B, S), and which of it is padding: `Mask.padding(source, pad=0)`
        cache                 "growing" takes any length; "static" has room for `max_len` columns from the start and
                              does every step in the same memory
        max_len               how many columns there may be, at most the model's own limit, which it is unless told
        compile               one-token steps are compiled (static cache only); on a GPU also captured as one graph

        Raises ArgumentError where the model cannot write, and in training mode, where dropout would.
        """
        return begun(
            self, source, source_mask=source_mask, cache=cache, max_len=max_len, compile=compile, attend=attend
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors, which `read`, and NumPy through `checkpoints.read_model`, read."""
        save_model(folder, self.config, self.state_dict())

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Transformer":
        """The model that `save` wrote, ready to be used: on the CPU, in evaluation mode."""
        stored = read_model(folder)
        with torch.device("meta"):  # no memory is filled with numbers that are replaced at once
            model = cls(stored.config)
        dtypes = {name: getattr(torch, dtype) for name, dtype in stored.tensors.dtypes.items()}
        arrays = stored.tensors.arrays()  # NumPy has no bfloat16 and gives float32
        model.load_state_dict({n: torch.from_numpy(x).to(dtypes[n]) for n, x in arrays.items()}, assign=True)
        return model.eval()
