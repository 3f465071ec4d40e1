"""The gradients of q, k and v through output, LSE, entropy and map, against autograd in float64."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present, three
from tolerances import assert_close, assert_same_bits
from torch import Tensor
from torch.nn.functional import pad

from kernel_calls import ANY_MASK, MASKS, any_mask, tensors
from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.errors import BackendError
from regard.kernels.division import Bins
from regard.kernels.triton.autograd import BACKWARD_BLOCKS, BackwardBlocks, attention_with_gradient
from regard.kernels.triton.support import DTYPES, Blocks, ForwardRequest, ForwardResult

SMALL = BackwardBlocks(keys=Blocks(32, 16, 4, 2), queries=Blocks(32, 16, 4, 2))


def plain(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, bins: Bins | None, scale: float, softcap: float | None = None
) -> ForwardResult:
    """The results of attention by definition; a fully masked query has no weights."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT * scale
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    T, S = scores.shape[-2:]
    visible = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None:
        visible = mask.dense(T, S, like=q).expand_as(scores)
    masked = ~visible.any(-1)
    scores = scores.masked_fill(~visible, -torch.inf).masked_fill(masked[..., None], 0.0)
    weights = scores.softmax(-1).masked_fill(masked[..., None], 0.0)
    entropy = -(weights * weights.where(weights > 0, 1.0).log()).sum(-1)
    sums = None
    if bins is not None:
        padded = pad(weights, (0, bins.C * bins.width - S, 0, bins.R * bins.height - T))
        sums = padded.unflatten(-1, (bins.C, bins.width)).sum(-1).unflatten(-2, (bins.R, bins.height)).sum(-2)
    return ForwardResult(weights @ v, scores.logsumexp(-1).masked_fill(masked, -torch.inf), None, entropy, sums)


def gradients(result: ForwardResult, inputs: Sequence[Tensor], through: tuple[str, ...]) -> list[Tensor]:
    """The gradients of the inputs, from random gradients of the results."""
    make = torch.Generator().manual_seed(1)
    outputs = [getattr(result, name) for name in through]
    # Drawn on the CPU in one precision, so that they are the same for both implementations.
    upstream = [torch.randn(x.shape, generator=make).to(result.out.dtype).to(x) for x in outputs]
    return list(torch.autograd.grad(outputs, inputs, upstream, allow_unused=True))


def found(
    inputs: Sequence[Tensor],
    device: str,
    mask: Mask | None = None,
    bins: int | None = 4,
    through: tuple[str, ...] = ("out", "lse", "entropy", "sums"),
    **options: Any,
) -> list[Tensor]:
    """The kernels' gradients."""
    q, k, v = inputs = [x.to(device).requires_grad_() for x in inputs]
    T, S = q.shape[2], k.shape[2]
    options = {"scale": q.shape[-1] ** -0.5, "blocks": SMALL} | options
    blocks = options.pop("blocks")
    request = ForwardRequest(lse="lse" in through, entropy="entropy" in through, bins=Bins.of(T, S, See(map=bins)))
    bound = None if mask is None else mask.bind(q.shape[:2], T, S, q)
    result = attention_with_gradient(AttentionCall(q, k, v, bound=bound, **options), request, blocks=blocks)
    return gradients(result, inputs, through)


def check(
    inputs: Sequence[Tensor],
    device: str,
    mask: Mask | None = None,
    bins: int = 4,
    through: tuple[str, ...] = ("out", "lse", "entropy", "sums"),
    **options: Any,
) -> None:
    """The gradients equal those of float64."""
    one = Bins.of(inputs[0].shape[2], inputs[1].shape[2], See(map=bins))
    exact = three(x.detach().double().requires_grad_() for x in inputs)
    scale = options.get("scale", inputs[0].shape[-1] ** -0.5)
    result = plain(*exact, mask, one, scale, options.get("softcap"))
    right = gradients(result, exact, through)
    for ours, theirs, x in zip(found(inputs, device, mask, bins, through, **options), right, exact, strict=True):
        assert_close(ours.cpu(), torch.zeros_like(x) if theirs is None else theirs, "gradient")


