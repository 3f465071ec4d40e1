"""Which queries and keys of a watched attention are padding: told by its mask, by the text so far, and by the ids.

A mask tells of keys. Of queries it tells in self-attention, where each stands at a key; those of cross-attention are
the queries of the decoder before it. Ids tell where a model hides nothing, as most do behind the end of a text that is
read from left to right. Steps of a text that is written go on from what was known of its beginning.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from regard.capture.captured import Caught, CaughtWeights
from regard.capture.layouts import by_heads
from regard.masks.padding import both_known, padding_of, queries_at
from regard.padding import Padding
from regard.records import Kind, Step
from regard.text import Tokenizer

FourSizes = tuple[int, int, int, int]


class PadIds:
    """The ids that mean padding: those of the tokenizer, of the configuration and of `nn.Embedding(padding_idx=…)`."""

    def __init__(self, model: nn.Module, tokenizer: Any) -> None:
        configs = _configs(model)
        self._pads = _numbers(tokenizer, "pad_token_id", "pad") | {
            pad for config in configs for pad in _numbers(config, "pad_token_id")
        }
        self._ends = _numbers(tokenizer, "eos_token_id", "eos") | {
            end for config in configs for end in _numbers(config, "eos_token_id")
        }

    def learn(self, pad: int) -> None:
        """An embedding told which of its ids is padding."""
        if pad >= 0:
            self._pads.add(pad)

    def text(self, ids: np.ndarray) -> np.ndarray | None:
        """Which of the ids, B T, with which texts begin, are text; None where all are.

        Behind a text, an id that also ends texts says nothing. Before it, what all samples begin with is the token
        that a decoder starts from.

        >>> pads = PadIds(nn.Embedding(9, 2, padding_idx=0), None)
        >>> pads.learn(0)
        >>> pads.text(np.array([[0, 5, 0, 0], [0, 0, 6, 7]])).astype(int).tolist()
        [[1, 1, 0, 0], [1, 0, 1, 1]]
        """
        if not self._pads or not ids.size:
            return None
        padded = np.isin(ids, list(self._pads))
        if not padded[:, [0, -1]].any():
            return None
        behind = np.isin(ids, list(self._pads - self._ends))
        behind = np.logical_and.accumulate(behind[:, ::-1], 1)[:, ::-1]
        before = np.logical_and.accumulate(padded, 1)
        start = before & before.all(0)
        start[:, 0] |= before.all(1)  # a text has a token at least
        padded = ((before & ~before.all(1, keepdims=True)) | behind) & ~start
        return None if not padded.any() else ~padded

    def going_on(self, ids: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """The same of ids that texts go on with, and which of the texts have ended after them, as B had before.

        Only behind its end is a text padded: before that, a model may write any token.
        """
        # Asked at every step, of a few ids: a set answers in a hundredth of the time of `np.isin`.
        if not ended.any() and self._ends.isdisjoint(ids.ravel().tolist()):
            return None, ended
        text = np.ones(ids.shape, bool)
        for at, column in enumerate(ids.T):
            padded = ended & np.isin(column, list(self._pads))
            ended = padded | np.isin(column, list(self._ends))
            text[:, at] = ~padded
        return None if text.all() else text, ended


class _Known(NamedTuple):
    """What the last call of one side told: its sizes, and its queries and keys."""

    sizes: FourSizes
    padding: Padding


class Paddings:
    """What is known of padding on each side of a model that is running."""

    def __init__(self) -> None:
        self._known: dict[Kind, _Known] = {}

    def told(
        self,
        kind: Kind,
        caught: Caught | CaughtWeights,
        sizes: FourSizes,
        module: nn.Module,
        step: Step | None = None,
        text: np.ndarray | None = None,
    ) -> Padding | None:
        """Of an attention of B H T S; None where nothing is padding.

        step    how the call goes on from the one before
        text    B T, which of the tokens that were read are text, by their ids
        """
        B, _, T, S = sizes
        if not (B and T and S):
            return None
        found = by_mask(caught, sizes, module, across=kind == "cross")
        if kind == "cross":
            return self._across(found, sizes)
        if step is not None and step.start:
            found = self._going_on(kind, found, sizes, step)
        if text is not None:
            found = _with_ids(found, text, sizes, caught)
        if kind != "encoder":
            self._known[kind] = _Known(sizes, found or Padding())
        return found

    def _across(self, found: Padding | None, sizes: FourSizes) -> Padding | None:
        """The queries are those of the decoder's self-attention before it."""
        known = self._known.get("decoder") or self._known.get("self")
        queries = None
        if known is not None and (known.sizes[0], known.sizes[2]) == (sizes[0], sizes[2]):
            queries = known.padding.queries
        keys = None if found is None else found.keys
        return None if queries is None and keys is None else Padding(queries, keys)

    def _going_on(self, kind: Kind, found: Padding | None, sizes: FourSizes, step: Step) -> Padding | None:
        """A key that was text stays text, though a window hides it from the queries of this step."""
        _, _, T, S = sizes
        known, forgets = self._known.get(kind), step.start + T > S
        if found is None or found.keys is None or known is None or not step.parents or forgets:
            return found
        before = known.padding.keys
        if before is None:
            before = torch.ones(known.sizes[0], min(known.sizes[3], step.start), dtype=torch.bool)
        before = before.to(found.keys.device)[list(step.parents), : step.start]
        keys = found.keys.clone()
        keys[:, : before.shape[1]] |= before
        return None if keys.is_cpu and bool(keys.all()) else Padding(queries_at(keys, T, step.start), keys)


