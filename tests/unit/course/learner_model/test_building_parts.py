"""Which program takes the place of each part."""

from pathlib import Path

import pytest

from regard.course.catalogue import exercise
from regard.course.learner_model.building import CONTAINS, USED, choose_parts, exercise_of, named_part
from regard.course.learner_model.program.our_parts import FUNCTIONS
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import ExerciseProgress, Progress
from regard.errors import ArgumentError, UnknownNameError


def test_every_part_belongs_to_an_exercise_with_its_functions() -> None:
    for part, functions in FUNCTIONS.items():
        stub = exercise(part).stub
        assert all(f"def {name}(" in stub for name in functions), part
    assert {part for parts in USED.values() for part in parts} == set(FUNCTIONS)
    assert set(CONTAINS) <= set(FUNCTIONS)
    order = list(USED["translator"])
    assert all(order.index(inner) < order.index(outer) for outer in order for inner in CONTAINS.get(outer, ()))


def test_a_part_is_the_learners_once_its_program_is_kept(tmp_path: Path) -> None:
    passed = PassedAnswers(tmp_path)
    passed.keep("softmax", "def softmax(): ...")
    progress = Progress({"layer-norm": ExerciseProgress(passed_at="2026-01-01T00:00:00+00:00")})
    states = {part.id: part.state for part in choose_parts("translator", progress, passed, {})}
    assert list(states) == list(USED["translator"])
    assert (states["softmax"], states["layer-norm"], states["kv-cache"]) == ("passed", "check-again", "ours")


def test_a_given_program_is_used_everywhere(tmp_path: Path) -> None:
    passed = PassedAnswers(tmp_path)
    for id in ("softmax", "scaled-dot-product", "split-heads"):
        passed.keep(id, "pass")
    given = {"softmax": ("mine.py", b"x")}
    parts = {part.id: part for part in choose_parts("translator", Progress(), passed, given)}
    assert (parts["softmax"].state, parts["softmax"].file, parts["softmax"].source) == ("given", "mine.py", b"x")
    assert parts["scaled-dot-product"].state == "left-out"
    assert parts["split-heads"].state == "passed"
    with pytest.raises(ArgumentError) as caught:
        choose_parts("translator", Progress(), passed, {"sampling": ("a", b"")})
    assert "translator" in str(caught.value)


def test_the_part_of_a_file_is_its_name_or_its_function() -> None:
    assert exercise_of(Path("kv-cache.py"), b"") == "kv-cache"
    assert exercise_of(Path("kv_cache.2.py"), b"") == "kv-cache"
    assert exercise_of(Path("a.py"), b"def next_probabilities(): ...\ndef pick(): ...") == "sampling"
    both = b"def softmax(): ...\ndef scaled_dot_product_attention(): ..."
    assert exercise_of(Path("a.py"), both) == "scaled-dot-product"
    for unclear in (b"", b"x = (", b"def pick(): ...", b"def split_heads(): ...\ndef merge_heads(): ..."):
        with pytest.raises(ArgumentError):
            exercise_of(Path("a.py"), unclear)


def test_a_name_must_be_a_part() -> None:
    assert named_part("kv_cache") == "kv-cache"
    with pytest.raises(ArgumentError):
        named_part("by-hand")
    with pytest.raises(UnknownNameError):
        named_part("nothing-like-it")
