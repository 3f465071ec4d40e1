"""The outline of what a record looks at: which keys, and how far before and behind, read off the weights alone.

A softmax gives some weight to every key that it may look at, so zeros tell of a mask. Weights that were laid by hand
have zeros for other reasons: what does not fit a mask of the usual forms is not taken for one.
"""

from typing import NamedTuple

import numpy as np

from regard.records import Record
from regard.trace.measures.blocks import blocks, is_across, places

_MOST = 1024
"""Rows looked at, of a long text."""


class Outline(NamedTuple):
    """Of each sample: a query sees the kept keys from `left` places before it to `right` places behind it."""

    left: np.ndarray
    """B"""
    right: np.ndarray
    """B"""
    keep: np.ndarray
    """B S"""

    def of(self, at: np.ndarray) -> np.ndarray:
        """B r S: what the queries at some places, r, see."""
        keys, here = np.arange(self.keep.shape[-1]), at[:, None]
        near = (keys >= here - self.left[:, None, None]) & (keys <= here + self.right[:, None, None])
        return near & self.keep[:, None]


class _Rows(NamedTuple):
    """Some rows of one sample, each with its place, and the first, last and number of its keys."""

    at: np.ndarray
    first: np.ndarray
    last: np.ndarray
    number: np.ndarray
    seen: np.ndarray
    """S: the keys at which any of them looks."""


_Form = tuple[int, int, np.ndarray]
"""left, right, keep"""


def outlined(record: Record) -> Outline:
    """What the weights of the record tell, for each sample. It needs exact weights.

    The usual forms are: all keys, or those not ahead, or, where the LSE tells that a softmax made the weights, those
    within a window; each without the keys of padding, at which nobody looks. They must fit every query exactly, and
    without a softmax leave two keys or more, side by side; else all keys count, and are hidden only ahead, if nobody
    looks there.

    Where no form fits, rows that are the same on all keys are passed over: a softmax answers so where a large negative
    number was to hide everything, as in Hugging Face's `eager`.
    """
    B, _, _, S = record.shape
    has_softmax, across = record.lse is not None or "lse" in record.kept, is_across(record)
    found = []
    for choices in _read(record):
        forms = [_fitting(rows, has_softmax, across) for rows in choices]
        found.append(next((form for form in forms if form is not None), None) or _usual(choices[-1], across))
    left, right, keep = zip(*found, strict=True) if B else ((), (), ())
    return Outline(np.array(left, int), np.array(right, int), np.array(keep, bool).reshape(B, S))


def _read(record: Record) -> list[list[_Rows]]:
    """For each sample its rows that look at anything; then, where some are the same on all keys, those that are not."""
    B, _, _, S = record.shape
    parts: list[list[np.ndarray]] = [[np.zeros((5, 0), int)] for _ in range(B)]  # each 5 r
    seen = np.zeros((2, B, S), bool)
    for block in blocks(record, _MOST) if S else ():
        on = np.any(block.weights, axis=1)  # B r S
        at = np.zeros(on.shape[1], int) if is_across(record) else places(record, block.rows)
        same = np.zeros(on.shape[:2], bool)
        if record.lse is None:  # it would have told already
            same = (block.weights.max(-1) == block.weights.min(-1)).all(1)
        seen |= np.stack([on.any(1), (on & ~same[..., None]).any(1)])
        first, last, number = on.argmax(-1), S - 1 - on[..., ::-1].argmax(-1), on.sum(-1)
        for b in range(B):
            parts[b].append(np.stack([at, first[b], last[b], number[b], same[b]])[:, on[b].any(-1)])
    found = []
    for b in range(B):
        rows = np.concatenate(parts[b], axis=1)
        others = rows[:, rows[-1] == 0]
        choices = [rows, others] if 0 < others.shape[1] < rows.shape[1] else [rows]
        found.append([_Rows(*each[:4], *seen[n : n + 1, b]) for n, each in enumerate(choices)])
    return found


def _usual(rows: _Rows, across: bool) -> _Form:
    """All keys, or all that are not ahead."""
    S = len(rows.seen)
    is_causal = not across and len(rows.at) > 1 and bool((rows.last <= rows.at).all())
    return S, 0 if is_causal else S, np.ones(S, bool)


def _fitting(rows: _Rows, has_softmax: bool, across: bool) -> _Form | None:
    """A form that fits all the rows, padding left out; None where there is none."""
    S = len(rows.seen)
    left, right, _ = _usual(rows, across)
    if has_softmax and not across and len(rows.at):
        left, right = int((rows.at - rows.first).max()), max(0, int((rows.last - rows.at).max()))
    low, high = np.clip(rows.at - left, 0, S), np.clip(rows.at + right + 1, 0, S)
    keep = rows.seen | _between(rows, low, high)
    kept = np.concatenate([[0], np.cumsum(keep)])
    fits = bool((kept[high] - kept[low] == rows.number).all())
    return (left, right, keep) if fits and (has_softmax or _is_text(keep)) else None


def _is_text(keep: np.ndarray) -> bool:
    """Whether the kept keys are two or more, side by side."""
    at = np.flatnonzero(keep)
    return len(at) > 1 and at[-1] - at[0] == len(at) - 1


def _between(rows: _Rows, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """S: keys of the text that none of these rows, each of which sees low … high, could have looked at."""
    S = len(rows.seen)
    edges = np.zeros(S + 1, int)
    np.add.at(edges, low, 1)
    np.add.at(edges, high, -1)
    keys = np.arange(S)
    within = (keys >= rows.first.min(initial=S)) & (keys <= rows.last.max(initial=-1))
    return within & (np.cumsum(edges)[:S] == 0)
