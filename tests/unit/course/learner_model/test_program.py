"""The bundled models with the parts of right and wrong programs, in this process, which is quick."""

import ast
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import regard
from regard.course.catalogue import exercise
from regard.course.exercise import Mistake
from regard.course.learner_model import program
from regard.course.learner_model.building import (
    DRIFT,
    USED,
    WEIGHTS_FILE,
    BuildTask,
    helpers_of,
    poem_task,
    translation_task,
)
from regard.course.learner_model.program import MODULES, program_text
from regard.course.learner_model.program.models import TASKS, Tree, model_weights, use_parts
from regard.course.learner_model.program.our_parts import FUNCTIONS, beam_search
from regard.course.learner_model.program.part_calls import TOLERANCE, PartError, Parts, file_name
from regard.kernels.division import one_blas_thread
from wrong_programs import passes

RIGHT = Path(__file__).parents[3] / "course" / "right"
PAIRS = [(model, part) for model, parts in USED.items() for part in parts]


@cache
def prepared(model: str) -> tuple[BuildTask, dict[str, Any]]:
    loaded = regard.load(model)
    task = translation_task(loaded, "I love you") if model == "translator" else poem_task(loaded, "", 0)
    return task, model_weights(np.fromfile(loaded.folder / WEIGHTS_FILE, dtype=np.uint8))


def run(model: str, parts: Parts) -> dict[str, Any]:
    task, weights = prepared(model)
    with one_blas_thread(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TASKS[task.name](parts, weights, **task.options)


@cache
def ours(model: str) -> dict[str, Any]:
    return run(model, Parts({}))


def parts_of(part: str, source: str) -> Parts:
    """A program in place of one part, as `run_task` puts it there."""
    module = ModuleType("learner")
    exec(compile(source, file_name(part), "exec"), module.__dict__)
    parts = Parts({name: module.__dict__[name] for name in FUNCTIONS[part]})
    use_parts(parts, part, module.__dict__, helpers_of(part, source))
    return parts


# --- our own parts ----------------------------------------------------------------------------------------


def test_our_parts_translate_and_write_as_the_models_do() -> None:
    translator, poet = regard.load("translator"), regard.load("poet")
    assert translator.tokenizer.decode(ours("translator")["ids"]) == translator.translate("I love you")
    assert poet.tokenizer.decode(ours("poet")["ids"]) == poet.generate("", seed=0)


def test_the_attention_is_that_of_the_model() -> None:
    trace = regard.load("translator").see("I love you").trace
    recorded = np.stack([np.asarray(record.weights())[0] for record in trace.select(kind="cross")])
    padded = ours("translator")["weights"]
    S = recorded.shape[-1]
    np.testing.assert_allclose(padded[..., :S], recorded, atol=1e-5)
    assert padded[..., S:].max() == 0


def test_both_readings_agree() -> None:
    found = ours("translator")
    assert found["ended"]
    assert found["score"] == pytest.approx(found["again"])
    assert found["score"] == pytest.approx(found["cached"])


# --- right and wrong parts --------------------------------------------------------------------------------


def right_programs() -> list[Any]:
    found = []
    for model, part in PAIRS:
        marks = [pytest.mark.long] if model == "poet" and ("translator", part) in PAIRS else []
        found.append(pytest.param(model, part, exercise(part).solution, id=f"{model}-{part}-solution", marks=marks))
        for place, path in enumerate(sorted((RIGHT / part).glob("*.py"))):
            marks = [pytest.mark.long] if place > 0 or model == "poet" else []
            found.append(pytest.param(model, part, path.read_text(), id=f"{model}-{part}-{path.stem}", marks=marks))
    return found


@pytest.mark.parametrize(("model", "part", "source"), right_programs())
def test_a_right_part_gives_the_same_tokens(model: str, part: str, source: str) -> None:
    parts, right = parts_of(part, source), ours(model)
    found = run(model, parts)
    assert found["ids"] == right["ids"]
    assert found["score"] == pytest.approx(right["score"], abs=DRIFT)
    assert np.abs(found["weights"] - right["weights"]).max() < DRIFT
    assert max(parts.differences.values()) < TOLERANCE
    called = set(parts.calls)
    assert called == set(FUNCTIONS[part])


def is_visible(model: str, part: str, source: str) -> bool:
    """Whether a wrong part fails, or shows in the output, the weights, or the comparison with ours."""
    parts, right = parts_of(part, source), ours(model)
    try:
        found = run(model, parts)
    except (PartError, ValueError, FloatingPointError, OverflowError):  # our own code may fail on a learner's numbers
        return True
    gap = np.inf if found["weights"].shape != right["weights"].shape else np.abs(found["weights"] - right["weights"])
    agree = all(abs(found["score"] - found[name]) < DRIFT for name in ("again", "cached"))
    same = found["ids"] == right["ids"] and agree and np.max(gap) < DRIFT
    return not same or max(parts.differences.values()) > TOLERANCE


def wrong_programs() -> list[Any]:
    """Every known mistake of every part, in one model that has the part."""
    found = []
    for part, model in {part: model for model, part in reversed(PAIRS)}.items():
        grader = exercise(part).grader
        assert grader is not None
        for place, mistake in enumerate(grader.mistakes):
            marks = [pytest.mark.long] if place >= 1 or model == "poet" else []
            if mistake.id != "exhaustive":  # every sequence of 80 tokens: stopped by the clock
                found.append(pytest.param(model, part, place, id=f"{model}-{part}-{place}-{mistake.id}", marks=marks))
    return found


@pytest.mark.parametrize(("model", "part", "place"), wrong_programs())
def test_a_known_mistake_is_visible_or_caught(model: str, part: str, place: int) -> None:
    """What one easy sentence does not show, such as an overflow, the check of the exercise does."""
    tried = exercise(part)
    assert tried.grader is not None
    mistake = tried.grader.mistakes[place]
    assert is_visible(model, part, mistake.text(tried.solution)) or not passes_as_is(part, mistake.text(tried.solution))


def passes_as_is(part: str, source: str) -> bool:
    return passes(part, ((exercise(part).solution, source),), 0)


WRONG: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "no scale": ("scaled-dot-product", ((" / np.sqrt(Q.shape[-1])", ""),)),
    "heads by reshape": ("split-heads", (("parts.transpose(0, 2, 1, 3)", "x.reshape(B, n_heads, T, -1)"),)),
    "no mean": ("layer-norm", (("(x - mean) / np", "x / np"),)),
    "no relu": ("feed-forward", (("np.maximum(hidden, 0)", "hidden"),)),
    "sine only": ("positional-encoding", (("np.cos", "np.sin"),)),
    "padding visible": ("padding-mask", (("-np.inf, 0.0", "0.0, 0.0"),)),
    "one layer": ("transformer-forward", (('weights["decoder"]:', 'weights["decoder"][:1]:'),)),
    "no root": ("transformer-forward", (('np.sqrt(weights["embedding"].shape[1])', "1.0"),)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_part_changes_what_is_seen(name: str) -> None:
    part, swaps = WRONG[name]
    assert is_visible("translator", part, Mistake("wrong", swaps).text(exercise(part).solution))


# --- calls of a part --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("x[..., :3]", "shape"),
        ("None", "shape"),
        ("'text'", "shape"),
        ("x.tolist() + [[1]]", "shape"),
        ("1 / 0", "raises"),
    ],
)
def test_a_part_that_returns_something_else_is_named(returned: str, why: str) -> None:
    parts = parts_of("softmax", f"def softmax(x, axis=-1):\n    return {returned}\n")
    with pytest.raises(PartError) as caught:
        parts.softmax(np.ones((2, 4)), -1)
    assert (caught.value.data["part"], caught.value.data["why"]) == ("softmax", why)
    if why == "raises":
        assert caught.value.data["line"] == 2


