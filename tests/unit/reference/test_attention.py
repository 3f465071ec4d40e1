"""The reference attention, compared with scalar arithmetic, and its invariances."""

import math
from typing import Any

import numpy as np
import pytest
from cases import CASES, make_case
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present, three
from strategies import Call, calls
from tolerances import assert_close, assert_same_bits

from regard.errors import IndivisibleError, RegardError, ShapeError
from regard.layer_checks import Projections
from regard.masks import Mask
from regard.reference import (
    attention_scores,
    linear,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)


def attend(call: Call) -> tuple[np.ndarray, np.ndarray]:
    return scaled_dot_product_attention(call.q, call.k, call.v, **call.options)


def by_hand(call: Call) -> tuple[np.ndarray, np.ndarray]:
    """Output and weights, one query at a time, in Python floats."""
    sizes = call.sizes
    scale = 1 / math.sqrt(sizes.E) if call.scale is None else call.scale
    bias = None if call.bias is None else np.broadcast_to(call.bias, sizes.scores)
    output, weights = np.zeros((*sizes.lead, sizes.T, sizes.Ev)), np.zeros(sizes.scores)
    for index in np.ndindex(*sizes.lead, sizes.T):
        # Query head h is served by key/value head h // (H / G).
        at = (*index[:-2], index[-2] * sizes.G // sizes.H) if sizes.has_heads else index[:-1]
        scores: dict[int, float] = {}
        for s in np.flatnonzero(call.allowed[index]).tolist():
            score = scale * math.fsum(
                a * b for a, b in zip(call.q[index].tolist(), call.k[(*at, s)].tolist(), strict=True)
            )
            score = score if call.softcap is None else call.softcap * math.tanh(score / call.softcap)
            scores[s] = score + (0.0 if bias is None else float(bias[(*index, s)]))
        total = math.fsum(math.exp(score) for score in scores.values())
        for s, score in scores.items():
            weights[(*index, s)] = math.exp(score) / total
            output[index] += weights[(*index, s)] * call.v[(*at, s)].astype(float)
    return output, weights


@given(calls())
def test_it_equals_the_calculation_by_hand(call: Call) -> None:
    output, weights = attend(call)
    assert output.dtype == call.q.dtype
    assert weights.dtype == (np.float32 if call.q.dtype == np.float16 else call.q.dtype)
    expected_output, expected_weights = by_hand(call)
    assert_close(weights, expected_weights, "weights")
    assert_close(output, expected_output, "output")


@pytest.mark.parametrize("name", CASES)
def test_the_named_cases(name: str) -> None:
    call = make_case(name)
    for found, expected in zip(attend(call), by_hand(call), strict=True):
        assert_close(found, expected, "output")


@given(calls())
def test_rows_sum_to_one_or_zero(call: Call) -> None:
    _, weights = attend(call)
    np.testing.assert_allclose(weights.sum(-1), call.allowed.any(-1).astype(float), atol=1e-6)
    assert not weights[~call.allowed].any()


@given(calls())
def test_a_fully_masked_query_gets_exactly_zero(call: Call) -> None:
    output, weights = attend(call)
    fully_masked = ~call.allowed.any(-1)
    assert not output[fully_masked].any()
    assert not weights[fully_masked].any()
    gradients = scaled_dot_product_attention_backward(np.ones_like(output), call.q, call.k, call.v, **call.options)
    assert not gradients.q[fully_masked].any()
    assert all(np.isfinite(g).all() for g in gradients[:3])


@given(calls(), st.integers(0, 9))
def test_keys_masked_for_all_queries_have_no_effect(call: Call, seed: int) -> None:
    clean, spoiled = call.with_garbage(call.unseen, seed)
    for found, expected in zip(attend(spoiled), attend(clean), strict=True):
        assert_same_bits(found, expected)


@given(calls(), st.integers(0, 9))
def test_gradients_do_not_depend_on_masked_values(call: Call, seed: int) -> None:
    unseen = call.unseen
    grad = np.random.default_rng(seed).standard_normal((*call.sizes.lead, call.sizes.T, call.sizes.Ev))
    clean, found = (
        scaled_dot_product_attention_backward(grad.astype(c.q.dtype), c.q, c.k, c.v, **c.options)
        for c in call.with_garbage(unseen, seed)
    )
    for one, other in zip(found, clean, strict=True):
        if other is not None:
            assert_same_bits(one, other)
    assert not found.k[unseen].any()
    assert not found.v[unseen].any()


@given(calls(lengths=(1, 2, 5, 8)), st.data())
def test_a_query_does_not_depend_on_its_masked_keys(call: Call, data: st.DataObject) -> None:
    """Set everything masked for one query to NaN: its row is bit-identical; rows that see it are NaN."""
    if call.allowed.size == 0:
        return
    index = tuple(data.draw(st.integers(0, size - 1)) for size in (*call.sizes.lead, call.sizes.T))
    at = (*index[:-2], index[-2] * call.sizes.G // call.sizes.H) if call.sizes.has_heads else index[:-1]
    where = np.zeros(call.k.shape[:-1], bool)
    where[at] = ~call.allowed[index]
    clean, spoiled = call.with_garbage(where, seed=1)
    output, weights = attend(clean)
    spoiled_output, spoiled_weights = attend(spoiled)
    assert_same_bits(spoiled_output[index], output[index])
    assert_same_bits(spoiled_weights[index], weights[index])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "k", "v", "bias"])
