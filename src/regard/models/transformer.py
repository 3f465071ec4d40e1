"""Transformer: one model for the 2017 paper, BERT, GPT-2 and Llama. Its config selects the parts.

From the whole to the parts: the model, a stack of blocks, one block, the layers of a config. Stored weights become its
tensors one after the other: never a second copy of the model in memory.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.checkpoints import Stored, read_model, save_model
from regard.checkpoints.hub_folder import HubWeights
from regard.checkpoints.tensor_file import Weights, widened
from regard.config import Alibi, Learned, Relative, Rotary, Sinusoidal, TransformerConfig, inputs
from regard.config.transformer import Side, inner_activation
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.functional.position_wise import get_activation
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
from regard.layers.attention import NO_CACHE, KeysAndValues, LayerCache, Rotate
from regard.layers.position_wise import INITIAL_STD
from regard.masks import Mask
from regard.models.cpu_decoding import float_weights, round_weights, rounded_names, rounded_tensor
from regard.models.decoding import Decoding, start_decoding
from regard.models.inputs import Span, checked_ids, checked_positions, checked_segments, full_span
from regard.records import Attend, Kind


def stored_tensors(
    weights: Weights | HubWeights,
    dtype: str | None = None,
    *,
    mapped: bool = False,
    rounded: frozenset[str] = frozenset(),
) -> dict[str, Tensor]:
    """Each weight by name, contiguous.

    dtype    of all weights, such as "float32"; by default each has the one in which it is stored
    mapped   a weight that needs no conversion is not copied: its part of the file is read on access. The file must not
             be changed in place while the model is used; changing the weight does not change the file
    rounded  the names of matrices that become 8-bit integers
    """
    dtypes, found = weights.dtypes, dict[str, Tensor]()
    for name in weights:
        raw = weights.raw(name)
        tensor = _as_tensor(raw, getattr(torch, dtype or dtypes[name])).contiguous()
        is_copy = tensor.data_ptr() != raw.ctypes.data
        if name in rounded:
            found |= rounded_tensor(name, tensor.float())
            weights.release(name)
            continue
        if not (is_copy or mapped):
            tensor, is_copy = tensor.clone(), True
        if is_copy:
            weights.release(name)
        found[name] = tensor
    return found


def _as_tensor(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """The array as a tensor of that dtype; bfloat16 is given as uint16."""
    if array.dtype == np.uint16:
        if dtype == torch.float32:
            return torch.from_numpy(widened(array))  # by one thread as fast as by several of torch
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(dtype)
    if not array.flags.writeable:  # torch has no read-only tensors
        array = array.copy()
    return torch.from_numpy(array).to(dtype)


Part = Callable[[Tensor], Tensor]


class Transformer(nn.Module):
    """An encoder, a decoder or both, as `config` says.

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
            return None if rows is None else TokenEmbedding(rows, D, scaled, tables.rounded_scale)

        self.embedding = embedding(config.vocab_size)
        self.source_embedding = embedding(tables.source_vocab_size)
        self.segment_embedding = embedding(tables.n_segments, scaled=False)
        self.encoder = None if config.n_encoder_layers is None else Stack(config, "encoder")
        self.decoder = None if config.n_decoder_layers is None else Stack(config, "decoder")
        self.output = build_output(config)
        for name, module in self.named_modules():
            if isinstance(module, MultiHeadAttention):
                module.name = name  # a Record has the name of its weights
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
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """Logits (B, T, W) for ids (B, T); an encoder-decoder model also reads `source` (B, S).

        mask          visible ids, in addition to the model's own mask
        source_mask   visible source tokens, for the encoder and for cross-attention
        segments      the segment of each id, (B, T), if the model has segments
        positions     the position of each id, (T,) or (B, T); None for 0 … T − 1
        attend        the attention function: a `regard.trace.Recorder` also records the attention

        Without a vocabulary, ids and source are vectors (B, T, D), and the output is vectors. Ids outside the
        vocabulary are reported only where reading values is free: on the CPU, outside of a traced graph.
        """
        return self.logits(
            self.vectors(
                ids,
                source,
                mask=mask,
                source_mask=source_mask,
                segments=segments,
                positions=positions,
                attend=attend,
            )
        )

    def vectors(
        self,
        ids: Tensor,
        source: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """What the output layer reads, (B, T, D); the arguments are those of `forward`."""
        inputs.check_sides(self.config, source, source_mask)
        if self.decoder is None:
            return self.encode(ids, segments=segments, mask=mask, positions=positions, attend=attend)
        memory = None if source is None else self.encode(source, mask=source_mask, attend=attend)
        x = self.embed(ids, segments)
        if memory is not None:
            inputs.check_samples("source", len(memory), len(x))
        positions = checked_positions(self.config, positions, x)
        span = full_span(x, len(self.decoder.layers), causal=True, mask=mask, positions=positions)
        return self.decoder(x, span, memory, source_mask, attend)

    def embed(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """Ids (B, T) to vectors (B, T, D); without a vocabulary the input vectors."""
        ids = checked_ids(self.config, ids, source=source, like=next(self.parameters()))
        return self.embed_checked(ids, checked_segments(self.config, segments, ids), source=source)

    def embed_checked(self, ids: Tensor, segments: Tensor | None = None, *, source: bool = False) -> Tensor:
        """The same as `embed`, for ids that are already checked."""
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
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """The encoder's output (B, S, D) for ids (B, S); for the source in an encoder-decoder model."""
        if self.encoder is None:
            raise ArgumentError("no-encoder")
        x = self.embed(ids, segments, source=self.decoder is not None)
        positions = checked_positions(self.config, positions, x)
        span = full_span(x, len(self.encoder.layers), causal=False, mask=mask, positions=positions)
        return self.encoder(x, span, attend=attend)

    def logits(self, x: Tensor) -> Tensor:
        """Vectors (…, D) to logits (…, W); the vectors themselves if the model has no output layer."""
        return x if self.output is None or self.embedding is None else self.output(x, self.embedding.weight)

    def begin(
        self,
        source: Any = None,
        *,
        source_mask: Any = None,
        cache: Literal["growing", "static"] = "growing",
        max_len: int | None = None,
        compile: bool = False,
        attend: Attend = attend_in_model,
    ) -> Decoding:
        """Start decoding: read a text and continue it step by step, as `generation` does.

        source, source_mask   the encoder's input, (B, S), and its padding: `Mask.padding(source, pad=0)`
        cache                 "growing" takes any length; "static" allocates `max_len` columns at once and runs every
                              step in the same memory
        max_len               the maximum number of columns; default and upper limit: the model's max_len
        compile               compile one-token steps (static cache only); on a GPU also capture them as a CUDA graph

        Raises ArgumentError if the model cannot generate, and in training mode with dropout.
        """
        return start_decoding(
            self, source, source_mask=source_mask, cache=cache, max_len=max_len, compile=compile, attend=attend
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write config.json and model.safetensors; load them with `read`, or in NumPy `checkpoints.read_model`.

        A model with 8-bit weights is stored in 8 bits.
        """
        save_model(folder, self.config, float_weights(self), int8=bool(rounded_names(self)))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "Transformer":
        """The model that `save` wrote, on the CPU, in evaluation mode."""
        return cls.of_stored(read_model(folder))

    @classmethod
    def of_stored(
        cls, stored: Stored, dtype: str | None = None, *, mapped: bool = False, int8: bool = False
    ) -> "Transformer":
        """The model of a folder that is already opened, in evaluation mode.

        dtype, mapped   as for `stored_tensors`
        int8            large matrices as 8-bit integers (`round_weights`), each rounded while it is read
        """
        with torch.device("meta"):  # no initial weights: they are replaced at once
            model = cls(stored.config)
            if int8:
                round_weights(model)
        tensors = stored_tensors(stored.tensors, dtype, mapped=mapped, rounded=rounded_names(model))
        model.load_state_dict(tensors, assign=True)
        return model.eval()


class Stack(nn.Module):
    """The encoder or the decoder of figure 1 in the 2017 paper, without embeddings and output layer."""

    def __init__(self, config: TransformerConfig, side: Side) -> None:
        super().__init__()
        n_layers = config.layers_of(side)
        cross = side == "decoder" and config.kind == "encoder-decoder"
        self.windows = [config.attention.window_of(i) for i in range(n_layers)]
        self.positions = build_positions(config, bidirectional=side == "encoder")
        self.local_positions = build_local_positions(config)
        self.input_norm = build_norm(config) if config.embeddings.norm else nn.Identity()
        self.dropout = nn.Dropout(0.0 if config.vocab_size is None else config.dropout)  # it is for embeddings
        self.layers = nn.ModuleList(Block(config, kind=side, cross=cross) for _ in range(n_layers))
        self.norm = build_norm(config) if config.norm.final else nn.Identity()

    def forward(
        self,
        x: Tensor,
        span: Span,
        memory: Tensor | Sequence[KeysAndValues] | None = None,
        memory_mask: Mask | Tensor | None = None,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """x (B, T, D), the T columns of `span`, plus positions, through all blocks and the final norm.

        memory   the encoder's output, (B, S, D), or each layer's keys and values of it
        """
        x = self.dropout(self.input_norm(self.positions.add_to(x, span.positions)))
        rotate = self.positions.rotation(span.positions, like=x)
        local = self.local_positions
        rotate_local = rotate if local is None else local.rotation(span.positions, like=x)
        bias = self.positions.bias(span.positions, span.keys, like=x)
        masks = {window: span.layer_mask(window) for window in self.windows}
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                memory if memory is None or isinstance(memory, Tensor) else memory[i],
                mask=masks[self.windows[i]],
                memory_mask=memory_mask,
                bias=bias,
                rotate=rotate if self.windows[i] is None else rotate_local,
                cache=span.caches[i],
                attend=attend,
            )
        return self.norm(x)


class Block(nn.Module):
    """x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm), for f = self-attention, cross-attention, feed-forward.

    `Norm.place` names two more: norms before and after f, and all f of the same x. Only a decoder's block in an
    encoder-decoder model has cross-attention.

    >>> import torch
    >>> block = Block(TransformerConfig.gpt2(d_model=8, n_heads=2, d_ff=16), kind="decoder")
    >>> block(torch.zeros(1, 3, 8), mask=Mask.causal()).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig, *, kind: Kind = "self", cross: bool = False) -> None:
        super().__init__()
        self.place = config.norm.place
        both = self.place == "both"
        self.self_attention = build_attention(config, "self_attention", kind)
        self.self_attention_norm = build_norm(config)
        self.self_attention_output_norm = build_norm(config) if both else None
        self.cross_attention = build_attention(config, "cross_attention", "cross") if cross else None
        self.cross_attention_norm = build_norm(config) if cross else None
        self.cross_attention_output_norm = build_norm(config) if cross and both else None
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_norm = build_norm(config)
        self.feed_forward_output_norm = build_norm(config) if both else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysAndValues | None = None,
        *,
        mask: Mask | Tensor | None = None,
        memory_mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: LayerCache = NO_CACHE,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """x (B, T, D); `memory` (B, S, D) is the encoder's output, or the keys and values of it."""
        if (memory is None) != (self.cross_attention is None):
            raise ArgumentError("memory-missing" if memory is None else "memory-unneeded")
        attention = partial(self.self_attention, mask=mask, bias=bias, rotate=rotate, cache=cache, attend=attend)
        y = self._residual(x, x, attention, self.self_attention_norm, self.self_attention_output_norm)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            attention = partial(self.cross_attention, memory=memory, mask=memory_mask, attend=attend)
            y = self._residual(x, y, attention, self.cross_attention_norm, self.cross_attention_output_norm)
        return self._residual(x, y, self.feed_forward, self.feed_forward_norm, self.feed_forward_output_norm)

    def _residual(self, x: Tensor, y: Tensor, f: Part, norm: Part, output_norm: Part | None) -> Tensor:
        """y, the block's input x after the parts so far, plus the part f."""
        if self.place == "post":
            return norm(y + self._dropped(f(y)))
        added = f(norm(x if self.place == "parallel" else y))
        return y + self._dropped(added if output_norm is None else output_norm(added))

    def _dropped(self, x: Tensor) -> Tensor:
        return self.dropout(x) if self.training else x  # a module that does nothing still costs a call


# --- the layers that a config selects ------------------------------------------------------------------------


def build_attention(config: TransformerConfig, name: str, kind: Kind) -> MultiHeadAttention:
    """Self- or cross-attention."""
    style = config.attention
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.d_head,
        bias=config.biases.attention,
        output_bias=config.biases.attention_output,
        norm=partial(build_norm, config) if style.qk_norm else None,
        scale=style.scale,
        softcap=style.softcap,
        dropout=style.dropout,
        name=name,
        kind=kind,
    )


