"""Python threads over heads on the CPU, each with one thread of PyTorch's own.

Softmax and products of one block are too small to be shared out; a head to each core is faster than a core's share
of every block.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def run_all(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """The results of `work` on each piece, in order, computed side by side."""
    return list(_pool(torch.get_num_threads()).map(work, pieces))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    # OpenMP's number of threads belongs to the thread that sets it, so nobody else's changes.
    return ThreadPoolExecutor(workers, thread_name_prefix="regard", initializer=lambda: torch.set_num_threads(1))