def test_visible_nan_and_inf_give_nan(which: str, bad: float) -> None:
    rng = np.random.default_rng(0)
    call: dict[str, Any] = {name: rng.standard_normal((3, 2)) for name in ("q", "k", "v")}
    call["bias"] = np.zeros((3, 3))
    call[which][1, 1] = bad
    output, _ = scaled_dot_product_attention(**call, mask=Mask.causal())
    nan_rows = {"q": [1], "k": [1, 2], "v": [1, 2], "bias": [1]}[which]
    if which == "bias" and bad == -np.inf:
        nan_rows = []  # a bias of -inf is valid: it masks
    assert [row for row in range(3) if not np.isfinite(output[row]).all()] == nan_rows


def test_masked_values_that_overflow() -> None:
    """Finite values whose products overflow change neither output nor gradients."""
    largest = np.finfo(np.float32).max
    rng = np.random.default_rng(0)
    q, k, v, grad = (rng.standard_normal((4, 3)).astype("f4") for _ in range(4))
    mask = Mask.prefix(2)
    for softcap in (None, 5.0):
        clean = scaled_dot_product_attention(q, k, v, mask, softcap=softcap)
        clean_gradients = scaled_dot_product_attention_backward(grad, q, k, v, mask, softcap=softcap)
        k_large, v_large = k.copy(), v.copy()
        k_large[2:], v_large[2:] = [largest, -largest, largest], -largest
        found = scaled_dot_product_attention(q, k_large, v_large, mask, softcap=softcap)
        gradients = scaled_dot_product_attention_backward(grad, q, k_large, v_large, mask, softcap=softcap)
        for one, other in zip((*found, *gradients[:3]), (*clean, *clean_gradients[:3]), strict=True):
            assert_same_bits(one, other)


def test_a_masked_bias_has_no_effect() -> None:
    call = make_case("causal")
    bias = np.where(call.allowed, 0.5, np.nan)
    clean = scaled_dot_product_attention(call.q, call.k, call.v, call.mask, np.where(call.allowed, 0.5, 0))
    found = scaled_dot_product_attention(call.q, call.k, call.v, call.mask, bias)
    assert_same_bits(found[0], clean[0])
    grad = np.ones_like(found[0])
    gradients = scaled_dot_product_attention_backward(grad, call.q, call.k, call.v, call.mask, bias)
    assert all(np.isfinite(g).all() for g in gradients)  # type: ignore[arg-type]


def test_a_fully_masked_nan_query_gets_zero() -> None:
    q = np.full((1, 2), np.nan)
    output, weights = scaled_dot_product_attention(q, np.ones((3, 2)), np.ones((3, 2)), Mask.prefix(0))
    np.testing.assert_array_equal(output, [[0, 0]])
    np.testing.assert_array_equal(weights, [[0, 0, 0]])


def test_half_precision_does_not_overflow() -> None:
    """|q|, |k| up to 1e4 in float16: their product is beyond float16, not beyond float32."""
    rng = np.random.default_rng(0)
    q, k = (rng.uniform(-1e4, 1e4, (5, 64)).astype("f2") for _ in range(2))
    v = rng.standard_normal((5, 3)).astype("f2")
    output, weights = scaled_dot_product_attention(q, k, v)
    assert weights.dtype == np.float32
    assert np.isfinite(output).all()
    expected, _ = scaled_dot_product_attention(*three(x.astype("f8") for x in (q, k, v)))
    assert_close(output, expected, "output")


def test_integers_are_converted_to_float() -> None:
    """The tutorial writes Q = [[1, 0]]; 16.04 must not become 16."""
    Q, K, V = np.array([[1, 0]]), np.array([[1, 0], [0, 1], [1, 0]]), np.array([[10, 0], [0, 20], [30, 0]])
    try:
        output, _ = scaled_dot_product_attention(Q, K, V)
    except RegardError:
        return
    np.testing.assert_allclose(output, [[16.0445, 3.9555]], atol=1e-4)


