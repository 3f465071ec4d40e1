"""What is made small: cross-entropy, its targets smoothed, and where asked for the disagreement of two passes.

Sums, never means: whoever has several micro-batches or processes divides once, by the number of all targets.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.training.batches import IGNORED

Forward = Callable[..., Tensor]
"""forward(model, **inputs) → logits (B, T, W). The only thing that training asks of a model."""


class Objective(nn.Module):
    """A model and what is asked of it: forward(inputs, targets) is the sum of the losses of all targets.

    smoothing   the share of probability that the target gives to all tokens alike (Szegedy et al. 2016)
    agreement   R-Drop's α (Wu et al. 2021): every row is read twice, under different dropout; what the two make of it
                may differ, by the mean of both Kullback–Leibler divergences, only at this price
    """

    def __init__(
        self, model: nn.Module, forward: Forward, *, smoothing: float = 0.0, agreement: float | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.predict = forward
        self.smoothing, self.agreement = smoothing, agreement

    def forward(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        if self.agreement is None:
            return cross_entropy(self.predict(self.model, **inputs), targets, self.smoothing)
        twice = {name: torch.cat([each, each]) for name, each in inputs.items()}
        logits = self.predict(self.model, **twice).float()
        loss = cross_entropy(logits, torch.cat([targets, targets]), self.smoothing) / 2
        one, other = logits.chunk(2)
        return loss + self.agreement * disagreement(one, other, targets) / 2


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """−Σ log p(target), over all targets that are not IGNORED; in float32 whatever the logits are."""
    options: dict[str, Any] = {"ignore_index": IGNORED, "label_smoothing": smoothing, "reduction": "sum"}
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), **options)


def disagreement(one: Tensor, other: Tensor, targets: Tensor) -> Tensor:
    """(KL(p‖q) + KL(q‖p)) / 2, summed over the targets; 0 where both give the same."""
    log_p, log_q = one.log_softmax(-1), other.log_softmax(-1)
    both = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)  # B T: the two divergences added
    return (both * (targets != IGNORED)).sum() / 2
