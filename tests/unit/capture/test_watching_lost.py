"""A softmax that may be attention, and whose way to the values is not understood: a warning names its module."""

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard

Way = Callable[[Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Two heads by hand. `use` makes the output of scores and values, both B H T ·."""

    def __init__(self, use: Way) -> None:
        super().__init__()
        self.use = use

    def forward(self, x: Tensor) -> Tensor:
        y = x.unflatten(-1, (2, 3)).transpose(1, 2)
        return self.use(y @ y.mT, y).transpose(1, 2).flatten(2)


class Attention(Layer):
    """The same, by its class."""


def plain(scores: Tensor, v: Tensor) -> Tensor:
    return scores.softmax(-1) @ v


def strongest(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1)
    top = weights.topk(2, -1)
    return torch.zeros_like(weights).scatter(-1, top.indices, top.values) @ v


def head_by_head(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1)
    return torch.stack([weights[:, head] @ v[:, head] for head in range(2)], 1)


def summed(scores: Tensor, v: Tensor) -> Tensor:
    return (scores.softmax(-1)[..., None] * v[:, :, None]).sum(-2)


def by_logarithm(scores: Tensor, v: Tensor) -> Tensor:
    return F.log_softmax(scores, -1).exp() @ v


def cut_after(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1).tril()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def squared(scores: Tensor, v: Tensor) -> Tensor:
    weights = scores.softmax(-1) ** 2
    return (weights / weights.sum(-1, keepdim=True)) @ v


X = torch.randn(1, 4, 6)


@pytest.mark.parametrize("use", [strongest, head_by_head, summed])
def test_a_layer_that_goes_missing_is_named(use: Way) -> None:
    model = nn.Sequential(Layer(plain), Layer(use), Layer(plain))
    with pytest.warns(UserWarning, match="^1 made a softmax that may be attention"), regard.watch(model) as trace:
        model(X)
    assert trace.names == ["0", "2"]


def test_a_logarithm_is_attention_where_the_class_says_so() -> None:
    model = nn.Sequential(Attention(by_logarithm))
    with pytest.warns(UserWarning, match="^0 made a softmax"), regard.watch(model):
        model(X)


@pytest.mark.parametrize("use", [cut_after, squared])
def test_weights_that_are_normalised_again(use: Way) -> None:
    model = nn.Sequential(Layer(use))
    with regard.watch(model, see=regard.See(qk=True)) as trace:
        out = model(X)
    (record,) = trace
    y = X.unflatten(-1, (2, 3)).transpose(1, 2)
    torch.testing.assert_close((record.weights() @ y).transpose(1, 2).flatten(2), out)
    torch.testing.assert_close(record.weights().sum(-1), torch.ones(1, 2, 4))


def test_where_it_is_all_there_is_no_other_reason_is_guessed() -> None:
    model = nn.Sequential(Layer(strongest))
    with pytest.warns(UserWarning, match="softmax") as told, regard.watch(model):
        model(X)
    assert len(told) == 1


class Router(nn.Module):
    """Three experts."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[..., None] * x[..., :3].softmax(-1)[..., None, :]).sum(-1)


def test_what_is_no_attention_is_not_missed() -> None:
    model = nn.Sequential(Layer(plain), Router(), Layer(plain))
    with warnings.catch_warnings(), regard.watch(model) as trace:
        warnings.simplefilter("error")
        F.cross_entropy(model(X)[0], torch.arange(4))
    assert len(trace) == 2


def test_layers_that_were_not_chosen_are_not_missed() -> None:
    model = nn.Sequential(Layer(plain), Layer(strongest))
    with regard.watch(model, layers="0") as trace:
        model(X)
    assert trace.names == ["0"]


@pytest.mark.parametrize("name", ["Mamba", "FNet"])
def test_a_model_without_softmax_attention_is_told_that_there_may_be_none(name: str) -> None:
    import transformers

    sizes = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1}
    more = {"state_size": 4} if name == "Mamba" else {"intermediate_size": 16}
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes, **more)).eval()
    with pytest.warns(UserWarning, match="has no weights to record"), regard.watch(model) as trace, torch.no_grad():
        model(torch.tensor([[1, 2, 3]]))
    assert not len(trace)
