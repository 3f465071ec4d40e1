"""The texts of a running model: which tokens are the queries and keys of a call, for encoder and decoder.

In models that read more than text, hidden states are traced back to the ids that they come from.
"""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.aliases import key_of
from regard.capture.attention_kinds import sees_last
from regard.capture.call_masks import PadIds
from regard.capture.model_facts import attribute_of
from regard.capture.module_names import ModuleNames, Place, is_attention, running_arguments
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.token_labels import GuardedTokenizer, Text, TokenIds, TokenRows, as_batch, token_tables
from regard.records import DecodeStep, Kind, next_tokens

aten = torch.ops.aten
_OTHER_INPUTS = re.compile(
    r"pixel|imag|visual|vision|audio|sound|speech|video|feat|input_values|bbox|points|patch", re.I
)
_TEXTS = re.compile(r"ids|mask|src|tgt|source|target|memory|text|token|pos|len|label|cache|past|state", re.I)
"""Required arguments, after the first two, that a text model may have."""
_LEFT = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1, aten.baddbmm.default: 1}


class Stream(NamedTuple):
    """The ids that one embedding looked up."""

    ids: Tensor  # B T, or T
    was_used: bool = False


class _Entry(NamedTuple):
    storage: StorageWeakRef  # a weak reference, so that the key is not reused
    stream: Stream


class Streams:
    """Follows every operator of a model that reads more than text."""

    def __init__(self, tables: set[int]) -> None:
        self._tables = tables
        self._entries: dict[int, _Entry] = {}
        self._first: Stream | None = None
        """The stream of the last operator's first argument that has one."""

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """Follow one operator."""
        if func is aten.embedding.default and args[0].data_ptr() in self._tables:
            self._put(result, Stream(args[1].detach().clone()))
            return
        self._first = self._stream(func, args)
        results = result if isinstance(result, tuple | list) else (result,)
        for one in results:
            if isinstance(one, Tensor) and one.is_floating_point():
                self._pass(one)

    def of(self, tensor: Tensor | None) -> Stream | None:
        """The stream that a tensor comes from."""
        found = None if tensor is None else self._entries.get(key_of(tensor))
        return None if found is None else found.stream

    def of_call(self, captured: CapturedCall | CapturedWeights) -> tuple[Stream | None, Stream | None]:
        """The streams of the queries and of the keys."""
        if isinstance(captured, CapturedWeights):
            queries = self.of(captured.factor) or self.of(captured.weights)
        else:
            queries = self.of(captured.q)
        if captured.submodule:  # a fused layer: q and k were recomputed from its input
            return self._first, self._first
        return queries, self.of(captured.v)

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
        self._entries = {key: one for key, one in self._entries.items() if not one.storage.expired()}
        self._entries[key_of(tensor)] = _Entry(StorageWeakRef(tensor.untyped_storage()), stream)


def _is_inside(name: str, stack: str) -> bool:
    return not stack or name == stack or name.startswith(f"{stack}.")


