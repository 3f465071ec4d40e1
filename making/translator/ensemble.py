"""Several translators that answer as one: at each step the mean of their probabilities. Too large to bring along, they
teach the one that is brought along.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.models import Transformer


class Ensemble:
    """Models of one vocabulary, with the `begin` and `config` that beam search asks of a model."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self.models = models
        self.config = models[0].config

    def begin(self, source: Any = None, *, source_mask: Any = None) -> "Together":
        """Every model begins on the source."""
        return Together([model.begin(source, source_mask=source_mask) for model in self.models])


class Together:
    """Decodings that take each step together."""

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
        """The logarithm of the mean probability of every id, (B, W)."""
        found = torch.stack([decoding.step(ids, keep).log_softmax(-1) for decoding in self.decodings])
        return found.logsumexp(0) - math.log(len(self.decodings))

    def select(self, rows: list[int]) -> None:
        for decoding in self.decodings:
            decoding.select(rows)

    def crop(self, length: int) -> None:
        for decoding in self.decodings:
            decoding.crop(length)
