"""SelfAttention of 002: mask 0 or False = masked."""

import inspect

import pytest
import torch
from tolerances import assert_close

from deep_learning.nn import MultiHeadAttention, SelfAttention
from regard import reference
from regard.errors import IndivisibleError


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_names_and_attributes() -> None:
    attention = SelfAttention(d_model=8, n_heads=2)
    assert (attention.d_model, attention.n_heads, attention.d_k) == (8, 2, 4)
    assert [name for name, _ in attention.named_children()] == ["W_q", "W_k", "W_v", "W_o"]
    assert all(isinstance(W, torch.nn.Linear) for W in attention.children())
    assert list(inspect.signature(attention.forward).parameters) == ["x", "mask"]
    assert list(inspect.signature(attention.scaled_dot_product_attention).parameters) == [
        "Q",
        "K",
        "V",
        "mask",
    ]


@pytest.mark.parametrize("lead", [(2,), (2, 3)])
def test_its_scaled_dot_product(lead: tuple[int, ...]) -> None:
    Q, K, V = normal(*lead, 3, 4), normal(*lead, 5, 4, seed=1), normal(*lead, 5, 6, seed=2)
    visible = normal(3, 5, seed=3) > 0
    out, weights = SelfAttention(8, 2).scaled_dot_product_attention(Q, K, V, mask=visible)
    expected = reference.scaled_dot_product_attention(Q.numpy(), K.numpy(), V.numpy(), visible.numpy())
    assert_close(out, expected[0])
    assert_close(weights, expected[1], "weights")


def test_forward_equals_multi_head_attention() -> None:
    lesson, notes, x = SelfAttention(8, 2), MultiHeadAttention(8, 2), normal(2, 5, 8)
    notes.load_state_dict(lesson.state_dict())
    visible = torch.ones(5, 5).tril()
    out, weights = lesson(x, visible)
    expected, expected_weights = notes(x, x, x, 1 - visible)  # the notes use 1 = masked
    assert out.shape == (2, 5, 8)
    assert weights.shape == (2, 2, 5, 5)
    assert_close(out.detach(), expected.detach())
    assert_close(weights.detach(), expected_weights.detach(), "weights")


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32])
@pytest.mark.parametrize("shape", [(4,), (4, 4), (2, 1, 4), (2, 4, 4), (2, 1, 1, 4), (2, 1, 4, 4)])
def test_zero_means_masked(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    visible = normal(*shape, seed=3) > 0
    _, weights = SelfAttention(8, 2)(normal(2, 4, 8), visible.to(dtype))
    whole = visible[:, None] if visible.ndim == 3 else visible
    assert ((weights > 0) == whole.expand(2, 2, 4, 4)).all()


def test_an_indivisible_width_is_refused() -> None:
    # Erratum 12: the template does not check, and 10 with 3 fails later, in `view`.
    with pytest.raises(IndivisibleError, match="n_heads=3 must divide d_model=10"):
        SelfAttention(10, 3)


def test_scaling_keeps_the_softmax_gradient_for_independent_entries() -> None:
    # Erratum 23: variance 1 and mean 0, independent, d_k = 512, 16 keys. Unscaled, one key gets nearly all
    # weight, and the Jacobian of softmax, diag(w) - w wᵀ, nearly vanishes.
    Q, K = normal(2000, 1, 512), normal(2000, 16, 512, seed=1)
    attend = SelfAttention(8, 2).scaled_dot_product_attention
    for stretch, top, gradient in ((512**0.5, 1.00, 0.0), (1.0, 0.22, 0.30)):
        w = attend(Q * stretch, K, K)[1][:, 0]  # scores of Q · √512 are scaled back to the bare products
        jacobian = torch.diag_embed(w) - w[:, :, None] * w[:, None, :]
        assert w.amax(-1).median().item() == pytest.approx(top, abs=0.005)
        norms = torch.linalg.matrix_norm(jacobian)
        assert norms.median().item() == pytest.approx(gradient, abs=0.005 if gradient else 0.001)
