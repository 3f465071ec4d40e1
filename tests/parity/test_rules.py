"""The rules of the design (1 to 8) on every backend that can run the call."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from narrowing import present, three
from strategies import GARBAGE, LENGTHS, Call, calls, padding_in
from tolerances import assert_close, assert_same_bits

from regard import Mask, See, attend, reference
from regard.arrays import to_numpy

BACKENDS = ("blocked", "reference", "sdpa", "chunked", "eager")
WITH_STATISTICS = ("blocked", "reference", "chunked", "eager")
NONZERO_LENGTHS = tuple(n for n in LENGTHS if n)


def for_backend(backend: str, call: Call) -> Call:
    if backend == "sdpa":
        call = replace(call, softcap=None)
    return call if backend in ("blocked", "reference") else call.as_torch()


def run(backend: str, call: Call) -> Any:
    converted = for_backend(backend, call)
    return attend(converted.q, converted.k, converted.v, **converted.options, backend=backend)


def with_kept_layout(call: Call) -> Call:
    """The call with a memory layout that a copy keeps: rounding depends on the layout, so both calls need the same."""
    return replace(call, k=call.k.copy(order="K"), v=call.v.copy(order="K"))


@pytest.mark.parametrize("backend", BACKENDS)
@given(call=calls())
def test_fully_masked_query_gets_exactly_zero(backend: str, call: Call) -> None:
    masked = ~call.allowed.any(-1)
    out = to_numpy(run(backend, call))
    assert (out[masked] == 0).all()
    assert np.isfinite(out).all()


@pytest.mark.parametrize("backend", ("sdpa", "chunked", "eager"))
@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_fully_masked_query_has_zero_gradients(backend: str, dtype: str) -> None:
    q, k, v = (torch.randn(1, 2, 3, 4).to(getattr(torch, dtype)).requires_grad_() for _ in range(3))
    mask = torch.tensor([[True, True, False], [False, False, False], [True, False, False]])
    out = attend(q, k, v, mask=mask, backend=backend)
    out.float().sum().backward()
    assert (out[:, :, 1] == 0).all()
    for x in (q, k, v):
        assert x.grad is not None
        assert x.grad.isfinite().all()
    assert (present(q.grad)[:, :, 1] == 0).all()
    assert (present(v.grad)[:, :, 2] == 0).all()


@pytest.mark.parametrize("backend", ("sdpa", "chunked", "eager"))
def test_backward_works_where_everything_is_masked(backend: str) -> None:
    q, k, v = (torch.randn(1, 2, 3, 4, requires_grad=True) for _ in range(3))
    attend(q, k, v, mask=torch.zeros(3, 3, dtype=torch.bool), backend=backend).sum().backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert (x.grad == 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@given(call=calls(lengths=NONZERO_LENGTHS), seed=st.integers(0, 99))
def test_keys_masked_for_all_queries_change_nothing(backend: str, call: Call, seed: int) -> None:
    assume(call.unseen.any())
    clean, changed = call.with_garbage(call.unseen, seed)
    assert_same_bits(run(backend, changed), run(backend, clean))


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    garbage=st.sampled_from(GARBAGE),
    call=calls(axes=(4,), lengths=NONZERO_LENGTHS, dtypes=("float32", "float64")),
    data=st.data(),
)
def test_masked_key_never_changes_the_output(backend: str, garbage: float, call: Call, data: st.DataObject) -> None:
    assume(call.sizes.B)
    call = with_kept_layout(call)
    key = data.draw(st.integers(0, call.sizes.S - 1))
    k, v = call.k.copy(order="K"), call.v.copy(order="K")
    k[..., key, :] = garbage
    v[..., key, :] = garbage
    masked = ~call.allowed[..., key]  # … T: the queries for which the key is masked
    clean, changed = run(backend, call), run(backend, replace(call, k=k, v=v))
    assert_same_bits(to_numpy(changed)[masked], to_numpy(clean)[masked])
    if not np.isfinite(garbage):
        seeing = to_numpy(changed)[~masked]
        assert not np.isfinite(seeing).all(-1).any(), "a query that sees the key must not be finite"


@pytest.mark.parametrize("backend", ("sdpa", "chunked", "eager"))
@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize(
    "mask",
    [
        Mask.causal(),
        Mask.causal() & Mask.padding(np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]])),
        Mask.window(2, 0),
        ~Mask.window(0, 2),
    ],
    ids=repr,
)
def test_masked_key_never_changes_a_gradient(backend: str, garbage: float, mask: Mask) -> None:
    """The last key is garbage; the loss uses only the queries for which it is masked."""
    generator = torch.Generator().manual_seed(0)
    arrays = [torch.randn(2, 4, 6, 8, generator=generator) for _ in range(3)]
    masked = torch.from_numpy(~mask.dense(6, 6)[..., -1]).expand(2, 4, 6)

    def gradients(last: float | None) -> list[torch.Tensor]:
        leaves = three(x.clone() for x in arrays)
        if last is not None:
            leaves[1][:, :, -1], leaves[2][:, :, -1] = last, last
        leaves = three(x.requires_grad_() for x in leaves)
        out = attend(*leaves, mask=mask, backend=backend)
        torch.where(masked[..., None], out, 0).sum().backward()
        return [present(x.grad) for x in leaves]

    for changed, clean in zip(gradients(garbage), gradients(None), strict=True):
        assert_same_bits(changed, clean)


@pytest.mark.parametrize("backend", ("sdpa", "chunked", "eager"))
def test_visible_huge_value_needs_no_quadratic_memory(backend: str) -> None:
    """Queries that see the value are recomputed in blocks of rows; other queries are unchanged."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 700, 8, generator=generator) for _ in range(3))
    clean = attend(q, k, v, mask=Mask.window(5, 0), backend=backend)
    v[:, :, 300] = 1e30
    leaves = three(x.requires_grad_() for x in (q, k, v))
    changed = attend(*leaves, mask=Mask.window(5, 0), backend=backend)
    seeing = torch.zeros(700, dtype=torch.bool)
    seeing[300:306] = True
    assert torch.equal(changed[:, :, ~seeing], clean[:, :, ~seeing])
    assert (changed[:, :, seeing].abs() > 1e20).all()
    changed[:, :, ~seeing].sum().backward()
    assert all(present(x.grad).isfinite().all() for x in leaves)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
