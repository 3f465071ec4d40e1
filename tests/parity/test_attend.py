"""attend equals the reference on every backend, in value and in gradient, for all shapes, masks and layouts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import three
from strategies import Call, calls, padding_in
from tolerances import assert_close

from regard import See, attend, reference
from regard.arrays import to_numpy
from regard.masks.padding import without_rows
from regard.records import Record

NUMPY = ("blocked", "reference")
TORCH = ("sdpa", "chunked", "eager")


def expected_output(call: Call) -> tuple[np.ndarray, np.ndarray]:
    """Output and weights by the definition, in float64."""
    call = call.as_dtype("float64")
    return reference.scaled_dot_product_attention(call.q, call.k, call.v, **call.options)


def for_backend(call: Call, backend: str, dtype: str | None = None) -> Call:
    return call if backend in NUMPY else call.as_torch(dtype)


@pytest.mark.parametrize("backend", NUMPY)
@given(call=calls())
def test_numpy_backends_equal_the_reference(backend: str, call: Call) -> None:
    out = attend(call.q, call.k, call.v, **call.options, backend=backend)
    assert isinstance(out, np.ndarray)
    assert out.dtype == call.q.dtype
    assert_close(out, expected_output(call)[0])


@pytest.mark.parametrize("backend", TORCH)
@given(call=calls(), bfloat=st.booleans())
def test_torch_backends_equal_the_reference(backend: str, call: Call, bfloat: bool) -> None:
    given_call = call.as_torch("bfloat16" if bfloat and call.q.dtype == np.float16 else None)
    if backend == "sdpa" and call.softcap is not None:
        with pytest.raises(RuntimeError, match="softcap"):
            attend(given_call.q, given_call.k, given_call.v, **given_call.options, backend=backend)
        return
    out = attend(given_call.q, given_call.k, given_call.v, **given_call.options, backend=backend)
    assert isinstance(out, torch.Tensor)
    assert out.dtype == given_call.q.dtype
    rounded = Call(**{**vars(call), **{n: to_numpy(getattr(given_call, n)) for n in ("q", "k", "v")}})
    if given_call.bias is not None:
        rounded = Call(**{**vars(rounded), "bias": to_numpy(given_call.bias)})
    assert_close(out, expected_output(rounded)[0])


@pytest.mark.parametrize("backend", TORCH)
@given(call=calls(dtypes=("float64",), softcapped=True))
def test_gradients_equal_the_reference(backend: str, call: Call) -> None:
    if backend == "sdpa" and call.softcap is not None:
        return
    tensors = call.as_torch()
    leaves = three(x.clone().requires_grad_() for x in (tensors.q, tensors.k, tensors.v))
    out = attend(*leaves, **tensors.options, backend=backend)
    upstream = np.random.default_rng(0).standard_normal(out.shape)
    out.backward(torch.from_numpy(upstream))
    expected = reference.scaled_dot_product_attention_backward(upstream, call.q, call.k, call.v, **call.options)
    for leaf, right in zip(leaves, (expected.q, expected.k, expected.v), strict=True):
        assert leaf.grad is not None
        assert_close(leaf.grad, right, "gradient")


SEES = st.builds(
    See,
    map=st.sampled_from((1, 2, 3, 4, 256, None)),
    max_score=st.booleans(),
    entropy=st.booleans(),
    received=st.booleans(),
    top=st.sampled_from((None, 1, 3, 100)),
    sink=st.booleans(),
    distance=st.booleans(),
    qk=st.booleans(),
)


@pytest.mark.parametrize("backend", [*NUMPY, "chunked", "eager"])
@given(call=calls(), see=SEES)
def test_records_equal_brute_force(backend: str, call: Call, see: See) -> None:
    right_out, weights = expected_output(call)
    converted = for_backend(call, backend)
    out, record = attend(converted.q, converted.k, converted.v, **converted.options, backend=backend, see=see)
    assert_close(out, right_out)
    check_record(record, weights, call, see, str(call.q.dtype))


def check_record(record: Record, weights: np.ndarray, call: Call, see: See, dtype: str) -> None:
    """Compare every field with the definition; B H first for any axes of the caller."""
    sizes = call.sizes
    four = weights.reshape(sizes.B, sizes.H, sizes.T, sizes.S)
    exact = call.as_dtype("float64")
    scores = reference.attention_scores(exact.q, exact.k, call.mask, exact.bias, call.scale, call.softcap)
    padding = padding_in(record)
    four = without_rows(four, padding.queries, 0, axes=1)
    lse = reference.log_sum_exp(scores).reshape(four.shape[:3])
    scores = np.broadcast_to(scores, weights.shape).reshape(four.shape)
    right = reference.statistics_of(four, lse, see, scores, padding)
    assert record.shape == four.shape
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
        found, wanted = getattr(record, name), getattr(right, name)
        assert (found is None) == (wanted is None), name
        if found is not None:
            assert_close(found, wanted, "statistic", dtype)
    assert (record.top is None) == (right.top is None)
    if record.top is not None and right.top is not None:
        assert_close(record.top.weights, right.top.weights, "statistic", dtype)
        indices = to_numpy(record.top.indices)
        assert_close(np.take_along_axis(four, indices, -1), right.top.weights, "statistic", dtype)
        # No key appears twice.
        assert (np.diff(np.sort(indices, axis=-1), axis=-1) > 0).all()
    if see.qk:
        rows, cols = slice(sizes.T // 3, sizes.T), slice(sizes.S // 4, max(0, sizes.S - 1))
        assert_close(record.weights(rows, cols), four[..., rows, cols], "statistic", dtype)


def test_all_backends_are_covered() -> None:
    from regard import backends

    x = np.eye(3)
    assert set(backends(x, x, x)) == set(NUMPY)
    # triton is tested in tests/unit/kernels/triton by its interpreter, and in tests/gpu on a GPU.
    assert set(backends(*(torch.eye(3),) * 3)) == {*TORCH, "triton"}
