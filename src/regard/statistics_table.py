"""The table of statistics: what a Record can hold, one entry each.

The guard against NaN, the checks of memory, the trace file, stitching, the mean of heads and value-weighted attention
read this table, so none of them lists statistics. A new statistic is an entry here, a field of `See`, `Statistics` and
`Record` (a test compares them with the table), and one function for each backend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Any, Literal

from regard.arrays import Array
from regard.axes import Shape, bin_count, distance_count

if TYPE_CHECKING:
    from regard.records import See

Merge = Literal["queries", "weights", "last"]
MergeKeys = Literal["lse", "max", "terms", "sum", "largest", "beside", "weights"]

_SIZES: dict[str, Callable[[int, int, int], int]] = {
    "T": lambda T, S, n: T,
    "S": lambda T, S, n: S,
    "R": lambda T, S, n: bin_count(T, n),
    "C": lambda T, S, n: bin_count(S, n),
    "distances": lambda T, S, n: distance_count(T, S),
    "top": lambda T, S, n: min(n, S),
}
"""The size of each axis, from the numbers of queries and keys and the number that `See` requests: bins, or top keys."""
_UNKNOWN = ("R", "C", "top", "Ev")
"""Axes whose size does not follow from T and S."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistic:
    """One statistic of an attention call.

    name      the field of Record, and of Statistics where a backend computes it
    see       the field of See that requests it; None where it is recorded whenever a model has it
    axes      its axes after B H: T queries, S keys, R C bins of the map, distances, top keys, Ev the width of a value
    merge     how `Trace.stitched` merges the calls of a text; None where it leaves the statistic out
                  "queries"   the rows of all calls, one after the other
                  "weights"   computed again, from the exact weights of the whole text
                  "last"      that of the last call, which has every key
    keys      how parts that have some keys each merge; a query's share of a part is exp(LSE of the part − LSE)
                  "lse"       the LSE itself
                  "max"       the largest
                  "terms"     Σ share × (value + LSE − LSE of the part): an expectation of −log weight
                  "sum"       Σ share × value
                  "largest"   the largest of all parts, each times its share
                  "beside"    the keys of one part after those of the other
                  "weights"   computed again, from the exact weights of the whole
                  None        such parts do not merge
    empty     its value for a query that is fully masked or padding, or that a text does not have
    linear    whether the statistic of the mean of heads is the mean of their statistics
    computed  whether backends compute it, as a field of Statistics
    stored    its name in a trace file, where that differs; `rounded`: the file may store it in 16 bits
    parts     the names of its arrays, where there are several
    itemsize  bytes of one element, of all its arrays together
    """

    name: str
    see: str | None
    axes: tuple[str, ...]
    merge: Merge | None
    keys: MergeKeys | None
    empty: float = 0.0
    linear: bool = False
    computed: bool = True
    stored: str = ""
    rounded: bool = False
    parts: tuple[str, ...] = ()
    itemsize: int = 4

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of its arrays in a trace file."""
        stored = self.stored or self.name
        return tuple(f"{stored}.{part}" for part in self.parts) or (stored,)

    def arrays(self, value: Any) -> dict[str, Array]:
        """The arrays of a value, by their names in a trace file; none where the value is None."""
        if value is None:
            return {}
        return dict(zip(self.file_names, value if self.parts else (value,), strict=True))

    def known_sizes(self, T: int, S: int) -> tuple[int | None, ...]:
        """The sizes of its axes after B H; None where a size depends on the request or on the width of the values."""
        return tuple(None if axis in _UNKNOWN else _SIZES[axis](T, S, 0) for axis in self.axes)

    def bytes(self, see: "See", shape: Shape, Ev: int) -> int:
        """The bytes that `see` requests for a call of shape B H T S with values of width Ev, in float32."""
        requested = None if self.see is None else getattr(see, self.see)
        if not requested:
            return 0
        B, H, T, S = shape
        sizes = (Ev if axis == "Ev" else _SIZES[axis](T, S, requested) for axis in self.axes)
        return B * H * self.itemsize * prod(sizes)


STATISTICS = (
    Statistic(name="map", see="map", axes=("R", "C"), merge="weights", keys="weights", linear=True, rounded=True),
    Statistic(name="lse", see="lse", axes=("T",), merge="queries", keys="lse", empty=-inf),
    Statistic(name="max_score", see="max_score", axes=("T",), merge="queries", keys="max", empty=-inf),
    Statistic(name="entropy", see="entropy", axes=("T",), merge="queries", keys="terms"),
    Statistic(name="received", see="received", axes=("S",), merge="weights", keys="weights", linear=True),
    Statistic(
        name="top",
        see="top",
        axes=("T", "top"),
        merge="queries",
        keys="largest",
        parts=("indices", "weights"),
        itemsize=8 + 4,
    ),
    Statistic(name="sink", see="sink", axes=(), merge="weights", keys="weights", linear=True),
    Statistic(name="distance", see="distance", axes=("distances",), merge=None, keys="weights", linear=True),
    Statistic(
        name="value_norms", see="values", axes=("S",), merge="last", keys="beside", stored="values", computed=False
    ),
    Statistic(name="outputs", see="outputs", axes=("T", "Ev"), merge="queries", keys="sum", computed=False),
    Statistic(name="sink_mass", see=None, axes=("T",), merge="queries", keys=None, linear=True),
)

REQUESTS = tuple(one.see for one in STATISTICS if one.see is not None)
"""The fields of See that request a statistic."""


@lru_cache(maxsize=256)  # the layers of a model repeat the same call
def bytes_of(see: "See", shape: Shape, Ev: int = 0) -> int:
    """The bytes of the statistics of one call of shape B H T S with values of width Ev, in float32.

    >>> from regard.records import See
    >>> bytes_of(See(map=None, entropy=True, top=2), (1, 1, 10, 20))  # lse, entropy, two keys with weights, sink
    324
    """
    return sum(one.bytes(see, shape, Ev) for one in STATISTICS)
