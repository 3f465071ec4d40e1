"""Our modules with PyTorch's weights equal PyTorch's modules: outputs, attention weights, all gradients.

PyTorch's masks are True where masked, so they are converted by `Mask.from_blocked`.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from tolerances import assert_close
from torch import Tensor, nn
from torch.nn import functional

from regard import Mask, See
from regard.models import from_torch, to_torch
from regard.trace import Recorder

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # from nn.Transformer

B, T, S, D, H, F = 3, 5, 7, 12, 3, 20
FUTURE = torch.ones(T, T, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[False] * S, [False] * 5 + [True] * 2, [True] * 3 + [False] * 4])
OWN_PADDING = torch.tensor([[False] * T, [False] * 3 + [True] * 2, [False] * 4 + [True]])

STYLES: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_first": True, "activation": "gelu", "layer_norm_eps": 1e-3},
    "post-norm, no bias": {"bias": False, "activation": functional.gelu},
    "pre-norm, no bias": {"norm_first": True, "bias": False, "activation": functional.silu, "batch_first": False},
}
# Modules as activations only here: nn.Transformer copies its decoder's layers without them.
LAYER_STYLES = STYLES | {
    "GELU": {"activation": nn.GELU()},
    "tanh": {"norm_first": True, "activation": nn.GELU("tanh")},
    "SiLU": {"activation": nn.SiLU(), "bias": False},
}
styles = pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
layer_styles = pytest.mark.parametrize("style", LAYER_STYLES.values(), ids=LAYER_STYLES)
modes = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def made(module: Any, training: bool, dtype: torch.dtype) -> Any:
    """The module with large weights, so that a wrong mask or scale changes the output."""
    torch.manual_seed(1)
    for name, weight in module.named_parameters():
        nn.init.normal_(weight, mean=float("norm" in name and "weight" in name), std=0.3)
    return module.to(dtype).train(training)


def vectors(length: int, dtype: torch.dtype, seed: int) -> Tensor:
    x = torch.randn(B, length, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.to(dtype).requires_grad_()


def check(
    theirs: nn.Module, call: Callable[..., Tensor], ours: nn.Module, own: Callable[..., Tensor], *x: Tensor
) -> None:
    """The same output, and the same gradient of every input and every parameter."""
    found, expected = own(*x), call(*x)
    assert_close(found.detach(), expected.detach())
    upstream = torch.randn(found.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64).to(found.dtype)
    for right, left in zip(
        *(torch.autograd.grad(y, x, upstream, retain_graph=True) for y in (expected, found)), strict=True
    ):
        assert_close(left, right, "gradient")
    found.backward(upstream)
    theirs.zero_grad()
    expected.backward(upstream)
    gradients = deepcopy(theirs)  # their gradients as weights, so that from_torch renames them
    for slope, weight in zip(gradients.parameters(), theirs.parameters(), strict=True):
        assert weight.grad is not None
        slope.data = weight.grad
    expected_gradients = dict(from_torch(gradients).named_parameters())  # type: ignore[call-overload]
    for name, weight in ours.named_parameters():
        assert weight.grad is not None, name
        assert_close(weight.grad, expected_gradients[name].detach(), "gradient")


def with_batch_first(call: Callable[..., Tensor], batch_first: bool) -> Callable[..., Tensor]:
    """A call of their module with inputs (B, T, D), whatever its batch_first is."""
    if batch_first:
        return call
    return lambda *x: call(*(one.transpose(0, 1) for one in x)).transpose(0, 1)


# --- attention alone -------------------------------------------------------------------------------------

ATTENTION_MASKS: dict[str, tuple[dict[str, Any], Mask | None]] = {
    "all": ({}, None),
    "padding": ({"key_padding_mask": PADDING}, Mask.from_blocked(PADDING, keys=True)),
    "a mask": ({"attn_mask": PADDING[[0, 1, 2, 1, 2]]}, Mask.from_blocked(PADDING[[0, 1, 2, 1, 2]])),
}


@dtypes
@modes
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masks", ATTENTION_MASKS.values(), ids=ATTENTION_MASKS)
def test_multi_head_attention(
    masks: tuple[dict[str, Any], Mask | None], bias: bool, batch_first: bool, training: bool, dtype: torch.dtype
) -> None:
    hidden, mask = masks
    theirs = made(nn.MultiheadAttention(D, H, bias=bias, batch_first=batch_first), training, dtype)
    ours = from_torch(theirs)
    call = with_batch_first(lambda x, memory: theirs(x, memory, memory, **hidden)[0], batch_first)
    x, memory = vectors(T, dtype, 2), vectors(S, dtype, 3)
    check(theirs, call, ours, lambda x, memory: ours(x, memory, mask=mask), x, memory)


@dtypes
@pytest.mark.parametrize("masks", ATTENTION_MASKS.values(), ids=ATTENTION_MASKS)
def test_recorded_weights_equal_theirs(masks: tuple[dict[str, Any], Mask | None], dtype: torch.dtype) -> None:
    hidden, mask = masks
    theirs = made(nn.MultiheadAttention(D, H, batch_first=True), False, dtype)
    x, memory, recorder = vectors(T, dtype, 2), vectors(S, dtype, 3), Recorder(See(map=S))
    expected = theirs(x, memory, memory, **hidden, average_attn_weights=False)[1]
    from_torch(theirs)(x, memory, mask=mask, attend=recorder)
    assert_close(recorder.trace[0].map, expected.detach(), "weights")


def test_a_fully_masked_query_gets_zeros_instead_of_nan() -> None:
    theirs = made(nn.MultiheadAttention(D, H, batch_first=True), True, torch.float32)
    ours, hidden = from_torch(theirs), PADDING.clone()
    hidden[1] = True
    x, memory = vectors(T, torch.float32, 2), vectors(S, torch.float32, 3)
    out = ours(x, memory, mask=Mask.from_blocked(hidden, keys=True))
    assert torch.equal(out[1], ours.o_proj.bias.expand(T, D))
    out.sum().backward()
    assert memory.grad is not None
    assert not memory.grad[1].any()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in ours.parameters())


# --- layers ----------------------------------------------------------------------------------------------


@dtypes
@modes
@layer_styles
@pytest.mark.parametrize("causal", [False, True])
def test_encoder_layer(causal: bool, style: dict[str, Any], training: bool, dtype: torch.dtype) -> None:
    options = {"batch_first": True, "dropout": 0.0} | style
    theirs = made(nn.TransformerEncoderLayer(D, H, F, **options), training, dtype)
    ours = from_torch(theirs)
    mask = Mask.from_blocked(OWN_PADDING, keys=True) & (Mask.causal() if causal else Mask.window(None, None))
    hidden = {"src_mask": FUTURE if causal else None, "src_key_padding_mask": OWN_PADDING}
    call = with_batch_first(lambda x: theirs(x, **hidden), options["batch_first"])
    check(theirs, call, ours, lambda x: ours(x, mask=mask), vectors(T, dtype, 2))


@dtypes
@modes
@layer_styles
def test_decoder_layer(style: dict[str, Any], training: bool, dtype: torch.dtype) -> None:
    options = {"batch_first": True, "dropout": 0.0} | style
    theirs = made(nn.TransformerDecoderLayer(D, H, F, **options), training, dtype)
    ours = from_torch(theirs)
    hidden = {"tgt_mask": FUTURE, "tgt_key_padding_mask": OWN_PADDING, "memory_key_padding_mask": PADDING}
    masks = {
        "mask": Mask.causal() & Mask.from_blocked(OWN_PADDING, keys=True),
        "memory_mask": Mask.from_blocked(PADDING, keys=True),
    }
    call = with_batch_first(lambda x, memory: theirs(x, memory, **hidden), options["batch_first"])
    x, memory = vectors(T, dtype, 2), vectors(S, dtype, 3)
    check(theirs, call, ours, lambda x, memory: ours(x, memory, **masks), x, memory)


@torch.no_grad()
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_their_fast_path(activation: str) -> None:
    """In eval mode and without gradients nn.TransformerEncoderLayer is one fused operation."""
    layer = nn.TransformerEncoderLayer(D, 2, F, activation=activation, batch_first=True)
    theirs, x = made(layer, False, torch.float32), vectors(T, torch.float32, 2)
    assert_close(from_torch(theirs)(x), theirs(x))


# --- the whole model -------------------------------------------------------------------------------------------

PADDED = {
    "src_key_padding_mask": PADDING,
    "memory_key_padding_mask": PADDING,
    "tgt_key_padding_mask": OWN_PADDING,
}
OWN_PADDED = {"source_mask": Mask.from_blocked(PADDING, keys=True), "mask": Mask.from_blocked(OWN_PADDING, keys=True)}


@dtypes
@modes
@styles
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_transformer(padded: bool, style: dict[str, Any], training: bool, dtype: torch.dtype) -> None:
    options = {"batch_first": True, "dropout": 0.0} | style
    theirs = made(nn.Transformer(D, H, 2, 3, F, **options), training, dtype)
    ours = from_torch(theirs)
    hidden = PADDED if padded else {}
    masks: dict[str, Any] = OWN_PADDED if padded else {}
    call = with_batch_first(lambda x, source: theirs(source, x, tgt_mask=FUTURE, **hidden), options["batch_first"])
    x, source = vectors(T, dtype, 2), vectors(S, dtype, 3)
    check(theirs, call, ours, lambda x, source: ours(x, source, **masks), x, source)


@styles
def test_to_torch(style: dict[str, Any]) -> None:
    """The result of `to_torch` computes the same, with and without gradients (their fast path)."""
    theirs = made(nn.Transformer(D, 2, 2, 1, F, **style), False, torch.float32)
    ours = from_torch(theirs)
    back = to_torch(ours)
    x, source = vectors(T, torch.float32, 2), vectors(S, torch.float32, 3)
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            assert_close(back(source, x, tgt_mask=FUTURE).detach(), ours(x, source).detach())
            assert_close(back(source, x, tgt_mask=FUTURE, **PADDED).detach(), ours(x, source, **OWN_PADDED).detach())
