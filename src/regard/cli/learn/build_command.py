"""`regard learn build`: runs the bundled translator or poet with the learner's own functions, and shows the result."""

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from regard.cli.arguments import whole_number
from regard.cli.language_commands import in_lines
from regard.cli.learn.exercise_commands import LARGEST_ANSWER, exit_on_signals
from regard.cli.streams import join_words, print_message, put, write_json
from regard.errors import ArgumentError, RegardError
from regard.messages import Listed, one_line, say

if TYPE_CHECKING:
    from regard.course.grading.verdict import Verdict
    from regard.course.learner_model.building import BuildTask, Built, Part
    from regard.language import LanguageModel

TEXT, POEM = "I love you", "poem"
MODELS = ("translator", "poet")


def build(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-build-text", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="metavar-build-model", help="help-build-model")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="metavar-build-with", help="help-build-with", show_default=False),
    ] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-build-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    words = join_words(text or [])
    beginning = None if model == "translator" else _beginning(words)
    name = model or ("translator" if beginning is None else "poet")
    if name not in MODELS:
        raise ArgumentError("build-model", known=Listed(MODELS), found=name)
    words = words if beginning is None else beginning
    number = 0 if seed is None else whole_number("--seed", seed, least=0)
    if seed is not None and name == "translator":
        raise ArgumentError("build-seed-translator", seed=number)

    from regard.course.learner_model.building import build, choose_parts, poem_task, translation_task
    from regard.course.passed_answers import PassedAnswers
    from regard.course.progress import ProgressFile
    from regard.language.loading import load

    given = _given(files or [])
    parts = choose_parts(name, ProgressFile(report=print_message).read(), PassedAnswers(), given)
    with exit_on_signals():
        loaded = load(name)
        task = poem_task(loaded, words, number) if name == "poet" else translation_task(loaded, words or TEXT)
        built = build(loaded, task, parts)
        verdicts = _graded(parts)
    if as_json:
        write_json(_as_json(loaded, task, parts, built, verdicts))
    else:
        _show(loaded, task, parts, built, verdicts)
    raise typer.Exit(0 if built.is_right and all(verdict.passed for verdict in verdicts.values()) else 1)


def _beginning(words: str) -> str | None:
    """The beginning of the poem to write, after the word "poem"; None for a sentence to translate.

    >>> _beginning("poem 春"), _beginning("poem"), _beginning("A poem is short."), _beginning("poem of spring")
    ('春', '', None, None)
    """
    first, _, rest = words.partition(" ")
    return rest if first == POEM and not (rest and rest.isascii()) else None


def _given(files: list[str]) -> dict[str, tuple[str, bytes]]:
    """The programs of --with, by exercise: the file and its content."""
    from regard.course.learner_model.building import exercise_of, named_part
    from regard.files.safe_open import read_file

    found: dict[str, tuple[str, bytes]] = {}
    for each in files:
        id, equals, file = each.partition("=")
        path = Path(file if equals else each)
        content = read_file(path, most=LARGEST_ANSWER)
        part = named_part(id) if equals else exercise_of(path, content)
        if part in found:
            raise ArgumentError("build-twice", exercise=part, first=found[part][0], second=str(path))
        found[part] = (str(path), content)
    return found


def _graded(parts: "list[Part]") -> "dict[str, Verdict]":
    """The verdicts on the given programs: what they do to one sentence does not show every mistake."""
    from regard.course.catalogue import exercise
    from regard.course.grading.grader import grade

    return {part.id: grade(exercise(part.id), part.source) for part in parts if part.state == "given"}


# --- output ------------------------------------------------------------------------------------------------


def _show(
    model: "LanguageModel", task: "BuildTask", parts: "list[Part]", built: "Built", verdicts: "dict[str, Verdict]"
) -> None:
    put("\n".join(_list(model.name, parts, built, verdicts)))
    put()
    if built.failure is not None:
        put("✗ " + say("build-failed", part=built.failure.part, reason=one_line(built.failure.reason)))
        _put_output("build-with-ours", model, task, built.ours.text)
    elif built.yours is None:
        put(_in_one(model, task, built.ours.text))
        print_message(say("build-none"))
    elif built.is_same:
        put(_in_one(model, task, built.yours.text))
        put(say("build-same", score=_log_probability(built.yours.score)))
    else:
        _show_both(model, task, built)
    _show_head(model, task, built)
    sys.stdout.flush()
    _show_hints(parts, built, verdicts)


