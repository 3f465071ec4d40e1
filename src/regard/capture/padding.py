"""Which queries and keys of a watched attention are padding: from its mask, earlier decoding steps, and token ids.

A mask shows which keys are padding. In self-attention each query is at a key; the queries of cross-attention are those
of the decoder's self-attention before it. Ids are needed if a model masks nothing, as most do after the end of a causal
text. Steps of a generated text continue from what was known of its start.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from regard.capture.captured import CapturedCall, CapturedWeights
from regard.capture.layouts import by_heads
from regard.capture.operators import is_plain_causal
from regard.masks.padding import combine_known, padding_of, queries_at
from regard.padding import Padding
from regard.records import DecodeStep, Kind
from regard.text import Tokenizer

FourSizes = tuple[int, int, int, int]


class PadIds:
    """The ids of padding: those of the tokenizer, of the config and of `nn.Embedding(padding_idx=…)`."""

    def __init__(self, model: nn.Module, tokenizer: Any) -> None:
        configs = _configs(model)
        self._pads = _numbers(tokenizer, "pad_token_id", "pad") | {
            pad for config in configs for pad in _numbers(config, "pad_token_id")
        }
        self._ends = _numbers(tokenizer, "eos_token_id", "eos") | {
            end for config in configs for end in _numbers(config, "eos_token_id")
        }

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
    ) -> Padding | None:
        """The padding of an attention of B H T S; None if there is none.

        step     how the call continues the one before
        is_text  B T, which tokens are not padding, by their ids
        """
        B, _, T, S = sizes
        if not (B and T and S):
            return None
        found = padding_by_mask(captured, sizes, module, across=kind == "cross")
        if kind == "cross":
            return self._cross(found, sizes)
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
            before = torch.ones(last.sizes[0], min(last.sizes[3], step.start), dtype=torch.bool)
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


def _configs(model: nn.Module) -> list[Any]:
    """The config of a model, and those inside it: of its text model, its encoder, its decoder."""
    whole = getattr(model, "config", None)
    parts = [getattr(whole, name, None) for name in ("text_config", "encoder", "decoder", "generator")]
    return [config for config in (whole, *parts) if config is not None]


def _numbers(owner: Any, *names: str) -> set[int]:
    """The ids that a tokenizer or a config has under one of these names; some have several."""
    if isinstance(owner, Tokenizer):
        names = names[-1:]
    inner = getattr(owner, "tokenizer", owner)  # a processor's
    found: set[int] = set()
    for name in names:
        value = inner.get(name) if isinstance(inner, dict) else getattr(inner, name, None)
        several = value if isinstance(value, list | tuple) else [value]
        found |= {one for one in several if isinstance(one, int) and not isinstance(one, bool)}
    return found
