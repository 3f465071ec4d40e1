"""Survey: the result of a survey, computed from its sums: estimates with confidence intervals, and passages."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import AbsentFileError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.safe_open import read_file
from regard.messages import Language
from regard.patterns import ALIGNMENT, SHIFTED, check_name, offset_of
from regard.records import Kind
from regard.surveys.sums import FIELDS, FINE, MEASURES, SQUARE, HeadSums
from regard.trace.measures.heads import FEWEST_OF_FAMILY, Head, Score

FILE = "survey.json"
VERSION = 1
LARGEST = 2**30
SKIPPED = ("cut", "empty", "unreadable")
"""Why a text was not measured, or not whole; each has a message."""
NORMAL_95 = 1.96


class Estimate(NamedTuple):
    """A number of a head over the corpus, with a 95 % confidence interval over texts.

    low, high   None where fewer than two texts have it
    queries     the queries that it was measured on, in `texts` texts
    """

    value: float
    low: float | None
    high: float | None
    queries: int
    texts: int


class Passage(NamedTuple):
    """A place where a head shows a pattern: text `text` of the corpus, counted from 0, from query to key.

    tokens       around the query, which is tokens[at]
    key_tokens   around the key, which is key_tokens[key_at]; the same as `tokens` if the key is near
    """

    text: int
    score: float
    query: int
    key: int
    tokens: tuple[str, ...]
    at: int
    key_tokens: tuple[str, ...]
    key_at: int


class SurveyHead:
    """One head: `scores` by pattern, `entropy`, `sink`, `distance` (None in cross-attention), and passages."""

    def __init__(self, sums: HeadSums, name: str, kind: Kind, head: int) -> None:
        self.name, self.kind, self.head, self._sums = name, kind, head, sums
        values = sums.sums[name][:, head]  # fields × columns
        self.estimates = {
            column: one
            for number, column in enumerate(sums.columns)
            if (one := _estimate(values[:, number], is_share=column not in ("entropy", "distance"))) is not None
        }
        self.scores = {name: one for name, one in self.estimates.items() if name not in MEASURES}
        self._of = {column: int(values[1, number]) / FINE for number, column in enumerate(sums.columns)}
        self.best = self._best()

    @property
    def entropy(self) -> Estimate | None:
        """The mean entropy of a query's weights, in nats."""
        return self.estimates.get("entropy")

    @property
    def sink(self) -> Estimate | None:
        """The mean share of the first key."""
        return self.estimates.get("sink")

    @property
    def distance(self) -> Estimate | None:
        """The mean distance of query and key."""
        return self.estimates.get("distance")

    def passages(self, pattern: str | None = None) -> list[Passage]:
        """The texts that show a pattern best, by default the head's own; empty where no text scores 0.3 or more."""
        name = self.best if pattern is None else pattern
        found = []
        for one in self._sums.best.get((self.name, self.head, name or ""), []):
            keys, key_at = (one.key_tokens, one.key_at) if one.key_tokens else (one.tokens, one.key_at)
            found.append(
                Passage(one.text, one.score / 2**20, one.query, one.key, one.tokens, one.at, tuple(keys), key_at)
            )
        return found

    def _best(self) -> str | None:
        """The pattern that names the head, by the rules of `trace.heads`; None where no score is high enough."""
        scores = {name: self._score(name, one) for name, one in self.scores.items()}
        shifted = [scores.pop(name) for name in SHIFTED if name in scores]
        offsets = [scores.pop(name) for name in list(scores) if offset_of(name) is not None]
        longest = max((one.queries for one in offsets), default=0)
        families = (
            [one for one in shifted if one.queries >= FEWEST_OF_FAMILY],
            [one for one in offsets if one.queries >= max(FEWEST_OF_FAMILY, longest / 3)],
        )
        for family in families:
            best = max((one for one in family if one.value > 0), key=lambda one: one.value, default=None)
            if best is not None:
                scores[best.pattern] = best
        found = Head(self.name, self.kind, self.head, scores).best
        return None if found is None else found.pattern

    def _score(self, name: str, one: Estimate) -> Score:
        even = 0.0 if name == ALIGNMENT else 1 - self._of[name] / one.queries
        return Score(name, one.value, one.queries, even)

    def as_json(self) -> dict[str, Any]:
        """The head as JSON values."""
        measures = {name: one._asdict() for name in MEASURES if (one := self.estimates.get(name)) is not None}
        return {
            "name": self.name,
            "kind": self.kind,
            "head": self.head,
            "looks_at": self.best,
            **measures,
            "scores": {name: one._asdict() for name, one in self.scores.items()},
            "passages": [one._asdict() for one in self.passages()],
        }


