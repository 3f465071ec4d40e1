"""Names of the watched model's modules: which run now, with which tensors, and which `layers` selects.

Compiled code runs many modules in one frame; there modules are assigned in their order.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from functools import cache, cached_property, lru_cache
from inspect import CO_NEWLOCALS, CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.capture.model_facts import facts_of
from regard.capture.operators import is_readable
from regard.errors import ArgumentError, UnknownNameError

_THIS_PACKAGE = str(Path(__file__).parent)
"""Frames of this package are skipped early: they are not modules, and they are many."""
_OF_A_FUNCTION = CO_OPTIMIZED | CO_NEWLOCALS
_MODULE_ARGUMENTS: dict[int, tuple[CodeType, tuple[str, ...]]] = {}
"""By the id of a function's code, because code objects hash slowly; with the code, so that its id is not reused."""
_GENERATING = re.compile(r"generate|_decoding|_sample|_beam")
"""Functions that generate a text in a loop."""
_COMPILED = "_orig_mod"
"""The attribute by which torch.compile holds the module that it wraps."""


class Place(NamedTuple):
    """A module of the watched model with its name."""

    name: str
    module: nn.Module


class ModuleNames:
    """The names of a model's modules, and which of them are running.

    >>> names = ModuleNames(nn.Sequential(nn.Linear(2, 2)))
    >>> list(names), list(names.running())
    (['', '0'], [])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.facts, self.all = facts_of(model)
        """What is known of the model, and its modules in any order; a shared module may be listed several times."""
        self._names: dict[int, str] = self.facts.once("names", self._without_compiled)

    def _without_compiled(self) -> dict[int, str]:
        return {at: _without_compiled(name) for at, name in self.facts.names.items()}

    @cached_property
    def _modules(self) -> dict[str, nn.Module]:
        by_id = {id(module): module for module in self.all}
        return {name: by_id[at] for at, name in self._names.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(self._names.values()))

    @property
    def places(self) -> list[Place]:
        """All modules."""
        by_id = {id(module): module for module in self.all}
        return [Place(name, by_id[at]) for at, name in self._names.items()]

    @property
    def weights(self) -> Iterator[Tensor]:
        """The parameters of all modules; shared ones several times."""
        several = (module._parameters for module in self.all)
        return (weight for each in several if each for weight in each.values() if weight is not None)

    def check_data(self) -> None:
        """Raise ArgumentError for a model whose weights have no data."""
        if any(not weight.is_meta for weight in self.weights):
            return
        first = next(self.model.named_parameters(), None)
        # Offloaded weights are on the meta device until accelerate's hooks load them.
        if first is not None and not any(hasattr(module, "_hf_hook") for module in self.all):
            raise ArgumentError("watch-meta", name=first[0])

    @property
    def devices(self) -> frozenset[str]:
        """The types of device that the model may compute on."""
        if not _has_other_devices():
            return _COMMON_DEVICES | {"cuda"} if _has_gpu() else _COMMON_DEVICES
        return _COMMON_DEVICES | {weight.device.type for weight in self.weights} - {"meta"}

    def ancestors(self, name: str) -> list[nn.Module]:
        """The module called `name` and its parents, outermost first."""
        parts = name.split(".") if name else []
        paths = [".".join(parts[:end]) for end in range(len(parts) + 1)]
        return [self._modules[path] for path in paths if path in self._modules]

    def running(self) -> Iterator[Place]:
        """The modules of the model that are running in this thread, innermost first; none if the model is not running.

        PyTorch's modules without parameters (a Softmax, a Dropout) are skipped. Modules of another model end the
        search, even if this model called it, as generation does with an assistant.
        """
        for module in running_modules():
            name = self._names.get(id(module))
            if name is not None:
                if not _is_empty(module):
                    yield Place(name, module)
            elif not type(module).__module__.startswith("torch."):  # as that of a compiled graph
                return

    def submodule(self, place: Place, name: str) -> Place:
        """The submodule `name` of a place; the place itself if there is none."""
        full = ".".join(filter(None, (place.name, name)))
        return Place(full, self._modules[full]) if name and full in self._modules else place

    def innermost(self) -> Place | None:
        """The running module; None if it is not part of the model."""
        return next(self.running(), None)


_COMMON_DEVICES = frozenset({"cpu"})


@cache
def _has_gpu() -> bool:
    return torch.cuda.is_available()


@cache
def _has_other_devices() -> bool:
    """Whether this process may compute on devices other than CPUs and CUDA's, for which weights must be looked at."""
    found = torch.accelerator.current_accelerator()
    return found is not None and found.type != "cuda"


