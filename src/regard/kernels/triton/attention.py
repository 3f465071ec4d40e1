"""The kernels of this room as one backend: the output, and everything that `see` asks for.

One pass gives the output, LSE, entropy and map; gradients flow through all of these. What is received, the strongest
keys, distances and the sink need the LSE beforehand, and follow from q, k and it.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.results import average
from regard.kernels.tiles import Bins
from regard.kernels.triton.afterwards import afterwards
from regard.kernels.triton.asked import Asked, Told
from regard.kernels.triton.gradient import attention_with_gradient
from regard.kernels.triton.launching import forward
from regard.kernels.triton.sight import sight_of
from regard.masks import BoundMask
from regard.records import See, Statistics


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    scale: float,
    softcap: float | None = None,
    see: See | None = None,
) -> tuple[Tensor, Statistics]:
    """Output B H T Ev and the statistics, for a call that `refusal` has nothing against: no bias, for example."""
    assert bias is None
    bins = Bins.of(q.shape[2], k.shape[2], see)
    asked = Asked() if see is None else Asked(lse=not see.nothing, entropy=see.entropy, bins=bins, top=see.top or 0)
    told = _told(q, k, v, mask, scale, softcap, asked)
    if see is None or told.lse is None:
        return told.out, Statistics()
    rest = replace(see, map=None, entropy=False)
    lse, entropy, sums = (_apart(x, see.differentiable) for x in (told.lse, told.entropy, told.sums))
    assert lse is not None
    found = afterwards(q, k, lse.detach(), mask=mask, scale=scale, softcap=softcap, see=rest, threshold=told.threshold)
    if sums is not None and bins is not None:
        average(sums, lse.detach(), bins)
    return told.out, found._replace(map=sums, entropy=entropy, lse=None if found.lse is None else lse)


def _told(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: BoundMask | None,
    scale: float,
    softcap: float | None,
    asked: Asked,
) -> Told:
    """What the one pass tells, with a way back where a gradient is wanted."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        tell: dict[str, Any] = {"bins": asked.bins, "entropy": asked.entropy, "lse": asked.lse, "top": asked.top}
        return attention_with_gradient(q, k, v, mask=mask, scale=scale, softcap=softcap, **tell)
    return forward(q, k, v, sight_of(mask), scale=scale, softcap=softcap, asked=asked)


def _apart(x: Tensor | None, differentiable: bool) -> Tensor | None:
    """A statistic that may be changed: on the way back, the kernel's own must be what it was."""
    if x is None or not x.requires_grad:
        return x
    return x.clone() if differentiable else x.detach().clone()
