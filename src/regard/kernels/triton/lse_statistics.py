"""`statistics_from_lse`: runs the passes of `key_sums` and `top_keys` that `see` needs, for a call with known LSE.

At most two passes in Triton: one whose programs own keys, for map, received attention, distances and the sink; one
whose programs own queries, for top keys and entropy. On Hopper, map, received attention and top keys have one pass
each.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.results import at_first_keys, attending, average, top_without_padding
from regard.kernels.tiles import Bins
from regard.kernels.triton.exact_weights import rectangle
from regard.kernels.triton.key_sums import sum_over_queries
from regard.kernels.triton.mask_bands import bands_of
from regard.kernels.triton.top_keys import query_statistics
from regard.masks import BoundMask
from regard.padding import Padding, without_rows
from regard.records import See, Statistics


@torch.no_grad()
def statistics_from_lse(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    *,
    mask: BoundMask | None = None,
    scale: float,
    softcap: float | None = None,
    see: See,
    threshold: Tensor | None = None,
    padding: Padding | None = None,
) -> Statistics:
    """The statistics in `see`. q is B H T E, k is B G S E; lse is B H T, float32, nats, -inf for fully masked queries.

    threshold  see `query_statistics`
    """
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap}
    T, S = q.shape[2], k.shape[2]
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
        pooled, received, distance = sum_over_queries(
            q, k, lse, bands_of(mask), scale=scale, softcap=softcap, **request
        )
    if see.sink and received is not None:
        first = received[..., :1].sum(-1) if padding is None else at_first_keys(received, padding)
    elif see.sink and padding is not None and padding.keys is not None:
        first = _first_key_sum(q, k, lse, padding, **options)
    elif see.sink:  # one column needs no pass over all keys
        first = rectangle(q, k, lse, slice(0, T), slice(0, min(1, S)), **options).sum((-2, -1))
    if pooled is not None and bins is not None:
        average(pooled, lse, bins)
    top = entropy = None
    if see.top or see.entropy:
        top, entropy = query_statistics(q, k, lse, **options, top=see.top, entropy=see.entropy, threshold=threshold)
    return Statistics(
        map=pooled,
        lse=lse if see.lse or see.qk else None,
        entropy=entropy,
        received=received if see.received else None,
        top=None if top is None else top_without_padding(top.indices, top.weights, is_text),
        sink=None if first is None or count is None or not see.sink else first / count,
        distance=None if distance is None or count is None else distance / count[..., None],
    )


def _first_key_sum(
    q: Tensor, k: Tensor, lse: Tensor, padding: Padding, *, mask: BoundMask | None, scale: float, softcap: float | None
) -> Tensor:
    """The weight received by the first key of each text, B H: one column, a different key in each sample."""
    B, G, S, E = k.shape
    first = padding.first_keys()
    assert first is not None
    first_key_rows = k.gather(2, first[:, None, None, None].expand(B, G, 1, E))
    weights = rectangle(q, first_key_rows, lse, slice(0, q.shape[2]), slice(0, 1), scale=scale, softcap=softcap)[
        ..., 0
    ]  # B H T
    if mask is not None:
        is_first_key = torch.arange(S, device=k.device) == first[:, None, None]  # B 1 S
        weights = weights.masked_fill(~mask.sees(is_first_key), 0)
    return weights.sum(-1)
