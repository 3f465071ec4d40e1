"""The reference equals PyTorch's attention, forward and backward, wherever PyTorch is correct.

Where it is not (fully masked rows in nn.MultiheadAttention, masked NaN, is_causal with T != S), a separate test checks
the difference, so that a change in PyTorch is noticed.
"""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cases import CASES, make_case
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present, three
from strategies import Call, as_tensor, calls
from tolerances import assert_close
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from regard.layer_checks import Projections
from regard.masks import Mask
from regard.reference import (
    multi_head_attention,
    multi_head_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)


def torch_call(call: Call, q: Any, k: Any, v: Any) -> Any:
    """PyTorch's own attention with the math backend and a dense mask that includes the bias."""
    allowed = torch.from_numpy(call.allowed.copy())
    mask = allowed
    if call.bias is not None:
        bias = as_tensor(call.bias).expand(call.sizes.scores)
        mask = bias.masked_fill(~allowed, -torch.inf)
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=call.scale, enable_gqa=call.sizes.G != call.sizes.H
        )


def compare(call: Call) -> None:
    """Compare output and gradients of one call."""
    inputs = [as_tensor(x).clone().requires_grad_() for x in (call.q, call.k, call.v)]
    expected = torch_call(call, *inputs)
    output, _ = scaled_dot_product_attention(call.q, call.k, call.v, **call.options)
    assert_close(output, expected, "output")
    grad = np.random.default_rng(1).standard_normal(output.shape).astype(output.dtype)
    expected.backward(torch.from_numpy(grad))
    found = scaled_dot_product_attention_backward(grad, call.q, call.k, call.v, **call.options)
    for gradient, x in zip(found[:3], inputs, strict=True):
        assert_close(gradient, x.grad, "gradient")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_named_cases_equal_torch(name: str, dtype: str) -> None:
    compare(make_case(name, dtype))


@given(calls(dtypes=("float64", "float32"), softcapped=False))
def test_any_call_equals_torch(call: Call) -> None:
    compare(call)


@pytest.mark.parametrize(("T", "S"), [(1, 6), (3, 7), (5, 5), (7, 3)])
def test_causal_mask_equals_causal_lower_right_of_torch(T: int, S: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((2, 3, T, 8)), rng.standard_normal((2, 3, S, 8)), rng.standard_normal((2, 3, S, 8))
    output, _ = scaled_dot_product_attention(q, k, v, Mask.causal())
    tensors = three(torch.from_numpy(x) for x in (q, k, v))
    # torch warns about fully masked rows when T > S; both give zero for them.
    bias = torch.ones(T, S, dtype=torch.bool).tril(S - T) if T > S else causal_lower_right(T, S)
    assert_close(output, F.scaled_dot_product_attention(*tensors, attn_mask=bias), "output")
    upper_left = F.scaled_dot_product_attention(*tensors, is_causal=True)
    assert (T == S) == bool(torch.allclose(upper_left, torch.from_numpy(output)))


def test_masked_nan_leaks_in_torch_and_not_here() -> None:
    """If this fails, PyTorch has been fixed: update the docs and simplify."""
    v = np.array([[[[1.0], [np.nan]]]])
    x = np.ones((1, 1, 2, 1))
    mask = Mask.prefix(1)
    theirs = F.scaled_dot_product_attention(
        *three(torch.from_numpy(a) for a in (x, x, v)), attn_mask=torch.tensor([[True, False]] * 2)
    )
    assert theirs.isnan().all()
    np.testing.assert_array_equal(scaled_dot_product_attention(x, x, v, mask)[0], np.ones((1, 1, 2, 1)))


# --- nn.MultiheadAttention -------------------------------------------------------------------------------


def copied(module: nn.MultiheadAttention) -> Projections:
    """The weights of the module under our names; nn.Linear stores the transpose."""
    if module.in_proj_weight is not None:
        parts = module.in_proj_weight.detach().chunk(3)
    else:
        parts = tuple(w.detach() for w in (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight))
    W_q, W_k, W_v = (part.numpy().T for part in parts)
    biases: list[Any] = [None] * 4
    if module.in_proj_bias is not None:
        biases = [b.numpy() for b in (*module.in_proj_bias.detach().chunk(3), module.out_proj.bias.detach())]
    return Projections(W_q, W_k, W_v, module.out_proj.weight.detach().numpy().T, *biases)


def compare_modules(module: nn.MultiheadAttention, q: Any, k: Any, v: Any, mask: Mask | None, **theirs: Any) -> None:
    p, H = copied(module), module.num_heads
    inputs = [torch.from_numpy(x).requires_grad_() for x in (q, k, v)]
    expected, expected_weights = module(*inputs, average_attn_weights=False, **theirs)
    output, weights = multi_head_attention(q, k, v, p, H, mask=mask)
    assert_close(output, expected, "output")
    assert_close(weights, expected_weights, "weights")
    grad = np.random.default_rng(1).standard_normal(output.shape)
    expected.backward(torch.from_numpy(grad))
    found = multi_head_attention_backward(grad, q, k, v, p, H, mask=mask)
    for gradient, x in zip(found[:3], inputs, strict=True):
        assert_close(gradient, x.grad, "gradient")
    d = found.projections
    assert_close(d.W_o.T, module.out_proj.weight.grad, "gradient")
    if module.in_proj_weight is not None:
        assert module.in_proj_weight.grad is not None
        for gradient, part in zip((d.W_q, d.W_k, d.W_v), module.in_proj_weight.grad.chunk(3), strict=True):
            assert_close(gradient.T, part, "gradient")
    if module.in_proj_bias is not None:
        assert module.in_proj_bias.grad is not None
        for bias, part in zip((d.b_q, d.b_k, d.b_v), module.in_proj_bias.grad.chunk(3), strict=True):
            assert_close(bias, part, "gradient")
        assert_close(d.b_o, module.out_proj.bias.grad, "gradient")


@pytest.mark.parametrize("bias", [True, False], ids=["biases", "no biases"])
@pytest.mark.parametrize(("B", "T", "S", "D", "H"), [(1, 1, 1, 4, 1), (2, 5, 7, 12, 3), (3, 7, 5, 8, 8)])
@pytest.mark.parametrize("kind", ["no mask", "attn_mask", "key_padding_mask", "both", "additive"])
def test_equals_nn_multihead_attention(kind: str, B: int, T: int, S: int, D: int, H: int, bias: bool) -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=torch.float64)
    if bias:  # biases start at zero, where a missing bias would not be noticed
        nn.init.normal_(module.in_proj_bias)
        nn.init.normal_(module.out_proj.bias)
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D)), rng.standard_normal((B, S, D))
    # The module's polarity: True = masked. Key 0 stays visible, because the module gives NaN for fully masked rows.
    blocked, padded = rng.random((T, S)) < 0.4, rng.random((B, S)) < 0.4
    blocked[:, 0], padded[:, 0] = False, False
    theirs: dict[str, Any] = {}
    mask: Mask | None = None
    if kind in ("attn_mask", "both"):
        theirs["attn_mask"], mask = torch.from_numpy(blocked), Mask.from_blocked(blocked)
    if kind in ("key_padding_mask", "both"):
        theirs["key_padding_mask"] = torch.from_numpy(padded)
        keys = Mask.from_blocked(padded, keys=True)
        mask = keys if mask is None else mask & keys
    if kind == "additive":
        added = np.where(blocked, -np.inf, 0.0)
        theirs["attn_mask"], mask = torch.from_numpy(added), Mask.from_additive(added)
    compare_modules(module, q, k, v, mask, **theirs)


