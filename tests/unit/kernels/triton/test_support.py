"""The scratch memory computed in advance equals what the kernels allocate: scratch, strips and pieces."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from torch import Tensor

from kernel_calls import ANY_MASK, MASKS, any_mask, tensors
from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton import forward as forward_module
from regard.kernels.triton import key_sums
from regard.kernels.triton.attention import _masked_lse, attention, observe
from regard.kernels.triton.hopper.config import ROWS
from regard.kernels.triton.pooling import max_strips
from regard.kernels.triton.support import MaskBands, bands_of, blocks_for, scratch_for
from regard.masks import BoundMask

SIZES = [(20, 30, 3), (20, 300, 2), (20, 256, 1), (5, 131, 131)]
"""Queries, keys, and maximum bins: a tile touches some bins, two, one, many."""


def record_sizes(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, sizes: list[int]) -> None:
    make = getattr(where, name)

    def made(*fields: Any) -> Any:
        tensors = [x for x in fields if isinstance(x, Tensor)]
        if tensors:  # the interpreter calls it for the kernel, too, with pointers
            sizes.append(sum(x.nbytes for x in tensors))
        return make(*fields)

    monkeypatch.setattr(where, name, made)


@pytest.mark.parametrize(("T", "S", "max_bins"), SIZES)
def test_scratch_of_a_second_pass(T: int, S: int, max_bins: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, _ = (x.to(device) for x in tensors(T, S))
    see = See(map=max_bins, sink=False)
    sizes: list[int] = []
    lse = (q.double() @ k.double().mT / 4).logsumexp(-1)
    record_sizes(monkeypatch, key_sums, "MapPieces", sizes)
    call = AttentionCall(q, k, k, scale=0.25, see=see)
    observe(call, lse)
    least = scratch_for(call)
    assert scratch_for(call, later=True) == max([least, *sizes])
    assert len(sizes) == (0 if max_bins == S else 1)  # a map of single weights needs no sums


@pytest.mark.parametrize("max_bins", [7, pytest.param(30, marks=pytest.mark.long)])
def test_scratch_of_the_forward(max_bins: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free allowance it takes at most twice the map, or what one head needs."""
    q, k, v = (x.to(device) for x in tensors(30, 30, H=12))
    see = See(map=max_bins, sink=False)
    sizes: list[int] = []
    monkeypatch.setattr(forward_module, "BUFFER_LIMIT", 0)
    record_sizes(monkeypatch, forward_module, "MapBuffers", sizes)
    call = AttentionCall(q, k, v, scale=0.25, see=see)
    _, found = attention(call)
    assert found.map is not None
    assert scratch_for(call) == 2 * found.map.nbytes
    blocks, C = blocks_for(q.dtype, 16, 30, 30), found.map.shape[-1]
    bins = Bins.of(30, 30, see)
    assert bins is not None
    one_program, one_head = 4 * blocks.rows * C, 4 * max_strips(30, bins, blocks.rows) * C
    assert max(sizes) <= max(found.map.nbytes, one_program) + max(found.map.nbytes, one_head)


def test_without_a_map_there_is_no_scratch() -> None:
    q, k, _ = tensors(20, 30)
    received = See(map=None, received=True)
    assert scratch_for(AttentionCall(q, k, k, 1.0)) == 0
    assert scratch_for(AttentionCall(q, k, k, 1.0, see=received), later=True) == 0


def test_strips_of_a_long_head_are_counted() -> None:
    """A map of few rows with very many queries: there are many tiles."""
    q = torch.empty(1, 1, 2_000_000, 64, dtype=torch.bfloat16, device="meta")
    see = See(map=1000)
    bins = Bins.of(2_000_000, 2_000_000, see)
    assert bins is not None
    smallest = blocks_for(q.dtype, 64, 2_000_000, 2_000_000, bins.width).rows
    strips = 4 * bins.C * max(max_strips(2_000_000, bins, rows) for rows in (smallest, ROWS))
    assert scratch_for(AttentionCall(q, q, q, 1.0, see=see)) >= strips > 4 * bins.R * bins.C


def visible_in(bands: MaskBands, T: int, S: int) -> Tensor:
    """(1 or B) T S, by definition."""
    positions, keys = torch.arange(T)[:, None] + bands.offset, torch.arange(S)
    left, right = (S + T if side is None else side for side in (bands.left, bands.right))
    visible = ((keys >= positions - left) & (keys <= positions + right))[None]
    if bands.queries is None or bands.keys is None:
        return visible
    return visible & (bands.queries[:, :, None] == bands.keys[:, None, :])


def check(mask: Mask, T: int, S: int, B: int = 1) -> None:
    like = torch.zeros(B, 1, 1, 1)
    bands = bands_of(mask.bind((B, 1), T, S, like))
    right = mask.dense(T, S, like).expand(B, 1, T, S)[:, 0]
    assert torch.equal(visible_in(bands, T, S).expand(B, T, S), right)
    assert torch.equal(visible_in(bands.swapped(), S, T).expand(B, S, T), right.mT)


@pytest.mark.parametrize("name", [name for name, mask in MASKS.items() if mask is not None])
def test_every_mask(name: str) -> None:
    check(present(MASKS[name]), 21, 33, B=2)


@given(T=st.integers(1, 50), S=st.integers(1, 50), **ANY_MASK)
def test_random_masks(T: int, S: int, **parts: Any) -> None:
    check(any_mask(T, S, **parts), T, S)


def test_many_segments_do_not_evaluate_the_mask_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """At this length that took a minute."""
    monkeypatch.delattr(BoundMask, "block")
    n = 131072
    ids = torch.arange(n) // 5000
    mask = (Mask.segments(ids, queries=ids + 1) & Mask.causal()).bind((1, 1), n, n, torch.zeros(1))
    assert (_masked_lse(torch.zeros(1, 1, n), mask, n) == -torch.inf).all()
