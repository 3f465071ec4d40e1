"""The four classes of 004: mask 0 or False = masked; the document's parameters, random draws and numbers."""

import inspect

import numpy as np
import pytest
import torch
from tolerances import assert_close

from deep_learning.nn import (
    MultiHeadSelfAttention,
    SingleHeadSelfAttention,
    SingleHeadSelfAttention_Manual,
    SingleHeadSelfAttentionWithMask,
)
from regard import reference
from regard.errors import ArgumentError, DtypeError, IndivisibleError, ShapeError

PARAMETERS = ["W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"]
SINGLE = [SingleHeadSelfAttention_Manual, SingleHeadSelfAttentionWithMask, SingleHeadSelfAttention]
OWN_PARAMETERS = [SingleHeadSelfAttention_Manual, SingleHeadSelfAttentionWithMask]
ROUNDED = 5e-4  # erratum 17 gives three decimals


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*SINGLE, MultiHeadSelfAttention])
def test_names(kind: type[torch.nn.Module]) -> None:
    assert list(inspect.signature(kind).parameters) == ["d_model", "num_heads"][: 1 + (kind not in SINGLE)]
    signature = inspect.signature(kind.forward)
    assert list(signature.parameters) == ["self", "x", "mask"]
    assert signature.parameters["mask"].default is None


@pytest.mark.parametrize("kind", OWN_PARAMETERS)
def test_parameters_of_a_single_head(kind: type[torch.nn.Module]) -> None:
    check_own_parameters(kind(8), 8)


def test_parameters_of_many_heads() -> None:
    mha = MultiHeadSelfAttention(16, 4)
    assert (mha.d_model, mha.num_heads, mha.d_k) == (16, 4, 4)
    check_own_parameters(mha, 16)


def check_own_parameters(module: torch.nn.Module, d_model: int) -> None:
    assert list(module.state_dict()) == PARAMETERS
    assert [name for name, _ in module.named_parameters()] == PARAMETERS
    bound = (6 / (2 * d_model)) ** 0.5
    for name, parameter in module.named_parameters():
        if name.startswith("b"):
            assert parameter.shape == (d_model,)
            assert (parameter == 0).all()
        else:
            assert parameter.shape == (d_model, d_model)
            assert 0.9 * bound < parameter.abs().max() <= bound


def test_linear_initialisation_is_not_xavier() -> None:
    # Erratum 4: Kaiming-uniform with a = √5 is U(±1/√8) = ±.354, Xavier ±.612; nn.Linear's bias is random.
    linear = SingleHeadSelfAttention(8)
    assert [name for name, _ in linear.named_children()] == ["W_Q", "W_K", "W_V", "fc_out"]
    assert all(isinstance(W, torch.nn.Linear) for W in linear.children())
    assert 0.3 < linear.W_Q.weight.abs().max() <= 8**-0.5 < 0.354
    assert (linear.W_Q.bias != 0).any()
    assert 0.5 < SingleHeadSelfAttention_Manual(8).W_Q.abs().max() <= 0.6124


# --- random draws and numbers: erratum 17 ----------------------------------------------------------------


@pytest.mark.parametrize("randn_first", [True, False])
def test_random_draws_equal_the_document(randn_first: bool) -> None:
    kind = SingleHeadSelfAttention_Manual if randn_first else SingleHeadSelfAttentionWithMask
    torch.manual_seed(3)
    ours = kind(8)
    torch.manual_seed(3)
    if randn_first:
        for _ in range(4):
            torch.randn(8, 8)
    for name in PARAMETERS[:4]:
        expected = torch.nn.init.xavier_uniform_(torch.empty(8, 8))
        assert torch.equal(getattr(ours, name), expected)


def test_multi_head_draws_equal_manual() -> None:
    torch.manual_seed(3)
    one = SingleHeadSelfAttention_Manual(8).state_dict()
    torch.manual_seed(3)
    many = MultiHeadSelfAttention(8, 2).state_dict()
    assert all(torch.equal(one[name], many[name]) for name in PARAMETERS)


def test_the_numbers_that_the_documents_seeds_give() -> None:
    torch.manual_seed(42)
    x = torch.randn(2, 4, 8)
    _, weights = SingleHeadSelfAttention_Manual(8)(x, torch.ones(2, 4, 4).bool())
    np.testing.assert_allclose(weights[0, 0].detach(), [0.838, 0.050, 0.039, 0.073], atol=ROUNDED)

    torch.manual_seed(0)
    x = torch.randn(2, 4, 8)
    _, weights = SingleHeadSelfAttention(8)(x, torch.ones(2, 4, 4).bool())
    np.testing.assert_allclose(weights[0, 0].detach(), [0.214, 0.245, 0.234, 0.308], atol=ROUNDED)

    torch.manual_seed(0)
    x = torch.randn(1, 5, 8)
    _, weights = SingleHeadSelfAttentionWithMask(8)(x, mask=torch.ones(5, 5).tril()[None].bool())
    np.testing.assert_allclose(weights[0, -1].detach(), [0.141, 0.204, 0.265, 0.202, 0.188], atol=ROUNDED)

    torch.manual_seed(42)
    x = torch.randn(2, 5, 16)
    out, weights = MultiHeadSelfAttention(16, 4)(x, torch.ones(5, 5).tril()[None, None].bool())
    np.testing.assert_allclose(weights[0, 0, -1].detach(), [0.167, 0.198, 0.221, 0.265, 0.149], atol=ROUNDED)
    assert out.shape == (2, 5, 16)
    assert weights.shape == (2, 4, 5, 5)


