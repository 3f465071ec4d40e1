"""A recipe run from beginning to end in one folder: data, training, model, and the film of its attention.

The same call resumes an interrupted run.
"""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatch
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard import __version__
from regard.checkpoints import save_model
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError
from regard.evaluation.scores import translated
from regard.evaluation.translation import MODEL, RECIPE, RUN, TOKENIZER
from regard.files.output import refusal
from regard.memory import free_beside, require
from regard.messages import Listed
from regard.models import Transformer
from regard.recipes.data import Prepared, Source, prepare
from regard.recipes.puzzles import batch_of, solve
from regard.recipes.recipe import FilmSpec, Recipe, config_of, differences, read_recipe, to_toml
from regard.records import See
from regard.text.tokenizer import Tokenizer
from regard.trace import Looking, Trace
from regard.training.batches import Batch, PairBatches
from regard.training.durable import (
    discard,
    move,
    replace_file,
    retire,
    sweep,
    sync_file,
    sync_folder,
    temporary,
)
from regard.training.journal import METRICS, Finished, Listener, Reason
from regard.training.loop import Moment, Outcome, Task, fit
from regard.training.ranks import Ranks, joined
from regard.training.run_files import check_hashes, hash_of, hold, read_sealed, write_sealed
from regard.training.step import Forward, validation_loss


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


FREE = ("name", "about", "film", "evaluation")
"""Parts of a recipe that may change between two parts of a run: they do not touch the training."""

FINISHED = "finished.json"
_BEFORE_RECIPE = r"lock|recipe\.toml\.tmp-[0-9]+"
"""What a run that was killed at once may have left in its folder."""

COMPILE_SECONDS = 300.0
"""How long other processes are waited for where a step is compiled, which takes one of them longer than another."""


class Ending(NamedTuple):
    """How a call ended, and the figures of a run that is finished."""

    reason: Reason
    figures: dict[str, Any]


def train(
    recipe: Recipe,
    *,
    data: Path | None,
    out: Path,
    film: bool = False,
    skip_bad: bool = False,
    device: str | None = None,
    seconds: float | None = None,
    listeners: Sequence[Listener] = (),
    say_note: Callable[[str], None] = lambda note: None,
) -> Ending:
    """Train by a recipe, or go on where an earlier call was ended; a finished run is left as it is.

    data      the folder of the recipe's files, or one file of one's own
    film      keep the maps of the recipe's film text
    skip_bad  leave out lines that cannot be used, and count them
    seconds   how long other processes are waited for within a step
    """
    if seconds is None and recipe.training.compile:
        seconds = COMPILE_SECONDS
    with joined(device, seconds) as ranks:
        _make_folder(out)
        _check_same(recipe, out)
        finished = _finished(out)
        ranks.wait()  # all have looked before one of them writes
        if finished is None:
            with hold(out) if ranks.is_first else nullcontext():
                finished = _trained(recipe, Source(data, skip_bad, None), out, film, ranks, listeners, say_note)
                ranks.wait_for_first()
        else:
            _tell(
                [Finished(step=finished.figures["step"], reason="already", figures=finished.figures)], ranks, *listeners
            )
        return finished


def _trained(
    recipe: Recipe,
    source: Source,
    out: Path,
    film: bool,
    ranks: Ranks,
    listeners: Sequence[Listener],
    say_note: Callable[[str], None],
) -> Ending:
    prepared = _prepared(recipe, source, out, ranks)
    _tell(prepared.notes, ranks, say_note)
    torch.manual_seed(recipe.training.seed)
    model = Transformer(config_of(recipe, prepared.tokenizer.vocab_size))
    forward = translated if model.config.kind == "encoder-decoder" else continued
    moments = []
    if film:
        look = camera(recipe, model, forward, prepared.tokenizer, out / "film")
        assert recipe.film is not None
        moments.append(Moment(recipe.film.every, look))
    task = Task(model, forward, prepared.data, prepared.valid)
    outcome = fit(task, recipe.training, out, ranks, listeners=listeners, moments=moments)
    figures = {} if outcome.weights is None else _written(task, outcome, recipe, prepared, out, ranks)
    _tell([Finished(step=outcome.progress.step, reason=outcome.reason, figures=figures)], ranks, *listeners)
    _tell(outcome.notes, ranks, say_note)
    return Ending(outcome.reason, figures)


def _tell(news: Iterable[Any], ranks: Ranks, *listeners: Callable[[Any], None]) -> None:
    """Let those who listen to the first process know; the others have the same to say."""
    for each in news if ranks.is_first else ():
        for listener in listeners:
            listener(each)


def continued(model: Transformer, ids: Tensor, **options: Any) -> Tensor:
    """Logits of a language model; what is padded comes last, where nobody looks."""
    return model(ids, **options)


# --- the folder ------------------------------------------------------------------------------------------


