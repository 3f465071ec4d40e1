"""A softmax that may be attention, and whose use cannot be followed: a warning names its module."""

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard

Use = Callable[[Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Two heads by hand. `use` computes the output from scores and values, both B H T ·."""

    def __init__(self, use: Use) -> None:
        super().__init__()
        self.use = use

    def forward(self, x: Tensor) -> Tensor:
        y = x.unflatten(-1, (2, 3)).transpose(1, 2)
        return self.use(y @ y.mT, y).transpose(1, 2).flatten(2)


class Attention(Layer):
    """The same, attention by its class name."""


def plain(scores: Tensor, v: Tensor) -> Tensor:
    return scores.softmax(-1) @ v


def top_keys(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1)
    top = weights.topk(2, -1)
    return torch.zeros_like(weights).scatter(-1, top.indices, top.values) @ v


def head_by_head(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1)
    return torch.stack([weights[:, head] @ v[:, head] for head in range(2)], 1)


def summed(scores: Tensor, v: Tensor) -> Tensor:
    return (scores.softmax(-1)[..., None] * v[:, :, None]).sum(-2)


def by_log_softmax(scores: Tensor, v: Tensor) -> Tensor:
    return F.log_softmax(scores, -1).exp() @ v


def truncated(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1).tril()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def squared(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1) ** 2
    return (weights / weights.sum(-1, keepdim=True)) @ v


X = torch.randn(1, 4, 6)


@pytest.mark.parametrize("use", [top_keys, head_by_head, summed])
def test_a_lost_softmax_is_named(use: Use) -> None:
    model = nn.Sequential(Layer(plain), Layer(use), Layer(plain))
    with pytest.warns(UserWarning, match="^1 computed a softmax that may be attention"), regard.watch(model) as trace:
        model(X)
    assert trace.names == ["0", "2"]


def test_a_log_softmax_in_an_attention_class_is_named() -> None:
    model = nn.Sequential(Attention(by_log_softmax))
    with pytest.warns(UserWarning, match="^0 computed a softmax"), regard.watch(model):
        model(X)


@pytest.mark.parametrize("use", [truncated, squared])
def test_weights_that_are_normalised_twice(use: Use) -> None:
    model = nn.Sequential(Layer(use))
    with regard.watch(model, see=regard.See(qk=True)) as trace:
        out = model(X)
    (record,) = trace
    y = X.unflatten(-1, (2, 3)).transpose(1, 2)
    torch.testing.assert_close((record.weights() @ y).transpose(1, 2).flatten(2), out)
    torch.testing.assert_close(record.weights().sum(-1), torch.ones(1, 2, 4))


def test_a_lost_softmax_is_the_only_warning() -> None:
    model = nn.Sequential(Layer(top_keys))
    with pytest.warns(UserWarning, match="softmax") as caught_warnings, regard.watch(model):
        model(X)
    assert len(caught_warnings) == 1


class Router(nn.Module):
    """Three experts."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[..., None] * x[..., :3].softmax(-1)[..., None, :]).sum(-1)


class ToyHyperConnection(nn.Module):
    """Three streams of a sequence, mixed by a matrix for each position, as in DeepSeek V4."""

    def forward(self, x: Tensor) -> Tensor:
        mixing = torch.stack([x[..., :3]] * 3, -2).softmax(-1)  # B T 3 3
        return x + (mixing / mixing.sum(-2, keepdim=True)).sum((-1, -2))[..., None]


@pytest.mark.parametrize("other", [Router, ToyHyperConnection])
def test_other_softmaxes_do_not_warn(other: type[nn.Module]) -> None:
    model = nn.Sequential(Layer(plain), other(), Layer(plain))
    with warnings.catch_warnings(), regard.watch(model) as trace:
        warnings.simplefilter("error")
        F.cross_entropy(model(X)[0], torch.arange(4))
    assert len(trace) == 2


def test_layers_that_are_not_chosen_do_not_warn() -> None:
    model = nn.Sequential(Layer(plain), Layer(top_keys))
    with regard.watch(model, layers="0") as trace:
        model(X)
    assert trace.names == ["0"]


@pytest.mark.parametrize("name", ["Mamba", "FNet"])
def test_a_model_without_softmax_attention_warns(name: str) -> None:
    import transformers

    sizes = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1}
    more = {"state_size": 4} if name == "Mamba" else {"intermediate_size": 16}
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes, **more)).eval()
    with pytest.warns(UserWarning, match="has no weights to record"), regard.watch(model) as trace, torch.no_grad():
        model(torch.tensor([[1, 2, 3]]))
    assert not len(trace)
