"""A Plan is always valid; an error gives the name, the value and the limit."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.errors import ArgumentError
from regard.training.plan import Plan

LEAST = {"steps": 1, "warmup": 0, "accumulate": 1, "seed": 0, "save_every": 1, "keep": 2, "average": 1, "bad_steps": 1}
LEAST |= {"valid_every": 1, "patience": 1}
HIGHEST = {"lr": 100.0, "lr_end": 100.0, "eps": 1.0, "weight_decay": 100.0, "smoothing": 0.999, "clip": 1e9}
HIGHEST |= {"agreement": 1e6}
STRANGE = st.sampled_from([True, "1", float("nan"), float("inf"), [1], 10**400])


def plan(**values: Any) -> Plan:
    return Plan(**({"steps": 10, "lr": 0.1} | values))


@given(st.sampled_from(sorted(LEAST)), st.integers(-(2**40), 2**40) | STRANGE | st.floats())
def test_counts_have_a_minimum(name: str, value: Any) -> None:
    others: dict[str, Any] = {"keep": max(2, value)} if name == "average" and type(value) is int else {}
    others |= {"valid_every": 1} if name == "patience" else {}
    if type(value) is int and value >= LEAST[name]:
        assert getattr(plan(**{name: value}, **others), name) == value
    else:
        with pytest.raises(ArgumentError) as caught:
            plan(**{name: value}, **others)
        assert caught.value.key == "count-wanted"
        assert f"training.{name}" in str(caught.value)
        assert str(value) in str(caught.value)


@given(st.sampled_from(sorted(HIGHEST)), st.floats() | STRANGE)
def test_numbers_have_a_range(name: str, value: Any) -> None:
    assume(not (name == "clip" and value == 0))  # see test_clip_zero_raises
    if type(value) in (int, float) and 0 <= value <= HIGHEST[name]:
        assert getattr(plan(**{name: value}), name) == value
    else:
        with pytest.raises(ArgumentError, match=rf"training\.{name} must be a number from 0") as caught:
            plan(**{name: value})
        assert caught.value.values["value"] is value


@pytest.mark.parametrize("name", sorted((LEAST | HIGHEST).keys() - {"clip", "agreement", "valid_every", "patience"}))
def test_none_is_allowed_only_for_optional_values(name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        plan(**{name: None})
    assert plan(clip=None, agreement=None, valid_every=None, patience=None).clip is None


@pytest.mark.parametrize("betas", [(0.9, 1.0), (-0.1, 0.9), (float("nan"), 0.9), (0.9,), (0.9, 0.9, 0.9), (True, 0.9)])
def test_betas_are_two_numbers_below_1(betas: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match=r"training\.betas must be two numbers"):
        plan(betas=betas)


def test_patience_needs_valid_every() -> None:
    with pytest.raises(ArgumentError, match=r"patience=3 counts validations.* training\.valid_every"):
        plan(patience=3)


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("schedule", "linear", "constant, inverse-sqrt, cosine"),
        ("precision", "float16", "float32, bfloat16"),
        ("final", "first", "last, best"),
    ],
)
def test_unknown_choice_raises_with_the_choices(name: str, value: str, choices: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        plan(**{name: value})
    assert str(caught.value) == f"there is no training.{name}={value!r}; choose one of: {choices}"


def test_average_needs_enough_checkpoints() -> None:
    assert plan(keep=3, average=3).average == 3
    with pytest.raises(ArgumentError, match=r"keep=3 keeps too few .*average=4"):
        plan(keep=3, average=4)


def test_best_cannot_be_averaged() -> None:
    assert plan(final="best").final == "best"
    with pytest.raises(ArgumentError, match="average must be 1; found 2"):
        plan(final="best", keep=2, average=2)


def test_clip_zero_raises() -> None:
    with pytest.raises(ArgumentError) as caught:
        Plan(steps=1, lr=0.1, clip=0.0)
    assert caught.value.key == "plan-clip"
