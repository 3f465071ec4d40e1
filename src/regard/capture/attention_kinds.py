"""Which side an attention is on: encoder, decoder, cross; or self, where nothing tells.

What a module says of itself counts first, then where its queries and keys come from. Then the mask: who may not look
ahead is a decoder, whatever it is called; who may is none, unless a part of its name says so or cross-attention stands
beside it. Names and classes decide the rest.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.captured import Caught, CaughtWeights
from regard.capture.module_names import Names, Place, named_arguments
from regard.capture.query_positions import HIDING
from regard.masks import BoundMask
from regard.records import Kind

_CROSS = re.compile(r"cross|^(encoder|enc_dec|enc)_?(attn|attention)|encdec|^multihead_attn$|^context_attn", re.I)
_SIDE = re.compile(r"(?:^|_)(encoder|decoder)(?:s|_model|_layers?|_stack|_blocks?)?$", re.I)
_CLASS_SIDE = re.compile(r"Encoder|Decoder")
_KEYS = re.compile(r"key|context|memory|encoder|source|kv|cross|tensor2|^k$|image|visual|vision", re.I)
"""Arguments that keys are made of."""

_POOLING = {"FunnelRelMultiheadAttention"}
"""Classes whose queries are their keys, pooled."""

TAIL = 64
"""Queries and keys at the end that are asked who may look ahead."""


class Kinds:
    """The kinds of a model's attentions. What a module once was it stays, where a later call tells less."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._told: dict[str, Kind] = {}
        """What modules and names tell."""
        self._known: dict[str, Kind] = {}
        """What is settled."""

    def of(self, place: Place, caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> Kind:
        """The kind of one call of B H T S."""
        known = self._known.get(place.name)
        if known is not None and known != "self":
            return known
        told = self._told.get(place.name)
        if told is None:
            told = self._told[place.name] = told_kind(place.name, self._names.around(place.name))
            own = getattr(place.module, "kind", None) == told
            if told == "cross" or own:
                self._known[place.name] = told
                return told
            if _has_two_sources(place.module, sizes):
                self._known[place.name] = "cross"
                return "cross"
        known = self._judged(place, told, caught, sizes)
        if known is not None:
            self._known[place.name] = known
        return known or told

    def _judged(
        self, place: Place, told: Kind, caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]
    ) -> Kind | None:
        """The kind by mask and sizes as well; None where they tell nothing."""
        if told == "self":
            if sizes[2] != sizes[3] and isinstance(place.module, nn.MultiheadAttention):  # which remembers nothing
                return "cross"
            return seen_kind(caught, sizes)
        causal = is_causal(caught, sizes)
        if causal is None:
            return None
        if causal:
            return "decoder"
        if told == "decoder":
            return _side_of_name(place.name) or ("decoder" if self._has_cross_beside(place) else "encoder")
        return told

    def _has_cross_beside(self, place: Place) -> bool:
        """Whether the layer of this module has cross-attention too, as those of decoders do."""
        layer = place.name.rpartition(".")[0]
        inside = (name for name in self._names if name.startswith(f"{layer}.") and name != place.name)
        return any(_CROSS.search(part) for name in inside for part in name[len(layer) + 1 :].split("."))


def told_kind(name: str, around: Sequence[nn.Module]) -> Kind:
    """The kind that modules and names tell; "self" where they are silent. `around` goes from the model to the module.

    >>> told_kind("model.decoder.layers.0.encoder_attn", []), told_kind("transformer.h.5.attn", [])
    ('cross', 'self')
    """
    module = around[-1] if around else None
    own = getattr(module, "kind", None)
    if own in ("encoder", "decoder", "cross"):
        return own
    if _is_cross(name, module):
        return "cross"
    return _said_outright(around) or _side_of_name(name) or _side_of_class(around) or _side_of_causality(module)


