"""Overridden operators: only attention is reported, to its own thread alone, and nothing stays behind."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _python_dispatch as python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard.capture.kernel_overrides import OVERRIDES, Overrides
from regard.capture.torch_internals import LISTENING, dispatch_mode_count


class Attention(nn.Module):
    """Two heads, fused or by hand; `also` runs inside, before and after the attention."""

    def __init__(self, fused: bool = True, also: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fused, self.also, self.qkv, self.out = fused, also, nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        self.also()
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v) if self.fused else (q @ k.mT * 0.5).softmax(-1) @ v
        self.also()
        return self.out(y.transpose(1, 2).flatten(2))


X = torch.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8)


class Passing(TorchDispatchMode):
    """A mode of the user, which counts operators."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **kwargs or {})


@pytest.fixture(autouse=True)
def unregistered() -> None:
    """Each test begins without overrides, which otherwise stay registered."""
    OVERRIDES.remove()


def assert_nothing_left() -> None:
    assert LISTENING.active == ()
    assert dispatch_mode_count() == 0
    # A flag that stays set makes PyTorch compile each model once more.
    assert not python_dispatch.is_in_any_mode_without_ignore_compile_internals()
    OVERRIDES.remove()  # nothing, if a listener were left
    assert not OVERRIDES.are_registered


def test_a_fused_model_runs_without_a_mode() -> None:
    counts: list[tuple[int, bool]] = []
    model = Attention(also=lambda: counts.append((dispatch_mode_count(), OVERRIDES.are_registered)))
    with regard.watch(model) as trace:
        model(X)
    assert counts == [(0, True)] * 2
    assert len(trace) == 1
    assert_nothing_left()


def test_the_mode_is_entered_at_the_first_softmax() -> None:
    counts: list[int] = []
    model = Attention(fused=False, also=lambda: counts.append(dispatch_mode_count()))
    with regard.watch(model) as trace:
        model(X)
        model(X)
    assert counts == [0, 1, 1, 1]
    assert len(trace) == 2
    assert_nothing_left()


def test_a_mode_of_the_user_ends_in_order() -> None:
    model = Attention(fused=False)
    with regard.watch(model) as trace:
        with Passing() as inside:
            model(X)
        assert dispatch_mode_count() == 1
        model(X)
    assert len(trace) == 2
    assert inside.count > 5
    with Passing() as outside, regard.watch(model) as trace:
        model(X)
    assert len(trace) == 1
    assert outside.count > 5
    assert not python_dispatch.is_in_torch_dispatch_mode()
    assert_nothing_left()


@pytest.mark.parametrize("fused", [True, False])
def test_watch_inside_watch(fused: bool) -> None:
    model = nn.Sequential(Attention(fused), Attention(fused))
    wanted = model(X)
    with regard.watch(model) as outer:
        model[0](X)
        with regard.watch(model, layers=[1]) as inner:
            found = model(X)
        model[1](X)
    assert torch.equal(found, wanted)
    assert [record.module for record in outer] == ["0", "0", "1", "1"]
    assert [record.module for record in inner] == ["1"]
    for record in outer[2], inner[0]:
        torch.testing.assert_close(record.map, outer[2].map, rtol=0, atol=0)
    assert_nothing_left()


@pytest.mark.parametrize("fused", [True, False])
def test_an_exception_of_the_model_ends_the_watch(fused: bool) -> None:
    calls: list[None] = []

    def fail() -> None:
        calls.append(None)
        if len(calls) == 4:
            raise KeyError("of the model")

    model = Attention(fused, also=fail)
    watch = regard.watch(model)
    trace = watch.__enter__()
    model(X)
    with pytest.raises(KeyError, match="of the model") as raised:
        model(X)
    watch.__exit__(raised.type, raised.value, None)
    assert len(trace) == 2
    assert_nothing_left()
    wanted = model(X)
    assert torch.equal(model(X), wanted)


def run_together(*works: Callable[[], None]) -> None:
    """Run functions in threads of their own, and raise what one of them raises."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors


def unwatched_result(model: nn.Module) -> Tensor:
    """The result of the running thread, whose last bits depend on PyTorch's number of threads."""
    model(X)  # the first call of a thread only sets that number
    return model(X)


@pytest.mark.parametrize("fused", [True, False])
def test_each_thread_receives_the_calls_of_its_own_model(fused: bool) -> None:
    ready = threading.Barrier(3)
    models = [Attention(fused) for _ in range(3)]
    found: list[int] = []

    def watched(model: nn.Module, count: int) -> None:
        wanted = unwatched_result(model)
        ready.wait(60)
        with regard.watch(model) as trace:
            ready.wait(60)
            for _ in range(count):
                assert torch.equal(model(X), wanted)
            ready.wait(60)
        found.append(len(trace))

    def unwatched() -> None:
        wanted = unwatched_result(models[2])
        for _ in range(2):
            ready.wait(60)
        for _ in range(20):
            assert torch.equal(models[2](X), wanted)
        assert LISTENING.active == ()
        ready.wait(60)

    run_together(lambda: watched(models[0], 7), lambda: watched(models[1], 11), unwatched)
    assert sorted(found) == [7, 11]
    assert_nothing_left()