def test_the_tutorials_numbers() -> None:
    output, weights = scaled_dot_product_attention(
        np.array([[1.0]]), np.array([[1.0], [2.0], [0.5]]), np.array([[10.0], [20.0], [5.0]])
    )
    np.testing.assert_allclose(weights, [[0.23122, 0.62853, 0.14024]], atol=5e-6)
    np.testing.assert_allclose(output, [[15.5841]], atol=5e-5)


@given(calls(axes=(3, 4), lengths=(1, 3, 8), biased=False))
def test_the_order_of_the_keys_does_not_matter(call: Call) -> None:
    order = np.random.default_rng(0).permutation(call.sizes.S)
    options = call.options | {"mask": call.allowed[..., order]}
    output, _ = scaled_dot_product_attention(call.q, call.k[..., order, :], call.v[..., order, :], **options)
    assert_close(output, attend(call)[0], "output")


@given(calls(axes=(4,), lengths=(1, 3, 8), biased=False))
def test_samples_and_heads_are_independent(call: Call) -> None:
    output, _ = attend(call)
    sizes = call.sizes
    for b in range(sizes.B):
        for h in range(sizes.H):
            g = h * sizes.G // sizes.H
            options = call.options | {"mask": call.allowed[b, h]}
            alone, _ = scaled_dot_product_attention(call.q[b, h], call.k[b, g], call.v[b, g], **options)
            assert_close(alone, output[b, h], "output")


def test_masked_scores_are_minus_infinity() -> None:
    scores = attention_scores(np.ones((2, 4)), np.ones((2, 4)), Mask.causal())
    np.testing.assert_array_equal(scores, [[2, -np.inf], [2, 2]])


def test_arguments_are_not_modified() -> None:
    call = make_case("grouped")
    before = [x.copy() for x in (call.q, call.k, call.v)]
    for x in (call.q, call.k, call.v):
        x.flags.writeable = False
    output, _ = attend(call)
    scaled_dot_product_attention_backward(output, call.q, call.k, call.v, **call.options)
    for x, y in zip((call.q, call.k, call.v), before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_bias_may_not_enlarge_the_scores() -> None:
    """Five biases for one head would silently broadcast to five outputs."""
    q = np.ones((2, 3))
    with pytest.raises(RegardError):
        scaled_dot_product_attention(q, q, q, bias=np.zeros((5, 2, 2)))


def test_a_mask_that_does_not_fit_is_refused_even_without_keys() -> None:
    with pytest.raises(ShapeError):
        scaled_dot_product_attention(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 3)), Mask.padding([1, 2]))


def test_five_axes_without_keys_under_a_padding_mask() -> None:
    q, k = np.ones((2, 2, 1, 3, 4)), np.ones((2, 2, 1, 0, 4))
    output, _ = scaled_dot_product_attention(q, k, k, Mask.padding(np.zeros((2, 0), int)))
    np.testing.assert_array_equal(output, np.zeros((2, 2, 1, 3, 4)))


def random_projections(
    rng: np.random.Generator, D: int, H: int, G: int, E: int, Ev: int, biases: bool = True
) -> Projections:
    """Projections of any widths."""
    shapes = ((D, H * E), (D, G * E), (D, G * Ev), (H * Ev, D))
    W = [rng.standard_normal(shape) / np.sqrt(D) for shape in shapes]
    b = [rng.standard_normal(shape[1]) if biases else None for shape in shapes]
    return Projections(*W, *b)


@given(st.sampled_from([(), (2,), (2, 3), (0,)]), st.integers(0, 5), st.integers(1, 4), st.integers(1, 4))
def test_merge_undoes_split(lead: tuple[int, ...], T: int, H: int, E: int) -> None:
    x = np.random.default_rng(0).standard_normal((*lead, T, H * E))
    heads = split_heads(x, H)
    assert heads.shape == (*lead, H, T, E)
    np.testing.assert_array_equal(merge_heads(heads), x)
    for h in range(H):
        np.testing.assert_array_equal(heads[..., h, :, :], x[..., h * E : (h + 1) * E])


@pytest.mark.parametrize(("D", "H"), [(10, 3), (4, 0), (4, -2), (0, 2), (2, 4)])
def test_heads_that_do_not_divide_are_refused(D: int, H: int) -> None:
    with pytest.raises(IndivisibleError) as caught:
        split_heads(np.zeros((1, 2, D)), H)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AssertionError)


