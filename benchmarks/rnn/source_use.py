"""Whether a translator reads its source: its loss with the right source, and with that of another sentence.

A decoder that ignores the source can still lower its loss, as a language model. Then both losses are the same, and the
model says nothing about translation, whatever its BLEU.
"""

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from regard.evaluation.scores import translation_logits
from regard.training.batches import IGNORED, Data


@torch.no_grad()
def loss_with_wrong_source(model: Any, data: Data, device: str) -> float:
    """The loss per token if each sentence gets the source of its neighbour in the batch, of about the same length."""
    total, count = 0.0, 0
    for index in range(data.batches_per_epoch):
        batch = data.batch(0, index)
        if len(batch.targets) == 1:  # has no neighbour
            continue
        inputs = {name: (each if name == "ids" else each.roll(1, 0)).to(device) for name, each in batch.inputs.items()}
        logits = translation_logits(model, **inputs).flatten(0, 1)
        total += cross_entropy(logits, batch.targets.to(device).flatten(), ignore_index=IGNORED, reduction="sum").item()
        count += batch.n_targets
    return total / count
