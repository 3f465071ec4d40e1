"""The kind of an attention: encoder, decoder, cross, or self if the side is unknown; and where its queries start.

Attributes of the module count first, then where its queries and keys come from. Then the mask: causal attention is a
decoder's, whatever its name; other attention is not, unless a part of its name says decoder or cross-attention is in
the same layer. Names and classes decide the rest.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.model_facts import attribute_of
from regard.capture.module_names import ModuleNames, Place, named_arguments
from regard.capture.operators import CapturedCall, CapturedWeights, is_plain_causal
from regard.masks import BoundMask
from regard.records import Kind

_CROSS = re.compile(r"cross|^(encoder|enc_dec|enc)_?(attn|attention)|encdec|^multihead_attn$|^context_attn", re.I)
_SIDE = re.compile(r"(?:^|_)(encoder|decoder)(?:s|_model|_layers?|_stack|_blocks?)?$", re.I)
_CLASS_SIDE = re.compile(r"Encoder|Decoder")
_KEYS = re.compile(r"key|context|memory|encoder|source|kv|cross|tensor2|^k$|image|visual|vision", re.I)
"""Names of arguments that keys are computed from."""

KINDS: dict[Any, Kind] = {"encoder": "encoder", "decoder": "decoder", "cross": "cross"}
"""The kinds that a module may state by an attribute `kind`."""

_POOLING = {"FunnelRelMultiheadAttention"}
"""Classes whose queries are their keys, pooled."""

TAIL = 64
"""The number of last queries and keys that are checked for causality."""


class Kinds:
    """The kinds of a model's attention modules. A kind stays once it is known, if a later call shows less."""

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._named: dict[str, Kind] = {}
        """Kinds by modules and names."""
        self._known: dict[str, Kind] = {}
        """Final kinds."""

    def of(self, place: Place, captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]) -> Kind:
        """The kind of one call of B H T S."""
        known = self._known.get(place.name)
        if known is not None and known != "self":
            return known
        if isinstance(captured, CapturedCall) and is_plain_causal(captured):
            own = attribute_of(place.module, "kind")
            kind = KINDS[own] if own in KINDS else "cross" if _is_cross(place.name, place.module) else "decoder"
            self._known[place.name] = kind
            return kind
        named = self._named.get(place.name)
        if named is None:
            named = self._named[place.name] = kind_by_name(place.name, self._names.ancestors(place.name))
            own = attribute_of(place.module, "kind") == named
            if named == "cross" or own:
                self._known[place.name] = named
                return named
            if _has_two_sources(place.module, sizes):
                self._known[place.name] = "cross"
                return "cross"
        known = self._by_mask(place, named, captured, sizes)
        if known is not None:
            self._known[place.name] = known
        return known or named

    def _by_mask(
        self, place: Place, named: Kind, captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]
    ) -> Kind | None:
        """The kind by mask and sizes as well; None if they are not enough."""
        if named == "self":
            if sizes[2] != sizes[3] and isinstance(place.module, nn.MultiheadAttention):  # it has no cache
                return "cross"
            return kind_by_call(captured, sizes)
        causal = is_causal(captured, sizes)
        if causal is None:
            return None
        if causal:
            return "decoder"
        if named == "decoder":
            return _side_of_name(place.name) or ("decoder" if self._has_cross_beside(place) else "encoder")
        return named

    def _has_cross_beside(self, place: Place) -> bool:
        """Whether the layer of this module also has cross-attention, as a decoder's does."""
        layer = place.name.rpartition(".")[0]
        inside = (name for name in self._names if name.startswith(f"{layer}.") and name != place.name)
        return any(_CROSS.search(part) for name in inside for part in name[len(layer) + 1 :].split("."))


def kind_by_name(name: str, ancestors: Sequence[nn.Module]) -> Kind:
    """The kind by modules and names; "self" if they are not enough. `ancestors`: from the model to the module.

    >>> kind_by_name("model.decoder.layers.0.encoder_attn", []), kind_by_name("transformer.h.5.attn", [])
    ('cross', 'self')
    """
    module = ancestors[-1] if ancestors else None
    own = attribute_of(module, "kind")
    if own in ("encoder", "decoder", "cross"):
        return own
    if _is_cross(name, module):
        return "cross"
    return _by_decoder_flag(ancestors) or _side_of_name(name) or _side_of_class(ancestors) or _side_of_causality(module)


def kind_by_call(captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]) -> Kind:
    """The kind by one call of B H T S: causal attention is a decoder's; different sizes mean different texts."""
    B, H, T, S = sizes
    if T == 1 or S == 1:  # a single query may be a decoding step with a cache
        return "self"
    if T == S or isinstance(captured, CapturedWeights):
        return "decoder" if is_causal(captured, sizes) else "self"
    if captured.mask is not None and _hides_the_future(captured.mask.bind((B, H), T, S, captured.q)):
        return "decoder"
    if captured.bias is not None and _is_causal(captured.bias > torch.finfo(captured.bias.dtype).min):
        return "decoder"
    return "cross" if T != S and captured.mask is None and captured.bias is None else "self"