@given(
    st.sampled_from([(1, 1), (2, 2), (4, 2), (3, 1)]),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.sampled_from([None, Mask.causal(), Mask.prefix(0)]),
)
def test_it_equals_one_head_at_a_time(heads: tuple[int, int], E: int, Ev: int, biases: bool, mask: Mask | None) -> None:
    (H, G), (B, T, S, D) = heads, (2, 3, 4, 5)
    rng = np.random.default_rng(H + E)
    p = random_projections(rng, D, H, G, E, Ev, biases)
    q, k, v = rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D)), rng.standard_normal((B, S, D))
    output, weights = multi_head_attention(q, k, v, p, H, G, mask)
    assert output.shape == (B, T, D)
    assert weights.shape == (B, H, T, S)
    expected = np.zeros((B, T, D)) + (0 if p.b_o is None else p.b_o)
    for h in range(H):
        g = h // (H // G)
        own, served, values = slice(h * E, (h + 1) * E), slice(g * E, (g + 1) * E), slice(g * Ev, (g + 1) * Ev)
        head, one = scaled_dot_product_attention(
            linear(q, p.W_q, p.b_q)[..., own], linear(k, p.W_k, p.b_k)[..., served],
            linear(v, p.W_v, p.b_v)[..., values], mask,
        )  # fmt: skip
        assert_close(weights[:, h], one, "weights")
        expected += head @ p.W_o[h * Ev : (h + 1) * Ev]
    assert_close(output, expected, "output")


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=["no sample axis", "one", "two"])
@pytest.mark.parametrize("G", [4, 2, 1])
def test_any_number_of_sample_axes(lead: tuple[int, ...], G: int) -> None:
    """(…, T, D): also a single sequence without a batch axis."""
    rng = np.random.default_rng(0)
    p = random_projections(rng, 8, 4, G, 2, 2)
    x = rng.standard_normal((*lead, 3, 8))
    output, weights = multi_head_attention(x, x, x, p, 4, G, Mask.causal())
    assert weights.shape == (*lead, 4, 3, 3)
    flat = x.reshape(-1, 3, 8)
    batched, _ = multi_head_attention(flat, flat, flat, p, 4, G, Mask.causal())
    assert_close(output, batched.reshape(output.shape), "output")
    gradients = multi_head_attention_backward(np.ones_like(output), x, x, x, p, 4, G, Mask.causal())
    assert gradients.q.shape == x.shape


def test_a_padding_mask_of_a_single_sequence_is_not_one_per_head() -> None:
    """H rows of ids mean H samples, not the H heads of a single sequence."""
    rng = np.random.default_rng(0)
    p = random_projections(rng, 4, 2, 2, 2, 2)
    x = rng.standard_normal((3, 4))
    with pytest.raises(RegardError):
        multi_head_attention(x, x, x, p, 2, mask=Mask.padding(np.array([[1, 0, 0], [1, 1, 1]])))


def test_a_fully_masked_row_is_the_output_bias() -> None:
    rng = np.random.default_rng(0)
    p = random_projections(rng, 4, 2, 2, 2, 2)
    x = rng.standard_normal((1, 3, 4))
    output, _ = multi_head_attention(x, x, x, p, 2, mask=Mask.prefix(0))
    np.testing.assert_array_equal(output, np.broadcast_to(present(p.b_o), output.shape))
    gradients = multi_head_attention_backward(np.ones_like(output), x, x, x, p, 2, mask=Mask.prefix(0))
    for gradient in (*gradients[:3], *gradients.projections[:3]):
        assert not gradient.any()


def test_missing_biases_have_no_gradient() -> None:
    p = random_projections(np.random.default_rng(0), 4, 2, 2, 2, 2, biases=False)
    x = np.ones((1, 3, 4))
    gradients = multi_head_attention_backward(x, x, x, x, p, 2)
    assert gradients.projections[4:] == (None, None, None, None)


@pytest.mark.parametrize(("T", "S"), [(0, 3), (3, 0), (0, 0)])
def test_no_queries_and_no_keys(T: int, S: int) -> None:
    p = random_projections(np.random.default_rng(0), 4, 2, 1, 2, 3)
    q, k = np.ones((2, T, 4)), np.ones((2, S, 4))
    output, weights = multi_head_attention(q, k, k, p, 2, 1)
    assert (output.shape, weights.shape) == ((2, T, 4), (2, 2, T, S))
    gradients = multi_head_attention_backward(output, q, k, k, p, 2, 1)
    assert gradients.k.shape == k.shape
    assert not gradients.projections.W_q.any()
