"""`statistics_from_lse`: runs the passes of `key_sums` and `top_keys` that `see` needs, for a call with known LSE.

At most two passes in Triton: one whose programs own keys, for map, received attention, distances and the sink; one
whose programs own queries, for top keys, entropy and the largest score. On Hopper, map, received attention and top
keys have one pass each.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.chunked.results import at_first_keys, attending, average, top_without_padding
from regard.kernels.tiles import Bins
from regard.kernels.triton.exact_weights import rectangle
from regard.kernels.triton.key_sums import sum_over_queries
from regard.kernels.triton.mask_bands import bands_of
from regard.kernels.triton.top_keys import query_statistics
from regard.padding import Padding, without_rows
from regard.records import Statistics


@torch.no_grad()
def statistics_from_lse(call: AttentionCall, lse: Tensor, *, threshold: Tensor | None = None) -> Statistics:
    """The statistics in `see`; lse is B H T, float32, nats, -inf for fully masked queries. The values are not used.

    threshold  see `query_statistics`
    """
    see, padding = call.see, call.padding
    assert see is not None
    T, S = call.q.shape[2], call.k.shape[2]
    is_text = None if padding is None else padding.queries
    lse = without_rows(lse, is_text, -torch.inf)  # so that padding has no weight
    count = attending(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    bins = Bins.of(T, S, see)
    pooled = received = distance = first = None
    if bins is not None or see.received or see.distance:
        offsets = None if padding is None else padding.offsets(T, S)
        request: dict[str, Any] = {
            "bins": bins,
            "received": see.received,
            "distance": see.distance,
            "offsets": offsets,
        }
        pooled, received, distance = sum_over_queries(call, lse, bands_of(call.bound), **request)
    if see.sink and received is not None:
        first = received[..., :1].sum(-1) if padding is None else at_first_keys(received, padding)
    elif see.sink and padding is not None and padding.keys is not None:
        first = _first_key_sum(call, lse, padding)
    elif see.sink:  # one column needs no pass over all keys
        first = rectangle(call, lse, slice(0, T), slice(0, min(1, S))).sum((-2, -1))
    if pooled is not None and bins is not None:
        average(pooled, lse, bins)
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
        sink=None if first is None or count is None or not see.sink else first / count,
        distance=None if distance is None or count is None else distance / count[..., None],
    )


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
