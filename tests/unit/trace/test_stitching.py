"""Stitched steps: the matrix that the text has in one call, from the rows of its decoding steps."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present

from regard.errors import ArgumentError, NotKeptError
from regard.records import DecodeStep, Record, Top
from regard.reference.statistics import entropy, pooled_map, received
from regard.trace import Trace


def causal(B: int, T: int, seed: int = 0) -> np.ndarray:
    """Weights of two heads over T tokens, B 2 T T."""
    scores = np.random.default_rng(seed).normal(size=(B, 2, T, T))
    scores[..., ~np.tri(T, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def call(
    weights: Any, step: DecodeStep | None = None, name: str = "h.0.attn", kind: str = "decoder", **more: Any
) -> Record:
    return Record(
        shape=tuple(weights.shape),
        name=name,
        kind=kind,  # type: ignore[arg-type]
        map=weights,
        lse=weights.max(-1) if isinstance(weights, np.ndarray) else weights.amax(-1),
        max_score=weights[..., 0] - 1,
        entropy=entropy(np.asarray(weights)),
        received=weights.sum(-2),
        sink=np.asarray(weights)[..., 0].mean(-1),
        outputs=weights[..., :1] * 2,
        step=step,
        **more,
    )


def steps_of(weights: np.ndarray, cuts: list[int]) -> list[Record]:
    """The calls with these weights, split at the cuts."""
    here = tuple(range(len(weights)))
    calls = []
    for start, stop in zip([0, *cuts], [*cuts, weights.shape[2]], strict=True):
        step = DecodeStep(start, here) if start else None
        calls.append(call(weights[:, :, start:stop, :stop], step))
    return calls


def assert_same(found: Record, wanted: Record) -> None:
    """Assert that two stitched records are equal."""
    assert (found.shape, found.query_tokens, found.key_tokens) == (wanted.shape, wanted.query_tokens, wanted.key_tokens)
    assert found.prompt == wanted.prompt
    np.testing.assert_array_equal(found.weights(), wanted.weights())
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "outputs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


@pytest.mark.parametrize("parents", [(0, 2), (0, -1), (0,), (0, 1, 1)])
def test_step_with_invalid_parents_is_refused(parents: tuple[int, ...]) -> None:
    first, second = steps_of(causal(2, 5), [3])
    broken = call(second.map, DecodeStep(3, parents))
    with pytest.raises(ArgumentError, match="2 samples and continues samples"):
        Trace([first, broken]).stitched()
    with pytest.raises(ArgumentError, match="which has 2"):
        Trace([first, broken]).stitched(np.zeros((2, 5), int))


@given(T=st.integers(2, 12), data=st.data(), bins=st.sampled_from([None, 3, 5, 256]))
def test_stitched_rows_equal_the_matrix(T: int, data: st.DataObject, bins: int | None) -> None:
    weights = causal(2, T)
    cuts = sorted(data.draw(st.sets(st.integers(1, T - 1), min_size=1)))
    (whole,) = Trace(steps_of(weights, cuts)).stitched(map=bins)
    assert whole.shape == (2, 2, T, T)
    assert (whole.name, whole.kind, whole.prompt, whole.step) == ("h.0.attn", "decoder", cuts[0], None)
    np.testing.assert_array_equal(whole.weights(), weights)
    rows, cols = (slice(*sorted(data.draw(st.tuples(st.integers(0, T), st.integers(0, T))))) for _ in range(2))
    np.testing.assert_array_equal(whole.weights(rows, cols), weights[..., rows, cols])
    np.testing.assert_allclose(present(whole.received), received(weights), atol=1e-6)
    np.testing.assert_allclose(present(whole.entropy), entropy(weights), atol=1e-12)
    np.testing.assert_array_equal(whole.lse, weights.max(-1))
    np.testing.assert_allclose(present(whole.sink), weights[..., 0].mean(-1), atol=1e-6)
    if bins is None:
        assert whole.map is None
    else:
        np.testing.assert_allclose(present(whole.map), pooled_map(weights, bins), atol=1e-6)


def test_tensors_stay_tensors() -> None:
    weights = causal(1, 4)
    calls = [call(torch.tensor(weights[:, :, :3, :3])), call(torch.tensor(weights[:, :, 3:]), DecodeStep(3, (0,)))]
    (whole,) = Trace(calls).stitched()
    assert isinstance(whole.map, torch.Tensor)
    assert torch.equal(whole.weights(), torch.tensor(weights))


def test_maps_are_pooled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.trace.stitching.WEIGHTS_AT_ONCE", 1)
    weights = causal(2, 9)
    (whole,) = Trace(steps_of(weights, [4, 5, 6])).stitched(map=4)
    np.testing.assert_allclose(present(whole.map), pooled_map(weights, 4), atol=1e-6)


# --- beams -----------------------------------------------------------------------------------------------


def beam_search() -> tuple[list[Record], np.ndarray]:
    """Three beams over 2 + 3 tokens, and the ids of each call."""
    rng = np.random.default_rng(1)
    parents = [None, (0, 1, 2), (2, 0, 0), (1, 1, 2)]
    calls = []
    for at, parent_rows in enumerate(parents):
        T, S = (2, 2) if at == 0 else (1, 2 + at)
        w = rng.random((3, 2, T, S))
        step = None if parent_rows is None else DecodeStep(S - 1, parent_rows)
        ids = np.full((3, 2), 7) if at == 0 else np.array([[10 * at], [10 * at + 1], [10 * at + 2]])
        tokens = tuple(tuple(str(i) for i in row) for row in ids.tolist())
        calls.append(call(w / w.sum(-1, keepdims=True), step, ids=ids, query_tokens=tokens))
    return calls, np.array([[7, 7, 12, 20, 30]])


def test_beams_are_followed_to_their_ancestors() -> None:
    calls, _ = beam_search()
    (whole,) = Trace(calls).stitched()
    ancestors = [[0, 0, 0], [0, 0, 0], [1, 1, 2], [0, 1, 2]]  # call by call
    for at, rows in enumerate(ancestors):
        start = 0 if at == 0 else at + 1
        T, S = calls[at].shape[2:]
        np.testing.assert_array_equal(whole.weights(slice(start, start + T), slice(0, S)), present(calls[at].map)[rows])
    assert whole.query_tokens == (
        ("7", "7", "10", "21", "30"),
        ("7", "7", "10", "21", "31"),
        ("7", "7", "10", "22", "32"),
    )
    assert whole.key_tokens == whole.query_tokens


def test_text_is_found_by_its_ids_and_may_end_early() -> None:
    calls, _ = beam_search()
    texts = np.array([[7, 7, 10, 21, 31, 99], [7, 7, 12, 20, 2, 0], [7, 7, 11, 2, 0, 0]])
    (whole,) = Trace(calls).stitched(texts)
    assert whole.shape == (3, 2, 5, 5)
    assert whole.query_tokens == (("7", "7", "10", "21", "31"), ("7", "7", "12", "20", ""), ("7", "7", "11", "", ""))
    weights = whole.weights()
    np.testing.assert_array_equal(weights[1, :, 3, :4], present(calls[2].map)[0, :, 0])
    np.testing.assert_array_equal(weights[2, :, 2, :3], present(calls[1].map)[1, :, 0])
    assert not weights[1, :, 4].any()
    assert not weights[2, :, 3:].any()
    assert np.isneginf(present(whole.lse)[2, :, 3:]).all()


def test_beams_of_different_sources_are_kept_apart() -> None:
    """Two sources may have the same output; the order of the samples decides."""
    encoder = call(causal(2, 3), name="encoder.0", kind="encoder")
    rng = np.random.default_rng(0)
    w = rng.random((4, 2, 1, 1))
    first = call(w / w, ids=np.array([[1]] * 4))
    w = rng.random((4, 2, 1, 2))
    second = call(w / w.sum(-1, keepdims=True), DecodeStep(1, (0, 1, 2, 3)), ids=np.array([[5], [6], [5], [6]]))
    found = Trace([encoder, first, second]).stitched(np.array([[1, 6, 9], [1, 6, 9]]))
    assert found[0].map is encoder.map
    np.testing.assert_array_equal(found[1].weights()[:, :, 1], present(second.map)[[1, 3], :, 0])


def test_text_that_was_not_read_is_refused() -> None:
    calls, _ = beam_search()
    with pytest.raises(ArgumentError) as error:
        Trace(calls).stitched(np.array([[1, 2, 3]]))
    assert error.value.key == "stitch-text"
    with pytest.raises(ArgumentError) as error:
        Trace(steps_of(causal(1, 3), [2])).stitched(np.array([[1, 2, 3]]))
    assert error.value.key == "stitch-no-ids"


# --- several texts in one trace --------------------------------------------------------------------------


def written(weights: np.ndarray, ids: list[int], name: str = "h.0.attn", kind: str = "decoder") -> list[Record]:
    """Calls that read two tokens, then one at a time."""
    cuts = list(range(2, weights.shape[2]))
    calls = []
    for record in steps_of(weights, cuts):
        start, T = (record.step.start if record.step else 0), record.shape[2]
        calls.append(record.changed(ids=np.array([ids[start : start + T]]), name=name, kind=kind))
    return calls


def test_ids_select_one_of_several_texts() -> None:
    """Both texts have the same prompt, so each run has read a prefix of either."""
    one, two = causal(1, 5, seed=1), causal(1, 4, seed=2)
    first, second = written(one, [7, 8, 1, 2, 3]), written(two, [7, 8, 4, 5])
    trace = Trace([*first, *second])
    for ids, weights in (([7, 8, 1, 2, 3, 9], one), ([7, 8, 4, 5, 9, 9], two)):
        (whole,) = trace.stitched(np.array([ids]))
        assert whole.name == "h.0.attn"
        np.testing.assert_array_equal(whole.weights(), weights)
    assert len(trace.stitched()) == 2
    with pytest.raises(ArgumentError) as error:
        trace.stitched(np.array([[8, 7, 1]]))
    assert error.value.key == "stitch-text"


def test_text_is_stitched_with_its_own_source() -> None:
    sources = [call(causal(B, 3, seed=B), name="encoder.0", kind="encoder") for B in (1, 2)]
    first = written(causal(1, 4, seed=1), [7, 8, 1, 2])
    w = causal(2, 2, seed=3)
    second = call(w, ids=np.array([[7, 9], [7, 9]]))
    trace = Trace([sources[0], *first, sources[1], second])
    found = trace.stitched(np.array([[7, 8, 1, 2]]))
    assert found.names == ["encoder.0", "h.0.attn"]
    assert found[0].map is sources[0].map
    found = trace.stitched(np.array([[7, 9], [7, 9]]))
    assert found[0].map is sources[1].map
    np.testing.assert_array_equal(found[1].weights(), w)


def test_interleaved_texts_give_a_warning() -> None:
    one, two = causal(1, 4, seed=1), causal(1, 4, seed=2)
    begun = [call(weights[:, :, :3, :3]) for weights in (one, two)]
    rest = [call(weights[:, :, 3:], DecodeStep(3, ())) for weights in (one, two)]
    with pytest.warns(UserWarning, match="a call of 'h.0.attn' seems to continue") as warned:
        found = Trace([*begun, *rest]).stitched()
    assert len(found) == 4
    assert warned[0].filename == __file__


def test_without_a_cache_the_longest_call_is_the_text() -> None:
    weights = causal(1, 4)
    calls = [call(weights[:, :, :T, :T], ids=np.array([[7, 8, 1, 2][:T]])) for T in (2, 3, 4)]
    (whole,) = Trace(calls).stitched(np.array([[7, 8, 1, 2, 3]]))
    np.testing.assert_array_equal(whole.weights(), weights)
    assert len(Trace(calls).stitched()) == 3, "without ids, every call is a text"


def test_ids_without_the_prompt() -> None:
    """Whisper's generate returns such ids; the error names the fix."""
    trace = Trace(written(causal(1, 4), [7, 8, 1, 2]))
    with pytest.raises(ArgumentError, match="no ids where generate omits the prompt"):
        trace.stitched(np.array([[1, 2, 3]]))


