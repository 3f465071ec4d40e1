"""`attend`, `backends`, observed records and `watch` with the Triton backend: the same rules hold as for the others."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from narrowing import Three, present, three
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard import Mask, See, attend, backends, watch
from regard.attention_call import AttentionCall
from regard.dispatch import observation
from regard.errors import BackendError

KEEP = Mask.from_keep(torch.tensor([[1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]]) > 0)
MASKS = {
    "full": None,
    "causal": Mask.causal(),
    "window": Mask.window(3, 1),
    "causal and padding": Mask.causal() & KEEP,
    "segments": Mask.segments(torch.tensor([1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])),
}
EVERYTHING = See(map=4, max_score=True, entropy=True, received=True, top=3, distance=True, qk=True)
FIELDS = ("map", "lse", "max_score", "entropy", "received", "sink", "distance")


def tensors(T: int = 11, S: int = 11, *, Ev: int = 8, device: str = "cpu", dtype: Any = torch.float32) -> Three[Tensor]:
    make = torch.Generator().manual_seed(0)
    shapes = ((2, 2, T, 8), (2, 1, S, 8), (2, 1, S, Ev))
    return three(torch.randn(shape, generator=make).to(device, dtype) for shape in shapes)


def leaves(xs: Three[Tensor], dtype: torch.dtype | None = None) -> Three[Tensor]:
    return three(x.detach().to(dtype or x.dtype).clone().requires_grad_() for x in xs)


def assert_same_record(found: Any, right: Any, fields: tuple[str, ...] = FIELDS) -> None:
    for name in fields:
        assert_close(getattr(found, name), getattr(right, name), "statistic", "float32")


# --- choice of the backend -------------------------------------------------------------------------------


def test_triton_is_chosen_for_statistics(device: str) -> None:
    q, k, v = tensors(device=device)
    assert list(backends(q, k, v)) == ["sdpa", "triton", "chunked", "eager"]
    assert backends(q, k, v).chosen == "sdpa"
    assert backends(q, k, v)["triton"] == "yes"
    assert backends(q, k, v, see=See()).chosen == "triton"
    assert backends(q, k, v, softcap=3.0).chosen == "triton"
    assert backends(q.requires_grad_(), k, v, see=See()).chosen == "triton"
    assert backends(q.double(), k.double(), v.double(), see=See()).chosen == "chunked"
    assert backends(q, k, v, bias=torch.zeros(11, 11), see=See()).chosen == "chunked"
    assert backends(q, k, v, dropout=0.5, see=See()).chosen == "eager"
    assert "bands" in backends(q, k, v, mask=~Mask.causal())["triton"]


def test_triton_by_name_raises_with_its_reason(device: str) -> None:
    q, k, v = tensors(device=device)
    with pytest.raises(BackendError, match=r"'triton' cannot .* no bias here.*'auto' would take sdpa"):
        attend(q, k, v, bias=torch.zeros(11, 11), backend="triton")
    with pytest.raises(BackendError, match="does not support float64"):
        attend(q.double(), k.double(), v.double(), backend="triton")


# --- results ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MASKS)
def test_output_and_record_are_those_of_eager(name: str, device: str) -> None:
    q, k, v = tensors(Ev=5, device=device)
    out, record = attend(q, k, v, mask=MASKS[name], see=EVERYTHING)
    exact = three(x.double() for x in (q, k, v))
    right_out, right = attend(*exact, mask=MASKS[name], see=EVERYTHING, backend="eager")
    assert_close(out, right_out)
    assert_same_record(record, right)
    assert_close(present(record.top).weights, present(right.top).weights, "weights")
    assert_close(record.weights(), right.weights(), "weights")
    assert_close(record.weights(slice(3, 9), slice(2, 5)), right.weights(slice(3, 9), slice(2, 5)), "weights")


@pytest.mark.parametrize(("T", "S"), [(1, 6), (3, 6), (6, 3)])
def test_causal_is_aligned_to_the_last_key(T: int, S: int, device: str) -> None:
    xs = tensors(T, S, device=device)
    right = attend(*three(x.double() for x in xs), mask=Mask.causal(), backend="eager")
    assert_close(attend(*xs, mask=Mask.causal(), backend="triton"), right)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_overflow(dtype: torch.dtype, device: str) -> None:
    q, k, v = tensors(device=device)
    q, k, v = (q * 3e3).to(dtype), (k * 3e3).to(dtype), v.to(dtype)
    out = attend(q, k, v, backend="triton")
    assert_close(out, attend(q.double(), k.double(), v.double(), backend="eager"))


# --- masked inputs ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")  # NumPy's, interpreting
@pytest.mark.parametrize(
    "garbage", [torch.nan, pytest.param(torch.inf, marks=pytest.mark.long), pytest.param(1e38, marks=pytest.mark.long)]
)
def test_masked_garbage_changes_nothing(garbage: float, device: str) -> None:
    """Neither outputs nor statistics nor gradients."""
    mask, see = Mask.causal(), See(map=11, entropy=True)
    masked = torch.arange(11, device=device) < 6

    def everything(last: float | None) -> list[Tensor]:
        xs = leaves(tensors(device=device))
        if last is not None:
            for x in xs[1:]:
                x.data[:, :, 6] = last
        out, record = attend(*xs, mask=mask, see=see, backend="triton")
        if last is not None and not torch.isfinite(torch.tensor(last)):
            assert out[:, :, 6:].isnan().all()
            assert present(record.map)[:, :, 6:].isnan().all()
        out[:, :, masked].square().sum().backward()
        visible = [present(x)[:, :, masked] for x in (out.detach(), record.map, record.lse, record.entropy)]
        return [*visible, *(x.grad for x in xs)]

    for changed, clean in zip(everything(garbage), everything(None), strict=True):
        assert_same_bits(changed, clean)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fully_masked_query_has_zero_output_and_zero_gradient(dtype: torch.dtype, device: str) -> None:
    xs = leaves(tensors(device=device, dtype=dtype))
    see = See(map=4, entropy=True, differentiable=True)
    out, record = attend(*xs, mask=Mask.causal() & KEEP, see=see, backend="triton")
    attending = present(record.lse) > -torch.inf
    (
        out.float().sum()
        + present(record.map).square().sum()
        + present(record.lse)[attending].sum()
        + present(record.entropy).sum()
    ).backward()
    assert not attending[1, :, :3].any()
    assert (out[1, :, :3] == 0).all()
    assert (present(record.entropy)[1, :, :3] == 0).all()
    assert all(present(x.grad).isfinite().all() for x in xs)
    assert (present(xs[0].grad)[1, :, :3] == 0).all()
    assert (present(xs[2].grad)[1, :, :3] == 0).all()


# --- gradients -------------------------------------------------------------------------------------------


def loss(out: Tensor, record: Any, everything: bool) -> Tensor:
    factors = torch.linspace(-1, 1, 64, device=out.device, dtype=out.dtype)
    total = (out * factors[: out.shape[-1]]).sum()
    if everything:
        attending = record.lse > -torch.inf
        total = total + (record.map * factors[: record.map.shape[-1]]).sum() + record.lse[attending].square().sum()
        total = total + (record.entropy * factors[: out.shape[-2]]).sum()
    return total


@pytest.mark.parametrize(
    ("name", "differentiable"),
    [
        *(("full", True), ("causal and padding", False)),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("full", False), ("causal and padding", True))),
    ],
)
def test_gradients_are_those_of_eager(name: str, differentiable: bool, device: str) -> None:
    see = See(map=4, max_score=True, entropy=True, received=True, top=2, distance=True, differentiable=differentiable)
    ours, right = leaves(tensors(device=device)), leaves(tensors(device=device), torch.float64)
    for xs, backend in ((ours, "auto"), (right, "eager")):
        out, record = attend(*xs, mask=MASKS[name], softcap=4.0, see=see, backend=backend)
        for field in ("map", "lse", "entropy"):
            assert getattr(record, field).requires_grad == differentiable
        assert not any(
            present(x).requires_grad
            for x in (record.received, record.sink, record.distance, present(record.top).weights)
        )
        loss(out, record, differentiable).backward()
    for one, other in zip(ours, right, strict=True):
        assert_close(one.grad, other.grad, "gradient")


def test_changing_a_record_does_not_change_the_gradients(device: str) -> None:
    once, again = leaves(tensors(device=device)), leaves(tensors(device=device))
    for xs in (once, again):
        out, record = attend(*xs, see=See(map=4, entropy=True))
        if xs is again:
            for x in (record.map, record.lse, record.entropy):
                present(x).zero_()
        out.sum().backward()
    for one, other in zip(once, again, strict=True):
        assert_same_bits(one.grad, other.grad)


def test_gradients_of_gradients_are_refused(device: str) -> None:
    xs = leaves(tensors(device=device))
    with pytest.raises(BackendError, match="'eager' has them"):
        torch.autograd.grad(attend(*xs, backend="triton").sum(), xs[0], create_graph=True)


# --- observed attention of other kernels -----------------------------------------------------------------


@pytest.fixture
def always_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "SMALL", 0)


@pytest.mark.usefixtures("always_in_blocks")
@pytest.mark.parametrize(
    ("see", "lse_kind"),
    [
        *((EVERYTHING, kind) for kind in ("right", "0", "inf", "no")),
        *((See(map=4, entropy=True), kind) for kind in ("right", "inf")),
        *((See(map=None, sink=False), kind) for kind in ("0", "no")),
    ],
    ids=str,
)
def test_records_of_other_kernels_are_those_of_eager(see: See, lse_kind: str, device: str) -> None:
    """Whatever LSE the other kernel returns for fully masked queries, if it returns one."""
    q, k, v = tensors(device=device)
    mask = MASKS["causal and padding"]
    _, right = attend(*three(x.double() for x in (q, k, v)), mask=mask, see=see, backend="eager")
    lse = present(right.lse).float()
    masked = lse == -torch.inf
    assert masked.any()
    lse = {"right": lse, "0": lse.masked_fill(masked, 0), "inf": lse.masked_fill(masked, torch.inf), "no": None}[
        lse_kind
    ]
    call = AttentionCall(q, k, v, 8**-0.5, mask=mask, see=see, padding=right.padding)
    record = observation.observe_attention(call, lse)
    for name in FIELDS:
        if getattr(right, name) is not None:
            assert_close(getattr(record, name), getattr(right, name), "statistic", "float32")
    if see.qk:
        assert_close(record.weights(), right.weights(), "weights")


@pytest.mark.usefixtures("always_in_blocks")
def test_unsupported_calls_are_observed_by_another_backend() -> None:
    """A bias, or no LSE; float64 is computed by chunked."""
    q, k, v = (x.double() for x in tensors())
    bias = torch.randn(1, 1, 11, 11, dtype=torch.float64)
    _, right = attend(q, k, v, bias=bias, see=EVERYTHING, backend="eager")
    call = AttentionCall(q, k, v, 8**-0.5, bias=bias, see=EVERYTHING)
    assert_same_record(observation.observe_attention(call), right)


# --- watching --------------------------------------------------------------------------------------------


class Layer(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, visible, is_causal=visible is None)


def heads(device: str) -> Three[Tensor]:
    """A width that PyTorch's kernels accept on every device."""
    make = torch.Generator().manual_seed(0)
    return three(torch.randn(1, 2, 21, 64, generator=make).to(device) for _ in range(3))


