"""Who does what in a program: the one place to tune. No Triton here."""

from typing import NamedTuple

from regard.kernels.triton.support import Asked

ROWS = 64
"""Queries of a consumer: what four warps multiply at once."""

WIDTHS = 64, 128
"""The heads there are crews for."""

TOGETHER = 16
"""So many heads are worked on at once where attention is causal, tiles in order of length: few enough for L2."""

CACHED = 40 * 2**20
"""Bytes of keys and values that L2 holds beside the rest. Where a head has more, heads go one by one: else programs
drift apart, and fetch them again and again.
"""

TURNS = 4
"""So many tiles of queries for each processor has a head at least that goes alone: at its last turn most stand idle."""

KEYS = 128
"""Keys of a tile."""

NARROWEST = 16
"""So many keys and queries has a bin at least: each bin of a tile is a sum of its own."""


class Crew(NamedTuple):
    """Consumers, of `ROWS` queries each, and stages for the tiles that a producer brings them.

    registers  of each thread of a consumer
    passing    rows of a tile that passes by, where it is no forward
    counting   when a forward counts a tile: "waiting" for the next one's scores, or "before" it weighs these
    holding    it weighs before it waits for the product with values, whatever the assembler holds better
    scatter    of four bins each lane of a row stores one; else every lane knows all, and one stores them
    """

    consumers: int
    stages: int
    registers: int
    passing: int = KEYS
    counting: str = "before"
    holding: bool = False
    scatter: bool = False

    @property
    def rows(self) -> int:
        """Queries of a program."""
        return self.consumers * ROWS


POOLING = Crew(consumers=3, stages=3, registers=160)
RECEIVING = Crew(consumers=3, stages=4, registers=160, passing=64)
SEARCHING = Crew(consumers=3, stages=3, registers=160)
"""Who makes which second pass. Of columns with LSEs of their own no more fit into the registers of three consumers.
The search must find the forward's scores to the last bit, or keys at a threshold are lost: tiles of the same size,
multiplied the same way.
"""


def share_edges(wide: int) -> bool:
    """Whether bins so wide begin where tiles do, or tiles where bins do.

    >>> [wide for wide in (16, 79, 128, 200, 384) if share_edges(wide)]
    [16, 128, 384]
    """
    return wide % KEYS == 0 or KEYS % wide == 0


def block_for(wide: int) -> int:
    """Keys of a block in which one bin so wide begins at most, see `cutting`; half a tile at most.

    >>> [block_for(wide) for wide in (16, 31, 40, 79, 157)]
    [16, 16, 32, 64, 64]
    """
    return min(KEYS // 2, 1 << wide.bit_length() - 1)


def crew_for(E: int, asked: Asked, *, is_causal: bool) -> Crew:
    """Of a forward: what was quickest on an H200, of the ways tried (docs/log.md).

    >>> crew_for(64, Asked(), is_causal=True).consumers, crew_for(128, Asked(), is_causal=True).consumers
    (3, 2)
    """
    more = bool(asked.entropy or asked.top)
    uneven = asked.bins is not None and not share_edges(asked.bins.wide)
    if E == 128:
        wide = asked.bins is not None and asked.bins.wide >= KEYS
        holding = uneven or ((more or wide) and not is_causal)
        return Crew(consumers=2, stages=2, registers=240, counting="waiting", holding=holding, scatter=uneven)
    two = Crew(consumers=2, stages=3, registers=240)
    three = Crew(consumers=3, stages=2, registers=160)
    in_tile = 0 if asked.bins is None else max(1, KEYS // asked.bins.wide)
    if in_tile > 2 or uneven:
        return two._replace(counting="waiting", scatter=True)
    if in_tile == 2 and is_causal and more:
        return two._replace(counting="waiting", scatter=not asked.top)
    if in_tile == 2 and asked.entropy and asked.top:
        return two
    return three._replace(counting="waiting" if in_tile == 1 else "before", scatter=in_tile == 2)
