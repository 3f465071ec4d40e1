"""The map alone, from PyTorch's own fused kernel: one call per bin of keys, then a merge.

The kernel gives the LSE of its bin for free, and exp(LSE of a bin − LSE of the row) is the bin's share of the row. The
outputs of the bins are merged by the same shares as they come. Faster than a pass of our own where bins are wide, and
it says nothing about single keys. Only for the CPU, where the kernel lets the LSE out and the merge stays in the cache.
"""

import torch
from torch import Tensor

from regard.kernels.chunked.results import Results
from regard.kernels.chunked.scores import Slab
from regard.kernels.tiles import Bins
from regard.records import See

NARROWEST = 64
"""Keys in a bin from which on a call per bin is worth its while."""


def suits(q: Tensor, slab: Slab, see: See | None, bins: Bins | None) -> bool:
    """Whether this way can do what is asked, and is the quicker one."""
    if bins is None or see is None or see.entropy or see.received or see.top or see.distance:
        return False
    if q.device.type != "cpu" or q.dtype not in (torch.float32, torch.float64):
        return False  # in half precision the merge would round once per bin
    plain = slab.bias is None and slab.softcap is None and slab.q.shape[-1] == slab.v.shape[-1]
    square = slab.q.shape[-2] == slab.k.shape[-2]
    return plain and bins.wide >= NARROWEST and (slab.mask is None or (slab.mask.is_causal and square))


def attend_by_bins(slab: Slab, bins: Bins, results: Results) -> None:
    """One head: writes its output (T, Ev), LSE (T) and map, the latter still as sums over the rows of a bin."""
    out, lse, pooled = results.out, results.lse, results.map
    assert pooled is not None
    causal = slab.mask is not None
    T, S = slab.q.shape[0], slab.k.shape[0]
    of_bins = torch.full((bins.C, T), -torch.inf, dtype=lse.dtype)
    for c in range(bins.C):
        keys = slice(c * bins.wide, min(S, (c + 1) * bins.wide))
        # Nobody before the first key of a bin sees it, and from there on the kernel's own causal mask is right.
        first = keys.start if causal else 0
        part, part_lse = _fused(slab.q[first:], slab.k[keys], slab.v[keys], causal)
        of_bins[c, first:] = part_lse
        if c == 0:
            out.copy_(part)
            lse.copy_(part_lse)
        else:
            share = torch.sigmoid(part_lse - lse[first:])  # of the keys so far
            out[first:].lerp_(part, share[:, None])
            lse[first:] = torch.logaddexp(lse[first:], part_lse)
    shares = (of_bins - lse).exp_()  # C T
    padded = torch.nn.functional.pad(shares, (0, bins.R * bins.high - T))
    pooled.copy_(padded.unflatten(-1, (bins.R, bins.high)).sum(-1).T)
    if results.first is not None:
        results.first.copy_((slab.q @ slab.k[0] - lse).exp_().sum())  # everyone sees the first key


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """PyTorch's CPU kernel for one head, with its LSE; the queries are scaled already."""
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q[None, None], k[None, None], v[None, None], 0.0, causal, scale=1.0
    )
    return out[0, 0], lse.reshape(-1)
