"""Who does what in a program: the one place to tune. No Triton here."""

from typing import NamedTuple

ROWS = 64
"""Queries of a consumer: what four warps multiply at once."""

WIDTHS = 64, 128
"""The heads there are crews for."""

TOGETHER = 16
"""So many heads are worked on at once where attention is causal, tiles in order of length: few enough for L2."""


class Crew(NamedTuple):
    """Consumers, of `ROWS` queries each, and the tiles of keys and values that a producer brings them.

    registers  of each thread of a consumer
    later      a tile is counted while the next one's scores are multiplied; costs registers
    """

    consumers: int
    keys: int
    key_stages: int
    value_stages: int
    registers: int
    later: bool = False

    @property
    def rows(self) -> int:
        """Queries of a program."""
        return self.consumers * ROWS


KEYS = 128
"""Keys of a tile, whoever the crew is."""

SECOND = Crew(consumers=3, keys=KEYS, key_stages=3, value_stages=0, registers=160)
"""Who makes a second pass."""


def crew_for(E: int, *, is_map: bool, is_entropy: bool, is_causal: bool) -> Crew:
    """As tried on an H200: three consumers where there is nothing to count; counting later where registers are left.

    >>> crew_for(64, is_map=False, is_entropy=False, is_causal=True).consumers
    3
    """
    if E == 64 and not (is_map or is_entropy):
        return Crew(consumers=3, keys=KEYS, key_stages=2, value_stages=2, registers=160)
    stages = 3 if E == 64 else 2
    later = is_map and not (is_entropy or is_causal)
    return Crew(consumers=2, keys=KEYS, key_stages=stages, value_stages=stages, registers=240, later=later)
