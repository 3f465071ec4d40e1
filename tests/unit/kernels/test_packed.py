"""Packed documents: the CPU kernels compute little more than each document's own square, and correctly."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present, three
from tolerances import assert_close

from regard import Mask, See, attend
from regard.kernels import blocked
from regard.kernels.blocked import HeadInputs
from regard.kernels.chunked import forward as chunked
from regard.kernels.chunked.blocks import Slab

EVERYTHING = See(map=7, max_score=True, entropy=True, received=True, distance=True, top=3)
BACKENDS: dict[str, type[HeadInputs | Slab]] = {"blocked": HeadInputs, "chunked": Slab}


def arrays(backend: str, *shape: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    found = [rng.standard_normal(shape) for _ in range(3)]
    return found if backend == "blocked" else [torch.from_numpy(x) for x in found]


@st.composite
def packed(draw: st.DrawFn) -> tuple[Mask, int, int, int]:
    """A mask of segments, mostly contiguous, with or without other masks; and B T S."""
    B, S = draw(st.integers(1, 2)), draw(st.integers(1, 90))
    T = draw(st.sampled_from((S, S, max(1, S // 2))))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    ids = rng.integers(0, draw(st.integers(1, 9)), (B, S))
    ids = np.sort(ids) if draw(st.integers(0, 3)) else ids
    queries = draw(st.sampled_from((None, np.sort(rng.integers(0, 9, T)))))
    mask = Mask.segments(ids, queries)
    others = (None, Mask.causal(), Mask.window(9, 2), Mask.padding(rng.integers(0, 3, (B, S))))
    other = draw(st.sampled_from(others))
    if other is not None:
        mask = mask & other
    return (mask | Mask.prefix(2) if draw(st.booleans()) else mask), B, T, S


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=40)
@given(case=packed())
def test_skipping_masked_blocks_changes_nothing(backend: str, case: tuple[Mask, int, int, int]) -> None:
    mask, B, T, S = case
    (q, *_), (_, k, v) = arrays(backend, B, 2, T, 5), arrays(backend, B, 2, S, 5)
    with patch.object(blocked, "ROWS", 16), patch.object(chunked, "ROWS", 16):
        out, record = attend(q, k, v, mask=mask, see=EVERYTHING, backend=backend)
    right, wanted = attend(*three(map(np.asarray, (q, k, v))), mask=mask, see=EVERYTHING, backend="reference")
    assert_close(out, right)
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
        assert_close(getattr(record, name), getattr(wanted, name), "statistic", "float64")
    np.testing.assert_array_equal(present(record.top).indices, present(wanted.top).indices)
    assert_close(present(record.top).weights, present(wanted.top).weights, "statistic", "float64")


@settings(max_examples=20)
@given(case=packed())
def test_gradients_with_skipped_blocks(case: tuple[Mask, int, int, int]) -> None:
    mask, B, T, S = case
    found = []
    for backend in ("chunked", "eager"):
        leaves = [x.requires_grad_() for x in arrays("chunked", B, 2, S, 5)]
        with patch("regard.kernels.chunked.forward.ROWS", 16):
            attend(leaves[0][:, :, :T], leaves[1], leaves[2], mask=mask, backend=backend).square().sum().backward()
        found.append([x.grad for x in leaves])
    for one, other in zip(*found, strict=True):
        assert_close(one, other, "gradient")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lengths", [[4000, 100, 900], [100] * 50], ids=["few", "many"])
@pytest.mark.parametrize("see", [None, See(map=256)], ids=["unseen", "map"])
def test_work_is_little_more_than_one_square_per_document(
    backend: str, lengths: list[int], see: See | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`attend` used to compute all T × S scores: 25 million here, and 20,000 tokens took seconds."""
    computed = []
    real: Any = BACKENDS[backend].scores

    def counting(self: Any, rows: slice, low: int, high: int, out: Any = None) -> Any:
        computed.append((rows.stop - rows.start) * (high - low))
        return real(self, rows, low, high, out)

    monkeypatch.setattr(BACKENDS[backend], "scores", counting)
    ids = np.repeat(np.arange(len(lengths)), lengths)
    q, k, v = arrays(backend, 1, 1, len(ids), 2)
    attend(q, k, v, mask=Mask.segments(ids), backend=backend, see=see)
    # A block of rows with two documents computes both: at most 256 more rows on either side.
    assert sum(computed) <= sum(n * (n + 512) for n in lengths)
    computed.clear()
    attend(q, k, v, mask=Mask.segments(ids) & Mask.causal(), backend=backend)
    assert sum(computed) <= sum(n * (n / 2 + 512) for n in lengths)


def test_blocks_have_more_rows_where_few_keys_are_visible() -> None:
    n = 2**17
    q = torch.zeros(n, 1)
    bound = Mask.segments(torch.arange(n) // 100).bind((), n, n, q)
    blocks = Slab(q, q, q, bound.pick(0, 0), None, None).blocks(128)
    assert len(blocks) == n // 128  # by the total number of keys there would be 16 rows per block
    assert all(high - low <= 400 for _, low, high in blocks)


def test_torch_func_differentiates_through_segments() -> None:
    """Wrapped tensors have no memory that NumPy could share."""
    x, ids = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) // 3

    def total(x: torch.Tensor) -> torch.Tensor:
        return attend(x, x, x, mask=Mask.segments(ids), backend="sdpa").square().sum()

    leaf = x.clone().requires_grad_()
    total(leaf).backward()
    assert_close(torch.func.grad(total)(x), leaf.grad, "gradient")


def test_values_masked_by_segments_change_nothing() -> None:
    ids = np.arange(60) // 7
    for backend in BACKENDS:
        q, k, v = arrays(backend, 1, 2, 60, 4)
        before = attend(q, k, v, mask=Mask.segments(ids), backend=backend)
        v[:, :, :7] = np.nan
        k[:, :, :7] = np.inf
        after = attend(q, k, v, mask=Mask.segments(ids), backend=backend)
        np.testing.assert_array_equal(np.asarray(before)[:, :, 7:], np.asarray(after)[:, :, 7:])
        assert np.isnan(np.asarray(after)[:, :, :7]).all()
