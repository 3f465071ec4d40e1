"""Trains a recipe in a run folder: data, training loop, final model, its film and the monitor of its attention.

The same call resumes an interrupted run. A run may start from an existing model instead of random weights:
`regard train RECIPE --start MODEL`.
"""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
from fnmatch import fnmatch
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard import __version__
from regard.capture import Monitor, monitor
from regard.checkpoints import save_model
from regard.checkpoints.model_folder import model_folder_of
from regard.config import RecurrentConfig, TransformerConfig
from regard.config.weights import ModelConfig, weight_shapes
from regard.errors import ArgumentError, FileError
from regard.evaluation.scores import translation_logits
from regard.evaluation.translation import MODEL, RECIPE, RUN, TOKENIZER, read_trained
from regard.files.output import write_error
from regard.memory import free_gpu_bytes, require_bytes
from regard.messages import Listed
from regard.models import Model, RecurrentModel, Transformer, build_model
from regard.recipes.data import DataSource, PreparedData, prepare
from regard.recipes.puzzles import batch_of, solve
from regard.recipes.recipe import FilmSpec, MonitorSpec, Recipe, config_of, differences, read_recipe, to_toml
from regard.records import See
from regard.text.tokenizer import Tokenizer
from regard.trace import Recorder, Trace
from regard.training.batches import Batch, PairBatches
from regard.training.loop import Callback, Outcome, Task, fit
from regard.training.processes import Ranks, joined
from regard.training.run_files import (
    check_hashes,
    discard,
    hash_of,
    lock_folder,
    move,
    read_hashed,
    replace_file,
    retire,
    sha256_of,
    sweep,
    sync_file,
    sync_folder,
    temporary,
    write_hashed,
)
from regard.training.run_reports import METRICS, Finished, Listener, Reason
from regard.training.sharding import full_weights
from regard.training.step import Forward, validation_loss


class StartModel(NamedTuple):
    """A model to start from. `files` are the hashes of its files by name, for run.json."""

    folder: Path
    config: TransformerConfig | RecurrentConfig
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    files: dict[str, str]


def read_start(folder: str | os.PathLike[str]) -> StartModel:
    """The model and tokenizer of a run folder or a model folder; int8 weights as float32. Raises FileError."""
    found = read_trained(folder)
    place = model_folder_of(Path(folder))
    names = [path.name for path in sorted(place.iterdir()) if path.suffix == ".safetensors" or path.name == TOKENIZER]
    files = {name: sha256_of(place / name) for name in names}
    return StartModel(place, found.model.config, found.model.float().state_dict(), found.tokenizer, files)


def check_start(start: StartModel, config: TransformerConfig | RecurrentConfig, tokenizer: Tokenizer) -> None:
    """FileError unless the recipe's model has the config and the tokenizer of the start model.

    Dropout and forget_bias may differ.
    """
    if tokenizer.to_json() != start.tokenizer.to_json():
        raise FileError("start-tokenizer", path=str(start.folder / TOKENIZER))
    ours, theirs = (_architecture(each) for each in (config, start.config))
    if type(ours) is not type(theirs):
        values = {"wanted": type(theirs).__name__, "found": type(ours).__name__}
        raise FileError("start-config", path=str(start.folder), keys="model", name="model", **values)
    different = [each.name for each in fields(ours) if getattr(ours, each.name) != getattr(theirs, each.name)]
    if different:
        key = different[0]
        values = {"wanted": getattr(theirs, key), "found": getattr(ours, key)}
        raise FileError("start-config", path=str(start.folder), keys=Listed(different), name=key, **values)


def _architecture(config: TransformerConfig | RecurrentConfig) -> TransformerConfig | RecurrentConfig:
    """The config without dropout and initial biases, which leave shapes and names of the weights as they are."""
    if isinstance(config, RecurrentConfig):
        return replace(config, dropout=0.0, forget_bias=None)
    return replace(config, dropout=0.0, attention=replace(config.attention, dropout=0.0))


class FilmInput(NamedTuple):
    """The film's text as ids and as token labels."""

    batch: Batch
    tokens: list[str]
    source: list[str] | None


