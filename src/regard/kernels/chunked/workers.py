"""Python threads over heads on the CPU, each with one PyTorch thread.

The softmax and products of one block are too small to be divided among cores; one head per core is faster.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def run_all(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results of `work` on each piece, in order and without gradients; in parallel if there are enough pieces."""
    inference, workers = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def without_gradients(piece: Piece) -> Result:
        # Both settings are per thread, and inference tensors may be written to only in inference mode.
        with torch.inference_mode(inference), torch.no_grad():
            return work(piece)

    if len(pieces) < workers or workers == 1:
        return [without_gradients(piece) for piece in pieces]
    # MKL's number of threads is per process and OpenMP's per thread, but PyTorch sets both at once: the caller's number
    # is set to 1 while the pool works, and then restored.
    pool = _pool(workers)
    torch.set_num_threads(1)
    try:
        return list(pool.map(without_gradients, pieces))
    finally:
        torch.set_num_threads(workers)


class SingleThread:
    """Context manager: one PyTorch thread, for work so small that starting other threads takes longer.

    A class, not a generator: it is entered for every attention call of every token.
    """

    __slots__ = ("_workers",)

    def __enter__(self) -> None:
        self._workers = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *raised: object) -> None:
        torch.set_num_threads(self._workers)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """A pool of `workers` threads, each set to one PyTorch thread."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="regard")
    barrier = threading.Barrier(workers)

    def set_one_thread(_: int) -> None:
        torch.set_num_threads(1)
        barrier.wait()

    list(pool.map(set_one_thread, range(workers)))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads exist only in the parent; a child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
