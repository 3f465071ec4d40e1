"""PyTorch's fused attention operators, and how the arguments and results of each are read.

All operators are listed by name, since a machine may lack some: scaled_dot_product_attention, the fused encoder layer
of `torch.nn`, flex_attention, and the package flash_attn.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.capture.captured import CapturedCall, CapturedWeights
from regard.capture.torch_internals import flex_attention_scores, safe_softmax
from regard.masks import Mask
from regard.masks.padding import visible_columns

CAUSAL, CAUSAL_FROM_FIRST = Mask.causal(), Mask.causal(align="first")
"""The masks of `is_causal`: the same objects for every call, so that they are recognised without reading them."""

KEYS = 1
"""`mask_type` of a mask over the keys alone, (B, S). Other types are over scores, (T, S) and (B, H, T, S)."""


def read_encoder_layer(given: dict[str, Any], result: Any) -> CapturedCall:
    """`aten._transformer_encoder_layer_fwd`: a whole `nn.TransformerEncoderLayer`."""
    x, lengths = _padded(given["src"])
    if given["norm_first"]:
        x = F.layer_norm(x, x.shape[-1:], given["norm_weight_1"], given["norm_bias_1"], given["eps"])
    return _captured_layer(given, x, x, x, given["num_heads"], lengths, submodule="self_attn")


def read_multi_head(given: dict[str, Any], result: Any) -> CapturedCall:
    """`aten._native_multi_head_attention`: `nn.MultiheadAttention` with its projections."""
    (query, _), (key, lengths), (value, _) = (_padded(given[name]) for name in ("query", "key", "value"))
    return _captured_layer(given, query, key, value, given["num_head"], lengths)


def _padded(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """B T D padded with zeros at the end, and the lengths if the tensor is nested."""
    if not x.is_nested:
        return x, None
    return x.to_padded_tensor(0.0), x._nested_tensor_size()[:, 0].to(x.device)


def _captured_layer(
    given: dict[str, Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    lengths: Tensor | None,
    submodule: str = "",
) -> CapturedCall:
    weights, biases = given["qkv_weight"].chunk(3), given["qkv_bias"].chunk(3)
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    mask, allowed, added = given["mask"], None, None
    if lengths is not None:
        allowed = Mask.from_keep(torch.arange(key.shape[1], device=key.device) < lengths[:, None])
    elif mask is not None and given["mask_type"] == KEYS:
        allowed = Mask.from_keep(mask == 0)  # True or −inf is masked
    elif mask is not None and mask.dtype == torch.bool:
        allowed = Mask.of(~mask)
    elif mask is not None:
        added = mask[(None,) * (4 - mask.dim())]
    return CapturedCall(q, k, v, scale=q.shape[-1] ** -0.5, mask=allowed, bias=added, submodule=submodule)


def read_flash(given: dict[str, Any], result: Any) -> CapturedCall:
    """`flash_attn_func`. Its causal mask and its window count from the last key, as ours do."""
    q, k, v = (given[name].transpose(1, 2) for name in "qkv")
    return _captured_flash(given, q, k, v, _band(given), lse=result[1])._replace(out=result[0].transpose(1, 2))


def read_packed_flash(given: dict[str, Any], result: Any) -> CapturedCall:
    """`flash_attn_varlen_func`, unpacked. Texts are padded on the left: the last query stays at the last key."""
    queries, keys = given["cu_seqlens_q"].diff(), given["cu_seqlens_k"].diff()
    q = _unpacked(given["q"], queries)
    k, v = _unpacked(given["k"], keys), _unpacked(given["v"], keys)
    S = k.shape[2]
    there = Mask.from_keep(torch.arange(S, device=k.device) >= S - keys[:, None])
    band = _band(given)
    return _captured_flash(given, q, k, v, there if band is None else band & there)


def _captured_flash(
    given: dict[str, Any], q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, lse: Tensor | None = None
) -> CapturedCall:
    T, S = q.shape[2], k.shape[2]
    bias, slopes = None, given.get("alibi_slopes")
    if slopes is not None:
        apart = torch.arange(T, device=q.device)[:, None] + (S - T) - torch.arange(S, device=q.device)
        bias = -slopes.reshape(-1, q.shape[1], 1, 1) * apart.abs()
    return CapturedCall(
        q, k, v, given["softmax_scale"], mask=mask, bias=bias, lse=lse, softcap=given.get("softcap") or None
    )


def _band(given: dict[str, Any]) -> Mask | None:
    left, right = given["window_size_left"], 0 if given["causal"] else given["window_size_right"]
    if left < 0 and right < 0:
        return None
    return Mask.window(None if left < 0 else left, None if right < 0 else right)


def _unpacked(x: Tensor, lengths: Tensor) -> Tensor:
    """Packed texts (·, H, E) as B H T E, shorter texts padded with zeros on the left."""
    longest = int(lengths.max())
    texts = x.split(lengths.tolist())
    return torch.stack([torch.nn.functional.pad(one, (0, 0, 0, 0, longest - len(one), 0)) for one in texts]).transpose(
        1, 2
    )


def read_flex(given: dict[str, Any], result: Any) -> CapturedWeights:
    """(query, key, value, score_mod, block_mask, scale, …); shared heads and samples of keys are repeated."""
    query, key, value, *rest = given.values()
    key, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1).expand(len(query), -1, -1, -1) for x in (key, value))
    _, scores = flex_attention_scores(query, key, value, *rest)
    weights = safe_softmax(scores, -1)
    return CapturedWeights(weights, scores.logsumexp(-1), v=v, factor=weights, visible=visible_columns(scores))


Reader = Callable[[dict[str, Any], Any], CapturedCall | CapturedWeights]
"""Reads an operator's arguments by name, and its result."""


