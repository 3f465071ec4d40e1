"""The Triton kernels as one backend: the output and every requested statistic; or the statistics alone (`observe`).

One pass computes output, LSE, entropy and map, with gradients through all of them, and the largest score of each
query. Received attention, top keys, distances and the sink need the LSE first; they are computed from q, k and the LSE.

`observe` is for attention that another kernel computed, and leaves its output unchanged. If that kernel returned no
LSE, the single pass computes it together with map and entropy.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.chunked.results import average
from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.autograd import attention_with_gradient
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.lse_statistics import statistics_from_lse
from regard.kernels.triton.mask_bands import bands_of, mask_padding_queries
from regard.kernels.triton.support import ForwardRequest, ForwardResult
from regard.masks import BoundMask
from regard.padding import without_rows
from regard.records import See, Statistics


def attention(call: AttentionCall) -> tuple[Tensor, Statistics]:
    """Output B H T Ev and the statistics, for a call that `refusal` accepts: for example, without a bias.

    With padding, map and entropy come from a second pass, because the first one includes padding queries. If they need
    gradients, they come from a second forward in which padding queries are fully masked.
    """
    assert call.bias is None
    see, padding, k = call.see, call.padding, call.k
    if see is None or padding is None:
        return _attention(call)
    if see.differentiable:
        out, _ = _attention(replace(call, see=None))
        bound = call.bound if padding.queries is None else mask_padding_queries(call.bound, padding.queries, k.shape[2])
        return out, _attention(replace(call, v=k[..., :1], bound=bound))[1]
    result = _forward(call, ForwardRequest(lse=True, maximum=see.max_score))
    assert result.lse is not None
    statistics = statistics_from_lse(replace(call, see=replace(see, max_score=False)), result.lse.detach())
    maximum = None if result.maximum is None else without_rows(result.maximum, padding.queries, -torch.inf)
    return result.out, statistics._replace(max_score=maximum)


def _attention(call: AttentionCall) -> tuple[Tensor, Statistics]:
    """The same, with the map and the entropy over all attending queries."""
    see = call.see
    bins = Bins.of(call.q.shape[2], call.k.shape[2], see)
    request = (
        ForwardRequest()
        if see is None
        else ForwardRequest(
            lse=not see.is_empty, maximum=see.max_score, entropy=see.entropy, bins=bins, top=see.top or 0
        )
    )
    result = _forward(call, request)
    if see is None or result.lse is None:
        return result.out, Statistics()
    rest = replace(see, map=None, entropy=False, max_score=False)
    lse, entropy, sums = (_own_copy(x, see.differentiable) for x in (result.lse, result.entropy, result.sums))
    assert lse is not None
    statistics = statistics_from_lse(replace(call, see=rest), lse.detach(), threshold=result.threshold)
    if sums is not None and bins is not None:
        average(sums, lse.detach(), bins)
    lse = None if statistics.lse is None else lse
    return result.out, statistics._replace(map=sums, entropy=entropy, lse=lse, max_score=result.maximum)


def _forward(call: AttentionCall, request: ForwardRequest) -> ForwardResult:
    """The result of the single pass, with a backward if a gradient is needed."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (call.q, call.k, call.v)):
        return attention_with_gradient(call, request)
    return forward(call, bands_of(call.bound), request)


def _own_copy(x: Tensor | None, differentiable: bool) -> Tensor | None:
    """A copy that the caller may change: the backward needs the kernel's own tensor unchanged."""
    if x is None or not x.requires_grad:
        return x
    return x.clone() if differentiable else x.detach().clone()


# --- attention computed by another kernel ------------------------------------------------------------------


@torch.no_grad()
def observe(call: AttentionCall, lse: Tensor | None = None) -> Statistics:
    """The statistics in `see`; lse is B H T in nats, any value for fully masked queries. The values are not used."""
    k, see = call.k, call.see
    assert see is not None
    on_hopper = _hopper_supports(call)
    if lse is None or ((see.entropy or see.max_score) and call.padding is None and (on_hopper or _is_one_pass(see))):
        return attention(replace(call, v=k if on_hopper else k[..., :1]))[1]
    return statistics_from_lse(call, _masked_lse(lse, call.bound, k.shape[2]))


def _is_one_pass(see: See) -> bool:
    """Whether one pass over queries computes all of it, where computing from the LSE needs two."""
    return see.map is not None and not (see.received or see.distance or see.top)


def _hopper_supports(call: AttentionCall) -> bool:
    """Whether the faster Hopper kernels support the call with k in the place of the values, which are not needed.

    They require values as wide as keys, and still need less time than the other kernels with a single column.
    """
    if not hopper.is_available(call.q.device):
        return False
    from regard.kernels.triton.hopper.launch import supports

    bins = Bins.of(call.q.shape[2], call.k.shape[2], call.see)
    return supports(call, bands_of(call.bound), bins)


def _masked_lse(lse: Tensor, mask: BoundMask | None, S: int) -> Tensor:
    """A float32 copy that is -inf for fully masked queries: other kernels return 0 or inf there."""
    lse = lse.to(torch.float32, copy=True)
    if mask is None:
        return lse if S else lse.fill_(-torch.inf)
    every_key = torch.ones(1, 1, S, dtype=torch.bool, device=lse.device)
    return lse.masked_fill_(~mask.sees(every_key), -torch.inf)
