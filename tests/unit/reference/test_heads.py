"""Multi-head attention equals one head at a time; split, merge and backward."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from tolerances import assert_close

from regard.errors import IndivisibleError, RegardError
from regard.layer_rules import Projections
from regard.masks import Mask
from regard.reference import (
    linear,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    split_heads,
)


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
