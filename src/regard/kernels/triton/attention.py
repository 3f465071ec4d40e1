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
from regard.kernels.triton.autograd import attention_with_gradient
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.lse_statistics import afterwards
from regard.kernels.triton.mask_bands import for_text, sight_of
from regard.kernels.triton.support import Asked, Told
from regard.masks import BoundMask
from regard.padding import Padding
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
    padding: Padding | None = None,
) -> tuple[Tensor, Statistics]:
    """Output B H T Ev and the statistics, for a call that `refusal` has nothing against: no bias, for example.

    Beside padding, map and entropy come from a second walk: the first has summed up its queries with the others. Where
    they are to have gradients, from a second forward, in which queries that are padding see nothing.
    """
    assert bias is None
    if see is None or padding is None:
        return _attention(q, k, v, mask, scale, softcap, see)
    if see.differentiable:
        out, _ = _attention(q, k, v, mask, scale, softcap, None)
        mask = mask if padding.queries is None else for_text(mask, padding.queries, k.shape[2])
        return out, _attention(q, k, k[..., :1], mask, scale, softcap, see, padding)[1]
    told = _told(q, k, v, mask, scale, softcap, Asked(lse=True))
    assert told.lse is not None
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap, "see": see, "padding": padding}
    return told.out, afterwards(q, k, told.lse.detach(), **options)


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: BoundMask | None,
    scale: float,
    softcap: float | None,
    see: See | None,
    padding: Padding | None = None,
) -> tuple[Tensor, Statistics]:
    """The same, with the map and the entropy of all queries that see anything."""
    bins = Bins.of(q.shape[2], k.shape[2], see)
    asked = Asked() if see is None else Asked(lse=not see.nothing, entropy=see.entropy, bins=bins, top=see.top or 0)
    told = _told(q, k, v, mask, scale, softcap, asked)
    if see is None or told.lse is None:
        return told.out, Statistics()
    rest = replace(see, map=None, entropy=False)
    lse, entropy, sums = (_apart(x, see.differentiable) for x in (told.lse, told.entropy, told.sums))
    assert lse is not None
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap, "see": rest, "padding": padding}
    found = afterwards(q, k, lse.detach(), threshold=told.threshold, **options)
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
