"""Padding: which positions of each sample are text; inferred from a mask, as keys that are masked for every query.

Padding counts in no statistic, as a query or as the first key: a text in a padded batch gives the same numbers as the
text alone. It is taken from the rules that select keys (`Mask.padding`, `Mask.from_keep`, `Mask.prefix`), else from the
columns of a boolean array or of a bias. A key that is masked only by its position, as by a causal mask or a
window, is not padding.
"""

from typing import NamedTuple

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing
from regard.axes import Shape
from regard.masks.bound import And, BoundMask
from regard.masks.rules import Band, Dense, Frame, KeyRule, Rule


class Padding(NamedTuple):
    """True for text, False for padding; None where all of it is text.

    queries  B T
    keys     B S
    """

    queries: Array | None = None
    keys: Array | None = None

    def first_keys(self) -> Array | None:
        """The first key of each text, B, 0 where there is none; None where all keys are text.

        >>> Padding(keys=np.array([[False, True, True], [True, True, False]])).first_keys().tolist()
        [1, 0]
        """
        if self.keys is None or not self.keys.shape[-1]:
            return None
        return (self.keys * 1).argmax(-1)  # torch has no argmax of booleans

    def offsets(self, T: int, S: int) -> Array | None:
        """The key at the position of query 0 of each text, B, if its last query is aligned with its last key.

        None where that is S − T for all of them, because no padding is known.

        >>> Padding(keys=np.array([[True, True, False], [True, True, True]])).offsets(1, 3).tolist()
        [1, 2]
        """
        if self.queries is None and self.keys is None:
            return None
        keys_end = S if self.keys is None else ends(self.keys)
        queries_end = T if self.queries is None else ends(self.queries)
        return keys_end - queries_end


def ends(text: Array) -> Array:
    """One past the last True of each row, B; 0 for a row without any.

    >>> ends(np.array([[True, False, True, False], [False] * 4])).tolist()
    [3, 0]
    """
    length = text.shape[-1]
    if is_tensor(text):
        import torch

        places = torch.arange(1, length + 1, device=text.device)
        return (text * places).amax(-1) if length else text.new_zeros(text.shape[:-1], dtype=torch.int64)
    return (text * np.arange(1, length + 1)).max(-1, initial=0)


def without_rows(x: Array, rows: Array | None, value: float, axes: int = 0) -> Array:
    """`x`, B H T and `axes` more axes, with `value` where `rows`, B T, is False; `x` itself where `rows` is None.

    >>> without_rows(np.ones((1, 1, 2)), np.array([[True, False]]), 0.0).tolist()
    [[[1.0, 0.0]]]
    """
    if rows is None:
        return x
    kept = rows[(slice(None), None, slice(None), *(None,) * axes)]
    if is_tensor(x):
        return x.masked_fill(~kept, value)
    return np.where(kept, x, np.asarray(value, x.dtype))


HIDDEN = -9e3
"""A score this low was masked by an added number: the usual ones are −10,000 and lower, down to −∞."""

LAST = 5
"""Keys at the end that are checked for padding: more than one, because learned sinks may follow all keys."""


def padding_of(mask: BoundMask | None, bias: Array | None, shape: Shape, across: bool) -> Padding | None:
    """The padding that the mask and the bias of a call show, B H T S; None where there certainly is none.

    across   queries and keys are two texts, so padding of the keys does not apply to the queries

    On a GPU values are not read: there the result may contain no padding at all.
    """
    B, _, T, S = shape
    if (mask is None and bias is None) or not (B and T and S):
        return None
    keys, offset = (None, S - T) if mask is None else _by_rules(mask)
    if bias is not None:
        keys = combine_known(keys, _by_bias(bias, S))
    if keys is None or _is_certainly_all(keys):
        return None
    # A copy: the caller may overwrite the mask.
    text: Array = keys.expand(B, S).clone() if is_tensor(keys) else np.array(np.broadcast_to(keys, (B, S)))
    text = text | ~text.any(1)[:, None]  # where everything is masked, or all scores are low, padding is unknown
    return Padding(queries_at(text, T, None if across or T > S else offset), text)


def queries_at(keys: Array, T: int, offset: int | None) -> Array | None:
    """Which of T queries are text, B T, where query i is at key i + offset; None for all of them.

    Where none of their keys is text, the queries are at other positions, as in a cache with free slots.
    """
    if offset is None or offset < 0 or offset + T > keys.shape[-1]:
        return None
    own = keys[:, offset : offset + T]
    return own | ~own.any(1)[:, None]


def visible_columns(columns: Array) -> Array | None:
    """Keys that are visible to some query, (…, S), by scores or biases (…, T, S); None where all certainly are.

    Padding is at the ends: where the first and the last keys are visible, the rest is not read.
    """
    may_branch = not is_tensor(columns) or (columns.device.type == "cpu" and not is_tracing())
    if may_branch and all(bool((_highest(x) > HIDDEN).all()) for x in (columns[..., :1], columns[..., -LAST:])):
        return None
    return _highest(columns) > HIDDEN


def _highest(x: Array) -> Array:
    return x.amax(-2) if is_tensor(x) else x.max(-2)


def _by_rules(mask: BoundMask) -> tuple[Array | None, int]:
    """Keys that are text, (1 or B) S, and the key at the position of query 0."""
    rules: tuple[Rule, ...] = mask.rule.rules if isinstance(mask.rule, And) else (mask.rule,)
    frame, offset = mask.frame, mask.frame.offset
    keys = None
    for rule in rules:
        match rule:
            case KeyRule():
                keys = combine_known(keys, rule.visible_keys(frame)[:, 0])
            case Dense():
                keys = combine_known(keys, _by_columns(rule.allowed, frame))
            case Band():
                offset = rule.offset(frame)
                keys = combine_known(keys, _by_band(rule, frame))
    return keys, offset


def _by_band(band: Band, frame: Frame) -> Array | None:
    """The written keys of a cache with free slots: none beyond the reach of the queries."""
    end = max(band.reach(frame, slice(0, frame.T))[1], band.offset(frame) + frame.T)
    return None if end >= frame.S else frame.positions(0, frame.S)[None] < end


def _by_columns(allowed: Array, frame: Frame) -> Array | None:
    """Keys that are text, by the columns of a boolean array, (1 or B) (1 or H) (1 or T) (1 or S)."""
    if allowed.shape[-1] != frame.S:
        return None
    visible = _any(allowed, (1, 2))
    if allowed.shape[2] == 1 or frame.T != frame.S:
        return visible
    # Where no query sees itself, as in a mask that masks each query's own key, a masked last key is not padding.
    diagonal = allowed.diagonal(0, -2, -1)
    return visible | ~_any(diagonal[..., None, :], (1, 2, 3))[:, None]


def _any(x: Array, axes: tuple[int, ...]) -> Array:
    if not is_tensor(x):
        return x.any(axes)
    import torch

    return x.view(torch.uint8).amax(axes).bool()  # forty times as fast as `any`


def _by_bias(bias: Array, S: int) -> Array | None:
    """Keys that are text, by the first head of a bias, (1 or B) (1 or H) (1 or T) (1 or S)."""
    if bias.shape[-1] != S:
        return None
    return visible_columns(bias.detach()[:, 0] if is_tensor(bias) else bias[:, 0])


def combine_known(one: Array | None, other: Array | None) -> Array | None:
    """Keys that are text by both; None means unknown."""
    return other if one is None else one if other is None else one & other


def _is_certainly_all(keys: Array) -> bool:
    if is_tensor(keys) and (keys.device.type != "cpu" or is_tracing()):
        return False
    return bool(keys.all())
