"""Prefill: prompts of any lengths, read in any chunks, give the same logits as single prompts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights
from tolerances import assert_same_bits

from regard.errors import ArgumentError
from regard.generation import beam_search, generate, prefill, stream
from regard.messages import LANGUAGES
from regard.reference import Transformer

ragged = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=6), min_size=1, max_size=4)


@given(prompts=ragged, chunk=st.none() | st.integers(1, 7))
def test_chunked_batch_equals_single_prompts(toy: Any, prompts: list[list[int]], chunk: int | None) -> None:
    model = toy()
    decoding = model.begin()
    assert_same_bits(prefill(decoding, prompts, chunk), np.stack([model.after(row) for row in prompts]))
    assert decoding.length == max(map(len, prompts))
    assert max(columns for _, columns in decoding.steps) <= (chunk or decoding.length)


def test_torch_model_returns_torch_logits(toy: Any, xp: Any) -> None:
    model = toy(xp)
    logits = prefill(model.begin(), [[1, 2, 3], [4]], chunk=2)
    assert type(logits) is type(model.table)
    assert_same_bits(logits, np.stack([model.after([1, 2, 3]), model.after([4])]))


def test_prefill_continues_a_decoding(toy: Any) -> None:
    model = toy(max_len=5)
    decoding = model.begin()
    prefill(decoding, [1, 2])
    assert_same_bits(prefill(decoding, [3, 4]), model.after([1, 2, 3, 4])[None])
    with pytest.raises(ArgumentError, match=r"6 ids to read.* 5 positions: leave out at least 1"):
        prefill(decoding, [5, 6])
    assert decoding.length == 4


def test_ragged_prompts_need_an_empty_decoding(toy: Any) -> None:
    model = toy()
    decoding = model.begin()
    prefill(decoding, [[1], [2]])
    message = r"of different lengths \(1 to 2 ids\) need a fresh decoding, and this one has read 1 columns.*begin again"
    with pytest.raises(ArgumentError, match=message):
        prefill(decoding, [[3, 4], [5]])
    assert decoding.length == 1
    assert_same_bits(prefill(decoding, [[3], [4]]), np.stack([model.after([1, 3]), model.after([2, 4])]))
    decoding.crop(0)
    assert_same_bits(prefill(decoding, [[3, 4], [5]]), np.stack([model.after([3, 4]), model.after([5])]))


@pytest.mark.parametrize(
    ("prompts", "chunk", "message"),
    [
        ([], None, "start token"),
        ([[1], [2, 7]], None, r"prompts\[1\]\[1\]=7 is not in the vocabulary of 7: ids go from 0 to 6; was the text"),
        ([1, -1], None, r"prompts\[1\]=-1 is not in"),
        ([1], 0, "chunk must be a whole number of at least 1; found 0"),
        ([1] * 6, None, "6 ids to read, but the model has 5 positions: leave out at least 1"),
    ],
)
def test_invalid_arguments_raise_before_reading(toy: Any, prompts: Any, chunk: int | None, message: str) -> None:
    decoding = toy(max_len=5).begin()
    with pytest.raises(ArgumentError, match=message):
        prefill(decoding, prompts, chunk)
    assert decoding.steps == []


CALLS: dict[str, Callable[..., Any]] = {
    "generate": generate,
    "stream": lambda *given, **how: list(stream(*given, **how)),
    "beam_search": lambda *given, **how: beam_search(*given, eos=2, **how),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_missing_and_unneeded_sources_raise(call: Callable[..., Any]) -> None:
    """Regression: this error's key had no message and printed as <exception str() failed>."""
    reads_two, reads_one = (
        Transformer(CONFIGS[name], random_weights(CONFIGS[name])) for name in ("paper_2017", "gpt2")
    )
    with pytest.raises(ArgumentError, match=r"give sources, .*: sources=\[\[1, 2\]\]") as error:
        call(reads_two, [3], max_new=2)
    assert all("sources=[[1, 2]]" in error.value.text(lang) for lang in LANGUAGES)
    with pytest.raises(ArgumentError, match="kind 'decoder' and reads no sources: leave sources"):
        call(reads_one, [3], sources=[1, 2], max_new=2)
