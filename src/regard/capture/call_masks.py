"""The masks of a watched call: additive masks recognised as rules, and which queries and keys are padding.

An additive mask, a number per query and key, becomes causal, a window, padding. A mask shows which keys are padding. In
self-attention each query is at a key; the queries of cross-attention are those of the decoder's self-attention before
it. Ids are needed if a model masks nothing, as most do after the end of a causal text. Steps of a generated text
continue from what was known of its start.
"""

import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.capture.layouts import by_heads
from regard.capture.model_facts import ModelFacts
from regard.capture.operators import CapturedCall, CapturedWeights, is_plain_causal
from regard.kernels.division import row_blocks
from regard.masks import Mask
from regard.masks.padding import Padding, combine_known, padding_of, queries_at
from regard.masks.rules import Band
from regard.records import DecodeStep, Kind
from regard.text import Tokenizer

BLOCK_SIZE = 2**18
"""The number of mask elements that are read together."""


class MaskRecognizer:
    """Converts additive masks to rules. A mask that several layers share is read once.

    `keep`: the mask will be kept, so an additive mask that is only a mask, but no known rule, becomes booleans, which
    take a quarter of the memory.
    """

    def __init__(self, keep: bool = False) -> None:
        self._keep = keep
        self._last: tuple[weakref.ref[Tensor], int, Mask | None] | None = None

    def with_mask(self, captured: CapturedCall) -> CapturedCall:
        """The same with `bias` as a mask, if it is only a mask; else with a bias without broadcast axes."""
        if captured.bias is None:
            return captured
        mask = self._mask(captured.bias, captured.q.shape[2], captured.k.shape[2])
        if mask is None:
            return captured._replace(bias=narrowed(captured.bias))
        if mask is ALL:
            return captured._replace(bias=None)
        return captured._replace(bias=None, mask=mask if captured.mask is None else captured.mask & mask)

    def _mask(self, added: Tensor, T: int, S: int) -> Mask | None:
        version = None if added.is_inference() else added._version  # changes of inference tensors are not counted
        if self._last is not None and self._last[0]() is added and self._last[1] == version:
            return self._last[2]
        mask = recognised(added, T, S)
        if mask is None and added.dtype == torch.bool:
            mask = Mask.of(narrowed(added))
        elif mask is None and self._keep and _visibility_of(narrowed(added)) is not None:
            mask = Mask.of(narrowed(added) == 0)
        self._last = None if version is None else (weakref.ref(added), version, mask)
        return mask


ALL = Mask(Band(None, None), "everything")
"""A mask in which all keys are visible."""


def recognised(added: Tensor, T: int, S: int) -> Mask | None:
    """The Mask equal to `added`, which broadcasts to B H T S; None if it is not kept keys within a band.

    0 or True is visible; -inf, the lowest number of the dtype, or False is masked.

    >>> recognised(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])[None, None], 2, 2)
    Mask.causal()
    """
    added = narrowed(added)
    if not T or not S or added.shape[-1] not in (1, S) or added.shape[-2] not in (1, T):
        return None
    visible = _visibility_of(added.expand(-1, -1, -1, S))
    if visible is None or not visible.same_in_heads:
        return None
    keep = None if bool(visible.keep.all()) else Mask.from_keep(visible.keep[:, 0])
    if visible.count.shape[-1] == 1 or torch.equal(visible.within(None, None, visible.keep), visible.count):
        return ALL if keep is None else keep
    for ends in visible.ends(T):
        if torch.equal(visible.within(*ends, torch.ones_like(visible.keep)), visible.count):
            return _band(*ends, S - T)
        if keep is not None and torch.equal(visible.within(*ends, visible.keep), visible.count):
            return _band(*ends, S - T) & keep
    return None


