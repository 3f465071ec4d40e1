"""The state of a run, its conversion to a checkpoint and back, and the mean of several checkpoints."""

import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from regard.config.tree import JSON_TYPES, TreeReader
from regard.errors import FileError, RunError
from regard.training.checkpoint_store import Snapshot
from regard.training.sharding import own_part
from regard.training.step import load_optimizer_state, optimizer_state


@dataclass(kw_only=True)
class Progress:
    """The state of a run besides the weights and the optimizer's state.

    data           the fingerprint of the training data
    step           optimizer updates so far, skipped ones included
    cursor         micro-batches so far: the position in the data
    best           the lowest validation loss, at step `best_step`
    waited         validations since then
    skipped        steps skipped because the loss or gradient was not finite
    bad_in_a_row   the number of skipped steps at the end
    """

    data: str
    step: int = 0
    cursor: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    skipped: int = 0
    bad_in_a_row: int = 0

    def reset_best(self) -> None:
        """Forget the best step: its weights were overwritten after the step that the run resumes from."""
        self.best, self.best_step, self.waited = None, 0, 0


def snapshot(
    progress: Progress,
    model: nn.Module,
    optimizer: torch.optim.AdamW | None,
    summed: Callable[[Tensor], Tensor] = lambda values: values,
) -> Snapshot:
    """A snapshot of the run. Raises RunError if a weight is not finite: such weights must not be saved.

    summed   for a divided model: adds values of all processes, so that all raise the same error
    """
    weights = model.state_dict()
    if weights:
        are_bad = [~own_part(weight).isfinite().all() for weight in weights.values()]
        for name, is_bad in zip(weights, summed(torch.stack(are_bad).int()).tolist(), strict=True):
            if is_bad:
                raise RunError("run-weights-not-finite", name=name, step=progress.step)
    memory = {} if optimizer is None else optimizer_state(optimizer, model)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return Snapshot(progress.step, weights, memory, {"progress": asdict(progress), "versions": versions})


def restore(found: Snapshot, model: nn.Module, optimizer: torch.optim.AdamW, fresh: Progress) -> Progress:
    """Load a checkpoint into model and optimizer. Raises FileError if it belongs to other data or another model."""
    progress: Progress = _READER.table(found.state.get("progress"), Progress, "progress")
    if progress.data != fresh.data:
        raise FileError("run-data-changed")
    wanted = {name: weight.shape for name, weight in model.state_dict().items()}
    for name in sorted(wanted.keys() | found.model.keys()):
        if name not in wanted or name not in found.model or found.model[name].shape != wanted[name]:
            raise FileError("run-other-model", name=name)
    model.load_state_dict(found.model)
    load_optimizer_state(optimizer, model, found.optimizer)
    return progress


_READER = TreeReader(error=lambda _: FileError("run-progress"), type_names=JSON_TYPES, is_complete=True)


def averaged(models: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight, summed in float64 and returned in its own dtype.

    >>> averaged([{"w": torch.tensor([1.0])}, {"w": torch.tensor([2.0])}])["w"].item()
    1.5
    """
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for count, weights in enumerate(models, 1):
        for name, weight in weights.items():
            dtypes[name] = weight.dtype
            sums[name] = weight.to(torch.float64, copy=True) if count == 1 else sums[name].add_(weight)
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}
