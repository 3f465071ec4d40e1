"""A model divided among the processes (FSDP2): every process has a part of each weight, gradient and optimizer state.

`torch.distributed` is imported by what needs it: a run that is not divided does not pay for it.
"""

import warnings
from collections.abc import Iterator
from typing import Any, cast

from torch import Tensor, nn

from regard.errors import ArgumentError
from regard.training.processes import Ranks


def shard(model: nn.Module, ranks: Ranks) -> nn.Module:
    """The model on the device of this process, divided; a single process keeps it whole.

    The modules of each outermost ModuleList are divided one by one, then the rest. A forward assembles the weights of
    one of them at a time, so the device never holds all of them.

    Raises ArgumentError for a weight without axes, which cannot be divided.
    """
    if ranks.world == 1:
        return model.to(ranks.device)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    scalar = next((name for name, weight in model.named_parameters() if not weight.ndim), None)
    if scalar is not None:
        raise ArgumentError("shard-scalar", name=scalar)
    if not isinstance(model, FSDPModule):  # else an earlier call has divided it
        # Logits are often a view. The warning is about changes in place; the loss makes none.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
        mesh = init_device_mesh(ranks.device.type, (ranks.world,))
        for layer in _layers(model):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The modules of each ModuleList that is in no other."""
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _layers(child)


def synchronise_gradients(model: nn.Module, wanted: bool) -> None:
    """Whether the next backward pass adds the gradients of all processes; if not, each keeps its own, whole."""
    divided: Any = model
    if hasattr(divided, "set_requires_gradient_sync"):  # of FSDPModule
        divided.set_requires_gradient_sync(wanted)


def own_part(tensor: Tensor) -> Tensor:
    """The part of this process, without communication; the tensor itself if it is not divided."""
    divided: Any = tensor
    return divided.to_local() if hasattr(tensor, "to_local") else tensor


def assembled(tensor: Tensor) -> Tensor:
    """The whole tensor, in every process, which all must call; the tensor itself if it is not divided."""
    divided: Any = tensor
    return divided.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def full_weights(model: nn.Module) -> dict[str, Tensor]:
    """The whole weights by name, on the CPU of the first process; the others, which must call too, get none.

    They are assembled one at a time.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return cast(dict[str, Tensor], get_model_state_dict(model, options=options))
