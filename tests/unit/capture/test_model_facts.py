"""Facts of a model are kept while it lives, and found out again when its modules change."""

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.capture.model_facts import MAX_VISITS, attribute_of, facts_of
from regard.capture.module_names import ModuleNames
from regard.errors import ArgumentError
from regard.layers import MultiHeadAttention


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))


@pytest.mark.parametrize("call", [regard.watch, regard.edit, regard.monitor, regard.logit_attribution])
def test_a_model_in_numpy_is_refused_with_the_way_to_load_it(call: Callable[..., Any]) -> None:
    poet = regard.load("poet", backend="numpy")
    ids: list[Any] = [torch.tensor([[1, 2]])] if call is regard.logit_attribution else []
    for found in (poet, poet.model):
        with pytest.raises(ArgumentError, match=rf"{type(found).__name__} computes in NumPy.*backend=.torch") as error:
            call(found, *ids)
        assert call.__name__ in str(error.value)


def test_facts_are_kept() -> None:
    one = model()
    first, modules = facts_of(one)
    assert facts_of(one)[0] is first
    assert first.names == {id(module): name for name, module in one.named_modules()}
    assert {*modules} == {*one.modules()}


def renamed(one: nn.Sequential) -> None:
    one._modules = {("x" if name == "0" else name): part for name, part in one._modules.items()}


CHANGES: dict[str, Callable[[nn.Sequential], object]] = {
    "added": lambda one: one.append(nn.ReLU()),
    "removed": lambda one: one.pop(0),
    "replaced": lambda one: one[1].__setitem__(0, nn.GELU()),  # type: ignore[operator]
    "to None": lambda one: setattr(one, "0", None),
    "renamed": renamed,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(change: str) -> None:
    one = model()
    first, _ = facts_of(one)
    CHANGES[change](one)
    now, modules = facts_of(one)
    assert now is not first
    assert now.names == {id(module): name for name, module in one.named_modules()}
    assert {*modules} == {*one.modules()}
    assert [place.name for place in ModuleNames(one).places] == [name for name, _ in one.named_modules()]


def test_facts_do_not_keep_a_model_alive() -> None:
    one = model()
    vars(one[1])["parent"] = (one,)  # hidden from its modules
    regard.watch(one)
    ghost = weakref.ref(one)
    del one
    gc.collect()
    assert ghost() is None


def test_shared_modules_and_modules_that_contain_each_other() -> None:
    shared = nn.Linear(2, 2)
    one = nn.Sequential(shared, nn.Sequential(shared))
    assert list(ModuleNames(one)) == ["", "0", "1"]
    one[1].add_module("1", one)
    facts, modules = facts_of(one)
    assert sorted(facts.names.values()) == ["", "0", "1"]
    assert len(modules) < MAX_VISITS
    assert {*modules} == {*one.modules()}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out_proj = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (6, 4)).transpose(1, 2).chunk(3, 1)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out_proj(y.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("how", ["scripted", "traced", "scripted inside", "traced inside"])
def test_torchscript(how: str) -> None:
    """Its modules have no dict of submodules, and no `forward` on their class."""
    plain, x = Attention().eval(), torch.randn(2, 5, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        one: Any = torch.jit.script(plain) if "scripted" in how else torch.jit.trace(plain, x, check_trace=False)
    whole = nn.Sequential(one, Attention().eval()) if "inside" in how else one
    wanted = whole(x)
    with torch.no_grad(), regard.watch(whole, see=regard.See(values=True, outputs=True)) as trace:
        assert torch.equal(whole(x), wanted)
    assert all(record.shape == (2, 2, 5, 5) for record in trace)
    assert trace.names[-1:] == (["1"] if "inside" in how else ["attention"])


class Flagged(nn.Linear):
    is_causal = True

    @property
    def kind(self) -> str:
        return "decoder"


class Wrapper(nn.Module):
    """Passes attributes on, as adapters do."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def test_attributes_of_a_module_its_class_and_what_it_wraps() -> None:
    flagged = Flagged(2, 3)
    for one in (flagged, Wrapper(flagged)):
        found = [attribute_of(one, name) for name in ("is_causal", "kind", "out_features")]
        assert found == [True, "decoder", 3]
    assert attribute_of(flagged, "is_cross_attention") is None
    setattr(flagged, "is_cross_attention", False)  # noqa: B010 - no attribute that the class declares
    assert attribute_of(flagged, "is_cross_attention") is False


class AddsOutside(nn.Module):
    """A decoder that adds attention to the residual stream itself, not inside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm, self.output = nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 9)
        self.layer = MultiHeadAttention(8, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        logits: torch.Tensor = self.output(self.norm(x + self.layer(x)))
        return logits


def test_attribution_of_a_sum_outside_of_the_layers_says_that_no_layer_adds() -> None:
    with pytest.raises(ArgumentError, match="no module of this model takes the residual stream"):
        regard.logit_attribution(AddsOutside().eval(), torch.tensor([[1, 2, 3]]))
