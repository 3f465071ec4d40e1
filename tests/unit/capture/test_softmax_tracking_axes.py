"""The axis of a softmax: over keys, in any layout, it is attention; over queries or heads it is not."""

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import regard

Use = Callable[[Tensor, Tensor, Tensor], Tensor]
MIX = nn.Linear(2, 2)
einsum = torch.einsum


class Layer(nn.Module):
    def __init__(self, use: Use) -> None:
        super().__init__()
        self.use, self.num_heads = use, 2

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.use(q, k, v)


class Net(nn.Module):
    def __init__(self, use: Use) -> None:
        super().__init__()
        self.layer = Layer(use)

    def forward(self, *qkv: Tensor) -> Tensor:
        return self.layer(*qkv)


def positions_first(use: Use) -> Use:
    """With positions before heads, B T H E."""
    return lambda q, k, v: use(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


OVER_KEYS: dict[str, Use] = {
    "plain": lambda q, k, v: (q @ k.mT).softmax(-1) @ v,
    "keys first": lambda q, k, v: (k @ q.mT).softmax(-2).mT @ v,
    "keys first, on the right": lambda q, k, v: v.mT @ (k @ q.mT).softmax(-2),
    "keys first, einsum": lambda q, k, v: einsum("bhst,bhsd->bhtd", einsum("bhsd,bhtd->bhst", k, q).softmax(2), v),
    "keys first, heads last": positions_first(
        lambda q, k, v: einsum("bsth,bshd->bthd", einsum("bshd,bthd->bsth", k, q).softmax(1), v)
    ),
    "heads last": positions_first(
        lambda q, k, v: einsum("btsh,bshd->bthd", einsum("bthd,bshd->btsh", q, k).softmax(2), v)
    ),
    "keys first, dropout, heads flat": lambda q, k, v: (
        torch.dropout((k @ q.mT).softmax(-2).flatten(0, 1), 0.5, True).mT @ v.flatten(0, 1)
    ),
}
OVER_OTHERS: dict[str, Use] = {
    "queries": lambda q, k, v: (q @ k.mT).softmax(-2) @ v,
    "queries, einsum": lambda q, k, v: einsum("bhts,bhsd->bhtd", einsum("bhtd,bhsd->bhts", q, k).softmax(2), v),
    "queries, on the right": lambda q, k, v: v.mT @ (q @ k.mT).softmax(-2).mT,
    "queries, keys first": lambda q, k, v: (k @ q.mT).softmax(-1).mT @ v,
    "queries, cast": lambda q, k, v: (q @ k.mT).softmax(-2).double() @ v.double(),
    "queries, dropout, heads flat": lambda q, k, v: (
        torch.dropout((q @ k.mT).softmax(-2).flatten(0, 1), 0.5, True) @ v.flatten(0, 1)
    ),
    "queries, heads mixed": lambda q, k, v: MIX((q @ k.mT).softmax(-2).permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v,
    "heads": lambda q, k, v: (q @ k.mT).softmax(1) @ v,
    "samples": lambda q, k, v: (q @ k.mT).softmax(0) @ v,
    "queries and keys together": lambda q, k, v: (q @ k.mT).flatten(2).softmax(-1).unflatten(2, (q.shape[2], -1)) @ v,
}


def qkv(T: int) -> tuple[Tensor, Tensor, Tensor]:
    """With T = 2 or 3, as many positions as heads or samples."""
    torch.manual_seed(T)
    q, k, v = torch.randn(3, 3, 2, T, 4)
    return q, k, v


@pytest.mark.parametrize("T", (2, 3, 5))
@pytest.mark.parametrize("use", OVER_KEYS.values(), ids=OVER_KEYS)
def test_softmax_over_keys_in_any_layout(use: Use, T: int) -> None:
    q, k, v = qkv(T)
    model = Net(use)
    with torch.no_grad(), regard.watch(model) as trace:
        model(q, k, v)
    assert trace.names == ["layer"]
    torch.testing.assert_close(trace[0].map, (q @ k.mT).softmax(-1))


@pytest.mark.parametrize("T", (2, 3, 5))
@pytest.mark.parametrize("use", OVER_OTHERS.values(), ids=OVER_OTHERS)
def test_softmax_over_another_axis_warns(use: Use, T: int) -> None:
    model = Net(use)
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught_warnings, regard.watch(model) as trace:
        warnings.simplefilter("always")
        model(*qkv(T))
    assert len(trace) == 0
    assert [str(one.message)[:27] for one in caught_warnings] == ["the softmax of layer is not"]


def test_a_table_of_weights_without_samples() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x @ x.mT).softmax(0) @ x

    with pytest.warns(UserWarning, match="softmax of attention is not"), regard.watch(model := Square()) as trace:
        model(torch.randn(4, 4))
    assert len(trace) == 0


def test_a_gate_does_not_warn() -> None:
    """Experts are weighted, and the tokens of each are summed: not attention, and no reason to warn."""

    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.gate = Layer(OVER_KEYS["plain"]), nn.Linear(4, 3)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            x = self.attention(q, k, v).flatten(0, 2)
            return self.gate(x).softmax(-1).mT @ x

    with regard.watch(model := Gated()) as trace:
        model(*qkv(5))
    assert trace.names == ["attention"]