def _outwards(name: str) -> list[str]:
    """The modules around `name`, innermost first, down to the model."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)] if name else []


def text_stacks(names: ModuleNames, tables: set[int]) -> tuple[str, ...] | None:
    """The stacks of layers that read token ids, by their names; None where a stack may read text and images.

    A stack is the smallest module that contains a table of token embeddings and attention. No part of it may be a
    convolution, which reads images or sound, and every other attention must be in a tower that has one.
    """
    attention, convolutions, embeddings = [], [], []
    for name, module in names.places:
        if is_attention(Place(name, module)):
            attention.append(name)
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            convolutions.append(name)
        if isinstance(module, nn.Embedding) or "embedding" in type(module).__name__.lower():
            own = module._parameters.values()
            if any(weight is not None and weight.data_ptr() in tables for weight in own):
                embeddings.append(name)

    def has(stack: str, several: list[str]) -> bool:
        return any(_is_inside(name, stack) for name in several)

    if not embeddings:
        return ()
    stacks = {next((outer for outer in _outwards(name) if has(outer, attention)), "") for name in embeddings}
    if "" in stacks or any(has(stack, convolutions) for stack in stacks):
        return None
    for name in attention:
        if not any(_is_inside(name, stack) for stack in stacks):
            around = [outer for outer in (*reversed(_outwards(name)), name) if not has(outer, embeddings)]
            if not around or not has(around[0], convolutions):
                return None
    return tuple(stacks)


class StackIds:
    """The ids that each of the `text_stacks` reads: for models whose other stacks read images or sound."""

    def __init__(self, stacks: tuple[str, ...], names: ModuleNames) -> None:
        self._stacks = stacks
        self._of_table: dict[int, str] = {}
        for name, module in names.places if stacks else ():
            stack = next((one for one in stacks if _is_inside(name, one)), None)
            if stack is not None:
                own = (weight for weight in module._parameters.values() if weight is not None)
                self._of_table |= {weight.data_ptr(): stack for weight in own}
        self._latest: dict[str, Stream] = {}
        self._leaders: dict[str, str] = {}
        """The module that used the latest ids of a stack first: it computes once for each ids."""

    def add(self, table: Tensor, ids: Tensor) -> None:
        """Note the ids that were looked up in a table."""
        stack = self._of_table.get(table.data_ptr())
        if stack is not None:
            self._latest[stack] = Stream(ids.detach().clone())
            self._leaders.pop(stack, None)

    def stack_of(self, name: str) -> str | None:
        """The stack that a module is in."""
        return next((stack for stack in self._stacks if _is_inside(name, stack)), None)

    def of_call(self, name: str) -> Stream | None:
        """The ids that a module computes; None outside of the stacks, or where embeddings were given."""
        stack = self.stack_of(name)
        if stack is None or stack not in self._latest:
            return None
        if self._leaders.setdefault(stack, name) == name and self._latest[stack].was_used:
            del self._latest[stack]
            return None
        self._latest[stack] = self._latest[stack]._replace(was_used=True)
        return self._latest[stack]


def reads_more_than_text(model: nn.Module, modules: Iterable[nn.Module] | None = None) -> bool:
    """Whether a model also takes images, audio or features, by the names of its arguments and its layers."""
    forward = getattr(type(model), "forward", None)  # the class of a TorchScript module has none
    if forward is not None and _has_other_arguments(forward):
        return True
    several = model.modules() if modules is None else modules
    return any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in several)


@lru_cache(maxsize=2**8)
def _has_other_arguments(forward: Any) -> bool:
    parameters = inspect.signature(forward).parameters
    needed = [
        name for name, one in parameters.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    return any(_OTHER_INPUTS.search(name) for name in parameters) or not all(_TEXTS.search(name) for name in needed[2:])


class CallTokens(NamedTuple):
    """The tokens of one attention: its step in the text, its ids and tokens, and which of them are not padding.

    offset   the key at the position of query 0, where keys follow that are no text; None if the last query is at the
             last key
    """

    step: DecodeStep | None = None
    ids: np.ndarray | None = None
    query_tokens: TokenRows | None = None
    key_tokens: TokenRows | None = None
    written: TokenRows | None = None
    is_text: np.ndarray | None = None
    offset: int | None = None


class TextTracker:
    """The texts of a running model, one for each side."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: GuardedTokenizer,
        pads: PadIds | None = None,
        names: ModuleNames | None = None,
    ) -> None:
        names = names or ModuleNames(model)
        tables = token_tables(model, names.all, names.facts)
        self._token_ids = TokenIds(model, tables)
        reads_more = names.facts.once("reads more", lambda: reads_more_than_text(model, names.all))
        stacks = names.facts.once("text stacks", lambda: text_stacks(names, tables)) if reads_more else None
        self._stack_ids = None if stacks is None else StackIds(stacks, names)
        """For models that read more than text, in stacks of their own."""
        self.streams = Streams(tables) if tables and reads_more and stacks is None else None
        """For models with a stack that may read text and images: the ids that each hidden state comes from."""
        self._pads = pads or PadIds(model, None)
        self._tokenizer = tokenizer
        self._texts: dict[str, Text] = {}
        """By kind; with "/other" for sequences that are not text."""
        self.forwards = 0
        """The number of calls of leaders: between two of them the model runs once."""
        self._reordered: Tensor | None = None
        self._sources: tuple[int, ...] = ()
        """The source of each sample that a decoder generates; () if unknown."""
        self._written: TokenRows | None = None
        """The next token of each query of the decoder's last call, for a text that was read whole."""

    @property
    def listeners(self) -> dict[Any, Callable[..., None]]:
        """The operators that show which ids are read and how a cache is reordered, each with its listener."""
        aten = torch.ops.aten
        return {aten.embedding.default: self._read, aten.index_select.default: self._reorder}

    def _read(self, table: Tensor, ids: Tensor, padding: int = -1, *more: Any) -> None:
        if self._token_ids.add(table, ids):
            self._pads.learn(padding)
            if self._stack_ids is not None:
                self._stack_ids.add(table, ids)

    def _reorder(self, x: Tensor, axis: int, index: Tensor) -> None:
        """Note that the samples of a cache, B G S E, were reordered."""
        if x.dim() == 4 and axis == 0:
            self._reordered = index

    def of_call(
        self, place: Place, kind: Kind, captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]
    ) -> CallTokens:
        """The tokens of an attention of B H T S."""
        B, _, T, S = sizes
        streams = self._streams_of(place, captured, B, T)
        if kind == "cross":
            return self._cross(B, T, S) if streams is None else self._cross_streams(B, T, S, *streams)
        key = kind if streams is None or streams[0] is not None else f"{kind}/other"
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = Text(place.name, self._tokenizer)
        if text.leader == place.name:
            self.forwards += 1
            keys = None if kind == "encoder" else _cached(captured, B)
            order = self._reordered
            reordered = None if order is None or len(order) != B else tuple(order.tolist())
            ids = self._ids(place, B, T) if streams is None else _ids_of(streams[0], B, T)
            text.advance(keys, B, T, S, ids, reordered)
            if text.step is None and _continues_unobserved(kind, captured, sizes):
                text.continues_after(S - T)
            self._find_padding(text)
            self._reordered = None
            if kind != "encoder":
                self._follow_sources(text)
                self._written = self._next_tokens(text)
        if (text.B, text.T) != (B, T):  # windows of the text, or a shorter sequence computed from it
            return CallTokens()
        # A cache that is larger than the text holds it at its start; so do keys with summaries of the text behind them.
        start = text.total - T
        keys_from, offset = (0, start) if text.total < S else (None, None)
        written = None if kind == "encoder" else self._written
        read, cached = text.tokens(T, start), text.tokens(S, keys_from)
        return CallTokens(text.step, text.ids, read, cached, written, text.is_text, offset)

    def _streams_of(
        self, place: Place, captured: CapturedCall | CapturedWeights, B: int, T: int
    ) -> tuple[Stream | None, Stream | None] | None:
        """The streams of queries and keys; None for a model that reads only text."""
        if self.streams is not None:
            return self.streams.of_call(captured)
        if self._stack_ids is None:
            return None
        queries = self._stack_ids.of_call(place.name)
        if not self._token_ids.has_seen_any and self._stack_ids.stack_of(place.name) is not None:
            ids = self._token_ids.guess(running_arguments(), B, T)
            queries = None if ids is None else Stream(torch.from_numpy(ids))
        return queries, queries if "encoder" in self._texts else None

    def has_leader(self, kind: Kind, besides: str) -> bool:
        """Whether the text of this kind is read from another module; never where text and images share a stack."""
        text = self._texts.get(kind)
        if self._stack_ids is not None and self._stack_ids.stack_of(besides) is None:
            return False
        return self.streams is None and text is not None and text.leader != besides

    def _find_padding(self, text: Text) -> None:
        """Find padding by the ids of the leader's call, also after the end of a generated text."""
        parents = [] if text.step is None else list(text.step.parents)
        ended = text.ended[parents] if parents else np.zeros(text.B, bool)
        if text.ids is None:  # unknown for this call, but later ones may have ids
            text.is_text, text.ended = None, ended
        elif not parents:
            text.is_text, text.ended = self._pads.is_text(text.ids), ended
        else:
            text.is_text, text.ended = self._pads.continue_text(text.ids, ended)

    @property
    def guessed(self) -> bool:
        """Whether the token ids were once ambiguous among several tables."""
        return self._token_ids.guessed

    def _ids(self, place: Place, B: int, T: int) -> np.ndarray | None:
        if not self._token_ids.has_seen_any:
            return self._token_ids.guess(running_arguments(), B, T)
        positions_first = attribute_of(place.module, "batch_first") is False
        return self._token_ids.take(B, T, positions_first=positions_first, by=place.name, given=running_arguments)

    def _cross(self, B: int, T: int, S: int) -> CallTokens:
        """Cross-attention: the keys are the tokens of the encoder's source."""
        text = self._texts.get("decoder") or self._texts.get("self")
        if text is None or (text.B, text.T) != (B, T):
            return CallTokens(key_tokens=self._source(B, S))
        return CallTokens(text.step, text.ids, text.tokens(T, text.total - T), self._source(B, S), self._written)

    def _next_tokens(self, text: Text) -> TokenRows | None:
        """The next tokens of a decoder that reads a whole text beside an encoder.

        The last one is known if the model was given labels. A single token is a decoding step: the next call shows it.
        """
        if "encoder" not in self._texts or text.T < 2:
            return None
        queries = text.tokens(text.T, text.total - text.T)
        return None if queries is None else next_tokens(queries, self._last_labels(text))

    def _last_labels(self, text: Text) -> list[str] | None:
        """The token that follows the last query of each sample, if the given labels match the text."""
        if text.ids is None:
            return None
        for name, tensor in running_arguments():
            if name == "labels" and tuple(tensor.shape) == text.ids.shape and not tensor.is_floating_point():
                labels = tensor.cpu().numpy()
                before = labels[:, :-1]
                if ((before == text.ids[:, 1:]) | (before < 0)).all():  # positions that a loss ignores are negative
                    last = self._tokenizer.tokens(np.maximum(labels[:, -1], 0).tolist())
                    return [token if label >= 0 else "" for token, label in zip(last, labels[:, -1], strict=True)]
        return None

    def _cross_streams(self, B: int, T: int, S: int, queries: Stream | None, keys: Stream | None) -> CallTokens:
        """Cross-attention between images and text, in either direction."""
        tokens = self._cross(B, T, S)
        if queries is None:
            tokens = CallTokens()
        elif tokens.query_tokens is None:
            ids = _ids_of(queries, B, T)
            tokens = tokens._replace(ids=ids, query_tokens=self._tokens_of(ids))
        if keys is None:
            return tokens._replace(key_tokens=None)
        if tokens.key_tokens is not None:
            return tokens
        return tokens._replace(key_tokens=self._tokens_of(_ids_of(keys, B, S)))

    def _tokens_of(self, ids: np.ndarray | None) -> TokenRows | None:
        rows = None if ids is None else self._tokenizer.tokens_of_rows(ids.tolist())
        return None if rows is None else tuple(map(tuple, rows))

    def _follow_sources(self, text: Text) -> None:
        """Update the source of each sample: that of the sample whose text it continues."""
        source = self._texts.get("encoder")
        if text.step is not None and text.step.parents:
            self._sources = tuple(self._sources[parent] for parent in text.step.parents) if self._sources else ()
        elif source is not None and source.B and text.B % source.B == 0:
            # The beams of one sample are adjacent at the start and share its source.
            self._sources = tuple(row // (text.B // source.B) for row in range(text.B))
        else:
            self._sources = ()

    def _source(self, B: int, S: int) -> TokenRows | None:
        source = self._texts.get("encoder")
        if source is None or source.total != S or len(self._sources) != B or max(self._sources) >= source.B:
            return None
        rows = source.tokens(S)
        return rows if rows is None else tuple(rows[at] for at in self._sources)


def _ids_of(stream: Stream | None, B: int, T: int) -> np.ndarray | None:
    """The ids of a sequence of B T; None if it is not text, or only part of one."""
    found = None if stream is None else as_batch(stream.ids, B, T)
    return None if found is None else found.cpu().numpy()


def _cached(captured: CapturedCall | CapturedWeights, B: int) -> Tensor | None:
    """What a cache holds of each key, B G S E: the key, or its value if the model computed its own softmax."""
    if isinstance(captured, CapturedCall):
        return captured.k
    v = captured.v if captured.v is None or captured.v.dim() > 2 else captured.v[None]
    return v.flatten(0, -3).unflatten(0, (B, -1)) if v is not None and v.shape[:-2].numel() % B == 0 else None


def _continues_unobserved(
    kind: Kind, captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]
) -> bool:
    """Whether keys precede those of the first query. Unused space of a cache is at the end, and does not count."""
    B, H, T, S = sizes
    if T >= S or not (kind == "decoder" or (kind == "self" and T == 1)):
        return False
    if isinstance(captured, CapturedWeights):
        return bool(captured.weights[..., -1, -1].any())
    if captured.bias is not None and not sees_last(captured.bias):
        return False
    if captured.mask is None:
        return True
    visible = captured.mask.bind((B, H), T, S, captured.q).block(slice(T - 1, T), slice(S - 1, S))
    return visible if isinstance(visible, bool) else bool(visible.any())
