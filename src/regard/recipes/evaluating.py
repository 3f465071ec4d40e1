"""Evaluation of a trained model by its recipe: finds the test sets, reads them, and scores the model on them.

`regard.evaluation` computes scores and losses; this module connects them to a run's folder and data. It prints and
writes nothing.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.errors import ArgumentError, FileError
from regard.evaluation import (
    Languages,
    PairSet,
    Score,
    TextLoss,
    encode_sources,
    language_of,
    pair_set,
    split_set,
    text_loss,
    tokenizer_for,
    translate,
    with_source_mask,
)
from regard.evaluation.translation import RECIPE, RUN, TrainedModel, read_trained
from regard.messages import Listed, say
from regard.recipes.data import (
    files_below,
    held_out_share,
    puzzle_notes,
    read_plain_pairs,
    read_texts,
    split_end,
    split_pairs,
)
from regard.recipes.puzzles import PuzzleBatches
from regard.recipes.recipe import DataSpec, EvaluationSpec, Recipe, read_recipe
from regard.text.corpus import RECORDS, TABLES, Corpus
from regard.training.batches import BlockBatches
from regard.training.processes import chosen_device
from regard.training.run_files import read_hashed

Notes = tuple[str, ...]
"""Messages about a set."""
MOST_LOGITS = 2**26
"""The largest number of logits of a batch: 256 MiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationOptions:
    """The options of an evaluation; None takes the value of the recipe.

    data       the folder with the recipe's files, or one file of the user's; puzzles need none. Of a file that the
               model was trained on, only the held-out end is used
    splits     sets by name; empty for the recipe's tests or, if it has none, its validation set
    beams      of a translator's search
    language   the target language, which decides how text is scored; if neither the recipe nor the model names it, it
               is detected from the references
    skip_bad   skip bad lines, truncate lines that are too long, and count both
    device     where the model runs; None for a GPU if there is one
    """

    data: Path | None = None
    splits: tuple[str, ...] = ()
    beams: int | None = None
    language: str | None = None
    skip_bad: bool = False
    device: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The result for one set: its scores, a translator's output for each line, and messages about the set."""

    set: str
    scores: tuple[Score, ...]
    hypotheses: list[str] | None = None
    notes: Notes = ()


def evaluate(folder: str | os.PathLike[str], asked: EvaluationOptions) -> Iterator[Result]:
    """Evaluate the model of a run folder or a model folder, one set after the other.

    All sets are read and checked before the first is evaluated.
    """
    trained = read_trained(folder)
    trained.model.to(chosen_device(asked.device))
    recipe = None if trained.run is None else read_recipe(trained.run / RECIPE, within=trained.run)
    if recipe is not None and recipe.puzzle is not None:
        _refuse_splits(asked, say("evaluate-puzzle"))
        return iter([_puzzle(trained, recipe, asked.data)])
    if asked.data is None:
        raise ArgumentError("evaluate-no-data")
    if not asked.data.exists():
        raise FileError("data-absent", path=str(asked.data))
    if recipe is None and asked.data.is_dir():
        raise ArgumentError("evaluate-file-wanted", path=str(asked.data), recipe=RECIPE)
    if asked.data.is_file():
        _refuse_splits(asked, str(asked.data))
    spec = None if recipe is None else recipe.data
    if trained.model.config.kind == "encoder-decoder":
        how = EvaluationSpec() if recipe is None else recipe.evaluation
        how = how if asked.beams is None else replace(how, beams=asked.beams)
        sets = [_encoded(trained, *each, asked) for each in _pair_sets(trained, spec, asked, asked.data)]
        return _translations(trained, how, sets)
    return _texts(trained, spec, list(_text_sets(trained.run, spec, asked, asked.data)))


def _refuse_splits(asked: EvaluationOptions, data: str) -> None:
    if asked.splits:
        raise ArgumentError("evaluate-split-one", split=Listed(asked.splits), data=data)


# --- translators -----------------------------------------------------------------------------------------


class _EncodedSet(NamedTuple):
    """A set with its source sentences as ids."""

    pairs: PairSet
    sources: list[list[int]]
    notes: Notes


def _encoded(trained: TrainedModel, pairs: PairSet, notes: Notes, asked: EvaluationOptions) -> _EncodedSet:
    limit = trained.model.config.max_len
    try:
        found = encode_sources(trained.tokenizer, pairs.sources, limit, numbers=pairs.lines, cut=asked.skip_bad)
    except FileError as error:
        raise FileError("evaluate-set", set=pairs.name, reason=error) from error
    if found.cut:
        notes += (say("evaluate-cut", set=pairs.name, count=found.cut, limit=limit),)
    return _EncodedSet(pairs, found.ids, notes)


def _translations(trained: TrainedModel, how: EvaluationSpec, sets: list[_EncodedSet]) -> Iterator[Result]:
    options: dict[str, Any] = {"beams": how.beams, "length_penalty": how.length_penalty}
    for pairs, sources, notes in sets:
        hypotheses = translate(trained.model, trained.tokenizer, sources, **options)
        yield Result(set=pairs.name, scores=tuple(pairs.scores(hypotheses)), hypotheses=hypotheses, notes=notes)


