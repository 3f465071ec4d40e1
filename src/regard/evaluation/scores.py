"""Scores of translations: BLEU as the papers counted it, BLEU and chrF as sacreBLEU counts them, with its signature.

The counting is sacreBLEU's own, so that a number means the same here as elsewhere. How lines were tokenised, translated
and put together again is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import ArgumentError, MissingPackageError

References = Sequence[str] | Sequence[Sequence[str]]
"""One reference for each line, or several for each."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number by its name, and how sacreBLEU counted it: None for what it did not."""

    name: str
    value: float
    signature: str | None


def paper_bleu(hypotheses: Sequence[str], references: References) -> Score:
    """BLEU-4 of lower-cased text that is tokenised already, as multi-bleu.perl and fairseq count it.

    Nothing is smoothed: without a common 4-gram in the whole corpus it is 0. Papers on Multi30k print this number.

    >>> round(paper_bleu(["a dog runs fast ."], ["A dog runs very fast ."]).value, 2)
    0.0
    >>> round(paper_bleu(["a dog runs fast now ."], ["A dog runs fast ."]).value, 2)
    53.73
    """
    # force: sacreBLEU otherwise warns that the text looks tokenised, which is what this number is about.
    how = {"tokenize": "none", "lowercase": True, "smooth_method": "none", "force": True}
    return _scored("bleu", _metrics("paper_bleu").BLEU(**how), hypotheses, references)


def sacre_bleu(
    hypotheses: Sequence[str], references: References, *, lowercase: bool = False, language: str = "en"
) -> Score:
    """BLEU of plain, detokenised text, tokenised by sacreBLEU alike for everyone; Chinese by characters.

    >>> sacre_bleu(["小明在看书。"], ["小明在看书。"], language="zh").signature.rpartition("|version")[0]
    'nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp'
    """
    how = {"tokenize": tokenizer_for(language), "lowercase": lowercase}
    return _scored("sacrebleu", _metrics("sacre_bleu").BLEU(**how), hypotheses, references)


def tokenizer_for(language: str) -> str:
    """sacreBLEU's name for how it splits text of a language: Chinese by characters, any other as mteval-v13a does."""
    return "zh" if language.startswith("zh") else "13a"


def chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> Score:
    """chrF2: how many characters in a row are common, whatever the words are; spaces do not count.

    >>> chrf(["小明在看书。"], ["小明在看书。"]).value
    100.0
    """
    return _scored("chrf", _metrics("chrf").CHRF(lowercase=lowercase), hypotheses, references)


def _metrics(what: str) -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingPackageError("missing-package", what=what, package="sacrebleu", extra="train") from error
    return metrics


def _scored(name: str, metric: Any, hypotheses: Sequence[str], references: References) -> Score:
    value = metric.corpus_score(list(hypotheses), _streams(hypotheses, references)).score
    return Score(name, float(value), str(metric.get_signature().format()))


def _streams(hypotheses: Sequence[str], references: References) -> list[list[str | None]]:
    """The first references of all lines, then the second ones, …; None where a line has no more."""
    lines = [[line] if isinstance(line, str) else list(line) for line in references]
    if len(lines) != len(hypotheses):
        raise ArgumentError("scores-count", hypotheses=len(hypotheses), references=len(lines))
    if not lines:
        raise ArgumentError("scores-empty")
    for number, line in enumerate(lines, 1):
        if not line:
            raise ArgumentError("scores-no-reference", line=number)
    most = max(len(line) for line in lines)
    return [[line[at] if at < len(line) else None for line in lines] for at in range(most)]
