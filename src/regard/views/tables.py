"""Tables in the terminal: heads with their patterns (of a trace, of a survey), and where two traces differ most."""

from typing import TYPE_CHECKING

from rich.cells import cell_len

from regard.messages import Language, Listed, say
from regard.patterns import label_of
from regard.records import Record, tokens_of
from regard.trace.comparison import Comparison, Difference
from regard.trace.measures.heads import MIN_QUERIES, MIN_SCORE, Head, Heads, Score
from regard.views.labels import aligned, cut, printable_label, readable
from regard.views.picture import chosen_language

if TYPE_CHECKING:
    from regard.surveys.result import Estimate, Passage, Survey, SurveyHead


# --- patterns of heads -------------------------------------------------------------------------------------


Row = tuple[str, str, str, str, str]
_VALUES: dict[str, dict[str, float]] = {
    "heads-none": {"bar": MIN_SCORE},
    "heads-none-at-all": {"bar": MIN_SCORE},
    "heads-few": {"bar": MIN_SCORE, "fewest": MIN_QUERIES},
    "heads-unmeasured": {},
}
_HEADS_SIDES = ("left", "right", "left", "right", "right")


def heads_table(heads: Heads, pattern: str | None = None, most: int | None = 20, lang: Language | None = None) -> str:
    """The heads with their strongest pattern, or ranked by one pattern; then how to read the scores."""
    text_lang = chosen_language(lang)
    if pattern is None:
        chosen = [(head, best) for head in heads if (best := head.best) is not None]
        nothing = [head for head in heads if head.best is None]
        few = sum(map(_on_few_queries, nothing))
        rests = {"heads-none" if chosen else "heads-none-at-all": len(nothing) - few, "heads-few": few}
    else:
        chosen = [(head, score) for head in heads.ranked(pattern) if (score := head.score(pattern)) is not None]
        rests = {"heads-unmeasured": len(heads) - len(chosen)}
    lines = [_title(heads, text_lang), *(["", *_table(chosen[:most], text_lang)] if chosen else [])]
    if most is not None and len(chosen) > most:
        lines.append(say("heads-more", text_lang, count=len(chosen) - most))
    lines.append("")
    lines += [say(key, text_lang, count=count, **_VALUES[key]) for key, count in rests.items() if count]
    if not heads.named:
        lines.append(say("heads-no-tokens", text_lang))
    lines.append(say("heads-scale", text_lang))
    if any(score.pattern == "same" for _, score in chosen[:most]):
        lines.append(say("heads-scale-same", text_lang))
    return "\n".join([*lines, say("heads-not-explanation", text_lang)])


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
    return aligned(rows, _HEADS_SIDES)


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
    lines = aligned(rows, _COMPARISON_SIDES)
    if most is not None and len(ranked) > most:
        lines.append(say("heads-more", text_lang, count=len(ranked) - most))
    lines += ["", say("compare-scale", text_lang)]
    if found.by_map:
        lines.append(say("compare-maps", text_lang, count=len(found.by_map), of=len(found.left)))
    if found.unpaired:
        names = Listed.few([printable_label(name) for name in sorted(found.unpaired)], 3)
        lines.append(say("compare-unpaired", text_lang, names=names))
    return "\n".join(lines)


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


# --- surveys ----------------------------------------------------------------------------------------------


_SURVEY_SIDES = ("left", "right", "left", "right", "right", "right", "right")


def survey_table(
    survey: "Survey", pattern: str | None = None, most: int | None = 20, lang: Language | None = None
) -> str:
    """The heads with their strongest pattern, or ranked by one pattern; then passages, and how to read it."""
    text_lang = chosen_language(lang)
    if pattern is None:
        chosen = [(head, head.best) for head in survey if head.best is not None]
    else:
        chosen = [(head, pattern) for head in survey.ranked(pattern)]
    lines = [say("survey-title", text_lang, model=survey.model, texts=survey.texts, tokens=survey.tokens), ""]
    if chosen:
        lines += [*_survey_rows(chosen[:most], text_lang), ""]
    if most is not None and len(chosen) > most:
        lines[-1:] = [say("heads-more", text_lang, count=len(chosen) - most), ""]
    passages = [line for head, name in chosen[:most] for line in _passages(head, name, text_lang)]
    if passages:
        lines += [say("survey-passages", text_lang), *passages, ""]
    if pattern is None and (rest := len(survey) - len(chosen)):
        lines.append(say("heads-none" if chosen else "heads-none-at-all", text_lang, count=rest, bar=MIN_SCORE))
    for reason, count in survey.skipped.items():
        lines.append(say(f"survey-{reason}", text_lang, count=count))
    return "\n".join([*lines, say("survey-intervals", text_lang), say("heads-not-explanation", text_lang)])


def _survey_rows(chosen: "list[tuple[SurveyHead, str]]", lang: Language) -> list[str]:
    titles = tuple(
        say(key, lang)
        for key in (
            "heads-layer",
            "heads-head",
            "heads-looks-at",
            "heads-score",
            "survey-entropy",
            "survey-sink",
            "survey-distance",
        )
    )
    rows = [titles, *(_survey_row(head, name, lang) for head, name in chosen)]
    return aligned(rows, _SURVEY_SIDES)


def _survey_row(head: "SurveyHead", name: str, lang: Language) -> tuple[str, ...]:
    does = printable_label(label_of(name, lang))
    measures = (_number(one, digits) for one, digits in ((head.entropy, 2), (head.sink, 2), (head.distance, 1)))
    return printable_label(head.name), str(head.head), does, _number(head.scores[name], 2), *measures


def _number(one: "Estimate | None", digits: int) -> str:
    """A value with half the width of its interval."""
    if one is None:
        return "–"
    if one.low is None or one.high is None:
        return f"{one.value:.{digits}f}"
    return f"{one.value:.{digits}f} ± {(one.high - one.low) / 2:.{digits}f}"


def _passages(head: "SurveyHead", name: str, lang: Language) -> list[str]:
    """The best passage of a head: the query in ⟨⟩, the key in [ ]."""
    found = head.passages(name)
    if not found or not found[0].tokens:
        return []
    key = "survey-passage"
    where = printable_label(head.name)
    return [say(key, lang, name=where, head=head.head, text=found[0].text, passage=passage_text(found[0]))]


def passage_text(passage: "Passage") -> str:
    """The passage with its query in ⟨⟩ and its key in [ ]; both where they are the same token."""
    tokens = [printable_label(token) for token in passage.tokens]
    marked = list(tokens)
    marked[passage.at] = f"⟨{marked[passage.at]}⟩"
    if passage.key_tokens == passage.tokens:
        marked[passage.key_at] = f"[{marked[passage.key_at]}]"
        return _sentence(marked)
    keys = [printable_label(token) for token in passage.key_tokens]
    if keys:
        keys[passage.key_at] = f"[{keys[passage.key_at]}]"
    return f"{_sentence(marked)}  →  {_sentence(keys)}"


def _sentence(tokens: list[str]) -> str:
    """Tokens with spaces between words, and none between Chinese characters."""
    found = ""
    for token in tokens:
        wide = any(cell_len(sign) > 1 for sign in (token.strip("⟨⟩[]")[:1], found.rstrip("⟨⟩[]")[-1:]) if sign)
        found += token if not found or wide else f" {token}"
    return found
