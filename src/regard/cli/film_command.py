"""`regard film`: a head as it was born, replayed in the terminal or written as an animated picture."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.number_options import is_count, whole_number
from regard.cli.streams import talk, write_json
from regard.errors import ArgumentError, FileError
from regard.files.output import check_place, ending_of
from regard.messages import say

SLOWEST, FASTEST = 0.1, 60.0
_SECONDS = 10
"""How long a film takes where no speed is asked for, within reason."""


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
    asked = None if speed is None else _speed(speed)
    number = None if head is None else whole_number("--head", head, least=0)
    if gif is not None:
        ending_of(gif, ".gif")
        check_place(gif)

    from regard.checkpoints.model_folder import run_of
    from regard.views.film import read_film, scene, scene_json

    run = run_of(run) or run
    chosen = int(layer) if layer is not None and is_count(layer) else layer
    shown = scene(read_film(run), chosen, number)
    losses = _losses(run)
    fps = asked or min(15.0, max(2.0, len(shown.steps) / _SECONDS))
    if number is None or shown.choices > 1:
        about = {"name": shown.record.name, "head": shown.head, "share": round(100 * shown.change)}
        talk(say("film-chosen", count=shown.choices, **about) if shown.choices > 1 else say("film-only", **about))
    if gif is not None:
        from regard.views.film_gif import save_gif

        save_gif(shown, gif, losses, fps=fps)
        talk(say("saved", file=gif))
    if as_json:
        write_json(scene_json(shown, losses))
    elif gif is None:
        from regard.views.film import play

        play(shown, losses, fps=fps, file=sys.stdout)


def _losses(run: Path) -> dict[int, float]:
    """The loss of each step. A film can be seen without, so what is wrong with the metrics is only said."""
    from regard.views.curves import METRICS, curve, metrics_in, read_metrics

    try:
        lines = read_metrics(run) if os.path.lexists(run / METRICS) else []
    except FileError as error:
        talk(error.text())
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