def is_causal(captured: CapturedCall | CapturedWeights, sizes: tuple[int, int, int, int]) -> bool | None:
    """Whether later keys are masked, by the last key that any query sees; None if the sizes are not enough.

    The last key, because earlier positions may see each other fully, such as a prompt or an image before a text.
    """
    B, H, T, S = sizes
    if T != S or T == 1:
        return None
    end = slice(max(0, T - TAIL), T)
    if isinstance(captured, CapturedWeights):
        visible = captured.weights[..., end, end] > 0
        if captured.visible is not None and captured.visible.shape == (*captured.weights.shape[:-2], S):
            text = captured.visible[..., end]  # a fully masked padding query has uniform weights
            visible = visible & text[..., None] & text[..., None, :]
    elif captured.mask is None and captured.bias is None:
        return False
    else:
        visible = torch.ones(
            (1, 1, end.stop - end.start, end.stop - end.start), dtype=torch.bool, device=captured.q.device
        )
        if captured.mask is not None:
            visible = visible & captured.mask.bind((B, H), T, S, captured.q).block(end, end)
        if captured.bias is not None:
            added = captured.bias.expand(*captured.bias.shape[:-2], T, S)[..., end, end]
            highest = added.amax(-1, keepdim=True)
            visible = visible & (added > highest - HIDING) & (highest > highest.amax() - HIDING)  # as above: padding
    allowed = visible.reshape(-1, *visible.shape[-2:]).any(0)
    keys = allowed.any(0).nonzero().flatten().tolist()
    if not keys or keys[-1] == 0:
        return None
    return not bool(allowed[: keys[-1], keys[-1]].any())


def _has_two_sources(module: nn.Module, sizes: tuple[int, int, int, int]) -> bool:
    """Whether a module was called with separate inputs for queries and keys: T of the one, S of the other."""
    given = [(name, x) for name, x in named_arguments(module) if x.dim() > 2 and x.is_floating_point()]
    if not given or type(module).__name__ in _POOLING:
        return False
    (_, first), *others = given
    second = next((x for name, x in others if _KEYS.search(name)), None)
    if second is None or second is first or sizes[2] not in first.shape[:-1] or sizes[3] not in second.shape[:-1]:
        return False
    return first.shape != second.shape or not torch.equal(first, second)


def _hides_the_future(mask: BoundMask) -> bool:
    """Whether the last query sees further than the one before it: in a window both see the end."""
    T = mask.frame.T
    return mask.reach(slice(T - 2, T - 1))[1] < mask.reach(slice(T - 1, T))[1]


def _is_causal(allowed: Tensor) -> bool:
    """The same by two corners of the visible edges, (…, T, S): only the last query sees the last key."""
    if allowed.shape[-2] == 1:
        return False
    return not bool(allowed[..., -2, -1].any()) and bool(allowed[..., -1, -1].any())


def _is_cross(name: str, module: nn.Module | None) -> bool:
    for attribute in ("is_cross_attention", "is_cross_attn", "is_cross"):
        flag = attribute_of(module, attribute)
        if isinstance(flag, bool):
            return flag
    return _has_cross_name(name)


@lru_cache(maxsize=2**12)
def _has_cross_name(name: str) -> bool:
    """By the innermost parts: `decoder.layers.0.encoder_attn`, `decoder.block.0.layer.1.EncDecAttention`."""
    return any(_CROSS.search(part) for part in name.split(".")[-3:])


def _by_decoder_flag(ancestors: Sequence[nn.Module]) -> Kind | None:
    """ "decoder" if `is_decoder` is set, as for a BERT that generates text."""
    for module in reversed(ancestors):
        if attribute_of(module, "is_decoder") is True or _of_config(module, "is_decoder") is True:
            return "decoder"
    return None


@lru_cache(maxsize=2**12)
def _side_of_name(name: str) -> Kind | None:
    """The outermost part counts: in `decoder.bert.encoder.layer.0` the encoder's layers serve a decoder."""
    for part in name.split("."):
        found = _SIDE.search(part)
        if found:
            return "encoder" if found[1].lower() == "encoder" else "decoder"
    return None


def _side_of_class(ancestors: Sequence[nn.Module]) -> Kind | None:
    for module in ancestors[1:] or ancestors:
        found = _CLASS_SIDE.findall(type(module).__name__)
        if len(set(found)) == 1:
            return "encoder" if found[0] == "Encoder" else "decoder"
    return None


def _side_of_causality(module: nn.Module | None) -> Kind:
    flag = attribute_of(module, "is_causal")
    if flag is True:
        return "decoder"
    return "encoder" if flag is False else "self"


def _of_config(module: nn.Module, name: str) -> Any:
    return getattr(attribute_of(module, "config"), name, None)


HIDING = 9000.0
"""Scores this far below the best of their row are masked: the smallest offset that models mask with is -10,000."""


class Positions:
    """Positions over the calls of one model, in order.

    >>> positions = Positions()
    >>> positions.first("decoder", 4, 4), positions.first("decoder", 1, 5), positions.first("cross", 1, 9)
    (0, 4, 4)
    """

    def __init__(self) -> None:
        self._latest: tuple[int, int | None] = (0, 0)

    def first(
        self, kind: Kind, T: int, S: int, mask_or_scores: Tensor | None = None, masked: bool = True
    ) -> int | None:
        """The position of the first of T queries over S keys; None if unknown.

        The queries of a decoder are at the end of its keys, unless `mask_or_scores` shows unused positions there.
        Cross-attention follows the decoder's self-attention, and has the same positions.
        """
        if kind == "encoder":
            return 0
        if kind == "cross":
            return self._latest[1] if self._latest[0] == T else 0
        first: int | None = S - T
        if T >= S or (kind == "self" and T > 1 and not masked):
            first = 0
        elif mask_or_scores is not None and not sees_last(mask_or_scores):
            first = None
        self._latest = T, first
        return first


def sees_last(mask_or_scores: Tensor) -> bool:
    """Whether the last query sees the last key, by a mask or by scores (…, T, S)."""
    row = mask_or_scores[..., -1, :]
    if mask_or_scores.dtype == torch.bool:
        return bool(row[..., -1].any())
    return bool((row[..., -1] > row.amax(-1) - HIDING).any())
