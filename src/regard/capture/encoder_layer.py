"""The two operators in which `torch.nn` computes attention out of reach: q and k are made again from what went in.

`nn.TransformerEncoderLayer` and `nn.MultiheadAttention` take them when no gradient is wanted. Padding may have become
a nested tensor on the way; it comes back as padding here. The values are not made again: nothing is read off them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.capture.caught import Caught
from regard.masks import Mask

KEYS = 1
"""`mask_type` of a mask over the keys alone, (B, S). The others are over scores, (T, S) and (B, H, T, S)."""


def read_encoder_layer(given: dict[str, Any], result: Any) -> Caught:
    """`aten._transformer_encoder_layer_fwd`: all of `nn.TransformerEncoderLayer` in one."""
    x, lengths = _padded(given["src"])
    if given["norm_first"]:
        x = F.layer_norm(x, x.shape[-1:], given["norm_weight_1"], given["norm_bias_1"], given["eps"])
    return _caught(given, x, x, given["num_heads"], lengths, part="self_attn")


def read_multi_head(given: dict[str, Any], result: Any) -> Caught:
    """`aten._native_multi_head_attention`: `nn.MultiheadAttention` with its projections."""
    (query, _), (key, lengths) = _padded(given["query"]), _padded(given["key"])
    return _caught(given, query, key, given["num_head"], lengths)


def _padded(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """B T D with zeros at the ends, and the lengths where there were any to be told apart."""
    if not x.is_nested:
        return x, None
    return x.to_padded_tensor(0.0), x._nested_tensor_size()[:, 0].to(x.device)


def _caught(
    given: dict[str, Any], query: Tensor, key: Tensor, heads: int, lengths: Tensor | None, part: str = ""
) -> Caught:
    D, weight, bias = query.shape[-1], given["qkv_weight"], given["qkv_bias"]
    q = F.linear(query, weight[:D], bias[:D]).unflatten(-1, (heads, -1)).transpose(1, 2)
    k = F.linear(key, weight[D : 2 * D], bias[D : 2 * D]).unflatten(-1, (heads, -1)).transpose(1, 2)
    mask, allowed, added = given["mask"], None, None
    if lengths is not None:
        allowed = Mask.from_keep(torch.arange(key.shape[1], device=key.device) < lengths[:, None])
    elif mask is not None and given["mask_type"] == KEYS:
        allowed = Mask.from_keep(mask == 0)  # true, or −inf, is hidden
    elif mask is not None and mask.dtype == torch.bool:
        allowed = Mask.of(~mask)
    elif mask is not None:
        added = mask[(None,) * (4 - mask.dim())]
    return Caught(q, k, k[..., :0], scale=q.shape[-1] ** -0.5, mask=allowed, bias=added, part=part)
