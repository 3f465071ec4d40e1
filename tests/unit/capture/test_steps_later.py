"""Rows that wait: nobody can tell that they were made together, and late."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard import See, Trace
from regard.capture.decode_rows import AT_ONCE, Later, Steps
from regard.records import Record

EVERYTHING = See(map=4, entropy=True, received=True, top=3, distance=True, values=True)
LENGTH = 12
TEXT = torch.randn(2, LENGTH, 16, generator=torch.Generator().manual_seed(0))


class Layer(nn.Module):
    """Attention with a cache of its own; some keep it in another form than they use it."""

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
        """The name says that a text goes on from here."""
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


def assert_alike(found: Trace, wanted: Trace) -> None:
    assert found.names == wanted.names
    for one, other in zip(found, wanted, strict=True):
        for field in fields(Record):
            have, want = getattr(one, field.name), getattr(other, field.name)
            if isinstance(want, Tensor):
                torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-6, msg=f"{one.name}.{field.name}")
            elif field.name == "top" and want is not None:
                torch.testing.assert_close(have.weights, want.weights, rtol=1e-5, atol=1e-6)
            elif field.name not in ("rectangle", "kept", "ids"):
                assert have == want, field.name
        torch.testing.assert_close(one.weights(), other.weights(), rtol=1e-5, atol=1e-6)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the same watch gives where nothing waits."""

    def run(*args: Any, **more: Any) -> Trace:
        with monkeypatch.context() as patch:
            patch.setattr(Steps, "row", lambda *_: None)
            return watched(*args, **more)

    return run


@pytest.mark.parametrize(
    "see", [EVERYTHING, See(), See(map=None), See(map=5, lse=False, sink=False), See(map=7, qk=True)], ids=str
)
@pytest.mark.parametrize("groups", [4, 2])
def test_every_statistic_is_that_of_the_row_alone(groups: int, see: See, at_once: Any) -> None:
    model = Model(groups)
    assert_alike(watched(model, see), at_once(model, see))


def test_rows_do_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    monkeypatch.setattr(Later, "add", lambda self, row, see: rows.append(row.S))
    watched(Model())
    assert rows == [S for S in range(4, LENGTH + 1) for _ in range(2)]


@pytest.mark.parametrize("most", [1, 200, AT_ONCE])
def test_as_many_as_are_made_together(most: int, at_once: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.capture.decode_rows.AT_ONCE", most)
    assert_alike(watched(Model()), at_once(Model()))


def test_who_looks_before_the_end_waits_for_them(at_once: Any) -> None:
    model, wanted = Model(), at_once(Model())
    with torch.no_grad(), regard.watch(model, see=EVERYTHING) as trace:
        model.generate(3)
        assert len(trace) == len(wanted)
        assert_alike(trace, wanted)
        assert len(trace) == len(wanted)  # looking was not watched
    assert_alike(trace, wanted)
    assert trace.before_looking is None


def test_an_error_leaves_whole_records(at_once: Any) -> None:
    model = Model()
    watching = regard.watch(model, see=EVERYTHING)
    with torch.no_grad():
        trace = watching.__enter__()
        model.generate(3)
        assert not watching.__exit__(KeyError, KeyError(), None)
    assert trace.before_looking is None
    assert_alike(trace, at_once(model))


@pytest.mark.parametrize("around", [nullcontext, torch.inference_mode, torch.no_grad])
def test_with_gradients_and_in_inference_mode(around: Any, at_once: Any) -> None:
    model, mode = Model(), around()
    assert isinstance(mode, AbstractContextManager | torch.no_grad)
    with mode, regard.watch(model, see=EVERYTHING) as trace:
        model.generate(3)
    assert all(not record.map.requires_grad for record in trace)
    assert_alike(trace, at_once(model))


def test_keys_that_a_cache_changes_do_not_wait(at_once: Any) -> None:
    """A later layer may keep its keys in fewer bits: what a row saw is gone one step later."""
    model = Model(rounds=True)
    found, wanted = watched(model), at_once(model)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.map, other.map)
        torch.testing.assert_close(one.sink, other.sink)