@pytest.mark.usefixtures("always_in_blocks")
def test_watch_changes_nothing_unless_fused(device: str) -> None:
    layer, xs = Layer(), heads(device)
    plain = layer(*xs)
    with watch(layer, see=See(map=5, max_score=True, entropy=True, qk=True)) as trace:
        assert_same_bits(layer(*xs), plain)
    with watch(layer, see=See(map=5, max_score=True, entropy=True, qk=True, fused=True)) as fused:
        assert_close(layer(*xs), plain)
    assert not trace[0].fused
    assert fused[0].fused
    assert "fused" in repr(fused[0])
    assert_same_record(fused[0], trace[0], ("map", "lse", "max_score", "entropy", "sink"))
    assert_close(fused[0].weights(), trace[0].weights(), "weights")


@pytest.mark.usefixtures("always_in_blocks")
def test_a_model_with_gradients_keeps_its_own_attention(device: str) -> None:
    layer, xs = Layer(), leaves(heads(device))
    plain = layer(*xs)
    with watch(layer, see=See(fused=True)) as trace:
        found = layer(*xs)
    assert_same_bits(found.detach(), plain.detach())
    assert found.requires_grad
    assert not trace[0].fused


@pytest.mark.usefixtures("always_in_blocks")
def test_an_unsupported_mask_keeps_the_models_own_attention(device: str) -> None:
    layer, xs = Layer(), heads(device)
    visible = (torch.rand(21, 21, generator=torch.Generator().manual_seed(0)) < 0.7).to(device)
    with watch(layer, see=See(map=21, fused=True)) as trace:
        assert_same_bits(layer(*xs, visible), F.scaled_dot_product_attention(*xs, visible))
    assert not trace[0].fused
    _, right = attend(*xs, mask=visible, see=See(map=21), backend="eager")
    assert_close(trace[0].map, right.map, "weights")