def _make_folder(out: Path) -> None:
    """The run's folder, new or of this run; never one with other things in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        strange = [path.name for path in out.iterdir() if not re.fullmatch(_BEFORE_RECIPE, path.name)]
    except OSError as error:
        raise refusal(error, out, 0) from error
    if strange and not os.path.lexists(out / RECIPE):
        raise FileError("run-not-ours", path=str(out), found=Listed(sorted(strange)[:3]))


def _check_same(recipe: Recipe, out: Path) -> None:
    """A run goes on by the recipe that it began with."""
    if not os.path.lexists(out / RECIPE):
        return
    before = read_recipe(out / RECIPE, within=out)
    changed = [key for key in differences(before, recipe) if key.partition(".")[0] not in FREE]
    if changed:
        raise FileError("run-other-recipe", path=str(out), keys=Listed(changed[:5]))


def _finished(out: Path) -> Ending | None:
    """The figures of a run that is finished, and of which nothing has changed since."""
    found = read_sealed(out / FINISHED)
    if found is None:
        return None
    check_hashes(out, found.pop("files"), remove=FINISHED)
    return Ending("already", found)


def _prepared(recipe: Recipe, source: Source, out: Path, ranks: Ranks) -> Prepared:
    """The data, the same as before; the first process learns the tokenizer, the others read it."""
    known = out / TOKENIZER
    if not ranks.is_first:
        ranks.wait_for_first()
    before = read_sealed(out / RUN) or {}
    source = source._replace(known=before.get("files"))
    if os.path.lexists(known):
        if TOKENIZER in before:
            check_hashes(out, {TOKENIZER: before[TOKENIZER]}, remove=TOKENIZER)
        source = source._replace(tokenizer=Tokenizer.read(known, within=out))
    prepared = prepare(recipe, source)
    # What is wrong with the model is told before the folder is a run's.
    require_memory(config_of(recipe, prepared.tokenizer.vocab_size), ranks.device)
    if ranks.is_first:
        _write_down(recipe, prepared, out)
        ranks.wait_for_first()
    return prepared


def _write_down(recipe: Recipe, prepared: Prepared, out: Path) -> None:
    """What the run is: first its recipe, by which a folder is known to be a run's."""
    sweep(out, "|".join(map(re.escape, (RECIPE, RUN, MODEL, FINISHED))))
    for aside in out.glob(f".{TOKENIZER}.*"):
        discard(aside)
    content = to_toml(recipe).encode()
    with _writing(out / RECIPE, len(content)):
        replace_file(out / RECIPE, content)
    if not os.path.lexists(out / TOKENIZER):
        with _writing(out / TOKENIZER, 2**10 * prepared.tokenizer.vocab_size):
            prepared.tokenizer.save(out / TOKENIZER)
    versions = {"regard": __version__, "python": platform.python_version(), "torch": torch.__version__}
    about = {"versions": versions, "files": prepared.files, "seed": recipe.training.seed}
    write_sealed(out / RUN, about | {TOKENIZER: hash_of(out / TOKENIZER)})


def require_memory(config: TransformerConfig, device: torch.device) -> None:
    """TooLargeError where the weights, their gradients and the optimizer's two means do not fit, in float32."""
    count = sum(map(prod, weight_shapes(config).values()))
    free = free_beside(torch.empty(0, device=device))
    require(4 * 4 * count, key="train-too-large", free=free, parameters=f"{count:,}", device=str(device))


@contextmanager
def _writing(path: Path, need: int) -> Iterator[None]:
    """Where the disk is full it is told so, whoever met it."""
    try:
        yield
    except (OSError, FileError) as error:
        met = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(met, OSError):
            raise
        raise refusal(met, path, need) from error


def _written(
    task: Task, outcome: Outcome, recipe: Recipe, prepared: Prepared, out: Path, ranks: Ranks
) -> dict[str, Any]:
    """The figures of the run: its model is put down, with its loss; last of all, the word that it is finished."""
    assert outcome.weights is not None
    assert task.valid is not None
    assert isinstance(task.model, Transformer)
    task.model.load_state_dict(outcome.weights)
    loss = validation_loss(task.model, task.forward, task.valid, ranks, nullcontext)
    progress = outcome.progress
    figures = {
        "recipe": recipe.name,
        "seed": recipe.training.seed,
        "parameters": sum(weight.numel() for weight in task.model.parameters()),
        "step": progress.step,
        "reason": outcome.reason,
        "skipped": progress.skipped,
        "valid_loss": loss,
        "best_valid_loss": progress.best,
        "best_step": progress.best_step,
    }
    if ranks.is_first:
        _put_model(task.model, prepared.tokenizer, out / MODEL)
        kept = [out / name for name in (RECIPE, RUN, TOKENIZER, METRICS)]
        files = {path.relative_to(out).as_posix(): hash_of(path) for path in (*kept, *sorted((out / MODEL).iterdir()))}
        write_sealed(out / FINISHED, figures | {"files": files})
    return figures


def _put_model(model: Transformer, tokenizer: Tokenizer, target: Path) -> None:
    """The model's folder, made aside and put in place whole."""
    aside = temporary(target)
    with _writing(target, sum(weight.nbytes for weight in model.state_dict().values())):
        try:
            save_model(aside, model.config, model.state_dict())
            tokenizer.save(aside / TOKENIZER)
            for path in aside.iterdir():
                sync_file(path)
            if target.exists():
                retire(target)
            move(aside, target)
            sync_folder(target.parent)
        finally:
            with suppress(OSError):  # what stopped us is the news, and the next call sweeps
                discard(aside)
        sweep(target.parent, target.name)
