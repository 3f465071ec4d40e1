"""The NumPy functions of 003: arguments, attributes, defaults, results and shapes of seeds.md; corrected numbers."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import Call, calls
from tolerances import assert_close, assert_same_bits

from deep_learning.attention import (
    MultiHeadAttention,
    create_causal_mask,
    create_padding_mask,
    scaled_dot_product_attention,
)
from regard import Mask, reference
from regard.errors import ArgumentError, DtypeError, IndivisibleError, ShapeError

INF = np.inf
SEQ = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0]])


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def arguments(function: object) -> list[str]:
    return [str(p).split(":")[0] for p in inspect.signature(function).parameters.values()]  # type: ignore[arg-type]


# --- scaled_dot_product_attention ------------------------------------------------------------------------


def test_names_and_defaults() -> None:
    assert arguments(scaled_dot_product_attention) == ["Q", "K", "V", "mask"]
    assert inspect.signature(scaled_dot_product_attention).parameters["mask"].default is None
    assert arguments(MultiHeadAttention) == ["d_model", "num_heads", "seed"]
    assert arguments(MultiHeadAttention(8, 2).forward) == ["q", "k", "v", "mask", "return_weights"]
    assert arguments(create_causal_mask) == ["n"]
    assert arguments(create_padding_mask) == ["seq", "pad_token"]
    assert inspect.signature(create_padding_mask).parameters["pad_token"].default == 0


def test_the_hand_calculation() -> None:
    Q, K = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    V = np.array([[10.0, 0.0], [0.0, 20.0], [30.0, 0.0]])
    result = scaled_dot_product_attention(Q, K, V)
    assert type(result) is tuple
    output, weights = result
    np.testing.assert_allclose(weights, [[0.40111, 0.19778, 0.40111]], atol=5e-6)
    np.testing.assert_allclose(output, [[16.0445, 3.9555]], atol=5e-5)


def test_exercise_1() -> None:
    output, weights = scaled_dot_product_attention([[1.0]], [[1.0], [2.0], [0.5]], [[10.0], [20.0], [5.0]])
    np.testing.assert_allclose(weights, [[0.23122, 0.62853, 0.14024]], atol=5e-6)
    np.testing.assert_allclose(output, [[15.5841]], atol=5e-5)  # erratum 2: not 15.57


def test_exercise_2() -> None:
    output, weights = scaled_dot_product_attention([[1.0, 0.0]], np.eye(2), [[5.0, 0.0], [0.0, 10.0]])
    np.testing.assert_allclose(weights, [[0.66976, 0.33024]], atol=5e-6)
    np.testing.assert_allclose(output, [[3.3488, 3.3024]], atol=5e-5)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 3, 4)])
def test_two_axes_and_up(lead: tuple[int, ...]) -> None:
    output, weights = scaled_dot_product_attention(normal(*lead, 3, 4), normal(*lead, 5, 4), normal(*lead, 5, 7))
    assert output.shape == (*lead, 3, 7)
    assert weights.shape == (*lead, 3, 5)
    assert_close(weights.sum(-1), np.ones((*lead, 3)))


@given(calls(biased=False, scaled=False, softcapped=False, grouped=False))
def test_it_equals_the_reference_with_the_converted_mask(call: Call) -> None:
    added = np.where(call.allowed, 0.0, -INF)
    output, weights = scaled_dot_product_attention(call.q, call.k, call.v, added)
    expected, expected_weights = reference.scaled_dot_product_attention(call.q, call.k, call.v, call.allowed)
    assert_same_bits(output, expected)
    assert_same_bits(weights, expected_weights.astype(call.q.dtype))


@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 5), (1, 3, 5), (2, 1, 5), (2, 3, 5), (1, 1, 5)])
def test_masks_broadcast(shape: tuple[int, ...]) -> None:
    q, k, v = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 6, seed=2)
    added = np.where(normal(*shape, seed=3) > 0, 0.0, -INF)
    _, weights = scaled_dot_product_attention(q, k, v, added)
    hidden = np.broadcast_to(added, (2, 3, 5)) == -INF
    assert (weights[hidden] == 0).all()
    assert (weights[~hidden] > 0).all()


def test_a_mask_with_one_sample_fits_arrays_without_a_batch_axis() -> None:
    x = normal(5, 4)
    _, weights = scaled_dot_product_attention(x, x, x, create_padding_mask(SEQ[:1]))
    assert weights.shape == (5, 5)
    assert (weights[:, 3:] == 0).all()


@pytest.mark.parametrize("lead", [(2, 2), (3, 2, 2)])
def test_a_3d_mask_for_scores_with_heads_is_one_per_sample(lead: tuple[int, ...]) -> None:
    # Erratum 14: with B = H, broadcasting from the right would silently apply a sample's mask to each head.
    x = normal(*lead, 5, 4)
    _, weights = scaled_dot_product_attention(x, x, x, create_padding_mask(SEQ))
    assert (weights[..., 0, :, :, 3:] == 0).all()
    assert (weights[..., 0, :, :, :3] > 0).all()
    assert (weights[..., 1, :, :, 2:] == 0).all()


def test_causal_and_padding_masks_can_be_added() -> None:
    both = create_causal_mask(5) + create_padding_mask(SEQ)
    assert both.shape == (2, 5, 5)
    x = normal(2, 5, 4)
    _, weights = scaled_dot_product_attention(x, x, x, both)
    expected = reference.scaled_dot_product_attention(x, x, x, Mask.causal() & Mask.padding(SEQ))[1]
    assert_same_bits(weights, expected)


def test_regard_and_torch_masks() -> None:
    x = normal(4, 3)
    output, _ = scaled_dot_product_attention(x, x, x, create_causal_mask(4))
    assert_same_bits(scaled_dot_product_attention(x, x, x, Mask.causal())[0], output)
    assert_same_bits(scaled_dot_product_attention(x, x, x, torch.tensor(create_causal_mask(4)))[0], output)


def test_an_all_zero_mask_masks_nothing() -> None:
    x = normal(2, 3, 4)
    masked, plain = (
        scaled_dot_product_attention(x, x, x, np.zeros((3, 3))),
        scaled_dot_product_attention(x, x, x),
    )
    assert_same_bits(masked[0], plain[0])


def test_the_lowest_number_of_a_dtype_masks_like_minus_infinity() -> None:
    x = normal(3, 4).astype(np.float32)
    lowest = np.where(create_causal_mask(3) == 0, 0, np.finfo(np.float32).min).astype(np.float32)
    masked, expected = (scaled_dot_product_attention(x, x, x, mask)[1] for mask in (lowest, create_causal_mask(3)))
    assert_same_bits(masked, expected)


def test_a_fully_masked_row_is_zero() -> None:
    x = normal(2, 3, 4)
    mask = np.zeros((3, 3))
    mask[1] = -INF
    output, weights = scaled_dot_product_attention(x, x, x, mask)
    assert (output[:, 1] == 0).all()
    assert (weights[:, 1] == 0).all()
    assert (output[:, 0] != 0).all()


@pytest.mark.parametrize("masked_value", [np.nan, INF, -INF, 1e308])
def test_masked_values_have_no_effect(masked_value: float) -> None:
    q, k, v = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
    changed_k, changed_v = k.copy(), v.copy()
    changed_k[:, 4] = changed_v[:, 4] = masked_value
    hide_last = np.array([0, 0, 0, 0, -INF])
    expected = scaled_dot_product_attention(q, k, v, hide_last)
    found = scaled_dot_product_attention(q, changed_k, changed_v, hide_last)
    assert_same_bits(found[0], expected[0])
    assert_same_bits(found[1], expected[1])
    assert not np.isfinite(scaled_dot_product_attention(q, changed_k * INF, changed_v)[0]).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_dtype_is_kept(dtype: str) -> None:
    x = normal(3, 4).astype(dtype)
    assert [part.dtype.name for part in scaled_dot_product_attention(x, x, x)] == [dtype, dtype]


def test_integers_are_converted_to_float() -> None:
    output, _ = scaled_dot_product_attention([[1]], [[1], [2]], [[10], [20]])
    assert 10 < float(output[0, 0]) < 20
    assert output[0, 0] % 1 != 0


# --- errors --------------------------------------------------------------------------------------------


def test_a_finite_additive_mask_is_refused_and_bias_named() -> None:
    x = normal(3, 4)
    with pytest.raises(ArgumentError, match=r"found -1000000000\.0.*write -inf.*bias=scores"):
        scaled_dot_product_attention(x, x, x, np.where(create_causal_mask(3) == 0, 0, -1e9))
    with pytest.raises(DtypeError, match=r"float64.*Mask\.of\(mask == 1\)"):  # a 0/1 mask, in floats
        scaled_dot_product_attention(x, x, x, np.tri(3))
    with pytest.raises(ArgumentError, match="found nan"):
        scaled_dot_product_attention(x, x, x, np.full((3, 3), np.nan))


@pytest.mark.parametrize("dtype", [bool, int])
def test_a_mask_of_another_convention_is_refused_by_its_dtype(dtype: type) -> None:
    x = normal(2, 3, 4)
    with pytest.raises(DtypeError, match=r"0 = visible and -inf = masked.*\(2, 3, 3\).*Mask\.of\(mask == 1\)"):
        scaled_dot_product_attention(x, x, x, np.ones((2, 3, 3), dtype))


@pytest.mark.parametrize("shape", [(4,), (2, 5), (3, 1, 5), (4, 3, 5), (2, 2, 3, 5), (0, 3, 5)])
def test_a_mask_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="does not fit the scores"):
        scaled_dot_product_attention(normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4), np.zeros(shape))


def test_other_masks_are_refused() -> None:
    x = normal(3, 4)
    for mask in (0.0, [[0.0], [0.0, 1.0]], "mask", np.array([[None] * 3] * 3)):
        with pytest.raises((DtypeError, ShapeError), match="mask"):
            scaled_dot_product_attention(x, x, x, mask)


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="same width"):
        scaled_dot_product_attention(normal(3, 4), normal(5, 3), normal(5, 3))
    with pytest.raises(DtypeError, match="K must be a NumPy array here; found a torch tensor"):
        scaled_dot_product_attention(normal(3, 4), torch.ones(3, 4), normal(3, 4))
    with pytest.raises(DtypeError, match="Q must be a NumPy array or a torch tensor; found list"):
        scaled_dot_product_attention([[1.0], [1.0, 2.0]], normal(3, 4), normal(3, 4))


# --- MultiHeadAttention ----------------------------------------------------------------------------------


def test_multi_head_attributes() -> None:
    mha = MultiHeadAttention(d_model=128, num_heads=8)
    assert (mha.d_model, mha.num_heads, mha.d_k) == (128, 8, 16)
    for W in (mha.W_q, mha.W_k, mha.W_v, mha.W_o):
        assert W.shape == (128, 128)
        # Xavier-uniform: within √(3 / 128), and near it somewhere.
        assert 0.98 < np.abs(W).max() / np.sqrt(3 / 128) <= 1


def test_forward_returns_only_the_output() -> None:
    x = normal(2, 10, 128)
    mha = MultiHeadAttention(d_model=128, num_heads=8)
    output = mha.forward(x, x, x)
    assert isinstance(output, np.ndarray)
    assert output.shape == (2, 10, 128)
    again, weights = mha.forward(x, x, x, return_weights=True)
    assert_same_bits(again, output)
    assert weights.shape == (2, 8, 10, 10)


def test_keys_and_values_may_have_another_length() -> None:
    mha = MultiHeadAttention(8, 2)
    output, weights = mha.forward(normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 8), return_weights=True)
    assert output.shape == (2, 3, 8)
    assert weights.shape == (2, 2, 3, 5)


def test_the_same_seed_gives_the_same_weights() -> None:
    one, same, other, free = (MultiHeadAttention(8, 2, seed=seed) for seed in (7, 7, 8, None))
    assert_same_bits(one.W_o, same.W_o)
    assert (one.W_q != other.W_q).all()
    assert (one.W_q != free.W_q).all()
    assert (one.W_q != one.W_k).all()


def test_it_equals_pytorch_with_the_same_weights() -> None:
    mha, x = MultiHeadAttention(8, 2, seed=0), normal(2, 5, 8)
    theirs = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        stacked = np.concatenate([mha.W_q.T, mha.W_k.T, mha.W_v.T])  # nn.Linear stores the transpose
        theirs.in_proj_weight.copy_(torch.from_numpy(stacked))
        theirs.out_proj.weight.copy_(torch.from_numpy(mha.W_o.T.copy()))
        tensor, hidden = torch.from_numpy(x), torch.ones(5, 5).triu(1).bool()
        expected = theirs(tensor, tensor, tensor, attn_mask=hidden, average_attn_weights=False)
    found = mha.forward(x, x, x, create_causal_mask(5), return_weights=True)
    assert_close(found[0], expected[0])
    assert_close(found[1], expected[1], "weights")


def test_columns_belong_to_one_head() -> None:
    # Erratum 8: projections are not shared by the heads.
    x, mha = normal(1, 4, 8), MultiHeadAttention(8, 2, seed=0)
    _, before = mha.forward(x, x, x, return_weights=True)
    mha.W_q[:, 4:] = 0
    _, after = mha.forward(x, x, x, return_weights=True)
    assert_same_bits(after[:, 0], before[:, 0])
    assert_close(after[:, 1], np.full((1, 4, 4), 0.25), "weights")


@pytest.mark.parametrize("shape", [(2, 1, 5), (2, 5, 5), (2, 1, 1, 5), (2, 1, 5, 5), (2, 2, 5, 5)])
def test_multi_head_masks_are_one_per_sample(shape: tuple[int, ...]) -> None:
    # B = H = 2: the case of erratum 14 that raises nothing.
    mask = create_padding_mask(SEQ) if len(shape) == 3 else create_padding_mask(SEQ)[:, None]
    x = normal(2, 5, 8)
    _, weights = MultiHeadAttention(8, 2).forward(x, x, x, np.broadcast_to(mask, shape), return_weights=True)
    assert ((weights == 0) == (SEQ == 0)[:, None, None, :]).all()


@pytest.mark.parametrize("mask", [np.zeros(5), create_causal_mask(5), Mask.causal(), Mask.padding(SEQ)])
def test_multi_head_masks_for_all_samples(mask: Any) -> None:
    x = normal(2, 5, 8)
    assert np.isfinite(MultiHeadAttention(8, 2).forward(x, x, x, mask)).all()


def test_a_fully_masked_query_gets_zeros() -> None:
    x = normal(2, 5, 8)
    nothing = create_padding_mask(np.array([[0] * 5, [1] * 5]))
    output, weights = MultiHeadAttention(8, 2).forward(x, x, x, nothing, return_weights=True)
    assert (output[0] == 0).all()
    assert (weights[0] == 0).all()
    assert (output[1] != 0).all()


@pytest.mark.parametrize("masked_value", [np.nan, INF, -INF, 1e308])
def test_masked_nan_has_no_effect_in_multi_head(masked_value: float) -> None:
    x, memory, mha = normal(2, 3, 8), normal(2, 5, 8), MultiHeadAttention(8, 2, seed=0)
    changed = np.where((SEQ == 0)[..., None], masked_value, memory)
    clean = mha.forward(x, memory, memory, create_padding_mask(SEQ))
    assert_same_bits(mha.forward(x, changed, changed, create_padding_mask(SEQ)), clean)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_multi_head_output_has_the_dtype_of_the_input(dtype: str) -> None:
    x = normal(1, 3, 8).astype(dtype)
    output, weights = MultiHeadAttention(8, 2).forward(x, x, x, return_weights=True)
    assert output.dtype == weights.dtype == np.dtype(dtype)


def test_an_indivisible_width_is_a_shape_and_a_value_error() -> None:
    for kind in (IndivisibleError, ValueError, AssertionError):
        with pytest.raises(kind, match="num_heads=3 must divide d_model=10; nearest widths are 9 and 12"):
            MultiHeadAttention(10, 3)


@pytest.mark.parametrize(("d_model", "num_heads"), [(0, 1), (8, 0), (8, -2), (8.0, 2), (8, True)])
def test_sizes_below_one_are_refused(d_model: int, num_heads: int) -> None:
    with pytest.raises(ArgumentError, match="whole number of at least 1"):
        MultiHeadAttention(d_model, num_heads)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 4), (1, 2, 3, 8)])
def test_input_of_the_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    x = normal(2, 3, 8)
    with pytest.raises(ShapeError, match=r"k must have shape \(B, T, 8\)"):
        MultiHeadAttention(8, 2).forward(x, normal(*shape), x)


# --- masks -----------------------------------------------------------------------------------------------


def test_the_causal_mask_prints_as_in_the_tutorial() -> None:
    mask = create_causal_mask(4)
    assert mask.dtype == np.float64
    assert str(mask).splitlines()[0] == "[[  0. -inf -inf -inf]"
    assert "-0." not in str(mask)
    assert ((mask == 0) == np.tri(4, dtype=bool)).all()
    assert (mask[np.triu_indices(4, 1)] == -INF).all()
    assert create_causal_mask(np.int64(1)).tolist() == [[0.0]]  # type: ignore[arg-type]
    assert create_causal_mask(0).shape == (0, 0)


@pytest.mark.parametrize("n", [-1, 2.0, True, "4", None, np.array([4])])
def test_a_causal_mask_of_no_size_is_refused(n: int) -> None:
    with pytest.raises(ArgumentError, match="n must be a whole number of at least 0"):
        create_causal_mask(n)


def test_the_padding_mask() -> None:
    mask = create_padding_mask(SEQ, pad_token=0)
    assert mask.shape == (2, 1, 5)
    assert mask.dtype == np.float64
    assert ((mask[:, 0] == -INF) == (SEQ == 0)).all()
    assert (mask[:, 0][SEQ != 0] == 0).all()
    assert create_padding_mask([[7, 1]], pad_token=7).tolist() == [[[-INF, 0.0]]]
    assert create_padding_mask([3, 0]).tolist() == [[0.0, -INF]]
    with pytest.raises(ShapeError, match=r"seq must have shape \(B, S\); found \(\)"):
        create_padding_mask(3)
    with pytest.raises(DtypeError, match="seq must be a NumPy array"):
        create_padding_mask([[1, 2], [3]])
