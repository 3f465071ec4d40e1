"""Which module of the watched model is running: read from the frames of the Python stack.

Compiled code runs many modules in one frame; there modules are assigned in their order.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from inspect import CO_NEWLOCALS, CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from torch import Tensor, nn

from regard.capture.unobserved import is_readable

_HERE = str(Path(__file__).parent)
"""Those who look on are no modules, and are asked about often."""
_OF_A_FUNCTION = CO_OPTIMIZED | CO_NEWLOCALS
_SPEAKERS: dict[int, tuple[CodeType, tuple[str, ...]]] = {}
"""By the id of a function's code, which hashes slowly; and the code, so that the id is nobody else's."""
_WRITING = re.compile(r"generate|_decoding|_sample|_beam")
"""Functions that write a text in a loop."""
_COMPILED = "_orig_mod"
"""What torch.compile calls the module that it wraps."""


class Place(NamedTuple):
    """A module that is running, by its name in the watched model."""

    name: str
    module: nn.Module


class Names:
    """The names of a model's modules, found by asking who is running.

    >>> names = Names(nn.Sequential(nn.Linear(2, 2)))
    >>> list(names), list(names.running())
    (['', '0'], [])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._places = {id(module): Place(_plain(name), module) for name, module in model.named_modules()}
        self._modules = {place.name: place.module for place in self._places.values()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    @property
    def places(self) -> list[Place]:
        """Every module."""
        return list(self._places.values())

    def around(self, name: str) -> list[nn.Module]:
        """The module called `name` and those that it is part of, the outermost first."""
        parts = name.split(".") if name else []
        paths = [".".join(parts[:end]) for end in range(len(parts) + 1)]
        return [self._modules[path] for path in paths if path in self._modules]

    def running(self) -> Iterator[Place]:
        """The modules of the model that are running in this thread, the innermost first; none where it is not.

        A module of PyTorch's that holds nothing (a Softmax, a Dropout) is not the one that one wants to know. And what
        another model does is not this one's doing, even where it asked for it, as writing does with an assistant.
        """
        for module in at_work():
            place = self._places.get(id(module))
            if place is None and not type(module).__module__.startswith("torch."):  # as compiled graphs are
                return
            if place is not None and not _is_empty(module):
                yield place

    def part(self, place: Place, name: str) -> Place:
        """The submodule `name` of a place; the place itself where there is none."""
        full = ".".join(filter(None, (place.name, name)))
        return Place(full, self._modules[full]) if name and full in self._modules else place

    def innermost(self) -> Place | None:
        """The module that is computing; None where it is none of the model's."""
        for place in self.running():
            return place
        return None


def at_work() -> Iterator[nn.Module]:
    """The modules, of whatever model, that are running in this thread, the innermost first."""
    last: object = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for word in _speakers(frame.f_code):
            found = _local(frame, word)
            if found is not last and isinstance(found, nn.Module):  # a call and its forward are two frames, or three
                last = found
                yield found
        frame = frame.f_back


def given() -> Iterator[tuple[str, Tensor]]:
    """The tensors that the running modules were called with, by the names of their arguments."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _speakers(frame.f_code):
            yield from _arguments(frame)
        frame = frame.f_back


def given_to(module: nn.Module) -> list[tuple[str, Tensor]]:
    """The tensors that a running module was called with, in order, by name where they were given by name.

    Read off the call, not off `forward`, which may have put others in their places.
    """
    found: list[tuple[str, Tensor]] = []
    others = 0  # since the last frame of the module: hooks stand between a call and its forward
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and others < 3:
        if "self" in _speakers(frame.f_code) and _local(frame, "self") is module:
            found, others = [(name, x) for name, x in _arguments(frame) if name != "self"], 0
        else:
            others += bool(found)
        frame = frame.f_back
    return found


def named_arguments(module: nn.Module) -> list[tuple[str, Tensor]]:
    """The tensors that a running module was called with, by the names that its `forward` has for them."""
    found = given_to(module)
    words = list(inspect.signature(type(module).forward).parameters)[1:]
    unnamed = [x for name, x in found if name == "args"]
    return [*zip(words, unnamed, strict=False), *((name, x) for name, x in found if name != "args")]


def _arguments(frame: FrameType) -> Iterator[tuple[str, Tensor]]:
    """The tensors among the arguments of a running function that can be read, also in *args and **kwargs."""
    for word in frame.f_code.co_varnames[: frame.f_code.co_argcount + 2]:
        found = _local(frame, word)
        parts = found if isinstance(found, dict) else {word: found}
        for name, part in parts.items():
            several = part if isinstance(part, tuple) else (part,)
            yield from ((str(name), x) for x in several if isinstance(x, Tensor) and is_readable(x))


def is_writing() -> bool:
    """Whether a model is writing text: somewhere up the stack a function is called `generate`, or much like it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "generate" in frame.f_code.co_name:
            return True
        frame = frame.f_back
    return False


def written_so_far() -> int | None:
    """How many tokens the text has that a running `generate` continues; None where none does.

    Read off its loop: an assistant's proposals, which a call may read together with the prompt, are not among them.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _WRITING.search(frame.f_code.co_name):
            ids = _local(frame, "input_ids")
            if isinstance(ids, Tensor) and ids.dim() == 2:
                return int(ids.shape[1])
        frame = frame.f_back
    return None


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != _COMPILED) if _COMPILED in name else name


def _speakers(code: CodeType) -> tuple[str, ...]:
    """The arguments that may be the module a function works for: `self` in methods, `module` where others help it."""
    known = _SPEAKERS.get(id(code))
    if known is None:
        if len(_SPEAKERS) >= 2**12:
            _SPEAKERS.clear()
        known = _SPEAKERS[id(code)] = code, _read_speakers(code)
    return known[1]


def _read_speakers(code: CodeType) -> tuple[str, ...]:
    if code.co_flags & _OF_A_FUNCTION != _OF_A_FUNCTION or code.co_filename.startswith(_HERE):
        return ()
    given = code.co_varnames[: code.co_argcount]
    return tuple(word for word in ("self", "module") if word in given)


def _local(frame: FrameType, word: str) -> Any:
    """A local variable of a running function.

    Before Python 3.13, looking leaves a copy of all locals with the frame; emptied, it keeps no tensor alive.
    """
    looked_at = frame.f_locals
    found = looked_at.get(word)
    if sys.version_info < (3, 13):
        looked_at.clear()
    return found


def _is_empty(module: nn.Module) -> bool:
    foreign = type(module).__module__.startswith("torch.nn.")
    return foreign and not module._parameters and not module._modules and not module._buffers


_ATTENTION = re.compile(r"att(entio)?n|multi_?head", re.I)


class Order:
    """Is asked at every attention, and counts those of modules that only contain what computes it."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._inside: dict[str, list[Place]] = {}
        self._counts: Counter[str] = Counter()

    def placed(self, place: Place) -> Place:
        """The attention whose turn it is, inside a module that contains some; the module itself where it has none."""
        if place.name not in self._inside:
            self._inside[place.name] = self._attentions(place)
        inside = self._inside[place.name]
        if not inside:
            return place
        self._counts[place.name] += 1
        return inside[(self._counts[place.name] - 1) % len(inside)]

    def misfit(self) -> tuple[int, int] | None:
        """How many calls there were, and how many modules, where the one is no multiple of the other."""
        for name, count in self._counts.items():
            if count % len(self._inside[name]):
                return count, len(self._inside[name])
        return None

    def _attentions(self, place: Place) -> list[Place]:
        """The innermost modules that by their class are attention; none where the place itself is one."""
        if is_attention(place):
            return []
        start = f"{place.name}." if place.name else ""
        inside = [one for one in self._names.places if one.name.startswith(start) and is_attention(one)]
        return [one for one in inside if not any(other.name.startswith(f"{one.name}.") for other in inside)]


def is_attention(place: Place) -> bool:
    """Whether a module is attention, by the name of its class."""
    return bool(_ATTENTION.search(type(place.module).__name__))
