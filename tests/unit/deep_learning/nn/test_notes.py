"""The classes of 000 and 001: mask 1 or True = masked; causal and padding masks combined."""

import inspect
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import Call, calls
from tolerances import assert_close, assert_same_bits

from deep_learning.nn import FeedForward, MultiHeadAttention, PositionalEncoding, ScaledDotProductAttention
from regard import Mask, reference
from regard.errors import ArgumentError, DtypeError, IndivisibleError, ShapeError
from regard.reference.positions import sinusoidal_positions

SEQ = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0]])


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def arguments(function: object) -> dict[str, object]:
    return {p.name: p.default for p in inspect.signature(function).parameters.values()}  # type: ignore[arg-type]


def test_names_and_defaults() -> None:
    given_always = inspect.Parameter.empty
    attention = {"Q": given_always, "K": given_always, "V": given_always, "mask": None}
    assert arguments(ScaledDotProductAttention) == {"d_k": None, "causal": False}
    assert arguments(ScaledDotProductAttention().forward) == attention
    assert arguments(MultiHeadAttention) == {
        "d_model": given_always,
        "num_heads": given_always,
        "causal": False,
    }
    assert arguments(MultiHeadAttention(8, 2).forward) == attention
    assert arguments(PositionalEncoding) == {"d_model": given_always, "max_len": 5000}
    assert arguments(FeedForward) == {"d_model": given_always, "d_ff": None}


# --- ScaledDotProductAttention ---------------------------------------------------------------------------


@given(calls(axes=(3, 4), biased=False, scaled=False, softcapped=False, grouped=False, dtypes=("float64",)))
def test_it_equals_the_reference_with_the_converted_mask(call: Call) -> None:
    tensors = call.as_torch()
    hidden = torch.from_numpy(~call.allowed)
    found = ScaledDotProductAttention()(tensors.q, tensors.k, tensors.v, hidden)
    expected = reference.scaled_dot_product_attention(call.q, call.k, call.v, call.allowed)
    assert_close(found[0], expected[0])
    assert_close(found[1], expected[1], "weights")


@pytest.mark.parametrize("lead", [(2,), (2, 3)])
def test_three_or_four_axes(lead: tuple[int, ...]) -> None:
    out, weights = ScaledDotProductAttention()(normal(*lead, 3, 4), normal(*lead, 5, 4), normal(*lead, 5, 7))
    assert out.shape == (*lead, 3, 7)
    assert weights.shape == (*lead, 3, 5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8, torch.float32, torch.float16])
@pytest.mark.parametrize("shape", [(3, 5), (2, 1, 5), (2, 3, 5), (2, 1, 1, 5), (5,)])
@pytest.mark.parametrize("lead", [(2,), (2, 2)])
def test_one_means_masked(lead: tuple[int, ...], shape: tuple[int, ...], dtype: torch.dtype) -> None:
    hidden = normal(*shape, seed=3) > 0
    _, weights = ScaledDotProductAttention()(
        normal(*lead, 3, 4), normal(*lead, 5, 4), normal(*lead, 5, 4), hidden.to(dtype)
    )
    # One mask per sample: (2, ·, 5) belongs to the axis before the heads (erratum 14).
    whole = hidden if hidden.ndim <= 2 else hidden.reshape(2, *[1] * (len(lead) - 1), -1, 5)
    assert ((weights == 0) == whole.broadcast_to(weights.shape)).all()


def test_causal_and_padding_masks_combined() -> None:
    x = normal(2, 5, 4)
    attention = ScaledDotProductAttention(causal=True)
    assert attention.causal is True
    assert ScaledDotProductAttention().causal is False
    _, weights = attention(x, x, x, (SEQ == 0)[:, None])
    hidden = torch.ones(5, 5).triu(1).bool() | (SEQ == 0)[:, None]
    assert ((weights == 0) == hidden).all()


def test_the_notes_example_masks_a_key_and_a_causal_mask_masks_later_keys() -> None:
    # Erratum 9: their example is shown with causal code but masks key 3 in every row.
    scores = torch.tensor([[1.2, 0.8, 0.5], [0.9, 1.1, 0.7], [0.6, 0.4, 1.0]])
    Q, K = scores[None] * math.sqrt(3), torch.eye(3)[None]
    _, padded = ScaledDotProductAttention()(Q, K, K, [[0, 0, 1], [0, 0, 1], [0, 0, 1]])
    assert (padded[0, :, 2] == 0).all()
    assert (padded[0, :, :2] > 0).all()
    _, causal = ScaledDotProductAttention(causal=True)(Q, K, K)
    expected = [[1.0, 0.0, 0.0], [0.450, 0.550, 0.0], [0.302, 0.247, 0.451]]
    np.testing.assert_allclose(causal[0], expected, atol=5e-4)