@pytest.mark.parametrize("name", MASKS)
def test_every_mask(name: str, device: str) -> None:
    check(tensors(21, 33, B=2 if name in ("padding", "prefix") else 1, H=1), device, MASKS[name], bins=5)


@pytest.mark.parametrize("through", ["out", "lse", "entropy", "sums"])
def test_each_output_alone(through: str, device: str) -> None:
    check(tensors(20, 36, H=1), device, Mask.causal(), through=(through,))


@pytest.mark.parametrize(("T", "S", "bins"), [(32, 64, 1), (32, 64, 2), (37, 45, 2), (19, 37, 1), (19, 37, 9)])
def test_bins_of_every_width(T: int, S: int, bins: int, device: str) -> None:
    """A tile touches one bin, two, or any number; the last bin is partial."""
    check(tensors(T, S, H=1), device, Mask.window(20, 5), bins=bins, through=("sums",))


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 40), (17, 1), (32, 48), (50, 5)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(tensors(T, S, H=1), device, Mask.causal(), blocks=None)
    check(tensors(T, S, H=1), device)


@pytest.mark.parametrize(("E", "Ev"), [(20, 5), (8, 40), (80, 80)])
def test_head_widths(E: int, Ev: int, device: str) -> None:
    check(tensors(18, 20, E, Ev, H=1), device, Mask.causal())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(dtype: torch.dtype, device: str) -> None:
    check(tensors(20, 36, H=1, dtype=dtype), device, Mask.causal())


def test_grouped_heads_and_any_layout(device: str) -> None:
    check(tensors(40, 18, B=2, H=4, G=2), device)
    q, k, v = tensors(20, 24)
    other_layout = [
        q.transpose(1, 2).contiguous().transpose(1, 2),
        k.mT.contiguous().mT,
        v.repeat_interleave(2, -1)[..., ::2],
    ]
    for one, other in zip(found([q, k, v], device), found(other_layout, device), strict=True):
        assert_close(one.cpu(), other.cpu(), "gradient")


