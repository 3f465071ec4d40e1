"""The texts of a running model: which tokens the queries and keys of a call are, for encoder and decoder.

In models that read more than text, hidden states are traced back to the ids that they come from.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.aliases import key_of
from regard.capture.cache_tracking import Rows, Text
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.module_names import Place, given
from regard.capture.padding import PadIds
from regard.capture.query_positions import sees_last
from regard.capture.token_labels import Reading, Spelling, laid_out, token_tables
from regard.records import Kind, Step, following

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


class Seen(NamedTuple):
    """What one attention was about: how it goes on from the call before, its tokens, and which of these are text."""

    step: Step | None = None
    ids: np.ndarray | None = None
    queries: Rows | None = None
    keys: Rows | None = None
    written: Rows | None = None
    text: np.ndarray | None = None


class Sides:
    """The texts of a model that is running, one for each side."""

    def __init__(self, model: nn.Module, spelling: Spelling, pads: PadIds | None = None) -> None:
        self._reading = Reading(model)
        self.streams = Streams(token_tables(model)) if reads_more_than_text(model) else None
        """Where a model reads more than text: which hidden states descend from which ids."""
        self._pads = pads or PadIds(model, None)
        self._spelling = spelling
        self._texts: dict[str, Text] = {}
        """By kind; with "/other" for sequences that are no text."""
        self._moved: Tensor | None = None
        self._sources: tuple[int, ...] = ()
        """Of each sample that a decoder writes, the source; () where that is unknown."""
        self._written: Rows | None = None
        """What each query of the decoder's last call writes, of a text that was read whole."""

    @property
    def listeners(self) -> dict[Any, Callable[..., None]]:
        """The operators that tell what is read, and whose text goes on in whose place."""
        aten = torch.ops.aten
        return {aten.embedding.default: self._read, aten.index_select.default: self._move}

    def _read(self, table: Tensor, ids: Tensor, padding: int = -1, *more: Any) -> None:
        if self._reading.see(table, ids):
            self._pads.learn(padding)

    def _move(self, x: Tensor, axis: int, index: Tensor) -> None:
        """Samples of a cache were put in another order: B G S E."""
        if x.dim() == 4 and axis == 0:
            self._moved = index

    def told(self, place: Place, kind: Kind, caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> Seen:
        """An attention of B H T S was computed."""
        B, _, T, S = sizes
        streams = None if self.streams is None else self.streams.told(caught)
        if kind == "cross":
            return self._across(B, T, S) if streams is None else self._across_streams(B, T, S, *streams)
        key = kind if streams is None or streams[0] is not None else f"{kind}/other"
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = Text(place.name, self._spelling)
        if text.leader == place.name:
            keys = None if kind == "encoder" else _remembered(caught, B)
            moved = None if self._moved is None or len(self._moved) != B else tuple(self._moved.tolist())
            ids = self._ids(place, B, T) if streams is None else _ids_of(streams[0], B, T)
            text.advance(keys, B, T, S, ids, moved)
            if text.step is None and _is_midway(kind, caught, sizes):
                text.goes_on_after(S - T)
            self._find_padding(text)
            self._moved = None
            if kind != "encoder":
                self._follow_sources(text)
                self._written = self._next_tokens(text)
        if (text.B, text.T) != (B, T):  # not the text, but windows of it, or something shorter made of it
            return Seen()
        # A cache that is larger than the text keeps it at its beginning.
        keys_from = 0 if text.total < S else None
        written = None if kind == "encoder" else self._written
        read, remembered = text.tokens(T, text.total - T), text.tokens(S, keys_from)
        return Seen(text.step, text.ids, read, remembered, written, text.text)

    def _find_padding(self, text: Text) -> None:
        """By the ids of the leader's call; behind the end of a text that is being written, too."""
        if text.ids is None:
            text.text = None
        elif text.step is None or not text.step.parents:
            text.text, text.ended = self._pads.text(text.ids), np.zeros(text.B, bool)
        else:
            text.text, text.ended = self._pads.going_on(text.ids, text.ended[list(text.step.parents)])

    @property
    def guessed(self) -> bool:
        """Whether nothing told once which ids, of several tables, are tokens."""
        return self._reading.guessed

    def _ids(self, place: Place, B: int, T: int) -> np.ndarray | None:
        if not self._reading.has_seen_any:
            return self._reading.guess(given(), B, T)
        positions_first = getattr(place.module, "batch_first", None) is False
        return self._reading.take(B, T, positions_first=positions_first, by=place.name, given=given)

    def _across(self, B: int, T: int, S: int) -> Seen:
        """A decoder looks at what the encoder made of the source."""
        text = self._texts.get("decoder") or self._texts.get("self")
        if text is None or (text.B, text.T) != (B, T):
            return Seen(keys=self._source(B, S))
        return Seen(text.step, text.ids, text.tokens(T, text.total - T), self._source(B, S), self._written)

    def _next_tokens(self, text: Text) -> Rows | None:
        """Beside an encoder, the decoder is given its text whole, and each query writes the next token.

        The last one is known where the model was given labels. A single token is a step: the next call tells.
        """
        if "encoder" not in self._texts or text.T < 2:
            return None
        queries = text.tokens(text.T, text.total - text.T)
        return None if queries is None else following(queries, self._last_labels(text))

    def _last_labels(self, text: Text) -> list[str] | None:
        """What the last query of each sample is to write, where labels were given that its text was made from."""
        if text.ids is None:
            return None
        for name, tensor in given():
            if name == "labels" and tuple(tensor.shape) == text.ids.shape and not tensor.is_floating_point():
                labels = tensor.cpu().numpy()
                before = labels[:, :-1]
                if ((before == text.ids[:, 1:]) | (before < 0)).all():  # what is left out of a loss is negative
                    last = self._spelling.tokens(np.maximum(labels[:, -1], 0).tolist())
                    return [word if label >= 0 else "" for word, label in zip(last, labels[:, -1], strict=True)]
        return None

    def _across_streams(self, B: int, T: int, S: int, queries: Stream | None, keys: Stream | None) -> Seen:
        """The same where a picture may look at a text, or a text at a picture."""
        seen = self._across(B, T, S)
        if queries is None:
            seen = Seen()
        elif seen.queries is None:
            ids = _ids_of(queries, B, T)
            seen = seen._replace(ids=ids, queries=self._spelt(ids))
        if keys is None:
            return seen._replace(keys=None)
        return seen if seen.keys is not None else seen._replace(keys=self._spelt(_ids_of(keys, B, S)))

    def _spelt(self, ids: np.ndarray | None) -> Rows | None:
        words = None if ids is None else self._spelling.words(ids.tolist())
        return None if words is None else tuple(map(tuple, words))

    def _follow_sources(self, text: Text) -> None:
        """Whose source each sample has now: that of the sample whose text it continues."""
        source = self._texts.get("encoder")
        if text.step is not None and text.step.parents:
            self._sources = tuple(self._sources[parent] for parent in text.step.parents) if self._sources else ()
        elif source is not None and source.B and text.B % source.B == 0:
            # Beams begin beside each other, and all of them look at the same source.
            self._sources = tuple(row // (text.B // source.B) for row in range(text.B))
        else:
            self._sources = ()

    def _source(self, B: int, S: int) -> Rows | None:
        source = self._texts.get("encoder")
        if source is None or source.total != S or len(self._sources) != B or max(self._sources) >= source.B:
            return None
        rows = source.tokens(S)
        return rows if rows is None else tuple(rows[at] for at in self._sources)


def _ids_of(stream: Stream | None, B: int, T: int) -> np.ndarray | None:
    """The ids of a sequence of B T; None where it is no text, or only a part of one."""
    found = None if stream is None else laid_out(stream.ids, B, T)
    return None if found is None else found.cpu().numpy()


def _remembered(caught: Caught | CaughtWeights, B: int) -> Tensor | None:
    """What a cache holds of each key, B G S E: the key, or its value where the model made its own softmax."""
    if isinstance(caught, Caught):
        return caught.k
    v = caught.v if caught.v is None or caught.v.dim() > 2 else caught.v[None]
    return v.flatten(0, -3).unflatten(0, (B, -1)) if v is not None and v.shape[:-2].numel() % B == 0 else None


def _is_midway(kind: Kind, caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> bool:
    """Whether there are keys before the first query's own; a cache that has room to spare has it at the end."""
    B, H, T, S = sizes
    if T >= S or not (kind == "decoder" or (kind == "self" and T == 1)):
        return False
    if isinstance(caught, CaughtWeights):
        return bool(caught.weights[..., -1, -1].any())
    if caught.bias is not None and not sees_last(caught.bias):
        return False
    if caught.mask is None:
        return True
    seen = caught.mask.bind((B, H), T, S, caught.q).block(slice(T - 1, T), slice(S - 1, S))
    return seen if isinstance(seen, bool) else bool(seen.any())
