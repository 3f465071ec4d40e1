"""The statistics of attention that another kernel has computed; its output stays as it is.

They follow from q, k and its LSE. Where it let none out, one pass of our own over the scores gives the LSE, and map and
entropy with it.
"""

import torch
from torch import Tensor

from regard.kernels.triton.afterwards import afterwards
from regard.kernels.triton.attention import attention
from regard.masks import BoundMask
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
) -> Statistics:
    """What `see` asks for. q B H T E, k B G S E; lse B H T in nats, whatever it says of queries that see nothing."""
    if lse is None or _is_one_pass(see):
        values = k[..., :1]  # nobody wants an output, so it is to cost as little as can be
        return attention(q, k, values, mask=mask, scale=scale, softcap=softcap, see=see)[1]
    lse = _settled(lse, mask, k.shape[2])
    return afterwards(q, k, lse, mask=mask, scale=scale, softcap=softcap, see=see)


def _is_one_pass(see: See) -> bool:
    """Whether all of it comes from one pass over queries, where two would follow from the LSE."""
    return bool(see.map and see.entropy) and not (see.received or see.distance or see.top)


def _settled(lse: Tensor, mask: BoundMask | None, S: int) -> Tensor:
    """A copy in float32 that is -inf for queries that see nothing: there kernels say 0, or inf, as they like."""
    lse = lse.to(torch.float32, copy=True)
    if mask is not None and S:
        return lse.masked_fill_(~mask.sees(torch.ones(len(lse), 1, S, dtype=torch.bool, device=lse.device)), -torch.inf)
    return lse if S else lse.fill_(-torch.inf)
