"""Table of `trace.compare(other)`: how far each head differs, and the weight that differs most. Measures nothing."""

from rich.cells import cell_len

from regard.messages import Language, say
from regard.records import Record, tokens_of
from regard.trace.comparison import Comparison, Difference
from regard.views.labels import cut, pad, printable_label, readable
from regard.views.picture import chosen_language

_SIDES = ("left", "right", "right", "right", "left")
_WIDEST = 16


def comparison_table(found: Comparison, most: int | None = 20, lang: Language | None = None) -> str:
    """The heads that differ most, then how to read the numbers."""
    text_lang = chosen_language(lang)
    ranked = found.ranked()
    titles = [say(f"compare-{name}", text_lang) for name in ("layer", "head", "distance", "largest", "where")]
    rows = [titles, *(_row(found, one) for one in ranked[:most])]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(titles))]
    lines = [
        "  ".join(pad(cell, width, side) for cell, width, side in zip(row, widths, _SIDES, strict=True)).rstrip()
        for row in rows
    ]
    if most is not None and len(ranked) > most:
        lines.append(say("heads-more", text_lang, count=len(ranked) - most))
    return "\n".join([*lines, "", say("compare-scale", text_lang)])


def _row(found: Comparison, one: Difference) -> list[str]:
    record = found.left[one.name]
    place = ""
    if one.query is not None and one.key is not None:
        query, key = (
            _token(record, side, at, found.sample)
            for side, at in (("query_tokens", one.query), ("key_tokens", one.key))
        )
        place = f"{query} → {key}"
    largest = f"{one.largest:+.3f}".replace("-", "−")
    return [printable_label(one.name), str(one.head), f"{one.distance:.3f}", largest, place]


def _token(record: Record, side: str, at: int, sample: int) -> str:
    rows = getattr(record, side)
    if rows is None:
        return str(at)
    return f"{cut(printable_label(readable(tokens_of(rows, sample))[at]), _WIDEST)} {at}"
