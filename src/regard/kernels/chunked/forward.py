"""Attention and its statistics over blocks of rows, in torch operations, with gradients; and `observe`.

When only a map with wide bins is requested, PyTorch's fused kernel is called once per bin instead. `observe` computes
the statistics and exact weights of attention computed by another kernel, from q, k and its LSE. On the CPU, Python
threads over heads have one PyTorch thread each: the softmax and products of one block are too small to be divided among
cores; one head per core is faster.
"""

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.errors import BackendError
from regard.kernels.chunked.blocks import (
    Place,
    Results,
    Slab,
    add_block,
    add_top_keys,
    allocate,
    are_heads_alike,
    exact_dtype,
    finish,
    mask_out,
    slabs,
)
from regard.kernels.division import Bins, is_imprecise, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.masks.padding import without_rows
from regard.masks.rules import Band
from regard.records import See, Statistics

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def run_all(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results of `work` on each piece, in order and without gradients; in parallel if there are enough pieces."""
    inference, workers = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def without_gradients(piece: Piece) -> Result:
        # Both settings are per thread, and inference tensors may be written to only in inference mode.
        with torch.inference_mode(inference), torch.no_grad():
            return work(piece)

    if len(pieces) < workers or workers == 1:
        return [without_gradients(piece) for piece in pieces]
    # MKL's number of threads is per process and OpenMP's per thread, but PyTorch sets both at once: the caller's number
    # is set to 1 while the pool works, and then restored.
    pool = _pool(workers)
    torch.set_num_threads(1)
    try:
        return list(pool.map(without_gradients, pieces))
    finally:
        torch.set_num_threads(workers)


class SingleThread:
    """Context manager: one PyTorch thread, for work so small that starting other threads takes longer.

    A class, not a generator: it is entered for every attention call of every token.
    """

    __slots__ = ("_workers",)

    def __enter__(self) -> None:
        self._workers = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *raised: object) -> None:
        torch.set_num_threads(self._workers)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """A pool of `workers` threads, each set to one PyTorch thread."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="regard")
    barrier = threading.Barrier(workers)

    def set_one_thread(_: int) -> None:
        torch.set_num_threads(1)
        barrier.wait()

    list(pool.map(set_one_thread, range(workers)))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads exist only in the parent; a child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)


MIN_BIN_WIDTH = 64
"""Keys in a bin above which one fused call per bin is faster."""


def can_attend_by_bins(q: Tensor, slab: Slab, see: See | None, bins: Bins | None) -> bool:
    """Whether `attend_by_bins` supports the request and is faster."""
    if bins is None or see is None or see.max_score or see.entropy or see.received or see.top or see.distance:
        return False
    if q.device.type != "cpu" or q.dtype not in (torch.float32, torch.float64):
        return False  # in half precision the merge would round once per bin
    plain = slab.bias is None and slab.softcap is None and slab.q.shape[-1] == slab.v.shape[-1]
    square = slab.q.shape[-2] == slab.k.shape[-2]
    return plain and bins.width >= MIN_BIN_WIDTH and (slab.mask is None or (slab.mask.is_causal and square))


def attend_by_bins(slab: Slab, bins: Bins, results: Results) -> None:
    """Compute one head: output (T, Ev), LSE (T) and the map, as sums over the rows of a bin."""
    out, lse, pooled = results.out, results.lse, results.map
    assert pooled is not None
    causal = slab.mask is not None
    T, S = slab.q.shape[0], slab.k.shape[0]
    bin_lse = lse.new_full((bins.C, T), -torch.inf)
    for c in range(bins.C):
        keys = slice(c * bins.width, min(S, (c + 1) * bins.width))
        # No query before the first key of a bin attends to it; from there on the kernel's own causal mask is right.
        first = keys.start if causal else 0
        part, part_lse = _fused(slab.q[first:], slab.k[keys], slab.v[keys], causal)
        bin_lse[c, first:] = part_lse
        if c == 0:
            out.copy_(part)
            lse.copy_(part_lse)
        else:
            share = torch.sigmoid(part_lse - lse[first:])  # share of this bin among the keys so far
            out[first:].lerp_(part, share[:, None])
            lse[first:] = torch.logaddexp(lse[first:], part_lse)
    bin_weights = (bin_lse - lse).exp_()  # C T
    padded = torch.nn.functional.pad(bin_weights, (0, bins.R * bins.height - T))
    pooled.copy_(padded.unflatten(-1, (bins.R, bins.height)).sum(-1).T)
    if results.first is not None:
        results.first.copy_((slab.q @ slab.k[0] - lse).exp_().sum())  # every query attends to the first key


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Output and LSE of PyTorch's CPU kernel for one head; the queries are already scaled."""
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q[None, None], k[None, None], v[None, None], 0.0, causal, scale=1.0
    )
    return out[0, 0], lse.reshape(-1)


