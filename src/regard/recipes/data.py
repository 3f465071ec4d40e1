"""The data of a recipe: reads its files, trains a tokenizer, and prepares training and validation batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import ArgumentError, FileError
from regard.messages import Listed, say
from regard.recipes.puzzles import PuzzleBatches, puzzle_tokenizer
from regard.recipes.recipe import DataSpec, Recipe, check_relative
from regard.text.corpus import RECORDS, TABLES, Corpus, fitting, read_lines, read_pairs, read_text
from regard.text.normalise import moses_tokenised, simplified
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import SPECIALS, learn_tokenizer
from regard.text.word_links import Link, parse_links, split_words, token_links
from regard.training.batches import BlockBatches, Data, PairBatches

OWN_VALID_SHARE = 0.05
"""The share of a user's own file that is held out if the recipe does not set `valid_share`."""


def read_pair_file(spec: DataSpec, path: Path, skip_bad: bool, links: bool = False) -> Corpus:
    """Sentence pairs of a user's own file, tokenised if those of the recipe are."""
    found = read_plain_pairs(spec, [path], skip_bad, links)
    return found if spec.pattern is None else _tokenised(spec, found)


def read_plain_pairs(spec: DataSpec | None, paths: list[Path], skip_bad: bool, links: bool = False) -> Corpus:
    """Sentence pairs as plain text, with word links in a third column if the recipe trains a head on them."""
    columns = None if spec is None or spec.columns is None else spec.columns[: 3 if links else 2]
    return _cleaned(spec, read_pairs(_existing(paths), skip_bad=skip_bad, columns=columns, links=links))


def read_pair_files(spec: DataSpec, folder: Path, names: Sequence[str], skip_bad: bool, links: bool = False) -> Corpus:
    """Sentence pairs from the named files or, with a pattern, from the tokenised files of the named split.

    A missing tokenised file is produced from the raw one, by the steps that Multi30k's authors used.
    """
    if spec.pattern is None:
        return read_plain_pairs(spec, [folder / name for name in names], skip_bad, links)
    (split,) = names
    languages = [spec.source or "", spec.target or ""]
    tokenised = [folder / spec.pattern.format(split=split, lang=lang) for lang in languages]
    if spec.raw is None or all(path.is_file() for path in tokenised):
        return read_pairs(_existing(tokenised), skip_bad=skip_bad)
    raw = _existing(folder / spec.raw.format(split=split, lang=lang) for lang in languages)
    return _tokenised(spec, read_pairs(raw, skip_bad=skip_bad))


def _existing(paths: Iterable[Path]) -> list[Path]:
    """The paths. FileError names the first that does not exist."""
    found = list(paths)
    for path in found:
        if not path.exists():
            raise FileError("data-absent", path=str(path))
    return found


def _cleaned(spec: DataSpec | None, corpus: Corpus) -> Corpus:
    """The corpus in simplified characters and without duplicates, if the recipe requires it."""
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
    columns = (moses_tokenised(column, lang) for column, lang in zip(corpus.columns, languages, strict=True))
    return replace(corpus, columns=tuple(columns))


def read_texts(spec: DataSpec | None, paths: list[Path], skip_bad: bool) -> Corpus:
    """Whole files, or single lines if the recipe or the file format requires it."""
    lines = (spec is not None and spec.unit == "lines") or paths[0].suffix.lower() in TABLES + RECORDS
    if not lines:
        return _cleaned(spec, read_text(paths, skip_bad=skip_bad))
    column = spec.columns[0] if spec is not None and spec.columns else None
    return _cleaned(spec, read_lines(paths, skip_bad=skip_bad, column=column))