def _estimate(sums: np.ndarray, is_share: bool) -> Estimate | None:
    """The ratio of two sums, with the spread between texts (the delta method for a ratio of means)."""
    above, of, queries, texts, above2, above_of, of2 = (int(x) for x in sums)
    if texts == 0 or of <= 0:
        return None
    ratio = above / of
    value = min(1.0, max(0.0, ratio)) if is_share else ratio
    if texts < 2:
        return Estimate(value, None, None, queries, texts)
    squares = (above2 - 2 * ratio * above_of + ratio * ratio * of2) / SQUARE
    error = NORMAL_95 * math.sqrt(max(0.0, squares) * texts / (texts - 1)) / (of / FINE)
    low, high = max(0.0, ratio - error), ratio + error
    return Estimate(value, min(low, value), max(value, min(1.0, high) if is_share else high), queries, texts)


class Survey:
    """What every head of a model does over a corpus; prints as a table.

    heads     those with a pattern first, by their score
    skipped   the number of texts that were not measured, by reason: "empty", "unreadable"; "cut": only their beginning
    """

    def __init__(self, model: str, sums: HeadSums, skipped: dict[str, int]) -> None:
        assert len(FIELDS) == 7
        self.model, self.sums, self.skipped = model, sums, skipped
        heads = [SurveyHead(sums, name, kind, head) for name, kind, count in sums.names for head in range(count)]
        heads.sort(key=lambda one: 1.0 if one.best is None else -one.scores[one.best].value)
        self.heads = tuple(heads)

    @property
    def texts(self) -> int:
        """The number of texts."""
        return self.sums.texts

    @property
    def tokens(self) -> int:
        """The number of tokens of all texts."""
        return self.sums.tokens

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[SurveyHead]:
        return iter(self.heads)

    def ranked(self, pattern: str) -> list[SurveyHead]:
        """The heads by their score for one pattern; heads without a score are left out."""
        check_name(pattern)
        known = [head for head in self.heads if pattern in head.scores]
        return sorted(known, key=lambda head: -head.scores[pattern].value)

    def text(self, pattern: str | None = None, most: int | None = 20, lang: Language | None = None) -> str:
        """The table of the first `most` heads, or of those ranked by one pattern, with a passage for each."""
        from regard.views.tables import survey_table

        return survey_table(self, pattern, most, lang)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def as_json(self) -> dict[str, Any]:
        """The survey as JSON values: the heads, and the sums that `read_survey` reads."""
        about = {"version": VERSION, "model": self.model, "texts": self.texts, "tokens": self.tokens}
        return {
            **about,
            "skipped": self.skipped,
            "heads": [head.as_json() for head in self.heads],
            "sums": self.sums.as_json(),
        }


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")


def read_skipped(found: Any) -> dict[str, int]:
    """The counts of a file by reason. Raises TypeError or ValueError for what is none."""
    return {SKIPPED[SKIPPED.index(reason)]: int(count) for reason, count in dict(found).items()}


def read_survey(folder: str | os.PathLike[str]) -> Survey:
    """The survey that a folder holds. Raises FileError where it holds none, or one that is not finished."""
    path = Path(folder) / FILE
    try:
        found = parse_json(read_file(path, most=LARGEST))
        if found["version"] != VERSION:
            raise FileError("survey-newer", path=str(path), found=found["version"])
        return Survey(str(found["model"]), HeadSums.from_json(found["sums"]), read_skipped(found["skipped"]))
    except AbsentFileError as error:
        raise FileError("survey-absent", path=str(folder)) from error
    except (JsonError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FileError("survey-garbled", path=str(path)) from error