def narrowed(added: Tensor) -> Tensor:
    """The same without broadcast axes: (1 or B) (1 or H) (1 or T) (1 or S)."""
    added = added[(None,) * (4 - added.dim())] if added.dim() < 4 else added
    for axis in range(added.dim()):
        if added.stride(axis) == 0 and added.shape[axis] > 1:
            added = added.narrow(axis, 0, 1)
    return added


@dataclass(frozen=True, slots=True)
class RowVisibility:
    """What the rows of a mask see: number of keys, first and last key, B H T; the keys that any row sees, B H S."""

    count: Tensor
    first: Tensor
    last: Tensor
    keep: Tensor

    @property
    def same_in_heads(self) -> bool:
        return all(bool((x == x[:, :1]).all()) for x in (self.count, self.first, self.last, self.keep))

    def ends(self, T: int) -> list[tuple[int | None, int | None]]:
        """How far to the left and right of key i the rows of query i see: None is unbounded.

        No row sees beyond these ends, by construction; comparing counts is then enough to show that it sees no less.
        """
        sees_any = self.count > 0
        here = torch.arange(T, device=self.count.device)
        left, right = (int(x[sees_any].max()) for x in (here - self.first, self.last - here))
        return [(None, right), (left, right), (left, None)]

    def within(self, left: int | None, right: int | None, keep: Tensor) -> Tensor:
        """The number of kept keys between these ends, for each row."""
        T, S = self.count.shape[-1], keep.shape[-1]
        here = torch.arange(T, device=keep.device)
        low = torch.zeros_like(here) if left is None else (here - left).clamp(0, S)
        high = torch.full_like(here, S) if right is None else (here + right + 1).clamp(0, S)
        counted = torch.nn.functional.pad(keep.cumsum(-1), (1, 0))  # B H S+1
        return (counted[..., high] - counted[..., low]).clamp(min=0)


def _band(left: int | None, right: int | None, offset: int) -> Mask:
    """A band counted from the first key, as one counted from the last where that is possible."""
    if left is None and right == offset:
        return Mask.causal()
    ends = (None if left is None else left + offset, None if right is None else right - offset)
    if all(end is None or end >= 0 for end in ends):
        return Mask.window(*ends)
    return Mask(Band(left, right, from_first=True), "band")


