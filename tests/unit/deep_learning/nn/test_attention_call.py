"""Properties of every PyTorch class: fully masked queries, masked NaN, dtypes, mask conventions."""

import numpy as np
import pytest
import torch
from tolerances import assert_same_bits

from deep_learning import attention as tutorial
from deep_learning.nn import (
    MultiHeadAttention,
    MultiHeadSelfAttention,
    ScaledDotProductAttention,
    SelfAttention,
    SingleHeadSelfAttention,
    SingleHeadSelfAttention_Manual,
    SingleHeadSelfAttentionWithMask,
)
from regard import Mask
from regard.errors import DtypeError

SELF = [
    SingleHeadSelfAttention_Manual(8),
    SingleHeadSelfAttentionWithMask(8),
    SingleHeadSelfAttention(8),
    MultiHeadSelfAttention(8, 2),
    SelfAttention(8, 2),
]
CROSS = [ScaledDotProductAttention(), MultiHeadAttention(8, 2)]
VISIBLE = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def named(module: torch.nn.Module) -> str:
    return type(module).__name__


@pytest.mark.parametrize("module", SELF, ids=named)
def test_a_fully_masked_query_gives_zeros_and_finite_gradients(module: torch.nn.Module) -> None:
    module.zero_grad()
    x = normal(2, 4, 8).requires_grad_()
    visible = torch.ones(2, 4, 4)
    visible[0, 2] = 0
    visible[1] = 0
    out, weights = module(x, visible)
    (out.sum() + weights.square().sum()).backward()
    assert (out[0, 2] == 0).all()
    assert (out[1] == 0).all()
    assert (weights[1] == 0).all()
    assert (out[0, [0, 1, 3]] != 0).all()
    assert x.grad is not None
    assert (x.grad[1] == 0).all()
    assert x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("module", CROSS, ids=named)
def test_if_every_query_is_fully_masked_every_gradient_is_zero(module: torch.nn.Module) -> None:
    module.zero_grad()
    Q, K, V = (normal(2, length, 8).requires_grad_() for length in (3, 5, 5))
    out, weights = module(Q, K, V, torch.ones(3, 5))
    out.sum().backward()
    assert (out == 0).all()
    assert (weights == 0).all()
    for leaf in (Q, K, V, *module.parameters()):
        assert leaf.grad is not None
        assert (leaf.grad == 0).all()


@pytest.mark.parametrize("masked_value", [torch.nan, torch.inf, -torch.inf, 1e38])
@pytest.mark.parametrize("module", CROSS, ids=named)
def test_masked_keys_and_values_have_no_effect(module: torch.nn.Module, masked_value: float) -> None:
    Q, memory = normal(2, 3, 8), normal(2, 4, 8, seed=1)
    hidden = (VISIBLE == 0)[:, None]
    changed = memory.masked_fill((VISIBLE == 0)[..., None], masked_value)
    gradients = []
    for keys in (memory, changed):
        query = Q.clone().requires_grad_()
        out, weights = module(query, keys, keys, hidden)
        out.sum().backward()
        gradients.append((out.detach(), weights.detach(), query.grad))
    for found, expected in zip(gradients[1], gradients[0], strict=True):
        assert_same_bits(found, expected)


@pytest.mark.parametrize("module", SELF, ids=named)
def test_masked_positions_do_not_affect_others(module: torch.nn.Module) -> None:
    x = normal(2, 4, 8)
    changed = x.masked_fill((VISIBLE == 0)[..., None], torch.nan)
    seen = VISIBLE.bool()
    expected, found = (module(each, VISIBLE[:, None])[0].detach() for each in (x, changed))
    assert_same_bits(found[seen], expected[seen])
    assert found[~seen].isnan().all()  # a NaN query gives NaN


def test_a_visible_nan_key_gives_nan() -> None:
    x = normal(1, 3, 8)
    x[0, 0] = torch.nan
    assert ScaledDotProductAttention()(x, x, x)[0].isnan().all()


