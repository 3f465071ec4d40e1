"""An ensemble of translators: the mean of their probabilities at each step. It teaches the smaller bundled model."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.models import Transformer


class Ensemble:
    """Models with the same vocabulary as one model with `begin` and `config`, as beam search needs them."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self.models = models
        self.config = models[0].config

    def begin(self, source: Any = None, *, source_mask: Any = None) -> "EnsembleDecoding":
        """Begin the decoding of every model on the source."""
        return EnsembleDecoding([model.begin(source, source_mask=source_mask) for model in self.models])


class EnsembleDecoding:
    """The decodings of all models, advanced together."""

    def __init__(self, decodings: Sequence[Any]) -> None:
        self.decodings = decodings

    @property
    def vocab_size(self) -> int:
        return int(self.decodings[0].vocab_size)

    @property
    def max_len(self) -> int | None:
        limit: int | None = self.decodings[0].max_len
        return limit

    @property
    def length(self) -> int:
        return int(self.decodings[0].length)

    def step(self, ids: Any, keep: Any = None) -> Tensor:
        """The log of the mean probability of every id, (B, W)."""
        found = torch.stack([decoding.step(ids, keep).log_softmax(-1) for decoding in self.decodings])
        return found.logsumexp(0) - math.log(len(self.decodings))

    def select(self, rows: list[int]) -> None:
        for decoding in self.decodings:
            decoding.select(rows)

    def crop(self, length: int) -> None:
        for decoding in self.decodings:
            decoding.crop(length)