def seen_kind(caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> Kind:
    """The kind that one call of B H T S tells: who may not look ahead is a decoder; other sizes, other texts."""
    B, H, T, S = sizes
    if T == 1 or S == 1:  # one query alone may be a step that looks back at a cache
        return "self"
    if T == S or isinstance(caught, CaughtWeights):
        return "decoder" if is_causal(caught, sizes) else "self"
    if caught.mask is not None and _hides_the_future(caught.mask.bind((B, H), T, S, caught.q)):
        return "decoder"
    if caught.bias is not None and _is_causal(caught.bias > torch.finfo(caught.bias.dtype).min):
        return "decoder"
    return "cross" if T != S and caught.mask is None and caught.bias is None else "self"


def is_causal(caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> bool | None:
    """Whether queries may not look ahead, told by the last key that anybody sees; None where sizes do not tell.

    The last key, since what comes before may see all of itself, as a prompt or a picture before a text.
    """
    B, H, T, S = sizes
    if T != S or T == 1:
        return None
    end = slice(max(0, T - TAIL), T)
    if isinstance(caught, CaughtWeights):
        seen = caught.weights[..., end, end] > 0
        if caught.seen is not None and caught.seen.shape == (*caught.weights.shape[:-2], S):
            text = caught.seen[..., end]  # padding that sees nothing looks evenly at all
            seen = seen & text[..., None] & text[..., None, :]
    elif caught.mask is None and caught.bias is None:
        return False
    else:
        seen = torch.ones((1, 1, end.stop - end.start, end.stop - end.start), dtype=torch.bool, device=caught.q.device)
        if caught.mask is not None:
            seen = seen & caught.mask.bind((B, H), T, S, caught.q).block(end, end)
        if caught.bias is not None:
            added = caught.bias.expand(*caught.bias.shape[:-2], T, S)[..., end, end]
            highest = added.amax(-1, keepdim=True)
            seen = seen & (added > highest - HIDING) & (highest > highest.amax() - HIDING)  # see above: padding
    allowed = seen.reshape(-1, *seen.shape[-2:]).any(0)
    keys = allowed.any(0).nonzero().flatten().tolist()
    if not keys or keys[-1] == 0:
        return None
    return not bool(allowed[: keys[-1], keys[-1]].any())


def _has_two_sources(module: nn.Module, sizes: tuple[int, int, int, int]) -> bool:
    """Whether a module was called with queries of one kind and keys of another: T of the one, S of the other."""
    given = [(name, x) for name, x in named_arguments(module) if x.dim() > 2 and x.is_floating_point()]
    if not given or type(module).__name__ in _POOLING:
        return False
    (_, first), *others = given
    second = next((x for name, x in others if _KEYS.search(name)), None)
    if second is None or second is first or sizes[2] not in first.shape[:-1] or sizes[3] not in second.shape[:-1]:
        return False
    return first.shape != second.shape or not torch.equal(first, second)


def _hides_the_future(mask: BoundMask) -> bool:
    """Whether the last query reaches further than the one before it: in a window both reach the end."""
    T = mask.frame.T
    return mask.reach(slice(T - 2, T - 1))[1] < mask.reach(slice(T - 1, T))[1]


def _is_causal(allowed: Tensor) -> bool:
    """The same told by two corners of who may look, (…, T, S): the last key is for the last query alone."""
    if allowed.shape[-2] == 1:
        return False
    return not bool(allowed[..., -2, -1].any()) and bool(allowed[..., -1, -1].any())


def _is_cross(name: str, module: nn.Module | None) -> bool:
    for attribute in ("is_cross_attention", "is_cross_attn", "is_cross"):
        told = getattr(module, attribute, None)
        if isinstance(told, bool):
            return told
    # The innermost parts of the name: `decoder.layers.0.encoder_attn`, `decoder.block.0.layer.1.EncDecAttention`.
    return any(_CROSS.search(part) for part in name.split(".")[-3:])


def _said_outright(around: Sequence[nn.Module]) -> Kind | None:
    """What `is_decoder` says of a stack that bears another name, as a BERT that writes."""
    for module in reversed(around):
        if getattr(module, "is_decoder", None) is True or _of_config(module, "is_decoder") is True:
            return "decoder"
    return None


def _side_of_name(name: str) -> Kind | None:
    """The outermost part counts: in `decoder.bert.encoder.layer.0` the encoder's layers serve a decoder."""
    for part in name.split("."):
        found = _SIDE.search(part)
        if found:
            return "encoder" if found[1].lower() == "encoder" else "decoder"
    return None


def _side_of_class(around: Sequence[nn.Module]) -> Kind | None:
    for module in around[1:] or around:
        found = _CLASS_SIDE.findall(type(module).__name__)
        if len(set(found)) == 1:
            return "encoder" if found[0] == "Encoder" else "decoder"
    return None


def _side_of_causality(module: nn.Module | None) -> Kind:
    told = getattr(module, "is_causal", None)
    if told is True:
        return "decoder"
    return "encoder" if told is False else "self"


def _of_config(module: nn.Module, name: str) -> Any:
    return getattr(getattr(module, "config", None), name, None)