ROWS = 128
"""Rows in a block on the CPU: 2 MiB of scores at 4,096 keys."""


def forward(call: AttentionCall) -> tuple[Tensor, Tensor, Statistics]:
    """Output, LSE and statistics; no gradients are recorded."""
    q, see, padding = call.q, call.see, call.padding
    T, S = q.shape[2], call.k.shape[2]
    bins = Bins.of(T, S, see)
    results = allocate(q, S, call.v.shape[-1], bins, see, padding)
    if T and S and q.shape[0] * q.shape[1]:
        pieces = slabs(call)

        def work(piece: tuple[Place, Slab]) -> None:
            slab, slab_results = piece[1], results.at(piece[0])
            if bins is not None and padding is None and can_attend_by_bins(q, slab, see, bins):
                attend_by_bins(slab, bins, slab_results)
            else:
                attend_in_blocks(slab, bins, slab_results)

        run_all(work, pieces)
    return results.out, results.lse, finish(results, see, bins, padding)


def attend_in_blocks(slab: Slab, bins: Bins | None, results: Results) -> None:
    """Compute everything that `results` has tensors for, block by block; the output only if its width is not 0."""
    S, lead = slab.k.shape[-2], slab.q.shape[:-2]
    blocks = slab.blocks(ROWS, bins.height if bins else None)
    largest = max(((rows.stop - rows.start) * (high - low) for rows, low, high in blocks), default=0)
    # New memory for every block would cost page faults.
    buffers = [slab.q.new_empty(lead.numel() * largest) for _ in range(2)]
    for rows, low, high in blocks:
        shape = (*lead, rows.stop - rows.start, high - low)
        size = lead.numel() * shape[-2] * shape[-1]
        scores = slab.scores(rows, low, high, out=buffers[0][:size].view(shape))
        weights = torch.softmax(scores, -1, out=buffers[1][:size].view(shape))
        lse, row_max, above = lse_of_softmax(scores, weights)
        results.lse[..., rows] = lse
        if results.max_score is not None:
            results.max_score[..., rows] = row_max.masked_fill(lse == -torch.inf, -torch.inf)
        if results.out.shape[-1]:
            results.out[..., rows, :] = weights @ slab.v[..., low:high, :]
        if results.top_indices is not None:
            add_top_keys(scores, weights, rows, low, results, S)
        if results.entropy is not None:  # overwrites the scores
            # Both relative to the maximum: the difference of two large, nearly equal numbers has few digits.
            scores.sub_(row_max[..., None])
            results.entropy[..., rows] = above - mean_score(weights, scores, slab.mask, rows, low)
        add_block(weights, rows, low, bins, results)


def mean_score(weights: Tensor, scores: Tensor, mask: BoundMask | None, rows: slice, low: int) -> Tensor:
    """The sum of weight times score in each row; a weight of 0 adds 0 even where its score is -inf."""
    if mask is not None:
        mask_out(scores, mask, rows, low, low + scores.shape[-1], 0.0)
    summed = torch.linalg.vecdot(weights, scores)
    if summed.isnan().any():  # a bias may mask as well
        scores.masked_fill_(scores == -torch.inf, 0)
        summed = torch.linalg.vecdot(weights, scores)
    return summed