# --- caches, and what is not a text ---------------------------------------------------------------------


def test_sliding_cache_and_cache_with_free_slots() -> None:
    weights = causal(1, 5)
    weights[:, :, 4, :2] = 0
    sliding = [call(weights[:, :, :4, :4]), call(weights[:, :, 4:, 2:], DecodeStep(4, (0,)))]
    (whole,) = Trace(sliding).stitched()
    np.testing.assert_array_equal(whole.weights(), weights)
    with_free_slots = np.concatenate([weights[:, :, 4:], np.zeros((1, 2, 1, 3))], -1)
    (whole,) = Trace([call(weights[:, :, :4, :4]), call(with_free_slots, DecodeStep(4, (0,)))]).stitched()
    np.testing.assert_array_equal(whole.weights(), weights)


def test_discarded_tokens_are_left_out() -> None:
    weights = causal(1, 6)
    calls = [call(weights[:, :, :5, :5]), call(weights[:, :, 3:], DecodeStep(3, (0,)))]
    (whole,) = Trace(calls).stitched()
    assert whole.shape == (1, 2, 6, 6)
    assert whole.prompt == 3
    np.testing.assert_array_equal(whole.weights(), weights)


def test_cross_attention_keeps_its_source() -> None:
    rng = np.random.default_rng(0)
    calls = []
    for at in range(3):
        w = rng.random((2, 2, 1, 4))
        step = DecodeStep(at, (0, 0)) if at else None
        keys = (tuple("abcd"), tuple("efgh"))
        calls.append(call(w / w.sum(-1, keepdims=True), step, kind="cross", key_tokens=keys))
    (whole,) = Trace(calls).stitched()
    assert whole.shape == (2, 2, 3, 4)
    np.testing.assert_array_equal(whole.weights()[:, :, 2], present(calls[2].map)[:, :, 0])
    np.testing.assert_array_equal(whole.weights()[:, :, 0], present(calls[0].map)[[0, 0], :, 0])