def test_bad_query_changes_only_itself(backend: str, bad: float) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 5, 4)) for _ in range(3))
    allowed = np.tri(5, dtype=bool)
    allowed[2] = False
    changed = q.copy()
    changed[:, :, [1, 2], 0] = bad  # query 2 is fully masked, so its numbers do not matter
    convert: Callable[[Any], Any] = np.asarray if backend in ("blocked", "reference") else torch.from_numpy
    out = to_numpy(attend(*three(map(convert, (changed, k, v))), mask=convert(allowed), backend=backend))
    clean = to_numpy(attend(*three(map(convert, (q, k, v))), mask=convert(allowed), backend=backend))
    assert np.isnan(out[:, :, 1]).all()
    assert (out[:, :, 2] == 0).all()
    assert_same_bits(out[:, :, [0, 2, 3, 4]], clean[:, :, [0, 2, 3, 4]])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["no mask", "causal"])
def test_query_with_only_minus_infinity_scores_is_nan(backend: str, mask: Mask | None) -> None:
    """A softmax of only -inf gives 0, as for a fully masked query; this query is not masked."""
    q, k, v = (np.ones((1, 2, 5, 4)) for _ in range(3))
    q[0, 0, 2] = -np.inf
    convert: Callable[[Any], Any] = np.asarray if backend in ("blocked", "reference") else torch.from_numpy
    out = to_numpy(attend(*three(map(convert, (q, k, v))), mask=mask, backend=backend))
    assert np.isnan(out[0, 0, 2]).all()
    assert np.isnan(out).sum() == 4


