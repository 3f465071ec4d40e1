"""How the learning rate rises and falls: a pure function of the step, so that a resumed run needs to remember none."""

import math

from regard.training.plan import Plan


def learning_rate(plan: Plan, step: int) -> float:
    """The rate of step 1, 2, … : up in a straight line over `warmup` steps, then as the schedule says.

    inverse-sqrt   lr · √(warmup / step) (Vaswani et al. 2017, section 5.3)
    cosine         half a cosine from lr down to lr_end, reached at the last step

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
