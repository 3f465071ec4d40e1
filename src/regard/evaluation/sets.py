"""Sets of sentences with their translations: read from files, and what a model made of them scored.

A set may have its references twice: as the model writes them (tokenised, lower-cased), for the papers' BLEU, and as
people do, for sacreBLEU. Which files belong to which recipe is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import FileError
from regard.evaluation.scores import Score, chrf, paper_bleu, sacre_bleu
from regard.text import moses
from regard.text.corpus import Corpus, read_lines
from regard.text.tidy import is_chinese


@dataclass(frozen=True, kw_only=True, slots=True)
class Languages:
    """From which language to which; `tokenised` where the model reads and writes what `moses.prepare` makes."""

    source: str
    target: str
    tokenised: bool


@dataclass(frozen=True, slots=True)
class PairSet:
    """Sentences as the model reads them, with references: `written` as it writes them, `plain` as people do.

    `lines` are the numbers of the sentences in their file.
    """

    name: str
    sources: list[str]
    lines: list[int]
    written: list[list[str]] | None
    plain: list[list[str]] | None
    languages: Languages

    def scores(self, hypotheses: Sequence[str]) -> list[Score]:
        """What these are worth; those scores for which there are references."""
        target = self.languages.target
        found = [] if self.written is None else [paper_bleu(hypotheses, self.written)]
        if self.plain is not None:
            lowercase = self.languages.tokenised  # the model has never seen a capital letter
            texts = moses.plain(list(hypotheses), target) if self.languages.tokenised else hypotheses
            found.append(sacre_bleu(texts, self.plain, lowercase=lowercase, language=target))
            found.append(chrf(texts, self.plain, lowercase=lowercase))
        return found


def language_of(references: Sequence[str]) -> str:
    """Which language they are in, as far as it changes how they are counted: Chinese, or any other, called English.

    >>> language_of(["我爱你。", "谢谢！"]), language_of(["Ich liebe dich."])
    ('zh', 'en')
    """
    return "zh" if is_chinese("".join(references)) else "en"


def pair_set(corpus: Corpus, languages: Languages) -> PairSet:
    """A set of plain pairs; what translates the same sentence stands together, so that it is translated once."""
    grouped: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for source, target, line in zip(*corpus.columns, corpus.lines, strict=True):
        grouped.setdefault(source, []).append(target)
        first.setdefault(source, line)
    sources, lines, plain = list(grouped), list(first.values()), list(grouped.values())
    if not languages.tokenised:
        return PairSet(corpus.name, sources, lines, None, plain, languages)
    written = [moses.prepare(several, languages.target) for several in plain]
    return PairSet(corpus.name, moses.prepare(sources, languages.source), lines, written, plain, languages)


def split_set(folder: Path, split: str, languages: Languages, *, pattern: str, raw: str | None) -> PairSet:
    """A set of parallel files, line by line, found by its split's name.

    pattern   where tokenised files are, such as "tok/{split}.lc.norm.tok.{lang}"; made from raw ones where not there
    raw       where plain files are, such as "{split}.{lang}"

    FileError where neither kind is there, or source and references have different lengths.
    """

    def place(template: str, lang: str) -> Path:
        return folder / template.format(split=split, lang=lang)

    def tokenised(lang: str) -> list[str]:
        path = place(pattern, lang)
        if path.is_file() or raw is None:
            return _lines(path)
        plain = place(raw, lang)
        if not plain.is_file():
            raise FileError("evaluate-split-absent", split=split, paths=f"{path}, {plain}")
        return moses.prepare(_lines(plain), lang)

    sources, written = tokenised(languages.source), tokenised(languages.target)
    plain = None
    if raw is not None and place(raw, languages.target).is_file():
        plain = _lines(place(raw, languages.target))
    for lines in (written, plain):
        if lines is not None and len(lines) != len(sources):
            raise FileError("evaluate-split-lengths", split=split, sources=len(sources), references=len(lines))
    each = [[line] for line in written], None if plain is None else [[line] for line in plain]
    return PairSet(split, sources, list(range(1, len(sources) + 1)), *each, languages)


def _lines(path: Path) -> list[str]:
    return read_lines([path]).columns[0]
