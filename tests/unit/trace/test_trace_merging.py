"""Merged parts: any split of samples, heads or keys of a call merges to the record of the whole call."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present

import regard
from regard.arrays import to_numpy
from regard.errors import ArgumentError, NotKeptError
from regard.images import record_image
from regard.masks import Mask
from regard.masks.padding import Padding
from regard.records import DecodeStep, Record, See
from regard.reference.attention import attention_scores
from regard.reference.statistics import statistics_of
from regard.statistics_table import STATISTICS
from regard.trace import Trace, read_trace
from regard.trace.file import trace_bytes, trace_from_bytes
from regard.trace.trace_merging import AXES, Split, merge_records, merge_traces

EVERYTHING = See(
    map=4,
    max_score=True,
    entropy=True,
    received=True,
    top=3,
    distance=True,
    values=True,
    outputs=True,
    qk=True,
    v=True,
)
B, G, H, T, S, E = 3, 2, 4, 6, 7, 5


def arrays(seed: int, kind: str = "numpy") -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=size) for size in ((B, H, T, E), (B, G, S, E), (B, G, S, E))]
    q, k, v = map(torch.from_numpy, found) if kind == "torch" else found
    return q, k, v


def recorded(q: Any, k: Any, v: Any, mask: Any = None, see: See = EVERYTHING) -> Record:
    """The record of a call. Without the division by √E, entropies differ more."""
    return present(regard.attend(q, k, v, mask=mask, scale=1.0, see=see)[1])


def pieces(x: Any, axis: int, cuts: list[int]) -> list[Any]:
    bounds = [0, *cuts, x.shape[axis]]
    return [x[(slice(None),) * axis + (slice(*pair),)] for pair in pairwise(bounds)]


def parts_of(
    split: Split, cuts: list[int], call: tuple[Any, Any, Any], mask: Any, see: See = EVERYTHING
) -> list[Record]:
    q, k, v = call
    count = len(cuts) + 1
    axis = {"samples": 0, "heads": 1, "keys": 2}[split]
    queries = [q] * count if split == "keys" else pieces(q, axis, [cut * H // G for cut in cuts] if axis else cuts)
    masks = (
        [mask] * count if mask is None else pieces(mask, AXES[split], [c * H // G for c in cuts] if axis == 1 else cuts)
    )
    kv = zip(pieces(k, axis, cuts), pieces(v, axis, cuts), strict=True)
    return [recorded(q, *pair, mask, see) for q, pair, mask in zip(queries, kv, masks, strict=True)]


def assert_same(found: Record, wanted: Record, leave_out: tuple[str, ...] = ()) -> None:
    """Every statistic equal to float64's rounding, and of the same kind of array."""
    assert found.shape == wanted.shape
    for one in STATISTICS:
        here, there = one.arrays(getattr(found, one.name)), one.arrays(getattr(wanted, one.name))
        if one.name in leave_out:
            continue
        assert here.keys() == there.keys(), one.name
        for name in here:
            assert type(here[name]) is type(there[name]), name
            np.testing.assert_allclose(to_numpy(here[name]), to_numpy(there[name]), rtol=1e-9, atol=1e-12, err_msg=name)


def visible(seed: int) -> np.ndarray:
    """A mask of samples, heads, queries and keys in which some queries see nothing, of some parts or of all."""
    rng = np.random.default_rng(seed + 1)
    found: np.ndarray = rng.random((B, H, T, S)) < 0.6
    found[0, 1, 2] = False
    found[1, :, 3, :4] = False
    return found


@given(
    split=st.sampled_from(["samples", "heads", "keys"]),
    data=st.data(),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["numpy", "torch"]),
    masked=st.booleans(),
)
def test_any_split_merges_to_the_whole(split: Split, data: st.DataObject, seed: int, kind: str, masked: bool) -> None:
    size = {"samples": B, "heads": G, "keys": S}[split]
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), min_size=1)))
    call = arrays(seed, kind)
    mask: Any = visible(seed) if masked else None
    mask = torch.from_numpy(mask) if masked and kind == "torch" else mask
    whole = recorded(*call, mask)
    merged = merge_records(parts_of(split, cuts, call, mask), split, map=4)
    # Parts with fewer keys than requested keep all of theirs: the whole has at least as many as the largest part.
    k = present(merged.top).weights.shape[-1]
    assert k == min(3, max(np.diff([0, *cuts, S]))) if split == "keys" else k == 3
    assert_same(merged, whole, ("top",))
    np.testing.assert_allclose(to_numpy(merged.weights()), to_numpy(whole.weights()), atol=1e-12)
    computed = merged.changed(outputs=None).with_outputs()
    np.testing.assert_allclose(to_numpy(computed.outputs), to_numpy(whole.outputs), atol=1e-12)
    np.testing.assert_allclose(
        to_numpy(merged.weights(slice(2, 5), slice(1, 6), head=3)),
        to_numpy(whole.weights(slice(2, 5), slice(1, 6), head=3)),
        atol=1e-12,
    )
    top, wanted = present(merged.top), to_numpy(present(whole.top).weights)[..., :k]
    np.testing.assert_allclose(to_numpy(top.weights), wanted, atol=1e-12)
    at = np.take_along_axis(to_numpy(whole.weights()), to_numpy(top.indices), -1)
    np.testing.assert_allclose(at, wanted, atol=1e-12)


