"""The kernels of this room as one backend: the output, and everything that `see` asks for.

One pass gives the output, LSE, entropy and map. What is received, the strongest keys, distances and the sink need the
LSE beforehand, and follow from q, k and it.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.kernels.chunked.results import average
from regard.kernels.tiles import Bins
from regard.kernels.triton.launching import Asked, forward
from regard.kernels.triton.observe import observe
from regard.kernels.triton.sight import sight_of
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
    rest = replace(see, map=None, entropy=False)
    found = observe(q, k, told.lse, mask=mask, scale=scale, softcap=softcap, see=rest)
    if bins is not None and told.sums is not None:
        average(told.sums, told.lse, bins)
    return told.out, found._replace(map=told.sums, entropy=told.entropy)
