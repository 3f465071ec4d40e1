"""Warp roles, pipeline stages and registers of the Hopper kernels: the one place to tune. Does not import Triton."""

from typing import NamedTuple

from regard.kernels.triton.support import ForwardRequest

ROWS = 64
"""Queries of a consumer: what four warps multiply at once."""

WIDTHS = 64, 128
"""The supported head widths."""

HEADS_TOGETHER = 16
"""Heads processed together with a causal mask, tiles in order of length: few enough for L2."""

L2_BYTES = 40 * 2**20
"""Bytes of keys and values that L2 can hold besides the rest. If a head has more, heads are processed one by one:
otherwise programs drift apart and load the same keys repeatedly.
"""

MIN_WAVES = 4
"""A head is processed alone only if it has this many tiles of queries per processor: in its last wave most processors
are idle.
"""

KEYS = 128
"""Keys of a tile."""

NARROWEST = 16
"""The smallest number of keys and queries of a bin: each bin of a tile needs a sum of its own."""


class KernelConfig(NamedTuple):
    """Number of consumers, of `ROWS` queries each, and pipeline stages for the tiles that a producer loads.

    registers      per thread of a consumer
    streamed       rows of a streamed tile, in second passes
    accumulate     when a forward adds a tile to its sums: while "waiting" for the next scores, or "before" their
                   softmax
    softmax_first  compute the softmax before waiting for the product with values, whatever order the assembler prefers
    scatter        each of the four lanes of a row stores one of four bins; otherwise every lane has all sums and one
                   stores
    """

    consumers: int
    stages: int
    registers: int
    streamed: int = KEYS
    accumulate: str = "before"
    softmax_first: bool = False
    scatter: bool = False

    @property
    def rows(self) -> int:
        """Queries of a program."""
        return self.consumers * ROWS


MAP_CONFIG = KernelConfig(consumers=3, stages=3, registers=160)
RECEIVED_CONFIG = KernelConfig(consumers=3, stages=4, registers=160, streamed=64)
SEARCH_CONFIG = KernelConfig(consumers=3, stages=3, registers=160)
"""The configs of the second passes. With an LSE per column no more registers are free with three consumers. The search
must compute the forward's scores bit by bit, or keys at a threshold are lost: tiles of the same size, multiplied in the
same way.
"""


def is_aligned(bin_width: int) -> bool:
    """Whether bins of this width begin at edges of tiles, or tiles at edges of bins.

    >>> [bin_width for bin_width in (16, 79, 128, 200, 384) if is_aligned(bin_width)]
    [16, 128, 384]
    """
    return bin_width % KEYS == 0 or KEYS % bin_width == 0


def block_size_for(bin_width: int) -> int:
    """Keys of a block in which at most one bin of this width begins, see `bins`; at most half a tile.

    >>> [block_size_for(bin_width) for bin_width in (16, 31, 40, 79, 157)]
    [16, 16, 32, 64, 64]
    """
    return min(KEYS // 2, 1 << bin_width.bit_length() - 1)


def config_for(E: int, request: ForwardRequest, *, is_causal: bool) -> KernelConfig:
    """The config of a forward: the fastest on an H200 of those tried (docs/log.md).

    >>> [config_for(E, ForwardRequest(), is_causal=True).consumers for E in (64, 128)]
    [3, 2]
    """
    has_extra = bool(request.entropy or request.top)
    unaligned = request.bins is not None and not is_aligned(request.bins.width)
    if E == 128:
        bin_width = request.bins is not None and request.bins.width >= KEYS
        softmax_first = unaligned or ((has_extra or bin_width) and not is_causal)
        return KernelConfig(
            consumers=2, stages=2, registers=240, accumulate="waiting", softmax_first=softmax_first, scatter=unaligned
        )
    two_consumers = KernelConfig(consumers=2, stages=3, registers=240)
    three_consumers = KernelConfig(consumers=3, stages=2, registers=160)
    bins_per_tile = 0 if request.bins is None else max(1, KEYS // request.bins.width)
    if bins_per_tile > 2 or unaligned:
        return two_consumers._replace(accumulate="waiting", scatter=True)
    if bins_per_tile == 2 and is_causal and has_extra:
        return two_consumers._replace(accumulate="waiting", scatter=not request.top)
    if bins_per_tile == 2 and request.entropy and request.top:
        return two_consumers
    return three_consumers._replace(
        accumulate="waiting" if bins_per_tile == 1 else "before", scatter=bins_per_tile == 2
    )