def test_causal_with_more_keys_than_queries_is_aligned_at_the_end() -> None:
    # Erratum 6: the notes make the mask from the key length alone, a RuntimeError here.
    _, weights = ScaledDotProductAttention(causal=True)(normal(1, 2, 4), normal(1, 5, 4), normal(1, 5, 4))
    assert ((weights[0] > 0) == torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]).bool()).all()


def test_a_strictly_causal_mask_makes_the_first_row_zero() -> None:
    # Erratum 10: "only the words before it", without itself, masks row 0 fully; the notes' code gives NaN.
    x = normal(1, 3, 4)
    out, weights = ScaledDotProductAttention()(x, x, x, torch.ones(3, 3).triu(0))
    assert (out[0, 0] == 0).all()
    assert (weights[0, 0] == 0).all()
    assert (weights[0, 1:].sum(-1) > 0.999).all()


def test_d_k_is_the_width_of_one_head() -> None:
    # Erratum 11.
    x = normal(1, 3, 4)
    assert_same_bits(ScaledDotProductAttention(4)(x, x, x)[0], ScaledDotProductAttention()(x, x, x)[0])
    with pytest.raises(ShapeError, match=r"d_k=8 is the width .* Q \(1, 3, 4\) is 4 wide; .*d_k=4"):
        ScaledDotProductAttention(8)(x, x, x)
    with pytest.raises(ArgumentError, match="d_k must be a whole number"):
        ScaledDotProductAttention(0)


def test_a_regard_mask_is_not_inverted() -> None:
    x = normal(2, 5, 4)
    _, weights = ScaledDotProductAttention()(x, x, x, Mask.padding(SEQ))
    assert ((weights == 0) == (SEQ == 0)[:, None]).all()
    _, weights = ScaledDotProductAttention(causal=True)(x, x, x, Mask.padding(SEQ))
    assert (weights[:, 0, 1:] == 0).all()


# --- MultiHeadAttention ----------------------------------------------------------------------------------


def test_multi_head_attributes() -> None:
    mha = MultiHeadAttention(8, 2, causal=True)
    assert (mha.num_heads, mha.d_k) == (2, 4)
    assert isinstance(mha.attention, ScaledDotProductAttention)
    assert mha.attention.causal is True
    assert all(isinstance(W, torch.nn.Linear) for W in (mha.W_q, mha.W_k, mha.W_v, mha.W_o))
    assert list(dict(mha.named_children())) == ["W_q", "W_k", "W_v", "W_o", "attention"]


def test_multi_head_shapes() -> None:
    out, weights = MultiHeadAttention(8, 2)(normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 8))
    assert out.shape == (2, 3, 8)
    assert weights.shape == (2, 2, 3, 5)


def test_weights_are_per_head_where_pytorch_averages() -> None:
    # Erratum 3: nn.MultiheadAttention averages over the heads by default.
    x, ours = normal(2, 5, 8), MultiHeadAttention(8, 2)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        projections = (ours.W_q, ours.W_k, ours.W_v)
        theirs.in_proj_weight.copy_(torch.cat([W.weight for W in projections]))
        theirs.in_proj_bias.copy_(torch.cat([W.bias for W in projections]))
        theirs.out_proj.load_state_dict(ours.W_o.state_dict())
    hidden = (SEQ == 0)[:, None]
    out, weights = ours(x, x, x, hidden)
    expected, mean = theirs(x, x, x, key_padding_mask=SEQ == 0)
    assert_close(out.detach(), expected.detach())
    assert weights.shape == (2, 2, 5, 5)
    assert mean.shape == (2, 5, 5)
    assert_close(weights.mean(1).detach(), mean.detach(), "weights")


@pytest.mark.parametrize("shape", [(2, 1, 5), (2, 5, 5), (2, 1, 1, 5), (2, 1, 5, 5), (2, 2, 5, 5)])
def test_multi_head_masks_are_one_per_sample(shape: tuple[int, ...]) -> None:
    hidden = (SEQ == 0)[:, None] if len(shape) == 3 else (SEQ == 0)[:, None, None]
    x = normal(2, 5, 8)
    _, weights = MultiHeadAttention(8, 2)(x, x, x, hidden.expand(shape))
    assert ((weights == 0) == (SEQ == 0)[:, None, None]).all()