# --- computation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OWN_PARAMETERS)
def test_it_equals_the_reference(kind: type[torch.nn.Module]) -> None:
    # Erratum 15: Q is x W + b; `torch.matmul(x, W_Q)` alone leaves the bias out.
    module, x = kind(8).double(), normal(2, 4, 8).double()
    with torch.no_grad():
        module.get_parameter("b_Q").add_(1)
        module.get_parameter("b_O").add_(2)
    p = {name: value.detach().numpy() for name, value in module.named_parameters()}
    Q, K, V = (x.numpy() @ p[f"W_{letter}"] + p[f"b_{letter}"] for letter in "QKV")
    attended, expected_weights = reference.scaled_dot_product_attention(Q, K, V, np.tri(4, dtype=bool))
    out, weights = module(x, torch.ones(4, 4).tril())
    assert_close(weights.detach(), expected_weights, "weights")
    assert_close(out.detach(), attended @ p["W_O"] + p["b_O"])


def test_linear_stores_the_transpose() -> None:
    # Erratum 15: copying from nn.Parameter to nn.Linear needs a transpose.
    manual, linear, x = SingleHeadSelfAttention_Manual(8), SingleHeadSelfAttention(8), normal(2, 4, 8)
    with torch.no_grad():
        for letter, layer in zip("QKVO", linear.children(), strict=True):
            assert isinstance(layer, torch.nn.Linear)
            layer.weight.copy_(getattr(manual, f"W_{letter}").T)
            layer.bias.copy_(getattr(manual, f"b_{letter}"))
    assert_close(linear(x)[0].detach(), manual(x)[0].detach())


def test_columns_belong_to_one_head() -> None:
    # Erratum 8.
    mha, x = MultiHeadSelfAttention(8, 2), normal(2, 4, 8)
    _, before = mha(x)
    with torch.no_grad():
        mha.W_Q[:, 4:] = 0
    _, after = mha(x)
    assert torch.equal(after[:, 0], before[:, 0])
    assert_close(after[:, 1].detach(), torch.full((2, 4, 4), 0.25), "weights")


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(2, 4, 4), (1, 4, 4), (4, 4), (2, 1, 4), (4,), (2, 1, 4, 4)])
@pytest.mark.parametrize("kind", SINGLE)
def test_zero_means_masked(kind: type[torch.nn.Module], shape: tuple[int, ...], dtype: torch.dtype) -> None:
    visible = normal(*shape, seed=3) > 0
    out, weights = kind(8)(normal(2, 4, 8), visible.to(dtype))
    whole = visible[:, 0] if visible.ndim == 4 else visible
    assert out.shape == (2, 4, 8)
    assert weights.shape == (2, 4, 4)
    assert ((weights > 0) == whole.expand(2, 4, 4)).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(2, 1, 4, 4), (1, 1, 4, 4), (2, 2, 4, 4), (2, 4, 4), (2, 1, 4), (4, 4), (4,)])
def test_zero_means_masked_with_heads(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    # Erratum 14: (2, 4, 4) for scores (2, 2, 4, 4) is one mask per sample.
    visible = normal(*shape, seed=3) > 0
    _, weights = MultiHeadSelfAttention(8, 2)(normal(2, 4, 8), visible.to(dtype))
    whole = visible[:, None] if visible.ndim == 3 else visible
    assert ((weights > 0) == whole.expand(2, 2, 4, 4)).all()


def test_only_a_padding_mask_zeroes_whole_columns() -> None:
    # Erratum 16: a causal mask zeroes only weights above the diagonal.
    x, attention = normal(1, 4, 8), SingleHeadSelfAttentionWithMask(8)
    _, padded = attention(x, torch.tensor([1, 1, 1, 0]).expand(1, 4, 4))
    assert (padded[0] == 0).all(0).tolist() == [False, False, False, True]
    _, causal = attention(x, torch.ones(1, 4, 4).tril())
    assert ((causal[0] == 0) == torch.ones(4, 4).triu(1).bool()).all()
    assert not (causal[0] == 0).all(0).any()


# --- errors --------------------------------------------------------------------------------------------


def test_an_indivisible_width_is_a_shape_and_a_value_error() -> None:
    for kind in (IndivisibleError, ValueError, AssertionError):
        with pytest.raises(kind, match="num_heads=3 must divide d_model=16; nearest widths are 15 and 18"):
            MultiHeadSelfAttention(16, 3)


@pytest.mark.parametrize("kind", SINGLE)
def test_a_width_of_zero_is_refused(kind: type[torch.nn.Module]) -> None:
    with pytest.raises(ArgumentError, match="d_model must be a whole number of at least 1; found 0"):
        kind(0)


@pytest.mark.parametrize("module", [*(kind(8) for kind in SINGLE), MultiHeadSelfAttention(8, 2)])
def test_errors_of_every_class(module: torch.nn.Module) -> None:
    x = normal(2, 4, 8)
    with pytest.raises(ShapeError, match=r"x must have shape \(B, T, 8\); found \(4, 8\)"):
        module(x[0])
    with pytest.raises(ShapeError, match=r"found \(2, 4, 4\)"):
        module(x[..., :4])
    with pytest.raises(DtypeError, match="x must be a torch tensor here; found ndarray"):
        module(x.numpy())
    with pytest.raises(ShapeError, match="does not fit the scores"):
        module(x, torch.ones(3, 3))
    with pytest.raises(ArgumentError, match=r"1 = visible and 0 = masked.*found -inf.*Mask\.from_additive"):
        module(x, torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf))
    with pytest.raises(DtypeError, match="complex64"):
        module(x, torch.ones(4, 4, dtype=torch.complex64))
