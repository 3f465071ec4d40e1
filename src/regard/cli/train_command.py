"""`regard train`: train a model by a recipe; without a recipe, list the recipes."""

import os
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.number_options import whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import language, say
from regard.packages import require_package

if TYPE_CHECKING:
    from regard.recipes.recipe import Recipe

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