@pytest.mark.parametrize("when", ["before the attention", "inside the model"])
@pytest.mark.parametrize("fused", [True, False])
def test_another_thread_may_end_the_watch(fused: bool, when: str) -> None:
    """Starlette enters and leaves the context of a generator in different threads."""
    watch = regard.watch(model := Attention(fused, also=lambda: wait()))
    waits: list[Callable[[], object]] = []
    opened, ended = threading.Event(), threading.Event()

    def wait() -> None:
        if waits:
            waits.pop()()

    def pause() -> None:
        opened.set()
        ended.wait(60)

    def owner() -> None:
        with torch.no_grad():
            wanted = unwatched_result(model)
            traces.append(watch.__enter__())
            assert torch.equal(model(X), wanted)
            if when == "inside the model":
                waits.append(pause)
            else:
                pause()
            for _ in range(2):  # what is left of the watch changes nothing
                assert torch.equal(model(X), wanted)
            assert LISTENING.active == ()

    def other() -> None:
        opened.wait(60)
        watch.__exit__(None, None, None)
        ended.set()

    traces: list[regard.Trace] = []
    run_together(owner, other)
    assert len(traces[0]) == 1
    assert_nothing_left()


def test_nothing_is_registered_while_another_thread_runs_pytorch() -> None:
    runs, ends = threading.Event(), threading.Event()

    def pause() -> None:
        runs.set()
        ends.wait(60)

    other = threading.Thread(target=Attention(also=pause), args=(X,))
    other.start()
    assert runs.wait(60)
    model = Attention()
    with regard.watch(model) as trace:
        assert not OVERRIDES.are_registered
        assert dispatch_mode_count() == 1
        model(X)
    assert len(trace) == 1
    ends.set()
    other.join(60)
    assert_nothing_left()


def test_overrides_stay_for_the_next_watch() -> None:
    model = Attention()
    wanted = model(X)
    with regard.watch(model):
        model(X)
    first = dict(OVERRIDES._libraries)
    assert OVERRIDES.are_registered
    assert torch.equal(model(X), wanted)
    with regard.watch(model) as trace:
        model(X)
    assert len(trace) == 1
    assert OVERRIDES._libraries == first
    assert_nothing_left()


NAME = "_scaled_dot_product_flash_attention_for_cpu"


def overridden(calls: list[int]) -> torch.library.Library:
    """A library of the user that overrides the same operator."""
    kernel = torch.library.get_kernel(f"aten::{NAME}", "CPU")

    def also(keys: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(len(args))
        return kernel.call_boxed(keys, *args, **kwargs)

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():  # PyTorch warns once of overrides
        warnings.simplefilter("ignore")
        library.impl(NAME, also, "CPU", with_keyset=True)
    return library


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_a_library_that_overrides_the_same_operator_can_be_removed(first: str) -> None:
    model, calls = Attention(), list[int]()
    wanted = model(X)
    if first == "ours":
        with regard.watch(model):
            model(X)
    library = overridden(calls)
    try:
        with regard.watch(model) as trace:
            assert dispatch_mode_count() == (first == "ours")
            assert torch.equal(model(X), wanted)
        assert len(trace) == len(calls) == 1
        assert OVERRIDES.are_registered == (first == "ours")
        assert torch.equal(model(X), wanted)
    finally:
        library._destroy()
    assert torch.equal(model(X), wanted)
    with regard.watch(model) as trace:
        assert dispatch_mode_count() == 0
        assert torch.equal(model(X), wanted)
    assert len(trace) == 1
    assert len(calls) == 2
    assert_nothing_left()


def test_overrides_of_a_thread_that_runs_are_removed_by_the_next_watch() -> None:
    runs, ends = threading.Event(), threading.Event()

    def pause() -> None:
        runs.set()
        ends.wait(60)

    other = threading.Thread(target=Attention(also=pause), args=(X,))
    first = Attention()
    with regard.watch(first):
        first(X)
        other.start()
        assert runs.wait(60)
    assert OVERRIDES.are_registered
    ends.set()
    other.join(60)
    model = Attention()
    with regard.watch(model) as trace:
        model(X)
    assert len(trace) == 1
    assert_nothing_left()


def test_without_get_kernel_the_mode_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.library, "get_kernel")
    monkeypatch.setattr("regard.capture.kernel_capture.OVERRIDES", Overrides())
    model = Attention()
    with regard.watch(model) as trace:
        assert dispatch_mode_count() == 1
        model(X)
    assert len(trace) == 1


def test_gradients_flow_through_the_overrides() -> None:
    model = Attention()
    found = []
    for watched in (False, True):
        model.zero_grad()
        x = X.clone().requires_grad_()
        if watched:
            with regard.watch(model):
                model(x).sum().backward()
        else:
            model(x).sum().backward()
        found.append(x.grad)
    assert found[0] is not None
    assert found[1] is not None
    assert torch.equal(found[0], found[1])
