"""See: what to look at. Record: what one attention call left behind. Attend: how a model calls attention.

A Record holds the caller's kind of array and never anything T × S that was not asked for. It knows nothing of how
it was computed: exact rectangles come from a function that the backend leaves with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from regard.arrays import Array, is_whole
from regard.axes import Shape, in_range, part_of
from regard.errors import ArgumentError, NotKeptError
from regard.memory import free_beside, require
from regard.padding import Padding

Kind = Literal["encoder", "decoder", "cross", "self"]
Rest = Literal["", "sink", "masked", "scaled", "mixed", "summaries", "unknown"]
"""Why rows of weights do not sum to 1: `Record.rest`."""
Positions = int | slice | range | None
Rectangle = Callable[[slice, slice], Array]
"""Exact weights of rows × cols, B H rows cols."""

_SWITCHES = ("lse", "entropy", "received", "sink", "distance", "values", "qk", "fused", "differentiable")
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
    sink      the share of the first key, on which much attention rests that has nowhere to go
    distance  how far attention reaches: its shares by the distance of query and key
    values    how long a vector each key adds where it is looked at: ‖v W_o‖ where the projection is known, else ‖v‖
    qk        keep q and k, so that any rectangle of exact weights can be had later

    And how it may be had:

    fused           where no gradient is wanted, `watch` may answer a model's fused attention on a GPU by a pass of our
                    own that looks on the way: quicker than looking afterwards, and the model's output may differ in
                    its last bits. `Record.fused` tells where it was so. `attend` does it anyway.
    differentiable  gradients flow through the map, the LSE and the entropy that `attend` gives: to train what attention
                    looks at. Through the rest, which are received, top, sink, distance and values, none ever do.
    """

    map: int | None = 256
    lse: bool = True
    entropy: bool = False
    received: bool = False
    top: int | None = None
    sink: bool = True
    distance: bool = False
    values: bool = False
    qk: bool = False
    fused: bool = False
    differentiable: bool = False

    def __post_init__(self) -> None:
        for name in ("map", "top"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= 1):
                raise ArgumentError("see-count", name=name, value=value)
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError("see-switch", name=name, value=value)

    @property
    def nothing(self) -> bool:
        """Whether nothing at all is asked for."""
        asked = self.map or self.lse or self.sink or self.entropy or self.received or self.top
        return not (asked or self.distance or self.values or self.qk)


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
    sink: Array | None = None
    distance: Array | None = None
    sink_mass: Array | None = None


