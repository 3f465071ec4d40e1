"""`regard plot` and `regard film`: the curves of training runs, and how their attention changed."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.number_options import is_count, whole_number
from regard.cli.streams import print_message, write_json
from regard.errors import ArgumentError, FileError
from regard.files.output import PICTURES, check_target, extension_of
from regard.messages import say

if TYPE_CHECKING:
    from regard.views.curves import Curve


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
        write_json({"curves": [_as_json(one) for one in curves]})
    elif png is None:
        from regard.views.curve_drawing import show_curves

        show_curves(curves, file=sys.stdout)


def _as_json(one: "Curve") -> dict[str, Any]:
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
