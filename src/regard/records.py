"""What to record of attention (`See`), the record of one call (`Record`), and the signature of attention (`Attend`).

A Record holds arrays of the caller's type, and nothing T × S that was not requested. It is independent of how it was
computed: `exact` computes rectangles of weights, from whatever the call left behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from regard.arrays import Array, concatenated, is_integer, is_tensor
from regard.axes import Shape, in_range, plain_slice
from regard.errors import ArgumentError, NotKeptError
from regard.exact_weights import ExactWeights
from regard.images import RecordImage, Side, record_image, with_pictures
from regard.masks.padding import Padding
from regard.memory import free_gpu_bytes, require_bytes
from regard.statistics_table import REQUESTS, STATISTICS

Kind = Literal["encoder", "decoder", "cross", "self"]
Rest = Literal["", "sink", "masked", "scaled", "mixed", "summaries", "relevance", "unknown"]
"""Why rows of weights do not sum to 1: `Record.rest`."""
Positions = int | slice | range | None

CHECK_MEMORY_FROM = 2**24
"""Number of weights from which free memory is checked first: 64 MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class See:
    """What a Record should hold. Fields that are not requested stay None.

    map       the largest number of bins along each axis; None for no map
    lse       the log of the sum of exponentials, per query
    max_score the largest score, per query
    entropy   in nats, per query
    received  the attention that each key received: the column sums
    top       the number of top keys of each query to keep, with their weights; None for none
    sink      the mean weight of the first key, which often receives attention that no other key needs
    distance  the share of attention by the distance between query and key
    values    the norm of the vector that each key contributes: ‖v W_o‖ where the projection is known, else ‖v‖
    outputs   the output of each head, before the output projection: a copy of what the call computed
    qk        keep q and k, so that any rectangle of exact weights can be computed later
    v         with qk, keep v too, so that the output of a query can be shown with the weights it is made of

    How it is computed:

    fused           where no gradient is needed, `watch` may replace a model's fused attention on a GPU by our own
                    kernel, which computes the statistics in the same pass. This is faster, and the model's output may
                    differ in its last bits. `Record.fused` reports it. `attend` always does this.
    differentiable  gradients flow through the map, the LSE and the entropy that `attend` returns, so that attention
                    itself can be trained. Gradients never flow through max_score, received, top, sink, distance,
                    values and outputs.
    """

    map: int | None = 256
    lse: bool = True
    max_score: bool = False
    entropy: bool = False
    received: bool = False
    top: int | None = None
    sink: bool = True
    distance: bool = False
    values: bool = False
    outputs: bool = False
    qk: bool = False
    v: bool = False
    fused: bool = False
    differentiable: bool = False

    def __post_init__(self) -> None:
        for name in ("map", "top"):
            value = getattr(self, name)
            if value is not None and not (is_integer(value) and value >= 1):
                raise ArgumentError("see-count", name=name, value=value)
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError("see-switch", name=name, value=value)
        if self.v and not self.qk:
            raise ArgumentError("see-v-alone")

    @property
    def is_empty(self) -> bool:
        """Whether nothing is requested."""
        # The defaults first, which need no loop: this is checked for every call of a watched model.
        return not (self.map or self.lse or self.qk or any(getattr(self, name) for name in REQUESTS))


_SWITCHES = tuple(field.name for field in fields(See) if isinstance(field.default, bool))