class Step(NamedTuple):
    """How a call goes on from its module's call before: a text that is written token by token, with a cache.

    start    how many tokens came before this call's own
    parents  for each sample, the sample of the call before whose text it continues: beams change places; empty where
             no call before was seen, as when one begins to watch in the middle of a text
    """

    start: int
    parents: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record:
    """What one attention call left behind. B samples, H heads, T queries, S keys.

    map       B H R C: the weights summed over the keys of a bin, averaged over the queries of a bin; where T and S
              are at most `See.map`, the weights themselves. Queries that see nothing are left out of the mean.
    lse       B H T, -inf for a query that sees nothing, or is padding
    entropy   B H T, nats; where there is a `sink_mass`, of the keys and of that
    received  B H S, column sums
    top       indices and weights, B H T k
    sink      B H, the mean weight of the first key
    distance  B H D, the share of the weight at distance |query − key| of 0, 1, 2–3, 4–7, …; the last query stands at
              the last key
              Both are means over the queries that see something, and 0 where none does.
    values    B H S, the length of the vector that each key adds where it is looked at with weight 1
    sink_mass B H T, the share of each query's attention that went to no key: to a learned sink logit, to the 1 of
              "softmax plus one", to a key of zeros or one that the module has learned. With it a row sums to 1. None
              where all attention goes to keys

    Padding counts in none of these: its queries have no weights, as if they saw nothing, the first key is the first
    of the text, and the last query of the text stands at its last key. `padding` says what was known of it.
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
    sink: Array | None = None
    distance: Array | None = None
    values: Array | None = None
    sink_mass: Array | None = None
    queries: tuple[tuple[str, ...], ...] | None = None
    """The tokens that look, one tuple per sample (or one for all)."""
    keys: tuple[tuple[str, ...], ...] | None = None
    """The tokens that are looked at."""
    written: tuple[tuple[str, ...], ...] | None = None
    """The token that each query writes, which is read one position later: one tuple per sample (or one for all). "" for
    a query that wrote nothing, or whose token is unknown; None where no query of the record is known to write."""
    step: Step | None = None
    """Where this call goes on from the one before; None where it begins anew."""
    ids: Array | None = None
    """The ids of the tokens that look, B T, as NumPy."""
    prompt: int | None = None
    """Of a text put together from many calls: how many queries the first of them had."""
    padding: Padding | None = None
    """Which queries and keys are text, where a mask or ids told that some are not."""
    fused: bool = False
    """Whether the output that the model went on with was ours, as `See(fused=True)` allows."""
    rest: Rest = ""
    """Why rows do not sum to 1: part of the softmax went to a sink that is no key ("sink") or to summaries of blocks
    ("summaries"), or the weights were masked, scaled, or mixed with those of other heads after it; "" where they do."""
    rectangle: Rectangle | None = field(default=None, repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """What the rectangle is computed from (q, k, …), for those who save a Record."""

    def __repr__(self) -> str:
        """Name, kind, B H T S, and which fields there are: arrays themselves would flood a screen."""
        fields = ("map", "lse", "entropy", "received", "top", "sink", "distance", "values", "sink_mass")
        kept = [name for name in fields if getattr(self, name) is not None] + (["qk"] if self.rectangle else [])
        told = (", fused" if self.fused else "") + (f", rest={self.rest!r}" if self.rest else "")
        return f"Record({self.name!r}, {self.kind}, shape={self.shape}{told}, holds: {', '.join(kept) or 'nothing'})"

    @property
    def map_is_exact(self) -> bool:
        """Whether the map has a bin for every query and key, and so is the weights themselves."""
        return self.map is not None and tuple(self.map.shape[-2:]) == tuple(self.shape[-2:])

    @property
    def has_weights(self) -> bool:
        """Whether `weights` can give what it is asked for."""
        return self.rectangle is not None or self.map_is_exact

    @property
    def module(self) -> str:
        """The name without the number that a Trace gives to later calls."""
        return self.name.partition("#")[0]

    def weights(self, rows: Positions = None, cols: Positions = None, head: int | None = None) -> Array:
        """The exact weights of a rectangle, B H rows cols, computed now from the kept q, k and LSE.

        `rows` and `cols` are slices or ranges without a step. They cut as NumPy's do: what lies outside is left out,
        so that a rectangle wholly outside is empty. A whole number is one of them, from the end where it is negative,
        and its axis goes, as does that of the heads where one is named: `weights(rows=5, head=2)` is B S.
        Raises ArgumentError for what is not there, NotKeptError with the fix when nothing was kept to compute it from.
        """
        _, H, T, S = self.shape
        one_of = {-1: (cols, "cols", S), -2: (rows, "rows", T), -3: (head, "head", H)}
        chosen = {axis: in_range(name, at, n) for axis, (at, name, n) in one_of.items() if is_whole(at)}
        if head is not None and -3 not in chosen:
            raise ArgumentError("choice-range", what="head", asked=head, last=H - 1)
        high, wide = (
            slice(chosen[axis], chosen[axis] + 1) if axis in chosen else part_of(part, length)  # type: ignore[arg-type]
            for axis, part, length in ((-2, rows, T), (-1, cols, S))
        )
        found = self._rectangle(high, wide)
        for axis in chosen:  # the last first: the others keep their places
            found = found[(slice(None),) * (4 + axis) + (chosen[axis] if axis == -3 else 0,)]
        return found

    def _rectangle(self, rows: slice, cols: slice) -> Array:
        if self.rectangle is not None:
            shape = (*self.shape[:2], rows.stop - rows.start, cols.stop - cols.start)
            if prod(shape) > WORTH_ASKING:
                require(4 * prod(shape), key="weights-too-large", shape=shape, free=self._free_on_gpu())
            return self.rectangle(rows, cols)
        if self.map is not None and self.map_is_exact:
            return self.map[..., rows, cols]
        raise NotKeptError("weights-not-kept", name=self.name, T=self.shape[-2], S=self.shape[-1])

    def _free_on_gpu(self) -> int | None:
        """Free memory of the GPU that this Record is on; None where it is on none."""
        free = map(free_beside, (*self.kept.values(), self.lse, self.map, self.sink))
        return next((count for count in free if count is not None), None)

    def named(self, name: str, kind: Kind | None = None) -> "Record":
        """The same under another name."""
        return self.changed(name=name, kind=kind or self.kind)

    def changed(self, **fields: Any) -> "Record":
        """The same with other values in these fields; quicker than `dataclasses.replace`.

        >>> Record(shape=(1, 1, 2, 2)).changed(name="h.0").name
        'h.0'
        """
        made = object.__new__(Record)
        made.__dict__.update(self.__dict__, **fields)
        return made

    def with_tokens(self, queries: Any = None, keys: Any = None, written: Any = None) -> "Record":
        """The same with tokens; one list for all samples, or a list of lists."""
        B, _, T, S = self.shape
        return replace(
            self,
            queries=_tokens(queries, B, T, "queries") or self.queries,
            keys=_tokens(keys, B, S, "keys") or self.keys,
            written=_tokens(written, B, T, "written") or self.written,
        )


def tokens_of(rows: tuple[tuple[str, ...], ...], sample: int) -> tuple[str, ...]:
    """The tokens of one sample, from one tuple per sample or one for all.

    >>> tokens_of((("I", "see"),), 3), tokens_of((("I", "see"), ("you", "do")), 1)
    (('I', 'see'), ('you', 'do'))
    """
    return rows[sample if len(rows) > 1 else 0]


def following(rows: Sequence[Sequence[str]], last: Sequence[str] | None = None) -> tuple[tuple[str, ...], ...]:
    """What each token of some texts is followed by: what the query that read it writes, when a text is given whole.

    last    what follows the last token of each text; "" where that is unknown. Padding, "", is followed by nothing.

    >>> following([("<bos>", "我", "爱")], ["<eos>"]), following([("a", "b", "")])
    ((('我', '爱', '<eos>'),), (('b', '', ''),))
    """
    ends = [""] * len(rows) if last is None else last
    return tuple(
        tuple(after if token else "" for token, after in zip(row, (*row[1:], end), strict=True))
        for row, end in zip(rows, ends, strict=True)
    )


def _tokens(given: Any, samples: int, length: int, side: str) -> tuple[tuple[str, ...], ...] | None:
    if given is None:
        return None
    given = given.tolist() if hasattr(given, "tolist") else given  # ids, as a model reads them
    rows = list(given) if len(given) and isinstance(given[0], list | tuple) else [given]
    tokens = tuple(tuple(str(token) for token in row) for row in rows)
    if len(tokens) not in (1, samples):
        raise ArgumentError("tokens-samples", side=side, found=len(tokens), B=samples)
    for row in tokens:
        if len(row) != length:
            raise ArgumentError("tokens-count", side=side, found=len(row), wanted=length)
    return tokens