def _list(model: str, parts: "list[Part]", built: "Built", verdicts: "dict[str, Verdict]") -> "list[str]":
    yours = sum(part.is_learners for part in parts)
    lines = [say("build-parts", model=model, yours=yours, count=len(parts))]
    longest = max(cell_len(part.id) for part in parts)
    for part in parts:
        about = say(f"build-part-{part.state}", exercise=part.id, file=part.file)
        if part.id in built.differing:
            about += f" · {say('build-part-differs', gap=_number(built.differing[part.id]))}"
        elif part.is_learners and built.yours is not None and part.id not in built.calls:
            about += f" · {say('build-part-unreached')}"
        failed = built.failure is not None and built.failure.part == part.id
        wrong = failed or part.id in built.differing or (part.id in verdicts and not verdicts[part.id].passed)
        lines.append(f"  {'✗' if wrong else '✓' if part.is_learners else '·'} {part.id:{longest}}  {about}")
    return lines


def _in_one(model: "LanguageModel", task: "BuildTask", text: str) -> str:
    """The text and its translation in one line; of the poet, the poem, a line for each sentence."""
    if model.settings.task == "translation":
        return one_line(f"{task.text} → {text or say('build-nothing')}")
    return in_lines(text)


def _put_output(key: str, model: "LanguageModel", task: "BuildTask", text: str) -> None:
    """A translation stands on the line of its heading, a poem below."""
    heading, written = say(key), _in_one(model, task, text)
    put(heading + written if model.settings.task == "translation" else f"{heading.rstrip()}\n{written}")


def _show_both(model: "LanguageModel", task: "BuildTask", built: "Built") -> None:
    assert built.yours is not None
    for key, output in (("build-with-yours", built.yours), ("build-with-ours", built.ours)):
        _put_output(key, model, task, output.text)
    at = built.first_difference or 0
    pieces = [
        say("build-wrote", piece=one_line(model.tokenizer.pieces([output.ids[at]])[0]))
        if at < len(output.ids)
        else say("build-wrote-nothing")
        for output in (built.yours, built.ours)
    ]
    put(say("build-first-difference", at=at + 1, yours=pieces[0], ours=pieces[1]))
    put(say("build-score", yours=_log_probability(built.yours.score), ours=_log_probability(built.ours.score)))


def _show_head(model: "LanguageModel", task: "BuildTask", built: "Built") -> None:
    """Draw the opening head; of the learner's run if there is one."""
    from regard.trace import Trace

    layer, head = opening(model, task, built)
    output = built.ours if built.yours is None else built.yours
    weights, keys = output.weights[layer, head], list(task.keys) or list(output.tokens)
    real = len(task.keys) - task.keys.count(task.keys[-1]) if task.keys else len(keys)
    if task.keys and not (weights[:, real:] > 1e-6).any():
        weights, keys = weights[:, :real], keys[:real]  # padding with weight 0 is not drawn
    values = {"layer": layer, "head": head}
    put()
    try:
        kind: Any = "cross" if task.keys else "decoder"
        record = Trace.from_weights(weights, list(output.tokens), keys, kind=kind)[0]
        trace = Trace([record.with_tokens(written=list(output.written))])
    except RegardError:
        sums = weights.sum(-1)
        put(say("build-not-weights", low=_number(float(sums.min())), high=_number(float(sums.max())), **values))
    else:
        put(say("build-head-ours" if built.yours is None else "build-head", **values))
        trace.show(head=0, file=sys.stdout)
    gap = built.weight_difference(layer, head)
    if gap is not None and not built.is_right:
        put(say("build-head-difference", gap=_number(gap)))


def opening(model: "LanguageModel", task: "BuildTask", built: "Built") -> tuple[int, int]:
    """The layer and head to draw: the one in the model's settings, else the one with the clearest pattern."""
    from regard.trace import Trace
    from regard.views.caption import clearest_head

    if model.settings.alignment_heads:
        return model.settings.alignment_heads[0]
    layers = [layer[None] for layer in built.ours.weights]
    return clearest_head(list(Trace.from_weights(layers, list(built.ours.tokens), kind="decoder")))