def test_an_expanded_upstream_gradient(device: str) -> None:
    q, k, v = (x.to(device).requires_grad_() for x in tensors(20, 24))
    attention_with_gradient(AttentionCall(q, k, v, scale=0.25), ForwardRequest()).out.sum().backward()
    exact = three(x.detach().cpu().double().requires_grad_() for x in (q, k, v))
    plain(*exact, None, None, 0.25).out.sum().backward()
    for ours, theirs in zip((q, k, v), exact, strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert_close(ours.grad.cpu(), theirs.grad, "gradient")


@pytest.mark.parametrize(
    "options", [{"softcap": 2.0}, {"scale": -0.3}, {"scale": 0.0}, {"scale": 1.5, "softcap": 30.0}]
)
def test_scale_and_softcap(options: dict[str, Any], device: str) -> None:
    check(tensors(20, 20, H=1), device, Mask.causal(), **options)


def test_large_scores(device: str) -> None:
    """|scores| around 100, where float32 has an LSE to 8e-6: no more than that is lost."""
    q, k, v = tensors(20, 48, 32)
    exact = three(x.double().requires_grad_() for x in (q * 30, k, v))
    right = gradients(plain(*exact, None, None, 32**-0.5), exact, ("out", "lse", "entropy"))
    for ours, theirs in zip(found([q * 30, k, v], device, None, None, ("out", "lse", "entropy")), right, strict=True):
        torch.testing.assert_close(ours.cpu().double(), theirs, rtol=1e-4, atol=1e-4 * float(theirs.abs().max()))


def test_fully_masked_queries_have_no_gradient(device: str) -> None:
    """For any upstream gradient: the logarithm of an entropy of 0 sends an infinite one."""
    q, k, v = inputs = [x.to(device).requires_grad_() for x in tensors(40, 20)]
    mask = Mask.causal().bind((1, 2), 40, 20, q)
    call = AttentionCall(q, k, v, scale=0.25, bound=mask)
    result = attention_with_gradient(call, ForwardRequest(lse=True, entropy=True), blocks=SMALL)
    masked = torch.full((1, 2, 40), torch.inf, device=device)
    masked[:, :, 20:] = 1.0
    d_q, *others = torch.autograd.grad(
        [result.out, present(result.lse), present(result.entropy)], inputs, [result.out.detach(), masked, masked]
    )
    assert (d_q[:, :, :20] == 0).all()
    assert all(x.isfinite().all() for x in (d_q, *others))


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_upstream_gradients_of_fully_masked_queries_are_ignored(value: float, device: str) -> None:
    """A normalisation after attention may send infinity back to a row of zeros."""
    q, k, v = (torch.randn(1, 1, n, 16, device=device, requires_grad=True) for n in (24, 16, 16))
    mask = Mask.causal().bind((1, 1), 24, 16, q)
    out = attention_with_gradient(AttentionCall(q, k, v, scale=0.25, bound=mask), ForwardRequest()).out
    upstream = torch.ones_like(out)
    right = torch.autograd.grad(out, (q, k, v), upstream, retain_graph=True)
    upstream[:, :, :8] = value
    for mine, other in zip(torch.autograd.grad(out, (q, k, v), upstream), right, strict=True):
        assert_same_bits(mine, other)


def test_only_required_gradients_are_computed(device: str) -> None:
    q, k, v = (x.to(device) for x in tensors(20, 24))
    whole = found([q, k, v], device, None, None, ("out",))
    for needed in range(3):
        parts = three(x.detach().requires_grad_(i == needed) for i, x in enumerate((q, k, v)))
        result = attention_with_gradient(AttentionCall(*parts, scale=0.25), ForwardRequest(), blocks=SMALL)
        assert all(x is None for x in result[1:])
        assert_same_bits(gradients(result, [parts[needed]], ("out",))[0].cpu(), whole[needed].cpu())


def test_gradients_are_bitwise_reproducible(device: str) -> None:
    inputs = tensors(20, 36, H=2, G=2)
    together = found(inputs, device, Mask.causal(), bins=7)
    for one, other in zip(together, found(inputs, device, Mask.causal(), bins=7), strict=True):
        assert_same_bits(one.cpu(), other.cpu())
    alone = found([x[:, :1] for x in inputs], device, Mask.causal(), None, ("out",))
    among = found(inputs, device, Mask.causal(), None, ("out",))
    # The first head's upstream gradients are drawn first, and so are the same.
    for one, other in zip(alone, among, strict=True):
        assert_same_bits(one.cpu(), other[:, :1].cpu())


@settings(max_examples=4)
@given(
    T=st.integers(1, 50),
    S=st.integers(1, 50),
    bins=st.integers(1, 60),
    **ANY_MASK,
)
def test_random_calls(T: int, S: int, bins: int, left: int | None, right: int | None, ids: list[int] | None) -> None:
    mask = any_mask(T, S, left, right, ids)
    check(tensors(T, S, H=1), "cuda" if torch.cuda.is_available() else "cpu", mask, bins)


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0), (0, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    inputs = tensors(T, S)
    for gradient, x in zip(found(inputs, device, None, None, ("out", "lse", "entropy")), inputs, strict=True):
        assert_same_bits(gradient.cpu(), torch.zeros_like(x))


def test_second_gradients_are_refused(device: str) -> None:
    q, k, v = (x.to(device).requires_grad_() for x in tensors(4, 4))
    out = attention_with_gradient(AttentionCall(q, k, v, scale=1.0), ForwardRequest()).out
    with pytest.raises(BackendError):
        torch.autograd.grad(out.sum(), q, create_graph=True)


def test_there_are_blocks_for_every_width() -> None:
    assert {(dtype.itemsize, E) for dtype in DTYPES for E in (32, 64, 128, 256)} == set(BACKWARD_BLOCKS)
