"""Batches on their way to the device: the next one is made ready in the background while this one is computed."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor

from regard.training.batches import Batch, Data
from regard.training.ranks import Ranks


class Part(NamedTuple):
    """This process's rows of a micro-batch on the device, and what the whole of it comes to."""

    inputs: dict[str, Tensor]
    targets: Tensor
    n_targets: int
    n_tokens: int
    examples: tuple[int, ...]


def feed(data: Data, cursor: int, ranks: Ranks) -> Generator[Part]:
    """Micro-batch `cursor` and all that follow it, without end: epoch after epoch."""

    def ready(at: int) -> Part:
        return part_of(data.batch(*divmod(at, data.batches_per_epoch)), ranks)

    with ThreadPoolExecutor(1, "feed") as background:
        coming = background.submit(ready, cursor)
        while True:
            cursor += 1
            part, coming = coming, background.submit(ready, cursor)
            yield part.result()


def part_of(batch: Batch, ranks: Ranks) -> Part:
    """The rows of this process, sent to its device."""
    mine = batch.part(ranks.rank, ranks.world)
    inputs = {name: _sent(each, ranks.device) for name, each in mine.inputs.items()}
    return Part(inputs, _sent(mine.targets, ranks.device), batch.n_targets, batch.n_tokens, batch.examples)


def _sent(x: Tensor, device: torch.device) -> Tensor:
    """To a GPU from page-locked memory, so that the copy need not be waited for."""
    return x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else x
