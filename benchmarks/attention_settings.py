"""What attention is timed at in `benchmarks.gpu_attention`: widths, masks and lengths, and which lengths are judged."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard import See
from regard.axes import bin_width
from regard.kernels.tiles import Bins
from regard.kernels.triton.support import Asked

BINS, TOP = 256, 8
WIDTHS, MASKS = (64, 128), ("causal", "full")
JUDGED = (4096, 16_384, 65_536, 131_072)
"""The lengths at which something is asked for."""
UNEVEN = 20_000
BESIDE = {
    UNEVEN: f"no tile divides it, and bins {bin_width(UNEVEN, BINS)} wide begin anywhere in one, as with "
    "nearly every text"
}
"""Lengths that are shown and not judged, each with its reason."""
LENGTHS = (*JUDGED, *BESIDE)
FORWARDS = {
    "plain": Asked(),
    "map": Asked(lse=True),
    "entropy": Asked(lse=True, entropy=True),
    "everything": Asked(lse=True, entropy=True, top=TOP),
}
"""What one pass of ours is asked for; all but the first with a map beside it."""


def in_order(lengths: Iterable[int]) -> list[int]:
    """Rising, and those that are not judged behind the others.

    >>> in_order([20_000, 65_536, 4096])
    [4096, 65536, 20000]
    """
    return sorted(lengths, key=lambda n: (n in BESIDE, n))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One sample of n tokens, H heads E wide, in bfloat16."""

    E: int
    causal: bool
    n: int
    H: int = 16

    def __str__(self) -> str:
        return f"E {self.E}, {self.mask}, {self.n:,} tokens"

    @property
    def mask(self) -> str:
        return "causal" if self.causal else "full"

    @property
    def operations(self) -> float:
        """Of the two matrix products of a forward; what causal attention need not look at is not counted."""
        return 4.0 * self.n**2 * self.E * self.H / (2 if self.causal else 1)

    @property
    def output_bytes(self) -> int:
        return 2 * self.H * self.n * self.E

    def tensors(self, device: torch.device, count: int = 3) -> list[Tensor]:
        make = torch.Generator(device).manual_seed(0)
        shape = (1, self.H, self.n, self.E)
        return [torch.randn(shape, generator=make, device=device, dtype=torch.bfloat16) for _ in range(count)]

    def see(self, **asked: Any) -> See:
        return See(map=BINS, sink=False, **asked)

    def asked(self, name: str) -> Asked:
        """What the pass of this name is asked for, its map included."""
        bins = None if name == "plain" else Bins.of(self.n, self.n, self.see())
        return FORWARDS[name]._replace(bins=bins)
