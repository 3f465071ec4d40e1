"""An edit of a softmax that is not attention raises; an edit of attention that only looks different does not."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard import edit, effect
from regard.errors import ArgumentError
from regard.messages import use_language

H, E = 2, 4


class Gated(nn.Module):
    """Two heads, each with a gate, which is also a softmax."""

    num_heads = H

    def __init__(self, gate_first: bool, fused: bool) -> None:
        super().__init__()
        self.gate_first, self.fused = gate_first, fused
        self.qkv, self.gate = nn.Linear(H * E, 3 * H * E), nn.Linear(H * E, H)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (H, E)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.gate_first:
            gate = self.gate(x).softmax(-1)
        out = F.scaled_dot_product_attention(q, k, v) if self.fused else (q @ k.mT).softmax(-1) @ v
        if not self.gate_first:
            gate = self.gate(x).softmax(-1)
        return (out * gate.mT[..., None]).transpose(1, 2).flatten(2)


def gated(gate_first: bool = False, fused: bool = False) -> tuple[nn.Module, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(Gated(gate_first, fused)).eval(), torch.randn(2, 5, H * E)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("gate_first", [False, True])
def test_an_edited_gate_raises(gate_first: bool, fused: bool) -> None:
    model, x = gated(gate_first, fused)
    attention, gate = ("0#1", "0#0") if gate_first else ("0#0", "0#1")
    for name in ("0", gate):
        message = rf"{gate}.*\(2, 5, 2\).*attention: '{attention}'"
        with pytest.raises(ArgumentError, match=message), edit(model, silence={name: [0]}):
            model(x)
    with edit(model, silence={attention: [0]}):
        out = model(x)
    assert not out[..., :E].any()
    assert_close(out[..., E:], model(x)[..., E:])


def test_the_error_in_both_languages_and_from_effect() -> None:
    model, x = gated()
    with use_language("zh"), pytest.raises(ArgumentError, match=r"'0#1'.*不是注意力.*'0#0'"):
        effect(model, x, silence={"0": [0]})


def test_an_edit_inside_another_raises_too() -> None:
    model, x = gated()
    message = "of '0' fell on '0#1'"
    with pytest.raises(ArgumentError, match=message), edit(model, silence={"0": 0}), edit(model, silence={"0#0": 1}):
        model(x)


class Twice(nn.Module):
    """Several softmaxes, all of them attention."""

    num_heads = H

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: Tensor) -> Any:
        q = x.unflatten(-1, (H, E)).transpose(1, 2)
        weights = (q @ q.mT).softmax(-1)
        if self.how == "to return them":
            return F.scaled_dot_product_attention(q, q, q, scale=1.0), weights
        return (weights - 0.5 * (2 * q @ q.mT).softmax(-1)) @ q, weights


@pytest.mark.parametrize("how", ["to return them", "subtracted"])
def test_weights_computed_twice_are_attention(how: str) -> None:
    model, x = Twice(how), torch.randn(2, 5, H * E)
    with edit(model, silence={"attention": [0]}):
        out, weights = model(x)
    assert not out[:, 0].any()
    assert not weights[:, 0].any()
    assert_close(out[:, 1], model(x)[0][:, 1])


def test_a_layer_repeated_in_the_backward_pass_is_not_a_gate() -> None:
    model, x = gated()
    x.requires_grad_()
    with pytest.raises(ArgumentError, match="0#1"), edit(model, silence={"0": [0]}):
        checkpoint(model, x, use_reentrant=False).sum().backward()

    class Plain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x @ x.mT).softmax(-1) @ x

    plain, x = Plain(), torch.randn(1, 2, 3, 4, requires_grad=True)
    with edit(plain, silence={"attention": [0]}):
        checkpoint(plain, x, use_reentrant=False).sum().backward()
        plain(x[:, :, :2])  # other sizes, for which the repeated layer would not be attention
    assert x.grad is not None
    assert_same_bits(x.grad[:, 0], torch.zeros(1, 3, 4))
