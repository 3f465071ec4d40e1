"""PyTorch's fused attention, called so that it stays fused and follows the rules of the reference.

`F.scaled_dot_product_attention` falls back to a T × S matrix for many ordinary calls (values of another width, a
last stride other than 1), aligns causal masks to the upper left, and needs masks as T × S arrays. Here widths are
padded, strides are made contiguous, and masks other than causal and key masks are built for a block of rows at a
time.

All inputs have four axes, B H T E, and finite values that cannot overflow; `dispatch` guarantees this.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.functional.attention import computing_dtype
from regard.masks import BoundMask

MAX_MASK_ELEMENTS = 2**22
"""The largest mask built at once: 20 MiB, since PyTorch copies it to float."""


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
    q, k, v = _equal_widths(_kernel_layout(q), _kernel_layout(k), _kernel_layout(v))
    if scale <= 0:
        # PyTorch's backward multiplies masked scores, -inf, by the scale: a scale of 0 gives NaN, a negative one +inf.
        q, scale = q * scale, 1.0
    B, H, T, E = q.shape
    if T == 1 and k.shape[1] != H and mask is None and bias is None:
        # One query: heads that share keys can be rows of one head, which every kernel computes fast.
        G, width = k.shape[1], v.shape[-1]
        rows = _fused(q.reshape(B, G, H // max(1, G), E), k, v, None, None, scale, dropout)  # -1 fails if empty
        return rows.reshape(B, H, 1, width)[..., :Ev]
    return _fused(q, k, v, mask, bias, scale, dropout)[..., :Ev]


def _fused(
    q: Tensor, k: Tensor, v: Tensor, mask: BoundMask | None, bias: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """The cheapest equivalent call."""
    T, S = q.shape[2], k.shape[2]
    options: dict[str, Any] = {"scale": scale, "dropout_p": dropout}
    if q.shape[1] != k.shape[1]:  # a branch: comparing traced sizes does not give a bool
        options["enable_gqa"] = True
    if mask is None or T == 0 or S == 0:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=_additive(bias, q), **options)
    rows = mask.key_rows
    if bias is None and rows is not None:
        causal, keep = rows
        # Only the CPU kernel accepts is_causal together with a mask; elsewhere, and with dropout, PyTorch raises.
        accepted = keep is None or not causal or (q.device.type == "cpu" and not dropout)
        if (not causal or T == S) and accepted:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=causal, **options)
            return out if keep is None else _zero_fully_masked(out, keep)
    return _by_row_blocks(q, k, v, mask, bias, options)


def _by_row_blocks(
    q: Tensor, k: Tensor, v: Tensor, mask: BoundMask, bias: Tensor | None, options: dict[str, Any]
) -> Tensor:
    """One call per block of rows, with the mask of the block and the keys visible in it."""
    T, S = q.shape[2], k.shape[2]
    step = max(1, min(T, MAX_MASK_ELEMENTS // _mask_elements_per_row(mask, bias, S)))
    blocks = []
    for start in range(0, T, step):
        rows = slice(start, min(T, start + step))
        low, high = mask.reach(rows)
        if low == high:
            low, high = 0, 1  # fully masked: one masked key gives zeros that have a gradient
        visible = mask.block(rows, slice(low, high))
        added = _block_of(bias, rows, slice(low, high))
        if visible is False:
            visible = torch.zeros((1, 1), dtype=torch.bool, device=q.device).expand(rows.stop - rows.start, high - low)
        if added is None:
            attn_mask = None if visible is True else visible
        else:
            attn_mask = _additive(added if visible is True else torch.where(visible, added, -torch.inf), q)
        block = F.scaled_dot_product_attention(
            q[:, :, rows], k[:, :, low:high], v[:, :, low:high], attn_mask=attn_mask, **options
        )
        blocks.append(block if visible is True else _zero_fully_masked(block, visible))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=2)


def _mask_elements_per_row(mask: BoundMask, bias: Tensor | None, S: int) -> int:
    """The number of elements in one row of the additive mask, over all samples and heads that differ."""
    row, all_keys = slice(0, 1), slice(0, S)
    visible = mask.block(row, all_keys)
    numbers = S if isinstance(visible, bool) else visible.numel()
    added = _block_of(bias, row, all_keys)
    return max(1, numbers, S if added is None else added[..., :1, :].numel())


def _zero_fully_masked(out: Tensor, visible: Tensor) -> Tensor:
    """Set fully masked rows to zero, as PyTorch's CPU kernel does; cuDNN returns the mean of the values."""
    return out if out.device.type == "cpu" else out.masked_fill(~visible.any(-1, keepdim=True), 0)


def _kernel_layout(x: Tensor) -> Tensor:
    """A contiguous copy if the last stride is not 1 or memory is repeated (stride 0).

    Rounding depends on the memory layout, which must not depend on whether masked values were replaced.
    """
    strides = x.stride()
    return x if (strides[-1] == 1 or x.shape[-1] == 1) and 0 not in strides else x.contiguous()


def _equal_widths(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pad with zeros to one width: zeros add nothing to a score, and the caller drops the extra outputs."""
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


def _additive(bias: Tensor | None, q: Tensor) -> Tensor | None:
    """The bias in a dtype that PyTorch accepts: float32 for half precision on the CPU, the dtype of q elsewhere."""
    if bias is None:
        return None
    return bias.to(computing_dtype(q) if q.device.type == "cpu" else q.dtype)
