"""What the device could do at most, measured, and what a token costs, counted: together the share that is reached.

Counted by PyTorch on one small batch, forward and backward, so that no architecture need be known.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.training.batches import Data
from regard.training.ranks import Ranks

SECONDS = 0.2
ROWS = 4
"""Of a batch: enough to count what a token takes."""


def measured_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of large square matrix products, the best of several tries in about 0.2 s."""
    n = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        product = a @ b
        _finish(product)
        best = min(best, time.perf_counter() - start)
    return 2 * n**3 / best


def _finish(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def share_per_rate(
    objective: nn.Module, data: Data, ranks: Ranks, autocast: AbstractContextManager[Any]
) -> float | None:
    """What one token per second is, as a share of all devices' peak; None where the operations cannot be counted.

    A few rows of the first batch are enough. They leave no gradient, and in eval mode no statistic either.
    """
    device = ranks.device
    whole = data.batch(0, 0)
    batch = whole.part(0, max(1, len(whole.targets) // ROWS))
    inputs = {name: each.to(device) for name, each in batch.inputs.items()}
    objective.eval()
    with autocast:
        dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        operations = counted_operations(lambda: objective(inputs, batch.targets.to(device)))
    objective.zero_grad(set_to_none=True)
    peak = ranks.world * measured_peak(device, dtype)
    return operations / max(1, batch.n_tokens) / peak if operations else None


def counted_operations(loss: Callable[[], Tensor]) -> int:
    """Operations of one forward and backward pass: products of matrices and attention, an addition counted as one."""
    counter = FlopCounterMode(display=False)
    with counter:
        loss().backward()
    return counter.get_total_flops()
