"""The learning rate compared with the papers' formulas."""

import math
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from regard.training.plan import Plan
from regard.training.step import learning_rate

RATES = st.floats(1e-6, 10.0)


@st.composite
def plans(draw: st.DrawFn, /, **values: Any) -> Plan:
    steps = draw(st.integers(1, 200))
    warmup = draw(st.integers(0, steps))
    lr = draw(RATES)
    lr_end = draw(st.floats(0.0, lr))
    return Plan(**({"steps": steps, "warmup": warmup, "lr": lr, "lr_end": lr_end} | values))


NAMES = ("constant", "inverse-sqrt", "cosine")
ANY = st.sampled_from(NAMES).flatmap(lambda name: plans(schedule=name))


@given(ANY)
def test_warmup_is_linear_up_to_the_highest_rate(plan: Plan) -> None:
    rates = [learning_rate(plan, step) for step in range(1, plan.steps + 1)]
    for step in range(1, plan.warmup + 1):
        assert math.isclose(rates[step - 1], plan.lr * step / plan.warmup)
    assert max(rates) <= plan.lr * (1 + 1e-12)
    after = rates[max(0, plan.warmup - 1) :]
    assert all(later <= sooner * (1 + 1e-12) for sooner, later in pairwise(after))


@given(plans(schedule="inverse-sqrt"))
def test_inverse_sqrt_matches_vaswani(plan: Plan) -> None:
    # lrate = d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), scaled such that its highest value is lr.
    warmup = max(1, plan.warmup)
    for step in range(1, plan.steps + 1):
        expected = plan.lr * warmup**0.5 * min(step**-0.5, step * warmup**-1.5)
        assert math.isclose(learning_rate(plan, step), expected, rel_tol=1e-12)


@given(plans(schedule="cosine"))
def test_cosine_falls_from_lr_to_lr_end(plan: Plan) -> None:
    if plan.warmup < plan.steps:
        assert math.isclose(learning_rate(plan, plan.steps), plan.lr_end, abs_tol=1e-12)
    for step in range(max(1, plan.warmup), plan.steps + 1):
        turned = math.pi * (step - plan.warmup) / max(1, plan.steps - plan.warmup)
        expected = 0.5 * (plan.lr + plan.lr_end) + 0.5 * (plan.lr - plan.lr_end) * math.cos(turned)
        assert math.isclose(learning_rate(plan, step), expected, rel_tol=1e-9, abs_tol=1e-12)


@given(plans(schedule="constant"))
def test_constant_schedule(plan: Plan) -> None:
    assert all(learning_rate(plan, step) == plan.lr for step in range(max(1, plan.warmup), plan.steps + 1))