def test_a_part_cannot_change_its_arguments() -> None:
    parts = parts_of("softmax", "def softmax(x, axis=-1):\n    x -= x.max()\n    return x\n")
    x = np.ones((2, 4))
    with pytest.raises(PartError):
        parts.softmax(x, -1)
    assert (x == 1).all()


def test_a_larger_part_of_the_learner_replaces_the_smaller_ones_inside() -> None:
    attention = exercise("scaled-dot-product").solution + "\n\ndef softmax(x, axis=-1):\n    raise ValueError\n"
    module: dict[str, Any] = {}
    exec(attention, module)
    parts = Parts({name: module[name] for name in ("softmax", "scaled_dot_product_attention")})
    out, _ = parts.scaled_dot_product_attention(np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5)), None)
    assert out.shape == (2, 5)
    assert "softmax" not in parts.calls


def test_the_tree_holds_what_a_search_reaches() -> None:
    """From every beginning: token 3 with 0.6, token 4 with 0.3, the end with 0.1; after 3 the end is likely."""

    def next_log_probs(prefixes: list[list[int]]) -> np.ndarray:
        likely = np.log([0.01, 0.01, 0.1, 0.6, 0.28])
        ending = np.log([0.01, 0.01, 0.9, 0.04, 0.04])
        return np.array([ending if prefix[-1] == 3 else likely for prefix in prefixes])

    tree = Tree(1, 2)
    tree.grow(next_log_probs, 2, 5)
    table = tree.table()
    path, score = beam_search(Parts({}), table, 0, 1, 2, tree.depth)
    assert [tree.tokens[node] for node in path] == [1, 3, 2]
    assert score == pytest.approx(np.log(0.6 * 0.9))
    assert tree.depth == 2


# --- the text for the sandbox -----------------------------------------------------------------------------


def test_the_program_is_one_text_that_needs_no_regard() -> None:
    """Without imports of each other, the modules share their names: none may define another's again."""
    folder = Path(program.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *MODULES}
    tree = ast.parse(program_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= {"numpy", *sys.stdlib_module_names}
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(set(defined)) == len(defined)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(tree, "program", "exec"), namespace)
    assert callable(namespace["load_part"])
    assert callable(namespace["run_task"])
