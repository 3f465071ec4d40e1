"""The Triton kernels as one backend: the output and every requested statistic; or the statistics alone (`observe`).

One pass computes output, LSE, entropy and map, with gradients through all of them, and the largest score of each
query. Received attention, top keys, distances and the sink need the LSE first; they are computed from q, k and the LSE.

`observe` is for attention that another kernel computed, and leaves its output unchanged. If that kernel returned no
LSE, the single pass computes it together with map and entropy.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.chunked.blocks import at_first_keys, attending, average, top_without_padding
from regard.kernels.division import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.autograd import attention_with_gradient
from regard.kernels.triton.forward import forward
from regard.kernels.triton.key_sums import KeySums, map_means, sum_over_queries
from regard.kernels.triton.second_pass import rectangle
from regard.kernels.triton.support import (
    ForwardRequest,
    ForwardResult,
    MaskBands,
    bands_of,
    every_query_attends,
    is_map_of_weights,
    mask_padding_queries,
)
from regard.kernels.triton.top_keys import query_statistics
from regard.masks import BoundMask
from regard.masks.padding import Padding, without_rows
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
    lse, entropy, sums = (_own_copy(x, see.differentiable) for x in (result.lse, result.entropy, result.sums))
    assert lse is not None
    plain = None if sums is None or sums.requires_grad else sums
    rest = replace(call, see=_not_in_one_pass(see, plain is not None))
    statistics = statistics_from_lse(rest, lse.detach(), threshold=result.threshold, sums=plain)
    if sums is not None and plain is None and bins is not None:
        average(sums, lse.detach(), bins)
    lse = None if statistics.lse is None else lse
    return result.out, statistics._replace(map=sums, entropy=entropy, lse=lse, max_score=result.maximum)


@lru_cache(maxsize=64)  # models and loops repeat a request; to validate a new one takes longer than a launch
def _not_in_one_pass(see: See, has_map: bool) -> See:
    """What remains to be computed after the single pass; the means of the map, where it has only sums."""
    return replace(see, map=see.map if has_map else None, entropy=False, max_score=False)


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
    if lse is None or ((see.entropy or see.max_score) and call.padding is None):
        on_hopper = _hopper_supports(call)
        if lse is None or on_hopper or _is_one_pass(see):
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
    if mask is None or not S:
        return lse if S else lse.fill_(-torch.inf)
    if every_query_attends(bands_of(mask)):
        return lse
    every_key = torch.ones(1, 1, S, dtype=torch.bool, device=lse.device)
    return lse.masked_fill_(~mask.sees(every_key), -torch.inf)


# --- statistics of a call with known LSE --------------------------------------------------------------------


@torch.no_grad()
def statistics_from_lse(
    call: AttentionCall,
    lse: Tensor,
    *,
    threshold: Tensor | None = None,
    sums: Tensor | None = None,
) -> Statistics:
    """The statistics in `see`; lse is B H T, float32, nats, -inf for fully masked queries. The values are not used.

    At most two passes in Triton: one whose programs own keys, for map, received attention, distances and the sink; one
    whose programs own queries, for top keys, entropy and the largest score. On Hopper, map, received attention and top
    keys have one pass each. A map with one weight in each bin is written as it is, where no other sum is needed.

    threshold  see `query_statistics`
    sums       the sums of the map, without padding, if known: they become its means in place
    """
    see, padding = call.see, call.padding
    assert see is not None
    T, S = call.q.shape[2], call.k.shape[2]
    is_text = None if padding is None else padding.queries
    lse = without_rows(lse, is_text, -torch.inf)  # so that padding has no weight
    bands, bins = bands_of(call.bound), Bins.of(T, S, see)
    pieces = KeySums(sums, None, None)
    if bins is not None and sums is None and is_map_of_weights(bins, see):
        sums = rectangle(call, lse, slice(0, T), slice(0, S))
    if (bins is not None and sums is None) or see.received or see.distance:
        offsets = None if padding is None else padding.offsets(T, S)
        request: dict[str, Any] = {"received": see.received, "distance": see.distance, "offsets": offsets}
        pieces = sum_over_queries(call, lse, bands, bins=bins if sums is None else None, **request)
    pooled, received, distance = pieces.map if sums is None else sums, pieces.received, pieces.distance
    first, count = _first_key_and_count(call, lse, bands, bins, pooled, received)
    top = entropy = max_score = None
    if see.top or see.entropy or see.max_score:
        wanted: dict[str, Any] = {"top": see.top, "entropy": see.entropy, "max_score": see.max_score}
        top, entropy, max_score = query_statistics(call, lse, **wanted, threshold=threshold)
    return Statistics(
        map=pooled,
        lse=lse if see.lse or see.qk else None,
        max_score=None if max_score is None else without_rows(max_score, is_text, -torch.inf),
        entropy=entropy,
        received=received if see.received else None,
        top=None if top is None else top_without_padding(top.indices, top.weights, is_text),
        sink=first,
        distance=None if distance is None or count is None else distance / count[..., None],
    )


def _first_key_and_count(
    call: AttentionCall,
    lse: Tensor,
    bands: MaskBands,
    bins: Bins | None,
    sums: Tensor | None,
    received: Tensor | None,
) -> tuple[Tensor | None, Tensor | None]:
    """The mean weight of the first key, B H, and the number of attending queries, if they are requested.

    The sums of the map, if any, become means in place.
    """
    see, padding, T, S = call.see, call.padding, call.q.shape[2], call.k.shape[2]
    assert see is not None
    if padding is None and not see.distance and not (see.sink and received is not None):
        is_needed = see.sink or sums is not None
        return (map_means(call, lse, bands, bins, sums, sink=see.sink) if is_needed else None), None
    if sums is not None and bins is not None:
        average(sums, lse, bins)
    count = attending(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    if not see.sink or count is None:
        return None, count
    if received is not None:
        first = received[..., :1].sum(-1) if padding is None else at_first_keys(received, padding)
    elif padding is not None and padding.keys is not None:
        first = _first_key_sum(call, lse, padding)
    else:  # one column needs no pass over all keys
        first = rectangle(call, lse, slice(0, T), slice(0, min(1, S))).sum((-2, -1))
    return first / count, count


def _first_key_sum(call: AttentionCall, lse: Tensor, padding: Padding) -> Tensor:
    """The weight received by the first key of each text, B H: one column, a different key in each sample."""
    k = call.k
    B, G, S, E = k.shape
    first = padding.first_keys()
    assert first is not None
    first_key_rows = k.gather(2, first[:, None, None, None].expand(B, G, 1, E))
    first_keys_only = replace(call, k=first_key_rows, bound=None)
    weights = rectangle(first_keys_only, lse, slice(0, call.q.shape[2]), slice(0, 1))[..., 0]  # B H T
    if call.bound is not None:
        is_first_key = torch.arange(S, device=k.device) == first[:, None, None]  # B 1 S
        weights = weights.masked_fill(~call.bound.sees(is_first_key), 0)
    return weights.sum(-1)
