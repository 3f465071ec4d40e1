"""Which hidden states descend from which ids, in models that read more than text: pictures, sounds, features.

There a length does not tell what a sequence is: 64 patches are as many as 64 tokens. So the output of each embedding of
tokens is followed. What is computed of it row by row has the same tokens; a product has those of its left factor,
attention those of its queries. What is put together with others, or has another length, has none.
"""

import inspect
import re
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.caught import Caught, CaughtWeights
from regard.capture.forms import key_of

aten = torch.ops.aten
_OTHER_INPUTS = re.compile(
    r"pixel|imag|visual|vision|audio|sound|speech|video|feat|input_values|bbox|points|patch", re.I
)
_TEXTS = re.compile(r"ids|mask|src|tgt|source|target|memory|text|token|pos|len|label|cache|past|state", re.I)
"""Arguments that a model of texts may need besides its first."""
_LEFT = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1, aten.baddbmm.default: 1}


class Stream(NamedTuple):
    """The ids that one embedding was asked for."""

    ids: Tensor  # B T, or T


class _Kept(NamedTuple):
    storage: StorageWeakRef  # held weakly, and so never given to another
    stream: Stream


class Streams:
    """Is shown every operator of a model that reads more than text."""

    def __init__(self, tables: set[int]) -> None:
        self._tables = tables
        self._kept: dict[int, _Kept] = {}
        self._first: Stream | None = None
        """Of the operator that ran last, the stream of its first argument that has one."""

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """An operator has run."""
        if func is aten.embedding.default and args[0].data_ptr() in self._tables:
            self._put(result, Stream(args[1].detach().clone()))
            return
        self._first = self._stream(func, args)
        results = result if isinstance(result, tuple | list) else (result,)
        for one in results:
            if isinstance(one, Tensor) and one.is_floating_point():
                self._pass(one)

    def of(self, tensor: Tensor | None) -> Stream | None:
        """The tokens of a tensor."""
        found = None if tensor is None else self._kept.get(key_of(tensor))
        return None if found is None else found.stream

    def told(self, caught: Caught | CaughtWeights) -> tuple[Stream | None, Stream | None]:
        """The tokens of queries and of keys."""
        if isinstance(caught, CaughtWeights):
            queries = self.of(caught.taken) or self.of(caught.weights)
        else:
            queries = self.of(caught.q)
        if caught.part:  # a fused layer, of whose input we made q and k again
            return self._first, self._first
        return queries, self.of(caught.v)

    def _stream(self, func: Any, args: tuple[Any, ...]) -> Stream | None:
        if func in _LEFT:
            left, right = args[_LEFT[func]], args[_LEFT[func] + 1]
            return self.of(right) if isinstance(left, nn.Parameter) else self.of(left)
        if func in (aten.cat.default, aten.stack.default):
            several = [self.of(x) for x in args[0] if isinstance(x, Tensor) and x.numel()]
            return several[0] if several and all(one is several[0] for one in several) else None
        if func is aten.copy_.default:
            return self.of(args[1]) if self.of(args[0]) is None else self.of(args[0])
        return next((one for x in args if isinstance(x, Tensor) and (one := self.of(x)) is not None), None)

    def _pass(self, result: Tensor) -> None:
        stream, known = self._first, self.of(result)
        if stream is None or known is stream:
            return
        T = stream.ids.shape[-1]
        if T in result.shape or stream.ids.numel() in result.shape:
            self._put(result, stream)

    def _put(self, tensor: Tensor, stream: Stream) -> None:
        self._kept = {key: one for key, one in self._kept.items() if not one.storage.expired()}
        self._kept[key_of(tensor)] = _Kept(StorageWeakRef(tensor.untyped_storage()), stream)


def reads_more_than_text(model: nn.Module) -> bool:
    """Whether a model takes pictures, sounds or features as well, by the names of its arguments and its layers."""
    words = inspect.signature(type(model).forward).parameters
    needed = [word for word, one in words.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if any(_OTHER_INPUTS.search(word) for word in words) or not all(_TEXTS.search(word) for word in needed[2:]):
        return True
    return any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in model.modules())