def film_saver(
    recipe: Recipe, model: Model, forward: Forward, tokenizer: Tokenizer, folder: Path, saves: bool = True
) -> Callable[[int], None]:
    """A function of the step: runs the model on the film's text and saves its maps as step-00000100.safetensors.

    saves   whether this process saves what it ran: of a divided model all processes run, and the first saves
    """
    spec = recipe.film
    if spec is None:
        raise ArgumentError("film-no-scene", recipe=recipe.name)
    film_input = film_input_of(recipe, spec, tokenizer)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise write_error(error, folder, 0) from error

    def save_frame(step: int) -> None:
        recorder = Recorder(See())
        device = next(model.parameters()).device
        inputs = {name: each.to(device) for name, each in film_input.batch.inputs.items()}
        forward(model, **inputs, attend=recorder)
        if not saves:
            return
        trace = recorder.label(film_input.tokens, film_input.source)
        _matching(trace, spec.layers).save(folder / f"step-{step:08d}.safetensors")

    return save_frame


def film_input_of(recipe: Recipe, spec: FilmSpec, tokenizer: Tokenizer) -> FilmInput:
    """The film's text as model input. Raises ArgumentError if it is too long or has no ids."""
    most = recipe.data.max_len
    if not spec.text:
        raise ArgumentError("film-length", found=0, most=most)
    try:
        batch = _batch(recipe, spec, tokenizer)
    except ArgumentError as error:  # a character without a token
        raise ArgumentError("film-text", reason=error) from error
    found = max(each.shape[1] for each in batch.inputs.values())
    if found > most:
        raise ArgumentError("film-length", found=found, most=most)
    labels = {
        name: tokenizer.pieces(ids[0].tolist()) for name, ids in batch.inputs.items() if name in ("ids", "source")
    }
    return FilmInput(batch, labels["ids"], labels.get("source"))


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


def _matching(trace: Trace, patterns: tuple[str, ...]) -> Trace:
    """The records whose names match one of the patterns; all if there are no patterns."""
    records = [each for each in trace if not patterns or any(fnmatch(each.name or "", one) for one in patterns)]
    if not records:
        names = Listed(each.name for each in trace)
        raise ArgumentError("film-layers", patterns=Listed(patterns), names=names)
    return Trace(records)


class AttentionGauge:
    """`regard.monitor` for the training loop: its numbers by step, under the names of the model's modules."""

    def __init__(self, spec: MonitorSpec) -> None:
        self.spec = spec
        self._monitor: Monitor | None = None
        self._numbers: dict[int, dict[str, float]] = {}

    def attach(self, learner: torch.nn.Module, accumulate: int) -> None:
        """Begin, on the module that every forward calls."""
        options: dict[str, Any] = {"accumulate": accumulate, "heads": self.spec.heads}
        self._monitor = monitor(learner, self.spec.every, self._receive, **options)

    def begins(self, step: int) -> bool:
        """Set the step that follows: in a CUDA graph no forward counts it. Whether it is measured."""
        assert self._monitor is not None
        return self._monitor.begins(step)

    def take(self, step: int) -> dict[str, float]:
        """The numbers of a step; empty if it was not measured."""
        assert self._monitor is not None
        self._monitor.flush()
        return self._numbers.pop(step, {})

    def _receive(self, metrics: dict[str, float], step: int) -> None:
        self._numbers[step] = {name.replace("/model.", "/", 1): number for name, number in metrics.items()}


CHANGEABLE = ("name", "about", "film", "evaluation", "monitor")
"""Parts of a recipe that may change when a run is resumed: they do not affect training."""

FINISHED = "finished.json"
_BEFORE_RECIPE = r"lock|recipe\.toml\.tmp-[0-9]+"
"""Files that a run killed at its start may have left in its folder."""

COMPILE_SECONDS = 300.0
"""Timeout for other processes if steps are compiled: compilation takes different times in different processes."""