def files_below(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The files that match the patterns. Raises FileError if there are none."""
    found: list[Path] = []
    for pattern in patterns:
        check_relative("data", pattern)
        try:
            found += sorted(folder.glob(pattern))
        except (ValueError, NotImplementedError) as error:  # "**.txt": ** must be a whole part of a path
            raise ArgumentError("recipe-path", place="data", value=pattern) from error
    if not found:
        raise FileError("data-absent", path=Listed(str(folder / pattern) for pattern in patterns))
    return found


def held_out_share(spec: DataSpec) -> float:
    """The share of a text that is used for validation, never for training."""
    return spec.valid_share or OWN_VALID_SHARE


def split_pairs(corpus: Corpus, spec: DataSpec) -> tuple[Corpus, Corpus]:
    """The corpus split into training pairs and the held-out last pairs, at least one each."""
    n = len(corpus)
    at = min(n - 1, max(1, int(n * (1 - held_out_share(spec)))))
    if n < 2:
        raise FileError("data-too-few", path=corpus.path(0))

    def part(start: int, end: int) -> Corpus:
        columns = tuple(column[start:end] for column in corpus.columns)
        files = tuple((path, min(end, last) - start) for path, last in corpus.files if last > start)
        return replace(corpus, columns=columns, lines=corpus.lines[start:end], files=files)

    return part(0, at), replace(part(at, n), skipped=0, problems=())


def split_end(texts: Sequence[str], share: float, unit: str) -> tuple[list[str], list[str]]:
    """Texts without their end, and the held-out end: a share of the lines or, with whole files, of all characters.

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


class PreparedData(NamedTuple):
    """Tokenizer and batches. `files` are the hashes of the files by name, `notes` messages about them."""

    tokenizer: Tokenizer
    data: Data
    valid: Data
    files: dict[str, str]
    notes: tuple[str, ...]


class DataSource(NamedTuple):
    """Where the text comes from: a folder with the recipe's files, or one file of the user's."""

    path: Path | None
    skip_bad: bool
    tokenizer: Tokenizer | None
    """The tokenizer of the run that is resumed."""
    known: Mapping[str, str] | None = None
    """Hashes of the files when that run was started."""


def prepare(recipe: Recipe, source: DataSource) -> PreparedData:
    """Read, tokenise and batch the recipe's files in the source folder, or the user's own file."""
    if recipe.task == "synthetic":
        return _puzzle(recipe, source)
    if source.path is None:
        raise ArgumentError("data-missing", recipe=recipe.name)
    if not source.path.exists():
        raise FileError("data-absent", path=str(source.path))
    return (_pairs if recipe.task == "translation" else _texts)(recipe, source, source.path)


def _puzzle(recipe: Recipe, source: DataSource) -> PreparedData:
    puzzle, size, seed = recipe.puzzle, recipe.data.batch_size, recipe.training.seed
    assert puzzle is not None
    assert size is not None
    tokenizer = puzzle_tokenizer(puzzle.kind)
    data = PuzzleBatches(puzzle, tokenizer, batch_size=size, seed=seed, split="train")
    valid = PuzzleBatches(puzzle, tokenizer, batch_size=size, seed=seed, split="valid")
    return PreparedData(tokenizer, data, valid, {}, puzzle_notes(recipe, source.path))


def puzzle_notes(recipe: Recipe, data: Path | None) -> tuple[str, ...]:
    """A message if text was given for a puzzle."""
    return () if data is None else (say("train-data-unused", recipe=recipe.name),)


def _hashes(corpora: Sequence[Corpus], known: Mapping[str, str] | None) -> dict[str, str]:
    """Hashes by file. FileError for changed data, before a tokenizer trained on other text causes another error."""
    found = {corpus.name: corpus.sha256 for corpus in corpora}
    changed = [name for name, sha256 in found.items() if known is not None and known.get(name) != sha256]
    if changed:
        raise FileError("run-data-file", path=changed[0])
    return found


# --- sentence pairs --------------------------------------------------------------------------------------


def _pairs(recipe: Recipe, source: DataSource, path: Path) -> PreparedData:
    spec, links = recipe.data, recipe.training.alignment is not None
    if path.is_file():
        corpora = [read_pair_file(spec, path, source.skip_bad, links)]
    else:
        corpora = [read_pair_files(spec, path, spec.train, source.skip_bad, links)]
        corpora += [read_pair_files(spec, path, spec.valid, source.skip_bad)] if spec.valid else []
    files = _hashes(corpora, source.known)
    train, valid = corpora if len(corpora) == 2 else split_pairs(corpora[0], spec)
    tokenizer = source.tokenizer or _tokenizer(spec, path, [*train.columns[0], *train.columns[1]], SPECIALS)
    unspelled = 0

    def batches(corpus: Corpus, shuffle: bool) -> tuple[Corpus, Data]:
        nonlocal unspelled
        ids = [tokenizer.encode_all(column) for column in corpus.columns[:2]]
        corpus, (sources, targets) = fitting(corpus, ids, max_len=spec.max_len, skip_bad=source.skip_bad)
        how: dict[str, Any] = {"tokens_per_batch": spec.batch_tokens, "seed": recipe.training.seed, "shuffle": shuffle}
        if links and shuffle:
            how["links"] = linked_tokens(tokenizer, corpus, sources, targets)
            unspelled = sum(not each for each in how["links"])
        return corpus, PairBatches(sources, targets, **how, **tokenizer.marks())

    (train, data), (valid, held_out) = batches(train, True), batches(valid, False)
    notes = (say("alignment-unspelled", count=unspelled),) if unspelled else ()
    return PreparedData(tokenizer, data, held_out, files, (*_notes(train, valid), *notes))


def linked_tokens(
    tokenizer: Tokenizer, corpus: Corpus, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[Link]]:
    """The links between the tokens of each pair; none for a pair with characters that the tokenizer does not know.

    Raises ArgumentError if no pair has links: the tokens of this tokenizer do not spell words.
    """
    found = []
    for english, chinese, links, source, target in zip(*corpus.columns, sources, targets, strict=True):
        words = split_words(english), split_words(chinese)
        parsed = parse_links(links, *map(len, words))
        assert parsed is not None  # `read_pairs` has checked them
        try:
            found.append(token_links(tokenizer.pieces(source), tokenizer.pieces(target), words, parsed))
        except ArgumentError as error:
            problem = error
            found.append([])
    if not any(found):
        raise ArgumentError("alignment-no-tokens", reason=problem)
    return found


# --- running text ----------------------------------------------------------------------------------------


def _texts(recipe: Recipe, source: DataSource, path: Path) -> PreparedData:
    spec = recipe.data
    paths = [path] if path.is_file() else files_below(path, spec.train)
    corpora = [read_texts(spec, paths, source.skip_bad)]
    train = corpora[0].columns[0]
    if spec.valid and path.is_dir():
        corpora.append(read_texts(spec, files_below(path, spec.valid), source.skip_bad))
        valid: Sequence[str] = corpora[1].columns[0]
    else:
        train, valid = split_end(train, held_out_share(spec), spec.unit)
    files = _hashes(corpora, source.known)
    if not train or not valid:
        raise FileError("data-too-few", path=str(path))
    tokenizer = source.tokenizer or _text_tokenizer(spec, path, train, valid)
    end = tokenizer.special("eos") if spec.unit == "lines" else tokenizer.eos

    def batches(texts: Sequence[str], shuffle: bool) -> Data:
        packed = tokenizer.pack(texts, end=end)
        if shuffle and len(packed) <= spec.max_len:
            raise FileError("data-short", path=str(path), found=len(packed), block=spec.max_len)
        if len(packed) < 2:
            raise FileError("data-short-end", path=str(path), found=len(packed))
        how: dict[str, Any] = {"batch_size": spec.batch_size, "seed": recipe.training.seed, "shuffle": shuffle}
        return BlockBatches(packed, block=spec.max_len, **how)

    return PreparedData(tokenizer, batches(train, True), batches(valid, False), files, _notes(*corpora))


# --- tokenizers ------------------------------------------------------------------------------------------


def _tokenizer(spec: DataSpec, path: Path, texts: Sequence[str], specials: Sequence[str]) -> Tokenizer:
    """The tokenizer file that the recipe names, or a newly trained tokenizer."""
    if spec.tokenizer_file is not None:
        return Tokenizer.read((path if path.is_dir() else path.parent) / spec.tokenizer_file)
    return learn_tokenizer(texts, spec.tokenizer, spec.vocab_size, specials)


def _text_tokenizer(spec: DataSpec, path: Path, train: Sequence[str], valid: Sequence[str]) -> Tokenizer:
    """A tokenizer for lines has special tokens, because each line ends with eos; one for whole files has none.

    A character tokenizer also covers the held-out end: the set of characters says nothing about their order.
    """
    if spec.unit == "lines" or spec.tokenizer in ("words", "pieces"):
        return _tokenizer(spec, path, train, SPECIALS)
    return _tokenizer(spec, path, [*train, *valid] if spec.tokenizer == "characters" else train, ())


def _notes(*corpora: Corpus) -> tuple[str, ...]:
    """Messages about skipped lines, one per file."""
    skipped: dict[str, list[Corpus]] = {}
    for corpus in corpora:
        if corpus.skipped:
            skipped.setdefault(corpus.name, []).append(corpus)
    return tuple(
        say("train-skipped", name=name, count=sum(part.skipped for part in parts), first=parts[0].problems[0])
        for name, parts in skipped.items()
    )
