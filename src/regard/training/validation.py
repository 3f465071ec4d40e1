"""The loss on text that was not trained on: plain cross-entropy, a mean over all targets of all processes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from regard.training.batches import Data
from regard.training.feed import part_of
from regard.training.objective import Forward, cross_entropy
from regard.training.ranks import Ranks


@torch.no_grad()
def validation_loss(
    model: nn.Module, forward: Forward, data: Data, ranks: Ranks, autocast: Callable[[], AbstractContextManager[Any]]
) -> float:
    """Nats per target, without smoothing and without dropout."""
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=ranks.device)
    n_targets = 0
    for index in range(data.batches_per_epoch):
        part = part_of(data.batch(0, index), ranks)
        n_targets += part.n_targets
        if len(part.targets):
            with autocast():
                logits = forward(model, **part.inputs)
            total += cross_entropy(logits, part.targets)
    return (ranks.added(total) / max(1, n_targets)).item()
