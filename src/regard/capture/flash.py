"""The package flash_attn, where it is installed: B T H E, and several texts packed into one row, · H E.

Not everything of it can be seen: `flash_attn_with_kvcache` is no operator.
"""

from typing import Any

import torch
from torch import Tensor

from regard.capture.caught import Caught
from regard.masks import Mask


def read_flash(given: dict[str, Any], result: Any) -> Caught:
    """`flash_attn_func`. Its causal and its window count from the last key, as ours do."""
    q, k, v = (given[name].transpose(1, 2) for name in "qkv")
    return _caught(given, q, k, v, _band(given), lse=result[1])


def read_packed_flash(given: dict[str, Any], result: Any) -> Caught:
    """`flash_attn_varlen_func`, unpacked. Padding stands before a text: its last query stays beside its last key."""
    queries, keys = given["cu_seqlens_q"].diff(), given["cu_seqlens_k"].diff()
    q = _unpacked(given["q"], queries)
    k, v = _unpacked(given["k"], keys), _unpacked(given["v"], keys)
    S = k.shape[2]
    there = Mask.from_keep(torch.arange(S, device=k.device) >= S - keys[:, None])
    band = _band(given)
    return _caught(given, q, k, v, there if band is None else band & there)


def _caught(
    given: dict[str, Any], q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, lse: Tensor | None = None
) -> Caught:
    T, S = q.shape[2], k.shape[2]
    bias, slopes = None, given.get("alibi_slopes")
    if slopes is not None:
        apart = torch.arange(T, device=q.device)[:, None] + (S - T) - torch.arange(S, device=q.device)
        bias = -slopes.reshape(-1, q.shape[1], 1, 1) * apart.abs()
    return Caught(q, k, v, given["softmax_scale"], mask=mask, bias=bias, lse=lse, softcap=given.get("softcap") or None)


def _band(given: dict[str, Any]) -> Mask | None:
    left, right = given["window_size_left"], 0 if given["causal"] else given["window_size_right"]
    if left < 0 and right < 0:
        return None
    return Mask.window(None if left < 0 else left, None if right < 0 else right)


def _unpacked(x: Tensor, lengths: Tensor) -> Tensor:
    """(·, H, E) of all texts one after the other as B H T E, zeros before those that are shorter."""
    longest = int(lengths.max())
    texts = x.split(lengths.tolist())
    return torch.stack([torch.nn.functional.pad(one, (0, 0, 0, 0, longest - len(one), 0)) for one in texts]).transpose(
        1, 2
    )