def by_mask(caught: Caught | CaughtWeights, sizes: FourSizes, module: nn.Module, across: bool) -> Padding | None:
    """What the mask of a call tells, or the scores that a model's own softmax was given."""
    B, H, T, S = sizes
    if isinstance(caught, Caught):
        if caught.mask is None and caught.bias is None:
            return None
        bound = None if caught.mask is None else caught.mask.bind((B, H), T, S, caught.q)
        return padding_of(bound, caught.bias, sizes, across)
    if caught.seen is None or caught.seen.shape != (*caught.weights.shape[:-2], S):
        return None
    heads = by_heads(caught.seen[..., None, :], module)[:, :, 0]  # B H S
    keys = heads.any(1) | (heads != heads[:, :1]).any()  # what heads choose, as the strongest keys, is no padding
    keys = keys | ~keys.any(1, keepdim=True)  # all scores are low: nothing is told
    if keys.is_cpu and bool(keys.all()):
        return None
    return Padding(None if across or T > S else queries_at(keys, T, S - T), keys)


def _with_ids(found: Padding | None, text: np.ndarray, sizes: FourSizes, caught: Caught | CaughtWeights) -> Padding:
    """What ids tell, beside what a mask does."""
    device = (caught.q if isinstance(caught, Caught) else caught.weights).device
    queries = torch.from_numpy(text).to(device)
    keys = queries if sizes[2] == sizes[3] else None
    found = found or Padding()
    return Padding(both_known(found.queries, queries), both_known(found.keys, keys))


def _configs(model: nn.Module) -> list[Any]:
    """The configuration of a model, and those inside it: of its text, its encoder, its decoder."""
    whole = getattr(model, "config", None)
    parts = [getattr(whole, name, None) for name in ("text_config", "encoder", "decoder", "generator")]
    return [config for config in (whole, *parts) if config is not None]


def _numbers(owner: Any, *names: str) -> set[int]:
    """Ids that a tokenizer or a configuration has under one of these names; some have several."""
    if isinstance(owner, Tokenizer):
        names = names[-1:]
    inner = getattr(owner, "tokenizer", owner)  # a processor's
    found: set[int] = set()
    for name in names:
        value = inner.get(name) if isinstance(inner, dict) else getattr(inner, name, None)
        several = value if isinstance(value, list | tuple) else [value]
        found |= {one for one in several if isinstance(one, int) and not isinstance(one, bool)}
    return found
