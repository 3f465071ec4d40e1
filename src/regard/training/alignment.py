"""A loss on the attention weights of one head, which trains it to attend to the words that a row's target translates.

Independent of the architecture: the head is named by its layer and number, and its weights come from the `attend`
argument of the model's forward.
"""

from typing import Any

import torch
from torch import Tensor

from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.functional.attention import attention_scores, attention_weights
from regard.messages import Listed
from regard.records import Kind

ALIGNMENT = "alignment"
"""The input of a batch that holds the wanted weights, (B, T, S): rows sum to 1, or are 0 where nothing is wanted."""


class HeadWeights:
    """An Attend that computes what the model's own does, and keeps one head's weights (B, T, S) with gradients.

    The weights are computed a second time, by eager operations for this head alone: they branch on no value, so that a
    training step with them can be captured as a CUDA graph.
    """

    def __init__(self, layer: str, head: int) -> None:
        self.layer, self.head = layer, head
        self.names: list[str] = []
        self._weights: Tensor | None = None

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, name: str, kind: Kind, **options: Any) -> Tensor:
        self.names.append(name)
        if name == self.layer:
            if self.head >= q.shape[1]:
                raise ArgumentError("alignment-head", layer=name, head=self.head, last=q.shape[1] - 1)
            self._weights = self._of_head(q, k, **options)
        return attend_in_model(q, k, v, name=name, kind=kind, **options)

    def _of_head(self, q: Tensor, k: Tensor, *, mask: Any = None, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The weights of the head, before dropout: those which the loss is about."""
        one, group = slice(self.head, self.head + 1), self.head * k.shape[1] // q.shape[1]
        if bias is not None and bias.ndim == 4 and bias.shape[1] > 1:
            bias = bias[:, one]
        scores = attention_scores(
            q[:, one], k[:, group : group + 1], mask, bias, options.get("scale"), options.get("softcap")
        )
        return attention_weights(scores)[:, 0]

    @property
    def weights(self) -> Tensor:
        """The weights of the last forward pass. Raises ArgumentError if the model has no such layer."""
        if self._weights is None:
            raise ArgumentError("alignment-layer", layer=self.layer, names=Listed(dict.fromkeys(self.names)))
        return self._weights


def alignment_loss(weights: Tensor, wanted: Tensor) -> Tensor:
    """−Σ wanted · log weights over all rows (Garg et al. 2019, section 3.2), for both (B, T, S).

    >>> alignment_loss(torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[1.0, 0.0]]])).item() == torch.tensor(2.0).log()
    tensor(True)
    """
    least = torch.finfo(weights.dtype).tiny  # a weight of 0 has no finite logarithm
    return -(wanted.to(weights.dtype) * weights.clamp_min(least).log()).sum()
