"""The second pass: statistics of attention computed by another kernel, against brute force."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from strategies import Call, calls
from tolerances import assert_close
from torch import Tensor

from regard import Mask, See, reference
from regard.attention_call import AttentionCall
from regard.dispatch import observation
from regard.dispatch.observation import observe_attention
from regard.functional import statistics
from regard.functional.statistics import _compiled_sums, sums_of_weights
from regard.kernels.chunked import forward as module
from regard.kernels.chunked.forward import observe
from regard.records import Record

EVERYTHING = See(map=3, max_score=True, entropy=True, received=True, top=2, distance=True, qk=True)
SEES = st.builds(
    See,
    map=st.sampled_from((1, 2, 3, 256, None)),
    lse=st.booleans(),
    max_score=st.booleans(),
    entropy=st.booleans(),
    received=st.booleans(),
    top=st.sampled_from((None, 1, 3, 100)),
    sink=st.booleans(),
    distance=st.booleans(),
    qk=st.booleans(),
)


def check(record: Record, weights: np.ndarray, lse: np.ndarray, see: See, dtype: str = "float64") -> None:
    """Every field against the definition."""
    right = reference.statistics_of(weights, lse, see)
    for name in ("map", "max_score", "entropy", "received", "sink", "distance"):
        found, wanted = getattr(record, name), getattr(right, name)
        assert (found is None) == (wanted is None), name
        if found is not None:
            assert_close(found, wanted, "statistic", dtype)
    assert (record.lse is not None) == see.lse
    if record.lse is not None:
        assert_close(record.lse, lse, "statistic", dtype)
    if record.top is not None and right.top is not None:
        assert_close(record.top.weights, right.top.weights, "statistic", dtype)
    if see.qk:
        assert_close(record.weights(), weights, "statistic", dtype)


@pytest.mark.parametrize("limits", [(0, 0), (0, 2**14), (2**18, 0)], ids=["head by head", "together", "at once"])
@pytest.mark.parametrize("known", [True, False], ids=["LSE known", "LSE not known"])
@given(call=calls(axes=(4,), dtypes=("float64",)), see=SEES)
def test_records_equal_brute_force(limits: tuple[int, int], known: bool, call: Call, see: See) -> None:
    scores = reference.attention_scores(call.q, call.k, call.mask, call.bias, call.scale, call.softcap)
    weights, lse = reference.softmax(scores), reference.log_sum_exp(scores)
    call_torch = call.as_torch()
    # For a fully masked query PyTorch's CPU kernel returns an LSE of 0.
    given = torch.from_numpy(np.where(np.isinf(lse), 0.0, lse)) if known and call_torch.k.shape[2] else None
    scale = call.sizes.E**-0.5 if call.scale is None else call.scale
    mask = None if call_torch.mask is None else Mask.of(call_torch.mask)
    bias = call_torch.bias if call_torch.bias is None or call_torch.bias.ndim == 4 else call_torch.bias[None, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observation, "SMALL", limits[0])
        patch.setattr(module, "MAX_SCORES_TOGETHER", limits[1])
        q, k, v = call_torch.q, call_torch.k, call_torch.v
        observed = AttentionCall(q, k, v, scale, mask=mask, bias=bias, softcap=call.softcap, see=see)
        record = observe_attention(observed, given)
    assert record.shape == weights.shape
    check(record, weights, lse, see)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [True, False])
def test_statistics_of_pytorchs_kernel(dtype: torch.dtype, causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 4, 300, 16, generator=generator), torch.randn(2, 2, 300, 16, generator=generator)
    q, k = q.to(dtype), k.to(dtype)
    _, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, causal)
    mask = Mask.causal(align="first") if causal else None
    record = observe_attention(AttentionCall(q, k, k, 0.25, mask=mask, see=EVERYTHING), lse)
    exact_q, exact_k = (x.double().numpy() for x in (q, k))
    scores = reference.attention_scores(exact_q, exact_k, mask, scale=0.25)
    check(record, reference.softmax(scores), reference.log_sum_exp(scores), EVERYTHING, "float32")
    alone = observe_attention(AttentionCall(q, k, k, 0.25, mask=mask, see=See(map=None, sink=False)), lse)
    assert_close(alone.lse, reference.log_sum_exp(scores), "statistic", "float32")


@pytest.mark.parametrize("heads", [(6, 6), (6, 2), (6, 1)], ids=str)
def test_one_row_and_many_keys_that_are_not_contiguous(heads: tuple[int, int]) -> None:
    H, G = heads
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(2, 1, H, 8, generator=generator, dtype=torch.float64).transpose(1, 2)
    k = torch.randn(2, 40, G, 8, generator=generator, dtype=torch.float64).transpose(1, 2)
    record = observe_attention(AttentionCall(q, k, k, 1.0, see=EVERYTHING))
    scores = reference.attention_scores(q.numpy(), k.numpy(), scale=1.0)
    check(record, reference.softmax(scores), reference.log_sum_exp(scores), EVERYTHING)


@pytest.mark.parametrize("mask", [None, Mask.causal(), Mask.causal(align="first"), Mask.window(5, 2)], ids=str)
@pytest.mark.parametrize(("H", "G"), [(6, 6), (6, 2), (6, 1), (8, 2)])
def test_several_heads_of_a_slab(H: int, G: int, mask: Mask | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slabs of one head to all heads of a sample: fewer than a group that shares keys, one group, and several."""
    monkeypatch.setattr(observation, "SMALL", 0)
    monkeypatch.setattr(module, "MAX_SCORES_TOGETHER", 0)
    monkeypatch.setattr(module, "ROWS", 16)  # several blocks
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(2, H, 40, 8, generator=generator, dtype=torch.float64)
    k = torch.randn(2, G, 43, 8, generator=generator, dtype=torch.float64)
    slabs = set()
    for heads in range(1, H + 1):
        monkeypatch.setattr(module, "SCORES_TOGETHER", heads * 16 * 43)
        call = AttentionCall(q, k, k, 1.0, mask=mask, see=EVERYTHING)
        slabs.add(module._heads_together(observation._bound(call)))
        scores = reference.attention_scores(q.numpy(), k.numpy(), mask, scale=1.0)
        check(observe_attention(call), reference.softmax(scores), reference.log_sum_exp(scores), EVERYTHING)
    assert {1, H} <= slabs


