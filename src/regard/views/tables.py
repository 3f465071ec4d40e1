"""Tables in the terminal: the pattern of each head (`trace.heads()`), and the heads in which two traces differ most."""

from collections.abc import Sequence

from rich.cells import cell_len

from regard.messages import Language, say
from regard.patterns import label_of
from regard.records import Record, tokens_of
from regard.trace.comparison import Comparison, Difference
from regard.trace.measures.heads import MIN_QUERIES, MIN_SCORE, Head, Heads, Score
from regard.views.labels import cut, pad, printable_label, readable
from regard.views.picture import chosen_language

# --- patterns of heads -------------------------------------------------------------------------------------


Row = tuple[str, str, str, str, str]
_VALUES: dict[str, dict[str, float]] = {
    "heads-none": {"bar": MIN_SCORE},
    "heads-few": {"bar": MIN_SCORE, "fewest": MIN_QUERIES},
    "heads-untold": {},
}
_HEADS_SIDES = ("left", "right", "left", "right", "right")


def heads_table(heads: Heads, pattern: str | None = None, most: int | None = 20, lang: Language | None = None) -> str:
    """The heads with their strongest pattern, or ranked by one pattern; then how to read the scores."""
    text_lang = chosen_language(lang)
    if pattern is None:
        chosen = [(head, best) for head in heads if (best := head.best) is not None]
        nothing = [head for head in heads if head.best is None]
        few = sum(map(_on_few_queries, nothing))
        rests = {"heads-none": len(nothing) - few, "heads-few": few}
    else:
        chosen = [(head, score) for head in heads.ranked(pattern) if (score := head.score(pattern)) is not None]
        rests = {"heads-untold": len(heads) - len(chosen)}
    lines = [_title(heads, text_lang), *(["", *_table(chosen[:most], text_lang)] if chosen else [])]
    if most is not None and len(chosen) > most:
        lines.append(say("heads-more", text_lang, count=len(chosen) - most))
    lines.append("")
    lines += [say(key, text_lang, count=count, **_VALUES[key]) for key, count in rests.items() if count]
    if not heads.named:
        lines.append(say("heads-no-tokens", text_lang))
    return "\n".join([*lines, say("heads-scale", text_lang), say("heads-not-explanation", text_lang)])


def _on_few_queries(head: Head) -> bool:
    """Whether a score of the head would count if it had been measured on more queries."""
    return any(score.value >= MIN_SCORE and score.queries < MIN_QUERIES for score in head.scores.values())


def _title(heads: Heads, lang: Language) -> str:
    key = "heads-title" if heads.queries == heads.of else "heads-title-part"
    values = {"total": heads.of} if heads.queries < heads.of else {}
    return say(key, lang, count=len(heads), queries=heads.queries, **values)


def _table(chosen: list[tuple[Head, Score]], lang: Language) -> list[str]:
    titles: Row = (
        say("heads-layer", lang),
        say("heads-head", lang),
        say("heads-looks-at", lang),
        say("heads-score", lang),
        say("heads-queries", lang),
    )
    rows = [titles, *(_head_row(head, score, lang) for head, score in chosen)]
    return _aligned(rows, _HEADS_SIDES)


def _head_row(head: Head, score: Score, lang: Language) -> Row:
    does = printable_label(label_of(score.pattern, lang))
    return printable_label(head.name), str(head.head), does, f"{score.value:.2f}", str(score.queries)


# --- comparison --------------------------------------------------------------------------------------------


_COMPARISON_SIDES = ("left", "right", "right", "right", "left")
_WIDEST = 16


def comparison_table(found: Comparison, most: int | None = 20, lang: Language | None = None) -> str:
    """The heads that differ most, then how to read the numbers."""
    text_lang = chosen_language(lang)
    ranked = found.ranked()
    titles = [say(f"compare-{name}", text_lang) for name in ("layer", "head", "distance", "largest", "where")]
    rows = [titles, *(_compared(found, one) for one in ranked[:most])]
    lines = _aligned(rows, _COMPARISON_SIDES)
    if most is not None and len(ranked) > most:
        lines.append(say("heads-more", text_lang, count=len(ranked) - most))
    return "\n".join([*lines, "", say("compare-scale", text_lang)])


def _compared(found: Comparison, one: Difference) -> list[str]:
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


# --- both --------------------------------------------------------------------------------------------------


def _aligned(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> list[str]:
    """The rows with columns of equal width, each aligned to its side."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(pad, row, widths, sides)).rstrip() for row in rows]
