"""Blocks of rows, bins of a map, sums by distance, and work divided among Python threads: what the kernels share.

While threads work, BLAS is limited to one thread: BLAS threads leave the exponentials to one core, and both kinds of
threads at once are slower than either alone. The limit is global to the process, so its users are counted: the last one
to finish restores the old limit. Also the test for an LSE too imprecise to compute weights from.
"""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from regard.arrays import Array
from regard.axes import bin_count, bin_width, distance_count
from regard.records import See

SCORES_AT_A_TIME = 2**20
"""Scores in one block of rows: 4 MiB of float32, small enough to stay in a core's cache over several passes."""

KEYS_PER_MASK_BLOCK = 256
"""Number of keys for which a mask is evaluated at once where its values are not known in advance."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of a map: `height` queries by `width` keys each, R rows by C columns of them."""

    height: int
    width: int
    R: int
    C: int

    @classmethod
    def of(cls, T: int, S: int, see: See | None) -> "Bins | None":
        return None if see is None or not see.map else _bins(T, S, see.map)


@lru_cache(maxsize=256)  # asked several times for each call
def _bins(T: int, S: int, most: int) -> Bins:
    """The bins of a map with at most this number along each axis."""
    return Bins(bin_width(T, most), bin_width(S, most), bin_count(T, most), bin_count(S, most))


def sums_by_distance(diagonals: Array, S: int, offset: int | None = None) -> list[Array]:
    """Sums by distance 0, 1, 2–3, 4–7, …, from sums along the diagonals (…, T + S − 1), lower left first.

    offset   the key position of query 0; None for S − T
    """
    T = diagonals.shape[-1] - S + 1
    center = S - 1 if offset is None else max(0, T - 1 + offset)  # the diagonal of each query and its own key
    sums = [diagonals[..., center : center + 1].sum(-1)]
    for b in range(1, distance_count(T, S)):
        near, far = 2 ** (b - 1), 2**b
        before = diagonals[..., max(0, center - far + 1) : max(0, center - near + 1)]
        sums.append(before.sum(-1) + diagonals[..., center + near : center + far].sum(-1))
    return sums


def head_of(x: Array | None, b: int, h: int) -> Array | None:
    """One head of one sample of an array that broadcasts to B H · ·."""
    return None if x is None else x[b if x.shape[0] > 1 else 0, h if x.shape[1] > 1 else 0]


def block_of(x: Array, rows: slice, cols: slice) -> Array:
    """A rectangle of an array that broadcasts to … T S."""
    whole = slice(None)
    return x[..., rows if x.shape[-2] > 1 else whole, cols if x.shape[-1] > 1 else whole]


def cores() -> int:
    """The number of CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rows_per_block(T: int, S: int, max_rows: int, height: int | None = None) -> int:
    """The rows of a block: at most `max_rows`, fewer if rows are long, a multiple of `height` if that is smaller.

    Never fewer than sixteen, however long the rows are.
    """
    rows = max(16, min(max_rows, SCORES_AT_A_TIME // max(1, S), max(1, T)))
    return rows if height is None or height > rows else rows // height * height


def row_blocks(start: int, stop: int, step: int) -> list[slice]:
    """Consecutive slices of at most `step` rows."""
    return [slice(first, min(stop, first + step)) for first in range(start, stop, step)]


def units_of_work(heads: int, T: int, multiple: int, workers: int) -> list[tuple[int, int, int]]:
    """(head, first row, last row) pieces of work: one per head, more when there are too few heads for the workers.

    Pieces begin at multiples of `multiple`, so that no two pieces share a bin of the map.
    """
    parts = 1 if heads >= 2 * workers else -(-2 * workers // max(1, heads))
    rows = -(-T // parts)
    rows = max(1, -(-rows // multiple)) * multiple
    return [(head, r.start, r.stop) for head in range(heads) for r in row_blocks(0, T, rows)]


MAX_ROUNDING_ERROR = 1e-4
"""The largest relative error of a weight exp(score − LSE) that rounding of the two may cause."""


def is_imprecise(lse: Array, eps: float) -> bool:
    """Whether any LSE is so far from 0 that its rounding error is too large; -inf, a fully masked row, does not count.

    >>> import numpy as np
    >>> [is_imprecise(np.array([3.0, far]), 2.0**-23) for far in (-800, 900, -np.inf, -3.4e38)]
    [False, True, False, True]
    """
    size = abs(lse)
    return bool(((size * eps > MAX_ROUNDING_ERROR) & (size < math.inf)).any())


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
