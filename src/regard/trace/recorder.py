"""Looking: an attend that remembers. Handed to a model, it answers every call and keeps the Record under its name.

It knows neither models nor decoding: which tokens a call was about is told afterwards, from the order of the calls.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from regard.arrays import Array
from regard.dispatch import attend as dispatched
from regard.errors import ArgumentError
from regard.records import Kind, Record, See, following
from regard.trace.trace import Trace

Rows = list[list[str]]
"""Tokens, one row per sample, or one row for all."""


class Looking:
    """An Attend whose records stand in `trace`: one for each run or generation that is to be looked at.

    see      what each Record holds
    attend   who computes: called like `regard.attend`, with `see=`

    >>> import numpy as np
    >>> x, look = np.eye(3)[None, None], Looking()
    >>> out = look(x, x, x, name="decoder.layers.0.self_attention", kind="decoder")
    >>> look.label(["I", "love", "you"])["0.self_attention"].keys
    (('I', 'love', 'you'),)
    """

    def __init__(self, see: See | None = None, attend: Callable[..., Any] = dispatched) -> None:
        self.see = See() if see is None else see
        self.attend = attend
        self.trace = Trace()

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
    ) -> Array:
        """softmax(q kᵀ · scale + bias) v, remembered.

        The output keeps its gradient; the Record holds none, but for map, LSE and entropy where `see.differentiable`.
        """
        out, record = self.attend(
            q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=self.see, kind=kind
        )
        self.trace.append(record.named(name, kind))
        return out

    def label(self, tokens: Any = None, source: Any = None, written: Any = None) -> Trace:
        """Name the tokens of all records, and give the Trace: one list, or one list per sample, padding included.

        `tokens` are what the decoder read (or an encoder without a decoder), in the order it read them, however many
        calls that took; the last may be missing from the calls, as a generation does not read what it writes last.
        `source` is what the encoder of a translator read. What is None stays without tokens.
        `written` is what the query of each of the `tokens` writes, "" where it writes nothing; of a translator it may
        be left out, as each query writes the next token.

        Samples must have kept their places and nothing may have been taken back: after a beam search, or in a session
        that went on from an earlier text, run the text once more under a new Looking.
        """
        text = _Text("tokens", tokens)
        after = _Text("written", written)
        if after.rows is None and text.rows is not None and any(record.kind == "cross" for record in self.trace):
            after.rows = [list(row) for row in following(text.rows)]
        if after.rows is not None and text.rows is not None:
            after.check_beside(text)
        alone = all(record.kind == "encoder" for record in self.trace)
        origin = text if source is None and alone else _Text("source", source)
        counts = sorted({record.shape[0] for record in self.trace})
        if len(counts) > 1:
            raise ArgumentError("label-samples", fewest=counts[0], most=counts[-1])
        totals: Counter[str] = Counter()
        for record in self.trace:
            totals[record.module] += record.shape[-2]
        ends: Counter[str] = Counter()
        labelled: list[Record] = []
        for record in self.trace:
            name, (T, S) = record.module, record.shape[-2:]
            ends[name] += T
            wrote = None
            if record.kind == "encoder":
                queries = keys = origin.whole(name, totals[name])
            else:
                text.check(name, totals[name], spare=1)
                if text.rows is not None and record.kind == "decoder" and ends[name] > S:
                    raise ArgumentError("label-cropped", name=record.name, S=S, end=ends[name])
                queries, wrote = text.until(ends[name], T), after.until(ends[name], T)
                keys = origin.whole(name, S) if record.kind == "cross" else text.until(ends[name], S)
            labelled.append(record.with_tokens(queries, keys, wrote))
        self.trace = Trace(labelled)
        return self.trace


class _Text:
    """Tokens as they were given, one row per sample or one for all. Without rows it labels nothing."""

    def __init__(self, side: str, given: Any) -> None:
        self.side = side
        self.rows: Rows | None = None if given is None else _rows(side, given)

    def check(self, name: str, wanted: int, spare: int = 0) -> None:
        """As many tokens as the module `name` had positions, or `spare` more."""
        if self.rows is not None and not 0 <= len(self.rows[0]) - wanted <= spare:
            raise ArgumentError("label-count", side=self.side, found=len(self.rows[0]), name=name, wanted=wanted)

    def check_beside(self, text: "_Text") -> None:
        """As many as `text` has, and of as many samples, or one row for all."""
        assert self.rows is not None
        assert text.rows is not None
        if len(self.rows[0]) != len(text.rows[0]):
            raise ArgumentError("label-written", found=len(self.rows[0]), wanted=len(text.rows[0]))

    def whole(self, name: str, wanted: int) -> Rows | None:
        """All tokens, just as many as the module had positions."""
        self.check(name, wanted)
        return self.rows

    def until(self, end: int, count: int) -> Rows | None:
        """The `count` tokens before `end`; a cache larger than what was read has places without a token."""
        if self.rows is None:
            return None
        return [[*row[max(0, end - count) : end], *[""] * max(0, count - end)] for row in self.rows]


def _rows(side: str, given: Any) -> Rows:
    given = given.tolist() if isinstance(given, np.ndarray) else given
    one = isinstance(given, list | tuple) and (len(given) == 0 or isinstance(given[0], str))
    rows = [given] if one else given
    listed = isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows)
    if not listed or not all(isinstance(token, str) for row in rows for token in row):
        raise ArgumentError("label-tokens", side=side)
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise ArgumentError("label-ragged", side=side, shortest=lengths[0], longest=lengths[-1])
    return list(rows)
