"""PyTorch's fused attention operators: for each, how its arguments and results become what was caught.

Which backend PyTorch takes is its own affair; all of them are here, by name, since a machine need not have them all.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.capture.caught import Caught, CaughtWeights
from regard.capture.encoder_layer import read_encoder_layer, read_multi_head
from regard.capture.flash import read_flash, read_packed_flash
from regard.capture.flex import read_flex
from regard.masks import Mask

Reader = Callable[[dict[str, Any], Any], Caught | CaughtWeights]
"""From an operator's arguments by name, and its result."""


def read_fused(given: dict[str, Any], result: Any) -> Caught:
    """A call of `scaled_dot_product_attention`, as all of its kernels take it."""
    q, added = given["query"], given.get("attn_mask", given.get("attn_bias"))
    T, scale = q.shape[2], given.get("scale")
    mask = Mask.causal(align="first") if given["is_causal"] else None  # PyTorch counts from the first key
    if added is not None:
        added = added[(None,) * (4 - added.dim())]
        if added.dtype == torch.bool:
            mask, added = Mask.of(added) if mask is None else mask & Mask.of(added), None
    return Caught(
        q=q,
        k=given["key"],
        v=given["value"],
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        mask=mask,
        bias=added,
        lse=_lse(result[1], T),
    )


def _lse(found: Any, T: int) -> Tensor | None:
    """The LSE, B H T. Some kernels let out more rows than there are, or one more axis; or none, without a gradient."""
    if not isinstance(found, Tensor):
        return None
    found = found.squeeze(-1) if found.dim() == 4 and found.shape[-1] == 1 else found
    return found[..., :T] if found.dim() == 3 and found.shape[-1] >= T else None


def read_flash_on_cuda(given: dict[str, Any], result: Any) -> Caught:
    """The same, where causal counts from the last key: `causal_lower_right` comes here with T ≠ S."""
    caught = read_fused(given, result)
    return caught._replace(mask=Mask.causal()) if given["is_causal"] else caught


FUSED = (read_fused, read_flash_on_cuda)
"""Readers of `scaled_dot_product_attention`, whichever kernel it took."""

BY_NAME: dict[str, Reader] = {
    "aten._scaled_dot_product_flash_attention_for_cpu.default": read_fused,
    "aten._scaled_dot_product_flash_attention.default": read_flash_on_cuda,
    "aten._scaled_dot_product_efficient_attention.default": read_fused,
    "aten._scaled_dot_product_cudnn_attention.default": read_fused,
    "aten._scaled_dot_product_fused_attention_overrideable.default": read_fused,
    "aten._native_multi_head_attention.default": read_multi_head,
    "aten._transformer_encoder_layer_fwd.default": read_encoder_layer,
    "flash_attn._flash_attn_forward.default": read_flash,
    "flash_attn._flash_attn_varlen_forward.default": read_packed_flash,
    "flex_attention": read_flex,
}


class _Readers(dict[Any, Reader | None]):
    """By operator; each is asked for its name once."""

    def __missing__(self, func: Any) -> Reader | None:
        reader = self[func] = BY_NAME.get(str(func))
        return reader


READERS = _Readers()


def named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """An operator's arguments by name, those left out included. `flex_attention` has no schema: its are in order."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return {str(at): value for at, value in enumerate(args)} | kwargs
    known = _DEFAULTS.get(id(func))
    if known is None:
        known = _DEFAULTS[id(func)] = func, {one.name: one.default_value for one in schema.arguments}
    return known[1] | dict(zip(known[1], args, strict=False)) | kwargs


_DEFAULTS: dict[int, tuple[Any, dict[str, Any]]] = {}
"""By the id of an operator, which hashes slowly; and the operator, so that the id is nobody else's."""
