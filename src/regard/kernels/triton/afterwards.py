"""What can be told of attention once its LSE is known, from q, k and that: whoever has computed it, and his output.

In Triton two passes at most: one that owns keys, for the map, what was received, distances and the first key's share;
one that owns queries, for the strongest keys and the entropy. On a Hopper map, received and strongest have one each.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.results import average, who_looks
from regard.kernels.tiles import Bins
from regard.kernels.triton.rectangles import rectangle
from regard.kernels.triton.second_map import sums
from regard.kernels.triton.sight import sight_of
from regard.kernels.triton.strongest import of_queries
from regard.masks import BoundMask
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
) -> Statistics:
    """What `see` asks for. q B H T E, k B G S E; lse B H T in float32, nats, -inf for a query that sees nothing.

    threshold  see `of_queries`
    """
    options: dict[str, Any] = {"mask": mask, "scale": scale, "softcap": softcap}
    T, S = q.shape[2], k.shape[2]
    count = who_looks(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    bins = Bins.of(T, S, see)
    pooled = received = distance = first = None
    if bins is not None or see.received or see.distance:
        asked: dict[str, Any] = {"bins": bins, "received": see.received, "distance": see.distance}
        pooled, received, distance = sums(q, k, lse, sight_of(mask), scale=scale, softcap=softcap, **asked)
    if see.sink and received is not None:
        first = received[..., :1].sum(-1)
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
        top=top,
        sink=None if first is None or count is None or not see.sink else first / count,
        distance=None if distance is None or count is None else distance / count[..., None],
    )