def _pair_sets(
    trained: TrainedModel, spec: DataSpec | None, asked: EvaluationOptions, data: Path
) -> Iterator[tuple[PairSet, Notes]]:
    """The requested sets, each with messages about it."""
    named = asked.language or (spec and spec.target)
    languages = Languages(
        source=(spec and spec.source) or "en",
        target=named or trained.language or "en",
        tokenised=spec is not None and spec.pattern is not None,
    )
    if spec is None or data.is_file():
        corpus = read_plain_pairs(spec, [data], asked.skip_bad)
        notes = _skipped(corpus)
        if spec is not None and _was_trained_on(trained.run, corpus):
            corpus = replace(split_pairs(corpus, spec)[1], name=say("evaluate-held-out"))
        yield (pair_set(corpus, languages), notes) if named else _with_language(corpus, notes, languages, trained)
        return
    names = asked.splits or spec.tests or spec.valid
    if spec.pattern is None:
        for files in _grouped(names or spec.train):
            corpus = read_plain_pairs(spec, [data / name for name in files], asked.skip_bad)
            notes = _skipped(corpus)
            if not names:
                corpus = replace(split_pairs(corpus, spec)[1], name=say("evaluate-held-out"))
            yield (pair_set(corpus, languages), notes) if named else _with_language(corpus, notes, languages, trained)
        return
    for name in names:
        found = split_set(data, name, languages, pattern=spec.pattern, raw=spec.raw)
        plain = (spec.raw or "{split}.{lang}").format(split=name, lang=languages.target)
        yield found, () if found.plain is not None else (say("evaluate-no-plain", set=name, path=str(data / plain)),)


def _with_language(corpus: Corpus, notes: Notes, languages: Languages, trained: TrainedModel) -> tuple[PairSet, Notes]:
    """A set whose language neither the call nor the recipe names: taken from the model's settings or the references."""
    target = trained.language or language_of(corpus.columns[1])
    origin = "model" if trained.language else "guessed"
    note = say(f"evaluate-language-{origin}", set=corpus.name, language=target, tokenizer=tokenizer_for(target))
    return pair_set(corpus, replace(languages, target=target)), (*notes, note)


def _grouped(names: Sequence[str]) -> list[Sequence[str]]:
    """The files grouped into sets: one file per set, but two plain text files are the two sides of one set."""
    plain = [name for name in names if Path(name).suffix.lower() not in TABLES + RECORDS]
    return [names] if len(names) == 2 and len(plain) == 2 else [[name] for name in names]


def _was_trained_on(run: Path | None, corpus: Corpus) -> bool:
    """Whether the run was trained on exactly this file: then only its held-out end is new to the model."""
    about = None if run is None else read_hashed(run / RUN)
    return about is not None and about.get("files") == {corpus.name: corpus.sha256}


def _skipped(corpus: Corpus) -> Notes:
    if not corpus.skipped:
        return ()
    return (say("evaluate-skipped", set=corpus.name, count=corpus.skipped, first=corpus.problems[0]),)


# --- language models -------------------------------------------------------------------------------------


def _texts(
    trained: TrainedModel, spec: DataSpec | None, sets: list[tuple[str, Sequence[str], Notes]]
) -> Iterator[Result]:
    for name, texts, notes in sets:
        config, end = trained.model.config, trained.tokenizer.eos
        block = (spec and spec.max_len) or config.max_len or 1024
        rows = max(1, MOST_LOGITS // (block * (config.vocab_size or 1)))
        size = min(rows, (spec and spec.batch_size) or 16)
        ids = trained.tokenizer.pack(texts, end=end)
        blocks = BlockBatches(ids, block=block, batch_size=size, seed=0, shuffle=False)
        # An end-of-text token stands for a newline.
        joined = "".join(texts) if end is None else "".join(f"{text}\n" for text in texts)
        found = text_loss(trained.model, blocks, text=joined, device=_device_of(trained))
        yield Result(set=name, scores=_losses(found), notes=notes)


def _text_sets(
    run: Path | None, spec: DataSpec | None, asked: EvaluationOptions, data: Path
) -> Iterator[tuple[str, Sequence[str], Notes]]:
    """Set names with their texts: a user's own file, the recipe's tests, or the held-out end."""
    if spec is None or data.is_file():
        corpus = read_texts(spec, [data], asked.skip_bad)
        if spec is not None and _was_trained_on(run, corpus):
            yield _held_out_end(corpus, spec)
        else:
            yield corpus.name, corpus.columns[0], _skipped(corpus)
        return
    names = asked.splits or spec.tests or spec.valid
    for name in names:
        corpus = read_texts(spec, files_below(data, [name]), asked.skip_bad)
        yield name, corpus.columns[0], _skipped(corpus)
    if not names:
        yield _held_out_end(read_texts(spec, files_below(data, spec.train), asked.skip_bad), spec)


def _held_out_end(corpus: Corpus, spec: DataSpec) -> tuple[str, Sequence[str], Notes]:
    """The held-out end of the training text."""
    return say("evaluate-held-out"), split_end(corpus.columns[0], held_out_share(spec), spec.unit)[1], _skipped(corpus)


# --- puzzles ---------------------------------------------------------------------------------------------


def _puzzle(trained: TrainedModel, recipe: Recipe, data: Path | None) -> Result:
    puzzle, size = recipe.puzzle, recipe.data.batch_size
    assert puzzle is not None
    assert size is not None
    batches = PuzzleBatches(puzzle, trained.tokenizer, batch_size=size, seed=0, split="valid")
    model = trained.model if trained.model.config.kind == "decoder" else with_source_mask(trained.model)
    found = text_loss(model, batches, device=_device_of(trained))
    solved = Score("solved", 100 * found.solved / found.examples, None)
    notes = puzzle_notes(recipe, data)
    return Result(set=say("evaluate-held-out"), scores=(solved, *_losses(found)), notes=notes)


def _losses(found: TextLoss) -> tuple[Score, ...]:
    values: dict[str, Any] = {
        "loss": found.loss,
        "perplexity": found.perplexity,
        "bits-per-byte": found.bits_per_byte,
        "bits-per-character": found.bits_per_character,
    }
    return tuple(Score(name, value, None) for name, value in values.items() if value is not None)


def _device_of(trained: TrainedModel) -> torch.device:
    return next(trained.model.parameters()).device
