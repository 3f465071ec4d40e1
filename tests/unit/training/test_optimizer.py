"""AdamW as PyTorch's own, a step that can be left out on the device, and a memory that comes back to the last bit."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_runs import Numbers, Tiny, predict
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard.errors import FileError
from regard.training.optimizer import adamw, memory_of, remember, skip_unless
from regard.training.plan import Plan
from regard.training.step import cross_entropy

PLAN = Plan(steps=10, lr=0.03, weight_decay=0.2, betas=(0.8, 0.95), eps=1e-6)


def pull(model: nn.Module, index: int) -> None:
    """Gradients of one batch."""
    model.zero_grad()
    batch = Numbers().batch(0, index)
    cross_entropy(predict(model, **batch.inputs), batch.targets).backward()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def trained(steps: int) -> tuple[Tiny, torch.optim.AdamW]:
    model = Tiny(dropout=0.0)
    optimizer = adamw(model, PLAN)
    for index in range(steps):
        pull(model, index)
        skip_unless(optimizer, torch.tensor(True))
        optimizer.step()
    return model, optimizer


def test_it_is_torchs_adamw_with_decay_on_matrices_only() -> None:
    ours, _ = trained(5)
    theirs = Tiny(dropout=0.0)
    groups: list[dict[str, Any]] = [
        {"params": [theirs.embedding.weight, theirs.output.weight], "weight_decay": 0.2},
        {"params": [theirs.output.bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.03, betas=(0.8, 0.95), eps=1e-6)
    for index in range(5):
        pull(theirs, index)
        optimizer.step()
    for mine, weight in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(mine.detach(), weight.detach())


def test_only_a_step_that_is_captured_reads_its_rate_from_the_device() -> None:
    for optimizer in (adamw(Tiny(), PLAN), adamw(Tiny(), replace(PLAN, capture=True))):  # on the CPU nothing is
        assert {group["lr"] for group in optimizer.param_groups} == {0.03}
        assert not any(group["capturable"] for group in optimizer.param_groups)


def test_one_step_is_the_papers_formula() -> None:
    # Loshchilov & Hutter 2019, algorithm 2; at the first step both moments, bias corrected, are those of the gradient.
    model = Tiny(dropout=0.0)
    before = weights_of(model)
    pull(model, 0)
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    adamw(model, PLAN).step()
    for name, weight in model.named_parameters():
        decay = 0.2 if weight.ndim == 2 else 0.0
        g = gradients[name]
        expected = before[name] * (1 - 0.03 * decay) - 0.03 * g / (g.abs() + 1e-6)
        assert_close(weight.detach(), expected)


def test_frozen_weights_are_left_alone() -> None:
    model = Tiny()
    model.embedding.weight.requires_grad_(False)
    model.output.weight.requires_grad_(False)
    optimizer = adamw(model, PLAN)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]


@pytest.mark.parametrize("steps_before", [0, 3])
def test_a_step_that_is_left_out_changes_no_bit_of_weights_or_memory(steps_before: int) -> None:
    model, optimizer = trained(steps_before)
    weights, memory = weights_of(model), {name: value.clone() for name, value in memory_of(optimizer, model).items()}
    pull(model, 7)
    for weight in model.parameters():
        assert weight.grad is not None
        weight.grad[...] = torch.nan
    skip_unless(optimizer, torch.tensor(False))
    optimizer.step()
    for name, weight in model.named_parameters():
        assert_same_bits(weight.detach(), weights[name])
    for place, value in memory_of(optimizer, model).items():
        assert_same_bits(value, memory.get(place, torch.zeros_like(value)))
    pull(model, 8)  # and the next one goes on as if nothing had been
    skip_unless(optimizer, torch.tensor(True))
    optimizer.step()
    unbroken, others = trained(steps_before)
    pull(unbroken, 8)
    others.step()
    for weight, expected in zip(model.parameters(), unbroken.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())


def test_the_memory_is_named_after_weights_and_comes_back_to_the_bit() -> None:
    model, optimizer = trained(3)
    memory = {place: value.clone() for place, value in memory_of(optimizer, model).items()}
    fields = ("step", "exp_avg", "exp_avg_sq")
    assert memory.keys() == {f"{name}/{field}" for name, _ in model.named_parameters() for field in fields}
    other = Tiny(dropout=0.0)
    other.load_state_dict(model.state_dict())
    resumed = adamw(other, PLAN)
    remember(resumed, other, memory)
    for net, mind in ((model, optimizer), (other, resumed)):
        pull(net, 3)
        mind.step()
    for weight, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert_same_bits(weight.detach(), expected.detach())
    assert memory["output.bias/step"].item() == 3  # what was given stays the giver's


def test_before_the_first_step_there_is_nothing_to_remember() -> None:
    model = Tiny()
    optimizer = adamw(model, PLAN)
    assert memory_of(optimizer, model) == {}
    remember(optimizer, model, {})
    assert memory_of(optimizer, model) == {}


def test_a_weight_that_no_gradient_reaches_needs_no_memory() -> None:
    model, optimizer = trained(0)
    model.register_parameter("unused", nn.Parameter(torch.ones(2)))
    optimizer = adamw(model, PLAN)
    pull(model, 0)
    optimizer.step()
    memory = memory_of(optimizer, model)
    assert not any(place.startswith("unused") for place in memory)
    remember(adamw(model, PLAN), model, memory)


@pytest.mark.parametrize(
    ("place", "shape", "wanted"),
    [("output.bias/exp_avg", (3,), "(11,)"), ("gone.weight/exp_avg", (11,), "None"), ("nonsense", (1,), "None")],
)
def test_the_memory_of_another_model_is_refused(place: str, shape: tuple[int, ...], wanted: str) -> None:
    model, optimizer = trained(1)
    memory = memory_of(optimizer, model) | {place: torch.zeros(shape)}
    fresh = adamw(model, PLAN)
    with pytest.raises(FileError) as caught:
        remember(fresh, model, memory)
    assert caught.value.key == "run-optimizer"
    assert f"{place} has shape {shape}, wanted {wanted}" in str(caught.value)
    assert memory_of(fresh, model) == {}  # all of it, or nothing


def test_the_memory_of_a_weight_that_is_now_frozen_is_refused() -> None:
    model, optimizer = trained(1)
    memory = memory_of(optimizer, model)
    model.output.bias.requires_grad_(False)
    with pytest.raises(FileError, match=r"output\.bias"):
        remember(adamw(model, PLAN), model, memory)
