"""Deferred calls: the same records as if each call had been computed at once."""

import copy
import gc
import pickle
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See, Trace
from regard.attention_call import AttentionCall
from regard.capture import deferred_calls, watched_trace, watching
from regard.capture.budget import in_bytes
from regard.capture.deferred_calls import CallBatch, DeferredCalls
from regard.capture.watched_trace import DecodeHistory
from regard.capture.watching import Watcher
from regard.dispatch import observation
from regard.records import Record
from regard.statistics_table import bytes_of

EVERYTHING = See(map=4, max_score=True, entropy=True, received=True, top=3, distance=True)


class Layer(nn.Module):
    """Attention whose q and k lie in one workspace, which it overwrites afterwards."""

    def __init__(self, groups: int, is_causal: bool) -> None:
        super().__init__()
        self.is_causal, self.groups, self.qkv = is_causal, groups, nn.Linear(16, 16 + 8 * groups)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (-1, 4)).transpose(1, 2).split([4, self.groups, self.groups], 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal, enable_gqa=self.groups < 4)
        for one in (q, k):
            one.detach().zero_()
        return x + out.transpose(1, 2).flatten(2)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    shapes = ((4, True), (4, True), (2, True), (4, False), (4, True))
    return nn.Sequential(*(Layer(groups, is_causal) for groups, is_causal in shapes))


def watched(see: See, x: Tensor) -> Trace:
    net = model()
    with torch.no_grad(), regard.watch(net, see=see) as trace:
        net(x)
        net(x[:, :7])
    assert list(trace)  # computes them
    return trace


X = torch.randn(2, 11, 16, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_calls, "DEVICES", ("cpu",))


@pytest.mark.parametrize("see", [EVERYTHING, See(), See(map=None), See(map=5, lse=False, sink=False)], ids=str)
@pytest.mark.parametrize("limit", [2**28, 3000, 1])
def test_deferred_calls_equal_immediate_ones(see: See, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = watched(see, X)
    monkeypatch.setattr(deferred_calls, "DEVICES", ("cpu",))
    monkeypatch.setattr(deferred_calls, "MAX_KEPT", limit)
    found = watched(see, X)
    assert found.names == wanted.names
    for one, other in zip(found, wanted, strict=True):
        for field in fields(Record):
            have, want = getattr(one, field.name), getattr(other, field.name)
            if isinstance(want, Tensor):
                torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-6, msg=f"{one.name}.{field.name}")
            elif field.name == "top" and want is not None:
                torch.testing.assert_close(have.weights, want.weights, rtol=1e-5, atol=1e-6)
                assert torch.equal(have.indices, want.indices)
            elif field.name != "exact":
                assert have == want, field.name


@pytest.mark.usefixtures("deferred")
def test_layers_of_one_shape_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = observation.observe_attention

    def counting(call: AttentionCall, lse: Tensor | None = None) -> Record:
        sizes.append(tuple(call.q.shape))
        return original(call, lse)

    monkeypatch.setattr(deferred_calls, "observe_attention", counting)
    watched(See(), X)
    # two forwards: three layers alike, one with fewer heads of keys, one that is not causal
    assert sorted(sizes) == sorted([(6, 4, T, 4) for T in (11, 7)] + [(2, 4, T, 4) for T in (11, 7)] * 2)


