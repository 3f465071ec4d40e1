"""Beam search compared with an exhaustive search, with Hugging Face's, and a batch with single searches."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError
from regard.generation import GREEDY, Beam, Session, beam_search, generate
from regard.reference import log_sum_exp

EOS = 0
penalties = st.sampled_from([-1.5, 0.0, 0.6, 1.0, 2.0])


def everything(model: Any, prompt: list[int], max_new: int, penalty: float) -> list[Beam]:
    """Every possible text, best first."""
    found: list[Beam] = []
    open_: list[tuple[list[int], float]] = [([], 0.0)]
    for length in range(1, max_new + 1):
        longer = []
        for ids, total in open_:
            logits = model.after(prompt + ids).astype(np.float64)
            for id, chance in enumerate(logits - log_sum_exp(logits)):
                if id == EOS or (length == max_new and np.isfinite(chance)):
                    found.append(Beam(ids if id == EOS else [*ids, id], (total + chance) / length**penalty))
                elif np.isfinite(chance):
                    longer.append(([*ids, id], total + chance))
        open_ = longer
    return sorted((beam for beam in found if np.isfinite(beam.score)), key=lambda beam: -beam.score)


def assert_same(found: list[Beam], wanted: list[Beam]) -> None:
    assert [beam.ids for beam in found] == [beam.ids for beam in wanted]
    np.testing.assert_allclose([beam.score for beam in found], [beam.score for beam in wanted], rtol=1e-9)


def sparse(seed: int, vocab_size: int = 8, n_next: int = 2) -> np.ndarray:
    """A table with few possible next ids per state, so that the beams hold all possible texts."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(97, vocab_size)) * 2
    order = rng.permuted(np.tile(np.arange(vocab_size), (97, 1)), axis=1)
    order[rng.random(97) < 0.5, 0] = EOS  # ending must be common
    allowed = np.zeros(table.shape, bool)
    np.put_along_axis(allowed, order[:, :n_next], True, axis=1)
    return np.where(allowed, table, -np.inf)


# --- exhaustive search -----------------------------------------------------------------------------------


@given(seed=st.integers(0, 9999), penalty=penalties, best=st.sampled_from([1, 3, 8]))
def test_enough_beams_find_the_best_texts(toy: Any, seed: int, penalty: float, best: int) -> None:
    model = toy(table=sparse(seed))
    found = beam_search(
        model, [1, 2], beams=8, max_new=3, eos=EOS, length_penalty=penalty, early_stopping=False, best=best
    )
    assert_same(found, everything(model, [1, 2], 3, penalty)[:best])


@given(seed=st.integers(0, 9999), penalty=penalties, vocab_size=st.integers(2, 6))
def test_two_steps_are_exhaustive(toy: Any, seed: int, penalty: float, vocab_size: int) -> None:
    model = toy(seed=seed, vocab_size=vocab_size)
    how: dict[str, Any] = {"beams": vocab_size, "best": vocab_size, "length_penalty": penalty, "early_stopping": False}
    found = beam_search(model, [1], max_new=2, eos=EOS, **how)
    assert_same(found, everything(model, [1], 2, penalty)[:vocab_size])


@given(seed=st.integers(0, 9999), beams=st.integers(1, 7), penalty=penalties, early=st.booleans())
def test_scores_match_their_texts(toy: Any, seed: int, beams: int, penalty: float, early: bool) -> None:
    model = toy(seed=seed)
    how: dict[str, Any] = {"length_penalty": penalty, "early_stopping": early, "best": beams}
    found = beam_search(model, [1], beams=beams, max_new=4, eos=EOS, **how)
    scores = {tuple(beam.ids): beam.score for beam in everything(model, [1], 4, penalty)}
    assert len(found) == beams == len({tuple(beam.ids) for beam in found})
    assert_same(found, [Beam(beam.ids, scores[tuple(beam.ids)]) for beam in found])
    assert [beam.score for beam in found] == sorted((beam.score for beam in found), reverse=True)


def test_one_beam_is_greedy(toy: Any, xp: Any) -> None:
    prompts = [[1, 2], [3], [5, 5, 5]]
    found = beam_search(toy(xp), prompts, beams=1, max_new=9, eos=EOS)
    assert [beams[0].ids for beams in found] == generate(toy(xp), prompts, max_new=9, eos=EOS)


def test_hand_calculated(toy: Any) -> None:
    """In every state: eos 1/2, one 1/4, two 1/8, three 1/8."""
    model = toy(table=np.log(np.tile([0.5, 0.25, 0.125, 0.125], (97, 1))))
    found = beam_search(model, [1], beams=2, max_new=3, eos=EOS, length_penalty=0.0, best=2)
    assert_same(found, [Beam([], np.log(1 / 2)), Beam([1], np.log(1 / 8))])
    found = beam_search(model, [1], beams=2, max_new=3, eos=EOS, length_penalty=1.0, best=2)
    assert_same(found, [Beam([], np.log(1 / 2)), Beam([1], np.log(1 / 8) / 2)])