@pytest.mark.parametrize(("T", "S"), [(0, 3), (3, 0), (0, 0)])
def test_without_queries_or_keys(T: int, S: int) -> None:
    q, k = torch.zeros(1, 2, T, 4), torch.zeros(1, 2, S, 4)
    found = observe(AttentionCall(q, k, k, 1.0, see=EVERYTHING))
    assert present(found.lse).eq(-torch.inf).all()
    assert present(found.sink).eq(0).all()
    assert present(found.distance).eq(0).all()
    assert present(found.distance).shape == reference.distance(np.zeros((1, 2, T, S))).shape


def test_an_empty_request_and_a_known_lse_compute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a pass was made")

    monkeypatch.setattr(module, "attend_in_blocks", fail)
    monkeypatch.setattr(observation, "all_weights", fail)
    q = torch.zeros(1, 2, 3, 4)
    record = observe_attention(AttentionCall(q, q, q, 1.0, see=See(map=None, lse=False, sink=False)))
    assert record.shape == (1, 2, 3, 3)
    assert "nothing" in repr(record)
    lse = torch.full((1, 2, 3), 3.0).log()
    known = present(observe_attention(AttentionCall(q, q, q, 1.0, see=See(map=None, sink=False)), lse).lse)
    assert torch.equal(known, lse)
    assert known.data_ptr() != lse.data_ptr()  # the model may overwrite its own


def test_no_score_matrix_is_allocated() -> None:
    """Blocks of rows: the largest allocation stays far below T × S."""
    q = torch.randn(1, 1, 4096, 8)
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        bound = Mask.causal().bind((1, 1), 4096, 4096, q)
        observe(AttentionCall(q, q, q, 1.0, bound=bound, see=EVERYTHING))
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert largest < 4096 * 4096 * 4 / 8


