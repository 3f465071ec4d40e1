"""What the passes after an output share: everything they are given, q, k and the LSE, and what a weight needs of a row.

A weight is 2^(score − LSE) in base 2, whoever made the LSE: no maximum is sought, and nothing is ever rescaled.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton.sight import Sight
from regard.kernels.triton.tiles import LOG2E, Heads, Limits


class Given(NamedTuple):
    """What a program is given; what is None is compiled away.

    lse     B H T in float32, nats
    served  query heads to a key head
    limits  from the side whose tiles the programs own
    scale   holds the factor log2 e already, and so does `cap`
    """

    q: Heads
    k: Heads
    lse: Any
    H: int
    served: int
    T: int
    S: int
    limits: Limits
    scale: float
    cap: float | None

    @classmethod
    def of(
        cls, q: Tensor, k: Tensor, lse: Tensor, sight: Sight, scale: float, softcap: float | None, own: int
    ) -> "Given":
        """For programs that own so many positions each, on the side from which `sight` looks."""
        (H, T), (G, S) = q.shape[1:3], k.shape[1:3]
        cap = None if softcap is None else softcap * LOG2E
        return cls(
            Heads.of(q), Heads.of(k), lse.contiguous(), H, H // G, T, S, Limits.of(sight, own), scale * LOG2E, cap
        )


def first_part(limits: Limits) -> int:
    """Where a walk begins, of its parts 0 where it asks who may look, 1 where all may, 2 where it asks again.

    Only a left edge or segments make for a part 0; the last tile of part 2 may be ragged, so that it is always there.
    """
    return 0 if limits.left is not None or limits.reach is not None else 1


@triton.jit
def part_of_walk(edges, PART: tl.constexpr):
    """Where a part of a walk begins and ends; `edges` are low, sure_low, sure_high and high of `tiles_to_see`."""
    low, sure_low, sure_high, high = edges
    begin, end = low, sure_low
    if PART == 1:
        begin, end = sure_low, sure_high
    if PART == 2:
        begin, end = sure_high, high
    return begin, end


@triton.jit
def base_of(heads, sample, h):
    """Where the positions of one head begin."""
    return heads.base + sample * heads.sample + h * heads.head


@triton.jit
def load_shift(lse, rows, T):
    """What is taken off the scores of these queries, in base 2: for one that sees nothing or is not there, infinity."""
    found = tl.load(lse + rows, mask=rows < T, other=float("inf"))
    return tl.where(found == float("-inf"), float("inf"), found) * 1.4426950408889634