def test_one_mask_in_three_conventions() -> None:
    # Erratum 7: added 0/-inf, 1 = masked, 0 = masked, and regard.Mask; all four mean the same.
    x = normal(2, 4, 8).double()
    visible = (torch.ones(4, 4).tril() * VISIBLE[:, None]).bool()
    added = np.where(visible, 0.0, -np.inf)
    lesson = SelfAttention(8, 2)
    found = [
        tutorial.scaled_dot_product_attention(x.numpy(), x.numpy(), x.numpy(), added)[1],
        ScaledDotProductAttention()(x, x, x, ~visible)[1],
        lesson.scaled_dot_product_attention(x, x, x, visible)[1],
        ScaledDotProductAttention()(x, x, x, Mask.of(visible))[1],
        ScaledDotProductAttention(causal=True)(x, x, x, (VISIBLE == 0)[:, None])[1],
    ]
    for weights in found:
        np.testing.assert_allclose(weights, found[0], atol=1e-15)
        assert ((np.asarray(weights) > 0) == visible.numpy()).all()


@pytest.mark.parametrize("module", [*SELF, *CROSS], ids=named)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_output_and_weights_have_the_dtype_of_the_input(module: torch.nn.Module, dtype: torch.dtype) -> None:
    x = normal(1, 3, 8).to(dtype)
    given = (x,) if module in SELF else (x, x, x)
    try:
        out, weights = module.to(dtype)(*given)
    finally:
        module.float()
    assert (out.dtype, weights.dtype) == (dtype, dtype)
    assert out.isfinite().all()


@pytest.mark.parametrize("module", [*SELF, *CROSS], ids=named)
def test_numpy_and_list_masks(module: torch.nn.Module) -> None:
    x = normal(2, 4, 8)
    given = (x,) if module in SELF else (x, x, x)
    mask = np.tri(4, dtype=int) if module in SELF else 1 - np.tri(4, dtype=int)
    for spelled in (mask, mask.tolist()):
        _, weights = module(*given, spelled)
        assert ((weights == 0) == torch.ones(4, 4).triu(1).bool()).all()


@pytest.mark.parametrize("module", [*SELF, *CROSS], ids=named)
def test_a_regard_mask_is_not_inverted(module: torch.nn.Module) -> None:
    x = normal(2, 4, 8)
    given = (x,) if module in SELF else (x, x, x)
    _, weights = module(*given, Mask.causal() & Mask.padding(VISIBLE))
    visible = (torch.ones(4, 4).tril() * VISIBLE[:, None]).bool()
    assert ((weights > 0) == (visible[:, None] if weights.ndim == 4 else visible)).all()


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("module", SELF, ids=named)
def test_short_sequences(module: torch.nn.Module, length: int) -> None:
    out, weights = module(normal(2, length, 8))
    assert out.shape == (2, length, 8)
    assert weights.shape[-2:] == (length, length)


@pytest.mark.parametrize("module", [*SELF, *CROSS], ids=named)
def test_autocast(module: torch.nn.Module) -> None:
    x = normal(1, 3, 8)
    given = (x,) if module in SELF else (x, x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, weights = module(*given)
    assert out.isfinite().all()
    np.testing.assert_allclose(weights.detach().float().sum(-1), 1, atol=0.02)


def test_a_mask_is_not_expanded() -> None:
    from deep_learning.masks import from_masked

    mask = from_masked(torch.zeros(2, 1, 5), axes=4)
    assert mask is not None
    assert mask.rule.allowed.shape == (2, 1, 1, 5)  # type: ignore[attr-defined]


def test_tensors_of_the_wrong_dtype_are_refused() -> None:
    x = normal(1, 3, 4)
    with pytest.raises(DtypeError, match=r"K must hold floating-point numbers.*torch\.int64"):
        ScaledDotProductAttention()(x, x.long(), x)
    with pytest.raises(DtypeError, match="one dtype"):
        ScaledDotProductAttention()(x, x.double(), x.double())
    with pytest.raises(DtypeError, match="V must be a torch tensor here; found ndarray"):
        ScaledDotProductAttention()(x, x, x.numpy())