class TrainingResult(NamedTuple):
    """Why a call ended, and the final figures if the run is finished."""

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
    start: str | os.PathLike[str] | None = None,
    listeners: Sequence[Listener] = (),
    say_note: Callable[[str], None] = lambda note: None,
) -> TrainingResult:
    """Train a recipe, or continue an interrupted run in `out`; a finished run is not changed.

    data      the folder with the recipe's files, or one file of the user's
    start     a run or model folder whose weights and tokenizer the run starts with; None for random weights
    film      save the maps of the recipe's film text
    skip_bad  skip lines that cannot be used, and report their number
    seconds   the timeout for other processes within a step
    """
    if seconds is None and recipe.training.compile:
        seconds = COMPILE_SECONDS
    with joined(device, seconds) as ranks:
        _make_folder(out)
        _check_recipe(recipe, out)
        finished = _finished(out)
        ranks.wait()  # all processes must have read the folder before one of them writes
        if finished is None:
            first = None if start is None else read_start(start)
            source = DataSource(data, skip_bad, None)
            with lock_folder(out) if ranks.is_first else nullcontext():
                finished = _train(recipe, source, first, out, film, ranks, listeners, say_note)
                ranks.wait_for_first()
        else:
            event = Finished(step=finished.figures["step"], reason="already", figures=finished.figures)
            _notify([event], ranks, *listeners)
        return finished


def _train(
    recipe: Recipe,
    source: DataSource,
    start: StartModel | None,
    out: Path,
    film: bool,
    ranks: Ranks,
    listeners: Sequence[Listener],
    say_note: Callable[[str], None],
) -> TrainingResult:
    prepared = _prepare(recipe, source, start, out, ranks)
    _notify(prepared.notes, ranks, say_note)
    torch.manual_seed(recipe.training.seed)
    model = build_model(config_of(recipe, prepared.tokenizer.vocab_size))
    if start is not None:
        model.load_state_dict(start.weights)
    forward = translation_logits if model.config.kind == "encoder-decoder" else decoder_logits
    callbacks = []
    if film:
        save_frame = film_saver(recipe, model, forward, prepared.tokenizer, out / "film", ranks.is_first)
        assert recipe.film is not None
        callbacks.append(Callback(recipe.film.every, save_frame))
    task = Task(model, forward, prepared.data, prepared.valid)
    gauge = None if recipe.monitor is None else AttentionGauge(recipe.monitor)
    outcome = fit(task, recipe.training, out, ranks, listeners=listeners, callbacks=callbacks, gauge=gauge)
    figures = {} if outcome.weights is None else _write_results(task, outcome, recipe, prepared, out, ranks)
    _notify([Finished(step=outcome.progress.step, reason=outcome.reason, figures=figures)], ranks, *listeners)
    _notify(outcome.notes, ranks, say_note)
    return TrainingResult(outcome.reason, figures)


def _notify(messages: Iterable[Any], ranks: Ranks, *listeners: Callable[[Any], None]) -> None:
    """Send messages to the listeners of the first process only; those of the other processes are the same."""
    for each in messages if ranks.is_first else ():
        for listener in listeners:
            listener(each)


def decoder_logits(model: Model, ids: Tensor, **options: Any) -> Tensor:
    """Logits of a language model. Padding is on the right, where causal attention masks it."""
    return model(ids, **options)


# --- the folder ------------------------------------------------------------------------------------------


