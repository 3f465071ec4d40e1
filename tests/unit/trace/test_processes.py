"""`Trace.gather`: two processes that watch their parts get the trace of one process that watches the whole.

Merged rectangles: any division of queries and keys among calls merges to the record of the whole call.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present
from torch import nn

import regard
from regard.arrays import to_numpy
from regard.capture.model_facts import split_of
from regard.errors import ArgumentError, NotKeptError
from regard.masks import Mask
from regard.masks.padding import Padding
from regard.records import Record, See
from regard.statistics_table import STATISTICS
from regard.trace import Trace
from regard.trace.processes import Placed, chunk_positions, merge_placed, merge_texts


@pytest.fixture(scope="module")
def both_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The lines that two processes print."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, str(Path(__file__).with_name("gathered_ranks.py")), str(store)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "REGARD_LANG": "en"}
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        for rank in range(2)
    ]
    return [rank.communicate(timeout=300)[0].splitlines() for rank in ranks]


@pytest.mark.parametrize("way", ["ddp", "groups", "fsdp", "tensor_parallel", "keys", "queries"])
def test_two_processes_gather_the_trace_of_one(both_ranks: list[list[str]], way: str) -> None:
    for lines in both_ranks:
        assert f"{way}: same" in lines, lines


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("unknown", "choose split="),
        ("arguments", 'found split="samples", map=8, split="samples", map=9'),
        ("positions", 'only for split="queries"; the split is heads'),
        ("positions", "must be 0, 1, 2"),
        ("names", "process 1 recorded 1 calls and process 0 2"),
    ],
)
def test_both_processes_raise_the_same_error(both_ranks: list[list[str]], what: str, message: str) -> None:
    for lines in both_ranks:
        (line,) = [line for line in lines if line.startswith(f"{what}:")]
        assert message in line


def test_a_process_that_cannot_send_does_not_keep_the_other_waiting(both_ranks: list[list[str]]) -> None:
    first, second = both_ranks
    assert any(line.startswith("failed: process 1 could not send its part") for line in first), first
    assert any(line.startswith("failed: the outputs of the heads of lost were not recorded") for line in second), second


def test_a_lost_process_leaves_the_trace_of_the_other(both_ranks: list[list[str]]) -> None:
    first, _ = both_ranks
    assert any(line.startswith("lost: process 0 of 2 lost the connection") for line in first), first
    assert "after: True" in first


def test_without_a_process_group() -> None:
    with pytest.raises(ArgumentError, match="torchrun"):
        Trace().gather()
    assert split_of(nn.Linear(2, 2), list) is None


EVERYTHING = See(
    map=4, max_score=True, entropy=True, received=True, top=3, distance=True, values=True, outputs=True, qk=True, v=True
)
TOP_1 = replace(EVERYTHING, top=1)
B, G, H, T, E = 2, 2, 4, 8, 5


def call(seed: int = 0, kind: str = "numpy") -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q, k, v = (rng.normal(size=size) for size in ((B, H, T, E), (B, G, T, E), (B, G, T, E)))
    return (torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(v)) if kind == "torch" else (q, k, v)


def recorded(
    inputs: Any, rows: Any = slice(None), cols: Any = slice(None), see: See = EVERYTHING, causal: bool = False
) -> Record:
    """Without a mask of numbers: of such a mask, `attend` takes keys that no query of the part sees for padding."""
    q, k, v = inputs
    mask = Mask.causal() if causal else None
    return present(regard.attend(q[:, :, rows], k[:, :, cols], v[:, :, cols], mask=mask, scale=1.0, see=see)[1])


def placed(inputs: Any, rows: np.ndarray, cols: np.ndarray, see: See = EVERYTHING) -> Placed:
    return Placed(recorded(inputs, rows, cols, see), rows, cols)


def assert_same(found: Record, wanted: Record) -> None:
    """Every statistic equal to float64's rounding, of the same kind of array; keys of weight 0 in any order."""
    assert found.shape == wanted.shape
    for one in STATISTICS:
        here, there = one.arrays(getattr(found, one.name)), one.arrays(getattr(wanted, one.name))
        assert here.keys() == there.keys(), one.name
        for name in here.keys() - {"top.indices"}:
            assert type(here[name]) is type(there[name]), name
            np.testing.assert_allclose(to_numpy(here[name]), to_numpy(there[name]), rtol=1e-9, atol=1e-12, err_msg=name)
    weights, top = to_numpy(wanted.weights()), present(found.top)
    np.testing.assert_allclose(to_numpy(found.weights()), weights, atol=1e-12)
    at = np.take_along_axis(weights, to_numpy(top.indices), -1)
    np.testing.assert_allclose(np.where(to_numpy(top.weights) > 0, at, 0), to_numpy(top.weights), atol=1e-12)


@settings(max_examples=10)
@given(
    rows=st.lists(st.integers(0, 2), min_size=T, max_size=T),
    cols=st.lists(st.integers(0, 2), min_size=T, max_size=T),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["numpy", "torch"]),
)
def test_any_rectangles_merge_to_the_whole(rows: list[int], cols: list[int], seed: int, kind: str) -> None:
    """Every query is in one of three groups and every key too; each pair of groups is a call."""
    inputs = call(seed, kind)
    groups = [[np.flatnonzero(np.array(axis) == group) for group in range(3)] for axis in (rows, cols)]
    pairs = [(r, c) for r in groups[0] for c in groups[1] if len(r) and len(c)]
    see = EVERYTHING if all(len(c) >= 3 for _, c in pairs) else TOP_1
    merged = merge_placed([placed(inputs, r, c, see) for r, c in pairs], map=4)
    assert_same(merged, recorded(inputs, see=see))
    part = merged.weights(slice(2, 7), slice(1, 6), head=3)
    np.testing.assert_allclose(to_numpy(part), to_numpy(merged.weights())[:, 3, 2:7, 1:6])


