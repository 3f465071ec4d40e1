"""Work run in parallel Python threads, with BLAS limited to one thread.

BLAS threads leave the exponentials to one core, and both kinds of threads at once are slower than either alone. The
limit is global to the process, so its users are counted: the last one to finish restores the old limit.
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
_n_users = 0
_limit: Any = None
_thread = threading.local()


def run_all(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """The results of `work` on each piece, in order, computed in parallel; sequentially in a worker thread."""
    if getattr(_thread, "is_worker", False):  # a worker would wait for its own thread
        return [work(piece) for piece in pieces]
    with one_blas_thread():
        return list(_pool().map(work, pieces))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside."""
    global _n_users, _limit
    with _lock:
        if _n_users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    # Finding the BLAS libraries reads the memory map of the process, which takes milliseconds: do it once.
    return ThreadpoolController()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(
        cores(), thread_name_prefix="regard", initializer=lambda: setattr(_thread, "is_worker", True)
    )


def _reset_after_fork() -> None:
    """In a forked child: replace the pool, whose threads exist only in the parent, and the lock that one may hold."""
    global _lock, _n_users
    _lock, _n_users = threading.Lock(), 0
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
