"""Prompt lookup decoding gives the ids of plain greedy generation, in fewer steps where a text repeats itself.

`generate` and `stream`: results as by definition for any batch; errors before the model runs.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import CONFIGS, random_weights, torch_model

from regard import Mask
from regard.dispatch import attend_in_model
from regard.errors import ArgumentError
from regard.generation import GREEDY, Sampling, Session, generate, loop, stream
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


ragged = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=1, max_size=4)


def before_eos(text: list[int], *eos: int) -> list[int]:
    return text[: min([text.index(id) for id in eos if id in text], default=len(text))]


# --- results ---------------------------------------------------------------------------------------------


@given(prompts=ragged, max_new=st.integers(1, 8), chunk=st.none() | st.integers(1, 3), seed=st.integers(0, 5))
def test_batch_equals_single_prompts(
    toy: Any, prompts: list[list[int]], max_new: int, chunk: int | None, seed: int
) -> None:
    model = toy(seed=seed)
    wanted = [model.greedy(row, max_new) for row in prompts]
    assert generate(model, prompts, max_new=max_new, chunk=chunk) == wanted
    assert [generate(model, row, max_new=max_new) for row in prompts] == wanted


@given(
    prompts=ragged,
    eos=st.integers(0, 6) | st.lists(st.integers(0, 6), max_size=3),
    seed=st.integers(0, 5),
)
def test_text_ends_before_its_eos(toy: Any, prompts: list[list[int]], eos: Any, seed: int) -> None:
    model = toy(seed=seed)
    ends = [eos] if isinstance(eos, int) else eos
    wanted = [before_eos(model.greedy(row, 8), *ends) for row in prompts]
    assert generate(model, prompts, max_new=8, eos=eos) == wanted
    steps = list(stream(model, prompts, max_new=8, eos=eos))
    texts = [[step[row] for step in steps if step[row] is not None] for row in range(len(prompts))]
    assert texts == wanted
    # None occurs only at the end of a row, and the stream ends with its longest row.
    assert all(step[row] is None for row, text in enumerate(wanted) for step in steps[len(text) :])
    assert len(steps) == max(map(len, wanted))


def test_numpy_and_torch_agree(toy: Any, xp: Any) -> None:
    model, prompts = toy(xp), [[1, 2, 3], [4], [6, 5]]
    wanted = [toy().greedy(row, 9) for row in prompts]
    assert generate(model, xp.asarray(prompts[0]), max_new=9) == wanted[0]
    assert generate(model, prompts, max_new=9) == wanted
    assert generate(model, prompts, max_new=9, eos=3) == [before_eos(text, 3) for text in wanted]
    assert list(stream(model, prompts[0], max_new=9)) == wanted[0]
    assert list(stream(model, prompts[:1], max_new=3)) == [[id] for id in wanted[0][:3]]
    sampling = Sampling(seed=3, top_k=5, repetition_penalty=1.2)
    assert generate(model, prompts, max_new=9, pick=sampling) == generate(toy(), prompts, max_new=9, pick=sampling)


def test_sampling_depends_on_the_row(toy: Any) -> None:
    how = Sampling(seed=3)
    texts = generate(toy(), [[1, 2, 3], [4]], max_new=9, pick=how, eos=2)
    assert generate(toy(), [[1, 2, 3], [5, 5]], max_new=9, pick=how, eos=2)[0] == texts[0]
    assert generate(toy(), [1, 2, 3], max_new=9, pick=how, eos=2) == texts[0]


def test_padded_sources_equal_single_sources(toy: Any, xp: Any) -> None:
    model = toy(xp, encodes=True)
    sources, prompts = [[3, 1, 2], [4], [6, 6]], [[0], [1, 2], [0]]
    wanted = [model.greedy(prompt, 6, source) for prompt, source in zip(prompts, sources, strict=True)]
    assert generate(model, prompts, sources=sources, max_new=6) == wanted
    assert generate(model, prompts[0], sources=sources[0], max_new=6) == wanted[0]
    assert generate(model, prompts[2], sources=xp.asarray([sources[2]]), max_new=6) == wanted[2]


def test_source_mask_is_combined_with_padding(toy: Any) -> None:
    model = toy(encodes=True)
    hides_first = Mask.from_keep(np.array([[0, 1, 1]]))
    texts = generate(model, [[0], [0]], sources=[[5, 1, 2], [4, 3]], max_new=6, source_mask=hides_first)
    assert texts == [model.greedy([0], 6, [-1, 1, 2]), model.greedy([0], 6, [-1, 3])]  # −1 adds nothing to the state


def test_options_reach_the_model(toy: Any) -> None:
    model = toy()
    generate(model, [1], max_new=1, cache="static")
    assert model.cache == "static"


# --- cost ------------------------------------------------------------------------------------------------


def test_number_of_columns_read(toy: Any) -> None:
    model = toy()
    generate(model, [[1, 2, 3], [4]], max_new=4)
    assert model.begun[-1].steps == [(2, 3), (2, 1), (2, 1), (2, 1)]
    first = model.greedy([1], 1)[0]
    assert generate(model, [1], max_new=4, eos=first) == []
    assert model.begun[-1].steps == [(1, 1)]


def test_finished_text_continues_with_zeros(toy: Any, xp: Any) -> None:
    model = toy(xp)
    eos = model.greedy([1], 1)[0]
    assert generate(model, [[1], [2]], max_new=4, eos=eos)[0] == []
    assert model.begun[-1].ids[0].tolist() == [1, eos, 0, 0]


def test_greedy_does_not_synchronise(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the model's last step, no tensor's values may be read: that would wait for a GPU."""
    accessed: list[str] = []
    model = toy(torch)
    monkeypatch.setattr(loop, "is_on_other_device", lambda logits: True)
    for name in ("cpu", "numpy", "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__array__"):
        real = getattr(torch.Tensor, name)

        def spy(x: Any, *args: Any, real: Any = real, name: str = name, **options: Any) -> Any:
            accessed.append(f"{name} after {len(model.begun[-1].steps)}")
            return real(x, *args, **options)

        monkeypatch.setattr(torch.Tensor, name, spy)
    text = generate(model, [[1, 2], [3, 4]], max_new=5)
    assert accessed
    assert all(each.endswith("after 5") for each in accessed)
    accessed.clear()
    assert generate(model, [[1, 2], [3, 4]], max_new=5, eos=6) == [before_eos(row, 6) for row in text]
    assert any(each.endswith("after 1") for each in accessed)  # the spy works


