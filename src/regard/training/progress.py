"""The state of a run as a checkpoint and back, and the mean of several checkpoints."""

import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import FileError, RunError
from regard.training.checkpoint_store import Snapshot
from regard.training.optimizer import memory_of, remember


@dataclass(kw_only=True)
class Progress:
    """Everything that a run remembers beside its weights and the optimizer's memory.

    data           the fingerprint of the training data
    step           optimizer updates so far, those that were left out included
    cursor         micro-batches so far: the one number that says where in the data we are
    best           the lowest validation loss, and `best_step` where it was; `waited` looks ago
    skipped        steps that were left out because loss or gradient was not finite
    bad_in_a_row   how many of these came last
    """

    data: str
    step: int = 0
    cursor: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    skipped: int = 0
    bad_in_a_row: int = 0

    def forget_best(self) -> None:
        """The best weights are not there any more: later ones took their place in a course that is forgotten."""
        self.best, self.best_step, self.waited = None, 0, 0


def snapshot(progress: Progress, model: nn.Module, optimizer: torch.optim.AdamW | None) -> Snapshot:
    """The run as it stands; RunError where a weight is not finite, which must never be saved as good."""
    weights = model.state_dict()
    bad = next((name for name, weight in weights.items() if not bool(weight.isfinite().all())), None)
    if bad is not None:
        raise RunError("run-weights-not-finite", name=bad, step=progress.step)
    memory = {} if optimizer is None else memory_of(optimizer, model)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return Snapshot(progress.step, weights, memory, {"progress": asdict(progress), "versions": versions})


def restore(found: Snapshot, model: nn.Module, optimizer: torch.optim.AdamW, fresh: Progress) -> Progress:
    """Put a checkpoint's weights and memory in place. FileError where it is of other data, or of another model."""
    progress = _read(found.state.get("progress"))
    if progress.data != fresh.data:
        raise FileError("run-data-changed")
    wanted = {name: weight.shape for name, weight in model.state_dict().items()}
    for name in sorted(wanted.keys() | found.model.keys()):
        if name not in wanted or name not in found.model or found.model[name].shape != wanted[name]:
            raise FileError("run-other-model", name=name)
    model.load_state_dict(found.model)
    remember(optimizer, model, found.optimizer)
    return progress


def _read(values: Any) -> Progress:
    """Progress out of JSON, believed after a look."""
    kinds = {"data": str, "best": float | int | None}
    names = {field.name for field in fields(Progress)}
    is_whole = isinstance(values, dict) and values.keys() == names
    if not is_whole or not all(isinstance(value, kinds.get(name, int)) for name, value in values.items()):
        raise FileError("run-progress")
    return Progress(**values)


def averaged(models: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight, added up in float64 and given back in its own dtype.

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
