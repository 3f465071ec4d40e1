"""`attend`, `backends` and `watch` on a GPU: they use our kernels where supported, report it, and keep the rules."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from narrowing import Three, present, three
from tolerances import assert_same_bits
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard import Mask, See, attend, backends, watch
from regard.errors import ArgumentError, BackendError
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.masks.padding import padding_of
from regard.records import Record

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

DEVICE = "cuda"
T, S, H, G, E = 150, 201, 4, 2, 64
KEEP = np.arange(S) >= np.array([[0], [70]])  # padding before the second text: its first queries are fully masked
MASKS: dict[str, Any] = {
    "full": None,
    "causal": Mask.causal(),
    "window": Mask.window(40, 3),
    "causal and padding": Mask.causal() & Mask.from_keep(KEEP),
    "segments": Mask.segments(np.arange(S) // 37),
}
HALF, SINGLE = torch.bfloat16, torch.float32
# Each pair is a set of kernels to compile, so not all of them.
CASES = [
    ("full", HALF),
    ("causal", HALF),
    ("causal and padding", HALF),
    ("causal", SINGLE),
    ("window", SINGLE),
    ("segments", SINGLE),
]
CLOSE = {SINGLE: 2e-5, HALF: 3e-2}
NEAR = {"lse": 1e-4, "entropy": 1e-3}
"""Tolerances of statistics, which are float32 for every dtype; for the others 1e-6 absolute and 1e-4 relative."""
EVERYTHING = See(map=16, max_score=True, entropy=True, received=True, top=8, distance=True, qk=True)
FIELDS = ("map", "lse", "max_score", "entropy", "received", "sink", "distance")


def tensors(dtype: torch.dtype, grad: bool = False) -> Three[Tensor]:
    make = torch.Generator().manual_seed(0)
    shapes = ((2, H, T, E), (2, G, S, E), (2, G, S, E))
    return three(torch.randn(shape, generator=make).to(DEVICE, dtype).requires_grad_(grad) for shape in shapes)


def assert_near(found: Tensor, right: Tensor, atol: float, rtol: float, what: str) -> None:
    np.testing.assert_allclose(
        found.double().cpu().numpy(), right.double().cpu().numpy(), atol=atol, rtol=rtol, err_msg=what
    )


def assert_same_record(found: Record, right: Any, fields: tuple[str, ...] = FIELDS) -> None:
    for name in fields:
        atol = NEAR.get(name, 1e-6)
        assert_near(getattr(found, name), getattr(right, name), atol, 0 if name in NEAR else 1e-4, name)


# --- choice of the backend -------------------------------------------------------------------------------


def test_the_table_shows_the_choice_and_the_reasons() -> None:
    q, k, v = tensors(HALF)
    assert list(backends(q, k, v)) == ["sdpa", "triton", "chunked", "eager"]
    assert backends(q, k, v).chosen == "sdpa"
    assert backends(q, k, v, softcap=5.0).chosen == "triton"
    visible = backends(q, k, v, see=See())
    assert (visible.chosen, visible["triton"]) == ("triton", "yes")
    assert visible["sdpa"].endswith("no statistics; triton does")
    assert backends(q, k, v, softcap=5.0)["sdpa"].endswith("triton has")
    for options, reason in (
        ({"bias": torch.zeros(T, S)}, "no bias here"),
        ({"mask": Mask.causal() | Mask.prefix(3)}, "bands"),
        ({"see": See(top=33)}, "top=33"),
        ({"dropout": 0.1}, "no dropout"),
    ):
        table = backends(q, k, v, **options)
        assert reason in table["triton"]
        assert table.chosen != "triton"
        with pytest.raises(BackendError, match=reason):
            attend(q, k, v, **options, backend="triton")
    wide = three(x.repeat(1, 1, 1, 5) for x in (q, k, v))
    assert "width is 320, and at most 256" in backends(*wide, see=See())["triton"]
    double = three(x.double() for x in (q, k, v))
    assert backends(*double, see=See()).chosen == "chunked"


def test_tensors_on_different_devices_are_refused() -> None:
    q, k, v = tensors(HALF)
    with pytest.raises(ArgumentError, match="one device"):
        attend(q, k.cpu(), v, see=See(), backend="triton")


# --- attend ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_output_and_record_are_those_of_eager(name: str, dtype: torch.dtype) -> None:
    q, k, v = tensors(dtype)
    out, record = attend(q, k, v, mask=MASKS[name], see=EVERYTHING)
    exact = three(x.double() for x in (q, k, v))
    right_out, right = attend(*exact, mask=MASKS[name], see=EVERYTHING, backend="eager")
    assert_near(out, right_out, CLOSE[dtype], CLOSE[dtype], "output")
    assert_same_record(record, right)
    assert_near(present(record.top).weights, present(right.top).weights, 1e-6, 1e-4, "top")
    assert_near(record.weights(), right.weights(), 1e-6, 1e-4, "weights")
    part = slice(31, 140), slice(3, 77)
    assert_near(record.weights(*part), right.weights(*part), 1e-6, 1e-4, "rectangle")
    again_out, again = attend(q, k, v, mask=MASKS[name], see=EVERYTHING)
    assert torch.equal(again_out, out)
    assert torch.equal(present(again.map), present(record.map))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e38])
def test_masked_garbage_changes_nothing(garbage: float) -> None:
    mask, see = MASKS["causal and padding"], See(map=16, entropy=True)
    q, k, v = tensors(HALF)
    clean, record = attend(q, k, v, mask=mask, see=see)
    k[1, :, 5], v[1, :, 5] = garbage, garbage  # padding
    out, found = attend(q, k, v, mask=mask, see=see)
    assert torch.equal(out, clean)
    for name in ("map", "lse", "entropy"):
        assert torch.equal(getattr(found, name), getattr(record, name))
    masked_rows = (KEEP[1].cumsum() == 0)[S - T :]
    assert (out[1, :, : masked_rows.sum()] == 0).all()


def test_large_inputs_are_not_copied_to_check_them() -> None:
    """They are read instead, and the host waits for the GPU; inputs that are not finite are still handled."""
    q, k, v = (torch.randn(1, 16, 16384, 64, device=DEVICE, dtype=HALF) for _ in range(3))
    attend(q, k, v, mask=Mask.causal(), see=See(map=16))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out, _ = attend(q, k, v, mask=Mask.causal(), see=See(map=16))
    assert torch.cuda.max_memory_allocated() - before < out.nbytes + q.nbytes
    k[..., -1, :] = torch.nan
    changed, _ = attend(q, k, v, mask=Mask.causal(), see=See(map=16))
    assert torch.equal(changed[:, :, :-1], out[:, :, :-1])
    assert changed[:, :, -1].isnan().all()


def losses(out: Tensor, record: Record) -> Tensor:
    attending = present(record.lse) > -torch.inf
    factors = torch.linspace(-1, 1, E, device=out.device, dtype=out.dtype)
    parts = (
        (present(record.map) * factors[:16]).sum(),
        present(record.lse)[attending].square().mean(),
        present(record.entropy).mean(),
    )
    return (out * factors).mean() + sum(parts)


@pytest.mark.parametrize("name", ["full", "causal and padding"])
def test_gradients_through_statistics(name: str) -> None:
    see = See(map=16, entropy=True, differentiable=True)
    ours, right = tensors(SINGLE, grad=True), three(x.double().requires_grad_() for x in tensors(SINGLE))
    table = backends(*ours, mask=MASKS[name], see=see)
    assert table.chosen == "triton"
    assert table["chunked"].endswith("triton, eager")
    losses(*attend(*ours, mask=MASKS[name], see=see)).backward()
    losses(*attend(*right, mask=MASKS[name], see=see, backend="eager")).backward()
    for one, other in zip(ours, right, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        scale = float(other.grad.abs().max())
        assert_near(one.grad, other.grad, 1e-4 * scale, 1e-3, "gradient")


def test_gradients_with_softcap_and_no_statistics() -> None:
    ours, right = tensors(SINGLE, grad=True), three(x.double().requires_grad_() for x in tensors(SINGLE))
    attend(*ours, mask=Mask.causal(), softcap=3.0).square().mean().backward()
    attend(*right, mask=Mask.causal(), softcap=3.0, backend="eager").square().mean().backward()
    for one, other in zip(ours, right, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert_near(one.grad, other.grad, 1e-4 * float(other.grad.abs().max()), 1e-3, "gradient")


# --- watch -----------------------------------------------------------------------------------------------

WIDE = 256
LONG = {SDPBackend.CUDNN_ATTENTION: 640, SDPBackend.FLASH_ATTENTION: 601, SDPBackend.EFFICIENT_ATTENTION: 601}
"""Tokens: more scores than are computed at once, and, where a kernel pads its LSE, no multiple of the padding."""


class SelfAttention(nn.Module):
    """As in most models: one projection, heads before positions, an additive mask, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.is_causal = H, True
        self.qkv = nn.Linear(WIDE, 3 * WIDE, bias=False)
        self.o_proj = nn.Linear(WIDE, WIDE, bias=False)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (t.unflatten(-1, (H, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return q, k, v

    def forward(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        out = F.scaled_dot_product_attention(*self.heads(x), attn_mask=added, is_causal=added is None)
        return self.o_proj(out.transpose(1, 2).reshape(x.shape))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers: Any = nn.ModuleList(SelfAttention() for _ in range(2))

    def forward(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, added)
        return x


def model_and_text(dtype: torch.dtype, n: int, B: int = 2) -> tuple[Model, Tensor]:
    torch.manual_seed(0)
    model = Model().to(DEVICE, dtype).eval()
    return model, torch.randn(B, n, WIDE, device=DEVICE).to(dtype)


def padded(dtype: torch.dtype, n: int) -> Tensor:
    """An additive mask, B 1 T S: causal, and the second text begins late. Its first queries are fully masked."""
    positions = torch.arange(n, device=DEVICE)
    visible = (positions[None, :] <= positions[:, None]) & (positions >= torch.tensor([[0], [97]], device=DEVICE))[
        :, None, None
    ]
    return torch.zeros(visible.shape, device=DEVICE, dtype=dtype).masked_fill(~visible, -torch.inf)


def right_records(model: Model, x: Tensor, added: Tensor | None, see: See) -> list[Any]:
    """Every layer's statistics in float64, from that layer's own inputs."""
    found = []
    for layer in model.layers:
        q, k, _ = (t.detach().double() for t in layer.heads(x))
        mask = Mask.causal() if added is None else Mask.of(added == 0)
        scores = attention_scores(q, k, mask)
        shape = tuple(scores.shape)
        padding = padding_of(mask.bind(shape[:2], shape[2], shape[3], q), None, shape, across=False)
        found.append(statistics_of(attention_weights(scores), scores.logsumexp(-1), see, padding=padding))
        x = x + layer(x, added)
    return found


def outputs_of(model: Model, x: Tensor, added: Tensor | None) -> list[Tensor]:
    """The outputs of every layer and of the model: for fully masked queries some kernels give NaN, which spreads."""
    found: list[Tensor] = []
    hooks = [layer.register_forward_hook(lambda *passed: found.append(passed[2])) for layer in model.layers]
    out = model(x, added)
    for hook in hooks:
        hook.remove()
    return [*found, out]


SEE = See(map=16, entropy=True, received=True, qk=True)
KERNELS = [
    (HALF, SDPBackend.CUDNN_ATTENTION, False),
    (HALF, SDPBackend.CUDNN_ATTENTION, True),
    (HALF, SDPBackend.FLASH_ATTENTION, False),
    (SINGLE, SDPBackend.EFFICIENT_ATTENTION, False),
    (SINGLE, SDPBackend.EFFICIENT_ATTENTION, True),
]
"""Without a gradient, cuDNN and the efficient kernel return no LSE."""
PATHS = [(*one, masked) for one in KERNELS for masked in (False, True)]
PATHS.remove((HALF, SDPBackend.FLASH_ATTENTION, False, True))  # does not support a mask


def name_of(value: Any) -> str:
    return str(getattr(value, "name", value))


@pytest.mark.parametrize(("dtype", "kernel", "grad", "masked"), PATHS, ids=name_of)
def test_watch_changes_nothing_and_equals_eager(
    dtype: torch.dtype, kernel: SDPBackend, grad: bool, masked: bool
) -> None:
    model, x = model_and_text(dtype, LONG[kernel])
    added = padded(dtype, LONG[kernel]) if masked else None
    with sdpa_kernel(kernel), torch.set_grad_enabled(grad):
        plain = outputs_of(model, x, added)
        with watch(model, see=SEE) as trace:
            visible = outputs_of(model, x, added)
        expected = right_records(model, x, added, SEE)
    assert len(visible) == 3
    for one, other in zip(visible, plain, strict=True):
        assert_same_bits(one, other)
    assert visible[-1].requires_grad == grad
    assert [record.name for record in trace] == ["layers.0", "layers.1"]
    # Kernels give different outputs for fully masked rows, which are inputs of the next layer.
    for record, right in list(zip(trace, expected, strict=True))[: 1 if masked else 2]:
        assert not record.fused
        assert_same_record(record, right, ("map", "lse", "entropy", "received", "sink"))
        weights = record.weights(slice(90, 190), slice(60, 160))
        assert (weights.sum(-1) <= 1.001).all()


@pytest.mark.parametrize(
    ("dtype", "kernel"),
    [(HALF, SDPBackend.CUDNN_ATTENTION), (HALF, SDPBackend.FLASH_ATTENTION), (SINGLE, SDPBackend.EFFICIENT_ATTENTION)],
    ids=name_of,
)
def test_fused_attention_replaces_the_models_own_and_is_marked(dtype: torch.dtype, kernel: SDPBackend) -> None:
    model, x = model_and_text(dtype, LONG[kernel])
    with sdpa_kernel(kernel), torch.no_grad():
        plain = model(x)
        with watch(model, see=See(map=16, entropy=True, fused=True)) as trace:
            visible = model(x)
        right = right_records(model, x, None, See(map=16, entropy=True))[0]
    assert [record.fused for record in trace] == [True, True]
    assert_near(visible, plain, CLOSE[dtype], CLOSE[dtype], "output")
    assert_same_record(trace[0], right, ("map", "lse", "entropy", "sink"))


def test_a_model_with_gradients_keeps_its_own_attention() -> None:
    model, x = model_and_text(HALF, 640)
    plain = model(x)
    with watch(model, see=See(map=16, fused=True)) as trace:
        assert torch.equal(model(x), plain)
    assert not any(record.fused for record in trace)


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("kernel", [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], ids=name_of)
def test_a_fused_output_has_the_same_strides(kernel: SDPBackend, transposed: bool) -> None:
    class Layer(nn.Module):
        def forward(self, q: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, q, q)

    layer, q = Layer(), torch.randn(2, 600, 4, 64, device=DEVICE, dtype=HALF).transpose(1, 2)
    q = q if transposed else q.contiguous()
    with sdpa_kernel(kernel):
        plain = layer(q)
        with watch(layer, see=See(fused=True)) as trace:
            found = layer(q)
    assert trace[0].fused
    assert found.stride() == plain.stride()


def test_a_compiled_model_works_with_fused_attention() -> None:
    model, x = model_and_text(HALF, 640)
    compiled: Any = torch.compile(model)  # annotated as a function
    with torch.no_grad():
        plain = compiled(x)
        with watch(compiled, see=See(map=16, fused=True)) as trace:
            visible = compiled(x)
    assert [record.fused for record in trace] == [True, True]
    assert_near(visible, plain, CLOSE[HALF], CLOSE[HALF], "output")


# --- memory ----------------------------------------------------------------------------------------------


def peak_of(run: Callable[[], Any]) -> int:
    run()  # once to compile and fill caches
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("path", ["attend", "watch", "fused"])
def test_no_score_matrix_is_allocated(path: str) -> None:
    """At 32,768 tokens one head's matrix is 2 GiB in bfloat16, and a boolean one 1 GiB."""
    lengths, peaks = (8192, 32768), []
    see = See(map=256, entropy=True, received=True, top=8, qk=True, fused=path == "fused")
    for n in lengths:
        model, x = model_and_text(HALF, n, B=1)
        with torch.no_grad():
            q, k, v = model.layers[0].heads(x)

            def attended(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Any:
                return attend(q, k, v, mask=Mask.causal(), see=see)

            def watched(model: Model = model, x: Tensor = x) -> Any:
                with watch(model, see=see) as trace:
                    model(x)
                return trace

            peaks.append(peak_of(attended if path == "attend" else watched))
    assert peaks[1] < 2**29
    assert math.log(peaks[1] / peaks[0]) / math.log(lengths[1] / lengths[0]) <= 1.05