def test_nan_in_any_step_raises_at_the_end(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without synchronisation, non-finite logits of every step are recorded, also if no later id depends on them."""
    monkeypatch.setattr(loop, "is_on_other_device", lambda logits: True)
    model = toy(torch)
    real, calls = model.rows, []

    def rows(state: Any) -> Any:
        calls.append(1)
        logits = real(state)
        return logits * float("nan") if len(calls) == 2 else logits

    monkeypatch.setattr(model, "rows", rows)
    with pytest.raises(ArgumentError, match="the highest logit of row 0 is nan"):
        generate(model, [[1, 2], [3, 4]], max_new=5)
    assert len(calls) == 5


# --- streaming -------------------------------------------------------------------------------------------


def test_stream_yields_each_id_before_the_next_step(toy: Any) -> None:
    model = toy()
    ids = stream(model, [1, 2], max_new=5)
    assert model.begun[-1].steps == []
    for n in range(1, 4):
        next(ids)
        assert len(model.begun[-1].steps) == n


def test_session_continues_after_an_early_stop(toy: Any) -> None:
    model = toy()
    session = Session(model.begin())
    ids = stream(session, [1, 2], max_new=9)
    received = [next(ids), next(ids), next(ids)]
    ids.close()  # type: ignore[attr-defined]
    assert received == model.greedy([1, 2], 3)
    assert session.ids == [1, 2, *received[:2]]  # the last one was returned and not read
    assert generate(session, [1, 2, *received], max_new=4) == model.greedy([1, 2], 7)[3:]
    assert model.begun[-1].steps == [(1, 2), *[(1, 1)] * 6]


def test_stream_checks_arguments_at_the_call(toy: Any) -> None:
    with pytest.raises(ArgumentError, match="start token"):
        stream(toy(), [], max_new=1)


# --- invalid arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([], {}, "prompts is empty"),
        ([[1], [7]], {}, r"prompts\[1\]\[0\]=7 is not in the vocabulary of 7: ids go from 0 to 6"),
        ([1], {"max_new": 0}, "max_new must be a whole number of at least 1; found 0"),
        ([1], {"chunk": 0}, "chunk must be .* at least 1; found 0"),
        ([1], {"eos": 7}, "eos=7 is not in the vocabulary of 7: give an id from 0 to 6"),
        ([1], {"eos": [1, -1]}, "eos=-1 is not in"),
        ([1], {"eos": "</s>"}, "eos='<' is not in"),
        ([1], {"eos": 1.0}, "eos=1.0 is not in"),
        ([1], {"pick": Sampling}, "pick must be GREEDY or a Sampling.*found <class"),
        ([1], {"pick": "greedy"}, "found 'greedy'"),
        ([1] * 7, {}, "7 ids to read, but the model has 6 positions: leave out at least 1"),
        ([1] * 4, {"max_new": 4}, r"4 ids and max_new=4 more need 7 positions .*has 6: give max_new of at most 3"),
        ([[1], [1] * 4], {"max_new": 4}, "4 ids and max_new=4"),
        ([[1], [2]], {"sources": [1, 2]}, r"found 1 sources and 2 prompts; give as many"),
        ([1], {"temperature": 0.7}, r"temperature is about sampling.*: pick=Sampling\(temperature=0.7\)"),
        (
            [1],
            {"cash": 1},
            "no option 'cash'; .*: sources, max_new, pick, eos, chunk, lookup, source_mask, cache",
        ),
        ([1], {"source": [[1]]}, "no option 'source'; there are: sources, "),
    ],
)
def test_invalid_arguments_raise_before_the_model_runs(
    toy: Any, prompts: Any, options: dict[str, Any], message: str
) -> None:
    model = toy(max_len=6)
    for call in (generate, stream):
        with pytest.raises(ArgumentError, match=message):
            call(model, prompts, **{"max_new": 1, **options})
    assert all(decoding.steps == [] for decoding in model.begun)


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1], [2]], {}, "a Session remembers one text: give one prompt; found 2"),
        ([1], {"sources": [1], "cache": 1}, r"so sources, cache cannot be given here: .*Session\(model.begin\(…\)\)"),
        ([1], {"top_k": 3}, r"pick=Sampling\(top_k=3\)"),
        ([1] * 4, {"max_new": 4}, "give max_new of at most 3"),
    ],
)
def test_invalid_arguments_do_not_change_a_session(
    toy: Any, prompts: Any, options: dict[str, Any], message: str
) -> None:
    session = Session(toy(max_len=6).begin())
    for call in (generate, stream):
        with pytest.raises(ArgumentError, match=message):
            call(session, prompts, **{"max_new": 1, **options})
    decoding: Any = session.decoding
    assert session.ids == decoding.steps == []


def test_model_with_any_option_receives_it(toy: Any) -> None:
    class Open(toy):  # type: ignore[misc]
        def begin(self, source: Any = None, **options: Any) -> Any:
            self.options = options
            return super().begin(source)

    model = Open()
    generate(model, [1], max_new=1, temperature=2, anything=3)
    assert model.options == {"temperature": 2, "anything": 3}


def test_error_inside_begin_is_not_converted(toy: Any) -> None:
    class Broken(toy):  # type: ignore[misc]
        def begin(self, source: Any = None) -> Any:
            raise TypeError("begin() got an unexpected keyword argument")

    with pytest.raises(TypeError, match="unexpected keyword"):
        generate(Broken(), [1], max_new=1)


def test_last_position_is_usable(toy: Any) -> None:
    assert generate(toy(max_len=6), [1] * 4, max_new=3) == toy().greedy([1] * 4, 3)


def test_given_decoding_is_restarted(toy: Any, xp: Any) -> None:
    model = toy(xp)
    decoding = model.begin()
    for prompts in ([[1, 2], [3]], [[4], [5, 6]]):
        assert generate(decoding, prompts, max_new=4) == generate(model, prompts, max_new=4)
    with pytest.raises(ArgumentError, match="sources, cache"):
        generate(decoding, [1], max_new=1, sources=[1], cache="static")


def test_object_without_begin_is_rejected(toy: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must have a method `begin`.*found str"):
        generate("toy", [1], max_new=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="found type"):
        generate(toy, [1], max_new=1)


@pytest.mark.parametrize("pick", [GREEDY, Sampling(seed=0)])
@pytest.mark.parametrize("eos", [None, 3])
def test_nan_logits_raise(toy: Any, xp: Any, pick: Any, eos: int | None) -> None:
    table = np.zeros((97, 7), np.float32)
    table[:, 4] = np.nan
    with pytest.raises(ArgumentError, match="the highest logit of row 0 is nan"):
        generate(toy(xp, table=table), [[1], [2]], max_new=3, pick=pick, eos=eos)
    with pytest.raises(ArgumentError, match="nan"):
        next(stream(toy(xp, table=table), [1], max_new=3, pick=pick, eos=eos))