def test_padding_and_tokens_are_placed() -> None:
    inputs = call(1)
    rows, cols = chunk_positions(T, 2, balanced=True)
    text = np.ones((B, T), bool)
    text[0, 6:] = False
    parts = []
    for at in (rows, cols):
        tokens = tuple(tuple(f"{sample}:{place}" for place in at) for sample in range(B))
        every = tuple(tuple(f"{sample}:{place}" for place in range(T)) for sample in range(B))
        padding = Padding(text[:, at], text)
        record = recorded(inputs, at, np.arange(T))
        parts.append(Placed(record.changed(query_tokens=tokens, key_tokens=every, padding=padding), at, np.arange(T)))
    merged = merge_placed(parts)
    assert merged.query_tokens == merged.key_tokens
    assert present(merged.query_tokens)[1] == tuple(f"1:{place}" for place in range(T))
    np.testing.assert_array_equal(present(present(merged.padding).queries), text)
    np.testing.assert_array_equal(present(present(merged.padding).keys), text)


def test_parts_without_weights_are_refused_and_the_rest_merges() -> None:
    inputs, (rows, cols) = call(2), chunk_positions(T, 2)
    with pytest.raises(NotKeptError, match=r"map, sink of attention .*See\(qk=True\)"):
        merge_placed([placed(inputs, at, np.arange(T), See(map=2)) for at in (rows, cols)])
    see = See(map=None, sink=False, entropy=True, max_score=True, top=2)
    merged = merge_placed([placed(inputs, at, np.arange(T), see) for at in (rows, cols)])
    wanted = recorded(inputs, see=see)
    np.testing.assert_allclose(present(merged.entropy), present(wanted.entropy))
    assert merged.map is None


# --- traces ----------------------------------------------------------------------------------------------


def ring(inputs: Any, positions: list[np.ndarray], rank: int, way: str) -> Trace:
    """The calls of one process: first its own keys, then those of the process before it, and so on.

    causal     keys that are masked for all queries are left out, as PyTorch does
    balanced   causal too: only the first half of the keys, or the second half of the queries, as PyTorch does
    """
    calls = []
    for step in range(len(positions)):
        rows, cols = positions[rank], positions[rank - step]
        if way == "balanced" and step:
            rows, cols = (rows, cols[: len(cols) // 2]) if step <= rank else (rows[len(rows) // 2 :], cols)
        if not (way == "causal" and step > rank):
            calls.append(recorded(inputs, rows, cols, TOP_1, way != "all" and not step).changed(name="h.0.attn"))
    return Trace(calls)


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("way", ["all", "causal", "balanced"])
def test_ring_attention_merges_to_the_whole(world: int, way: str) -> None:
    inputs = call(3)
    positions = chunk_positions(T, world, balanced=way == "balanced")
    traces = [ring(inputs, positions, rank, way) for rank in range(world)]
    (merged,) = merge_texts(traces, positions, map=4)
    assert merged.name == "h.0.attn"
    assert_same(merged, recorded(inputs, see=TOP_1, causal=way != "all"))


def test_several_forwards_and_modules_keep_their_order() -> None:
    positions = chunk_positions(T, 2)
    both = [call(4), call(5)]
    parts = []
    for rank in range(2):
        made = Trace()
        for inputs in both:
            for name in ("a", "b"):
                for record in ring(inputs, positions, rank, "causal"):
                    made.append(record.changed(name=name))
        parts.append(made)
    merged = merge_texts(parts, positions)
    assert merged.names == ["a", "b", "a#1", "b#1"]
    assert_same(merged["b#1"], recorded(both[1], see=replace(TOP_1, map=256), causal=True))


def test_all_keys_are_in_the_order_of_the_processes() -> None:
    inputs, positions = call(6), chunk_positions(T, 2, balanced=True)
    every = np.concatenate(positions)
    traces = [Trace([recorded(inputs, rows, every)]) for rows in positions]
    (merged,) = merge_texts(traces, positions, map=4)
    assert_same(merged, recorded(inputs))


def test_calls_that_are_no_ring_are_refused() -> None:
    inputs, positions = call(7), chunk_positions(T, 2)
    traces = [ring(inputs, positions, rank, "all") for rank in range(2)]
    for wrong, positions_, message in (
        ([traces[0][:1], traces[1]], [np.arange(5), np.arange(5, 8)], "5 queries and 5 keys belong to it"),
        ([Trace([*traces[0], *traces[0]]), traces[1]], positions, "called 4 times in process 0 of 2"),
        (traces, [np.arange(4), np.arange(4)], "must be 0, 1, 2"),
        ([Trace([record.changed(name="x") for record in traces[0]]), traces[1]], positions, "process 1 recorded"),
    ):
        with pytest.raises(ArgumentError, match=message):
            merge_texts(wrong, positions_)


def test_text_that_cannot_be_divided_evenly_is_refused() -> None:
    with pytest.raises(ArgumentError, match="10 positions cannot be divided into 4 chunks"):
        chunk_positions(10, 2, balanced=True)
