"""Decoding: a model in the middle of a text. What it has read is remembered; each step reads what is new.

`generation` drives it and knows only token ids. Nothing here is differentiable.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.config import inputs
from regard.dispatch import attend_within
from regard.errors import ArgumentError
from regard.kinds import is_tensor
from regard.layers.span import GrowingPast, Past, StaticPast
from regard.masks import Mask
from regard.models.inputs import check_ids, check_keep
from regard.models.steps import quick
from regard.records import Attend

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


class Decoding:
    """Reads ids, any number at a time, and says what may come next.

    source, source_mask   what the encoder reads, (B, S), and which of it is padding: `Mask.padding(source, pad=0)`
    cache                 "growing" takes any length; "static" has room for `max_len` columns from the start and does
                          every step in the same memory
    compile               one-token steps are compiled (static cache only); on a GPU also captured as one graph

    >>> from regard.config import TransformerConfig
    >>> from regard.models import Transformer
    >>> model = Transformer(TransformerConfig.gpt2(vocab_size=10, d_model=8, n_heads=2, d_ff=16, n_layers=1)).eval()
    >>> decoding = model.begin()
    >>> decoding.step([[1, 2, 3]]).shape, decoding.step([[4]]).shape, decoding.length
    (torch.Size([1, 10]), torch.Size([1, 10]), 4)
    """

    def __init__(
        self,
        model: "Transformer",
        source: Any = None,
        *,
        source_mask: Any = None,
        cache: Literal["growing", "static"] = "growing",
        max_len: int | None = None,
        compile: bool = False,
        attend: Attend = attend_within,
    ) -> None:
        inputs.check_decodes(model.config)
        if model.training and (model.config.dropout or model.config.attention.dropout):
            raise ArgumentError("decoding-training")
        limits = [limit for limit in (model.config.max_len, max_len) if limit is not None]
        self.max_len = min(limits, default=None)
        self.length = 0
        self._model, self._attend, self._compile = model, attend, compile
        self._device = next(model.parameters()).device
        self._samples: int | None = None
        self._past = self._new_past(cache)
        self._memory: Tensor | None = None
        self._memory_keep: Tensor | None = None  # B 1 1 S
        self._encode(source, source_mask)
        self._one_token = quick(self._read, self._device) if compile else self._read

    @property
    def vocab_size(self) -> int:
        """How many logits a step gives."""
        assert self._model.config.vocab_size is not None
        return self._model.config.vocab_size

    @torch.no_grad()
    def step(self, ids: Any, keep: Any = None) -> Tensor:
        """Logits (B, W) after the last of ids (B, T); `keep` (B, T) is False for padding, which must come first."""
        ids = self._tensor(ids)
        keep = None if keep is None else self._tensor(keep)
        check_ids(self._model.config, ids)
        check_keep(keep, ids)
        if self._samples is not None:
            inputs.check_samples("ids", ids.shape[0], self._samples)
        inputs.check_room(self.length + ids.shape[1], self.max_len)
        try:
            logits = self._one_token(ids) if ids.shape[1] == 1 and keep is None else self._read(ids, keep)
        except BaseException:  # stopped half-way: some layers have read what others have not
            self._past.crop(self.length)
            raise
        self._samples, self.length = ids.shape[0], self.length + ids.shape[1]
        return logits

    def _read(self, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        model = self._model
        assert model.decoder is not None
        span = self._past.span(ids, keep)
        x = model.decoder(model.embed(ids), span, self._memory, self._memory_keep, self._attend)
        return model.scores(x[:, -1])

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these samples, in this order: reorder, repeat or drop them."""
        samples = self._samples
        inputs.check_rows(rows, samples or 0)
        index = torch.as_tensor(rows, device=self._device)
        self._past.select(index)
        self._samples = len(index)
        if self._memory is not None:
            self._memory = self._memory[index]
        if self._memory_keep is not None:
            self._memory_keep = self._memory_keep[index]
        if self._compile and self._samples != samples:  # other shapes, other memory
            self._one_token = quick(self._read, self._device)

    def crop(self, length: int) -> None:
        """Forget what was read after the first `length` columns."""
        inputs.check_crop(length, self.length)
        self._past.crop(length)
        self.length = length

    def _new_past(self, cache: str) -> Past:
        assert self._model.decoder is not None
        n_layers = len(self._model.decoder.layers)
        if cache == "static":
            if self.max_len is None:
                raise ArgumentError("static-without-length")
            return StaticPast(n_layers, self.max_len)
        if cache != "growing":
            raise ArgumentError("unknown-choice", name="cache", value=cache, choices="growing, static")
        if self._compile:
            raise ArgumentError("compile-growing")
        return GrowingPast(n_layers)

    @torch.no_grad()
    def _encode(self, source: Any, source_mask: Any) -> None:
        model = self._model
        source = None if source is None else self._tensor(source)
        inputs.check_sides(model.config, None, None if source is None else tuple(source.shape), source_mask is not None)
        if source is None:
            return
        self._samples = source.shape[0]
        x = model.embed(source, source=True)
        mask = None if source_mask is None else Mask.of(source_mask)
        if mask is not None:
            self._memory_keep = _kept_keys(mask, x)
        self._memory = model.encode(x, mask=mask, attend=self._attend)

    def _tensor(self, x: Any) -> Tensor:
        return x.to(self._device) if is_tensor(x) else torch.as_tensor(np.asarray(x), device=self._device)


def _kept_keys(mask: Mask, x: Tensor) -> Tensor:
    """A mask that is alike for all queries as B 1 1 S, which can be reordered; ArgumentError where it is not."""
    B, S, _ = x.shape
    seen = mask.bind((B, 1), S, S, x).block(slice(0, S), slice(0, S))
    if isinstance(seen, bool):
        return torch.full((B, 1, 1, S), seen, device=x.device)
    if seen.shape[-2] != 1:
        raise ArgumentError("source-mask-keys", mask=mask.name)
    return seen.expand(B, 1, 1, S)
