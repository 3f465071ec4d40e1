"""The files that a recipe names, read: sentence pairs, texts, and what of them is held out.

Training and evaluation read through here, so that both mean the same lines by the same words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from regard.errors import ArgumentError, FileError
from regard.recipes.recipe import DataSpec, check_below
from regard.text.corpus import RECORDS, TABLES, Corpus, read_lines, read_pairs, read_text
from regard.text.moses import prepare
from regard.text.simplified import simplified
from regard.words import Listed

OWN_VALID_SHARE = 0.05
"""Of a file of one's own, what is held out where the recipe says nothing."""


def read_pair_file(spec: DataSpec, path: Path, skip_bad: bool) -> Corpus:
    """Sentence pairs of a file of one's own, tokenised where those of the recipe are."""
    found = read_plain_pairs(spec, [path], skip_bad)
    return found if spec.pattern is None else _tokenised(spec, found)


def read_plain_pairs(spec: DataSpec | None, paths: list[Path], skip_bad: bool) -> Corpus:
    """Sentence pairs as people write them."""
    columns = None if spec is None else spec.columns
    return _revised(spec, read_pairs(_there(paths), skip_bad=skip_bad, columns=columns))


def read_pair_files(spec: DataSpec, folder: Path, names: Sequence[str], skip_bad: bool) -> Corpus:
    """Sentence pairs: the files of these names, or with a pattern the split of that name, tokenised.

    Where there is no tokenised file, it is made from the raw one, as Multi30k's makers made theirs.
    """
    if spec.pattern is None:
        return read_plain_pairs(spec, [folder / name for name in names], skip_bad)
    (split,) = names
    languages = [spec.source or "", spec.target or ""]
    tokenised = [folder / spec.pattern.format(split=split, lang=lang) for lang in languages]
    if spec.raw is None or all(path.is_file() for path in tokenised):
        return read_pairs(_there(tokenised), skip_bad=skip_bad)
    raw = _there(folder / spec.raw.format(split=split, lang=lang) for lang in languages)
    return _tokenised(spec, read_pairs(raw, skip_bad=skip_bad))


def _there(paths: Iterable[Path]) -> list[Path]:
    """The paths; FileError names the first that is not there."""
    found = list(paths)
    for path in found:
        if not path.exists():
            raise FileError("data-absent", path=str(path))
    return found


def _revised(spec: DataSpec | None, corpus: Corpus) -> Corpus:
    """The lines as the recipe wants them: in simplified characters, none of them twice."""
    if spec is not None and spec.simplified:
        corpus = replace(corpus, columns=tuple(simplified(column) for column in corpus.columns))
    if spec is not None and spec.unique:
        first: dict[tuple[str, ...], int] = {}
        for i, row in enumerate(zip(*corpus.columns, strict=True)):
            first.setdefault(row, i)
        corpus = corpus.only(list(first.values()))
    return corpus


def _tokenised(spec: DataSpec, corpus: Corpus) -> Corpus:
    languages = (spec.source or "", spec.target or "")
    columns = (prepare(column, lang) for column, lang in zip(corpus.columns, languages, strict=True))
    return replace(corpus, columns=tuple(columns))


def read_texts(spec: DataSpec | None, paths: list[Path], skip_bad: bool) -> Corpus:
    """Whole files, or lines where the recipe or the kind of file says so."""
    lines = (spec is not None and spec.unit == "lines") or paths[0].suffix.lower() in TABLES + RECORDS
    if not lines:
        return _revised(spec, read_text(paths, skip_bad=skip_bad))
    column = spec.columns[0] if spec is not None and spec.columns else None
    return _revised(spec, read_lines(paths, skip_bad=skip_bad, column=column))


def files_below(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The files that the patterns name; FileError where there is none."""
    found: list[Path] = []
    for pattern in patterns:
        check_below("data", pattern)
        try:
            found += sorted(folder.glob(pattern))
        except (ValueError, NotImplementedError) as error:  # "**.txt": two stars are a whole part of a path
            raise ArgumentError("recipe-path", place="data", value=pattern) from error
    if not found:
        raise FileError("data-absent", path=Listed(str(folder / pattern) for pattern in patterns))
    return found


def share_held_out(spec: DataSpec) -> float:
    """The share of a text that is validated on, never trained on."""
    return spec.valid_share or OWN_VALID_SHARE


def pairs_without_end(corpus: Corpus, spec: DataSpec) -> tuple[Corpus, Corpus]:
    """The lines but the last of them, and those: at least one each."""
    n = len(corpus)
    at = min(n - 1, max(1, int(n * (1 - share_held_out(spec)))))
    if n < 2:
        raise FileError("data-too-few", path=corpus.path(0))

    def part(start: int, end: int) -> Corpus:
        columns = tuple(column[start:end] for column in corpus.columns)
        files = tuple((path, min(end, last) - start) for path, last in corpus.files if last > start)
        return replace(corpus, columns=columns, lines=corpus.lines[start:end], files=files)

    return part(0, at), replace(part(at, n), skipped=0, problems=())


def split_end(texts: Sequence[str], share: float, unit: str) -> tuple[list[str], list[str]]:
    """Texts without their end, and the end: that share of the lines, or of all characters where texts are whole files.

    >>> split_end(["abcd", "efghij"], 0.3, "text")
    (['abcd', 'efg'], ['hij'])
    """
    if unit == "lines":
        at = int(len(texts) * (1 - share))
        return list(texts[:at]), list(texts[at:])
    left = int(sum(map(len, texts)) * (1 - share))
    before: list[str] = []
    after: list[str] = []
    for text in texts:
        before += [text[:left]] if left else []
        after += [text[left:]] if len(text) > left else []
        left = max(0, left - len(text))
    return before, after
