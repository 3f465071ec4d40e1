"""Top keys and entropy of each query, from q, k and the LSE, against float64."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close
from torch import Tensor

from kernel_calls import pair
from regard import Mask
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import entropy, top_keys
from regard.kernels.triton.tile_sizes import Blocks
from regard.kernels.triton.top_keys import QueryStatistics, query_statistics

SMALL = Blocks(rows=16, keys=16, warps=4, stages=2)
IDS = torch.tensor([3] * 5 + [7] * 12 + [5] * 5 + [9] * 8)


def check(
    q: Tensor,
    k: Tensor,
    device: str,
    mask: Mask | None = None,
    top: int = 3,
    operation: str = "weights",
    **options: Any,
) -> QueryStatistics:
    """Weights equal those of float64, highest first, each at its own key; and the entropy."""
    T, S = q.shape[2], k.shape[2]
    options = {"scale": q.shape[-1] ** -0.5, "softcap": None, "blocks": SMALL} | options
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), wide, mask, None, options["scale"], options["softcap"])
    weights, lse = attention_weights(scores), scores.logsumexp(-1).float()
    q, k, lse = q.to(device), k.to(device), lse.to(device)
    bound = None if mask is None else mask.bind(q.shape[:2], T, S, q)
    call = AttentionCall(q, k, k, options.pop("scale"), bound=bound, softcap=options.pop("softcap"))
    found = query_statistics(call, lse, top=top, entropy=True, **options)
    assert found.top is not None
    assert found.entropy is not None
    indices = found.top.indices.cpu()
    assert_close(found.top.weights, top_keys(weights, top).weights, operation)
    assert_close(found.top.weights, weights.gather(-1, indices), operation)
    assert (indices.sort(-1).values.diff(dim=-1) > 0).all(), "a key is named twice"
    assert_close(found.entropy, entropy(weights), "statistic")
    return found


@pytest.mark.parametrize("top", [3, 32])
@pytest.mark.parametrize(
    "mask",
    [None, Mask.causal(), Mask.window(4, 1), Mask.segments(IDS) & Mask.causal()],
    ids=["full", "causal", "window", "packed"],
)
def test_masks(mask: Mask | None, top: int, device: str) -> None:
    """Also where fewer keys are visible than requested, and where there are fewer at all."""
    check(*pair(20, 30, H=1), device, mask, top)


@pytest.mark.parametrize(("T", "S"), [(1, 1), (17, 1), (1, 17), (17, 100)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(*pair(T, S), device, top=5, blocks=None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_and_grouped_heads(dtype: torch.dtype, device: str) -> None:
    check(*pair(16, 20, 20, H=4, G=2, dtype=dtype), device, Mask.causal(), softcap=3.0)


@pytest.mark.parametrize("order", [1, -1])
def test_rising_and_falling_scores(order: int, device: str) -> None:
    """Every key beats all before it, or none does: the kept keys are replaced always, or never."""
    q, k = torch.ones(1, 1, 16, 16), (torch.arange(40.0) * order).reshape(1, 1, 40, 1).expand(1, 1, 40, 16)
    found = check(q, k, device, top=4, scale=0.01)
    assert found.top is not None
    best = torch.arange(39, 35, -1) if order == 1 else torch.arange(4)
    assert (found.top.indices.cpu() == best).all()


def test_equal_keys_are_ordered_by_position(device: str) -> None:
    q, k = pair(16, 40, H=1)
    found = check(q, k[:, :, :1].expand_as(k), device, top=6)
    assert found.top is not None
    assert (found.top.indices.cpu() == torch.arange(6)).all()
    torch.testing.assert_close(found.entropy, torch.full((1, 1, 16), 40.0, device=device).log(), rtol=1e-6, atol=0)


def test_one_visible_key(device: str) -> None:
    found = check(*pair(18, 18), device, Mask.window(0, 0), top=2)
    assert found.top is not None
    assert (found.top.indices[..., 0].cpu() == torch.arange(18)).all()
    assert (found.top.weights[..., 1] == 0).all()


def test_fully_masked_queries(device: str) -> None:
    found = check(*pair(20, 6), device, Mask.causal(), top=4)
    assert found.top is not None
    assert (found.top.weights[:, :, :14] == 0).all()


def test_large_scores(device: str) -> None:
    """|scores| around 150, where float32 has an LSE to 8e-6."""
    q, k = (x.to(device) for x in pair(16, 32, 32))
    scores = attention_scores(q.double() * 40, k.double().expand(1, 2, -1, -1))
    found = query_statistics(AttentionCall(q * 40, k, k, 32**-0.5), scores.logsumexp(-1).float(), top=5, entropy=True)
    right = top_keys(scores.softmax(-1), 5)
    assert scores.abs().max() > 120
    assert found.top is not None
    assert (found.top.indices == right.indices).all()
    # The last bit of a score of 150 is 1.5e-5; a GPU sums its products in another order, and differs by some of these.
    # And it flushes numbers below the smallest normal one to 0.
    torch.testing.assert_close(found.top.weights, right.weights.float(), rtol=2e-4, atol=2e-38)
    torch.testing.assert_close(found.entropy, entropy(scores.softmax(-1)).float(), rtol=0, atol=1e-4)


@settings(max_examples=6)
@given(
    T=st.integers(1, 40),
    S=st.integers(1, 40),
    top=st.integers(1, 9),
    left=st.none() | st.integers(0, 30),
    right=st.none() | st.integers(0, 30),
    few=st.booleans(),
)
def test_random_calls(T: int, S: int, top: int, left: int | None, right: int | None, few: bool) -> None:
    """`few`: only a few different scores, so that many are equal."""
    q, k = pair(T, S, H=1)
    if few:
        q, k = q.sign(), k.sign()
    mask = Mask.window(left, right)
    found = check(q, k, "cuda" if torch.cuda.is_available() else "cpu", mask, top)
    if few:  # equal keys in order, then masked ones
        assert found.top is not None
        ordered = attention_scores(q.double(), k.double(), mask).sort(dim=-1, descending=True, stable=True).indices
        assert torch.equal(found.top.indices.cpu(), ordered[..., :top])


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    q, k = (x.to(device) for x in pair(T, S))
    found = query_statistics(AttentionCall(q, k, k, 1.0), q.new_full((1, 2, T), -torch.inf), top=3, entropy=True)
    assert found.top is not None
    assert found.top.indices.shape == found.top.weights.shape == (1, 2, T, min(3, S))
    assert found.entropy is not None
    assert not found.entropy.any()
