"""Table of a Survey: each head with its pattern, its intervals, and a passage that shows it. Measures nothing."""

from typing import TYPE_CHECKING

from rich.cells import cell_len

from regard.messages import Language, say
from regard.patterns import label_of
from regard.trace.measures.heads import MIN_SCORE
from regard.views.labels import pad, printable_label
from regard.views.picture import chosen_language

if TYPE_CHECKING:
    from regard.surveys.result import Estimate, Passage, Survey, SurveyHead

_SIDES = ("left", "right", "left", "right", "right", "right", "right")


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
        lines += [*_table(chosen[:most], text_lang), ""]
    if most is not None and len(chosen) > most:
        lines[-1:] = [say("heads-more", text_lang, count=len(chosen) - most), ""]
    passages = [line for head, name in chosen[:most] for line in _passages(head, name, text_lang)]
    if passages:
        lines += [say("survey-passages", text_lang), *passages, ""]
    if pattern is None and (rest := len(survey) - len(chosen)):
        lines.append(say("heads-none", text_lang, count=rest, bar=MIN_SCORE))
    for reason, count in survey.skipped.items():
        lines.append(say(f"survey-{reason}", text_lang, count=count))
    return "\n".join([*lines, say("survey-intervals", text_lang), say("heads-not-explanation", text_lang)])


def _table(chosen: "list[tuple[SurveyHead, str]]", lang: Language) -> list[str]:
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
    rows = [titles, *(_row(head, name, lang) for head, name in chosen)]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(titles))]
    return [
        "  ".join(pad(cell, width, side) for cell, width, side in zip(row, widths, _SIDES, strict=True)).rstrip()
        for row in rows
    ]


def _row(head: "SurveyHead", name: str, lang: Language) -> tuple[str, ...]:
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
        return _joined(marked)
    keys = [printable_label(token) for token in passage.key_tokens]
    if keys:
        keys[passage.key_at] = f"[{keys[passage.key_at]}]"
    return f"{_joined(marked)}  →  {_joined(keys)}"


def _joined(tokens: list[str]) -> str:
    """Tokens with spaces between words, and none between Chinese characters."""
    found = ""
    for token in tokens:
        wide = any(cell_len(sign) > 1 for sign in (token.strip("⟨⟩[]")[:1], found.rstrip("⟨⟩[]")[-1:]) if sign)
        found += token if not found or wide else f" {token}"
    return found
