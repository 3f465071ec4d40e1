"""The whole Transformer in NumPy: the definition of what a config and its weights compute.

`Transformer` reads a whole text at once; `Decoding` continues one token by token from cached keys and values. The
parts are in `reference.blocks`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.arrays import Array, to_numpy
from regard.config import TransformerConfig
from regard.config.inputs import check_capacity, check_crop, check_decodes, check_samples, check_sides, checked_rows
from regard.config.transformer import Side
from regard.config.weights import check_weight_names, check_weights
from regard.errors import ArgumentError, DtypeError
from regard.masks import Mask
from regard.messages import Listed
from regard.records import Attend, Kind
from regard.reference.attention import scaled_dot_product_attention
from regard.reference.blocks import (
    Cache,
    KeysAndValues,
    Network,
    Observer,
    Span,
    embed,
    keys_and_values,
    logits_of,
    stack,
)
from regard.reference.inputs import (
    checked_ids,
    checked_mask,
    checked_positions,
    checked_segments,
    kept_keys,
    padding_after,
)


class Transformer:
    """A config and its weights, with the names and shapes of `config.weights`. Weights are checked, not copied.

    >>> from regard.config.weights import weight_shapes
    >>> config = TransformerConfig.gpt2(n_layers=1, d_model=8, n_heads=2, d_ff=16, vocab_size=10)
    >>> model = Transformer(config, {name: np.ones(shape) for name, shape in weight_shapes(config).items()})
    >>> model(np.array([[3, 1, 4]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: TransformerConfig, weights: Mapping[str, Array], attend: Attend | None = None) -> None:
        check_weight_names(weights, config)
        self.config = config
        self.weights = {name: w if isinstance(w, np.ndarray) else to_numpy(w) for name, w in weights.items()}
        self.attend: Attend = default_attend if attend is None else attend
        check_weights({name: weight.shape for name, weight in self.weights.items()}, config)
        dtypes = sorted({str(weight.dtype) for weight in self.weights.values()})
        if len(dtypes) != 1 or dtypes[0] not in ("float16", "float32", "float64"):
            raise DtypeError("weights-dtype", found=Listed(dtypes))

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(
        self,
        ids: Any,
        source: Any = None,
        *,
        mask: Any = None,
        source_mask: Any = None,
        segments: Any = None,
        positions: Any = None,
        attend: Attend | None = None,
        observer: Observer | None = None,
    ) -> np.ndarray:
        """Logits (B, T, W) for ids (B, T); vectors (B, T, D) if the config has no output layer.

        source        (B, S), the encoder's input in an encoder-decoder model
        mask          visible ids, in addition to the model's own mask; a Mask or booleans
        source_mask   visible source tokens, for the encoder and for cross-attention
        segments      (B, T), the segment of each token; default 0
        positions     (T,) or (B, T); default 0 … T − 1
        observer      called with the name and the output of every part
        """
        net = self._network(attend, observer)
        return logits_of(net, self._vectors(net, ids, source, mask, source_mask, segments, positions))

    @np.errstate(over="ignore", invalid="ignore")
    def vectors(self, ids: Any, *, mask: Any = None, attend: Attend | None = None) -> np.ndarray:
        """What the output layer reads, (B, T, D), for ids (B, T); `mask` as for a call."""
        return self._vectors(self._network(attend), ids, mask=mask)

    def _vectors(
        self,
        net: Network,
        ids: Any,
        source: Any = None,
        mask: Any = None,
        source_mask: Any = None,
        segments: Any = None,
        positions: Any = None,
    ) -> np.ndarray:
        config = self.config
        ids, source = self._checked_inputs(ids, source, source_mask)
        segments, at = checked_segments(segments, ids, config), checked_positions(positions, ids, config)
        mask = checked_mask(mask, ids, config)
        source_mask = None if source is None else checked_mask(source_mask, source, config, ids)
        memory = {} if source is None else encode_source(net, source, source_mask)
        side: Side = "encoder" if config.kind == "encoder" else "decoder"
        span = Span(side=side, positions=at, keys=at, mask=mask, memory=memory, memory_mask=source_mask)
        return stack(net, span, embed(net, ids, segments))

    @np.errstate(over="ignore", invalid="ignore")
    def encode(self, ids: Any, *, segments: Any = None, mask: Any = None, attend: Attend | None = None) -> np.ndarray:
        """The encoder's output (B, S, D) for ids (B, S); for the source in an encoder-decoder model."""
        config = self.config
        if config.n_encoder_layers is None:
            raise ArgumentError("no-encoder")
        is_source = config.kind == "encoder-decoder"
        rows = config.embeddings.source_vocab_size if is_source else None
        ids = checked_ids("source" if is_source else "ids", ids, config, rows)
        segments, at = checked_segments(segments, ids, config), np.arange(ids.shape[1])
        net = self._network(attend)
        span = Span(side="encoder", positions=at, keys=at, mask=checked_mask(mask, ids, config))
        return stack(net, span, embed(net, ids, segments, source=is_source))

    @np.errstate(over="ignore", invalid="ignore")
    def begin(self, source: Any = None, *, source_mask: Any = None, attend: Attend | None = None) -> "Decoding":
        """Start decoding: encode the source now, read ids step by step.

        >>> from regard.config.weights import weight_shapes
        >>> config = TransformerConfig.llama(n_layers=1, d_model=8, n_heads=2, n_kv_heads=1, d_ff=16, vocab_size=10)
        >>> model = Transformer(config, {name: np.ones(shape) for name, shape in weight_shapes(config).items()})
        >>> decoding = model.begin()
        >>> decoding.step([[3, 1, 4]]).shape, decoding.step([[1]]).shape, decoding.length
        ((1, 10), (1, 10), 4)
        """
        check_decodes(self.config)
        _, source = self._checked_inputs(None, source, source_mask)
        net = self._network(attend)
        if source is None:
            return Decoding(net)
        mask = checked_mask(source_mask, source, self.config)
        keep = None if mask is None else kept_keys(mask, source)
        return Decoding(net, encode_source(net, source, mask), keep)

    def _network(self, attend: Attend | None, observer: Observer | None = None) -> Network:
        return Network(self.config, self.weights, self.attend if attend is None else attend, observer)

    def _checked_inputs(self, ids: Any, source: Any, source_mask: Any) -> tuple[Any, np.ndarray | None]:
        """ids and source as arrays of valid ids with the same number of samples."""
        config = self.config
        check_sides(config, source, source_mask)
        ids = None if ids is None else checked_ids("ids", ids, config)
        if source is None:
            return ids, None
        source = checked_ids("source", source, config, config.embeddings.source_vocab_size)
        if ids is not None:
            check_samples("source", len(source), len(ids))
        return ids, source


def encode_source(net: Network, source: np.ndarray, mask: Mask | None) -> dict[str, KeysAndValues]:
    """The encoder's output for the source, as keys and values of every cross-attention of the decoder, by its name."""
    at = np.arange(source.shape[1])
    encoded = stack(net, Span(side="encoder", positions=at, keys=at, mask=mask), embed(net, source, source=True))
    names = [f"decoder.layers.{i}.cross_attention" for i in range(net.config.n_decoder_layers or 0)]
    return {name: keys_and_values(net, name, encoded) for name in names}


def default_attend(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    name: str = "attention",
    kind: Kind = "self",
    mask: Mask | np.ndarray | None = None,
    bias: np.ndarray | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> np.ndarray:
    """`scaled_dot_product_attention` with the signature that a model calls: no recording, no dropout."""
    assert not dropout
    return scaled_dot_product_attention(q, k, v, mask, bias, scale, softcap)[0]


class Decoding:
    """Decoding of B texts with cached keys and values. Created by `Transformer.begin`.

    memory        the encoder's keys and values for each cross-attention, by its name
    memory_keep   which of these are not padding, (B, S)
    """

    def __init__(
        self, net: Network, memory: dict[str, KeysAndValues] | None = None, memory_keep: np.ndarray | None = None
    ) -> None:
        self._net = net
        self._memory, self._memory_keep = memory or {}, memory_keep
        self._initial_memory = self._memory, memory_keep
        self._samples = self._initial_samples = next((len(k) for k, _ in self._memory.values()), None)
        self._source_rows = np.arange(self._samples or 0)
        """The source that each sample attends to, (B,)."""
        self._padding: np.ndarray | None = None
        """The number of padding columns before each text, (B,); None if there are none."""
        layers = range(net.config.n_decoder_layers or 0)
        self._caches = {f"decoder.layers.{i}.self_attention": Cache() for i in layers}
        self.length = 0
        """The number of columns read so far."""

    @property
    def vocab_size(self) -> int:
        """W, the number of tokens in the vocabulary."""
        assert self._net.config.vocab_size is not None  # checked by `begin`
        return self._net.config.vocab_size

    @property
    def max_len(self) -> int | None:
        """The maximum number of columns; None for no limit."""
        return self._net.config.max_len

    @np.errstate(over="ignore", invalid="ignore")
    def step(self, ids: Any, keep: Any = None) -> np.ndarray:
        """Read ids (B, T); return the logits after the last one, (B, W).

        keep (B, T) is False for padding before a text. Padding is masked, and positions do not count it.
        """
        return logits_of(self._net, self._read(ids, keep)[:, -1])

    @np.errstate(over="ignore", invalid="ignore")
    def step_each(self, ids: Any) -> np.ndarray:
        """Read ids (B, T) without padding; return the logits after each of them, (B, T, W)."""
        return logits_of(self._net, self._read(ids, None))

    def _read(self, ids: Any, keep: Any) -> np.ndarray:
        """Read ids (B, T); return the last layer's vectors, (B, T, D)."""
        ids = checked_ids("ids", ids, self._net.config)
        check_capacity(self.length + ids.shape[1], self.max_len)
        if self._samples is not None:
            check_samples("ids", len(ids), self._samples)
        padding = self._padding
        if keep is not None:
            padding = padding_after(keep, ids.shape, self.length, padding)
        for cache in self._caches.values():
            cache.crop(self.length)  # an interrupted step may have left columns behind
        columns = np.arange(self.length + ids.shape[1])
        keys = columns if padding is None else np.maximum(columns - padding[:, None], 0)  # padding gets 0; it is masked
        span = Span(
            side="decoder",
            positions=keys[..., self.length :],
            keys=keys,
            keep=None if padding is None else columns >= padding[:, None],
            caches=self._caches,
            memory=self._memory,
            memory_mask=None if self._memory_keep is None else Mask.from_keep(self._memory_keep),
        )
        x = stack(self._net, span, embed(self._net, ids))
        if self.length == 0:
            self._initial_samples = len(ids)
        self.length, self._samples, self._padding = len(columns), len(ids), padding
        return x

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these samples in this order; rows may repeat or be left out."""
        rows = checked_rows(rows, self._samples)
        for cache in self._caches.values():
            cache.select(rows)
        if self._memory and (source_rows := self._source_rows[rows]).tolist() != self._source_rows.tolist():
            # Beams of one source may be reordered without a copy: each still attends to the same source.
            self._source_rows = source_rows
            self._memory = {name: (k[rows], v[rows]) for name, (k, v) in self._memory.items()}
            self._memory_keep = None if self._memory_keep is None else self._memory_keep[rows]
        self._padding = None if self._padding is None else self._padding[rows]
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on; `crop(0)` also undoes `select`."""
        check_crop(length, self.length)
        for cache in self._caches.values():
            cache.crop(length)
        self._padding = None if self._padding is None else np.minimum(self._padding, length)
        self.length = length
        if length == 0:
            self._restart()

    def _restart(self) -> None:
        """Restore the initial number of samples, each with its own source."""
        self._memory, self._memory_keep = self._initial_memory
        self._source_rows = np.arange(self._initial_samples or 0)
        if self._samples != self._initial_samples:
            self._padding = None
            self._samples = self._initial_samples if self._memory else None
