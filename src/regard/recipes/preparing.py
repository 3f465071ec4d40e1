"""From a recipe and files to what a loop takes: a tokenizer, batches to train on and to validate on.

Files come from outside: what is wrong with them is told with path and line before anything is trained.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import ArgumentError, FileError
from regard.recipes.reading import (
    files_below,
    pairs_without_end,
    read_pair_file,
    read_pair_files,
    read_texts,
    share_held_out,
    split_end,
)
from regard.recipes.recipe import DataSpec, Recipe
from regard.recipes.synthetic import PuzzleBatches, puzzle_tokenizer
from regard.text.corpus import Corpus
from regard.text.fit import fitting
from regard.text.learning import SPECIALS, learn_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.batches import BlockBatches, Data, PairBatches
from regard.words import say


class Prepared(NamedTuple):
    """What is trained on. `files` are hashes by name, `notes` what has to be said about them."""

    tokenizer: Tokenizer
    data: Data
    valid: Data
    files: dict[str, str]
    notes: tuple[str, ...]


class Source(NamedTuple):
    """Where the text comes from: a folder for the recipe's files, or one file of one's own."""

    path: Path | None
    skip_bad: bool
    tokenizer: Tokenizer | None
    """The one that an earlier part of the run has learnt."""
    known: Mapping[str, str] | None = None
    """Hashes of the files as that part has read them."""


def prepare(recipe: Recipe, source: Source) -> Prepared:
    """Read, tokenise and batch what the recipe names below the folder, or the one file that is given instead."""
    if recipe.task == "synthetic":
        return _puzzle(recipe, source)
    if source.path is None:
        raise ArgumentError("data-missing", recipe=recipe.name)
    if not source.path.exists():
        raise FileError("data-absent", path=str(source.path))
    return (_pairs if recipe.task == "translation" else _texts)(recipe, source, source.path)


def _puzzle(recipe: Recipe, source: Source) -> Prepared:
    puzzle, size, seed = recipe.puzzle, recipe.data.batch_size, recipe.training.seed
    assert puzzle is not None
    assert size is not None
    tokenizer = puzzle_tokenizer(puzzle.kind)
    data = PuzzleBatches(puzzle, tokenizer, batch_size=size, seed=seed, part="train")
    valid = PuzzleBatches(puzzle, tokenizer, batch_size=size, seed=seed, part="valid")
    return Prepared(tokenizer, data, valid, {}, puzzle_notes(recipe, source.path))


def puzzle_notes(recipe: Recipe, data: Path | None) -> tuple[str, ...]:
    """What is said to whoever gives text to a puzzle."""
    return () if data is None else (say("train-data-unused", recipe=recipe.name),)


def _hashes(corpora: Sequence[Corpus], known: Mapping[str, str] | None) -> dict[str, str]:
    """By file. Told before a tokenizer that was learnt from other text can stumble: the data have changed."""
    found = {corpus.name: corpus.sha256 for corpus in corpora}
    changed = [name for name, sha256 in found.items() if known is not None and known.get(name) != sha256]
    if changed:
        raise FileError("run-data-file", path=changed[0])
    return found


# --- sentence pairs --------------------------------------------------------------------------------------


def _pairs(recipe: Recipe, source: Source, path: Path) -> Prepared:
    spec = recipe.data
    if path.is_file():
        corpora = [read_pair_file(spec, path, source.skip_bad)]
    else:
        corpora = [read_pair_files(spec, path, names, source.skip_bad) for names in (spec.train, spec.valid) if names]
    files = _hashes(corpora, source.known)
    train, valid = corpora if len(corpora) == 2 else pairs_without_end(corpora[0], spec)
    tokenizer = source.tokenizer or _learn(spec, path, [*train.columns[0], *train.columns[1]], SPECIALS)

    def batches(corpus: Corpus, shuffle: bool) -> tuple[Corpus, Data]:
        ids = [tokenizer.encode_all(column) for column in corpus.columns]
        corpus, (sources, targets) = fitting(corpus, ids, max_len=spec.max_len, skip_bad=source.skip_bad)
        how: dict[str, Any] = {"tokens_per_batch": spec.batch_tokens, "seed": recipe.training.seed, "shuffle": shuffle}
        return corpus, PairBatches(sources, targets, **how | tokenizer.marks())

    (train, data), (valid, held_out) = batches(train, True), batches(valid, False)
    return Prepared(tokenizer, data, held_out, files, _notes(train, valid))


# --- running text ----------------------------------------------------------------------------------------


def _texts(recipe: Recipe, source: Source, path: Path) -> Prepared:
    spec = recipe.data
    paths = [path] if path.is_file() else files_below(path, spec.train)
    corpora = [read_texts(spec, paths, source.skip_bad)]
    train = corpora[0].columns[0]
    if spec.valid and path.is_dir():
        corpora.append(read_texts(spec, files_below(path, spec.valid), source.skip_bad))
        valid: Sequence[str] = corpora[1].columns[0]
    else:
        train, valid = split_end(train, share_held_out(spec), spec.unit)
    files = _hashes(corpora, source.known)
    if not train or not valid:
        raise FileError("data-too-few", path=str(path))
    tokenizer = source.tokenizer or _learn_from_texts(spec, path, train, valid)
    end = tokenizer.special("eos") if spec.unit == "lines" else tokenizer.eos

    def batches(texts: Sequence[str], shuffle: bool) -> Data:
        packed = tokenizer.pack(texts, end=end)
        if shuffle and len(packed) <= spec.max_len:
            raise FileError("data-short", path=str(path), found=len(packed), block=spec.max_len)
        if len(packed) < 2:
            raise FileError("data-short-end", path=str(path), found=len(packed))
        how: dict[str, Any] = {"batch_size": spec.batch_size, "seed": recipe.training.seed, "shuffle": shuffle}
        return BlockBatches(packed, block=spec.max_len, **how)

    return Prepared(tokenizer, batches(train, True), batches(valid, False), files, _notes(*corpora))


# --- tokenizers ------------------------------------------------------------------------------------------


def _learn(spec: DataSpec, path: Path, texts: Sequence[str], specials: Sequence[str]) -> Tokenizer:
    """The tokenizer that the recipe names, or a new one."""
    if spec.tokenizer_file is not None:
        return Tokenizer.read((path if path.is_dir() else path.parent) / spec.tokenizer_file)
    return learn_tokenizer(texts, spec.tokenizer, spec.vocab_size, specials)


def _learn_from_texts(spec: DataSpec, path: Path, train: Sequence[str], valid: Sequence[str]) -> Tokenizer:
    """Lines are texts of their own, with an end; a file runs on, and needs no tokens but its own.

    Of characters, those of the held-out end are known too: which there are says nothing about their order.
    """
    if spec.unit == "lines" or spec.tokenizer in ("words", "pieces"):
        return _learn(spec, path, train, SPECIALS)
    return _learn(spec, path, [*train, *valid] if spec.tokenizer == "characters" else train, ())


def _notes(*corpora: Corpus) -> tuple[str, ...]:
    """What was left out of each file; two parts of one file are told together."""
    skipped: dict[str, list[Corpus]] = {}
    for corpus in corpora:
        if corpus.skipped:
            skipped.setdefault(corpus.name, []).append(corpus)
    return tuple(
        say("train-skipped", name=name, count=sum(part.skipped for part in parts), first=parts[0].problems[0])
        for name, parts in skipped.items()
    )
