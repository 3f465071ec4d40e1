"""Trace files that claim larger sizes than they store: refused, or read in time and memory bounded by the file."""

import io
import random
import time
import tracemalloc
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hostile_traces import HUGE, KEPT, MAP, content, empty, entry, example, raw, try_trace, with_tensor
from mutations import mutated_trace
from regard import Trace, read_trace
from regard.errors import ArgumentError, FileError, RegardError
from regard.views.film import head_film, read_film


def nested(depth: int) -> Any:
    rule: Any = {"is": "prefix", "count": 1}
    for _ in range(depth):
        rule = {"is": "not", "rule": rule}
    return rule


def masked(rule: Any, lead: Any = (1, 1)) -> bytes:
    kept = KEPT | {"mask": {"name": "Mask", "rule": rule}, "lead": list(lead)}
    arrays = {"0.kept.q": np.ones((1, 1, 2, 3)), "0.kept.k": np.ones((1, 1, 2, 3)), "0.kept.lse": np.ones((1, 1, 2))}
    names = ("kept.q", "kept.k", "kept.lse")
    return content([entry([1, 1, 2, 2], names, kept=kept)], arrays)


REFUSED: dict[str, Callable[[], bytes]] = {
    "2⁶³ queries": lambda: content([entry([1, 2, 2**63, 64])], {"0.map": MAP}),
    "10³⁰ keys": lambda: content([entry([1, 2, 64, 10**30])], {"0.map": MAP}),
    "2³¹ queries": lambda: content([entry([1, 2, 2**31, 64])], {"0.map": MAP}),
    "a million heads of nothing": lambda: content([entry([1, 10**6, 5, 5], ())], {}),
    "a million empty heads": lambda: content([entry([1, 10**6, 0, 5])], {"0.map": empty(1, 10**6, 0, 5)}),
    "a million samples of nothing": lambda: content([entry([10**6, 1, 5, 5], ())], {}),
    "many records of many samples": lambda: content([entry([2**14, 1, 5, 5], ()) for _ in range(9)], {}),
    "no heads and all else": lambda: content([entry([2**20, 0, 5, 2**20])], {"0.map": empty(2**20, 0, 5, 2**20)}),
    "a tensor of 2⁶³": lambda: with_tensor([2**63, 0]),
    "a tensor of 2⁶²": lambda: with_tensor([2**62, 0]),
    "a tensor of no number": lambda: with_tensor([2**30, 2**30, 2**30, 0]),
    "1,001 axes": lambda: with_tensor([0] * 1001),
    "nine axes": lambda: with_tensor([0] * 9),
    "heads of width 0": lambda: content(
        [entry([1, 1, 2, 2**26], ("kept.q", "kept.k", "kept.lse"), kept=KEPT)],
        {"0.kept.q": empty(1, 1, 2, 0), "0.kept.k": empty(1, 1, 2**26, 0), "0.kept.lse": empty(1, 1, 2)},
    ),
    "a step at 2⁶³": lambda: content([entry([1, 2, 64, 64], step=[2**63, []])], {"0.map": MAP}),
    "a mask of 2⁶³": lambda: masked({"is": "band", "left": 2**63, "right": 0, "from_first": False}),
    "a mask of 10³⁰": lambda: masked({"is": "prefix", "count": 10**30}),
    "a mask in a hundred masks": lambda: masked(nested(100)),
    "a mask of 10,000 masks": lambda: masked({"is": "either", "rules": [{"is": "prefix", "count": 1}] * 10_000}),
    "a mask over 1,001 axes": lambda: masked({"is": "prefix", "count": 1}, [1] * 1001),
    "objects": lambda: content([{} for _ in range(300_000)], {}),
    "lists": lambda: content([], {}, [[] for _ in range(1_100_000)]),
    "deep lists": lambda: raw({"__metadata__": {"regard": "[" * 100_000}}),
    "300,000 tensors": lambda: raw({f"{n}": {} for n in range(300_000)}),
    "a number of many digits": lambda: raw({"__metadata__": {"regard": "9" * 100_000}}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_sizes_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    written = REFUSED[name]()
    path.write_bytes(written)
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(FileError) as caught:
            read_trace(path)
        assert time.process_time() - began < 5
        assert tracemalloc.get_traced_memory()[1] < len(written) * 3 + 2**28
    finally:
        tracemalloc.stop()
    for text in (caught.value.text("en"), caught.value.text("zh")):
        assert str(path) in text


COARSE: dict[str, tuple[list[Any], dict[str, np.ndarray]]] = {
    "a map": ([entry([1, 2, HUGE, HUGE])], {"0.map": MAP}),
    "a map of few keys": ([entry([1, 2, HUGE, 128])], {"0.map": MAP}),
    "a padded map": (
        [entry([1, 2, HUGE, HUGE])],
        {"0.map": np.concatenate([np.zeros((1, 2, 64, 5), np.float32), MAP[..., 5:]], -1)},
    ),
    "everything small": (
        [entry([1, 2, HUGE, HUGE], ("map", "sink", "distance"))],
        {"0.map": MAP, "0.sink": MAP[..., 0, 0].copy(), "0.distance": MAP[..., 0, :31].copy()},
    ),
    "two texts": (
        [entry([1, 2, HUGE, HUGE], kind="decoder"), entry([1, 2, HUGE, 2**30], name="h.1.attn", kind="cross")],
        {"0.map": MAP, "1.map": MAP},
    ),
    "nothing": ([entry([1, 2, HUGE, HUGE], ())], {}),
}
ACTIONS: dict[str, Callable[[Trace, Path], Any]] = {
    "show": lambda trace, _: trace.show(file=io.StringIO(), width=80),
    "show all": lambda trace, _: trace.show("all", file=io.StringIO(), width=80),
    "show one": lambda trace, _: trace.show(0, head=0, file=io.StringIO(), width=80),
    "show mean": lambda trace, _: trace.show(0, head="mean", file=io.StringIO(), width=80),
    "show part": lambda trace, _: trace.show(0, head=0, file=io.StringIO(), rows=slice(0, 5), cols=slice(0, 5)),
    "html": lambda trace, folder: trace.html(folder / "page.html"),
    "heads": lambda trace, _: str(trace.heads()),
    "sink": lambda trace, _: trace.measure("sink"),
    "entropy": lambda trace, _: trace.measure("entropy"),
    "distance": lambda trace, _: trace.measure("distance"),
    "stitched": lambda trace, _: trace.stitched(),
    "merged": lambda trace, _: trace.merged(),
    "rollout": lambda trace, _: trace.rollout(),
    "value_weighted": lambda trace, _: trace.value_weighted(),
    "save": lambda trace, folder: trace.save(folder / "again.safetensors"),
    "save qk": lambda trace, folder: trace.save(folder / "again.safetensors", qk=True),
}


QUICK = ("everything small", "two texts", "nothing")
"""Maps of `make test`; the others, which differ in padding or in the number of keys, are of `make test-long`."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in COARSE]
)
def test_coarse_map_of_any_claimed_length_is_fast(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    path.write_bytes(content(*COARSE[name]))
    trace = read_trace(path)
    for action, run in ACTIONS.items():
        must_work = action in ("show", "show all", "show one", "show mean", "html") and name != "nothing"
        tracemalloc.start()
        began = time.process_time()
        with warnings.catch_warnings(), nullcontext() if must_work else suppress(RegardError):
            warnings.simplefilter("ignore")
            run(trace, tmp_path)
        seconds, memory = time.process_time() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < 5, action
        assert memory < 2**26, action


def test_coarse_map_is_plotted(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content(*COARSE["a map"]))
    began = time.process_time()
    read_trace(tmp_path / "t").plot(0, head=0)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("S", [200, 4096, 2**20])
@pytest.mark.parametrize("pads", [(0, 0), (7, 0), (0, 9), (64, 0)])
def test_padding_of_a_coarse_map_equals_padding_by_positions(S: int, pads: tuple[int, int]) -> None:
    """Compared with a computation by positions, which needs one entry for each."""
    from regard.records import Record
    from regard.trace.measures.visibility import Visibility

    cells = np.array(MAP)
    cells[..., : pads[0]] = 0
    cells[..., 64 - pads[1] :] = 0 if pads[1] else cells[..., 64:]
    for T in (S, S // 2):
        visibility = Visibility(Record(shape=(1, 2, T, S), map=cells[..., :64, :]))
        wide = -(-S // 64)
        has_weight = np.repeat(cells.any((1, 2)), wide, axis=1)[:, :S]
        keep = np.maximum.accumulate(has_weight, 1) & np.maximum.accumulate(has_weight[:, ::-1], 1)[:, ::-1]
        own = keep[:, S - T :]
        queries = own | ~own.any(1, keepdims=True)
        np.testing.assert_array_equal(visibility.keys, keep)
        np.testing.assert_array_equal(visibility.queries, queries)
        assert visibility.first == keep.argmax(1)
        assert visibility.count == keep.sum(1)
        assert visibility.whole == queries.all(1)
        assert visibility.padded == ((keep.argmax(1) > 0) | ~queries.all(1))


@pytest.mark.parametrize("tokens", [131_072, 1_048_576])
def test_long_texts_are_read_and_drawn(tokens: int, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    names = [f"t{n % 1000}" for n in range(tokens)]
    lse = np.zeros((1, 2, tokens), np.float32)
    record = entry([1, 2, tokens, tokens], ("map", "lse"), queries=[0], keys=[0])
    path.write_bytes(content([record], {"0.map": MAP, "0.lse": lse}, [names]))
    trace = read_trace(path)
    assert trace[0].key_tokens is not None
    assert len(trace[0].key_tokens[0]) == tokens
    trace.show(file=io.StringIO(), width=80)
    trace.html(tmp_path / "page.html")


def test_calls_with_gaps_are_not_stitched(tmp_path: Path) -> None:
    first = entry([1, 2, 5, 7])
    start = MAP[..., :5, :7].copy()
    for step, message in (([2**30, [0]], "begins at token 1073741824"), ([9, [0]], "begins at token 9")):
        records = [first, entry([1, 2, 1, 8], ("map", "top.indices", "top.weights"), step=step)]
        tensors = {"0.map": start, "1.map": MAP[..., :1, :8].copy(), "1.top.indices": np.zeros((1, 2, 1, 3), int)}
        (tmp_path / "t").write_bytes(content(records, tensors | {"1.top.weights": MAP[..., :1, :3].copy()}))
        with pytest.raises(ArgumentError, match=message):
            read_trace(tmp_path / "t").stitched()
    far = [entry([1, 2, 5, 7], step=[2**30, []]), entry([1, 2, 1, 8], step=[2**30 + 5, [0]])]
    (tmp_path / "t").write_bytes(content(far, {"0.map": start, "1.map": MAP[..., :1, :8].copy()}))
    with pytest.raises(ArgumentError, match="far after their keys"):
        read_trace(tmp_path / "t").stitched()


def test_film_of_such_files_is_drawn_or_refused(tmp_path: Path) -> None:
    (tmp_path / "film").mkdir()
    for step in (0, 10, 20):
        (tmp_path / "film" / f"step-{step:08d}.safetensors").write_bytes(content(*COARSE["a map"]))
    began = time.process_time()
    assert head_film(read_film(tmp_path)).change == 0
    assert time.process_time() - began < 5
    (tmp_path / "film" / "step-00000030.safetensors").write_bytes(REFUSED["a million empty heads"]())
    with pytest.raises(FileError, match="claims more"):
        read_film(tmp_path)


def test_mutated_traces_are_read_or_refused(tmp_path: Path) -> None:
    """A few mutations; tests/hostile tries a hundred times as many."""
    rng, whole = random.Random(0), example()
    try_trace(tmp_path / "t.safetensors", whole)
    for _ in range(60):
        try_trace(tmp_path / "t.safetensors", mutated_trace(whole, rng))
