"""The inputs of the passes that follow an output."""

from typing import Any

import pytest
import torch
from narrowing import Two, two
from tolerances import assert_close
from torch import Tensor

from regard import Mask
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.kernels.triton.second_pass import padded_shifts, rectangle
from regard.kernels.triton.support import Blocks


@pytest.mark.parametrize("T", [1, 15, 16, 40])
def test_shifts_fill_whole_tiles(T: int, device: str) -> None:
    lse = torch.randn(2, 3, T, device=device)
    lse[1, 2, 0] = -torch.inf
    found = padded_shifts(lse, 16).cpu()
    assert found.shape == (2, 3, -(-T // 16) * 16)
    assert (found[:, :, T:] == torch.inf).all()
    assert found[1, 2, 0] == torch.inf
    visible = lse.cpu() != -torch.inf
    assert_close(found[:, :, :T][visible], lse.cpu()[visible] / torch.log(torch.tensor(2.0)))


SMALL = Blocks(rows=16, keys=16, warps=4, stages=2)
IDS = torch.tensor([3] * 5 + [7] * 12 + [5] * 5 + [9] * 8)
WHOLE = slice(0, 20), slice(0, 30)


def pair(T: int, S: int, E: int = 16, *, H: int = 2, G: int = 1, dtype: Any = torch.float32) -> Two[Tensor]:
    make = torch.Generator().manual_seed(0)
    return two(torch.randn(shape, generator=make).to(dtype) for shape in ((1, H, T, E), (1, G, S, E)))


def check(
    q: Tensor, k: Tensor, device: str, rows: slice | Tensor, cols: slice, mask: Mask | None = None, **options: Any
) -> Tensor:
    options = {"scale": q.shape[-1] ** -0.5, "softcap": None, "blocks": SMALL} | options
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), wide, mask, None, options["scale"], options["softcap"])
    right, lse = attention_weights(scores)[:, :, rows, cols], scores.logsumexp(-1).float()
    bound = None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q.to(device))
    rows = rows if isinstance(rows, slice) else rows.to(device)
    blocks, q, k = options.pop("blocks"), q.to(device), k.to(device)
    found = rectangle(AttentionCall(q, k, k, bound=bound, **options), lse.to(device), rows, cols, blocks=blocks).cpu()
    assert_close(found, right, "weights")
    return found


@pytest.mark.parametrize(
    "mask",
    [None, Mask.causal(), Mask.window(4, 1), Mask.segments(IDS), Mask.causal() & Mask.padding(IDS, pad=7)],
    ids=["full", "causal", "window", "segments", "padding"],
)
def test_masks(mask: Mask | None, device: str) -> None:
    found = check(*pair(20, 30), device, *WHOLE, mask)
    total = found.sum(-1)
    assert ((total - 1).abs() < 1e-5).logical_or(total == 0).all(), "a row sums to 1, or is fully masked"
    check(*pair(20, 30), device, slice(3, 19), slice(11, 30), mask)


@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        (slice(7, 8), slice(29, 30)),
        (slice(0, 20), slice(0, 1)),
        (torch.tensor([19, 2, 2, 0]), slice(5, 30)),
        (torch.arange(20).flip(0), slice(0, 30)),
        (slice(4, 4), slice(0, 30)),
        (torch.tensor([], dtype=torch.int64), slice(0, 30)),
    ],
)
def test_rows_and_columns(rows: slice | Tensor, cols: slice, device: str) -> None:
    check(*pair(20, 30), device, rows, cols, Mask.causal())


@pytest.mark.parametrize(("T", "S"), [(1, 1), (17, 1), (1, 17), (100, 100)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(*pair(T, S, H=1), device, slice(0, T), slice(0, S), Mask.causal(), blocks=None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_grouped_heads_and_softcap(dtype: torch.dtype, device: str) -> None:
    check(*pair(20, 30, 20, H=4, G=2, dtype=dtype), device, *WHOLE, softcap=2.0)


def test_any_layout(device: str) -> None:
    q, k = pair(20, 30, H=4, G=2)
    check(q.transpose(1, 2).contiguous().transpose(1, 2), k.mT.contiguous().mT, device, *WHOLE, Mask.causal())


def test_fully_masked_queries_have_no_weights(device: str) -> None:
    found = check(*pair(20, 6), device, slice(0, 20), slice(0, 6), Mask.causal())
    assert (found[:, :, :14] == 0).all()
