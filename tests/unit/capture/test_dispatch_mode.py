"""A fused operator answered by others: when, and that nobody can tell from what comes back.

The kernels that answer need a GPU, or Triton's interpreter (tests/unit/kernels/triton); here PyTorch's own stands in.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_same_bits
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from regard import See, watch
from regard.capture import recording
from regard.capture.captured import Output
from regard.capture.dispatch_mode import may_answer, results_of
from regard.capture.operators import READERS, named, read_fused
from regard.dispatch import observation
from regard.dispatch.observation import Answered
from regard.errors import ArgumentError
from regard.records import Record

CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
CUDNN = torch.ops.aten._scaled_dot_product_cudnn_attention.default
EFFICIENT = torch.ops.aten._scaled_dot_product_efficient_attention.default
FLASH = torch.ops.aten._scaled_dot_product_flash_attention.default


@pytest.fixture(autouse=True)
def as_if_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be told, not run: no kernel may be imported in this process."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("REGARD_INTERPRET", "1")
    monkeypatch.setattr(observation, "FEW", 0)


def heads(*, grad: bool = False, lies: bool = False) -> list[Tensor]:
    """q, k and v, B H T E; as most models have them, positions outside of heads."""
    made = [torch.randn(2, 9, 4, 8) if lies else torch.randn(2, 4, 9, 8) for _ in range(3)]
    return [(x.transpose(1, 2) if lies else x).requires_grad_(grad) for x in made]


def given(*args: Any, **options: Any) -> dict[str, Any]:
    return named(CPU, args, options)


def test_when() -> None:
    assert may_answer(given(*heads()))
    assert may_answer(given(*heads(), is_causal=True, attn_mask=torch.zeros(9, 9)))
    assert not may_answer(given(*heads(), 0.1))
    assert not may_answer(given(*heads(grad=True)))
    with torch.no_grad():
        assert may_answer(given(*heads(grad=True)))
    assert not may_answer(given(*(x.double() for x in heads())))


def test_not_for_little_and_not_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "FEW", 2**18)
    assert not may_answer(given(*heads()))
    monkeypatch.setattr(observation, "FEW", 0)
    monkeypatch.delenv("TRITON_INTERPRET")
    assert not may_answer(given(*heads()))


def test_not_where_a_bias_learns_nor_for_a_step_of_a_generation() -> None:
    q, k, v = heads()
    assert not may_answer(given(q, k, v, attn_mask=torch.zeros(9, 9, requires_grad=True)))
    assert not may_answer(given(q[:, :, :1], k, v))


class Later(torch.autograd.Function):
    """As checkpoints and compiled training do: forward without gradients, which come all the same."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        assert not may_answer(given(*tensors))
        return tensors[0].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (*gradients, None, None)


def test_not_where_gradients_come_later() -> None:
    Later.apply(*heads(grad=True))


def test_not_where_others_watch_too() -> None:
    with FlopCounterMode(display=False):
        answers = []

        class Asking(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func is torch.ops.aten.neg.default:
                    answers.append(may_answer(given(*there)))
                return func(*args, **(kwargs or {}))

        there = heads()
        with Asking():
            torch.neg(there[0])
    with Asking():
        torch.neg(there[0])
    assert answers == [False, True]


def test_flash_attention_on_cuda_counts_from_the_last_key() -> None:
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 8)
    seen = [
        READERS[func](named(func, (q, k, v), {"is_causal": True}), (None, None)).mask.dense(3, 9, like=q)
        for func in (CPU, FLASH)
    ]
    assert seen[0].sum(-1).flatten().tolist() == [1, 2, 3]
    assert seen[1].sum(-1).flatten().tolist() == [7, 8, 9]


@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize(
    ("func", "rest"),
    [(CPU, ()), (FLASH, ()), (EFFICIENT, (None, True)), (EFFICIENT, (None, False)), (CUDNN, (None, True))],
    ids=["cpu", "flash", "efficient", "efficient without LSE", "cudnn"],
)
def test_results_look_like_the_operators_own(func: Any, rest: tuple[Any, ...], lies: bool) -> None:
    args, output = (*heads(lies=lies), *rest), Output()
    output.out, output.lse = torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9)
    results = results_of(func, args, {}, output)
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


def stand_in(asked: list[See]) -> Any:
    def answered(q: Tensor, k: Tensor, v: Tensor, *, see: See, **options: Any) -> Answered | None:
        asked.append(see)
        if options["bias"] is not None:
            return None
        out = torch.full((*q.shape[:3], v.shape[-1]), 7.0)
        return Answered(out, torch.zeros(q.shape[:3]), Record(shape=(*q.shape[:3], k.shape[2]), fused=True))

    return answered


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_model_goes_on_with_what_it_was_given(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[See] = []
    monkeypatch.setattr(recording, "answered", stand_in(asked))
    layer, (q, k, v) = Layer(), heads()
    with mode(), watch(layer, see=See(map=3, fused=True)) as trace:
        out = layer(q, k, v)
        refused = layer(q, k, v, attn_mask=torch.randn(9, 9))
    assert (out == 7).all()
    assert [record.fused for record in trace] == [True, False]
    assert len(asked) == 2
    assert trace[1].map.shape == (2, 4, 3, 3)
    assert (refused != 7).all()


def test_nobody_is_asked_unless_it_was_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")  # else what looks afterwards would take it for a GPU too
    asked: list[See] = []
    monkeypatch.setattr(recording, "answered", stand_in(asked))
    layer, (q, k, v) = Layer(), heads()
    with watch(layer, see=See(map=3)) as trace:
        assert_same_bits(layer(q, k, v), F.scaled_dot_product_attention(q, k, v))
    assert not asked
    assert not trace[0].fused


def test_what_was_not_chosen_is_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[See] = []
    monkeypatch.setattr(recording, "answered", stand_in(asked))
    model, (q, k, v) = nn.ModuleList([Layer(), Layer()]), heads()
    with watch(model, see=See(map=3, fused=True), layers="1") as trace:
        first, second = (layer(q, k, v) for layer in model)
    assert_same_bits(first, F.scaled_dot_product_attention(q, k, v))
    assert (second == 7).all()
    assert [record.name for record in trace] == ["1"]


def test_nothing_to_see_is_nothing_to_answer() -> None:
    q, k, v = heads()
    see = See(map=None, lse=False, sink=False, values=True)
    assert observation.answered(q, k, v, scale=1.0, see=see) is None


def test_a_watch_carries_no_gradients_and_says_so() -> None:
    with pytest.raises(ArgumentError, match="below autograd"), watch(Layer(), see=See(differentiable=True)):
        pass