def running_modules() -> Iterator[nn.Module]:
    """The modules of any model that are running in this thread, innermost first."""
    last: object = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        known = _MODULE_ARGUMENTS.get(id(code))  # as in `_module_arguments`, which most frames need not call
        for name in _module_arguments(code) if known is None else known[1]:
            found = _local(frame, name)
            if found is not last and isinstance(found, nn.Module):  # a call and its forward are two or three frames
                last = found
                yield found
        frame = frame.f_back


def running_arguments() -> Iterator[tuple[str, Tensor]]:
    """The tensors that the running modules were called with, by argument name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _module_arguments(frame.f_code):
            yield from _arguments(frame)
        frame = frame.f_back


def call_arguments(module: nn.Module) -> list[tuple[str, Tensor]]:
    """The tensors that a running module was called with, in order, named if passed by name.

    Read from the call, not from `forward`, which may have reassigned them.
    """
    found: list[tuple[str, Tensor]] = []
    others = 0  # frames since the last one of the module: hooks may lie between a call and its forward
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and others < 3:
        if "self" in _module_arguments(frame.f_code) and _local(frame, "self") is module:
            found, others = [(name, x) for name, x in _arguments(frame) if name != "self"], 0
        else:
            others += bool(found)
        frame = frame.f_back
    return found


def named_arguments(module: nn.Module) -> list[tuple[str, Tensor]]:
    """The tensors that a running module was called with, by the parameter names of its `forward`."""
    found = call_arguments(module)
    forward = getattr(type(module), "forward", None)  # the class of a TorchScript module has none
    parameters = () if forward is None else parameters_of(forward)[1:]
    unnamed = [x for name, x in found if name == "args"]
    return [*zip(parameters, unnamed, strict=False), *((name, x) for name, x in found if name != "args")]


@lru_cache(maxsize=2**10)
def parameters_of(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)


def _arguments(frame: FrameType) -> Iterator[tuple[str, Tensor]]:
    """The readable tensors among the arguments of a running function, also in *args and **kwargs."""
    for name in frame.f_code.co_varnames[: frame.f_code.co_argcount + 2]:
        found = _local(frame, name)
        parts = found if isinstance(found, dict) else {name: found}
        for key, part in parts.items():
            several = part if isinstance(part, tuple) else (part,)
            yield from ((str(key), x) for x in several if isinstance(x, Tensor) and is_readable(x))


class Generation(NamedTuple):
    """Whether a model is generating text, and the number of tokens that it continues; None if unknown."""

    is_running: bool
    length: int | None


def running_generation() -> Generation:
    """What the functions on the stack say about a running `generate`.

    The length is read from its loop: an assistant's proposals, which one call may read together with the prompt, are
    not counted.
    """
    frame: FrameType | None = sys._getframe(1)
    length, is_running = None, False
    while frame is not None:
        name = frame.f_code.co_name
        if length is None and _GENERATING.search(name):
            ids = _local(frame, "input_ids")
            length = int(ids.shape[1]) if isinstance(ids, Tensor) and ids.dim() == 2 else None
        is_running = is_running or "generate" in name
        frame = frame.f_back
    return Generation(is_running, length)


def _without_compiled(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != _COMPILED) if _COMPILED in name else name


def _module_arguments(code: CodeType) -> tuple[str, ...]:
    """The arguments that may be the module of a function: `self` of methods, `module` of helper functions."""
    known = _MODULE_ARGUMENTS.get(id(code))
    if known is None:
        if len(_MODULE_ARGUMENTS) >= 2**12:
            _MODULE_ARGUMENTS.clear()
        known = _MODULE_ARGUMENTS[id(code)] = code, _find_module_arguments(code)
    return known[1]


def _find_module_arguments(code: CodeType) -> tuple[str, ...]:
    if code.co_flags & _OF_A_FUNCTION != _OF_A_FUNCTION or code.co_filename.startswith(_THIS_PACKAGE):
        return ()
    arguments = code.co_varnames[: code.co_argcount]
    return tuple(name for name in ("self", "module") if name in arguments)


def _local(frame: FrameType, name: str) -> Any:
    """A local variable of a running function.

    Before Python 3.13, reading `f_locals` leaves a copy of all locals with the frame; cleared, it keeps no tensor
    alive.
    """
    values = frame.f_locals
    found = values.get(name)
    if sys.version_info < (3, 13):
        values.clear()
    return found


def _is_empty(module: nn.Module) -> bool:
    foreign = type(module).__module__.startswith("torch.nn.")
    return foreign and not module._parameters and not module._modules and not module._buffers


_ATTENTION = re.compile(r"att(entio)?n|multi_?head", re.I)


class CompiledOrder:
    """Assigns the calls of compiled modules to the attention modules inside them, in order."""

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._inside: dict[str, list[str]] = {}
        self._counts: Counter[str] = Counter()

    def next_place(self, place: Place) -> Place:
        """The next attention module inside a module that contains some; the module itself if it contains none."""
        if not self.contains_attention(place):
            return place
        inside = self._inside[place.name]
        self._counts[place.name] += 1
        name = inside[(self._counts[place.name] - 1) % len(inside)]
        return self._names.submodule(Place("", self._names.model), name)

    def contains_attention(self, place: Place) -> bool:
        """Whether a module contains modules that are attention by their class, and is none itself."""
        inside = self._inside.get(place.name)
        if inside is None:
            key = "attentions inside", place.name
            inside = self._inside[place.name] = self._names.facts.once(key, lambda: self._attentions(place))
        return bool(inside)

    def mismatch(self) -> tuple[int, int] | None:
        """The number of calls and of modules, if the calls are not a multiple of the modules; else None."""
        for name, count in self._counts.items():
            if count % len(self._inside[name]):
                return count, len(self._inside[name])
        return None

    def _attentions(self, place: Place) -> list[str]:
        """The names of the innermost modules that are attention by their class; none if the place itself is one."""
        if is_attention(place):
            return []
        start = f"{place.name}." if place.name else ""
        inside = [one.name for one in self._names.places if one.name.startswith(start) and is_attention(one)]
        return [one for one in inside if not any(other.startswith(f"{one}.") for other in inside)]


def is_attention(place: Place) -> bool:
    """Whether a module is attention, by the name of its class."""
    return bool(_ATTENTION.search(type(place.module).__name__))


def may_be_attention(place: Place, likely: bool) -> bool:
    """Whether a softmax of a module may be attention: by the name of its class, or if `likely` by its shape.

    Hyper-connections mix the streams of each position by a matrix from a softmax.
    """
    return is_attention(place) or (likely and "HyperConnection" not in type(place.module).__name__)


ALIKE = 0.6
"""How similar a name must be to be suggested, from 0 to 1: less would mislead. The default of `difflib`."""


class ChosenLayers:
    """The chosen modules of a model and all modules inside them; all modules if `layers` is None.

    `layers` are matched against `names`. UnknownNameError if one matches none, with the nearest name or the valid
    numbers.

    >>> chosen = ChosenLayers("h.1", ["h", "h.0", "h.0.attn", "h.1", "h.1.attn"])
    >>> "h.1.attn" in chosen, "h.0.attn" in chosen
    (True, False)
    """

    def __init__(self, layers: Any, names: Collection[str]) -> None:
        self._names = None if layers is None else frozenset(_chosen(layers, [name for name in names if name]))
        self._known: dict[str, bool] = {}
        """Whether a module is chosen: asked for every call."""
        self._types: Counter[type] | None = None

    @classmethod
    def of(cls, layers: Any, names: ModuleNames) -> "ChosenLayers":
        """The chosen modules of a model, found once for each selection."""
        several = layers if isinstance(layers, list | tuple) else [layers]
        if not all(isinstance(item, str | int | None) for item in several):
            return cls(layers, list(names))
        key = layers is several, *((type(item), item) for item in several)
        return names.facts.once(("chosen", key), lambda: cls(layers, list(names)))

    def types(self, names: ModuleNames) -> Counter[type]:
        """The number of chosen modules by class; `names` as before."""
        if self._types is None:
            self._types = Counter(type(place.module) for place in names.places if place.name in self)
        return self._types

    def __bool__(self) -> bool:
        return self._names is None or bool(self._names)

    def __contains__(self, name: str) -> bool:
        """Whether the module called `name`, or one that contains it, is chosen."""
        if self._names is None:
            return True
        found = self._known.get(name)
        if found is None:
            parts = name.split(".")
            found = any(".".join(parts[:end]) in self._names for end in range(len(parts), 0, -1))
            self._known[name] = found
        return found


def _chosen(layers: Any, names: list[str]) -> Iterable[str]:
    requested = [layers] if isinstance(layers, str | int) else layers
    if not isinstance(requested, Iterable):
        raise ArgumentError("watch-layers", found=type(layers).__name__)
    return [name for item in requested for name in _fitting(item, names)]


def _fitting(item: Any, names: list[str]) -> list[str]:
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ArgumentError("watch-layers", found=type(item).__name__)
    if isinstance(item, int):
        return layers_numbered(item, names)
    item = item.partition("#")[0]  # a record's name: later calls of a module have a number
    fitting = [name for name in names if name == item or name.endswith(f".{item}")]
    fitting = fitting or [name for name in names if fnmatchcase(name, item) or fnmatchcase(name, f"*.{item}")]
    if not fitting:
        raise unknown_layer(item, names)
    return fitting


def layers_numbered(requested: int, names: list[str]) -> list[str]:
    """The modules with that number in the outermost lists: in T5, `block.1` and not `block.0.layer.1`.

    Numbers below 0 count from the end of each list: encoder and decoder may differ in length.
    """
    lists: dict[str, dict[int, str]] = {}
    for name in names:
        outside, _, last = name.rpartition(".")
        if last.isdecimal() and not any(part.isdecimal() for part in outside.split(".")):
            lists.setdefault(outside, {})[int(last)] = name
    if not lists:
        raise UnknownNameError("watch-layers-unnumbered", asked=requested)
    wanted = [(layers, requested if requested >= 0 else max(layers) + 1 + requested) for layers in lists.values()]
    found = [layers[number] for layers, number in wanted if number in layers]
    if not found:
        numbers = [number for layers in lists.values() for number in layers]
        raise UnknownNameError("watch-layer-number", asked=requested, first=min(numbers), last=max(numbers))
    return found


def unknown_layer(requested: str, names: Sequence[str]) -> UnknownNameError:
    """The error for an unknown name, with a similar one if there is any."""
    meant = nearest_name(requested, names)
    if meant is None:
        return UnknownNameError("watch-layer-unlike", asked=requested)
    return UnknownNameError("watch-layer-unknown", asked=requested, nearest=meant)


def nearest_name(requested: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant: one that contains it, else the one with the most similar end.

    >>> nearest_name("h.7.atn", ["transformer.h.6.attn", "transformer.h.7.attn", "transformer.h.7.mlp"])
    'transformer.h.7.attn'
    >>> nearest_name("h.7.atn", ["out"]) is None
    True
    """
    inside = [name for name in names if requested in name]
    if inside:
        return min(inside, key=len)
    parts = requested.count(".") + 1

    def likeness(name: str) -> float:
        return SequenceMatcher(None, requested, ".".join(name.split(".")[-parts:])).ratio()

    # The last of equals, because numbers are more often too large.
    best = max(reversed(names), key=likeness, default="")
    return best if likeness(best) >= ALIKE else None
