"""Calls without samples, heads, queries, keys or values: every backend equals the reference, in shape and value."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import Three, present, three, two
from tolerances import assert_close

from regard import Mask, See, attend
from regard.errors import BackendError
from regard.functional import scaled_dot_product_attention

EVERYTHING = See(map=2, max_score=True, entropy=True, received=True, top=2, distance=True, values=True, qk=True)
FIELDS = ("map", "lse", "max_score", "entropy", "received", "sink", "distance", "value_norms")
MASKS = {
    "none": lambda T, S: None,
    "causal": lambda T, S: Mask.causal(),
    "padding": lambda T, S: Mask.padding(np.arange(1, S + 1) % 3),
    "dense": lambda T, S: np.arange(T)[:, None] >= np.arange(S),
    "nothing": lambda T, S: np.zeros((T, S), bool),
}


@st.composite
def empty_calls(draw: st.DrawFn) -> tuple[Three[np.ndarray], Any]:
    """q, k and v with an empty axis, and a mask."""
    B, T, S, Ev = (draw(st.sampled_from((0, 1, 3))) for _ in range(4))
    H, G = draw(st.sampled_from(((0, 0), (1, 1), (2, 2), (4, 2), (3, 1))))
    if B and H and T and S and Ev:
        B, Ev = draw(st.sampled_from(((0, Ev), (B, 0))))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = three(random.normal(size=shape).astype("float32") for shape in ((B, H, T, 2), (B, G, S, 2), (B, G, S, Ev)))
    changed = draw(st.sampled_from((None, *arrays)))
    if changed is not None and changed.size:  # numbers that the guard must handle
        changed.flat[0] = draw(st.sampled_from((np.nan, np.inf, 1e38)))
    return arrays, MASKS[draw(st.sampled_from(sorted(MASKS)))](T, S)


def tensors(arrays: Three[np.ndarray], gradient: bool = False) -> Three[torch.Tensor]:
    return three(torch.tensor(x, requires_grad=gradient) for x in arrays)


def as_torch(mask: Any) -> Any:
    return torch.tensor(mask) if isinstance(mask, np.ndarray) else mask


@settings(max_examples=60, deadline=None)
@given(empty_calls(), st.sampled_from(("blocked", "sdpa", "chunked", "eager")), st.sampled_from((None, EVERYTHING)))
def test_empty_calls_equal_the_reference(call: tuple[Three[np.ndarray], Any], backend: str, see: See | None) -> None:
    arrays, mask = call
    right, record = attend(*arrays, mask=mask, backend="reference", see=EVERYTHING)
    on_numpy = backend == "blocked"
    given_arrays: Three[Any] = arrays if on_numpy else tensors(arrays, gradient=see is None)
    try:
        found = attend(*given_arrays, mask=mask if on_numpy else as_torch(mask), backend=backend, see=see)
    except BackendError:
        assert (backend, see) == ("sdpa", EVERYTHING)  # it computes no statistics
        return
    out: Any = found if see is None else found[0]
    assert out.shape == right.shape
    if not on_numpy:
        if out.requires_grad:
            out.sum().backward()
        out = out.detach().numpy()
    assert_close(out, right, "output", "float32")
    if see is not None:
        for name in FIELDS:
            assert getattr(found[1], name).shape == getattr(record, name).shape
            assert_close(np.asarray(getattr(found[1], name)), getattr(record, name), "statistic", "float32")
        assert found[1].weights().shape == found[1].shape


def test_blocked_distance_without_heads() -> None:
    x, masked = np.zeros((1, 0, 1, 2), np.float32), np.zeros((1, 1), bool)
    right, found = (attend(x, x, x, mask=masked, backend=name, see=EVERYTHING)[1] for name in ("reference", "blocked"))
    assert present(found.distance).shape == present(right.distance).shape


@pytest.mark.parametrize("backend", ["auto", "sdpa", "chunked", "eager"])
def test_no_samples_with_grouped_heads_and_one_query(backend: str) -> None:
    assert attend(torch.ones(0, 4, 1, 2), *two(torch.ones(2, 0, 2, 3, 2)), backend=backend).shape == (0, 4, 1, 2)


@pytest.mark.parametrize("backend", ["auto", "sdpa", "chunked", "eager"])
@pytest.mark.parametrize("bad", [float("nan"), 1e38])
def test_values_of_width_zero_with_nan_or_huge_keys(backend: str, bad: float) -> None:
    q, k = torch.ones(2, 1, 2, 3, 2)
    k[..., 0, 0] = bad
    assert attend(q, k, torch.ones(1, 2, 3, 0), backend=backend).shape == (1, 2, 3, 0)


def test_functional_attention_accepts_empty_calls() -> None:
    for shape in ((0, 4, 1), (1, 4, 0), (0, 4, 0)):
        out, weights = scaled_dot_product_attention(torch.ones(*shape, 2), *torch.ones(2, shape[0], 2, 3, 2))
        assert out.shape == (*shape, 2)
        assert weights.shape == (*shape, 3)


def test_value_norms_in_half_precision_do_not_overflow() -> None:
    x = np.full((1, 1, 1, 2), 1e4, np.float16)
    _, record = attend(x, x, x, see=See(values=True))
    np.testing.assert_allclose(present(record.value_norms), 1e4 * 2**0.5, rtol=1e-3)
