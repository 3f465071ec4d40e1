"""The kernels of this room as one backend: the output, and everything that `see` asks for.

One pass gives the output, LSE, entropy and map. What is received, the strongest keys, distances and the sink need the
LSE beforehand, and follow from q, k and it.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.kernels.chunked.results import Results, finish
from regard.kernels.tiles import Bins
from regard.kernels.triton.launching import Asked, Told, forward
from regard.kernels.triton.rectangles import rectangle
from regard.kernels.triton.second_map import sums
from regard.kernels.triton.sight import sight_of
from regard.kernels.triton.strongest import of_queries
from regard.masks import BoundMask
from regard.records import See, Statistics


@torch.no_grad()
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
    asked = Asked() if see is None else Asked(lse=not see.nothing, entropy=see.entropy, bins=bins)
    told = forward(q, k, v, sight_of(mask), scale=scale, softcap=softcap, asked=asked)
    if see is None or told.lse is None:
        return told.out, Statistics()
    return told.out, _statistics(q, k, told, told.lse, mask, scale, softcap, see, bins)


def _statistics(
    q: Tensor,
    k: Tensor,
    told: Told,
    lse: Tensor,
    mask: BoundMask | None,
    scale: float,
    softcap: float | None,
    see: See,
    bins: Bins | None,
) -> Statistics:
    """What the forward told, and what follows from its LSE."""
    results = Results(out=told.out, lse=lse, map=told.sums, entropy=told.entropy)
    distance = None
    if see.received or see.distance:
        columns = sums(q, k, lse, mask=mask, scale=scale, softcap=softcap, distance=see.distance)
        results.received = columns.received if see.received else None
        distance = columns.distance
    if see.top:
        top = of_queries(q, k, lse, mask=mask, scale=scale, softcap=softcap, top=see.top).top
        assert top is not None
        results.top_indices, results.top_weights = top
    if see.sink:
        first = slice(0, min(1, k.shape[2]))
        whole = rectangle(q, k, lse, slice(0, q.shape[2]), first, mask=mask, scale=scale, softcap=softcap)
        results.first = whole.sum((-2, -1))
    statistics = finish(results, see if distance is None else replace(see, distance=False), bins)
    if distance is None:
        return statistics
    looking = (lse != -torch.inf).sum(-1, keepdim=True).clamp(min=1)
    return statistics._replace(distance=distance / looking)
