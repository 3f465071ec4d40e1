"""CaptureMode combined with other PyTorch features: it captures each attention once and changes nothing."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
import torch
import torch.nn.functional as F
from capturing import WHOLE, assert_unchanged, captured_in, records_of
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from regard.capture.dispatch_mode import CaptureMode
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.recording import record_of_call
from regard.layers import MultiHeadAttention
from regard.records import Record

X = torch.randn(2, 6, 16)


class Layer(nn.Module):
    """Attention, fused or by hand, with dropout in training."""

    def __init__(self, fused: bool = True) -> None:
        super().__init__()
        self.num_heads, self.fused = 4, fused
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mixed = F.dropout((q @ k.mT / 2).softmax(-1), 0.1, self.training) @ v
        return x + self.out(mixed.transpose(1, 2).flatten(-2))


@pytest.fixture(params=[True, False], ids=["fused", "by hand"])
def model(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(Layer(request.param), Layer(request.param))


@pytest.mark.parametrize("train", [True, False])
def test_nothing_is_changed(model: nn.Module, train: bool) -> None:
    model.train(train)
    assert len(assert_unchanged(lambda: model(X), model)) == 2


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_nothing_is_changed_without_gradients(model: nn.Module, guard: type) -> None:
    def run() -> Tensor:
        with guard():
            return model(X).clone()

    assert len(assert_unchanged(run, model)) == 2


def test_autocast(model: nn.Module) -> None:
    def run() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(X)

    for record in assert_unchanged(run, model):
        assert present(record.map).dtype == torch.float32
        assert (present(record.map).sum(-1) - 1).abs().max() < 2**-7


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing_is_captured_once(model: nn.Sequential, reentrant: bool) -> None:
    x = X.clone().requires_grad_()

    def run() -> Tensor:
        out = x
        for layer in model:
            out = checkpoint(layer, out, use_reentrant=reentrant)
        return out

    assert len(assert_unchanged(run, model)) == 2


def test_gradients_of_gradients() -> None:
    model = nn.Sequential(Layer(fused=False), Layer(fused=False))

    def run() -> Tensor:
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)
        return first

    assert len(assert_unchanged(run, model)) == 2


def test_our_own_layer_is_captured() -> None:
    layer = MultiHeadAttention(16, 4)
    (record,) = assert_unchanged(lambda: layer(X), layer)
    assert record.shape == (2, 4, 6, 6)


def test_an_outer_mode_does_not_see_the_inner_ones_operators(model: nn.Sequential) -> None:
    inner: list[Record] = []
    outer: list[Record] = []
    with (
        CaptureMode(lambda captured: outer.append(record_of_call(captured, model[0], WHOLE))),
        CaptureMode(lambda captured: inner.append(record_of_call(captured, model[0], WHOLE))),
    ):
        model(X)
    assert len(inner) == len(outer) == 2
    for one, other in zip(inner, outer, strict=True):
        assert_same_bits(one.map, other.map)


def test_other_modes_do_not_see_our_operators(model: nn.Sequential) -> None:
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            Counting.count += 1
            return func(*args, **(kwargs or {}))

    with Counting():
        model(X)
    alone, Counting.count = Counting.count, 0
    with Counting():
        records_of(lambda: model(X), model[0])
    assert Counting.count == alone


def test_an_error_in_the_model_restores_all_modes(model: nn.Module) -> None:
    def run() -> None:
        model(X)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        captured_in(run)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert len(captured_in(lambda: model(X))) == 2


def test_our_own_error_is_stored_and_the_model_continues(model: nn.Module) -> None:
    def report(captured: CapturedCall | CapturedWeights) -> None:
        raise ZeroDivisionError

    plain = model.eval()(X)
    with CaptureMode(report) as mode:
        assert torch.equal(model(X), plain)
    assert [type(error) for error in mode.unobserved.errors] == [ZeroDivisionError] * 2
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert torch.is_grad_enabled()


def test_threads_capture_independently(model: nn.Sequential) -> None:
    together = Barrier(4)
    inputs = torch.randn(4, 2, 6, 16)

    def watched(x: Tensor) -> list[Record]:
        together.wait()
        return [record for _ in range(5) for record in records_of(lambda: model(x), model[0])]

    model.eval()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(watched, inputs))
    for x, records in zip(inputs, found, strict=True):
        assert len(records) == 10
        for at, record in enumerate(records_of(partial(model, x), model[0])):
            assert_same_bits(records[at].map, record.map)


def test_the_model_may_overwrite_captured_tensors() -> None:
    def run() -> None:
        q = torch.ones(1, 1, 3, 4)
        F.scaled_dot_product_attention(q, q, q)
        q.zero_()
        scores = torch.eye(3)[None, None] * 50
        weights = scores.softmax(-1)
        weights @ torch.ones(1, 1, 3, 4)
        weights.zero_()

    _, by_hand = records_of(run, nn.Identity())
    assert_close(by_hand.weights(), torch.eye(3)[None, None], "weights")
    assert_close(by_hand.map, torch.eye(3)[None, None], "weights")


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_compiled_models_are_captured_without_recompiling(backend: str) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend  # slow to import

    torch.manual_seed(0)
    model = Layer().eval()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    with torch.no_grad():
        plain = compiled(X)
        out: list[Tensor] = []
        (record,) = records_of(lambda: out.append(compiled(X)), model)
        (expected,) = records_of(lambda: model(X), model)
        assert_same_bits(out[0], plain)
        assert_same_bits(compiled(X), plain)
    assert counter.frame_count == 1
    assert_close(record.map, expected.map, "weights")


def test_a_model_compiled_while_it_is_watched() -> None:
    torch.manual_seed(0)
    model = Layer().eval()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        out: list[Tensor] = []
        records = records_of(lambda: out.append(compiled(X)), model)
        assert_close(out[0], model(X))
    assert len(records) == 1
