"""Deferred rows: the same records as if each row had been computed at once."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See, Trace
from regard.capture.watched_trace import MAX_WEIGHTS, DecodeHistory, WatchedTrace
from regard.capture.watching import Watcher
from regard.records import Record

EVERYTHING = See(map=4, max_score=True, entropy=True, received=True, top=3, distance=True, values=True)
LENGTH = 12
TEXT = torch.randn(2, LENGTH, 16, generator=torch.Generator().manual_seed(0))


class Layer(nn.Module):
    """Attention with its own cache; some store keys in another precision than they use."""

    is_causal = True

    def __init__(self, groups: int, rounds: bool = False) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 8 * groups)
        self.groups, self.rounds = groups, rounds

    def forward(self, x: Tensor, past: list[Tensor]) -> Tensor:
        q = self.q(x).unflatten(-1, (4, 4)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, self.groups, 4)).permute(2, 0, 3, 1, 4)
        if past:
            k, v = (torch.cat([old, new], 2) for old, new in zip(past, (k, v), strict=True))
        past[:] = (k, v) if not self.rounds else ((k * 8).round() / 8, v)
        causal = q.shape[2] > 1
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=self.groups < 4)
        return x + out.transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self, groups: int = 4, rounds: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([Layer(groups), Layer(groups, rounds)])

    def generate(self, prompt: int, past: list[list[Tensor]] | None = None) -> Tensor:
        """The name marks the text as generated."""
        past = past or [[], []]
        for start, stop in [(0, prompt), *((at, at + 1) for at in range(prompt, LENGTH))]:
            out = TEXT[:, start:stop]
            for layer, own in zip(self.layers, past, strict=True):
                out = layer(out, own)
        return out


def watched(model: Model, see: See = EVERYTHING, prompt: int = 3) -> Trace:
    with torch.no_grad(), regard.watch(model, see=see) as trace:
        model.generate(prompt)
    return trace


def assert_same_records(found: Trace, wanted: Trace) -> None:
    assert found.names == wanted.names
    for one, other in zip(found, wanted, strict=True):
        for field in fields(Record):
            have, want = getattr(one, field.name), getattr(other, field.name)
            if isinstance(want, Tensor):
                torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-6, msg=f"{one.name}.{field.name}")
            elif field.name == "top" and want is not None:
                torch.testing.assert_close(have.weights, want.weights, rtol=1e-5, atol=1e-6)
            elif field.name not in ("exact", "ids"):
                assert have == want, field.name
        torch.testing.assert_close(one.weights(), other.weights(), rtol=1e-5, atol=1e-6)


@pytest.fixture
def immediately(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same watch without deferred rows."""

    def run(*args: Any, **more: Any) -> Trace:
        with monkeypatch.context() as patch:
            patch.setattr(DecodeHistory, "row", lambda *_: None)
            return watched(*args, **more)

    return run


@pytest.mark.parametrize(
    "see", [EVERYTHING, See(), See(map=None), See(map=5, lse=False, sink=False), See(map=7, qk=True)], ids=str
)
@pytest.mark.parametrize("groups", [4, 2])
def test_deferred_statistics_equal_those_of_single_rows(groups: int, see: See, immediately: Any) -> None:
    model = Model(groups)
    assert_same_records(watched(model, see), immediately(model, see))


def test_rows_are_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    monkeypatch.setattr(WatchedTrace, "defer", lambda self, row, see: rows.append(row.S))
    watched(Model())
    assert rows == [S for S in range(4, LENGTH + 1) for _ in range(2)]


@pytest.mark.parametrize("most", [1, 200, MAX_WEIGHTS])
def test_batches_of_any_size(most: int, immediately: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.capture.watched_trace.MAX_WEIGHTS", most)
    assert_same_records(watched(Model()), immediately(Model()))


def test_reading_the_trace_early_computes_deferred_rows(immediately: Any) -> None:
    model, wanted = Model(), immediately(Model())
    with torch.no_grad(), regard.watch(model, see=EVERYTHING) as trace:
        model.generate(3)
        assert len(trace) == len(wanted)
        assert_same_records(trace, wanted)
        assert len(trace) == len(wanted)  # reading the trace was not watched
    assert_same_records(trace, wanted)


def test_an_error_leaves_complete_records(immediately: Any) -> None:
    model = Model()
    watching = regard.watch(model, see=EVERYTHING)
    with torch.no_grad():
        trace = watching.__enter__()
        model.generate(3)
        leave: Callable[..., object] = watching.__exit__
        assert not leave(KeyError, KeyError(), None)
    assert_same_records(trace, immediately(model))


@pytest.mark.parametrize("context", [nullcontext, torch.inference_mode, torch.no_grad])
def test_with_gradients_and_in_inference_mode(context: Any, immediately: Any) -> None:
    model, mode = Model(), context()
    assert isinstance(mode, AbstractContextManager | torch.no_grad)
    with mode, regard.watch(model, see=EVERYTHING) as trace:
        model.generate(3)
    assert all(not present(record.map).requires_grad for record in trace)
    assert_same_records(trace, immediately(model))


def test_rows_of_changed_keys_are_not_deferred(immediately: Any) -> None:
    """A later layer may store its keys in fewer bits: the keys that a row saw are gone one step later."""
    model = Model(rounds=True)
    found, wanted = watched(model), immediately(model)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.map, other.map)
        torch.testing.assert_close(one.sink, other.sink)


def test_rows_of_later_layers_repeat_that_of_the_first(monkeypatch: pytest.MonkeyPatch, immediately: Any) -> None:
    see = replace(EVERYTHING, values=False)
    wanted = immediately(Model(), see=see)
    added: list[str] = []
    original = Watcher._add

    def add(self: Watcher, call: Any, place: Any) -> None:
        added.append(place.name)
        original(self, call, place)

    monkeypatch.setattr(Watcher, "_add", add)
    assert_same_records(watched(Model(), see=see), wanted)
    # The prompt twice, because on a CPU whole calls do not wait; then only the first layer of each row.
    assert added == ["layers.0", "layers.1", *["layers.0"] * (LENGTH - 3)]
    added.clear()
    found = watched(Model(rounds=True), see=see)
    assert added.count("layers.1") == LENGTH - 2, "its keys change: every row is looked at"
    assert_same_records(found, immediately(Model(rounds=True), see=see))