def _show_hints(parts: "list[Part]", built: "Built", verdicts: "dict[str, Verdict]") -> None:
    files = {part.id: part.file for part in parts}
    is_number = built.yours is not None and math.isfinite(built.yours.again + built.yours.cached + built.yours.score)
    if built.yours is not None and is_number and not built.yours.is_consistent:
        again, cached = (_log_probability(score) for score in (built.yours.again, built.yours.cached))
        names = [*built.differing, *(id for id, verdict in verdicts.items() if not verdict.passed)]
        named = Listed(dict.fromkeys(names))
        print_message(say("build-again-wrong" if names else "build-again", again=again, cached=cached, parts=named))
    wrong = dict.fromkeys([*([built.failure.part] if built.failure else []), *built.differing])
    for id, verdict in verdicts.items():
        if not verdict.passed:
            wrong[id] = None
            # That of an unknown mistake refers to a call, which only the check shows.
            unknown = verdict.mistake == "unknown" or not verdict.diagnosis
            diagnosis = say("build-diagnosis-none") if unknown else verdict.diagnosis
            print_message(say("build-diagnosis", exercise=id, diagnosis=diagnosis))
    for id in wrong:
        print_message(say("build-check", exercise=id, file=shlex.quote(files[id]) if files.get(id) else "").rstrip())
    if not wrong and built.yours is not None:
        following = next((part.id for part in parts if not part.is_learners), None)
        if following is not None:
            print_message(say("build-next", exercise=following))
        else:
            print_message(say("build-complete"))


def _number(value: float) -> str:
    """A number with three digits.

    >>> _number(-0.26734), _number(1234567.0), _number(math.inf)
    ('-0.267', '1.23e+06', '∞')
    """
    return "∞" if math.isinf(value) else "NaN" if math.isnan(value) else f"{value:.3g}"


def _log_probability(score: float) -> str:
    """A log-probability. It is impossible above 0, and from IMPOSSIBLE down, where the search had no such step.

    >>> _log_probability(-2.25), _log_probability(-1000.0), _log_probability(127.3)
    ('-2.25', '-1000 (impossible)', '127 (impossible)')
    """
    from regard.course.learner_model.program.models import IMPOSSIBLE

    is_possible = not math.isfinite(score) or IMPOSSIBLE < score < 1e-6
    return _number(score) if is_possible else say("build-impossible", score=f"{score:.0f}")


def _as_json(
    model: "LanguageModel", task: "BuildTask", parts: "list[Part]", built: "Built", verdicts: "dict[str, Verdict]"
) -> dict[str, Any]:
    layer, head = opening(model, task, built)
    output = built.ours if built.yours is None else built.yours
    failure = built.failure
    return {
        "model": model.name,
        "text": task.text,
        "right": built.is_right and all(verdict.passed for verdict in verdicts.values()),
        "output": None if built.yours is None else built.yours.text,
        "ours": built.ours.text,
        "same": built.is_same,
        "first_difference": built.first_difference,
        "score": None if built.yours is None else _finite(built.yours.score),
        "ours_score": built.ours.score,
        "failed": None if failure is None else {"part": failure.part, "reason": failure.reason},
        "parts": [
            {
                "id": part.id,
                "state": part.state,
                "yours": part.is_learners,
                "calls": built.calls.get(part.id, 0),
                "difference": _finite(built.differences.get(part.id)),
                **(
                    {"mistake": verdicts[part.id].mistake, "passed": verdicts[part.id].passed}
                    if part.id in verdicts
                    else {}
                ),
            }
            for part in parts
        ],
        "attention": {
            "layer": layer,
            "head": head,
            "queries": list(output.tokens),
            "keys": list(task.keys or output.tokens),
            "weights": [[_finite(weight) for weight in row] for row in output.weights[layer, head].tolist()],
            "difference": _finite(built.weight_difference(layer, head)),
        },
    }


def _finite(value: float | None) -> float | None:
    """The value for JSON, which has no infinity and no NaN."""
    return value if value is not None and math.isfinite(value) else None