# --- padding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("see", "side", "band", "kind"),
    [
        (EVERYTHING, "left", Mask.causal(), "self"),
        (EVERYTHING, "right", None, "cross"),
        (See(map=4), "right", None, "self"),
        (See(map=4), "left", Mask.window(2, 0), "self"),
        (See(map=None, entropy=True, distance=True), "left", None, "cross"),
    ],
)
def test_padding_is_in_no_statistic(device: str, see: See, side: str, band: Mask | None, kind: str) -> None:
    """As with chunked, which is compared with single texts in tests/parity/test_padding.py."""
    q, k, v = tensors(device=device)
    shorter = [0] * 4 + [1] * 7 if side == "left" else [1] * 6 + [0] * 5
    keep = Mask.from_keep(torch.tensor([[1] * 11, shorter]))
    request: dict[str, Any] = {"mask": keep if band is None else band & keep, "see": see, "kind": kind}
    out, found = attend(q, k, v, **request, backend="triton")
    right, expected = attend(q, k, v, **request, backend="chunked")
    assert_close(out, right, "output", "float32")
    fields = tuple(name for name in FIELDS if getattr(expected, name) is not None)
    assert_same_record(found, expected, fields)
    if see.top:
        assert_close(found.top.weights, expected.top.weights, "statistic", "float32")
        assert (found.top.indices == expected.top.indices)[~(found.lse == -torch.inf)].all()


def test_observed_statistics_exclude_padding(device: str) -> None:
    q, k, v = tensors(device=device)
    mask = Mask.from_keep(torch.tensor([[1] * 11, [1] * 7 + [0] * 4])) & Mask.causal()
    given: dict[str, Any] = {"mask": mask, "see": EVERYTHING}
    right = attend(q, k, v, **given, backend="chunked")[1]
    true = attend(q, k, v, mask=mask, see=See(map=None), backend="chunked", kind="cross")[1].lse
    few, observation.SMALL = observation.SMALL, 0
    try:
        for lse in (None, true):
            call = AttentionCall(q, k, v, 8**-0.5, padding=right.padding, **given)
            found = observation.observe_attention(call, lse)
            assert_same_record(found, right)
    finally:
        observation.SMALL = few


def test_gradients_with_segments_and_padding_use_eager(device: str) -> None:
    q, k, v = leaves(tensors(device=device))
    request: dict[str, Any] = {"mask": MASKS["segments"] & KEEP, "see": See(map=4, entropy=True, differentiable=True)}
    assert "segments and padding" in backends(q, k, v, **request)["triton"]
    assert backends(q, k, v, **request).chosen == "eager"
