"""Update: one optimizer step on the device. Forward, backward, clipping, AdamW; left out where something is not finite.

Whatever changes from step to step stands in tensors that are filled beforehand, so that all of it can be captured as
one CUDA graph, and nothing in here waits for the device.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.training.optimizer import set_rate, skip_unless
from regard.training.plan import Plan
from regard.training.ranks import Ranks
from regard.training.stopping import StopRequest

Micro = tuple[dict[str, Tensor], Tensor]
"""The inputs and targets of one micro-batch."""


class Update:
    """update(micro-batches) gives loss per target, norm of the gradient, whether both are finite, whether to stop.

    learner   an Objective, perhaps compiled, perhaps in DistributedDataParallel
    request   whether this process was asked to stop; with several, all must hear of it after the same step
    """

    def __init__(
        self,
        learner: Any,
        model: nn.Module,
        optimizer: torch.optim.AdamW,
        plan: Plan,
        ranks: Ranks,
        request: StopRequest,
    ) -> None:
        self.learner, self.model, self.optimizer, self.plan = learner, model, optimizer, plan
        self.ranks, self.request = ranks, request
        self._share = torch.ones((), device=ranks.device)  # of one target in the loss

    def prepare(self, *, lr: float, n_targets: int) -> None:
        """What the next step takes beside its batches: its rate, and the targets of all processes."""
        set_rate(self.optimizer, lr)
        self._share.fill_(1 / max(1, n_targets))

    def __call__(self, micro: Sequence[Micro]) -> Tensor:
        ranks = self.ranks
        total = torch.zeros((), dtype=torch.float64, device=ranks.device)
        for i, (inputs, targets) in enumerate(micro):
            with self._unsynced(i < len(micro) - 1):
                with autocast(self.plan, ranks):
                    loss = self.learner(inputs, targets) * self._share
                # Gradients are averaged over the processes: times their number, that is the sum.
                (loss * ranks.world).backward()
            total += loss.detach()
        asked = torch.full_like(total, float(ranks.world > 1 and self.request.asked))
        total, asked = ranks.added(torch.stack([total, asked]))
        most = math.inf if self.plan.clip is None else self.plan.clip
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), most)
        good = norm.isfinite() & total.isfinite()
        skip_unless(self.optimizer, good)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack([total, norm.double(), good.double(), asked])

    def _unsynced(self, wanted: bool) -> AbstractContextManager[Any]:
        """Gradients are sent round once a step, with the last micro-batch."""
        module = getattr(self.learner, "_orig_mod", self.learner)
        return module.no_sync() if wanted and isinstance(module, DistributedDataParallel) else nullcontext()


def autocast(plan: Plan, ranks: Ranks) -> AbstractContextManager[Any]:
    """Products in bfloat16 where the plan says so. Nothing is cached: a captured graph must cast for itself."""
    return torch.autocast(ranks.device.type, torch.bfloat16, enabled=plan.precision == "bfloat16", cache_enabled=False)
