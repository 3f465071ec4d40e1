"""Who does what in a program: the one place to tune. No Triton here."""

from typing import NamedTuple

from regard.kernels.tiles import Bins

ROWS = 64
"""Queries of a consumer: what four warps multiply at once."""

WIDTHS = 64, 128
"""The heads there are crews for."""

TOGETHER = 16
"""So many heads are worked on at once where attention is causal, tiles in order of length: few enough for L2."""


KEYS = 128
"""Keys of a tile."""


class Crew(NamedTuple):
    """Consumers, of `ROWS` queries each, and stages for the tiles that a producer brings them.

    registers  of each thread of a consumer
    passing    rows of a tile that passes by, where it is no forward
    waiting    a forward counts a tile while it waits for the next one's scores; else when these have come
    """

    consumers: int
    stages: int
    registers: int
    passing: int = KEYS
    waiting: bool = False

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


def crew_for(E: int, bins: Bins | None, *, is_causal: bool) -> Crew:
    """Of a forward, as tried on an H200 (docs/log.md): three consumers where there are registers enough.

    >>> crew_for(64, None, is_causal=True).consumers, crew_for(128, None, is_causal=True).consumers
    (3, 2)
    """
    if E == 128:
        return Crew(consumers=2, stages=2, registers=240, waiting=True)
    in_tile = 0 if bins is None else max(1, KEYS // bins.wide)
    if in_tile > 2 or (in_tile == 2 and is_causal):
        return Crew(consumers=2, stages=3, registers=240, waiting=True)
    return Crew(consumers=3, stages=2, registers=160, waiting=in_tile == 1)
