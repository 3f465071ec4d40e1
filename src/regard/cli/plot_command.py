"""`regard plot`: the training curves of one or more runs, in the terminal, as a picture or as JSON."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import print_message, write_json
from regard.errors import ArgumentError
from regard.files.output import PICTURES, check_target, extension_of
from regard.messages import say

if TYPE_CHECKING:
    from regard.views.curves import Curve


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
        from regard.views.curve_plots import save_curves

        save_curves(curves, png)
        print_message(say("saved", file=png))
    if as_json:
        write_json({"curves": [_as_json(one) for one in curves]})
    elif png is None:
        from regard.views.curve_lines import show_curves

        show_curves(curves, file=sys.stdout)


def _as_json(one: "Curve") -> dict[str, Any]:
    steps = [int(step) for step in one.steps]
    return {"run": one.run, "metric": one.metric, "steps": steps, "values": one.values.tolist()}
