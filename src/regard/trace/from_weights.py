"""Records from given attention weights, which are validated first.

Scores that are mistaken for weights can be drawn just as well, so rows that do not sum to 1 are refused.
"""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from regard.arrays import Array, convert_like, is_tensor, to_numpy
from regard.axes import bin_width
from regard.errors import ArgumentError, DtypeError
from regard.exact_weights import ExactWeights, WeightsArray
from regard.messages import Listed
from regard.records import Kind, Record, See
from regard.statistics_table import STATISTICS
from regard.trace.pooling import pool

KINDS: tuple[Kind, ...] = get_args(Kind)
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_ROUNDING = {"bfloat16": 2.0**-7, "float16": 2.0**-8}
"""Tolerance of the sum of a row, because each of its weights was rounded."""
_MEAN = ".mean"


def record_from_weights(
    weights: Any,
    queries: Any = None,
    keys: Any = None,
    *,
    name: str = "attention",
    kind: Kind = "self",
    map: int | None = 256,
) -> Record:
    """The Record of weights (T, S), (H, T, S), (B, H, T, S), or with more axes that count samples.

    Raises DtypeError for other dtypes than floating point, and ArgumentError for a row that does not sum to 1.
    """
    if kind not in KINDS:
        raise ArgumentError("kind-unknown", asked=kind, kinds=Listed(KINDS))
    see = See(map=map)
    given, four = _four_axes(weights)
    _check(four, step=_ROUNDING.get(str(given.dtype).removeprefix("torch."), 0.0))
    B, H, T, S = four.shape
    kept = given.detach() if is_tensor(given) else given
    kept = kept.reshape(four.shape)
    record = Record(
        shape=(B, H, T, S),
        name=name,
        kind=kind,
        map=None if see.map is None else _map(four, kept, see.map),
        sink=convert_like(_sink(four), kept),
        exact=WeightsArray(kept),
    )
    if keys is None and T == S and kind != "cross":
        keys = queries
    return record.with_tokens(_listed(queries), _listed(keys))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MeanOfHeads(ExactWeights):
    """The mean of the heads of other weights, B 1 T S."""

    heads: ExactWeights
    lse: None = None

    def block(self, rows: slice, cols: slice) -> Array:
        return _mean(self.heads.block(rows, cols))

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.heads.arrays


def mean_of_heads(record: Record) -> Record:
    """The mean of all heads as a record of one head, whose name ends with ".mean".

    >>> mean_of_heads(record_from_weights(np.stack([np.eye(2), np.full((2, 2), 0.5)]))).weights()[0, 0]
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    linear = {one.name: getattr(record, one.name) for one in STATISTICS if one.linear}
    return Record(
        shape=(record.shape[0], 1, *record.shape[2:]),
        name=record.name + _MEAN,
        kind=record.kind,
        rest=record.rest,
        **{name: _mean(heads) for name, heads in linear.items() if heads is not None},
        query_tokens=record.query_tokens,
        key_tokens=record.key_tokens,
        written=record.written,
        prompt=record.prompt,
        padding=record.padding,
        images=record.images,
        exact=None if record.exact is None else MeanOfHeads(record.exact),
    )


def is_mean(record: Record) -> bool:
    """Whether it is a mean of heads, by its name."""
    return record.shape[1] == 1 and record.name.endswith(_MEAN)


def without_mean(name: str) -> str:
    """The name of the record from which the mean was computed.

    >>> without_mean("h.0.attn.mean")
    'h.0.attn'
    """
    return name.removesuffix(_MEAN)


def _mean(heads: Array) -> Array:
    """B H … to B 1 …"""
    return heads.mean(1)[:, None]


def is_layers(weights: Any) -> bool:
    """Whether these are the weights of several layers, a list of arrays (B, H, T, S).

    >>> is_layers((np.ones((1, 2, 1, 1)),)), is_layers(np.ones((1, 1, 2, 1, 1))), is_layers([[1.0]])
    (True, False, False)
    """
    return (
        isinstance(weights, tuple | list)
        and len(weights) > 0
        and all(len(getattr(each, "shape", ())) == 4 for each in weights)
    )


def _four_axes(weights: Any) -> tuple[Array, np.ndarray]:
    """The weights as given, and as a NumPy array B H T S."""
    try:
        given: Any = weights if is_tensor(weights) else np.asarray(weights)
    except ValueError:  # a list whose rows differ in length
        raise DtypeError("not-an-array", name="weights", found=type(weights).__name__) from None
    if str(given.dtype).removeprefix("torch.") in ("bool", "int8", "int16", "int32", "int64", "uint8"):
        given = given.float() if is_tensor(given) else given.astype(np.float64)  # an identity or a permutation
    if str(given.dtype).removeprefix("torch.") not in _FLOATS:
        raise DtypeError("float-wanted", name="weights", dtype=given.dtype)
    shape = tuple(given.shape)
    if len(shape) < 2:
        raise ArgumentError("weights-axes", found=shape)
    lead = (1,) * max(0, 4 - len(shape)) + shape[:-2]
    samples = 1
    for size in lead[:-1]:
        samples *= size
    return given, to_numpy(given).reshape(samples, lead[-1], *shape[-2:])


def _check(weights: np.ndarray, step: float) -> None:
    """Raise ArgumentError unless every row sums to 1 or is all 0. Some queries may be NaN, but not all."""
    if not weights.size:
        return
    tolerance = max(1e-3, step)
    with np.errstate(invalid="ignore"):  # inf - inf in a row of scores needs no warning: its sum is refused below
        sums = weights.sum(-1, dtype=np.float64)  # B H T
    if np.isnan(sums).all():
        raise ArgumentError("weights-all-nan", found=weights.shape)
    empty = ~weights.any(-1)
    wrong = np.argwhere((np.abs(sums - 1) > tolerance) & ~empty)
    if len(wrong):
        row = tuple(int(i) for i in wrong[0])
        raise ArgumentError("weights-row-sum", row=row, sum=float(sums[row]))
    lowest = np.fmin.reduce(weights, axis=-1)
    wrong = np.argwhere(lowest < -tolerance)
    if len(wrong):
        row = tuple(int(i) for i in wrong[0])
        raise ArgumentError("weights-negative", row=row, value=float(lowest[row]))


def _map(weights: np.ndarray, like: Array, bins: int) -> Array:
    """The map, in the caller's array type; the weights themselves where they fit."""
    T, S = weights.shape[-2:]
    if max(T, S) <= bins:
        return like
    counted = weights.any(-1).astype(int)
    return convert_like(pool(weights, counted, bin_width(T, bins), bin_width(S, bins))[0], like)


def _sink(weights: np.ndarray) -> np.ndarray:
    """B H, the mean weight of the first key over the queries that are not fully masked; 0 where there are none."""
    if not weights.size:
        return np.zeros(weights.shape[:2])
    counted = weights.any(-1).sum(-1)  # B H
    return weights[..., 0].sum(-1, dtype=np.float64) / np.maximum(counted, 1)


def _listed(tokens: Any) -> Any:
    return tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
