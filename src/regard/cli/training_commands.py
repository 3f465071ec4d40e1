"""`regard train`, `evaluate`, `plot` and `film`: a model trained by a recipe, its scores and curves."""

import math
import os
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.arguments import beam_count, is_count, whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError, FileError, require_package
from regard.files.output import PICTURES, check_target, extension_of, write_output
from regard.messages import Listed, language, say

if TYPE_CHECKING:
    from regard.recipes.evaluating import Result
    from regard.recipes.recipe import Recipe
    from regard.views.curves import Curve


INTERRUPTED = 130


def train(
    recipe: Annotated[
        str | None, typer.Argument(metavar="metavar-recipe", help="help-recipe", show_default=False)
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", metavar="metavar-data", help="help-train-data")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="metavar-folder", help="help-train-out")] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-train-seed")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="metavar-key-value", help="help-train-set")
    ] = None,
    film: Annotated[bool, typer.Option("--film", help="help-train-film")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="help-train-skip-bad")] = False,
    start: Annotated[str | None, typer.Option("--start", metavar="metavar-model", help="help-train-start")] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="metavar-device", help="help-train-device")] = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="metavar-seconds", help="help-train-timeout")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if recipe is None:
        _list(as_json)
        return
    chosen = _read(recipe, changes or [], seed)
    if out is None:
        raise ArgumentError("train-needs-out", recipe=recipe)
    seconds = None if timeout is None else _seconds(timeout)
    is_first = os.environ.get("RANK", "0") == "0"
    require_package("torch", "regard train", extra="train")

    from regard.cli.training_screen import TrainingScreen
    from regard.language.loading import find_model
    from regard.recipes.running import train as run

    with TrainingScreen(chosen.name) if is_first else nullcontext() as screen:
        ending = run(
            chosen,
            data=data,
            out=out,
            film=film,
            skip_bad=skip_bad,
            device=device,
            seconds=seconds,
            start=None if start is None else find_model(start),
            listeners=[] if screen is None else [screen],
            say_note=print_message,
        )
    if as_json and is_first:
        write_json({"out": str(out), **ending.figures, "reason": ending.reason})
    if ending.reason == "signal":
        raise typer.Exit(INTERRUPTED)


def _read(recipe: str, changes: list[str], seed: str | None) -> "Recipe":
    """The recipe with its changes, --seed among them."""
    from regard.recipes.recipe import read_recipe

    given: dict[str, str] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise ArgumentError("train-set-form", found=change)
        given[key.strip()] = value.strip()
    if seed is not None:
        given["training.seed"] = str(whole_number("--seed", seed, least=0))
    return read_recipe(recipe, given)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ArgumentError("train-timeout-value", found=text)
    return seconds


def _list(as_json: bool) -> None:
    from rich.cells import cell_len

    from regard.recipes.recipe import recipe_names

    found = {name: getattr(about, language()) for name, about in recipe_names().items()}
    if as_json:
        write_json(found)
        return
    width = max(map(cell_len, found)) + 2
    for name, about in found.items():
        put(name.ljust(width) + about)
    sys.stdout.flush()
    print_message(say("train-more"))
    if find_spec("torch") is None:
        print_message(say("missing-package", what="regard train", package="torch", extra="train"))


# --- evaluate ----------------------------------------------------------------------------------------------