def test_multi_head_causal_and_padding_masks_combined() -> None:
    x = normal(2, 5, 8)
    _, weights = MultiHeadAttention(8, 2, causal=True)(x, x, x, (SEQ == 0)[:, None])
    hidden = torch.ones(5, 5).triu(1).bool() | (SEQ == 0)[:, None, None]
    assert ((weights == 0) == hidden.expand(2, 2, 5, 5)).all()


def test_an_indivisible_width_is_a_shape_and_a_value_error() -> None:
    for kind in (IndivisibleError, ValueError, AssertionError):
        with pytest.raises(kind, match="num_heads=3 must divide d_model=8; nearest widths are 6 and 9"):
            MultiHeadAttention(8, 3)


def test_view_with_minus_one_hides_an_indivisible_width() -> None:
    # Erratum 12: four positions out of three, silently.
    assert normal(2, 3, 8).view(2, -1, 3, 2).shape == (2, 4, 3, 2)
    with pytest.raises(IndivisibleError):
        MultiHeadAttention(8, 3)


# --- PositionalEncoding ----------------------------------------------------------------------------------


def test_positional_encoding_adds_sines_and_cosines() -> None:
    x, encoding = normal(2, 7, 8), PositionalEncoding(8)
    assert_close(encoding(x), x + torch.from_numpy(sinusoidal_positions(7, 8)).float())
    assert encoding.pe.shape == (1, 5000, 8)
    assert_same_bits(encoding(x), x + encoding.pe[:, :7])
    assert list(encoding.parameters()) == []


def test_the_first_columns_have_the_highest_frequency() -> None:
    # Erratum 5: a factor near 1 is the highest frequency; the lowest is .001 at width 8 and .0001 at 512.
    for width, slowest in ((8, 1e-3), (512, 1e-4)):
        step = PositionalEncoding(width, max_len=2).pe[0, 1]
        assert step[0].item() == pytest.approx(math.sin(1))
        assert step[-2].item() == pytest.approx(slowest, rel=0.05)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_an_odd_width_ends_with_a_sine(width: int) -> None:
    found = PositionalEncoding(width, max_len=4)(torch.zeros(1, 4, width))
    angle = 3 * 10000 ** -((width - 1) / width)
    assert found.shape == (1, 4, width)
    assert found[0, 3, -1].item() == pytest.approx(math.sin(angle))


def test_more_positions_than_max_len_are_refused() -> None:
    encoding = PositionalEncoding(4, max_len=3)
    assert encoding(torch.zeros(1, 3, 4)).shape == (1, 3, 4)
    with pytest.raises(ShapeError, match=r"x has 4 positions.*max_len=3 only.*max_len=4"):
        encoding(torch.zeros(1, 4, 4))
    with pytest.raises(ShapeError, match=r"\(B, T, 4\)"):
        encoding(torch.zeros(3, 4))
    with pytest.raises(ArgumentError, match="max_len must be a whole number"):
        PositionalEncoding(4, max_len=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_output_has_the_dtype_of_x(dtype: torch.dtype) -> None:
    assert PositionalEncoding(4)(torch.zeros(1, 3, 4, dtype=dtype)).dtype == dtype


# --- FeedForward -----------------------------------------------------------------------------------------


def test_linear_relu_linear() -> None:
    x, network = normal(2, 3, 8), FeedForward(8)
    first, second = (m for m in network.modules() if isinstance(m, torch.nn.Linear))
    assert (first.out_features, second.in_features) == (32, 32)
    assert_close(network(x).detach(), second(first(x).clamp(min=0)).detach())
    assert FeedForward(8, 5).d_ff == 5
    assert FeedForward(8, d_ff=5)(normal(4, 8)).shape == (4, 8)


def test_feed_forward_errors() -> None:
    with pytest.raises(ShapeError, match=r"\(…, 8\)"):
        FeedForward(8)(normal(2, 3, 4))
    with pytest.raises(DtypeError, match="x must be a torch tensor here; found ndarray"):
        FeedForward(8)(np.ones((2, 8)))
    with pytest.raises(ArgumentError, match="d_ff must be"):
        FeedForward(8, 0)
