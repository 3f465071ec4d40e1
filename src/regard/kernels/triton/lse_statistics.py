"""What can be told of attention once its LSE is known, from q, k and that: whoever has computed it, and his output.

In Triton two passes at most: one that owns keys, for the map, what was received, distances and the first key's share;
one that owns queries, for the strongest keys and the entropy. On a Hopper map, received and strongest have one each.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.results import at_first_keys, average, top_of_text, who_looks
from regard.kernels.tiles import Bins
from regard.kernels.triton.exact_weights import rectangle
from regard.kernels.triton.key_sums import sums
from regard.kernels.triton.mask_bands import sight_of
from regard.kernels.triton.top_keys import of_queries
from regard.masks import BoundMask
from regard.padding import Padding, without_rows
from regard.records import See, Statistics


@torch.no_grad()
def afterwards(
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
    """What `see` asks for. q B H T E, k B G S E; lse B H T in float32, nats, -inf for a query that sees nothing.

    threshold  see `of_queries`
    """
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap}
    T, S = q.shape[2], k.shape[2]
    text = None if padding is None else padding.queries
    lse = without_rows(lse, text, -torch.inf)  # so that what is padding weighs nothing
    count = who_looks(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    bins = Bins.of(T, S, see)
    pooled = received = distance = first = None
    if bins is not None or see.received or see.distance:
        offsets = None if padding is None else padding.offsets(T, S)
        asked: dict[str, Any] = {
            "bins": bins,
            "received": see.received,
            "distance": see.distance,
            "offsets": offsets,
        }
        pooled, received, distance = sums(q, k, lse, sight_of(mask), scale=scale, softcap=softcap, **asked)
    if see.sink and received is not None:
        first = received[..., :1].sum(-1) if padding is None else at_first_keys(received, padding)
    elif see.sink and padding is not None and padding.keys is not None:
        first = _sum_of_first(q, k, lse, padding, **options)
    elif see.sink:  # not worth a pass over all keys
        first = rectangle(q, k, lse, slice(0, T), slice(0, min(1, S)), **options).sum((-2, -1))
    if pooled is not None and bins is not None:
        average(pooled, lse, bins)
    top = entropy = None
    if see.top or see.entropy:
        top, entropy = of_queries(q, k, lse, **options, top=see.top, entropy=see.entropy, threshold=threshold)
    return Statistics(
        map=pooled,
        lse=lse if see.lse or see.qk else None,
        entropy=entropy,
        received=received if see.received else None,
        top=None if top is None else top_of_text(top.indices, top.weights, text),
        sink=None if first is None or count is None or not see.sink else first / count,
        distance=None if distance is None or count is None else distance / count[..., None],
    )


def _sum_of_first(
    q: Tensor, k: Tensor, lse: Tensor, padding: Padding, *, mask: BoundMask | None, scale: float, softcap: float | None
) -> Tensor:
    """What the first key of each text received, B H: one column, of another key in each sample."""
    B, G, S, E = k.shape
    first = padding.first_keys()
    assert first is not None
    own = k.gather(2, first[:, None, None, None].expand(B, G, 1, E))
    weights = rectangle(q, own, lse, slice(0, q.shape[2]), slice(0, 1), scale=scale, softcap=softcap)[..., 0]  # B H T
    if mask is not None:
        flagged = torch.arange(S, device=k.device) == first[:, None, None]  # B 1 S
        weights = weights.masked_fill(~mask.sees(flagged), 0)
    return weights.sum(-1)