def test_text_watched_from_the_middle_starts_a_new_run() -> None:
    weights = causal(1, 5)
    rest = [call(weights[:, :, 3:4, :4], DecodeStep(3, ())), call(weights[:, :, 4:], DecodeStep(4, (0,)))]
    one, two = Trace([*rest, *rest]).stitched()
    for whole in (one, two):
        assert whole.shape == (1, 2, 2, 5)
        assert whole.prompt == 1
        np.testing.assert_array_equal(whole.weights(), weights[:, :, 3:])


def test_modules_and_texts_are_stitched_separately() -> None:
    weights = causal(1, 3)
    one = steps_of(weights, [2])
    other = [record.named("h.1.attn") for record in one]
    found = Trace([one[0], other[0], one[1], other[1], one[0], other[0]]).stitched()
    assert found.names == ["h.0.attn", "h.1.attn", "h.0.attn#1", "h.1.attn#1"]
    assert [record.shape[2] for record in found] == [3, 3, 2, 2]


def test_top_keys_have_positions_of_the_whole_text() -> None:
    weights = causal(1, 4)

    def top(w: np.ndarray, k: int) -> Top:
        order = np.argsort(-w, -1, kind="stable")[..., :k]
        return Top(order, np.take_along_axis(w, order, -1))

    parts = [weights[:, :, :2, :2], weights[:, :, 2:3, :3], weights[:, :, 3:, 1:]]
    calls = [
        call(part, step, top=top(part, 3))
        for part, step in zip(parts, (None, DecodeStep(2, (0,)), DecodeStep(3, (0,))), strict=True)
    ]
    (whole,) = Trace(calls).stitched()
    assert whole.top is not None
    assert whole.top.indices.shape == whole.top.weights.shape == (1, 2, 4, 3)
    np.testing.assert_array_equal(np.take_along_axis(whole.weights(), whole.top.indices, -1), whole.top.weights)
    sliding = call(weights[:, :, 3:, 2:], DecodeStep(3, (0,)), top=top(weights[:, :, 3:, 2:], 2))
    (whole,) = Trace([*calls[:2], sliding]).stitched()
    assert whole.top is not None
    assert all(len({*row}) == 3 for row in whole.top.indices.reshape(-1, 3).tolist()), "no key appears twice"


