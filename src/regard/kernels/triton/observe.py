"""The statistics of attention computed by another kernel, whose output stays unchanged.

They are computed from q, k and its LSE. If it returned no LSE, one pass over the scores computes it together with map
and entropy.
"""

import torch
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.attention import attention
from regard.kernels.triton.lse_statistics import statistics_from_lse
from regard.kernels.triton.mask_bands import bands_of
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
    """The statistics in `see`. q is B H T E, k is B G S E; lse is B H T in nats, any value for fully masked queries."""
    on_hopper = _hopper_supports(q, k, mask, scale, softcap, see)
    if lse is None or (see.entropy and padding is None and (on_hopper or _is_one_pass(see))):
        values = k if on_hopper else k[..., :1]
        return attention(q, k, values, mask=mask, scale=scale, softcap=softcap, see=see, padding=padding)[1]
    lse = _masked_lse(lse, mask, k.shape[2])
    return statistics_from_lse(q, k, lse, mask=mask, scale=scale, softcap=softcap, see=see, padding=padding)


def _is_one_pass(see: See) -> bool:
    """Whether one pass over queries computes entropy and all else, where computing from the LSE needs two."""
    return see.map is not None and not (see.received or see.distance or see.top)


def _hopper_supports(
    q: Tensor, k: Tensor, mask: BoundMask | None, scale: float, softcap: float | None, see: See
) -> bool:
    """Whether the faster Hopper kernels support the call with k in the place of the values, which are not needed.

    They require values as wide as keys, and still need less time than the other kernels with a single column.
    """
    if not hopper.is_available(q.device):
        return False
    from regard.kernels.triton.hopper.launch import supports

    bins = Bins.of(q.shape[2], k.shape[2], see)
    return supports(q, k, k, bands=bands_of(mask), scale=scale, softcap=softcap, bins=bins)


def _masked_lse(lse: Tensor, mask: BoundMask | None, S: int) -> Tensor:
    """A float32 copy that is -inf for fully masked queries: other kernels return 0 or inf there."""
    lse = lse.to(torch.float32, copy=True)
    if mask is None:
        return lse if S else lse.fill_(-torch.inf)
    every_key = torch.ones(1, 1, S, dtype=torch.bool, device=lse.device)
    return lse.masked_fill_(~mask.sees(every_key), -torch.inf)