def build_feed_forward(config: TransformerConfig) -> FeedForward:
    """Plain or gated."""
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        bias=config.biases.feed_forward,
        dropout=config.dropout,
    )


def build_norm(config: TransformerConfig, width: int | None = None) -> LayerNorm | RMSNorm:
    """LayerNorm or RMSNorm; `width` defaults to d_model."""
    width, eps = config.d_model if width is None else width, config.norm.eps
    if config.norm.kind == "rms":
        return RMSNorm(width, eps, config.norm.plus_one)
    return LayerNorm(width, eps, config.biases.norm)


def build_positions(config: TransformerConfig, *, bidirectional: bool) -> NoPositions:
    """Positions of an encoder (bidirectional) or a decoder."""
    match config.positions:
        case Sinusoidal(base=base, pairing=pairing):
            return SinusoidalPositions(config.d_model, base, pairing)
        case Learned():
            assert config.max_len is not None  # checked by the config
            return LearnedPositions(config.max_len, config.d_model)
        case Rotary() as rotary:
            return build_rotary(rotary, config.head_width)
        case Alibi():
            return AlibiPositions(config.n_heads)
        case Relative(n_buckets=n_buckets, max_distance=max_distance):
            return RelativePositions(config.n_heads, n_buckets, max_distance, bidirectional)
    return NoPositions()