def _make_folder(out: Path) -> None:
    """Create the run's folder, or accept an existing run. Raises FileError for a folder with other files."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in out.iterdir() if not re.fullmatch(_BEFORE_RECIPE, path.name)]
    except OSError as error:
        raise write_error(error, out, 0) from error
    if others and not os.path.lexists(out / RECIPE):
        raise FileError("run-not-ours", path=str(out), found=Listed(sorted(others)[:3]))


def _check_recipe(recipe: Recipe, out: Path) -> None:
    """FileError if the run in the folder was started with another recipe."""
    if not os.path.lexists(out / RECIPE):
        return
    before = read_recipe(out / RECIPE, within=out)
    changed = [key for key in differences(before, recipe) if key.partition(".")[0] not in CHANGEABLE]
    if changed:
        raise FileError("run-other-recipe", path=str(out), keys=Listed(changed[:5]))


def _finished(out: Path) -> TrainingResult | None:
    """The figures of a finished run; None if it is not finished. FileError if one of its files has changed."""
    found = read_hashed(out / FINISHED)
    if found is None:
        return None
    check_hashes(out, found.pop("files"), remove=FINISHED)
    return TrainingResult("already", found)


def _prepare(recipe: Recipe, source: DataSource, start: StartModel | None, out: Path, ranks: Ranks) -> PreparedData:
    """The data, unchanged in a resumed run. The first process trains the tokenizer, the others read it."""
    path = out / TOKENIZER
    if not ranks.is_first:
        ranks.wait_for_first()
    before = read_hashed(out / RUN) or {}
    source = source._replace(known=before.get("files"))
    if before and before.get("start") != (None if start is None else start.files):
        raise FileError("run-other-start", path=str(out))
    if start is not None and recipe.data.tokenizer_file is None:
        source = source._replace(tokenizer=start.tokenizer)
    if os.path.lexists(path):
        if TOKENIZER in before:
            check_hashes(out, {TOKENIZER: before[TOKENIZER]}, remove=TOKENIZER)
        source = source._replace(tokenizer=Tokenizer.read(path, within=out))
    prepared = prepare(recipe, source)
    # Errors about the model come before the folder becomes a run.
    config = config_of(recipe, prepared.tokenizer.vocab_size)
    require_memory(config, ranks.device, ranks.world if recipe.training.shard else 1)
    if start is not None:
        check_start(start, config, prepared.tokenizer)
    if ranks.is_first:
        _write_run_files(recipe, prepared, start, out)
        ranks.wait_for_first()
    return prepared


def _write_run_files(recipe: Recipe, prepared: PreparedData, start: StartModel | None, out: Path) -> None:
    """Write recipe, tokenizer and run.json. The recipe comes first: it marks a folder as a run."""
    sweep(out, "|".join(map(re.escape, (RECIPE, RUN, MODEL, FINISHED))))
    for leftover in out.glob(f".{TOKENIZER}.*"):
        discard(leftover)
    content = to_toml(recipe).encode()
    with _writing(out / RECIPE, len(content)):
        replace_file(out / RECIPE, content)
    if not os.path.lexists(out / TOKENIZER):
        with _writing(out / TOKENIZER, 2**10 * prepared.tokenizer.vocab_size):
            prepared.tokenizer.save(out / TOKENIZER)
    versions = {"regard": __version__, "python": platform.python_version(), "torch": torch.__version__}
    about: dict[str, Any] = {"versions": versions, "files": prepared.files, "seed": recipe.training.seed}
    about |= {} if start is None else {"start": start.files}
    write_hashed(out / RUN, about | {TOKENIZER: hash_of(out / TOKENIZER)})


def require_memory(config: ModelConfig, device: torch.device, parts: int = 1) -> None:
    """TooLargeError if the weights, their gradients and the optimizer's two means do not fit in memory as float32.

    parts   the number of processes that they are divided among
    """
    count = sum(map(prod, weight_shapes(config).values()))
    free = free_gpu_bytes(torch.empty(0, device=device))
    require_bytes(4 * 4 * count // parts, key="train-too-large", free=free, parameters=f"{count:,}", device=str(device))


@contextmanager
def _writing(path: Path, need: int) -> Iterator[None]:
    """Convert OSError, also as the cause of a FileError, so that a full disk is reported as such."""
    try:
        yield
    except (OSError, FileError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise write_error(cause, path, need) from error


def _write_results(
    task: Task, outcome: Outcome, recipe: Recipe, prepared: PreparedData, out: Path, ranks: Ranks
) -> dict[str, Any]:
    """The final figures of the run. Writes the final model and then finished.json, which marks the run as finished."""
    assert outcome.weights is not None
    assert task.valid is not None
    assert isinstance(task.model, Transformer | RecurrentModel)
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
    weights = full_weights(task.model) if recipe.training.shard else task.model.state_dict()
    if ranks.is_first:
        _write_model(task.model.config, weights, prepared.tokenizer, out / MODEL)
        kept = [out / name for name in (RECIPE, RUN, TOKENIZER, METRICS)]
        files = {path.relative_to(out).as_posix(): hash_of(path) for path in (*kept, *sorted((out / MODEL).iterdir()))}
        write_hashed(out / FINISHED, figures | {"files": files})
    return figures


def _write_model(config: ModelConfig, weights: Mapping[str, Tensor], tokenizer: Tokenizer, target: Path) -> None:
    """Write the model folder under a temporary name, then rename it."""
    partial = temporary(target)
    with _writing(target, sum(weight.nbytes for weight in weights.values())):
        try:
            save_model(partial, config, weights)
            tokenizer.save(partial / TOKENIZER)
            for path in partial.iterdir():
                sync_file(path)
            if target.exists():
                retire(target)
            move(partial, target)
            sync_folder(target.parent)
        finally:
            with suppress(OSError):  # must not hide the first error; the next call sweeps
                discard(partial)
        sweep(target.parent, target.name)
