"""`regard evaluate`: scores of a trained model on unseen data: BLEU and chrF, losses, or puzzles solved."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.number_options import beam_count
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.files.output import check_target, write_output
from regard.messages import Listed, say
from regard.packages import require_package

if TYPE_CHECKING:
    from regard.recipes.evaluating import Result

Rows = list[tuple[str, ...]]


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
    """A table with one line for each score: set, metric, value, signature."""
    from regard.views.curves import loss_text

    rows: Rows = [tuple(say(f"evaluate-column-{name}") for name in ("set", "metric", "value", "signature"))]
    for result in results:
        for score in result.scores:
            is_loss = score.signature is None and score.name != "solved"
            value = loss_text(score.value) if is_loss else f"{score.value:.2f}"
            rows.append((result.set, say(f"metric-{score.name}"), value, score.signature or ""))
    return _aligned(rows)


def _aligned(rows: Rows) -> str:
    """The rows with aligned columns; the third, with numbers, is right-aligned."""
    from rich.cells import cell_len

    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        spaces = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [gap + cell if i == 2 else cell + gap for i, (cell, gap) in enumerate(zip(row, spaces, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


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
