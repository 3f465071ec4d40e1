"""The film of a run: what chosen attention layers make of one text, kept every so many steps as a Trace file."""

import re
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import torch

from regard.errors import ArgumentError
from regard.files import refusal
from regard.models import Transformer
from regard.recipes.recipe import FilmSpec, Recipe
from regard.recipes.synthetic import batch_of, solve
from regard.records import See
from regard.text.tokenizer import Tokenizer
from regard.trace import Looking, Trace
from regard.training.batches import Batch, PairBatches
from regard.training.objective import Forward
from regard.words import Listed


class Scene(NamedTuple):
    """What is looked at, in ids and in words."""

    batch: Batch
    tokens: list[str]
    source: list[str] | None


def camera(
    recipe: Recipe, model: Transformer, forward: Forward, tokenizer: Tokenizer, folder: Path
) -> Callable[[int], None]:
    """look(step): run the model on the film's text and keep the maps in folder/step-00000100.safetensors."""
    spec = recipe.film
    if spec is None:
        raise ArgumentError("film-no-scene", recipe=recipe.name)
    scene = scene_of(recipe, spec, tokenizer)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise refusal(error, folder, 0) from error

    def look(step: int) -> None:
        looking = Looking(See())
        device = next(model.parameters()).device
        inputs = {name: each.to(device) for name, each in scene.batch.inputs.items()}
        forward(model, **inputs, attend=looking)
        trace = looking.label(scene.tokens, scene.source)
        _chosen(trace, spec.layers).save(folder / f"step-{step:08d}.safetensors")

    return look


def scene_of(recipe: Recipe, spec: FilmSpec, tokenizer: Tokenizer) -> Scene:
    """The film's text as the model reads it. ArgumentError where it cannot."""
    most = recipe.data.max_len
    if not spec.text:
        raise ArgumentError("film-length", found=0, most=most)
    try:
        batch = _batch(recipe, spec, tokenizer)
    except ArgumentError as error:  # a character that no token stands for
        raise ArgumentError("film-text", reason=error) from error
    found = max(each.shape[1] for each in batch.inputs.values())
    if found > most:
        raise ArgumentError("film-length", found=found, most=most)
    words = {name: tokenizer.pieces(ids[0].tolist()) for name, ids in batch.inputs.items() if name in ("ids", "source")}
    return Scene(batch, words["ids"], words.get("source"))


def _batch(recipe: Recipe, spec: FilmSpec, tokenizer: Tokenizer) -> Batch:
    puzzle = recipe.puzzle
    if puzzle is not None:
        if puzzle.kind == "addition" and not re.fullmatch(r"[0-9]+\+[0-9]+", spec.text):
            raise ArgumentError("film-addition", found=spec.text)
        return batch_of(puzzle.kind, [solve(puzzle.kind, spec.text)], tokenizer)
    if recipe.task == "language":
        ids = torch.tensor([tokenizer.encode(spec.text)], dtype=torch.int64)
        return Batch({"ids": ids}, ids, (0,))
    source, target = ([tokenizer.encode(text)] for text in (spec.text, spec.target or spec.text))
    return PairBatches(source, target, tokens_per_batch=2**31, seed=0, shuffle=False, **tokenizer.marks()).batch(0, 0)


def _chosen(trace: Trace, patterns: tuple[str, ...]) -> Trace:
    """The records whose names fit one of the patterns; all where there is none."""
    records = [each for each in trace if not patterns or any(fnmatch(each.name or "", one) for one in patterns)]
    if not records:
        names = Listed(each.name for each in trace)
        raise ArgumentError("film-layers", patterns=Listed(patterns), names=names)
    return Trace(records)