def operators(run: Callable[[], object]) -> Counter[str]:
    """How often each operator of PyTorch is called; a dispatch mode would change what `watch` does."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    return Counter(event.name for event in profile.events() if event.name.startswith("aten::"))


@pytest.mark.usefixtures("deferred")
def test_a_repeated_call_costs_one_operator_and_no_allocation() -> None:
    def run(layers: int, is_watched: bool) -> None:
        with torch.no_grad(), regard.watch(nets[layers]) if is_watched else nullcontext():
            nets[layers](X)

    torch.manual_seed(0)
    nets = {layers: nn.Sequential(*(Layer(4, True) for _ in range(layers))) for layers in (2, 10)}
    for layers in nets:
        run(layers, True)  # registers the overrides
    costs = {n: operators(partial(run, n, True)) - operators(partial(run, n, False)) for n in nets}
    more = costs[10] - costs[2]
    assert more["aten::cat"] == 8, more  # q and k, to their slot of one buffer
    assert not {name for name in more if "empty" in name or "item" in name or name == "aten::clone"}, more


@pytest.mark.usefixtures("deferred")
def test_reading_the_trace_computes() -> None:
    net = model()
    with torch.no_grad(), regard.watch(net) as trace:
        net(X)
        assert trace.calls  # type: ignore[attr-defined]
        assert present(trace[0].map).shape == (2, 4, 11, 11)
        assert not trace.calls  # type: ignore[attr-defined]


@pytest.mark.usefixtures("deferred")
def test_calls_that_repeat_another_are_recorded_without_the_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    original = Watcher._add

    def add(self: Watcher, call: Any, place: Any) -> None:
        added.append(place.name)
        original(self, call, place)

    monkeypatch.setattr(Watcher, "_add", add)
    net = model()
    with torch.no_grad(), regard.watch(net) as trace:
        net(X)
    assert trace.names == ["0", "1", "2", "3", "4"]
    assert added == ["0", "2", "3", "4"]  # the others differ from the call before
    added.clear()
    with torch.no_grad(), regard.watch(net, layers=[1]) as trace:
        net(X)
        net(X)
    assert trace.names == ["1", "1#1"]
    wanted = watched(See(), X)
    assert torch.equal(present(trace[1].map), present(trace[0].map))
    torch.testing.assert_close(trace[0].map, wanted["1"].map)


@pytest.mark.parametrize(("budget", "expected"), [("30 KB", 5), ("6 KB", 4)])
@pytest.mark.usefixtures("deferred")
def test_copies_that_wait_count_against_a_budget(budget: str, expected: int) -> None:
    net, see, limit = model(), See(map=None, entropy=True), in_bytes(budget)
    deferred: list[tuple[int, int]] = []
    with torch.no_grad(), regard.watch(net, see=see, budget=budget) as trace:
        calls: Any = trace.calls  # type: ignore[attr-defined]
        for layer in net:
            layer.register_forward_hook(lambda *_: deferred.append((len(calls), held(calls))))
        net(X)
    own = bytes_of(see, (2, 4, 11, 11))
    for count, (_, waiting) in enumerate(deferred, 1):
        assert waiting + count * own <= limit
    assert deferred[-1][0] == expected  # the last call of the smaller budget is computed at once


def held(calls: DeferredCalls) -> int:
    """The bytes of all buffers."""
    return sum(buffer.nbytes for batch in calls._batches.values() for buffer in batch._buffers)


@pytest.mark.usefixtures("deferred")
@pytest.mark.parametrize("way", ["gradients", "autocast"])
def test_calls_repeat_with_gradients_and_under_autocast(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    original = Watcher._add

    def add(self: Watcher, call: Any, place: Any) -> None:
        added.append(place.name)
        original(self, call, place)

    monkeypatch.setattr(Watcher, "_add", add)
    net = Stack()
    context = torch.enable_grad() if way == "gradients" else torch.autocast("cpu", torch.bfloat16)

    def run(devices: tuple[str, ...]) -> tuple[Trace, Tensor]:
        monkeypatch.setattr(deferred_calls, "DEVICES", devices)
        net.zero_grad()
        with context, regard.watch(net, see=EVERYTHING) as trace:
            out = net(X)
        out.float().sum().backward()
        return trace, torch.cat([present(weight.grad).flatten() for weight in net.parameters()])

    wanted, gradients = run(())
    assert added == wanted.names == ["0", "1", "2"]
    added.clear()
    found, same = run(("cpu",))
    assert added == ["0"]
    assert torch.equal(gradients, same)
    for one, other in zip(found, wanted, strict=True):
        assert not present(one.map).requires_grad
        torch.testing.assert_close(one.map, other.map, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(one.max_score, other.max_score, rtol=1e-5, atol=1e-6)


class Stack(nn.Sequential):
    """Three causal layers that overwrite nothing, so that gradients flow."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__(*(Plain() for _ in range(3)))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (-1, 4)).transpose(1, 2).chunk(3, 1)
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


@pytest.mark.usefixtures("deferred")
def test_in_inference_mode() -> None:
    net, wanted = model(), watched(EVERYTHING, X)
    with torch.inference_mode(), regard.watch(net, see=EVERYTHING) as trace:
        net(X)
    for one, other in zip(trace, wanted, strict=False):
        torch.testing.assert_close(one.map, other.map, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("deferred")
def test_our_own_error_becomes_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*anything: Any, **more: Any) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(deferred_calls, "observe_attention", fail)
    net = model()
    with torch.no_grad(), regard.watch(net) as trace:
        found = net(X)
    assert torch.equal(found, model()(X))
    with pytest.warns(UserWarning, match=r"0, 1, 2.*a mistake of ours"):
        assert [record.map for record in trace] == [None] * 5


@pytest.mark.usefixtures("deferred")
def test_records_are_released_with_the_trace() -> None:
    """Without waiting for the garbage collector: on a GPU they may be large."""
    gc.collect()
    gc.disable()
    try:
        trace = watched(See(), X)
        held = weakref.ref(present(trace[0].map))
        del trace
        assert held() is None
    finally:
        gc.enable()


def failing_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int) -> None:
    """Let the call number `at` of a method raise an error."""
    original, count = getattr(owner, name), iter(range(10**6))

    def method(*args: Any) -> Any:
        if next(count) == at:
            raise torch.OutOfMemoryError("simulated")
        return original(*args)

    monkeypatch.setattr(owner, name, method)


