"""Replacing the output of a fused operator: when it is done, and that the results have the operator's form.

Our kernels need a GPU, or Triton's interpreter (tests/unit/kernels/triton); here PyTorch's own kernel replaces them.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from narrowing import present
from tolerances import assert_same_bits
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from regard import See, watch
from regard.attention_call import AttentionCall
from regard.capture import recording
from regard.capture.dispatch_mode import can_replace, operator_results
from regard.capture.operators import READERS, CapturedOutput, named, read_fused
from regard.dispatch import observation
from regard.dispatch.observation import ObservedOutput
from regard.errors import ArgumentError
from regard.records import Record

CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
CUDNN = torch.ops.aten._scaled_dot_product_cudnn_attention.default
EFFICIENT = torch.ops.aten._scaled_dot_product_efficient_attention.default
FLASH = torch.ops.aten._scaled_dot_product_flash_attention.default


@pytest.fixture(autouse=True)
def as_if_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to be on a GPU without running there: no kernel may be imported in this process."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("REGARD_INTERPRET", "1")
    monkeypatch.setattr(observation, "SMALL", 0)


def heads(*, grad: bool = False, lies: bool = False) -> list[Tensor]:
    """q, k and v, B H T E; with positions before heads in memory, as in most models."""
    made = [torch.randn(2, 9, 4, 8) if lies else torch.randn(2, 4, 9, 8) for _ in range(3)]
    return [(x.transpose(1, 2) if lies else x).requires_grad_(grad) for x in made]


def given(*args: Any, **options: Any) -> dict[str, Any]:
    return named(CPU, args, options)


def test_calls_that_can_be_replaced() -> None:
    assert can_replace(given(*heads()))
    assert can_replace(given(*heads(), is_causal=True, attn_mask=torch.zeros(9, 9)))
    assert not can_replace(given(*heads(), 0.1))
    assert not can_replace(given(*heads(grad=True)))
    with torch.no_grad():
        assert can_replace(given(*heads(grad=True)))
    assert not can_replace(given(*(x.double() for x in heads())))


def test_small_calls_and_cpu_calls_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "SMALL", 2**18)
    assert not can_replace(given(*heads()))
    monkeypatch.setattr(observation, "SMALL", 0)
    monkeypatch.delenv("TRITON_INTERPRET")
    assert not can_replace(given(*heads()))


def test_calls_with_a_trainable_bias_and_decoding_steps_are_not_replaced() -> None:
    q, k, v = heads()
    assert not can_replace(given(q, k, v, attn_mask=torch.zeros(9, 9, requires_grad=True)))
    assert not can_replace(given(q[:, :, :1], k, v))


class Checkpointed(torch.autograd.Function):
    """Like checkpointing and compiled training: forward without gradients, which are needed later."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        assert not can_replace(given(*tensors))
        return tensors[0].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (*gradients, None, None)


def test_calls_inside_an_autograd_function_are_not_replaced() -> None:
    Checkpointed.apply(*heads(grad=True))


def test_calls_below_another_mode_are_not_replaced() -> None:
    with FlopCounterMode(display=False):
        answers = []

        class Asking(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func is torch.ops.aten.neg.default:
                    answers.append(can_replace(given(*there)))
                return func(*args, **(kwargs or {}))

        there = heads()
        with Asking():
            torch.neg(there[0])
    with Asking():
        torch.neg(there[0])
    assert answers == [False, True]


def test_flash_attention_on_cuda_counts_from_the_last_key() -> None:
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 8)

    def read(func: Any, *arrays: torch.Tensor) -> Any:
        return present(READERS[func])(named(func, arrays, {"is_causal": True}), (None, None))

    visible = [read(func, q, k, v).mask.dense(3, 9, like=q) for func in (CPU, FLASH)]
    assert visible[0].sum(-1).flatten().tolist() == [1, 2, 3]
    assert visible[1].sum(-1).flatten().tolist() == [7, 8, 9]


@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize(
    ("func", "rest"),
    [(CPU, ()), (FLASH, ()), (EFFICIENT, (None, True)), (EFFICIENT, (None, False)), (CUDNN, (None, True))],
    ids=["cpu", "flash", "efficient", "efficient without LSE", "cudnn"],
)
def test_results_have_the_operators_shapes_and_strides(func: Any, rest: tuple[Any, ...], lies: bool) -> None:
    args, output = (*heads(lies=lies), *rest), CapturedOutput()
    output.out, output.lse = torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9)
    results = operator_results(func, args, {}, output)
    own = func(*(x.to("meta") if isinstance(x, Tensor) else x for x in args))
    assert len(results) == len(own) == len(func._schema.returns)
    for ours, theirs in zip(results, own, strict=True):
        assert type(ours) is type(theirs)
        if isinstance(ours, Tensor):
            assert ours.device.type == "cpu"
            assert (ours.shape, ours.stride(), ours.dtype) == (theirs.shape, theirs.stride(), theirs.dtype)
    assert_same_bits(results[0], output.out)
    back = read_fused(named(func, args, {}), results).lse
    if rest == (None, False):
        assert back is None
    else:
        assert back is not None
        assert_same_bits(back, output.lse)


class Layer(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options)


def stand_in(calls: list[See]) -> Any:
    def answered(call: AttentionCall) -> ObservedOutput | None:
        assert call.see is not None
        calls.append(call.see)
        if call.bias is not None:
            return None
        B, H, T, _ = call.q.shape
        out = torch.full((B, H, T, call.v.shape[-1]), 7.0)
        return ObservedOutput(out, torch.zeros(B, H, T), Record(shape=(B, H, T, call.k.shape[2]), fused=True))

    return answered


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_model_continues_with_the_replaced_output(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[See] = []
    monkeypatch.setattr(recording, "attend_and_observe", stand_in(calls))
    layer, (q, k, v) = Layer(), heads()
    with mode(), watch(layer, see=See(map=3, fused=True)) as trace:
        out = layer(q, k, v)
        refused = layer(q, k, v, attn_mask=torch.randn(9, 9))
    assert (out == 7).all()
    assert [record.fused for record in trace] == [True, False]
    assert len(calls) == 2
    assert present(trace[1].map).shape == (2, 4, 3, 3)
    assert (refused != 7).all()


def test_outputs_are_replaced_only_with_fused_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")  # else later operators would expect a GPU too
    calls: list[See] = []
    monkeypatch.setattr(recording, "attend_and_observe", stand_in(calls))
    layer, (q, k, v) = Layer(), heads()
    with watch(layer, see=See(map=3)) as trace:
        assert_same_bits(layer(q, k, v), F.scaled_dot_product_attention(q, k, v))
    assert not calls
    assert not trace[0].fused


def test_layers_that_are_not_chosen_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[See] = []
    monkeypatch.setattr(recording, "attend_and_observe", stand_in(calls))
    model, (q, k, v) = nn.ModuleList([Layer(), Layer()]), heads()
    with watch(model, see=See(map=3, fused=True), layers="1") as trace:
        first, second = (layer(q, k, v) for layer in model)
    assert_same_bits(first, F.scaled_dot_product_attention(q, k, v))
    assert (second == 7).all()
    assert [record.name for record in trace] == ["1"]


def test_see_nothing_replaces_nothing() -> None:
    q, k, v = heads()
    see = See(map=None, lse=False, sink=False, values=True)
    assert observation.attend_and_observe(AttentionCall(q, k, v, 1.0, see=see)) is None


def test_differentiable_see_raises() -> None:
    with pytest.raises(ArgumentError, match="below autograd"), watch(Layer(), see=See(differentiable=True)):
        pass
