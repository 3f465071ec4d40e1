"""PyTorch's fused attention, called so that it stays fused and keeps our rules.

`F.scaled_dot_product_attention` falls back to a T × S matrix for many innocent calls (values of another width, a
last stride that is not 1), aligns causal masks to the upper left, and wants masks as T × S arrays. Here: widths are
padded, strides mended, and masks other than "causal" and "these keys" lowered for a block of rows at a time.

Everything in here has four axes, B H T E, and is finite and not huge: `dispatch` sees to that.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.functional.exponentials import computing_dtype
from regard.masks import BoundMask

MASK_AT_A_TIME = 2**22
"""Elements of a mask made at once: PyTorch copies it to float, so 20 MiB."""


def sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    scale: float,
    dropout: float = 0.0,
) -> Tensor:
    """Attention by `F.scaled_dot_product_attention`. q B H T E, k B G S E, v B G S Ev, bias broadcasts to B H T S."""
    Ev = v.shape[-1]
    q, k, v = _one_width(_as_kernels_like(q), _as_kernels_like(k), _as_kernels_like(v))
    if scale <= 0:
        # PyTorch's backward multiplies hidden scores, -inf, by the scale: 0 makes them NaN, less makes them +inf.
        q, scale = q * scale, 1.0
    B, H, T, E = q.shape
    if T == 1 and k.shape[1] != H and mask is None and bias is None:
        # One query: the heads that share keys are as good as rows of one head, which every kernel does fast.
        G, width = k.shape[1], v.shape[-1]
        rows = _fused(q.reshape(B, G, H // max(1, G), E), k, v, None, None, scale, dropout)  # -1 needs elements
        return rows.reshape(B, H, 1, width)[..., :Ev]
    return _fused(q, k, v, mask, bias, scale, dropout)[..., :Ev]


def _fused(
    q: Tensor, k: Tensor, v: Tensor, mask: BoundMask | None, bias: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """The cheapest call that means the same."""
    T, S = q.shape[2], k.shape[2]
    options: dict[str, Any] = {"scale": scale, "dropout_p": dropout}
    if q.shape[1] != k.shape[1]:  # a branch: traced sizes compare to something that is no bool
        options["enable_gqa"] = True
    if mask is None or T == 0 or S == 0:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=_as_added(bias, q), **options)
    rows = mask.key_rows
    if bias is None and rows is not None:
        causal, keep = rows
        # Causal beside a mask is understood by the CPU kernel only; elsewhere, and with dropout, PyTorch refuses.
        together = keep is None or not causal or (q.device.type == "cpu" and not dropout)
        if (not causal or T == S) and together:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=causal, **options)
            return out if keep is None else _blind_rows_zero(out, keep)
    return _by_row_blocks(q, k, v, mask, bias, options)


def _by_row_blocks(
    q: Tensor, k: Tensor, v: Tensor, mask: BoundMask, bias: Tensor | None, options: dict[str, Any]
) -> Tensor:
    """One call per block of rows, each with the mask of that block and the keys it can reach."""
    T, S = q.shape[2], k.shape[2]
    step = max(1, min(T, MASK_AT_A_TIME // _mask_numbers_per_row(mask, bias, S)))
    blocks = []
    for start in range(0, T, step):
        rows = slice(start, min(T, start + step))
        low, high = mask.reach(rows)
        if low == high:
            low, high = 0, 1  # reaches no key: asked about one it may not see, zeros come out that have a gradient
        seen = mask.block(rows, slice(low, high))
        added = _block_of(bias, rows, slice(low, high))
        if seen is False:
            seen = torch.zeros((1, 1), dtype=torch.bool, device=q.device).expand(rows.stop - rows.start, high - low)
        if added is None:
            attn_mask = None if seen is True else seen
        else:
            attn_mask = _as_added(added if seen is True else torch.where(seen, added, -torch.inf), q)
        block = F.scaled_dot_product_attention(
            q[:, :, rows], k[:, :, low:high], v[:, :, low:high], attn_mask=attn_mask, **options
        )
        blocks.append(block if seen is True else _blind_rows_zero(block, seen))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=2)


def _mask_numbers_per_row(mask: BoundMask, bias: Tensor | None, S: int) -> int:
    """How many numbers one row of the mask to be added has, over all samples and heads that it tells apart."""
    row, all_keys = slice(0, 1), slice(0, S)
    seen = mask.block(row, all_keys)
    numbers = S if isinstance(seen, bool) else seen.numel()
    added = _block_of(bias, row, all_keys)
    return max(1, numbers, S if added is None else added[..., :1, :].numel())


def _blind_rows_zero(out: Tensor, seen: Tensor) -> Tensor:
    """Rows that see nothing as zeros: PyTorch's CPU kernel gives them so, cuDNN's gives the mean of the values."""
    return out if out.device.type == "cpu" else out.masked_fill(~seen.any(-1, keepdim=True), 0)


def _as_kernels_like(x: Tensor) -> Tensor:
    """Copied where rows do not lie in one piece, or are repeated: what replaces hidden garbage has no repeated memory,
    and rounding depends on how memory lies."""
    strides = x.stride()
    return x if (strides[-1] == 1 or x.shape[-1] == 1) and 0 not in strides else x.contiguous()


def _one_width(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pad with zeros to one width: they add nothing to a score, and the extra outputs are cut off again."""
    if q.shape[-1] == v.shape[-1]:
        return q, k, v
    width = max(q.shape[-1], v.shape[-1])
    q, k, v = (x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1])) for x in (q, k, v))
    return q, k, v


def _block_of(bias: Tensor | None, rows: slice, cols: slice) -> Tensor | None:
    if bias is None:
        return None
    whole = slice(None)
    return bias[..., rows if bias.shape[-2] > 1 else whole, cols if bias.shape[-1] > 1 else whole]


def _as_added(bias: Tensor | None, q: Tensor) -> Tensor | None:
    """A bias in a dtype that PyTorch takes: float32 beside half precision on the CPU, the dtype of q elsewhere."""
    if bias is None:
        return None
    return bias.to(computing_dtype(q) if q.device.type == "cpu" else q.dtype)
