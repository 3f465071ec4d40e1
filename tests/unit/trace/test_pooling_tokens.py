"""Merged tokens: keys are summed, queries averaged, and rows still sum to 1."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from regard import Record, See, Trace, attend
from regard.errors import ArgumentError, NotKeptError
from regard.masks import Mask
from regard.reference import softmax
from regard.trace.pooling import has_split_characters, merged

MOON = ["⟨E6 9C⟩", "⟨88⟩", " un", "likely"]


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return softmax(np.random.default_rng(seed).normal(size=shape))


def test_keys_are_summed_and_queries_averaged() -> None:
    w = weights(1, 2, 4, 4)
    words = merged(Trace.from_weights(w, MOON)[0], "words")
    assert words.query_tokens == words.key_tokens == (("月", "unlikely"),)
    assert words.shape == (1, 2, 2, 2)
    wanted = w.reshape(1, 2, 2, 2, 2, 2).sum(-1).mean(-2)
    assert_close(words.weights(), wanted)
    assert_close(words.map, wanted)
    characters = merged(Trace.from_weights(w, MOON)[0], "characters")
    assert characters.key_tokens == (("月", " un", "likely"),)
    assert_close(characters.weights().sum(-1), np.ones((1, 2, 3)))


@given(T=st.integers(1, 9), S=st.integers(1, 9), data=st.data())
def test_rows_sum_to_one_and_fully_masked_queries_do_not_count(T: int, S: int, data: st.DataObject) -> None:
    w = weights(1, 2, T, S, seed=data.draw(st.integers(0, 50)))
    masked = data.draw(st.lists(st.integers(0, T - 1), max_size=T))
    w[:, :, masked] = 0
    spell = st.sampled_from([" a", "b", "c ", "月", "⟨E6⟩", "⟨9C 88⟩"])
    queries, keys = (data.draw(st.lists(spell, min_size=n, max_size=n)) for n in (T, S))
    record = merged(
        Trace.from_weights(w, queries, keys, kind="cross")[0], data.draw(st.sampled_from(["characters", "words"]))
    )
    sums = record.weights().sum(-1)
    assert np.all((np.abs(sums - 1) < 1e-6) | (sums == 0))
    if not masked:
        assert_close(sums, np.ones_like(sums))


def test_sample_is_merged_by_its_own_tokens() -> None:
    w = weights(2, 1, 4, 4)
    record = Trace.from_weights(w, [["a", " b", " c", " d"], MOON])[0]
    assert merged(record, "words", 0).shape == (1, 1, 4, 4)
    assert_close(merged(record, "words", 0).weights()[0], w[0])
    assert merged(record, "words", 1).query_tokens == (("月", "unlikely"),)
    assert not has_split_characters(record, 0)
    assert has_split_characters(record, 1)


@pytest.mark.parametrize("sample", [2, -3, "x"])
def test_sample_out_of_range_is_refused(sample: Any) -> None:
    with pytest.raises(ArgumentError, match="0 to 1"):
        merged(Trace.from_weights(weights(2, 1, 4, 4))[0], "words", sample)


def test_side_without_tokens_is_unchanged() -> None:
    record = merged(Trace.from_weights(weights(1, 1, 3, 4), None, MOON, kind="cross")[0])
    assert record.shape == (1, 1, 3, 2)
    assert record.query_tokens is None


def test_tensors_stay_tensors_and_long_texts_are_pooled() -> None:
    w = torch.softmax(torch.randn(1, 1, 600, 600, generator=torch.Generator().manual_seed(0)), -1)
    record = merged(Trace.from_weights(w, [" a", "b"] * 300)[0])
    assert isinstance(record.map, torch.Tensor)
    assert record.shape == (1, 1, 300, 300)
    assert tuple(record.map.shape) == (1, 1, 150, 150)
    assert_close(record.map.sum(-1), torch.ones(1, 1, 150))
    assert_close(record.weights(slice(0, 1))[0, 0, 0], w.reshape(300, 2, 300, 2).sum(-1).mean(1)[0])


def test_merging_needs_exact_weights() -> None:
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 1, 300, 4))
    tokens = [" a", "b"] * 150
    _, kept = attend(q, k, v, mask=Mask.causal(), see=See(map=16, qk=True))
    assert merged(kept.with_tokens(tokens, tokens)).shape == (1, 1, 150, 150)
    _, coarse = attend(q, k, v, see=See(map=16))
    with pytest.raises(NotKeptError, match="qk=True"):
        merged(coarse.with_tokens(tokens, tokens))
    with pytest.raises(ArgumentError, match="tokens, characters, words"):
        merged(kept, "sentences")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(1, 2, 0, 3), (1, 2, 3, 0)])
def test_empty_records_are_merged(shape: tuple[int, ...]) -> None:
    record = merged(Trace.from_weights(np.zeros(shape), ["a"] * shape[2], ["b"] * shape[3], kind="cross")[0])
    assert record.shape == shape


def test_trace_is_merged_record_by_record() -> None:
    trace = Trace(Trace.from_weights(weights(1, 1, 4, 4), MOON, name=f"h.{i}")[0] for i in range(2))
    assert trace.merged().names == ["h.0", "h.1"]
    assert trace.merged("tokens")[0].key_tokens == (tuple(MOON),)
    assert isinstance(trace.merged()[0], Record)
