"""A Session reads only new ids, and gives the same logits as reading all ids."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_same_bits

from regard.errors import ArgumentError
from regard.generation import Sampling, Session, generate

texts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=6)


def columns(decoding: Any) -> int:
    """The total number of columns read."""
    return sum(width for _, width in decoding.steps)


@given(texts=texts, chunk=st.none() | st.integers(1, 3))
def test_cached_reading_equals_fresh_reading(toy: Any, texts: list[list[int]], chunk: int | None) -> None:
    model = toy()
    session = Session(model.begin())
    for text in texts:
        assert_same_bits(session.read(text, chunk), model.after(text)[None])
        assert session.ids == text
        assert session.decoding.length == len(text)


def test_only_new_ids_are_read(toy: Any) -> None:
    model = toy()
    session = Session(model.begin())
    reads = []
    for text in ([1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2], [1, 3, 3], [4]):
        before = columns(session.decoding)
        session.read(text)
        reads.append(columns(session.decoding) - before)
    assert reads == [3, 2, 1, 1, 2, 1]


def test_conversation_reads_each_id_once(toy: Any, xp: Any) -> None:
    model = toy(xp)
    session = Session(model.begin())
    text = [1, 2, 3]
    for message in ([4], [5, 6], [0]):
        text += message
        answer = generate(session, text, max_new=3)
        assert answer == toy().greedy(text, 3)
        text += answer
    assert len(model.begun) == 1
    assert columns(session.decoding) == len(text) - 1
    assert session.ids == text[:-1]


def test_list_of_one_prompt_and_sampling(toy: Any) -> None:
    model = toy()
    session = Session(model.begin())
    how = Sampling(seed=1)
    for text in ([[1, 2]], [[1, 2, 3]]):
        assert generate(session, text, max_new=4, pick=how) == generate(model, text, max_new=4, pick=how)


def test_interrupted_step_is_cropped(toy: Any) -> None:
    model = toy()
    session = Session(model.begin())
    session.read([1, 2])
    session.decoding.step(np.array([[3]]))  # read by the model, but not recorded by the session
    assert_same_bits(session.read([1, 2, 4]), model.after([1, 2, 4])[None])


@pytest.mark.parametrize(
    ("ids", "chunk", "message"),
    [
        ([], None, "ids is empty"),
        ([[1], [2]], None, "remembers one text: give one prompt; found 2"),
        ([1, 7], None, r"ids\[1\]=7 is not in the vocabulary of 7"),
        ([1] * 6, None, "6 ids to read, but the model has 5 positions"),
        ([1], 0, "chunk must be"),
    ],
)
def test_invalid_arguments_do_not_crop_the_cache(toy: Any, ids: Any, chunk: int | None, message: str) -> None:
    session = Session(toy(max_len=5).begin())
    session.read([1, 2, 3])
    with pytest.raises(ArgumentError, match=message):
        session.read(ids, chunk)
    assert session.ids == [1, 2, 3]
    assert session.decoding.length == 3
