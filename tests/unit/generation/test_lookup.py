"""Prompt lookup decoding gives the ids of plain greedy generation, in fewer steps where a text repeats itself."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights, torch_model

from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.generation import Sampling, Session, generate, stream
from regard.reference import Transformer

prompts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


class Repeating:
    """A model of the ids 0 to 4 that writes 0 1 2 3 4 0 1 …; `wrong` is the place of one other id."""

    vocab_size = 5
    max_len: int | None = None

    def __init__(self, wrong: int = -1) -> None:
        self.wrong, self.length, self.steps = wrong, 0, list[int]()

    def step(self, ids: Any, keep: Any = None) -> np.ndarray:
        return self.step_each(ids)[:, -1]

    def step_each(self, ids: Any) -> np.ndarray:
        self.steps.append(ids.shape[1])
        places = np.arange(self.length, self.length + ids.shape[1])
        self.length += ids.shape[1]
        following = np.where(places + 1 == self.wrong, ids[0], ids[0] + 1) % 5
        return np.eye(5)[following][None]

    def crop(self, length: int) -> None:
        self.length = length

    def select(self, rows: list[int]) -> None: ...


@given(prompt=prompts, lookup=st.integers(1, 9), max_new=st.integers(1, 20))
def test_the_ids_are_those_of_greedy_generation(toy: Any, prompt: list[int], lookup: int, max_new: int) -> None:
    assert generate(toy(), prompt, max_new=max_new, lookup=lookup) == toy().greedy(prompt, max_new)


@pytest.mark.parametrize("wrong", [-1, *range(11, 30)])
@pytest.mark.parametrize("lookup", [1, 2, 4, 30])
def test_a_repeating_text(wrong: int, lookup: int) -> None:
    prompt = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    decoding = Repeating(wrong)
    found = generate(decoding, prompt, max_new=20, lookup=lookup)
    assert found == generate(Repeating(wrong), prompt, max_new=20)
    assert decoding.length == len(prompt) + 19 or lookup > 1
    if lookup == 4 and wrong == -1:
        assert len(decoding.steps) == 1 + -(-19 // 4)  # the prompt, then four ids at a time
    assert max(decoding.steps[1:]) <= lookup


def test_an_eos_within_a_draft_ends_the_text() -> None:
    prompt = [0, 1, 2, 3, 4, 0, 1]
    assert generate(Repeating(), prompt, max_new=20, lookup=8, eos=4) == [2, 3]
    assert list(stream(Repeating(), prompt, max_new=20, lookup=8, eos=[0])) == [2, 3, 4]


@pytest.mark.parametrize("name", ["gpt2", "llama", "paper_2017", "t5"])
def test_real_models(name: str) -> None:
    config, weights = CONFIGS[name], random_weights(CONFIGS[name])
    source: dict[str, Any] = {"sources": [[1, 2, 3]]} if config.kind == "encoder-decoder" else {}
    for model in (torch_model(config, weights), Transformer(config, weights, attend=attend_in_model)):
        for seed in range(4):
            prompt = np.random.default_rng(seed).integers(0, 4, 9).tolist()
            expected = generate(model, [prompt], max_new=16, **source)
            assert generate(model, [prompt], max_new=16, lookup=5, **source) == expected


def test_a_session_knows_what_was_read(toy: Any) -> None:
    model = toy()
    session, text = Session(model.begin()), [1, 2, 1, 2, 1]
    for _ in range(3):
        answer = generate(session, text, max_new=6, lookup=4)
        assert answer == toy().greedy(text, 6)
        text = [*text, *answer, 1, 2]
        assert session.ids == text[: len(session.ids)]
        assert session.decoding.length == len(session.ids)


def test_a_stream_that_stops_early_leaves_a_session_that_continues(toy: Any) -> None:
    session = Session(toy().begin())
    pieces = stream(session, [1, 2, 1, 2], max_new=12, lookup=6)
    found = [next(pieces) for _ in range(3)]
    pieces.close()  # type: ignore[attr-defined]
    assert session.decoding.length == len(session.ids)
    assert generate(session, [1, 2, 1, 2, *found], max_new=4) == toy().greedy([1, 2, 1, 2, *found], 4)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"pick": Sampling(seed=1)}, "lookup-greedy"),
        ({"prompts": [[1], [2]]}, "lookup-one"),
        ({"lookup": 0}, "count-range"),
    ],
)
def test_what_is_refused(toy: Any, options: dict[str, Any], key: str) -> None:
    given: dict[str, Any] = {"prompts": [1, 2], "max_new": 3, "lookup": 4} | options
    with pytest.raises(ArgumentError) as error:
        generate(toy(), **given)
    assert error.value.key == key or key == "count-range"


def test_a_model_that_returns_only_the_last_logits() -> None:
    class Last:
        vocab_size, length = 5, 0
        max_len: int | None = None

        def step(self, ids: Any, keep: Any = None) -> np.ndarray:
            return np.eye(5)[ids[:, -1]]

        def crop(self, length: int) -> None: ...

        def select(self, rows: list[int]) -> None: ...

    with pytest.raises(ArgumentError, match="Last"):
        generate(Last(), [1, 2], max_new=3, lookup=2)
