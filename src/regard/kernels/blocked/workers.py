"""Python threads over pieces of work, with BLAS held to one thread each.

BLAS' own threads leave the exponentials to one core, and both kinds of threads at once are slower than either.
The limit is global to the process, so it is counted: the last piece of work to finish puts back what was there.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from regard.kernels.tiles import cores

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_lock = threading.Lock()
_holders = 0
_limit: Any = None
_here = threading.local()


def run_all(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """The results of `work` on each piece, in order, computed side by side; one by one, where `work` itself asks."""
    if getattr(_here, "is_worker", False):  # which would wait for its own thread
        return [work(piece) for piece in pieces]
    with one_blas_thread():
        return list(_pool().map(work, pieces))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread while anyone is inside."""
    global _holders, _limit
    with _lock:
        if _holders == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    # Finding the BLAS libraries reads the process' memory map, which takes milliseconds: once is enough.
    return ThreadpoolController()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(
        cores(), thread_name_prefix="regard", initializer=lambda: setattr(_here, "is_worker", True)
    )


def _start_anew() -> None:
    """In a forked child: the threads of the pool stayed behind, and with them whoever held the lock."""
    global _lock, _holders
    _lock, _holders = threading.Lock(), 0
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