def test_keys_merge_to_the_reference() -> None:
    """The brute-force definition, with padding: its keys lie in the second part, and one sample begins later."""
    q, k, v = arrays(5)
    text = np.ones((B, S), bool)
    text[0, 5:], text[1, :2] = False, False
    queries = np.ones((B, T), bool)
    queries[0, 4:] = False
    mask = np.broadcast_to(text[:, None, None] & queries[:, None, :, None], (B, H, T, S))
    scores = attention_scores(q, k, mask, scale=1.0)
    lse = np.logaddexp.reduce(scores, -1)
    weights = np.exp(scores - np.where(lse == -np.inf, 0, lse)[..., None])
    see = replace(EVERYTHING, values=False)
    wanted = statistics_of(weights, lse, see, scores, Padding(queries, text))
    parts = [
        part.changed(padding=Padding(queries, keys))
        for part, keys in zip(parts_of("keys", [3], (q, k, v), mask, see), pieces(text, 1, [3]), strict=True)
    ]
    merged = merge_records(parts, "keys", map=4)
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
        np.testing.assert_allclose(getattr(merged, name), getattr(wanted, name), atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(present(present(merged.padding).keys), text)


def test_maps_that_are_the_weights_need_no_q_and_k() -> None:
    call, see = arrays(3), See(map=8, received=True, distance=True)
    merged = merge_records(parts_of("keys", [2, 5], call, None, see), "keys", map=4)
    assert_same(merged, recorded(*call, see=replace(see, map=4)))
    assert merged.exact is not None


@pytest.mark.parametrize("split", ["samples", "heads"])
def test_coarse_maps_of_samples_and_heads_need_no_q_and_k(split: Split) -> None:
    call, see = arrays(3), See(map=3, received=True, top=2, entropy=True)
    merged = merge_records(parts_of(split, [1], call, None, see), split)
    assert_same(merged, recorded(*call, see=see))
    assert merged.exact is None


def test_coarse_maps_of_keys_are_refused_and_the_rest_merges() -> None:
    call = arrays(3)
    with pytest.raises(NotKeptError, match=r"map, sink of attention .*See\(qk=True\)"):
        merge_records(parts_of("keys", [3], call, None, See(map=2)), "keys")
    see = See(map=None, sink=False, entropy=True, max_score=True, top=2)
    assert_same(merge_records(parts_of("keys", [3], call, None, see), "keys"), recorded(*call, see=see))


def test_parts_that_do_not_fit_are_refused() -> None:
    q, k, v = arrays(0)
    one, other = recorded(q, k, v, see=See(map=2)), recorded(q[:, :, :4], k, v, see=See(map=2))
    with pytest.raises(ArgumentError, match=r"attention do not fit together for split=\"heads\": .*6, 7.* 4, 7"):
        merge_records([one, other], "heads")
    with pytest.raises(ArgumentError, match="do not fit"):  # maps of different bins
        merge_records([one, recorded(q, k, v, see=See(map=3))], "samples")
    with pytest.raises(NotKeptError, match=r"no LSE.*See\(lse=True\)"):
        merge_records([one.changed(lse=None)] * 2, "keys")
    with pytest.raises(ArgumentError, match="do not sum to 1"):
        merge_records([one.changed(rest="sink")] * 2, "keys")
    with pytest.raises(ArgumentError, match=r"process 1 recorded 1 calls and process 0 2; .*b against a"):
        merge_traces([Trace([one.named("a"), one.named("c")]), Trace([one.named("b")])], "heads")


@pytest.mark.parametrize("split", ["heads", "keys"])
def test_parts_with_different_queries_are_refused(split: Split) -> None:
    q, k, v = arrays(0)
    one = recorded(q, k, v)
    with pytest.raises(ArgumentError, match="have different queries"):
        merge_records([one.changed(ids=np.zeros((B, T))), one.changed(ids=np.ones((B, T)))], split)
    with pytest.raises(ArgumentError, match="have different queries"):
        merge_records([one.changed(query_tokens=(("a",) * T,)), one.changed(query_tokens=(("b",) * T,))], split)
    if split == "keys":
        with pytest.raises(ArgumentError, match="have different queries"):
            merge_records([one, recorded(q[:, :, ::-1], k, v)], split)


def test_tokens_steps_and_pictures_of_samples() -> None:
    first = Record(
        shape=(2, 1, 1, 2),
        query_tokens=(("a",), ("b",)),
        key_tokens=(("x", "y"),),
        ids=np.array([[1], [2]]),
        step=DecodeStep(1, (1, 0)),
        padding=Padding(keys=np.array([[True, False], [True, True]])),
        images=(record_image(np.zeros((4, 4)), (1, 2)),),
    )
    merged = merge_records([first, first.changed(padding=None)], "samples", before=[3, 2])
    assert (merged.query_tokens, merged.step) == ((("a",), ("b",)) * 2, DecodeStep(1, (1, 0, 4, 3)))
    assert merged.key_tokens == (("x", "y"),) * 4
    assert present(merged.ids).tolist() == [[1], [2], [1], [2]]
    assert present(present(merged.padding).keys).tolist() == [[True, False], [True, True], [True, True], [True, True]]
    assert [image.sample for image in merged.images] == [0, 1, 2, 3]


def test_tokens_and_pictures_of_keys() -> None:
    lse = np.zeros((1, 1, 1))
    parts = [
        Record(shape=(1, 1, 1, 2), lse=lse, key_tokens=(("a", "b"),)),
        Record(shape=(1, 1, 1, 3), lse=lse, key_tokens=(("c", "d", "e"),)).with_image(
            np.zeros((4, 4)), (1, 2), first=1
        ),
    ]
    merged = merge_records(parts, "keys")
    assert merged.key_tokens == (("a", "b", "c", "d", "e"),)
    assert merged.images[0].patches.tolist() == [3, 4]


def test_generated_samples_are_stitched_after_merging() -> None:
    """Two processes generate for their own samples; the whole is stitched as one."""
    q, k, v = (x[:, :G] for x in arrays(7))
    calls = []
    for half in (slice(0, 2), slice(2, 3)):
        whole = recorded(q[half, :, :4], k[half, :, :4], v[half, :, :4], Mask.causal(), See(map=8)).changed(
            kind="decoder"
        )
        here = tuple(range(whole.shape[0]))
        step = recorded(q[half, :, 4:5], k[half, :, :5], v[half, :, :5], None, See(map=8))
        calls.append(Trace([whole, step.changed(kind="decoder", step=DecodeStep(4, here))]))
    (merged,) = merge_traces(calls, "samples").stitched()
    for at, one in zip((0, 2), calls, strict=True):
        (alone,) = one.stitched()
        np.testing.assert_array_equal(merged.weights()[at : at + alone.shape[0]], alone.weights())


def test_opening_head_of_a_later_part() -> None:
    record = recorded(*arrays(0))
    parts = [Trace([record]), Trace([record])]
    parts[1].opening = ("attention", 2)
    assert merge_traces(parts, "heads").opening == ("attention", H + 2)


@pytest.mark.parametrize("split", ["samples", "heads"])
def test_merged_q_and_k_are_saved(tmp_path: Any, split: Split) -> None:
    q, k, v = arrays(2)
    whole = recorded(q, k, v, Mask.causal())
    cut = 1
    call = [pieces(x, AXES[split], [cut * x.shape[1] // G if split == "heads" else cut]) for x in (q, k, v)]
    parts = [recorded(q, k, v, Mask.causal()) for q, k, v in zip(*call, strict=True)]
    Trace([merge_records(parts, split)]).save(tmp_path / "whole.safetensors", qk=True)
    (read,) = read_trace(tmp_path / "whole.safetensors")
    np.testing.assert_allclose(read.weights(), whole.weights(), atol=1e-12)
    assert type(read.exact).__name__ == "WeightsFromQK"


def test_sent_traces_are_not_rounded() -> None:
    """The maps of a file are rounded to 16 bits, those of a sent trace are not."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, 300, 4)).astype(np.float32) for _ in range(3))
    record = recorded(q, k, v, Mask.causal(), See(map=32, entropy=True, top=2))
    (sent,) = trace_from_bytes(trace_bytes(Trace([record])), "rank 1")
    assert_same(sent, record)
    np.testing.assert_array_equal(sent.map, record.map)
    (exact,) = trace_from_bytes(trace_bytes(Trace([recorded(q, k, v, see=See(qk=True))])), "rank 1")
    assert exact.has_weights
