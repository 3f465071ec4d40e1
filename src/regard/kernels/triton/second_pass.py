"""What the passes after an output share: everything they are given, q, k and the LSE, and what a weight needs of a row.

A weight is 2^(score − LSE) in base 2, whoever made the LSE: no maximum is sought, and nothing is ever rescaled.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton.launch import Inputs, on_device
from regard.kernels.triton.tile_sizes import power_of_two
from regard.kernels.triton.tiles import LOG2E, Limits, parts_of_walk, tensors_in_tiles


class Given(NamedTuple):
    """What a program is given; what is None is compiled away.

    lse     B H T in float32, nats
    served  query heads to a key head
    scale   holds the factor log2 e already, and so does `cap`
    """

    lse: Any
    H: int
    served: int
    T: int
    S: int
    scale: float
    cap: float | None

    @classmethod
    def of(cls, q: Tensor, k: Tensor, lse: Tensor, scale: float, softcap: float | None) -> "Given":
        (H, T), (G, S) = q.shape[1:3], k.shape[1:3]
        cap = None if softcap is None else softcap * LOG2E
        return cls(lse.contiguous(), H, H // G, T, S, scale * LOG2E, cap)


def inputs_of(
    given: Given, q: Tensor, k: Tensor, limits: Limits, *, queries: int, keys: int, passing: int, length: int
) -> Inputs:
    """For tiles of so many queries and keys; of the side that passes by, `passing` at once of so many."""
    constants = {"E": q.shape[3], "BLOCK_E": power_of_two(q.shape[3]), "QUERIES": queries, "KEYS": keys}
    constants |= parts_of_walk(limits, length % passing == 0)
    tensors, by_engine = tensors_in_tiles((q, queries), (k, keys))
    return Inputs((given, *tensors, limits), constants | {"TMA": by_engine})


@triton.jit
def load_shift(lse, rows, T):
    """What is taken off the scores of these queries, in base 2: for one that sees nothing or is not there, infinity."""
    found = tl.load(lse + rows, mask=rows < T, other=float("inf"))
    return tl.where(found == float("-inf"), float("inf"), found) * 1.4426950408889634


@triton.jit
def _lay_down(lse, shifts, T, whole, ROWS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * ROWS
    head, rows = at // whole, at % whole + tl.arange(0, ROWS)
    tl.store(shifts + head * whole + rows, load_shift(lse + head * T, rows, T))


def in_whole_tiles(lse: Tensor, rows: int) -> Tensor:
    """What is taken off the scores of each query, in base 2, B H first, tiles of so many rows; infinity where a query
    sees nothing, or where there is none.
    """
    *heads, T = lse.shape
    whole = triton.cdiv(T, rows) * rows
    shifts = lse.new_empty(*heads, whole)
    with on_device(lse):
        _lay_down[(shifts.numel() // rows,)](lse.contiguous(), shifts, T, whole, ROWS=rows)
    return shifts
