"""PyTorch's AdamW for a Plan, its state by parameter name for checkpoints, and the learning rate schedule."""

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.errors import FileError
from regard.training.plan import Plan


def adamw(model: nn.Module, plan: Plan) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), fused. Weight decay on matrices only: decayed biases and norms do not help.

    If steps are captured as CUDA graphs, the learning rate is a GPU tensor, so that a replay reads its current value.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim >= 2], "weight_decay": plan.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    device = weights[0].device
    is_captured = plan.capture and device.type == "cuda"
    optimizer: Any = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=torch.tensor(plan.lr, device=device) if is_captured else plan.lr,
        betas=plan.betas,
        eps=plan.eps,
        fused=True,
        capturable=is_captured,
    )
    # PyTorch would warn about steps that are not captured; the first steps of every shape are not.
    optimizer._warned_capturable_if_run_uncaptured = True
    return cast(torch.optim.AdamW, optimizer)


def set_rate(optimizer: torch.optim.AdamW, lr: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def skip_unless(optimizer: torch.optim.AdamW, good: Tensor) -> None:
    """Make the next step a no-op unless `good`. Decided on the device, without a synchronisation."""
    fused: Any = optimizer
    fused.grad_scale, fused.found_inf = None, (~good).float()


def optimizer_state(optimizer: torch.optim.AdamW, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state by name, such as "embedding.weight/exp_avg". Empty before its first step."""
    return {
        f"{name}/{field}": value
        for name, weight in model.named_parameters()
        for field, value in optimizer.state.get(weight, {}).items()
    }


def load_optimizer_state(optimizer: torch.optim.AdamW, model: nn.Module, memory: dict[str, Tensor]) -> None:
    """Restore what `optimizer_state` returned. Raises FileError if a name or shape belongs to another model.

    A weight that has had no gradient has no state.
    """
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    fields: dict[str, dict[str, Tensor]] = {}
    for place, value in memory.items():
        name, _, field = place.rpartition("/")
        weight = weights.get(name)
        if weight is None or (field != "step" and value.shape != weight.shape):
            wanted = None if weight is None else tuple(weight.shape)
            raise FileError("run-optimizer", place=place, found=tuple(value.shape), wanted=wanted)
        fields.setdefault(name, {})[field] = value
    for name, found in fields.items():
        weight = weights[name]
        optimizer.state[weight] = {field: value.to(weight.device, copy=True) for field, value in found.items()}


def learning_rate(plan: Plan, step: int) -> float:
    """The learning rate of step 1, 2, …: it rises linearly over `warmup` steps, then follows the schedule.

    inverse-sqrt   lr · √(warmup / step) (Vaswani et al. 2017, section 5.3)
    cosine         half a cosine from lr to lr_end, reached at the last step

    >>> plan = Plan(steps=10, lr=1.0, schedule="cosine", warmup=2)
    >>> [round(learning_rate(plan, step), 2) for step in (1, 2, 6, 10)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step < plan.warmup:
        return plan.lr * step / plan.warmup
    if plan.schedule == "inverse-sqrt":
        return plan.lr * math.sqrt(max(1, plan.warmup) / step)
    if plan.schedule == "cosine":
        done = min(1.0, (step - plan.warmup) / max(1, plan.steps - plan.warmup))
        return plan.lr_end + (plan.lr - plan.lr_end) * (1 + math.cos(math.pi * done)) / 2
    return plan.lr