def evaluate(
    model: Annotated[
        str | None, typer.Argument(metavar="metavar-model", help="help-evaluate-model", show_default=False)
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", metavar="metavar-data", help="help-evaluate-data")] = None,
    split: Annotated[
        list[str] | None, typer.Option("--split", metavar="metavar-name", help="help-evaluate-split")
    ] = None,
    beams: Annotated[str | None, typer.Option("--beams", metavar="metavar-number", help="help-evaluate-beams")] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="metavar-language", help="help-evaluate-language")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="metavar-file", help="help-evaluate-output")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="help-evaluate-skip-bad")] = False,
    device: Annotated[
        str | None, typer.Option("--device", metavar="metavar-device", help="help-evaluate-device")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if model is None:
        raise ArgumentError("evaluate-no-model")
    beam_width = None if beams is None else beam_count(beams)
    require_package("torch", "regard evaluate", extra="train")
    if output is not None:
        check_target(output)

    from regard.language.loading import find_model
    from regard.recipes.evaluating import EvaluationOptions
    from regard.recipes.evaluating import evaluate as evaluate_model

    splits = tuple(dict.fromkeys(split or ()))
    options: dict[str, Any] = {"language": language, "skip_bad": skip_bad, "device": device}
    results = []
    for result in evaluate_model(
        find_model(model), EvaluationOptions(data=data, splits=splits, beams=beam_width, **options)
    ):
        results.append(result)
        for note in result.notes:
            print_message(note)
    if as_json:
        write_json({"model": model, "sets": [_as_json(result) for result in results]})
    else:
        put(table(results))
    if output is not None:
        _write(output, results)
        print_message(say("saved", file=output))


def table(results: list["Result"]) -> str:
    """A table with one line for each score: set, metric, value, and the signature if a score has one."""
    from regard.views.curves import loss_text
    from regard.views.labels import aligned

    has_signatures = any(score.signature for result in results for score in result.scores)
    columns = ("set", "metric", "value", "signature")[: 4 if has_signatures else 3]
    rows = [[say(f"evaluate-column-{name}") for name in columns]]
    for result in results:
        for score in result.scores:
            is_loss = score.signature is None and score.name != "solved"
            value = loss_text(score.value) if is_loss else f"{score.value:.2f}"
            rows.append([result.set, say(f"metric-{score.name}"), value, score.signature or ""][: len(columns)])
    return "\n".join(aligned(rows, ("left", "left", "right", "left")[: len(columns)]))


def _as_json(result: "Result") -> dict[str, Any]:
    scores = {
        score.name: {
            "value": score.value if math.isfinite(score.value) else None,  # JSON has no infinity
            "signature": score.signature,
        }
        for score in result.scores
    }
    return {"set": result.set, "scores": scores, "notes": list(result.notes)}


def _write(path: Path, results: list["Result"]) -> None:
    """Write the translations of the one set, a line for each sentence."""
    if len(results) != 1 or results[0].hypotheses is None:
        raise ArgumentError("evaluate-output-one", sets=Listed(result.set for result in results))
    lines = (" ".join(text.splitlines()) for text in results[0].hypotheses)
    content = "".join(f"{line}\n" for line in lines).encode()
    write_output(path, content)


# --- plot --------------------------------------------------------------------------------------------------


def plot(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="metavar-runs", help="help-plot-runs", show_default=False)
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", metavar="metavar-name", help="help-metric")] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="metavar-file", help="help-png")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if not runs:
        raise ArgumentError("plot-no-runs")
    if png is not None:
        extension_of(png, *PICTURES)
        check_target(png)

    from regard.checkpoints.model_folder import run_folder_of
    from regard.views.curves import curves_of, read_metrics, run_names

    runs = list(dict.fromkeys(run_folder_of(run) or run for run in runs))
    with_names = zip(run_names(runs), runs, strict=True)
    curves = [one for name, run in with_names for one in curves_of(name, read_metrics(run), metric)]
    if png is not None:
        from regard.views.curve_drawing import save_curves

        save_curves(curves, png)
        print_message(say("saved", file=png))
    if as_json:
        write_json({"curves": [_curve_as_json(one) for one in curves]})
    elif png is None:
        from regard.views.curve_drawing import show_curves

        show_curves(curves, file=sys.stdout)


def _curve_as_json(one: "Curve") -> dict[str, Any]:
    steps = [int(step) for step in one.steps]
    return {"run": one.run, "metric": one.metric, "steps": steps, "values": one.values.tolist()}


# --- film --------------------------------------------------------------------------------------------------


SLOWEST, FASTEST = 0.1, 60.0
_SECONDS = 10
"""The target duration of a film without --speed."""


def film(
    run: Annotated[Path | None, typer.Argument(metavar="metavar-run", help="help-film-run", show_default=False)] = None,
    layer: Annotated[str | None, typer.Option("--layer", metavar="metavar-name", help="help-film-layer")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="metavar-number", help="help-film-head")] = None,
    speed: Annotated[str | None, typer.Option("--speed", metavar="metavar-speed", help="help-film-speed")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", metavar="metavar-file", help="help-gif")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if run is None:
        raise ArgumentError("film-no-run")
    frames_per_second = None if speed is None else _speed(speed)
    number = None if head is None else whole_number("--head", head, least=0)
    if gif is not None:
        extension_of(gif, ".gif")
        check_target(gif)

    from regard.checkpoints.model_folder import run_folder_of
    from regard.views.film import head_film, head_film_json, read_film

    run = run_folder_of(run) or run
    chosen = int(layer) if layer is not None and is_count(layer) else layer
    shown = head_film(read_film(run), chosen, number)
    losses = _losses(run)
    fps = frames_per_second or min(15.0, max(2.0, len(shown.steps) / _SECONDS))
    if number is None or shown.choices > 1:
        about = {"name": shown.record.name, "head": shown.head, "share": round(100 * shown.change)}
        print_message(
            say("film-chosen", count=shown.choices, **about) if shown.choices > 1 else say("film-only", **about)
        )
    if gif is not None:
        from regard.views.film import save_gif

        save_gif(shown, gif, losses, fps=fps)
        print_message(say("saved", file=gif))
    if as_json:
        write_json(head_film_json(shown, losses))
    elif gif is None:
        from regard.views.film import play

        play(shown, losses, fps=fps, file=sys.stdout)


def _losses(run: Path) -> dict[int, float]:
    """The loss of each step. A film does not need it, so bad metrics only print a message."""
    from regard.views.curves import METRICS, curve, metrics_in, read_metrics

    try:
        lines = read_metrics(run) if os.path.lexists(run / METRICS) else []
    except FileError as error:
        print_message(error.text())
        return {}
    if "loss" not in metrics_in(lines):
        return {}
    found = curve(run.name, lines, "loss")
    return {int(step): float(value) for step, value in zip(found.steps, found.values, strict=True)}


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not SLOWEST <= value <= FASTEST:
        raise ArgumentError("film-speed", found=text, least=SLOWEST, most=FASTEST)
    return value
