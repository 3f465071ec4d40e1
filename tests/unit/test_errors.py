"""Every error: carries its values, speaks both languages, travels between processes, and is what people catch."""

import ast
import copy
import pickle
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard import errors
from regard.errors import RegardError
from regard.words import catalogue, speaking

SOURCE = Path(__file__).parents[2] / "src"
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RegardError)]
SHAPES = {"q": (2, 3), "k": (2, 4), "v": (2, 4)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickle_and_copy(kind: type[RegardError]) -> None:
    """A worker process sends it home; nothing of it may be lost on the way."""
    error = kind("axes-differ", **SHAPES)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (twin.key, twin.values) == (error.key, error.values)
        assert str(twin) == str(error)
        assert twin.exit_code == error.exit_code


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_speaks_both_languages(kind: type[RegardError]) -> None:
    error = kind("axes-differ", **SHAPES)
    assert error.text("en") != error.text("zh")
    for lang in ("en", "zh"):
        assert all(str(shape) in error.text(lang) for shape in SHAPES.values())
        with speaking(lang):
            assert str(error) == error.text(lang)


def test_the_language_is_chosen_when_it_is_read() -> None:
    error = errors.ShapeError("axes-differ", **SHAPES)
    with speaking("zh"):
        assert str(error) == error.text("zh")
    assert str(error) == error.text("en")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ShapeError, ValueError),
        (errors.IndivisibleError, ValueError),
        (errors.IndivisibleError, AssertionError),
        (errors.DtypeError, TypeError),
        (errors.ArgumentError, ValueError),
        (errors.UnknownNameError, LookupError),
        (errors.BackendError, RuntimeError),
        (errors.NotKeptError, LookupError),
        (errors.FileError, ValueError),
        (errors.MissingPackageError, ImportError),
        (errors.TooLargeError, MemoryError),
    ],
)
def test_an_error_is_also_the_kind_that_people_catch(kind: type[RegardError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise kind("mask-truth")
    with pytest.raises(RegardError):
        raise kind("mask-truth")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_exit_codes_are_those_of_the_contract(kind: type[RegardError]) -> None:
    assert kind.exit_code in (1, 2, 3, 4, 5)


def test_a_value_with_braces_is_not_a_placeholder() -> None:
    assert "{x}" in errors.ArgumentError("scale-value", value="{x}").text("en")


# --- every raise in the source ---------------------------------------------------------------------------


def raises() -> Iterator[tuple[str, str, set[str] | None]]:
    """(where, key, the names of its values) for each error made in the source; None where they are spread with **."""
    names = {kind.__name__ for kind in KINDS}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            first = node.args[0]
            if called in names and isinstance(first, ast.Constant) and isinstance(first.value, str):
                spread = any(keyword.arg is None for keyword in node.keywords)
                values = None if spread else {str(keyword.arg) for keyword in node.keywords}
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", first.value, values


def placeholders(sentence: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_every_raise_has_its_sentence_and_every_value_the_sentence_needs() -> None:
    """A missing value would turn an error with a fix into a bare KeyError, and only when it is raised."""
    found = list(raises())
    assert len(found) > 20, "the walk found nothing to look at"
    wrong = []
    for where, key, values in found:
        words = catalogue().get(key)
        if words is None:
            wrong.append(f"{where}: no sentence {key!r}")
        elif values is not None and (missing := placeholders(words.en) - values):
            wrong.append(f"{where}: {key!r} is not given {sorted(missing)}")
    assert not wrong, "\n".join(wrong)
