"""What a mask tells of padding: keys that no query may look at, and the queries that stand at them.

Read off the rules where these name keys (`Mask.padding`, `Mask.from_keep`, `Mask.prefix`), else off the columns of a
boolean array or of a bias. A key that only its place hides, as a causal mask or a window does, is no padding.
"""

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing
from regard.axes import Shape
from regard.masks.bound import BoundMask
from regard.masks.combined import Both
from regard.masks.rules import Band, Dense, Frame, OfKeys, Rule
from regard.padding import Padding

HIDDEN = -9e3
"""A score this low was hidden by a number that was added: the usual ones are −10,000 and lower, down to −∞."""

LAST = 5
"""Keys at the end that are looked at for padding: more than one, as learned sinks may stand behind all keys."""


def padding_of(mask: BoundMask | None, bias: Array | None, shape: Shape, across: bool) -> Padding | None:
    """What the mask and the bias of a call tell, B H T S; None where there is nothing, or surely no padding.

    across   queries and keys are two texts, so that padding among the keys says nothing of the queries

    On a GPU nothing is waited for: there the answer may hold no padding at all.
    """
    B, _, T, S = shape
    if (mask is None and bias is None) or not (B and T and S):
        return None
    keys, offset = (None, S - T) if mask is None else _by_rules(mask)
    if bias is not None:
        keys = both_known(keys, _by_bias(bias, S))
    if keys is None or _is_surely_all(keys):
        return None
    # A copy: the mask is the caller's, who may write over it.
    text: Array = keys.expand(B, S).clone() if is_tensor(keys) else np.array(np.broadcast_to(keys, (B, S)))
    text = text | ~text.any(1)[:, None]  # where nothing is seen, or all scores are low, nothing is told
    return Padding(queries_at(text, T, None if across or T > S else offset), text)


def queries_at(keys: Array, T: int, offset: int | None) -> Array | None:
    """Which of T queries are text, B T, where query i stands at key i + offset; None for all of them.

    Where none of their keys is text, the queries stand elsewhere, as those of a cache with room to spare.
    """
    if offset is None or offset < 0 or offset + T > keys.shape[-1]:
        return None
    own = keys[:, offset : offset + T]
    return own | ~own.any(1)[:, None]


def seen_in(columns: Array) -> Array | None:
    """Keys that some query sees, (…, S), by scores or biases (…, T, S); None where that is surely all of them.

    Padding stands at the ends: where the first and the last keys are seen, nothing more is read.
    """
    may_branch = not is_tensor(columns) or (columns.device.type == "cpu" and not is_tracing())
    if may_branch and all(bool((_highest(x) > HIDDEN).all()) for x in (columns[..., :1], columns[..., -LAST:])):
        return None
    return _highest(columns) > HIDDEN


def _highest(x: Array) -> Array:
    return x.amax(-2) if is_tensor(x) else x.max(-2)


def _by_rules(mask: BoundMask) -> tuple[Array | None, int]:
    """Keys that are text, (1 or B) S, and at which key query 0 stands."""
    rules: tuple[Rule, ...] = mask.rule.rules if isinstance(mask.rule, Both) else (mask.rule,)
    frame, offset = mask.frame, mask.frame.offset
    keys = None
    for rule in rules:
        match rule:
            case OfKeys():
                keys = both_known(keys, rule.keeps(frame)[:, 0])
            case Dense():
                keys = both_known(keys, _by_columns(rule.allowed, frame))
            case Band():
                offset = rule.offset(frame)
                keys = both_known(keys, _by_band(rule, frame))
    return keys, offset


def _by_band(band: Band, frame: Frame) -> Array | None:
    """Of a cache with room to spare, the keys that are written: none behind what the queries reach."""
    end = max(band.reach(frame, slice(0, frame.T))[1], band.offset(frame) + frame.T)
    return None if end >= frame.S else frame.positions(0, frame.S)[None] < end


def _by_columns(allowed: Array, frame: Frame) -> Array | None:
    """Of a boolean array, (1 or B) (1 or H) (1 or T) (1 or S)."""
    if allowed.shape[-1] != frame.S:
        return None
    seen = _any(allowed, (1, 2))
    if allowed.shape[2] == 1 or frame.T != frame.S:
        return seen
    # Where no query sees itself, as in a mask that hides each query's own key, its last key says nothing.
    diagonal = allowed.diagonal(0, -2, -1)
    return seen | ~_any(diagonal[..., None, :], (1, 2, 3))[:, None]


def _any(x: Array, axes: tuple[int, ...]) -> Array:
    if not is_tensor(x):
        return x.any(axes)
    import torch

    return x.view(torch.uint8).amax(axes).bool()  # forty times as fast as `any`


def _by_bias(bias: Array, S: int) -> Array | None:
    """Of numbers to be added, (1 or B) (1 or H) (1 or T) (1 or S): those of the first head tell."""
    if bias.shape[-1] != S:
        return None
    return seen_in(bias.detach()[:, 0] if is_tensor(bias) else bias[:, 0])


def both_known(one: Array | None, other: Array | None) -> Array | None:
    """What is text by both; None says nothing."""
    return other if one is None else one if other is None else one & other


def _is_surely_all(keys: Array) -> bool:
    if is_tensor(keys) and (keys.device.type != "cpu" or is_tracing()):
        return False
    return bool(keys.all())