# --- Hugging Face ----------------------------------------------------------------------------------------


class Recomputing:
    """Hugging Face's model as a Decoding without a cache: it reads all ids at each step."""

    max_len = None

    def __init__(self, model: Any) -> None:
        self.model, self.ids, self.vocab_size = model, torch.zeros(0), model.config.vocab_size

    @property
    def length(self) -> int:
        return self.ids.shape[-1]

    def begin(self) -> "Recomputing":
        return Recomputing(self.model)

    def step(self, ids: Any, keep: Any = None) -> Any:
        assert keep is None
        ids = torch.as_tensor(ids)
        self.ids = torch.cat([self.ids, ids], 1) if self.length else ids
        return self.model(self.ids).logits[:, -1]

    def select(self, rows: list[int]) -> None:
        self.ids = self.ids[rows]

    def crop(self, length: int) -> None:
        raise NotImplementedError


@pytest.fixture(scope="module")
def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 12, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
    special: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 3, "pad_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(**sizes, **special, initializer_range=0.6)).eval()


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("penalty", [-0.5, 0.0, 1.0, 2.0])
@pytest.mark.parametrize("eos", [[3], [3, 5]])
def test_same_result_as_hugging_face(gpt2: Any, early: bool, penalty: float, eos: list[int]) -> None:
    prompts = [[1, 2, 4], [7, 7, 6], [9, 1, 2]]
    with torch.no_grad():
        theirs = gpt2.generate(
            torch.tensor(prompts),
            attention_mask=torch.ones(3, 3),
            num_beams=4,
            num_return_sequences=3,
            max_new_tokens=8,
            do_sample=False,
            eos_token_id=eos,
            pad_token_id=0,
            length_penalty=penalty,
            early_stopping=True if early else "never",  # their False is a heuristic
            return_dict_in_generate=True,
            output_scores=True,
        )
        how: dict[str, Any] = {"length_penalty": penalty, "early_stopping": early}
        ours = beam_search(Recomputing(gpt2), prompts, beams=4, best=3, max_new=8, eos=eos, **how)
    found = [beam for beams in ours for beam in beams]
    texts = [row[3:11] for row in theirs.sequences.tolist()]
    ends = [min([row.index(id) for id in eos if id in row], default=8) for row in texts]
    assert [beam.ids for beam in found] == [row[:end] for row, end in zip(texts, ends, strict=True)]
    np.testing.assert_allclose([beam.score for beam in found], theirs.sequences_scores, rtol=1e-5)


# --- the batch -------------------------------------------------------------------------------------------


@given(
    prompts=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=4),
    beams=st.integers(1, 5),
    chunk=st.none() | st.integers(1, 3),
    early=st.booleans(),
    seed=st.integers(0, 99),
)
def test_batch_equals_single_searches(
    toy: Any, prompts: list[list[int]], beams: int, chunk: int | None, early: bool, seed: int
) -> None:
    how: dict[str, Any] = {"beams": beams, "best": beams, "max_new": 5, "eos": [EOS, 3], "early_stopping": early}
    alone = [beam_search(toy(seed=seed), prompt, **how) for prompt in prompts]
    assert beam_search(toy(seed=seed), prompts, chunk=chunk, **how) == alone


def test_sources_and_torch(toy: Any, xp: Any) -> None:
    sources, prompts = [[3, 1, 2], [4], [6, 6]], [[0], [1, 2], [0]]
    how: dict[str, Any] = {"beams": 3, "best": 2, "max_new": 6, "eos": EOS}
    wanted = [
        beam_search(toy(encodes=True), prompt, sources=source, **how)
        for prompt, source in zip(prompts, sources, strict=True)
    ]
    assert beam_search(toy(xp, encodes=True), prompts, sources=sources, **how) == wanted


@given(seed=st.integers(0, 999), early=st.booleans())
def test_finished_beams_are_not_continued(toy: Any, seed: int, early: bool) -> None:
    model = toy(seed=seed)
    beam_search(model, [[1, 2], [4, 5]], beams=4, max_new=6, eos=[EOS, 3], early_stopping=early)
    new = model.begun[-1].ids[:, 2:]
    assert not np.isin(new, [EOS, 3]).any()
    assert new.shape[1] < 6  # the last ids are never read


def test_ties_are_broken_by_beam_then_id(toy: Any, xp: Any) -> None:
    even = np.zeros((97, 4), np.float32)
    found = beam_search(toy(xp, table=even), [1], beams=3, best=3, max_new=3, eos=3, early_stopping=False)
    assert [beam.ids for beam in found] == [[0, 0, 0], [0, 0, 1], [0, 0, 2]]
    odd_first = np.tile(
        np.arange(200, dtype=np.float32) % 2, (97, 1)
    )  # too many for a sort that is not stable to keep in order by chance
    found = beam_search(toy(xp, table=odd_first), [1], beams=150, best=150, max_new=1, eos=[])
    assert [beam.ids[0] for beam in found] == [*range(1, 200, 2), *range(0, 100, 2)]


