"""The text that a trace reads and generates: where the prompt ends, and the likeliest tokens at every step."""

from collections.abc import Sequence
from typing import Any

from regard.records import Record, tokens_of
from regard.trace.trace import Trace
from regard.views.explorer.overview import label, token_labels


def generation_of(trace: Trace, records: Sequence[Record], samples: Sequence[int]) -> dict[str, Any] | None:
    """The prompt, all tokens, and the candidates of each written token; None where nothing was generated.

    Token i, from the prompt on, was written by the query of token i − 1.
    """
    for record, sample in zip(records, samples, strict=True):
        if record.kind == "encoder" or record.query_tokens is None or record.written is None or not record.shape[2]:
            continue
        written = tokens_of(record.written, sample)
        prompt = record.prompt or next((at + 1 for at, token in enumerate(written) if token), None)
        if prompt is None:
            return None
        read = token_labels(record.query_tokens, sample) or ()
        tokens = [*read, label(written[-1])] if written[-1] else list(read)
        return {
            "prompt": prompt,
            "tokens": tokens,
            "candidates": _candidates(trace, record, prompt, len(tokens)),
            "beams": _beams(trace),
        }
    return None


def _beams(trace: Trace) -> list[dict[str, Any]] | None:
    """The texts that beam search found; None where they are unknown."""
    if trace.beams is None:
        return None
    return [{"tokens": [label(token) for token in tokens], "score": score} for tokens, score in trace.beams]


def _candidates(trace: Trace, record: Record, prompt: int, count: int) -> list[Any] | None:
    """The candidates of each written token; None where none are known, or where they belong to another text."""
    known = trace.candidates
    if known is None or len(known) != record.shape[2]:
        return None
    return [[[label(token), p] for token, p in known[at - 1]] for at in range(prompt, count)]
