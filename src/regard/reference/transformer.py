"""The whole Transformer in NumPy: the definition of what a config and its weights mean.

`Decoding` continues a text token by token from cached keys and values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.arrays import Array, to_numpy
from regard.config import TransformerConfig
from regard.config.inputs import check_crop, check_decodes, check_room, check_samples, check_sides, checked_rows
from regard.config.transformer import Side
from regard.config.weights import check_weight_names, check_weights
from regard.errors import DtypeError
from regard.masks import Mask
from regard.messages import Listed
from regard.records import Attend, Kind
from regard.reference.attention import scaled_dot_product_attention
from regard.reference.blocks import Run, Span, Tell, embed, keys_and_values, logits_of, stack
from regard.reference.cache import Cache, KeysAndValues
from regard.reference.inputs import given_ids, given_mask, given_positions, given_segments, kept_keys, padding_after


class Decoding:
    """B texts at once, each as far as it was read. `Transformer.begin` makes one.

    memory        the encoder's keys and values for each cross-attention, by its name
    memory_keep   which of these are no padding, (B, S)
    """

    def __init__(
        self, run: Run, memory: dict[str, KeysAndValues] | None = None, memory_keep: np.ndarray | None = None
    ) -> None:
        self._run = run
        self._memory, self._memory_keep = memory or {}, memory_keep
        self._beginning = self._memory, memory_keep
        self._samples = self._samples_at_first = next((len(k) for k, _ in self._memory.values()), None)
        self._origins = np.arange(self._samples or 0)
        """Which source each sample reads, (B,)."""
        self._padding: np.ndarray | None = None
        """How many columns before each text are padding, (B,); None while there is none."""
        layers = range(run.config.n_decoder_layers or 0)
        self._caches = {f"decoder.layers.{i}.self_attention": Cache() for i in layers}
        self.length = 0
        """How many columns were read."""

    @property
    def vocab_size(self) -> int:
        """W, how many tokens there are to choose from."""
        assert self._run.config.vocab_size is not None  # `begin` sees to it
        return self._run.config.vocab_size

    @property
    def max_len(self) -> int | None:
        """How many columns can be read; None for no end."""
        return self._run.config.max_len

    @np.errstate(over="ignore", invalid="ignore")
    def step(self, ids: Any, keep: Any = None) -> np.ndarray:
        """Read ids (B, T) and give the logits after the last of them, (B, W).

        keep (B, T) is False for padding, which stands before a text: nobody looks there, and positions do not count it.
        """
        ids = given_ids("ids", ids, self._run.config)
        check_room(self.length + ids.shape[1], self.max_len)
        if self._samples is not None:
            check_samples("ids", len(ids), self._samples)
        padding = self._padding
        if keep is not None:
            padding = padding_after(keep, ids.shape, self.length, padding)
        for cache in self._caches.values():
            cache.crop(self.length)  # a step that was interrupted may have left columns behind
        columns = np.arange(self.length + ids.shape[1])
        keys = columns if padding is None else np.maximum(columns - padding[:, None], 0)  # padding gets 0, unseen
        span = Span(
            side="decoder",
            positions=keys[..., self.length :],
            keys=keys,
            keep=None if padding is None else columns >= padding[:, None],
            caches=self._caches,
            memory=self._memory,
            memory_mask=None if self._memory_keep is None else Mask.from_keep(self._memory_keep),
        )
        x = stack(self._run, span, embed(self._run, ids))
        if self.length == 0:
            self._samples_at_first = len(ids)
        self.length, self._samples, self._padding = len(columns), len(ids), padding
        return logits_of(self._run, x[:, -1])

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these samples in this order: some repeated, some dropped."""
        rows = checked_rows(rows, self._samples)
        for cache in self._caches.values():
            cache.select(rows)
        if self._memory and (origins := self._origins[rows]).tolist() != self._origins.tolist():
            # Beams of one source that change places look at the same as before: nothing to copy.
            self._origins = origins
            self._memory = {name: (k[rows], v[rows]) for name, (k, v) in self._memory.items()}
            self._memory_keep = None if self._memory_keep is None else self._memory_keep[rows]
        self._padding = None if self._padding is None else self._padding[rows]
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Forget what was read after `length` columns; with all of it, what samples were selected."""
        check_crop(length, self.length)
        for cache in self._caches.values():
            cache.crop(length)
        self._padding = None if self._padding is None else np.minimum(self._padding, length)
        self.length = length
        if length == 0:
            self._restart()

    def _restart(self) -> None:
        """As many samples as there were at first, each with its own source."""
        self._memory, self._memory_keep = self._beginning
        self._origins = np.arange(self._samples_at_first or 0)
        if self._samples != self._samples_at_first:
            self._padding = None
            self._samples = self._samples_at_first if self._memory else None


class Transformer:
    """A config and its weights, by the names and shapes of `config.weights`; checked once, used as they lie.

    >>> from regard.config.weights import weight_shapes
    >>> config = TransformerConfig.gpt2(n_layers=1, d_model=8, n_heads=2, d_ff=16, vocab_size=10)
    >>> model = Transformer(config, {name: np.ones(shape) for name, shape in weight_shapes(config).items()})
    >>> model(np.array([[3, 1, 4]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: TransformerConfig, weights: Mapping[str, Array], attend: Attend | None = None) -> None:
        check_weight_names(weights, config)
        self.config = config
        self.weights = {name: to_numpy(weight) for name, weight in weights.items()}
        self.attend: Attend = attend_by_definition if attend is None else attend
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
        tell: Tell | None = None,
    ) -> np.ndarray:
        """Logits (B, T, W) for ids (B, T); vectors (B, T, D) where the config has no output.

        source        (B, S), read by the encoder where there is a decoder too
        mask          who may look where among ids, beside what the model itself allows; a Mask or booleans
        source_mask   the same among the source, and for the decoder that looks at it
        segments      (B, T), which kind of sentence each token belongs to; 0 unless told
        positions     (T,) or (B, T); 0 … T − 1 unless told
        tell          told the name and the value of everything on the way
        """
        config = self.config
        ids, source = self._sides(ids, source, source_mask)
        segments, at = given_segments(segments, ids, config), given_positions(positions, ids, config)
        mask = given_mask(mask, ids, config)
        source_mask = None if source is None else given_mask(source_mask, source, config, ids)
        run = self._run(attend, tell)
        memory = {} if source is None else remember(run, source, source_mask)
        side: Side = "encoder" if config.kind == "encoder" else "decoder"
        span = Span(side=side, positions=at, keys=at, mask=mask, memory=memory, memory_mask=source_mask)
        return logits_of(run, stack(run, span, embed(run, ids, segments)))

    @np.errstate(over="ignore", invalid="ignore")
    def begin(self, source: Any = None, *, source_mask: Any = None, attend: Attend | None = None) -> Decoding:
        """Start to write: the source is read now, ids follow step by step.

        >>> from regard.config.weights import weight_shapes
        >>> config = TransformerConfig.llama(n_layers=1, d_model=8, n_heads=2, n_kv_heads=1, d_ff=16, vocab_size=10)
        >>> model = Transformer(config, {name: np.ones(shape) for name, shape in weight_shapes(config).items()})
        >>> decoding = model.begin()
        >>> decoding.step([[3, 1, 4]]).shape, decoding.step([[1]]).shape, decoding.length
        ((1, 10), (1, 10), 4)
        """
        check_decodes(self.config)
        _, source = self._sides(None, source, source_mask)
        run = self._run(attend)
        if source is None:
            return Decoding(run)
        mask = given_mask(source_mask, source, self.config)
        keep = None if mask is None else kept_keys(mask, source)
        return Decoding(run, remember(run, source, mask), keep)

    def _run(self, attend: Attend | None, tell: Tell | None = None) -> Run:
        return Run(self.config, self.weights, self.attend if attend is None else attend, tell)

    def _sides(self, ids: Any, source: Any, source_mask: Any) -> tuple[Any, np.ndarray | None]:
        """ids and source as arrays of known ids, if they go together."""
        config = self.config
        check_sides(config, source, source_mask)
        ids = None if ids is None else given_ids("ids", ids, config)
        if source is None:
            return ids, None
        source = given_ids("source", source, config, config.embeddings.source_vocab_size)
        if ids is not None:
            check_samples("source", len(source), len(ids))
        return ids, source


def remember(run: Run, source: np.ndarray, mask: Mask | None) -> dict[str, KeysAndValues]:
    """The source through the encoder, as keys and values for every cross-attention of the decoder, by its name."""
    at = np.arange(source.shape[1])
    encoded = stack(run, Span(side="encoder", positions=at, keys=at, mask=mask), embed(run, source, source=True))
    names = [f"decoder.layers.{i}.cross_attention" for i in range(run.config.n_decoder_layers or 0)]
    return {name: keys_and_values(run, name, encoded) for name in names}


def attend_by_definition(
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
    """`scaled_dot_product_attention` as a model calls it: nobody looks, and nothing is dropped."""
    assert not dropout
    return scaled_dot_product_attention(q, k, v, mask, bias, scale, softcap)[0]