def _visibility_of(added: Tensor) -> RowVisibility | None:
    """What the rows see; None if the numbers are more than a mask."""
    B, H, T, S = added.shape
    lowest = None if added.dtype == torch.bool else torch.finfo(added.dtype).min
    keys = torch.arange(1, S + 1, dtype=torch.int32, device=added.device)
    keep = torch.zeros((B, H, S), dtype=torch.bool, device=added.device)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for rows in row_blocks(0, T, max(1, BLOCK_SIZE // max(1, B * H * S))):
        block = added[:, :, rows]
        allowed = block if lowest is None else block == 0
        count = allowed.sum(-1, dtype=torch.int32)
        if lowest is not None:
            hidden = (block <= lowest).sum(-1, dtype=torch.int32)
            if not bool((count + hidden == S).all()):
                return None
            # A row that holds only the lowest number has equal scores, and sees everything.
            if bool((count == 0).any()) and bool((block.amax(-1) == lowest).any()):
                return None
        keep |= allowed.view(torch.uint8).amax(-2).bool()  # forty times as fast as `any`
        last = (allowed * keys).amax(-1) - 1
        first = S - (allowed * keys.flip(0)).amax(-1)
        found.append((count, first, last))
    count, first, last = (torch.cat(parts, dim=-1) for parts in zip(*found, strict=True))
    return RowVisibility(count=count, first=first, last=last, keep=keep)


FourSizes = tuple[int, int, int, int]


class PadIds:
    """The ids of padding: those of the tokenizer, of the config and of `nn.Embedding(padding_idx=…)`."""

    def __init__(self, model: nn.Module, tokenizer: Any, facts: ModelFacts | None = None) -> None:
        configs = _configs(model, facts or ModelFacts({}))
        self._pads = _ids_of_tokenizer(tokenizer, "pad_token_id", "pad")
        self._ends = _ids_of_tokenizer(tokenizer, "eos_token_id", "eos")
        for config in configs:
            self._pads |= _ids_in(config, "pad_token_id")
            self._ends |= _ids_in(config, "eos_token_id")

    def learn(self, pad: int) -> None:
        """Add the padding id of an embedding."""
        if pad >= 0:
            self._pads.add(pad)

    def is_text(self, ids: np.ndarray) -> np.ndarray | None:
        """Which of the first ids of texts, B T, are not padding; None if all are not.

        After a text, an id that also ends texts is ambiguous. Before it, an id that all samples start with is the
        decoder's start token.

        >>> pads = PadIds(nn.Embedding(9, 2, padding_idx=0), None)
        >>> pads.learn(0)
        >>> pads.is_text(np.array([[0, 5, 0, 0], [0, 0, 6, 7]])).astype(int).tolist()
        [[1, 1, 0, 0], [1, 0, 1, 1]]
        """
        if not self._pads or not ids.size:
            return None
        padded = np.isin(ids, list(self._pads))
        if not padded[:, [0, -1]].any():
            return None
        after = np.isin(ids, list(self._pads - self._ends))
        after = np.logical_and.accumulate(after[:, ::-1], 1)[:, ::-1]
        before = np.logical_and.accumulate(padded, 1)
        start = before & before.all(0)
        start[:, 0] |= before.all(1)  # a text has at least one token
        padded = ((before & ~before.all(1, keepdims=True)) | after) & ~start
        return None if not padded.any() else ~padded

    def continue_text(self, ids: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """The same for ids that continue texts, and which of the B texts have ended after them.

        Padding is only possible after the end of a text: before it, a model may generate any token.
        """
        # Called at every step with a few ids: a set takes a hundredth of the time of `np.isin`.
        if not ended.any() and self._ends.isdisjoint(ids.ravel().tolist()):
            return None, ended
        is_text = np.ones(ids.shape, bool)
        for at, column in enumerate(ids.T):
            padded = ended & np.isin(column, list(self._pads))
            ended = padded | np.isin(column, list(self._ends))
            is_text[:, at] = ~padded
        return None if is_text.all() else is_text, ended


class _LastCall(NamedTuple):
    """The sizes and the padding of the last call of one side."""

    sizes: FourSizes
    padding: Padding


class PaddingTracker:
    """The padding on each side of a running model."""

    def __init__(self) -> None:
        self._last: dict[Kind, _LastCall] = {}

    def of_call(
        self,
        kind: Kind,
        captured: CapturedCall | CapturedWeights,
        sizes: FourSizes,
        module: nn.Module,
        step: DecodeStep | None = None,
        is_text: np.ndarray | None = None,
        offset: int | None = None,
    ) -> Padding | None:
        """The padding of an attention of B H T S; None if there is none.

        step     how the call continues the one before
        is_text  B T, which tokens are not padding, by their ids
        offset   the key at the position of query 0; None if the last query is at the last key, as in `CallTokens`
        """
        B, _, T, S = sizes
        if not (B and T and S):
            return None
        found = padding_by_mask(captured, sizes, module, across=kind == "cross")
        if kind == "cross":
            return self._cross(found, sizes)
        if found is not None and found.keys is not None and offset is not None:
            found = found._replace(queries=queries_at(found.keys, T, offset))
        if step is not None and step.start:
            found = self._continued(kind, found, sizes, step)
        if is_text is not None:
            found = _with_ids(found, is_text, sizes, captured)
        if kind != "encoder":
            self._last[kind] = _LastCall(sizes, found or Padding())
        return found

    def _cross(self, found: Padding | None, sizes: FourSizes) -> Padding | None:
        """Cross-attention: the queries are those of the decoder's self-attention before it."""
        last = self._last.get("decoder") or self._last.get("self")
        queries = None
        if last is not None and (last.sizes[0], last.sizes[2]) == (sizes[0], sizes[2]):
            queries = last.padding.queries
        keys = None if found is None else found.keys
        return None if queries is None and keys is None else Padding(queries, keys)

    def _continued(self, kind: Kind, found: Padding | None, sizes: FourSizes, step: DecodeStep) -> Padding | None:
        """A key that was not padding stays so, even if a window masks it in this step."""
        _, _, T, S = sizes
        last, drops_keys = self._last.get(kind), step.start + T > S
        if found is None or found.keys is None or last is None or not step.parents or drops_keys:
            return found
        before = last.padding.keys
        if before is None:
            before = found.keys.new_ones(last.sizes[0], min(last.sizes[3], step.start))
        before = before.to(found.keys.device)[list(step.parents), : step.start]
        keys = found.keys.clone()
        keys[:, : before.shape[1]] |= before
        return None if keys.is_cpu and bool(keys.all()) else Padding(queries_at(keys, T, step.start), keys)


def padding_by_mask(
    captured: CapturedCall | CapturedWeights, sizes: FourSizes, module: nn.Module, across: bool
) -> Padding | None:
    """The padding by the mask of a call, or by the scores of a model's own softmax."""
    B, H, T, S = sizes
    if isinstance(captured, CapturedCall):
        if (captured.mask is None and captured.bias is None) or is_plain_causal(captured):
            return None
        bound = None if captured.mask is None else captured.mask.bind((B, H), T, S, captured.q)
        return padding_of(bound, captured.bias, sizes, across)
    if captured.visible is None or captured.visible.shape != (*captured.weights.shape[:-2], S):
        return None
    heads = by_heads(captured.visible[..., None, :], module)[:, :, 0]  # B H S
    keys = heads.any(1) | (heads != heads[:, :1]).any()  # what heads choose, such as top keys, is not padding
    keys = keys | ~keys.any(1, keepdim=True)  # all scores are low: padding is unknown
    if keys.is_cpu and bool(keys.all()):
        return None
    return Padding(None if across or T > S else queries_at(keys, T, S - T), keys)


def _with_ids(
    found: Padding | None, is_text: np.ndarray, sizes: FourSizes, captured: CapturedCall | CapturedWeights
) -> Padding:
    """Combine the padding by ids with that by the mask."""
    device = (captured.q if isinstance(captured, CapturedCall) else captured.weights).device
    queries = torch.from_numpy(is_text).to(device)
    keys = queries if sizes[2] == sizes[3] else None
    found = found or Padding()
    return Padding(combine_known(found.queries, queries), combine_known(found.keys, keys))


def _configs(model: nn.Module, facts: ModelFacts) -> list[Any]:
    """The config of a model, and those inside it: of its text model, its encoder, its decoder."""
    whole = getattr(model, "config", None)
    parts = facts.once("parts of the config", lambda: [name for name in _PARTS if getattr(whole, name, None)])
    return [config for config in (whole, *(getattr(whole, name, None) for name in parts)) if config is not None]


_PARTS = ("text_config", "encoder", "decoder", "generator")


def _ids_of_tokenizer(tokenizer: Any, *names: str) -> set[int]:
    """The ids that a tokenizer has under one of these names."""
    if tokenizer is None:
        return set()
    inner = getattr(tokenizer, "tokenizer", tokenizer)  # a processor's
    return set[int]().union(*(_ids_in(inner, name) for name in names[-1 if isinstance(tokenizer, Tokenizer) else 0 :]))


def _ids_in(owner: Any, name: str) -> set[int]:
    """The ids that an object has under a name; some have several."""
    fields = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})  # a config looks longer for others
    value = fields[name] if name in fields else getattr(owner, name, None)
    several = value if isinstance(value, list | tuple) else [value]
    return {one for one in several if isinstance(one, int) and not isinstance(one, bool)}
