"""The statistics of attention that another kernel has computed; its output stays as it is.

They follow from q, k and its LSE. Where it let none out, one pass of our own over the scores gives the LSE, and map and
entropy with it.
"""

import torch
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.attention import attention
from regard.kernels.triton.lse_statistics import afterwards
from regard.kernels.triton.mask_bands import sight_of
from regard.masks import BoundMask
from regard.padding import Padding
from regard.records import See, Statistics


@torch.no_grad()
def observe(
    q: Tensor,
    k: Tensor,
    lse: Tensor | None = None,
    *,
    mask: BoundMask | None = None,
    scale: float,
    softcap: float | None = None,
    see: See,
    padding: Padding | None = None,
) -> Statistics:
    """What `see` asks for. q B H T E, k B G S E; lse B H T in nats, whatever it says of queries that see nothing."""
    is_quick = _is_for_hopper(q, k, mask, scale, softcap, see)
    if lse is None or (see.entropy and padding is None and (is_quick or _is_one_pass(see))):
        values = k if is_quick else k[..., :1]
        return attention(q, k, values, mask=mask, scale=scale, softcap=softcap, see=see, padding=padding)[1]
    lse = _settled(lse, mask, k.shape[2])
    return afterwards(q, k, lse, mask=mask, scale=scale, softcap=softcap, see=see, padding=padding)


def _is_one_pass(see: See) -> bool:
    """Whether entropy and all else come from one pass over queries, where two would follow from the LSE."""
    return see.map is not None and not (see.received or see.distance or see.top)


def _is_for_hopper(q: Tensor, k: Tensor, mask: BoundMask | None, scale: float, softcap: float | None, see: See) -> bool:
    """Whether the quicker kernels take the call if k stands for the values, which nobody wants.

    They want them as wide as keys, and need less time for all of it than the others for a single column.
    """
    if not hopper.is_at_hand(q.device):
        return False
    from regard.kernels.triton.hopper.launch import fits

    bins = Bins.of(q.shape[2], k.shape[2], see)
    return fits(q, k, k, sight=sight_of(mask), scale=scale, softcap=softcap, bins=bins)


def _settled(lse: Tensor, mask: BoundMask | None, S: int) -> Tensor:
    """A copy in float32 that is -inf for queries that see nothing: there kernels say 0, or inf, as they like."""
    lse = lse.to(torch.float32, copy=True)
    if mask is None:
        return lse if S else lse.fill_(-torch.inf)
    every_key = torch.ones(1, 1, S, dtype=torch.bool, device=lse.device)
    return lse.masked_fill_(~mask.sees(every_key), -torch.inf)