def read_fused(given: dict[str, Any], result: Any) -> CapturedCall:
    """A call of `scaled_dot_product_attention`, in the form that all of its kernels take."""
    q, added = given["query"], given.get("attn_mask", given.get("attn_bias"))
    T, scale = q.shape[2], given.get("scale")
    mask = CAUSAL_FROM_FIRST if given["is_causal"] else None  # PyTorch counts from the first key
    if added is not None:
        added = added[(None,) * (4 - added.dim())]
        if added.dtype == torch.bool:
            mask, added = Mask.of(added) if mask is None else mask & Mask.of(added), None
    return CapturedCall(
        q=q,
        k=given["key"],
        v=given["value"],
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        mask=mask,
        bias=added,
        lse=lse_of(result[1], T),
        out=result[0],
    )


def lse_of(found: Any, T: int) -> Tensor | None:
    """The LSE, B H T. Some kernels return padded rows, or one more axis; or none, without gradients."""
    if not isinstance(found, Tensor):
        return None
    if found.dim() == 3 and found.shape[-1] == T:
        return found
    found = found.squeeze(-1) if found.dim() == 4 and found.shape[-1] == 1 else found
    return found[..., :T] if found.dim() == 3 and found.shape[-1] >= T else None


def read_flash_on_cuda(given: dict[str, Any], result: Any) -> CapturedCall:
    """The same for a causal mask that counts from the last key: `causal_lower_right` uses this operator with T ≠ S."""
    captured = read_fused(given, result)
    return captured._replace(mask=CAUSAL) if captured.mask is CAUSAL_FROM_FIRST else captured


def is_plain_causal(captured: CapturedCall) -> bool:
    """Whether a call is causal by `is_causal`, with as many queries as keys."""
    mask, T = captured.mask, captured.q.shape[2]
    return (mask is CAUSAL or mask is CAUSAL_FROM_FIRST) and captured.bias is None and T == captured.k.shape[2] > 1


def is_plain_row(captured: CapturedCall) -> bool:
    """Whether a call has one query that sees every key, as the last token of a text that is being generated."""
    is_plain = captured.mask is None and captured.bias is None and captured.softcap is None
    return is_plain and captured.q.shape[2] == 1


FUSED = (read_fused, read_flash_on_cuda)
"""Readers of `scaled_dot_product_attention`, for any of its kernels."""

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
    """Readers by operator; the name of each operator is read once."""

    def __missing__(self, func: Any) -> Reader | None:
        reader = self[func] = BY_NAME.get(str(func))
        return reader


READERS = _Readers()


def named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """An operator's arguments by name, with defaults. `flex_attention` has no schema: its arguments are numbered."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return {str(at): value for at, value in enumerate(args)} | kwargs
    known = _DEFAULTS.get(id(func))
    if known is None:
        known = _DEFAULTS[id(func)] = func, {one.name: one.default_value for one in schema.arguments}
    return known[1] | dict(zip(known[1], args, strict=False)) | kwargs


_DEFAULTS: dict[int, tuple[Any, dict[str, Any]]] = {}
"""By the id of an operator, because operators hash slowly; with the operator, so that its id is not reused."""
