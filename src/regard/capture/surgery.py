"""What edits do to attention: edges hidden, a pattern laid in the place of another, heads silenced.

Plain differentiable functions on B H T S. Each ends in one attention or one softmax, so that a watch sees what was
made of it. Which module is running, and why, is not known here.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.axes import Shape
from regard.capture.edits import Edit
from regard.capture.positions import HIDING
from regard.errors import ArgumentError, ShapeError
from regard.memory import free_beside, require

WORTH_ASKING = 2**24
"""Edges from which on one asks first whether there is room for a mask of them."""

Fused = Callable[..., Tensor]


def edited_attention(
    fused: Fused, edits: list[Edit], q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any], first: int | None
) -> Tensor:
    """The output of `scaled_dot_product_attention` with the edits, B H T Ev; its first query stands at `first`."""
    shape = (*q.shape[:-1], k.shape[-2])
    frozen = _frozen(edits, shape, v)
    if frozen is not None:
        weights = _weights(*frozen, edits, first, torch.float32).to(v.dtype)
        v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1) if options.get("enable_gqa") else v
        return silenced(F.dropout(weights, options.get("dropout_p", 0.0)) @ v, edits)
    for edit in edits:
        if edit.cuts:
            keep = kept(edit, shape, first, q)
            options["attn_mask"] = _masked(options.get("attn_mask"), options.pop("is_causal", False), keep)
    return silenced(fused(q, k, v, **options), edits)


def edited_softmax(
    scores: Tensor, edits: list[Edit], dtype: torch.dtype | None, first: int | None, sinks: int = 0
) -> Tensor:
    """The weights of a softmax along the last axis with the edits, B H T S.

    The last `sinks` columns are no keys, but learned scores that take weight away and give nothing.
    """
    dtype = dtype or scores.dtype
    frozen = _frozen(edits, (*scores.shape[:-1], scores.shape[-1] - sinks), scores)
    if frozen is None:
        return silenced(_weights(scores, None, edits, first, dtype, sinks), edits)
    weights = _weights(*frozen, edits, first, torch.float32).to(dtype)
    return silenced(F.pad(weights, (0, sinks)), edits)


def _weights(
    scores: Tensor, share: Tensor | None, edits: list[Edit], first: int | None, dtype: torch.dtype, sinks: int = 0
) -> Tensor:
    """The softmax of what the cuts leave, times the share of each row: 0, with gradient 0, where that is 0."""
    before, shape = scores, (*scores.shape[:-1], scores.shape[-1] - sinks)
    for edit in edits:
        if edit.cuts:
            keep = F.pad(kept(edit, shape, first, scores), (0, sinks), value=True)
            scores, seeing = _hidden(scores, keep, before)
            share = seeing if share is None else share * seeing
    if share is None:
        return torch.softmax(scores, -1, dtype=dtype)
    weights = torch.softmax(scores.masked_fill(share == 0, 0), -1, dtype=dtype)
    return weights * share.to(weights.dtype)


# --- cut -------------------------------------------------------------------------------------------------


def kept(edit: Edit, shape: Shape, first: int | None, like: Tensor) -> Tensor:
    """Who may look where after the cut, broadcasting to `shape`; `first` is the position of the first query."""
    H, T, S = shape[1:]
    if first is None:
        raise ArgumentError("edit-positions", asked=edit.asked, T=T, S=S)
    own = H if any(head is not None for head, _, _ in edit.edges) else 1
    if own * T * S > WORTH_ASKING:  # a mask, and what a kernel makes of it
        require(5 * own * T * S, key="edit-too-large", asked=edit.asked, T=T, S=S, free=free_beside(like))
    if edit.mask is not None:
        seen = edit.mask.bind(shape[:2], T, S, like).block(slice(0, T), slice(0, S))
        seen = torch.as_tensor(seen, device=like.device)
        return seen[(None,) * (4 - seen.dim())].expand(-1, -1, T, S)
    edit.largest = max(edit.largest, (first + T, S))
    keep = torch.ones(own, T, S, dtype=torch.bool)
    for edge in edit.edges:
        head, query, key = edge
        row, col = query - first if query >= 0 else T + query, key if key >= 0 else S + key
        if head is not None:
            _check_head(edit, head, H)
        if 0 <= row < T and 0 <= col < S:
            keep[slice(None) if head is None else head, row, col] = False
            edit.missed.discard(edge)
    return keep.to(like.device)[None]


def _hidden(scores: Tensor, keep: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (or what is added to them) without the edges that were cut, and which rows still see something.

    What a model hides with a large negative number must not come into view because all else was cut. A row of which
    nothing was cut stays what it was, even if the model hid all of it.
    """
    left = scores.masked_fill(~keep, -torch.inf)
    return left, left.amax(-1, keepdim=True) >= before.amax(-1, keepdim=True) - HIDING


def _masked(attn_mask: Tensor | None, causal: bool, keep: Tensor) -> Tensor:
    """The mask of a `scaled_dot_product_attention` call and a cut as one."""
    if causal:  # PyTorch's: counted from the first key
        keep = keep & torch.ones(keep.shape[-2:], dtype=torch.bool, device=keep.device).tril()
    if attn_mask is None:
        return keep
    if attn_mask.dtype == torch.bool:
        return attn_mask & keep
    left, seeing = _hidden(attn_mask, keep, attn_mask)
    return left.masked_fill(~seeing, -torch.inf)


def masking(score_mod: Callable[..., Tensor], keep: Tensor | None, q: Tensor, k: Tensor) -> Callable[..., Tensor]:
    """A score function of `flex_attention` that hides what is not kept, too."""
    if keep is None:
        return score_mod
    whole = keep.expand(*q.shape[:-1], k.shape[-2])

    def masked(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor, *buffers: Any) -> Tensor:
        return torch.where(whole[b, h, i, j], score_mod(score, b, h, i, j, *buffers), -torch.inf)

    return masked


# --- freeze, silence -------------------------------------------------------------------------------------


def _frozen(edits: list[Edit], shape: Shape, like: Tensor) -> tuple[Tensor, Tensor] | None:
    """Scores whose softmax is the latest pattern, B H T S, and what its rows sum to: 1, 0 for what sees nothing."""
    edit = next((edit for edit in reversed(edits) if edit.pattern is not None), None)
    if edit is None or edit.pattern is None:
        return None
    found = edit.pattern.shape
    if found[2:] != shape[2:] or any(size not in (1, all_) for size, all_ in zip(found[:2], shape[:2], strict=True)):
        call = f"{edit.asked.partition('#')[0]}#0"
        raise ShapeError("edit-freeze-shape", asked=edit.asked, found=found, wanted=shape, call=call)
    weights = torch.as_tensor(edit.pattern.weights(), device=like.device).float().expand(shape)
    return weights.log(), weights.sum(-1, keepdim=True)


def silenced(x: Tensor, edits: Iterable[Edit]) -> Tensor:
    """Weights or outputs, B H T ·, with 0 for the heads that are to be silent."""
    for edit in edits:
        if edit.heads:
            _check_head(edit, max(edit.heads), x.shape[1])
            speaking = torch.ones(x.shape[1], 1, 1, device=x.device, dtype=x.dtype)
            speaking[list(edit.heads)] = 0
            x = x * speaking
    return x


def _check_head(edit: Edit, head: int, H: int) -> None:
    if head >= H:
        raise ArgumentError("edit-head-range", asked=edit.asked, head=head, H=H, last=H - 1)
