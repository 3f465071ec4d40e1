"""The settings of `benchmarks.gpu_attention`: head widths, masks and lengths, and the lengths that have bounds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard import See
from regard.axes import bin_width
from regard.kernels.division import Bins
from regard.kernels.triton.support import ForwardRequest

BINS, TOP = 256, 8
WIDTHS, MASKS = (64, 128), ("causal", "full")
JUDGED = (4096, 16_384, 65_536, 131_072)
"""The lengths at which ratios have bounds."""
UNEVEN = 20_000
NOT_JUDGED = {
    UNEVEN: f"no tile divides it, and bins {bin_width(UNEVEN, BINS)} wide begin anywhere in one, as with "
    "nearly every text"
}
"""Lengths that are shown without bounds, each with the reason."""
LENGTHS = (*JUDGED, *NOT_JUDGED)
FORWARDS = {
    "plain": ForwardRequest(),
    "map": ForwardRequest(lse=True),
    "entropy": ForwardRequest(lse=True, entropy=True),
    "everything": ForwardRequest(lse=True, entropy=True, top=TOP),
}
"""The statistics requested of our forward; all but the first also include a map."""


def in_order(lengths: Iterable[int]) -> list[int]:
    """Ascending, with lengths without bounds last.

    >>> in_order([20_000, 65_536, 4096])
    [4096, 65536, 20000]
    """
    return sorted(lengths, key=lambda n: (n in NOT_JUDGED, n))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One sample of n tokens, H heads of width E, in bfloat16."""

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
        """Operations of the two matrix products of a forward; masked pairs of a causal mask are not counted."""
        return 4.0 * self.n**2 * self.E * self.H / (2 if self.causal else 1)

    @property
    def output_bytes(self) -> int:
        return 2 * self.H * self.n * self.E

    def tensors(self, device: torch.device, count: int = 3) -> list[Tensor]:
        make = torch.Generator(device).manual_seed(0)
        shape = (1, self.H, self.n, self.E)
        return [torch.randn(shape, generator=make, device=device, dtype=torch.bfloat16) for _ in range(count)]

    def see(self, **options: Any) -> See:
        return See(map=BINS, sink=False, **options)

    def request(self, name: str) -> ForwardRequest:
        """The request of the forward with this name, including its map."""
        bins = None if name == "plain" else Bins.of(self.n, self.n, self.see())
        return FORWARDS[name]._replace(bins=bins)
