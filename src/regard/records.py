"""See: what to look at. Record: what one attention call left behind. Attend: how a model calls attention.

A Record holds the caller's kind of array and never anything T × S that was not asked for. It knows nothing of how
it was computed: exact rectangles come from a function that the backend leaves with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

from regard.axes import Shape, part_of
from regard.errors import ArgumentError, NotKeptError
from regard.kinds import Array, is_whole
from regard.memory import require

Kind = Literal["encoder", "decoder", "cross", "self"]
Rectangle = Callable[[slice, slice], Array]
"""Exact weights of rows × cols, B H rows cols."""

WORTH_ASKING = 2**24
"""Weights from which on one asks first whether there is room for them: 64 MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class See:
    """What a Record should hold. What is not asked for stays None.

    map       at most so many bins along each axis; None for no map
    lse       the log of the sum of exponentials, per query
    entropy   in nats, per query
    received  how much attention each key received: the column sums
    top       the so many strongest keys of each query, with their weights; None for none
    qk        keep q and k, so that any rectangle of exact weights can be had later
    """

    map: int | None = 256
    lse: bool = True
    entropy: bool = False
    received: bool = False
    top: int | None = None
    qk: bool = False

    def __post_init__(self) -> None:
        for name in ("map", "top"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= 1):
                raise ArgumentError("see-count", name=name, value=value)


class Attend(Protocol):
    """How a model calls attention: a value that is passed in, so that who computes and who looks is not its business.

    q B H T E, k and v B G S E. `name` is the module's path, which is also the prefix of its weights' names.
    """

    def __call__(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        name: str,
        kind: Kind,
        mask: Any = None,
        bias: Any = None,
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
    ) -> Array: ...


class Top(NamedTuple):
    """The strongest keys of each query, strongest first, equal ones in any order. Both B H T k, k at most S."""

    indices: Array
    weights: Array


class Statistics(NamedTuple):
    """What a backend computed beside the output; B H first. What was not asked for is None."""

    map: Array | None = None
    lse: Array | None = None
    entropy: Array | None = None
    received: Array | None = None
    top: Top | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record:
    """What one attention call left behind. B samples, H heads, T queries, S keys.

    map       B H R C: the weights summed over the keys of a bin, averaged over the queries of a bin; where T and S
              are at most `See.map`, the weights themselves. Queries that see nothing are left out of the mean.
    lse       B H T, -inf for a query that sees nothing
    entropy   B H T, nats
    received  B H S, column sums
    top       indices and weights, B H T k
    """

    shape: Shape
    """(B, H, T, S)"""
    name: str = "attention"
    kind: Kind = "self"
    map: Array | None = None
    lse: Array | None = None
    entropy: Array | None = None
    received: Array | None = None
    top: Top | None = None
    queries: tuple[tuple[str, ...], ...] | None = None
    """The tokens that look, one tuple per sample (or one for all)."""
    keys: tuple[tuple[str, ...], ...] | None = None
    """The tokens that are looked at."""
    rectangle: Rectangle | None = field(default=None, repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the rectangle is computed from (q, k, …), for those who save a Record."""

    def __repr__(self) -> str:
        """Name, kind, B H T S, and which fields there are: arrays themselves would flood a screen."""
        fields = ("map", "lse", "entropy", "received", "top")
        kept = [name for name in fields if getattr(self, name) is not None] + (["qk"] if self.rectangle else [])
        return f"Record({self.name!r}, {self.kind}, shape={self.shape}, holds: {', '.join(kept) or 'nothing'})"

    def weights(self, rows: slice | None = None, cols: slice | None = None) -> Array:
        """The exact weights of a rectangle, B H rows cols, computed now from the kept q, k and LSE.

        Raises NotKeptError with the fix when nothing was kept to compute them from.
        """
        T, S = self.shape[-2:]
        rows, cols = part_of(rows, T), part_of(cols, S)
        if self.rectangle is not None:
            shape = (*self.shape[:2], rows.stop - rows.start, cols.stop - cols.start)
            if prod(shape) > WORTH_ASKING:
                require(4 * prod(shape), key="weights-too-large", shape=shape)
            return self.rectangle(rows, cols)
        if self.map is not None and tuple(self.map.shape[-2:]) == (T, S):
            return self.map[..., rows, cols]
        raise NotKeptError("weights-not-kept", name=self.name, T=T, S=S)

    def named(self, name: str, kind: Kind | None = None) -> "Record":
        """The same under another name."""
        return replace(self, name=name, kind=kind or self.kind)

    def with_tokens(self, queries: Any = None, keys: Any = None) -> "Record":
        """The same with tokens; one list for all samples, or a list of lists."""
        B, _, T, S = self.shape
        return replace(
            self,
            queries=_tokens(queries, B, T, "queries") or self.queries,
            keys=_tokens(keys, B, S, "keys") or self.keys,
        )


def _tokens(given: Any, samples: int, length: int, side: str) -> tuple[tuple[str, ...], ...] | None:
    if given is None:
        return None
    rows = [given] if len(given) == 0 or isinstance(given[0], str) else list(given)
    tokens = tuple(tuple(str(token) for token in row) for row in rows)
    if len(tokens) not in (1, samples):
        raise ArgumentError("tokens-samples", side=side, found=len(tokens), B=samples)
    for row in tokens:
        if len(row) != length:
            raise ArgumentError("tokens-count", side=side, found=len(row), wanted=length)
    return tokens
