"""A cache of what `watch` computes once for each model: the names of its modules, and what follows from their classes.

The cache lasts as long as the model, and holds none of its modules. At each watch one pass over the modules checks that
they are the same, of the same classes and names; otherwise everything is computed again.
"""

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import ArgumentError
from regard.reference.transformer import Transformer
from regard.trace.trace_merging import Split

F = TypeVar("F")


class ModelFacts:
    """The facts of one model.

    names   the name of each module by its id, in the order of `named_modules`
    """

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], F]) -> F:
        """What `compute` returns, computed at the first call with this key. It must hold no module.

        >>> facts = ModelFacts({})
        >>> facts.once("answer", lambda: 42), facts.once("answer", lambda: 43)
        (42, 42)
        """
        if key not in self._known:
            self._known[key] = compute()
        found: F = self._known[key]
        return found


_KEPT: WeakKeyDictionary[nn.Module, tuple[list[Any], ModelFacts]] = WeakKeyDictionary()
"""Each with the ids, classes and names of its modules."""

MAX_VISITS = 2**14
"""Modules in one pass, counted for each parent: a model whose modules contain each other has no end."""


def check_module(model: Any, function: str) -> None:
    """Raise ArgumentError unless the model is a torch.nn.Module; `function` is the name of the caller."""
    if isinstance(model, nn.Module):
        return
    inner = getattr(model, "model", None)
    if isinstance(inner, nn.Module):
        key = "module-inner"
    else:
        key = "module-numpy" if isinstance(model, Transformer) or isinstance(inner, Transformer) else "module-wanted"
    raise ArgumentError(key, function=function, found=type(model).__name__)


def attribute_of(owner: Any, name: str) -> Any:
    """`getattr(owner, name, None)`, or None for a parameter, a buffer or a submodule.

    The error of `nn.Module` for a missing attribute takes 6 µs, several times what a repeated call takes.

    >>> attribute_of(nn.Linear(2, 3), "out_features"), attribute_of(nn.Linear(2, 3), "is_causal")
    (3, None)
    """
    kind = type(owner)
    is_plain = isinstance(owner, nn.Module) and kind.__getattr__ is nn.Module.__getattr__
    return None if is_plain and name not in owner.__dict__ and not hasattr(kind, name) else getattr(owner, name, None)


def facts_of(model: nn.Module) -> tuple[ModelFacts, list[nn.Module]]:
    """The facts of a model, and its modules in any order."""
    if type(model).named_modules is not nn.Module.named_modules:
        named = list(model.named_modules())
        return ModelFacts({id(module): name for name, module in named}), [module for _, module in named]
    modules, structure = _visited(model)
    kept = _KEPT.get(model)
    if kept is not None and kept[0] == structure and len(modules) < MAX_VISITS:
        return kept[1], modules
    named = named_modules(model)
    facts = ModelFacts({id(module): name for name, module in named})
    _KEPT[model] = structure, facts
    return facts, modules if len(modules) < MAX_VISITS else [module for _, module in named]


def _visited(model: nn.Module) -> tuple[list[nn.Module], list[Any]]:
    """The modules of a model, level by level, and their ids, classes and names."""
    modules: list[Any] = [model]
    names: list[str] = []
    for module in modules:
        if module is not None and module._modules and len(modules) < MAX_VISITS:
            modules += module._modules.values()
            names += module._modules.keys()  # a TorchScript module has no dict there
    structure = [list(map(id, modules)), list(map(type, modules)), names]
    return [module for module in modules if module is not None], structure


def named_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """What `model.named_modules()` gives, in a fifth of the time: its generators are nested as deep as the model."""
    found: dict[int, tuple[str, nn.Module]] = {}
    waiting: list[tuple[str, nn.Module]] = [("", model)]
    while waiting:
        name, module = waiting.pop()
        if id(module) not in found:
            found[id(module)] = name, module
            start = f"{name}." if name else ""
            parts = [(start + key, part) for key, part in module._modules.items() if part is not None]
            waiting += reversed(parts)
    return list(found.values())


# --- distributed models ------------------------------------------------------------------------------------


def split_of(model: nn.Module, attention: Callable[[], Sequence[nn.Module]]) -> Split | None:
    """What the processes divide when they run the model; None where it is unknown, both, or a single process.

    attention   returns the modules that compute attention: with sharded projections, each process has some of the heads
    """
    if not (dist.is_available() and dist.is_initialized()):
        return None
    wrappers: tuple[Any, ...] = (nn.parallel.DistributedDataParallel,)
    if fsdp := sys.modules.get("torch.distributed.fsdp"):  # else no module is one of FSDP
        wrappers += (fsdp.FSDPModule, fsdp.FullyShardedDataParallel)
    several = attention()
    meshes = [getattr(weight, "device_mesh", None) for module in several for weight in module.parameters()]
    if any(isinstance(module, wrappers) for module in model.modules()):
        return "samples" if all(mesh is None or mesh.ndim == 1 for mesh in meshes) else None
    sharded = [any(_is_sharded(weight) for weight in module.parameters()) for module in several]
    return "heads" if sharded and all(sharded) else None


def _is_sharded(weight: Tensor) -> bool:
    """Whether it is a DTensor of which each process has a part."""
    return any(place.is_shard() for place in getattr(weight, "placements", ()))