@pytest.mark.parametrize("T", [1, 4, 7])
def test_equals_causal_nn_multihead_attention(T: int) -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    x = np.random.default_rng(0).standard_normal((2, T, 8))
    blocked = torch.ones(T, T, dtype=torch.bool).triu(1)
    compare_modules(module, x, x, x, Mask.causal(), attn_mask=blocked)


def test_fully_masked_row_is_nan_in_torch_and_zero_here() -> None:
    """If this fails, PyTorch has been fixed."""
    module = nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64).eval()
    x = np.random.default_rng(0).standard_normal((1, 3, 4))
    padded = torch.ones(1, 3, dtype=torch.bool)
    theirs, _ = module(*[torch.from_numpy(x)] * 3, key_padding_mask=padded)
    assert theirs.isnan().all()
    p = copied(module)
    output, weights = multi_head_attention(x, x, x, p, 2, mask=Mask.from_blocked(padded, keys=True))
    assert not weights.any()
    np.testing.assert_array_equal(output, np.broadcast_to(present(p.b_o), output.shape))


@given(st.sampled_from([(2, 1), (4, 2), (6, 3), (6, 1)]), st.integers(1, 5), st.integers(1, 5))
def test_grouped_heads_equal_repeated_heads(heads: tuple[int, int], T: int, S: int) -> None:
    """Grouped-query attention equals multi-head attention with repeated key and value columns."""
    (H, G), E, D = heads, 2, 5
    rng = np.random.default_rng(T * 10 + S)
    grouped = Projections(*(rng.standard_normal(s) for s in ((D, H * E), (D, G * E), (D, G * E), (H * E, D))))

    def repeat(W: np.ndarray) -> np.ndarray:
        return np.repeat(W.reshape(D, G, E), H // G, axis=1).reshape(D, H * E)

    full = grouped._replace(W_k=repeat(grouped.W_k), W_v=repeat(grouped.W_v))
    q, k = rng.standard_normal((2, T, D)), rng.standard_normal((2, S, D))
    for found, expected in zip(
        multi_head_attention(q, k, k, grouped, H, G, Mask.causal()),
        multi_head_attention(q, k, k, full, H, None, Mask.causal()),
        strict=True,
    ):
        assert_close(found, expected, "output")
