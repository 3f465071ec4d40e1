"""AdamW equals PyTorch's; a step can be skipped on the device; the optimizer's state is restored bit for bit."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_runs import Numbers, Tiny, predict
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard.errors import FileError
from regard.training.optimizer import adamw, load_optimizer_state, optimizer_state, skip_unless
from regard.training.plan import Plan
from regard.training.step import cross_entropy

PLAN = Plan(steps=10, lr=0.03, weight_decay=0.2, betas=(0.8, 0.95), eps=1e-6)


def backward(model: nn.Module, index: int) -> None:
    """Compute the gradients of one batch."""
    model.zero_grad()
    batch = Numbers().batch(0, index)
    cross_entropy(predict(model, **batch.inputs), batch.targets).backward()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def trained(steps: int) -> tuple[Tiny, torch.optim.AdamW]:
    model = Tiny(dropout=0.0)
    optimizer = adamw(model, PLAN)
    for index in range(steps):
        backward(model, index)
        skip_unless(optimizer, torch.tensor(True))
        optimizer.step()
    return model, optimizer


def test_equals_torch_adamw_with_decay_on_matrices_only() -> None:
    ours, _ = trained(5)
    theirs = Tiny(dropout=0.0)
    groups: list[dict[str, Any]] = [
        {"params": [theirs.embedding.weight, theirs.output.weight], "weight_decay": 0.2},
        {"params": [theirs.output.bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.03, betas=(0.8, 0.95), eps=1e-6)
    for index in range(5):
        backward(theirs, index)
        optimizer.step()
    for mine, weight in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(mine.detach(), weight.detach())


def test_learning_rate_is_a_tensor_only_for_captured_steps() -> None:
    for optimizer in (adamw(Tiny(), PLAN), adamw(Tiny(), replace(PLAN, capture=True))):  # never captured on the CPU
        assert {group["lr"] for group in optimizer.param_groups} == {0.03}
        assert not any(group["capturable"] for group in optimizer.param_groups)


def test_one_step_matches_the_paper() -> None:
    # Loshchilov & Hutter 2019, algorithm 2; at the first step both moments, bias corrected, are those of the gradient.
    model = Tiny(dropout=0.0)
    before = weights_of(model)
    backward(model, 0)
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    adamw(model, PLAN).step()
    for name, weight in model.named_parameters():
        decay = 0.2 if weight.ndim == 2 else 0.0
        g = gradients[name]
        expected = before[name] * (1 - 0.03 * decay) - 0.03 * g / (g.abs() + 1e-6)
        assert_close(weight.detach(), expected)


def test_frozen_weights_are_not_changed() -> None:
    model = Tiny()
    model.embedding.weight.requires_grad_(False)
    model.output.weight.requires_grad_(False)
    optimizer = adamw(model, PLAN)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]


@pytest.mark.parametrize("steps_before", [0, 3])
def test_skipped_step_changes_no_weight_or_state(steps_before: int) -> None:
    model, optimizer = trained(steps_before)
    weights, state = (
        weights_of(model),
        {name: value.clone() for name, value in optimizer_state(optimizer, model).items()},
    )
    backward(model, 7)
    for weight in model.parameters():
        assert weight.grad is not None
        weight.grad[...] = torch.nan
    skip_unless(optimizer, torch.tensor(False))
    optimizer.step()
    for name, weight in model.named_parameters():
        assert_same_bits(weight.detach(), weights[name])
    for place, value in optimizer_state(optimizer, model).items():
        assert_same_bits(value, state.get(place, torch.zeros_like(value)))
    backward(model, 8)  # the next step continues as if nothing had happened
    skip_unless(optimizer, torch.tensor(True))
    optimizer.step()
    unbroken, others = trained(steps_before)
    backward(unbroken, 8)
    others.step()
    for weight, expected in zip(model.parameters(), unbroken.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())


def test_state_is_named_after_weights_and_restored_bit_for_bit() -> None:
    model, optimizer = trained(3)
    state = {place: value.clone() for place, value in optimizer_state(optimizer, model).items()}
    fields = ("step", "exp_avg", "exp_avg_sq")
    assert state.keys() == {f"{name}/{field}" for name, _ in model.named_parameters() for field in fields}
    other = Tiny(dropout=0.0)
    other.load_state_dict(model.state_dict())
    resumed = adamw(other, PLAN)
    load_optimizer_state(resumed, other, state)
    for net, mind in ((model, optimizer), (other, resumed)):
        backward(net, 3)
        mind.step()
    for weight, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())
    assert state["output.bias/step"].item() == 3  # the given tensors are not changed


def test_no_state_before_the_first_step() -> None:
    model = Tiny()
    optimizer = adamw(model, PLAN)
    assert optimizer_state(optimizer, model) == {}
    load_optimizer_state(optimizer, model, {})
    assert optimizer_state(optimizer, model) == {}


def test_weight_without_gradient_has_no_state() -> None:
    model, optimizer = trained(0)
    model.register_parameter("unused", nn.Parameter(torch.ones(2)))
    optimizer = adamw(model, PLAN)
    backward(model, 0)
    optimizer.step()
    state = optimizer_state(optimizer, model)
    assert not any(place.startswith("unused") for place in state)
    load_optimizer_state(adamw(model, PLAN), model, state)


@pytest.mark.parametrize(
    ("place", "shape", "wanted"),
    [("output.bias/exp_avg", (3,), "(11,)"), ("gone.weight/exp_avg", (11,), "None"), ("nonsense", (1,), "None")],
)
def test_state_of_another_model_raises(place: str, shape: tuple[int, ...], wanted: str) -> None:
    model, optimizer = trained(1)
    state = optimizer_state(optimizer, model) | {place: torch.zeros(shape)}
    fresh = adamw(model, PLAN)
    with pytest.raises(FileError) as caught:
        load_optimizer_state(fresh, model, state)
    assert caught.value.key == "run-optimizer"
    assert f"{place} has shape {shape}, expected {wanted}" in str(caught.value)
    assert optimizer_state(fresh, model) == {}  # nothing was loaded


def test_state_of_a_frozen_weight_raises() -> None:
    model, optimizer = trained(1)
    state = optimizer_state(optimizer, model)
    model.output.bias.requires_grad_(False)
    with pytest.raises(FileError, match=r"output\.bias"):
        load_optimizer_state(adamw(model, PLAN), model, state)
