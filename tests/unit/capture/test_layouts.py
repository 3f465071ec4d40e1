"""Weights in a model's own layout: recorded as B H T S, or reported."""

import re
from types import SimpleNamespace

import pytest
import torch
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import regard
from regard import See

H, T = 2, 5


class CustomLayout(nn.Module):
    """Attention of the last tokens by einsum, weights arranged as `axes`, softmax along s."""

    def __init__(self, axes: str, heads: int | None, queries: int = T) -> None:
        super().__init__()
        self.axes, self.num_heads, self.queries = axes, heads, queries

    def forward(self, x: Tensor) -> Tensor:
        y = x.unflatten(-1, (H, -1))
        weights = torch.einsum(f"bthe,bshe->{self.axes}", y[:, -self.queries :], y).softmax(self.axes.index("s"))
        return torch.einsum(f"{self.axes},bshe->bthe", weights, y).flatten(2)


def scores_of(x: Tensor, queries: int = T) -> Tensor:
    y = x.unflatten(-1, (H, -1)).transpose(1, 2)
    return y[:, :, -queries:] @ y.mT


@pytest.mark.parametrize("heads", [H, None])
@pytest.mark.parametrize("B", [1, 2, 3])
@pytest.mark.parametrize("queries", [1, 2, T])
@pytest.mark.parametrize("axes", ["bhts", "bths", "btsh"])
def test_the_product_shows_which_axis_counts_queries(axes: str, queries: int, B: int, heads: int | None) -> None:
    model, x = CustomLayout(axes, heads, queries), torch.randn(B, T, 8)
    with regard.watch(model, see=See(qk=True)) as trace:
        model(x)
    assert_close(trace[0].weights(), scores_of(x, queries).softmax(-1), "weights")
    assert_close(trace[0].lse, scores_of(x, queries).logsumexp(-1), "statistic")


@pytest.mark.parametrize("B", [1, 3])
def test_heads_that_come_before_samples(B: int) -> None:
    model, x = CustomLayout("hbts", H), torch.randn(B, T, 8)
    with regard.watch(model, see=See(qk=True)) as trace:
        model(x)
    assert_close(trace[0].weights(), scores_of(x).softmax(-1), "weights")


class Shared(nn.Module):
    """Heads that share keys and values, all rows of one matrix: T H S, or H T S."""

    def __init__(self, heads_last: bool) -> None:
        super().__init__()
        self.num_heads, self.heads_last = H, heads_last

    def forward(self, x: Tensor) -> Tensor:
        q = x.unflatten(-1, (H, -1))  # B T H E
        q = q if self.heads_last else q.transpose(1, 2)
        k = x[..., : q.shape[-1]]
        weights = (q.flatten(1, 2) @ k.mT).unflatten(1, q.shape[1:3]).softmax(-1)
        return (weights.flatten(1, 2) @ k).unflatten(1, q.shape[1:3])


@pytest.mark.parametrize(("length", "heads_last"), [(1, False), (T, False), (T, True)])
def test_heads_that_are_rows_of_one_matrix(length: int, heads_last: bool) -> None:
    model, x = Shared(heads_last), torch.randn(3, T, 8)
    with regard.watch(model, see=See(qk=True)) as trace:
        model(x[:, :length])
    x = x[:, :length]
    expected = (x.unflatten(-1, (H, -1)).transpose(1, 2) @ x[:, None, :, :4].mT).softmax(-1)
    assert_close(trace[0].weights(), expected, "weights")


class Hidden(nn.Module):
    """Samples and heads are ambiguous: its inputs have neither queries nor keys."""

    num_heads = H

    def forward(self, scores: Tensor) -> Tensor:
        weights = scores[0].softmax(-1)
        return weights @ weights.new_ones(*weights.shape[:2], T, 3)


def test_ambiguous_axes_warn() -> None:
    model = Hidden()
    message = re.escape("attention arranges its weights in its own layout ((2, 3, 5, 5) with 2 heads)")
    with pytest.warns(UserWarning, match=message), regard.watch(model) as trace:
        model(torch.randn(1, H, 3, T, T))
    assert trace[0].shape == (2, 3, T, T)


class Head(nn.Module):
    """One of four heads."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config, self.qkv = config, nn.Linear(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return (q @ k.mT).softmax(-1) @ v


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.heads = nn.ModuleList(Head(SimpleNamespace(n_head=4)) for _ in range(4))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        return torch.cat([head(x) for head in self.heads], -1)


@pytest.mark.parametrize("B", [1, 3, 4, 8])
def test_a_module_that_is_one_head_has_one(B: int) -> None:
    model = Heads()
    with regard.watch(model) as trace:
        model(torch.randint(0, 9, (B, T)))
    assert [record.shape for record in trace] == [(B, 1, T, T)] * 4
    assert present(trace[0].ids).shape == (B, T)


def test_a_single_head_module_is_silenced_in_all_samples() -> None:
    model, ids = Heads(), torch.randint(0, 9, (4, T))
    plain = model(ids)
    with regard.edit(model, silence={"heads.1": [0]}):
        out = model(ids)
    assert not out[..., 2:4].any()
    assert_same_bits(out[..., 4:], plain[..., 4:])


class Pooling(nn.Module):
    """One query for each sample, and weights B S."""

    n_heads = 2

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.bmm(self.score(x).squeeze(-1).softmax(-1)[:, None], x)[:, 0]


@pytest.mark.parametrize("B", [3, 4])
def test_one_query_for_each_sample(B: int) -> None:
    model = Pooling()
    with regard.watch(model) as trace:
        model(torch.randn(B, T, 8))
    assert trace[0].shape == (B, 1, 1, T)