def test_queries_are_counted_only_where_one_may_be_fully_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting them takes a pass over all weights."""
    q, counted = torch.randn(1, 2, 6, 4), list[int]()
    original = statistics._unmasked_queries

    def counting(weights: Tensor) -> Tensor:
        counted.append(1)
        return original(weights)

    monkeypatch.setattr(statistics, "_unmasked_queries", counting)
    for mask, count in ((None, 0), (Mask.causal(), 0), (Mask.of(torch.ones(6, 6, dtype=torch.bool).tril()), 1)):
        counted.clear()
        record = observe_attention(AttentionCall(q, q, q, 0.5, mask=mask, see=See()))
        scores = (q @ q.mT * 0.5).masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -torch.inf)
        wanted = (q @ q.mT * 0.5 if mask is None else scores).softmax(-1)[..., 0].mean(-1)
        torch.testing.assert_close(record.sink, wanted)
        assert len(counted) == count


needs_compiler = pytest.mark.skipif(_compiled_sums() is None, reason="no C++ compiler")
MASKS = [None, Mask.causal(), Mask.causal(align="first"), Mask.window(70, 0), Mask.window(5, 33), Mask.window(3, 0)]


@needs_compiler
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize(
    ("H", "G", "T", "S", "E"),
    [(4, 4, 129, 129, 64), (4, 2, 300, 300, 7), (3, 1, 61, 391, 16), (1, 1, 517, 517, 80), (2, 2, 1100, 1103, 8)],
)
def test_compiled_sums_equal_brute_force(
    H: int, G: int, T: int, S: int, E: int, mask: Mask | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation, "TINY", 0)
    monkeypatch.setattr(module, "attend_in_blocks", None)
    monkeypatch.setattr(observation, "all_weights", None)
    generator = torch.Generator().manual_seed(T)
    q = torch.randn(2, T, H, E, generator=generator).transpose(1, 2)  # as models have them: not contiguous
    k = torch.randn(2, S, G, E, generator=generator).transpose(1, 2)
    keys = k.double().repeat_interleave(H // G, dim=1)
    scores = (q.double() @ keys.mT * E**-0.5).numpy()
    if mask is not None:
        scores = np.where(mask.dense(T, S), scores, -np.inf)
    weights, lse = reference.softmax(scores), reference.log_sum_exp(scores)
    for bins, received in ((256, True), (7, False), (None, True)):
        see = See(map=bins, received=received)
        call = AttentionCall(q, k, k, E**-0.5, mask=mask, see=see)
        check(observe_attention(call, torch.from_numpy(lse).float()), weights, lse, see, "float32")


@needs_compiler
def test_compiled_sums_leave_large_and_undefined_scores_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    q = 0.5 * torch.randn(1, 2, 300, 8, generator=torch.Generator().manual_seed(0))
    called = []

    def counted(*given: Any) -> Any:
        called.append(given)
        return sums_of_weights(*given)

    monkeypatch.setattr(observation, "sums_of_weights", counted)
    for factor in (1.0, 4.0):
        large = factor * q
        lse = torch.logsumexp(large @ large.mT, -1)
        assert (lse.max() > observation.LARGEST_LSE) == (factor > 1)
        call = AttentionCall(large, large, q, 1.0, see=See())
        assert_close(observe_attention(call, lse).map, present(observe(call).map), "statistic", "float32")
    assert len(called) == 1
    q[0, 0, 5] = torch.nan
    lse = torch.logsumexp(q @ q.mT, -1)
    assert present(observe_attention(AttentionCall(q, q, q, 1.0, see=See()), lse).map).isnan()[0, 0].all()
    assert len(called) == 1


@needs_compiler
def test_compiled_sums_have_the_same_bits_every_time() -> None:
    q = torch.randn(1, 1, 900, 8, generator=torch.Generator().manual_seed(0))
    lse = torch.logsumexp(q @ q.mT, -1)
    found = [sums_of_weights(q, q, lse, 1.0, (-900, 900), 64, True) for _ in range(3)]
    for other in found[1:]:
        for one, again in zip(present(found[0]), present(other), strict=True):
            assert torch.equal(present(one), present(again))


def test_without_a_compiler_pytorch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_compiled_sums", lambda: None)
    q = torch.randn(1, 4, 200, 8, generator=torch.Generator().manual_seed(0))
    scores = reference.attention_scores(q.double().numpy(), q.double().numpy(), scale=1.0)
    lse = reference.log_sum_exp(scores)
    record = observe_attention(AttentionCall(q, q, q, 1.0, see=See()), torch.from_numpy(lse).float())
    check(record, reference.softmax(scores), lse, See(), "float32")