@pytest.mark.parametrize("backend", WITH_STATISTICS)
@given(call=calls(axes=(4,), lengths=NONZERO_LENGTHS, dtypes=("float64",)), data=st.data())
def test_records_are_nan_only_where_they_should_be(backend: str, call: Call, data: st.DataObject) -> None:
    assume(call.sizes.B)
    k = np.array(call.k)
    k[..., data.draw(st.integers(0, call.sizes.S - 1)), 0] = np.nan
    call = replace(call, k=k)
    see = See(map=data.draw(st.sampled_from((2, 3, 256))), max_score=True, entropy=True, received=True, distance=True)
    scores = reference.attention_scores(call.q, call.k, call.mask, call.bias, call.scale, call.softcap)
    converted = for_backend(backend, call)
    _, record = attend(converted.q, converted.k, converted.v, **converted.options, backend=backend, see=see)
    weights, lse = reference.softmax(scores), reference.log_sum_exp(scores)
    right = reference.statistics_of(weights, lse, see, padding=padding_in(record))
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
        assert_close(getattr(record, name), getattr(right, name), "statistic")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("T", "S"), [(1, 6), (3, 6), (6, 6), (6, 3), (6, 1)])
def test_causal_mask_is_aligned_with_the_last_key(backend: str, T: int, S: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.standard_normal((2, 3, T, 4)),
        rng.standard_normal((2, 3, S, 4)),
        rng.standard_normal((2, 3, S, 5)),
    )
    allowed = np.arange(S)[None, :] <= np.arange(T)[:, None] + S - T
    convert: Callable[[Any], Any] = np.asarray if backend in ("blocked", "reference") else torch.from_numpy
    out = attend(*three(map(convert, (q, k, v))), mask=Mask.causal(), backend=backend)
    assert_close(out, reference.scaled_dot_product_attention(q, k, v, allowed)[0])
    if T <= S:
        last = reference.scaled_dot_product_attention(q[..., -1:, :], k, v)[0]
        assert_close(out[..., -1:, :], last)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("T", "S"), [(3, 6), (6, 6), (6, 3)])
def test_causal_mask_can_be_aligned_with_the_first_key(backend: str, T: int, S: int) -> None:
    """PyTorch's is_causal is aligned in this way."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 4, generator=generator, dtype=torch.float64) for n in (T, S, S))
    right = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    convert: Callable[[Any], Any] = to_numpy if backend in ("blocked", "reference") else torch.clone
    found = attend(*three(map(convert, (q, k, v))), mask=Mask.causal(align="first"), backend=backend)
    assert_close(found, right)


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_does_not_overflow(backend: str) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.uniform(-1e4, 1e4, (1, 2, 7, 64)).astype(np.float16) for _ in range(2))
    v = rng.standard_normal((1, 2, 7, 64)).astype(np.float16)
    right = reference.scaled_dot_product_attention(*three(x.astype(np.float64) for x in (q, k, v)))[0]
    convert: Callable[[Any], Any] = np.asarray if backend in ("blocked", "reference") else torch.from_numpy
    out = attend(*three(map(convert, (q, k, v))), backend=backend)
    assert np.isfinite(to_numpy(out)).all()
    assert_close(out, right)


@pytest.mark.parametrize("backend", BACKENDS)
@given(call=calls(lengths=NONZERO_LENGTHS, dtypes=("float64",), biased=False), seed=st.integers(0, 99))
def test_order_of_the_keys_does_not_matter(backend: str, call: Call, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(call.sizes.S)
    raw = np.broadcast_to(call.allowed, call.sizes.scores)
    shuffled = replace(call, k=call.k[..., order, :], v=call.v[..., order, :], mask=raw[..., order])
    assert_close(run(backend, shuffled), to_numpy(run(backend, replace(call, mask=raw))))


@pytest.mark.parametrize("backend", BACKENDS)
@given(call=calls(axes=(4,), lengths=NONZERO_LENGTHS, dtypes=("float64",), biased=False, masked=False))
def test_samples_are_independent(backend: str, call: Call) -> None:
    assume(call.sizes.B > 1)
    whole = to_numpy(run(backend, call))
    first = replace(call, q=call.q[:1], k=call.k[:1], v=call.v[:1])
    assert_close(to_numpy(run(backend, first)), whole[:1])