def build_local_positions(config: TransformerConfig) -> RotaryPositions | None:
    """Rotary positions of the layers that have a window; None if they are those of all layers."""
    if not isinstance(config.positions, Rotary) or config.positions.local_base is None:
        return None
    return build_rotary(config.positions.local, config.head_width)


def build_rotary(rotary: Rotary, d_head: int) -> RotaryPositions:
    """Rotary positions for heads of that width."""
    return RotaryPositions(d_head, rotary.base, rotary.pairing, rotary.scaling, rotary.width(d_head))


def build_output(config: TransformerConfig) -> OutputLayer | None:
    """The layer that computes logits; None for a model that returns vectors."""
    if config.output is None or config.vocab_size is None:
        return None
    activation = get_activation(inner_activation(config.activation))
    return OutputLayer(
        config.vocab_size,
        config.d_model,
        tied=config.output.tied,
        scaled=config.output.scaled,
        bias=config.biases.output,
        transform=(activation, build_norm(config)) if config.output.transform else None,
        softcap=config.output.softcap,
    )


def initialise(model: Transformer) -> None:
    """Post-norm: Xavier. Else: as GPT-2, with the last projection of each of n sub-layers scaled by 1/√n.

    Without post-norm the sum of n sub-layers would otherwise grow like √n; under post-norm each sum is normed.
    """
    if next(model.parameters()).is_meta:  # no memory, so no values: stored weights replace them
        return
    pre_norm = model.config.norm.place != "post"
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if pre_norm:
                nn.init.normal_(module.weight, std=INITIAL_STD)
            else:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding) and module.factor is not None:
            nn.init.normal_(module.weight, std=1 / module.factor)  # × √d_model follows
    for stack in (model.encoder, model.decoder) if pre_norm else ():
        names = ("o_proj.weight", "feed_forward.down.weight")
        last = [] if stack is None else [weight for name, weight in stack.named_parameters() if name.endswith(names)]
        for weight in last:
            nn.init.normal_(weight, std=INITIAL_STD / math.sqrt(len(last)))
