"""The top keys are the same on every backend, with equal scores, masked keys and weights that underflow."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import three

from regard import Mask, See, attend, functional, reference
from regard.arrays import to_numpy

BACKENDS = ("reference", "blocked", "chunked", "eager")


@st.composite
def calls_with_equal_scores(draw: st.DrawFn) -> dict[str, Any]:
    """q, k, v of few different rows, so that many scores are equal, and exact on every backend; a mask; a scale.

    With a scale of 64 or more, most weights underflow to 0, although the keys are visible.
    """
    T, S = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    dtype = draw(st.sampled_from(("float64", "float32", "float16")))
    q = rng.integers(-1, 2, (2, T, 4)).astype(dtype)
    k = rng.integers(-1, 2, (2, draw(st.integers(1, 8)), 4)).astype(dtype)
    k = k[:, rng.integers(0, k.shape[1], S)]
    some = st.integers(0, 5)
    masks = st.one_of(
        st.none(),
        st.just(Mask.causal()),
        st.builds(Mask.window, some, some),
        st.just(Mask.from_keep(rng.random((2, S)) < 0.5)),
        st.just(Mask.of(rng.random((T, S)) < 0.3)),
    )
    bias = np.where(rng.random((T, S)) < 0.2, -np.inf, 0).astype(dtype) if draw(st.booleans()) else None
    return {
        "q": q,
        "k": k,
        "v": k,
        "mask": draw(masks),
        "bias": bias,
        "scale": draw(st.sampled_from((0.5, 64.0, 512.0))),
    }


def expected_top(call: dict[str, Any], top: int) -> tuple[np.ndarray, np.ndarray]:
    """The visible keys by score, ties by position, then the first masked keys; and their weights."""
    scores = reference.attention_scores(call["q"], call["k"], call["mask"], call["bias"], call["scale"])
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]).tolist():
        visible = sorted((j for j, score in enumerate(row) if score > -np.inf), key=lambda j: (-row[j], j))
        rows.append([*visible, *(j for j in range(len(row)) if j not in visible)][:top])
    keys = np.reshape(rows, (*scores.shape[:-1], -1))
    return keys, np.take_along_axis(reference.softmax(scores), keys, -1)


@pytest.mark.parametrize("backend", BACKENDS)
@given(call=calls_with_equal_scores(), top=st.sampled_from((1, 2, 3, 5, 30)), entropy=st.booleans())
def test_every_backend_returns_the_same_keys(backend: str, call: dict[str, Any], top: int, entropy: bool) -> None:
    keys, weights = expected_top(call, top)
    if backend in ("chunked", "eager"):
        call = {n: torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for n, x in call.items()}
    # Two texts: a key that is masked for all queries does not make a query padding.
    _, record = attend(**call, see=See(top=top, entropy=entropy), backend=backend, kind="cross")
    assert record.top is not None
    np.testing.assert_array_equal(to_numpy(record.top.indices)[:, 0], keys)
    np.testing.assert_allclose(to_numpy(record.top.weights)[:, 0], weights, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("backend", BACKENDS)
def test_query_with_too_few_visible_keys_gets_the_first_masked_ones(backend: str) -> None:
    """NumPy once returned [0, 4, 5] for the first row, and torch [0, 4, 3]."""
    q = k = np.random.default_rng(0).standard_normal((6, 4))
    x = three(x if backend in ("reference", "blocked") else torch.tensor(x) for x in (q, k, k))
    _, record = attend(*x, mask=Mask.causal(), see=See(top=3), backend=backend)
    assert record.top is not None
    assert record.top.indices[0, 0, 0].tolist() == [0, 1, 2]
    assert record.top.weights[0, 0, 0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_visible_keys_of_weight_zero_come_before_masked_keys(backend: str) -> None:
    q, k = np.ones((1, 1)), np.array([[0.0], [-2.0], [-1.0], [9.0]])
    x = three(x if backend in ("reference", "blocked") else torch.tensor(x) for x in (q, k, k))
    keep = np.array([[False, True, True, True]])
    _, record = attend(*x, mask=Mask.from_keep(keep), scale=1e4, see=See(top=4), backend=backend)
    assert record.top is not None
    assert record.top.indices[0, 0, 0].tolist() == [3, 2, 1, 0]
    assert record.top.weights[0, 0, 0].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_equal_keys_over_several_blocks(backend: str) -> None:
    """Every score is the same, and there are more rows than in a block."""
    x = np.ones((300, 2), np.float32)
    given_arrays = three(x if backend in ("reference", "blocked") else torch.tensor(x) for _ in range(3))
    _, record = attend(*given_arrays, mask=Mask.window(6, 0), see=See(top=5), backend=backend)
    assert record.top is not None
    right = [[*range(max(0, i - 6), i + 1), *range(300)][:5] for i in range(4, 300)]
    assert record.top.indices[0, 0, 4:].tolist() == right
    assert (to_numpy(record.top.indices)[0, 0, :4] == np.arange(5)).all()


@given(st.integers(0, 999), st.integers(0, 9), st.integers(1, 12), st.booleans())
def test_reference_and_functional_agree_on_weights(seed: int, S: int, k: int, has_nan: bool) -> None:
    weights = np.random.default_rng(seed).integers(0, 3, (2, 3, S)) / 4
    weights[0, 1] = np.nan if has_nan else 0.0
    ours = reference.top_keys(weights, k)
    theirs = functional.top_keys(torch.tensor(weights), k)
    np.testing.assert_array_equal(theirs.indices, ours.indices)
    np.testing.assert_array_equal(theirs.weights, ours.weights)


@pytest.mark.parametrize("k", [2, 7])
def test_compiled_top_keys_are_the_same(k: int) -> None:
    weights = torch.randint(0, 3, (4, 7), generator=torch.Generator().manual_seed(0)) / 4
    traced = torch.compile(functional.top_keys, fullgraph=True, backend="eager")
    np.testing.assert_array_equal(traced(weights, k).indices, functional.top_keys(weights, k).indices)
