"""Recorder: computes every attention call of a model that it is passed to, and keeps the Record of each.

It is an Attend, and independent of models and of decoding: tokens are assigned afterwards, from the order of the calls.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from regard.arrays import Array
from regard.dispatch import attend as dispatched
from regard.errors import ArgumentError
from regard.records import Kind, Record, See, next_tokens
from regard.trace.trace import Trace

TokenRows = list[list[str]]
"""Tokens, one row per sample, or one row for all."""


class Recorder:
    """An Attend that keeps its records in `trace`. Use a new one for each run or generation.

    see      what each Record holds
    attend   the function that computes attention, called like `regard.attend` with `see=`

    >>> import numpy as np
    >>> x, recorder = np.eye(3)[None, None], Recorder()
    >>> out = recorder(x, x, x, name="decoder.layers.0.self_attention", kind="decoder")
    >>> recorder.label(["I", "love", "you"])["0.self_attention"].key_tokens
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
        """softmax(q kᵀ · scale + bias) v, with its Record appended to `trace`.

        The output keeps its gradient; the Record has none, except map, LSE and entropy with `see.differentiable`.
        """
        out, record = self.attend(
            q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout, see=self.see, kind=kind
        )
        self.trace.append(record.named(name, kind))
        return out

    def label(self, tokens: Any = None, source: Any = None, written: Any = None) -> Trace:
        """Set the tokens of all records and return the Trace: one list, or one list per sample, padding included.

        `tokens` are what the decoder read (or an encoder without a decoder), in order, over all calls. The calls may
        lack the last one, because generation does not read the last token that it writes.
        `source` is what the encoder of a translator read. A side that is None gets no tokens.
        `written` is the token that each query generates, "" for none; for a translator it may be left out, because
        each query generates the next token.

        Samples must keep their order, and no token may be removed from the cache: after a beam search, or in a session
        that continues an earlier text, run the text again with a new Recorder.
        """
        text = _Text("tokens", tokens)
        after = _Text("written", written)
        if after.rows is None and text.rows is not None and any(record.kind == "cross" for record in self.trace):
            after.rows = [list(row) for row in next_tokens(text.rows)]
        if after.rows is not None and text.rows is not None:
            after.check_same_length(text)
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
    """Given tokens, one row per sample or one for all. Without rows it sets no tokens."""

    def __init__(self, side: str, given: Any) -> None:
        self.side = side
        self.rows: TokenRows | None = None if given is None else _rows(side, given)

    def check(self, name: str, wanted: int, spare: int = 0) -> None:
        """Raise ArgumentError unless there are as many tokens as positions of the module, or up to `spare` more."""
        if self.rows is not None and not 0 <= len(self.rows[0]) - wanted <= spare:
            raise ArgumentError("label-count", side=self.side, found=len(self.rows[0]), name=name, wanted=wanted)

    def check_same_length(self, text: "_Text") -> None:
        """Raise ArgumentError unless there are as many tokens as in `text`."""
        assert self.rows is not None
        assert text.rows is not None
        if len(self.rows[0]) != len(text.rows[0]):
            raise ArgumentError("label-written", found=len(self.rows[0]), wanted=len(text.rows[0]))

    def whole(self, name: str, wanted: int) -> TokenRows | None:
        """All tokens, exactly as many as the module had positions."""
        self.check(name, wanted)
        return self.rows

    def until(self, end: int, count: int) -> TokenRows | None:
        """The `count` tokens before `end`; free slots of a cache have no token."""
        if self.rows is None:
            return None
        return [[*row[max(0, end - count) : end], *[""] * max(0, count - end)] for row in self.rows]


def _rows(side: str, given: Any) -> TokenRows:
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