def lse_of_softmax(scores: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The LSE of each row, its maximum score, and their difference, computed from the largest weight.

    For a fully masked row they are -inf, 0 and 0, and its weights become 0.
    """
    row_max = scores.amax(-1)
    above = -weights.amax(-1).log()
    lse = row_max + above
    masked = row_max == -torch.inf
    if masked.any():
        weights.masked_fill_(masked[..., None], 0)  # the softmax of a fully masked row is NaN
        lse.masked_fill_(masked, -torch.inf)
        row_max.masked_fill_(masked, 0)
        above.masked_fill_(masked, 0)
    return lse, row_max, above


def backward(call: AttentionCall, out: Tensor, lse: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, from the results of the forward and the gradient of the output."""
    q, k, v = call.q, call.k, call.v
    H, G = q.shape[1], k.shape[1]
    exact = lse.dtype
    d_q = torch.zeros(q.shape, dtype=exact, device=q.device)
    # One part per query head; heads that share a key/value head are summed below.
    d_k = torch.zeros((q.shape[0], H, *k.shape[2:]), dtype=exact, device=q.device)
    d_v = torch.zeros((q.shape[0], H, *v.shape[2:]), dtype=exact, device=q.device)
    grad, out = grad.to(exact), out.to(exact)
    delta = (grad * out).sum(-1)
    if q.shape[2] and k.shape[2] and q.shape[0] * H:
        pieces = slabs(call)

        def work(piece: tuple[Place, Slab]) -> None:
            at, slab = piece
            _backward_slab(slab, grad[at], delta[at], lse[at], call.scale, d_q[at], d_k[at], d_v[at])

        run_all(work, pieces)
    if G != H:
        d_k, d_v = (x.unflatten(1, (G, H // G)).sum(2) for x in (d_k, d_v))
    return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype)


def _backward_slab(
    slab: Slab, grad: Tensor, delta: Tensor, lse: Tensor, scale: float, d_q: Tensor, d_k: Tensor, d_v: Tensor
) -> None:
    for rows, low, high in slab.blocks(ROWS):
        scores = slab.scores(rows, low, high)
        shift = lse[..., rows, None]
        # A fully masked row, or one with scores that are not finite, has no weights and passes no gradient.
        undefined = ~shift.isfinite()
        weights = (scores - shift.masked_fill(undefined, 0)).exp_().masked_fill_(undefined, 0)
        d_v[..., low:high, :] += weights.mT @ grad[..., rows, :]
        d_scores = grad[..., rows, :] @ slab.v[..., low:high, :].mT
        d_scores = weights.mul_(d_scores.sub_(delta[..., rows, None].masked_fill(undefined, 0)))
        if slab.softcap is not None:
            # tanh'(x) = 1 − tanh²(x), and the capped score is softcap · tanh: recomputed without bias and mask.
            plain = Slab(slab.q, slab.k, slab.v, None, None, slab.softcap).scores(rows, low, high)
            d_scores.mul_(1 - (plain / slab.softcap) ** 2)
        d_q[..., rows, :] = (d_scores @ slab.k[..., low:high, :]) * scale
        d_k[..., low:high, :] += d_scores.mT @ slab.q[..., rows, :]  # q is scaled already


def attention(call: AttentionCall) -> tuple[Tensor, Statistics]:
    """Output B H T Ev, differentiable in q, k and v, and the statistics in `see`, which are not differentiable."""
    found: list[Statistics] = []
    return _Attention.apply(call.q, call.k, call.v, call, found), found[0]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, call: AttentionCall, found: list[Statistics]) -> Tensor:
        out, lse, statistics = forward(replace(call, q=q, k=k, v=v))
        found.append(statistics)
        # The Record gets the LSE itself; a caller that changes it there must not change it here.
        ctx.save_for_backward(q, k, v, out, lse.clone())
        # The arrays of the call are saved above and nowhere else.
        ctx.options = {"scale": call.scale, "bound": call.bound, "bias": call.bias, "softcap": call.softcap}
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # only under create_graph=True
            raise BackendError("no-second-gradients")
        q, k, v, out, lse = ctx.saved_tensors
        return (*backward(AttentionCall(q, k, v, **ctx.options), out, lse, grad), None, None)


MAX_SCORES_TOGETHER = 2**14
"""Scores of a head up to which all heads are computed together instead of in threads."""


@torch.no_grad()
def observe(call: AttentionCall, lse: Tensor | None = None) -> Statistics:
    """The statistics in `see`; lse is B H T, if the other kernel returned it. The values are not used."""
    q, see, padding = call.q, call.see, call.padding
    assert see is not None
    T, S = q.shape[2], call.k.shape[2]
    if lse is not None and is_known(call, lse):
        return Statistics(lse=without_rows(lse, None if padding is None else padding.queries, -torch.inf).clone())
    bins = Bins.of(T, S, see)
    results = allocate(q, S, 0, bins, see, padding)
    if T and S and q.shape[0] * q.shape[1]:

        def work(piece: tuple[Place, Slab]) -> None:
            place, slab = piece
            attend_in_blocks(slab, bins, results.at(place))

        if q.device.type != "cpu" or T * S <= MAX_SCORES_TOGETHER:
            work(((), _all_heads(call)))
        else:
            run_all(work, slabs(replace(call, v=call.k[..., :0]), _heads_together(call)))
    return finish(results, see, bins, padding)


SCORES_TOGETHER = 2**18
"""Scores in a block of several heads: of short rows, one head has too few for the time that the operators need."""


def _heads_together(call: AttentionCall) -> int:
    """The number of heads in a slab: whole groups that share keys, or an equal part of one."""
    if not are_heads_alike(call):
        return 1
    (B, H), group_size = call.q.shape[:2], call.q.shape[1] // max(1, call.k.shape[1])
    workers = -(-B * H // torch.get_num_threads())
    most = min(workers, SCORES_TOGETHER // (ROWS * call.k.shape[2]))
    return max(1, most // group_size * group_size or math.gcd(most, group_size))


def all_weights(call: AttentionCall, lse: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """All weights B H T S, their LSE B H T, and their scores, for small calls; arguments as for `observe`."""
    q, k = call.q, call.k
    is_plain = call.bound is None and call.bias is None and call.softcap is None
    if is_plain and q.dtype == torch.float32 and q.shape[1] == k.shape[1]:
        scores = torch.matmul(q * call.scale, k.mT)  # the same, faster: a decoder makes a dozen calls per token
    else:
        scores = _all_heads(call).scores(slice(0, q.shape[2]), 0, k.shape[2])
    weights = torch.softmax(scores, -1)
    if lse is not None and is_reliable(lse, call):
        return weights, lse.clone(), scores
    return weights, lse_of_softmax(scores, weights)[0], scores


def scores_of_rows(q: Tensor, parts: Sequence[Tensor], scale: float, counts: Sequence[int]) -> Tensor:
    """Scores B H T S of rows where row i attends to the first `counts[i]` keys, as for tokens generated one by one.

    `parts` are consecutive keys, B G · E.
    """
    rows = slice(0, q.shape[2])
    slabs = [_all_heads(AttentionCall(q, k, k, scale)) for k in parts]
    scores = torch.cat([slab.scores(rows, 0, slab.k.shape[2]) for slab in slabs], -1)
    ends = torch.tensor(counts, device=q.device)[:, None]
    return scores.masked_fill_(torch.arange(scores.shape[-1], device=q.device) >= ends, -torch.inf)


def _all_heads(call: AttentionCall) -> Slab:
    """All heads of all samples, without copying keys to another layout: a copy costs as much as a row of scores."""
    exact = exact_dtype(call.q)
    q, k = call.q.to(exact) * call.scale, call.k.to(exact)
    return Slab(q, k, k, call.bound, None if call.bias is None else call.bias.to(exact), call.softcap)


def is_known(call: AttentionCall, lse: Tensor | None) -> bool:
    """Whether all that `see` requests is an LSE that the other kernel has returned; arguments as for `observe`."""
    requested = call.see is not None and _only_lse(call.see)
    return lse is not None and requested and call.k.shape[2] > 0 and is_reliable(lse, call)


def _only_lse(see: See) -> bool:
    return see == See(map=None, sink=False, lse=see.lse, outputs=see.outputs, qk=see.qk, v=see.v)


def is_reliable(lse: Tensor, call: AttentionCall) -> bool:
    """Whether the LSE of another kernel is reliable: full precision, and every query surely attends to a key.

    For a fully masked query PyTorch's CPU kernel returns an LSE of 0.
    """
    if lse.dtype != call.q.dtype or call.bias is not None:
        return False
    return call.bound is None or sees_some_key(call.bound)


def sees_some_key(mask: BoundMask) -> bool:
    """Whether every query surely sees a key, by the rule of the mask alone; False where that would have to be read."""
    band = mask.rule
    if band is None:
        return True
    if not isinstance(band, Band) or band.right is None or band.right < 0:
        return False
    if band.left is None:
        return mask.reach(slice(0, 1))[1] > 0
    offset = band.offset(mask.frame)  # each query sees the key at its own position, where there is one
    return band.left >= 0 <= offset and mask.frame.T + offset <= mask.frame.S


@torch.no_grad()
def rectangle(call: AttentionCall, lse: Tensor, rows: slice, cols: slice) -> Tensor:
    """The weights of rows × cols, B H rows cols; lse is B H T. The values are not used."""
    shape = (*call.q.shape[:2], max(0, rows.stop - rows.start), max(0, cols.stop - cols.start))
    weights = lse.new_zeros(shape)
    if not weights.numel():
        return weights
    together = lse.is_cpu and weights.numel() <= SCORES_TOGETHER
    for place, slab in [((), _all_heads(call))] if together else slabs(call):
        shift = lse[place][..., rows, None]
        masked = shift == -torch.inf  # fully masked or padding
        if is_imprecise(shift, torch.finfo(shift.dtype).eps):
            _recompute_weights(slab, rows, cols, weights[place])
            weights[place].masked_fill_(masked, 0)
            continue
        scores = slab.scores(rows, cols.start, cols.stop)
        weights[place] = (scores - shift.masked_fill(masked, torch.inf)).exp_()
    return weights


def _recompute_weights(slab: Slab, rows: slice, cols: slice, weights: Tensor) -> None:
    """Write the same weights into `weights`, computed without the LSE."""
    S, heads = slab.k.shape[-2], slab.q.shape[:-2].numel()
    for block in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S * heads, ROWS)):
        scores = slab.scores(block, 0, S)
        whole = torch.softmax(scores, -1)
        lse_of_softmax(scores, whole)
        weights[..., block.start - rows.start : block.stop - rows.start, :] = whole[..., cols]