@pytest.mark.parametrize("bins", [0, -1, "x"])
def test_wrong_number_of_bins_is_refused(bins: Any) -> None:
    with pytest.raises(ArgumentError, match="map"):
        Trace(steps_of(causal(1, 4), [2])).stitched(map=bins)


def test_coarse_rows_without_kept_weights_are_refused() -> None:
    weights = causal(1, 4)
    coarse = Record(
        shape=(1, 2, 1, 4), name="h.0.attn", kind="decoder", map=weights[:, :, 3:, :2], step=DecodeStep(3, (0,))
    )
    with pytest.raises(NotKeptError):
        Trace([call(weights[:, :, :3, :3]), coarse]).stitched()


def test_file_keeps_what_stitching_needs(tmp_path: Any) -> None:
    from regard import read_trace

    calls, _ = beam_search()
    trace = Trace(calls)
    trace.save(tmp_path / "t.safetensors")
    read = read_trace(tmp_path / "t.safetensors")
    assert [record.step for record in read] == [record.step for record in calls]
    (one,), (two,) = trace.stitched(), read.stitched()
    assert_same(two, one)
    Trace([two]).save(tmp_path / "whole.safetensors")
    assert read_trace(tmp_path / "whole.safetensors")[0].prompt == 2


def test_texts_of_a_file_are_found_by_their_ids(tmp_path: Any) -> None:
    from regard import read_trace

    calls, _ = beam_search()
    texts = np.array([[7, 7, 10, 21, 31, 99], [7, 7, 12, 20, 2, 0], [7, 7, 11, 2, 0, 0]])
    Trace(calls).save(tmp_path / "t.safetensors")
    (wanted,), (found,) = (trace.stitched(texts) for trace in (Trace(calls), read_trace(tmp_path / "t.safetensors")))
    assert_same(found, wanted)


def test_file_without_ids(tmp_path: Any) -> None:
    from safetensors import safe_open
    from safetensors.numpy import save_file

    from regard import read_trace

    calls, texts = beam_search()
    path = tmp_path / "t.safetensors"
    Trace(record.changed(ids=None) for record in calls).save(path)
    with safe_open(path, framework="np") as file:
        about = file.metadata()["regard"].replace('"version": 3', '"version": 2')
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    save_file(tensors, path, {"regard": about})
    read = read_trace(path)
    assert_same(read.stitched()[0], Trace(calls).stitched()[0])
    with pytest.raises(ArgumentError) as error:
        read.stitched(texts)
    assert error.value.key == "stitch-no-ids"