class Attend(Protocol):
    """The function by which a model computes attention: passed in, so that a model is independent of its recording.

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
    """The top keys of each query, largest weight first, of equal weights the earlier key. Both B H T k, k at most S."""

    indices: Array
    weights: Array


class Statistics(NamedTuple):
    """The statistics that a backend computed with the output; B H first. Fields that were not requested are None."""

    map: Array | None = None
    lse: Array | None = None
    max_score: Array | None = None
    entropy: Array | None = None
    received: Array | None = None
    top: Top | None = None
    sink: Array | None = None
    distance: Array | None = None
    sink_mass: Array | None = None


class DecodeStep(NamedTuple):
    """How a call continues the previous call of its module, in generation token by token with a cache.

    start    the number of tokens before this call's own
    parents  for each sample, the sample of the previous call that it continues (beam search reorders samples); empty
             where the previous call was not recorded, as when `watch` begins in the middle of a text
    """

    start: int
    parents: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Record:
    """The statistics of one attention call. B samples, H heads, T queries, S keys.

    map       B H R C: the weights summed over the keys of a bin, averaged over the queries of a bin; where T and S
              are at most `See.map`, the weights themselves. Fully masked queries are left out of the mean.
    lse       B H T, -inf for a query that is fully masked or padding
    max_score B H T, the largest score of a visible key after scale, softcap and bias, in float32 for half precision;
              -inf for a query that is fully masked or padding. exp(max_score − lse) is the largest weight. Where the
              model computed its own softmax, it is computed from the largest weight and the LSE, or None if those do
              not belong together
    entropy   B H T, nats; where there is a `sink_mass`, it is included
    received  B H S, column sums
    top       indices and weights, B H T k
    sink      B H, the mean weight of the first key
    distance  B H D, the share of the weight at distance |query − key| of 0, 1, 2–3, 4–7, …; the last query is aligned
              with the last key
              Both are means over the queries that are not fully masked, and 0 where there are none.
    value_norms  B H S, the norm of the vector that each key contributes at weight 1
    outputs   B H T Ev, the output of each head before the output projection, as the call computed it, dropout included;
              0 for padding
    sink_mass B H T, the share of each query's attention that goes to no key: to a learned sink logit, to the 1 of
              "softmax plus one", to a key of zeros or a key that the module has learned. With it a row sums to 1. None
              where all attention goes to keys

    Padding counts in none of these: its queries have no weights, as if fully masked, the first key is the first of the
    text, and the last query of the text is aligned with its last key. `padding` holds what is known of it.
    """

    shape: Shape
    """(B, H, T, S)"""
    name: str = "attention"
    kind: Kind = "self"
    map: Array | None = None
    lse: Array | None = None
    max_score: Array | None = None
    entropy: Array | None = None
    received: Array | None = None
    top: Top | None = None
    sink: Array | None = None
    distance: Array | None = None
    value_norms: Array | None = None
    outputs: Array | None = None
    sink_mass: Array | None = None
    query_tokens: tuple[tuple[str, ...], ...] | None = None
    """The tokens at the queries, one tuple per sample (or one for all)."""
    key_tokens: tuple[tuple[str, ...], ...] | None = None
    """The tokens at the keys, in the same form."""
    written: tuple[tuple[str, ...], ...] | None = None
    """The token that each query generates, which is read one position later: one tuple per sample (or one for all). ""
    for a query that generated nothing, or whose token is unknown; None where no generated token is known."""
    step: DecodeStep | None = None
    """How this call continues the previous one; None where it starts a new text."""
    ids: Array | None = None
    """The ids of the tokens at the queries, B T, as NumPy."""
    prompt: int | None = None
    """The number of queries of the first call, for a text that was stitched from several calls."""
    padding: Padding | None = None
    """Which queries and keys are text, where a mask or ids show that some are padding."""
    fused: bool = False
    """Whether the model continued with the output of our kernel, as `See(fused=True)` allows."""
    rest: Rest = ""
    """Why rows do not sum to 1: part of the softmax goes to a sink that is no key ("sink") or to summaries of blocks
    ("summaries"), the weights were masked, scaled or mixed across heads after the softmax, or they are not weights but
    their relevance (`Trace.relevance`); "" where they do."""
    exact: ExactWeights | None = None
    """What exact weights are computed from (q, k, …), which a trace file stores; None where nothing was kept."""
    images: tuple[RecordImage, ...] = ()
    """The pictures whose patches are among the queries or keys: found by `watch`, or given to `with_image`."""

    def __repr__(self) -> str:
        """Name, kind, B H T S and the names of the fields; the arrays themselves would be too long."""
        kept = [one.name for one in STATISTICS if getattr(self, one.name) is not None]
        kept += [] if self.exact is None else ["qk"]
        notes = (", fused" if self.fused else "") + (f", rest={self.rest!r}" if self.rest else "")
        return f"Record({self.name!r}, {self.kind}, shape={self.shape}{notes}, holds: {', '.join(kept) or 'nothing'})"

    @property
    def map_is_exact(self) -> bool:
        """Whether the map has a bin for every query and key, so that it is the weights themselves."""
        return self.map is not None and tuple(self.map.shape[-2:]) == tuple(self.shape[-2:])

    @property
    def has_weights(self) -> bool:
        """Whether `weights` can compute exact weights."""
        return self.exact is not None or self.map_is_exact

    @property
    def module(self) -> str:
        """The name without the number that a Trace adds for later calls."""
        return self.name.partition("#")[0]

    def weights(self, rows: Positions = None, cols: Positions = None, head: int | None = None) -> Array:
        """The exact weights of a rectangle, B H rows cols, computed now from the kept q, k and LSE.

        `rows` and `cols` are slices or ranges without a step. As in NumPy, positions outside are left out, so a
        rectangle that lies outside is empty. An integer selects one position, from the end if it is negative, and
        removes its axis, as `head` removes the axis of heads: `weights(rows=5, head=2)` is B S.
        Raises ArgumentError for an index out of range, and NotKeptError with the fix where q and k were not kept.
        """
        _, H, T, S = self.shape
        one_of = {-1: (cols, "cols", S), -2: (rows, "rows", T), -3: (head, "head", H)}
        chosen = {axis: in_range(name, at, n) for axis, (at, name, n) in one_of.items() if is_integer(at)}
        if head is not None and -3 not in chosen:
            raise ArgumentError("choice-range", what="head", asked=head, last=H - 1)
        high, wide = (
            slice(chosen[axis], chosen[axis] + 1) if axis in chosen else plain_slice(part, length)  # type: ignore[arg-type]
            for axis, part, length in ((-2, rows, T), (-1, cols, S))
        )
        found = self._rectangle(high, wide, chosen.get(-3))
        for axis in chosen:  # the last axis first, so that the others keep their numbers
            found = found[(slice(None),) * (4 + axis) + (0,)]
        return found

    def _rectangle(self, rows: slice, cols: slice, head: int | None = None) -> Array:
        """The weights of all heads, or of one without computing the others; B H rows cols."""
        B, H = self.shape[:2]
        if self.exact is not None:
            shape = (B, H if head is None else 1, rows.stop - rows.start, cols.stop - cols.start)
            if prod(shape) > CHECK_MEMORY_FROM:
                require_bytes(4 * prod(shape), key="weights-too-large", shape=shape, free=self._free_on_gpu())
            if head is None or H == 1 or not B:
                return self.exact.block(rows, cols)[:, : 1 if head is not None else H]
            return concatenated([self.exact.of_head(sample, head).block(rows, cols) for sample in range(B)])
        if self.map is not None and self.map_is_exact:
            heads = slice(None) if head is None else slice(head, head + 1)
            return self.map[:, heads, rows, cols]
        raise NotKeptError("weights-not-kept", name=self.name, T=self.shape[-2], S=self.shape[-1])

    def with_outputs(self) -> "Record":
        """A copy that has `outputs`; where they were not recorded, they are computed from exact weights and values.

        NotKeptError with the fix where neither `See(outputs=True)` nor `See(qk=True, v=True)` was recorded.
        """
        return self if self.outputs is not None else self.changed(outputs=self._computed_outputs())

    def _computed_outputs(self) -> Array:
        values = None if self.exact is None else self.exact.values
        if self.exact is None or values is None:
            raise NotKeptError("outputs-not-kept", name=self.name)
        B, H, T, S = self.shape
        high = max(1, CHECK_MEMORY_FROM // max(1, B * H * S))
        parts = []
        for start in range(0, max(1, T), high):
            weights = self.exact.block(slice(start, min(T, start + high)), slice(0, S))
            exact = values.to(weights.dtype) if is_tensor(values) else values.astype(weights.dtype)
            grouped = weights.reshape(B, values.shape[1], -1, S)  # the heads of a group share its values
            parts.append((grouped @ exact).reshape(B, H, -1, values.shape[-1]))
        return parts[0] if len(parts) == 1 else concatenated(parts, axis=2)

    def _free_on_gpu(self) -> int | None:
        """Free memory of the GPU that this Record is on; None where it is not on a GPU."""
        held = () if self.exact is None else self.exact.arrays
        free = map(free_gpu_bytes, (*held, self.lse, self.map, self.sink))
        return next((count for count in free if count is not None), None)

    def named(self, name: str, kind: Kind | None = None) -> "Record":
        """A copy under another name."""
        return self.changed(name=name, kind=kind or self.kind)

    def changed(self, **fields: Any) -> "Record":
        """A copy with other values in these fields; faster than `dataclasses.replace`.

        >>> Record(shape=(1, 1, 2, 2)).changed(name="h.0").name
        'h.0'
        """
        made = object.__new__(Record)
        made.__dict__.update(self.__dict__, **fields)
        return made

    def with_tokens(self, queries: Any = None, keys: Any = None, written: Any = None) -> "Record":
        """A copy with tokens; one list for all samples, or a list of lists."""
        B, _, T, S = self.shape
        return replace(
            self,
            query_tokens=_tokens(queries, B, T, "queries") or self.query_tokens,
            key_tokens=_tokens(keys, B, S, "keys") or self.key_tokens,
            written=_tokens(written, B, T, "written") or self.written,
        )

    def with_image(
        self, pixels: Any, grid: tuple[int, int], *, first: int = 0, side: Side = "keys", name: str = ""
    ) -> "Record":
        """A copy with a picture that a vision model read, and the grid of its patches, rows × columns.

        pixels   (height, width, 3), floats from 0 to 1 or bytes, NumPy or torch; the bytes of a PNG file; or the path
                 of a picture
        first    the position of the first patch: 1 behind a class token
        side     whether the patches are the "keys", the "queries" or "both"

        It replaces a picture at the same positions. Raises ArgumentError where the patches do not fit in the record.
        """
        image = record_image(pixels, grid, first, side, name)
        image.check(*self.shape[2:])
        return self.changed(images=with_pictures(self.images, image))


def tokens_of(rows: tuple[tuple[str, ...], ...], sample: int) -> tuple[str, ...]:
    """The tokens of one sample, from one tuple per sample or one for all.

    >>> tokens_of((("I", "see"),), 3), tokens_of((("I", "see"), ("you", "do")), 1)
    (('I', 'see'), ('you', 'do'))
    """
    return rows[sample if len(rows) > 1 else 0]


def next_tokens(rows: Sequence[Sequence[str]], last: Sequence[str] | None = None) -> tuple[tuple[str, ...], ...]:
    """The token that follows each token of some texts: what its query generates, where the whole text is given.

    last    the token after the last one of each text; "" where it is unknown. Padding, "", is followed by "".

    >>> next_tokens([("<bos>", "我", "爱")], ["<eos>"]), next_tokens([("a", "b", "")])
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
    given = given.tolist() if hasattr(given, "tolist") else given  # ids in an array
    rows = list(given) if len(given) and isinstance(given[0], list | tuple) else [given]
    tokens = tuple(tuple(str(token) for token in row) for row in rows)
    if len(tokens) not in (1, samples):
        raise ArgumentError("tokens-samples", side=side, found=len(tokens), B=samples)
    for row in tokens:
        if len(row) != length:
            raise ArgumentError("tokens-count", side=side, found=len(row), wanted=length)
    return tokens
