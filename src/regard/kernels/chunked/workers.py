"""Python threads over heads on the CPU, each with one thread of PyTorch's own.

Softmax and products of one block are too small to be shared out; a head to each core is faster than a core's share
of every block.
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
    """The results of `work` on each piece, in order, without gradients: side by side, where there is enough to do."""
    inference, workers = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def without_gradients(piece: Piece) -> Result:
        # Both belong to a thread, and tensors made in inference mode may be written to only there.
        with torch.inference_mode(inference), torch.no_grad():
            return work(piece)

    if len(pieces) < workers or workers == 1:
        return [without_gradients(piece) for piece in pieces]
    # MKL's number of threads belongs to the process and OpenMP's to each thread, but PyTorch sets both at once: so the
    # caller lends its number while the pool works, and takes it back.
    pool = _pool(workers)
    torch.set_num_threads(1)
    try:
        return list(pool.map(without_gradients, pieces))
    finally:
        torch.set_num_threads(workers)


class Alone:
    """For work so small that to wake the other threads, and to wait until the system lets them run, takes longer.

    A class, not a generator: it is entered for every attention of every token.
    """

    __slots__ = ("_workers",)

    def __enter__(self) -> None:
        self._workers = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *raised: object) -> None:
        torch.set_num_threads(self._workers)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """So many threads, each told once to work alone."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="regard")
    everyone = threading.Barrier(workers)

    def settle(_: int) -> None:
        torch.set_num_threads(1)
        everyone.wait()

    list(pool.map(settle, range(workers)))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads stay behind in the parent; a child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