# --- stopping --------------------------------------------------------------------------------------------


def steps(model: Any, **how: Any) -> int:
    beam_search(model, [1], max_new=50, eos=EOS, **how)
    return len(model.begun[-1].steps)


def test_stops_as_early_as_possible(toy: Any) -> None:
    sure = toy(table=np.log(np.tile([0.97, 0.01, 0.01, 0.01], (97, 1))))
    assert steps(sure, beams=2) == 2  # two have finished
    assert steps(sure, beams=2, early_stopping=False, length_penalty=0.0) == 1  # nothing can beat the first
    assert steps(sure, beams=2, early_stopping=False, length_penalty=-1.0) == 1
    # ln 0.3 · 1 has finished; ln 0.4 is better, but its next score can only be ln 0.4 · 2 or worse.
    short = toy(table=np.log(np.tile([0.3, 0.4, 0.2, 0.1], (97, 1))))
    assert steps(short, beams=2, early_stopping=False, length_penalty=-1.0) == 1
    # With a penalty of 2 a text of 50 could still be better: −0.03 against, at best, −4.6 / 2500.
    assert steps(sure, beams=2, early_stopping=False, length_penalty=2.0) > 2


def test_search_without_open_beams_returns_finished_texts(toy: Any) -> None:
    only_the_end = np.full((97, 4), -np.inf)
    only_the_end[:, EOS] = 0
    assert beam_search(toy(table=only_the_end), [1], beams=3, best=3, max_new=5, eos=EOS) == [Beam([], 0.0)]


# --- invalid arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([], {}, "start token"),
        ([9], {}, r"prompts\[0\]=9 is not in"),
        ([1], {"beams": 0}, "beams must be a whole number of at least 1; found 0"),
        ([1], {"beams": 8}, "beams=8 is more than the 7 tokens of the vocabulary: give at most 7"),
        ([1], {"best": 0}, "best must be .* at least 1; found 0"),
        ([1], {"best": 5}, "best=5 texts cannot come out of beams=4: give at most 4"),
        ([1], {"max_new": 0}, "max_new must be"),
        ([[1], [2]], {"max_new": [4, 0]}, "max_new must be a whole number of at least 1; found 0"),
        ([[1], [2]], {"max_new": [4]}, "found 1 numbers and 2 prompts"),
        ([1], {"chunk": 0}, "chunk must be"),
        ([1], {"eos": 7}, "eos=7 is not in the vocabulary of 7"),
        ([1] * 4, {}, r"4 ids and max_new=4 more need 7 positions .*has 6: give max_new of at most 3"),
        ([1], {"length_penalty": float("nan")}, "length_penalty must be .*found nan"),
        ([1], {"length_penalty": 1e9}, "found 1000000000.0"),
        ([1], {"length_penalty": "1"}, "found '1'"),
        ([1], {"length_penalty": 10**400}, "found 1000"),
        ([1], {"temperature": 2}, r"generate and stream take .*pick=Sampling\(temperature=2\)"),
        ([1], {"pick": GREEDY}, "no option 'pick'"),
    ],
)
def test_invalid_arguments_raise_before_the_model_runs(
    toy: Any, prompts: Any, options: dict[str, Any], message: str
) -> None:
    model = toy(max_len=6)
    with pytest.raises(ArgumentError, match=message):
        beam_search(model, prompts, **{"max_new": 4, "eos": EOS, **options})
    assert all(decoding.steps == [] for decoding in model.begun)


def test_max_new_per_prompt(toy: Any) -> None:
    prompts, limits = [[1, 2], [4], [5]], [1, 4, 2]
    how: dict[str, Any] = {"beams": 2, "best": 2, "eos": []}
    found = beam_search(toy(), prompts, max_new=limits, **how)
    assert found == [beam_search(toy(), prompt, max_new=n, **how) for prompt, n in zip(prompts, limits, strict=True)]
    assert [{len(beam.ids) for beam in beams} for beams in found] == [{1}, {4}, {2}]


def test_session_is_rejected(toy: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must have a method `begin`.*found Session"):
        beam_search(Session(toy().begin()), [1], max_new=3, eos=EOS)  # type: ignore[arg-type]


def test_nan_logits_raise(toy: Any, xp: Any) -> None:
    table = np.full((97, 7), np.nan, np.float32)
    with pytest.raises(ArgumentError, match="the highest logit of row 0 is nan"):
        beam_search(toy(xp, table=table), [[1], [2]], max_new=3, eos=EOS)
