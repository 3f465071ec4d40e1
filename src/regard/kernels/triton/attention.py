"""The Triton kernels as one backend: the output and every requested statistic.

One pass computes output, LSE, entropy and map, with gradients through all of them. Received attention, top keys,
distances and the sink need the LSE first; they are computed from q, k and the LSE.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.results import average
from regard.kernels.tiles import Bins
from regard.kernels.triton.autograd import attention_with_gradient
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.lse_statistics import statistics_from_lse
from regard.kernels.triton.mask_bands import bands_of, mask_padding_queries
from regard.kernels.triton.support import ForwardRequest, ForwardResult
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
    """Output B H T Ev and the statistics, for a call that `refusal` accepts: for example, without a bias.

    With padding, map and entropy come from a second pass, because the first one includes padding queries. If they need
    gradients, they come from a second forward in which padding queries are fully masked.
    """
    assert bias is None
    if see is None or padding is None:
        return _attention(q, k, v, mask, scale, softcap, see)
    if see.differentiable:
        out, _ = _attention(q, k, v, mask, scale, softcap, None)
        mask = mask if padding.queries is None else mask_padding_queries(mask, padding.queries, k.shape[2])
        return out, _attention(q, k, k[..., :1], mask, scale, softcap, see, padding)[1]
    result = _forward(q, k, v, mask, scale, softcap, ForwardRequest(lse=True))
    assert result.lse is not None
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap, "see": see, "padding": padding}
    return result.out, statistics_from_lse(q, k, result.lse.detach(), **options)


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
    """The same, with the map and the entropy over all attending queries."""
    bins = Bins.of(q.shape[2], k.shape[2], see)
    request = (
        ForwardRequest()
        if see is None
        else ForwardRequest(lse=not see.is_empty, entropy=see.entropy, bins=bins, top=see.top or 0)
    )
    result = _forward(q, k, v, mask, scale, softcap, request)
    if see is None or result.lse is None:
        return result.out, Statistics()
    rest = replace(see, map=None, entropy=False)
    lse, entropy, sums = (_own_copy(x, see.differentiable) for x in (result.lse, result.entropy, result.sums))
    assert lse is not None
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap, "see": rest, "padding": padding}
    statistics = statistics_from_lse(q, k, lse.detach(), threshold=result.threshold, **options)
    if sums is not None and bins is not None:
        average(sums, lse.detach(), bins)
    return result.out, statistics._replace(map=sums, entropy=entropy, lse=None if statistics.lse is None else lse)


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: BoundMask | None,
    scale: float,
    softcap: float | None,
    request: ForwardRequest,
) -> ForwardResult:
    """The result of the single pass, with a backward if a gradient is needed."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        requested: dict[str, Any] = {
            "bins": request.bins,
            "entropy": request.entropy,
            "lse": request.lse,
            "top": request.top,
        }
        return attention_with_gradient(q, k, v, mask=mask, scale=scale, softcap=softcap, **requested)
    return forward(q, k, v, bands_of(mask), scale=scale, softcap=softcap, request=request)


def _own_copy(x: Tensor | None, differentiable: bool) -> Tensor | None:
    """A copy that the caller may change: the backward needs the kernel's own tensor unchanged."""
    if x is None or not x.requires_grad:
        return x
    return x.clone() if differentiable else x.detach().clone()