@pytest.mark.usefixtures("deferred")
@pytest.mark.parametrize("at", [0, 1])  # the first call, and one that repeats it
def test_an_error_while_a_call_is_kept_does_not_reach_the_model(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net, wanted = model(), watched(See(), X)
    failing_once(monkeypatch, CallBatch, "add", at)
    with torch.no_grad(), pytest.warns(UserWarning, match=f"{at}.*simulated"), regard.watch(net) as trace:
        found = net(X)
    assert torch.equal(found, model()(X))
    assert trace.names == [str(n) for n in range(5) if n != at]
    for one in trace:
        torch.testing.assert_close(one.map, wanted[one.name].map)


@pytest.mark.usefixtures("deferred")
def test_an_error_while_kept_calls_are_computed_does_not_reach_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = watched(See(), X)
    monkeypatch.setattr(deferred_calls, "MAX_KEPT", 1)  # compute each call when the next comes
    failing_once(monkeypatch, CallBatch, "compute", 0)
    net = model()
    with torch.no_grad(), pytest.warns(UserWarning, match="0.*simulated"), regard.watch(net) as trace:
        found = net(X)
    assert torch.equal(found, model()(X))
    assert [one.name for one in trace if one.map is None] == ["0"]
    for one in trace[1:]:
        torch.testing.assert_close(one.map, wanted[one.name].map)


def decoder() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=1)
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize(("owner", "name"), [(DecodeHistory, "row"), (watched_trace, "_computed_rows")])
@pytest.mark.parametrize("at", [1, 2, 6])
def test_an_error_in_a_row_does_not_reach_the_model(
    owner: Any, name: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net: Any = decoder()
    ids, options = torch.tensor([[3, 4, 5]]), {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    mask = torch.ones_like(ids)
    wanted = net.generate(ids, attention_mask=mask, **options)
    if owner is watched_trace:
        monkeypatch.setattr(watched_trace, "MAX_WEIGHTS", 1)  # compute each row when the next comes
    failing_once(monkeypatch, owner, name, at)
    with torch.no_grad(), pytest.warns(UserWarning, match="attn.*simulated"), regard.watch(net) as trace:
        found = net.generate(ids, attention_mask=mask, **options)
    assert torch.equal(found, wanted)
    assert len(trace) >= 3 * 9 - 1  # nine forwards of three layers, one of them perhaps missing


@pytest.mark.usefixtures("deferred")
def test_an_error_after_a_call_was_deferred_does_not_move_its_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = watched(See(outputs=True), X)
    failing_once(monkeypatch, watching, "outputs_of", 0)
    net = model()
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match="0.*simulated"),
        regard.watch(net, see=See(outputs=True)) as trace,
    ):
        net(X)
    assert trace.names == ["1", "2", "3", "4"]
    for one in trace:
        torch.testing.assert_close(one.map, wanted[one.name].map)


@pytest.mark.usefixtures("deferred")
def test_statistics_are_computed_when_the_trace_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    original = CallBatch.compute

    def compute(self: CallBatch) -> Any:
        computed.append(len(self.positions))
        return original(self)

    monkeypatch.setattr(CallBatch, "compute", compute)
    wanted, net = watched(See(), X), model()
    computed.clear()
    with torch.no_grad(), regard.watch(net) as first:
        net(X)
    assert computed == []
    copies = pickle.loads(pickle.dumps(first)), copy.deepcopy(first)
    assert computed == [3, 1, 1]
    with torch.no_grad(), regard.watch(net) as first:
        net(X)
    computed.clear()
    with torch.no_grad(), regard.watch(net) as second:  # at most one Trace of a thread keeps copies
        assert computed == [3, 1, 1]
        net(X)
    del second  # nothing is computed for a Trace that nobody reads
    with torch.no_grad(), regard.watch(net) as _:
        assert computed == [3, 1, 1]
        net(X)
    for trace in (first, *copies):
        for one in trace:
            torch.testing.assert_close(one.map, wanted[one.name].map)


@pytest.mark.parametrize("changes", [False, True])
def test_keys_are_compared_without_waiting_for_each_row(changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    net: Any = decoder()
    ids, options = torch.tensor([[3, 4, 5]]), {"max_new_tokens": 7, "do_sample": False, "pad_token_id": 0}
    with torch.no_grad(), regard.watch(net) as wanted:
        net.generate(ids, attention_mask=torch.ones_like(ids), **options)
    monkeypatch.setattr(watched_trace, "READ_LATER", ("cpu",))
    waited: list[int] = []
    original, equal, calls = watched_trace._fingerprints, torch.equal, iter(range(10**6))

    def fingerprints(k: Tensor) -> Tensor:
        found = original(k)
        if changes and next(calls) == 12:  # of the first layer, in its fifth call
            found[:, 0] += 1
        return found

    def compared(*pair: Tensor) -> bool:
        waited.append(1)
        return equal(*pair)

    monkeypatch.setattr(watched_trace, "_fingerprints", fingerprints)
    monkeypatch.setattr(torch, "equal", compared)
    with torch.no_grad(), regard.watch(net) as trace:
        net.generate(ids, attention_mask=torch.ones_like(ids), **options)
    assert len(waited) < 3 * 6
    if changes:
        with pytest.warns(UserWarning, match="h.0.attn#4, .*the cache changed keys"):
            list(trace)
    assert [one.name for one in trace if one.map is None] == (
        [f"transformer.h.0.attn#{n}" for n in (4, 5, 6)] * changes
    )
    for one, other in zip(trace, wanted, strict=True):
        if one.map is not None:
            torch.testing.assert_close(one.map, other.map, rtol=1e-5, atol=1e-6)
