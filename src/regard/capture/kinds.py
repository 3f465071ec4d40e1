"""Which side an attention is on: encoder, decoder, cross; or self, where nothing tells.

Asked are, in this order, the module itself, its name, the classes around it, and at last the mask and the sizes.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.caught import Caught, CaughtWeights
from regard.capture.names import Names, Place
from regard.masks import BoundMask
from regard.records import Kind

_CROSS = re.compile(r"cross|^(encoder|enc_dec|enc)_?(attn|attention)|encdec|^multihead_attn$|^context_attn", re.I)
_SIDE = re.compile(r"(?:^|_)(encoder|decoder)(?:s|_model|_layers?|_stack|_blocks?)?$", re.I)
_CLASS_SIDE = re.compile(r"Encoder|Decoder")


class Kinds:
    """The kinds of a model's attentions. What a module once was it stays, where a later call tells less."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[str, Kind] = {}

    def of(self, place: Place, caught: Caught | CaughtWeights, sizes: tuple[int, int, int, int]) -> Kind:
        """The kind of one call of B H T S."""
        known = self._known.get(place.name)
        if known is None:
            known = self._known[place.name] = told_kind(place.name, self._names.around(place.name))
        if known == "self":
            known = seen_kind(caught, sizes)
            if sizes[2] != sizes[3] and isinstance(place.module, nn.MultiheadAttention):  # which remembers nothing
                known = "cross"
            self._known[place.name] = known
        return known


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
    if isinstance(caught, CaughtWeights):
        return "decoder" if T == S and _is_causal(caught.weights > 0) else "self"
    if caught.mask is not None and _hides_the_future(caught.mask.bind((B, H), T, S, caught.q)):
        return "decoder"
    if caught.bias is not None and _is_causal(caught.bias > torch.finfo(caught.bias.dtype).min):
        return "decoder"
    return "cross" if T != S and caught.mask is None and caught.bias is None else "self"


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
