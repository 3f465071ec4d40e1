"""Patterns of heads: weights that follow a pattern score 1, other weights 0, and planted heads get their names."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present

import regard
from benchmarks.alignment import SENTENCES
from regard import Mask, See
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.evaluation.alignment import read_aligned
from regard.language import load
from regard.language.handmade import HEADS, run_layer
from regard.patterns import PatternRows, is_separator, names
from regard.records import Kind
from regard.reference import softmax
from regard.trace import Trace
from regard.trace.measures import Head, Heads, find_heads

TEXT = ["the", "cat", "sat", "on", "the", "mat", ",", "and", "the", "dog", "sat", "on", "the", "cat", "."]
N = len(TEXT)


def one_hot(keys: list[int], size: int = N) -> np.ndarray:
    """Every query attends to one key."""
    return np.eye(size)[keys]


def causal_even(size: int = N) -> np.ndarray:
    return np.tril(np.ones((size, size))) / np.arange(1, size + 1)[:, None]


def even_over(flags: np.ndarray) -> np.ndarray:
    """Even attention to the flagged keys up to the query; where there are none, to all keys."""
    flags = np.tril(flags).astype(float)
    even = causal_even(len(flags))
    return np.where(flags.any(1, keepdims=True), flags / np.maximum(flags.sum(1, keepdims=True), 1), even)


def equal(tokens: list[str] = TEXT) -> np.ndarray:
    return np.array([[a == b for b in tokens] for a in tokens])


def scores(weights: np.ndarray, tokens: Any = TEXT, kind: Any = "decoder", **how: Any) -> dict[str, float]:
    (head,) = Trace.from_weights(weights, tokens, tokens, kind=kind, **how).heads()
    return {name: score.value for name, score in head.scores.items()}


AFTER_SAME = np.roll(equal(), 1, axis=1) * (np.arange(N) > 0) * ~np.eye(N, dtype=bool)
PLANTED = {
    "previous": one_hot([0, *range(N - 1)]),
    "itself": np.eye(N),
    "first": one_hot([0] * N),
    "same": even_over(equal()),
    "induction": even_over(AFTER_SAME),
    "separator": even_over(np.array([[is_separator(token) for token in TEXT]] * N)),
    "local": even_over(np.abs(np.subtract.outer(np.arange(N), np.arange(N))) <= 3),
}


@pytest.mark.parametrize("name", PLANTED)
def test_head_with_a_pattern_scores_one_and_gets_its_name(name: str) -> None:
    (head,) = Trace.from_weights(PLANTED[name], TEXT, kind="decoder").heads()
    assert head.scores[name].value == pytest.approx(1)
    assert head.best is not None
    assert head.best.pattern == name


@pytest.mark.parametrize("name", sorted(set(PLANTED) - {"local"}))
def test_head_with_a_pattern_scores_low_on_the_others(name: str) -> None:
    found = scores(PLANTED[name])
    near = {"previous": {"local"}, "itself": {"local"}}.get(name, set())
    assert all(value < 0.75 for other, value in found.items() if other != name and other not in near), found
    assert "alignment" not in found


def test_exact_zeros() -> None:
    assert scores(np.eye(N))["same"] == 0  # the token itself does not count
    assert scores(np.eye(N))["previous"] == 0
    assert scores(PLANTED["previous"])["itself"] == 0
    assert scores(PLANTED["first"])["previous"] < 0.1  # the second query's previous token is the first
    assert scores(PLANTED["previous"])["induction"] < 0.1


@pytest.mark.parametrize("kind", ["decoder", "encoder", "cross"])
def test_even_attention_scores_zero(kind: Kind) -> None:
    weights = causal_even() if kind == "decoder" else np.full((N, N), 1 / N)
    assert max(scores(weights, kind=kind).values()) < 1e-6
    (head,) = Trace.from_weights(weights, TEXT, TEXT, kind=kind).heads()
    assert head.best is None


def test_value_of_one_score() -> None:
    """Three queries; the third gives 0.5 to the token before it. Even would be 1/2 and 1/3."""
    weights = np.array([[1, 0, 0], [0.75, 0.25, 0], [0.25, 0.5, 0.25]])
    (head,) = Trace.from_weights(weights, kind="decoder").heads()
    score = head.scores["previous"]
    assert score.value == pytest.approx(((0.75 - 1 / 2) + (0.5 - 1 / 3)) / (1 / 2 + 2 / 3))
    assert score.queries == 2
    assert score.even == pytest.approx((1 / 2 + 1 / 3) / 2)


# --- cross-attention --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "S"), [(6, 6), (9, 5), (4, 12)])
def test_alignment_is_a_different_key_for_each_query(T: int, S: int) -> None:
    pace = np.round(np.linspace(0, S - 1, T)).astype(int)
    diagonal = np.eye(S)[pace]
    shuffled = np.eye(S)[np.random.default_rng(0).permutation(S)[pace]]
    for weights, wanted in [(diagonal, 1), (shuffled, 1), (np.eye(S)[[2] * T], 0), (np.full((T, S), 1 / S), 0)]:
        (head,) = Trace.from_weights(weights, kind="cross").heads()
        assert head.scores["alignment"].value == pytest.approx(wanted, abs=1e-6)
        assert set(head.scores) <= {"alignment", "first", "separator"}
    assert present(Trace.from_weights(diagonal, kind="cross").heads()[0].best).pattern == "alignment"


@pytest.mark.filterwarnings("ignore:the model .* never read these words")
def test_alignment_head_of_the_bundled_translator_is_found() -> None:
    """The head that aligns best by hand-made alignments has the highest score over all sentences.

    Layer 0, head 0 attends to the words of the token just read, and must not be first on most of them.
    """
    translator = load("translator")
    best = translator.settings.alignment_heads[0]
    sums: Counter[tuple[int, int]] = Counter()
    firsts: Counter[tuple[int, int]] = Counter()
    for pair in read_aligned(SENTENCES):
        trace = translator.see(pair.text, output=pair.output).trace
        names = trace.select(kind="cross").names
        ranked = {(names.index(head.name), head.head): head for head in trace.heads().ranked("alignment")}
        sums.update({place: head.scores["alignment"].value for place, head in ranked.items()})
        firsts[next(iter(ranked))] += 1
    assert max(sums, key=sums.__getitem__) == best
    assert firsts[best] > firsts[0, 0]
    assert firsts[0, 0] < firsts.total() / 10


# --- models with planted heads ----------------------------------------------------------------------------


def test_handmade_heads_get_their_names() -> None:
    heads = {head.head: head.best and head.best.pattern for head in run_layer(TEXT).trace.heads()}
    named = {HEADS[head]: pattern for head, pattern in heads.items()}
    assert named == {"previous-word": "previous", "same-word": "same", "first-word": "first", "all-so-far": None}


def planted(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and k of three heads: induction, previous token, none. B H T E."""
    T, sharp = len(ids), 40.0
    tokens, before = np.eye(64)[ids], np.eye(64)[np.roll(ids, 1)]
    before[0] = 0
    place = np.eye(T)
    width = max(64, T)
    pad = lambda x: np.pad(x, ((0, 0), (0, width - x.shape[1])))  # noqa: E731
    q = np.stack([pad(tokens) * sharp, pad(np.roll(place, 1, 0)) * sharp, pad(tokens) * 0])
    k = np.stack([pad(before), pad(place), pad(tokens)])
    return (q * width**0.5)[None], k[None]


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_planted_heads_are_found_from_kept_q_and_k(kind: str) -> None:
    ids = np.tile(np.random.default_rng(1).permutation(60)[:50], 3)
    q, k = (torch.tensor(x, dtype=torch.float32) if kind == "torch" else x for x in planted(ids))
    _, record = regard.attend(q, k, k, mask=Mask.causal(), see=See(map=8, qk=True))
    tokens = [str(i) for i in ids]
    heads = {head.head: head for head in Trace([record.with_tokens(tokens, tokens)]).heads()}
    assert [present(heads[h].best).pattern for h in range(2)] == ["induction", "previous"]
    assert heads[2].best is None
    assert heads[0].scores["induction"].value > 0.9
    assert heads[0].scores["induction"].queries == 100


def test_planted_heads_of_a_watched_model() -> None:
    ids = np.tile(np.arange(20), 2)
    q, k = (torch.tensor(x, dtype=torch.float32) for x in planted(ids))

    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True) + x

    model = torch.nn.Sequential(Layer())
    with regard.watch(model, see=See(map=8, qk=True)) as trace:
        model(torch.zeros(1))
    tokens = [str(i) for i in ids]
    labelled = Trace(record.with_tokens(tokens, tokens) for record in trace)
    best = {head.head: head.best and head.best.pattern for head in labelled.heads()}
    assert best == {0: "induction", 1: "previous", 2: None}


# --- families: any distance, any shift --------------------------------------------------------------------


def fixed_distance(back: int, size: int) -> np.ndarray:
    """Every query attends to the key `back` places back; queries without such a key to themselves."""
    at = np.arange(size)
    return np.eye(size)[np.where((at >= back) & (at - back < size), np.clip(at - back, 0, size - 1), at)]


@pytest.mark.parametrize("back", [2, 3, 4, 7, 11, -1, -3])
def test_head_with_a_fixed_distance_is_named_by_it(back: int) -> None:
    size = 24
    tokens = [f"w{i}" for i in range(size)]
    kind: Kind = "decoder" if back > 0 else "encoder"
    (head,) = Trace.from_weights(fixed_distance(back, size), tokens, tokens, kind=kind).heads()
    assert head.best is not None
    assert head.best.pattern == (f"back-{back}" if back > 0 else f"ahead-{-back}")
    assert head.best.value == pytest.approx(1)
    assert head.best.queries == size - abs(back)


def test_score_of_every_distance() -> None:
    """Compared with the definition, query by query."""
    rng = np.random.default_rng(0)
    T, S = 9, 13
    weights = softmax(np.where(np.tril(np.ones((2, T, S), bool), S - T), rng.normal(size=(2, T, S)) * 3, -np.inf))
    heads = sorted(Trace.from_weights(weights, kind="decoder").heads(), key=lambda head: head.head)
    for number, head in enumerate(heads):
        for back in range(1, S):
            pairs = [(t, t + S - T - back) for t in range(T) if t + S - T - back >= 0]
            even = np.array([1 / (t + S - T + 1) for t, _ in pairs])
            mass = np.array([weights[number, t, s] for t, s in pairs])
            found = head.score(f"back-{back}")
            assert found is not None
            assert found.queries == len(pairs)
            assert found.value == pytest.approx(max(0, (mass - even).sum() / (1 - even).sum()), abs=1e-6)
        assert head.score(f"back-{S}") is None
    assert [head.head for head in Trace.from_weights(weights, kind="decoder").heads().ranked("back-2")]


def repeated(period: int, times: int) -> list[str]:
    return [f"w{i}" for i in range(period)] * times


@pytest.mark.parametrize("shift", [-3, -1, 2, 4, 8])
def test_shifted_induction_is_named(shift: int) -> None:
    tokens = repeated(17, 3)
    size = len(tokens)
    earlier = np.tril(equal(tokens), -1)
    moved = np.roll(earlier, shift, axis=1)
    moved = np.tril(moved, -1) * (np.arange(size) >= shift if shift > 0 else np.arange(size) < size + shift)
    (head,) = Trace.from_weights(even_over(moved), tokens, kind="decoder").heads()
    assert head.best is not None
    assert head.best.pattern == f"induction{shift:+d}"
    assert head.best.value > 0.95


def test_distance_and_token_are_distinguished_in_a_repeating_text() -> None:
    """With a period of 5, 4 back is also what followed the same token: the first period shows which it is."""
    tokens = repeated(9, 2)
    distance = fixed_distance(8, len(tokens))
    once = np.tril(equal(tokens), -1)
    induction = even_over(np.tril(np.roll(once, 1, axis=1), -1) * (np.arange(len(tokens)) > 0))
    tokens_short = repeated(5, 4)
    by_place = fixed_distance(4, len(tokens_short))
    best = [
        Trace.from_weights(weights, words, kind="decoder").heads()[0].best
        for weights, words in ((induction, tokens), (by_place, ["x", "y", "z", *tokens_short[3:]]), (distance, tokens))
    ]
    assert [score and score.pattern for score in best] == ["induction", "back-4", "induction"]


def test_the_token_before_is_no_shifted_induction_in_a_repeated_block() -> None:
    """With a period of 8, the token before is also 7 after the same token; its queries in the first block decide."""
    tokens = repeated(8, 2)
    previous = 0.9 * np.eye(16, k=-1) + 0.1 * np.tri(16) / np.arange(1, 17)[:, None]
    previous[:4] = np.tri(16)[:4] / np.arange(1, 5)[:, None]
    best = Trace.from_weights(previous / previous.sum(-1, keepdims=True), tokens, kind="decoder").heads()[0]
    shifted = best.score("induction+7")
    assert best.best is not None
    assert shifted is not None
    assert shifted.value > best.best.value
    assert best.best.pattern == "previous"


def test_random_heads_get_no_name() -> None:
    """Of 200 heads with random attention, at most 10 get the name of a family."""
    rng = np.random.default_rng(0)
    tokens = [f"w{i}" for i in rng.integers(0, 12, 30)]
    weights = np.zeros((200, 30, 30))
    for t in range(30):
        weights[np.arange(200), t, rng.integers(0, t + 1, 200)] = 1
    found = [head.best.pattern for head in Trace.from_weights(weights, tokens, kind="decoder").heads() if head.best]
    assert len([name for name in found if "-" in name or "+" in name]) <= 10, Counter(found)


# --- registered patterns ----------------------------------------------------------------------------------


@pytest.fixture
def unregister_afterwards() -> Iterator[None]:
    before = set(names())
    yield
    for name in set(names()) - before:
        regard.patterns.unregister(name)


@pytest.mark.usefixtures("unregister_afterwards")
def test_registered_pattern_is_scored_and_named() -> None:
    def verbs(rows: Any) -> np.ndarray:
        return np.array([[token == "sat" for token in row] for row in rows.texts])[:, None]

    regard.patterns.register("verbs", verbs, label={"en": "verbs", "zh": "动词"}, needs_tokens=True)
    weights = even_over(np.array([[token == "sat" for token in TEXT]] * N))
    heads = Trace.from_weights(weights, TEXT, kind="decoder").heads()
    assert heads[0].best is not None
    assert heads[0].best.pattern == "verbs"
    assert heads[0].best.value == pytest.approx(1)
    assert heads.ranked("verbs") == [heads[0]]
    assert " verbs " in heads.text(lang="en")
    assert " 动词 " in heads.text(lang="zh")
    assert "verbs" not in Trace.from_weights(weights, kind="decoder").heads()[0].scores  # no tokens
    assert "verbs" not in Trace.from_weights(weights, TEXT, TEXT, kind="cross").heads()[0].scores
    regard.patterns.register("verbs", lambda rows: np.arange(N) == 3)
    assert present(Trace.from_weights(one_hot([3] * N), kind="decoder").heads()[0].best).pattern == "verbs"


@pytest.mark.usefixtures("unregister_afterwards")
def test_invalid_patterns_are_refused() -> None:
    for name, function, sentence in [
        ("first", len, "built-in pattern"),
        ("back-3", len, "built-in pattern"),
        ("two words", len, "letters, digits"),
        (3, len, "found 3"),
        ("own", "len", "found str"),
    ]:
        with pytest.raises(ArgumentError, match=sentence):
            regard.patterns.register(name, function)  # type: ignore[arg-type]
    answers: list[tuple[Any, str]] = [
        (np.ones((1, 2, 3)), r"B r S = \(1, 15, 15\)"),
        (np.full(N, 2), "from 0 to 1"),
        (np.full(N, np.nan), "from 0 to 1"),
        (["a"] * N, "found <U1"),
    ]
    for answer, sentence in answers:

        def own(rows: PatternRows, answer: Any = answer) -> Any:
            return answer

        regard.patterns.register("own", own)
        with pytest.raises(ArgumentError, match=sentence):
            Trace.from_weights(np.eye(N), TEXT, kind="decoder").heads()
    with pytest.raises(UnknownNameError, match="registered are: own"):
        regard.patterns.unregister("mine")


# --- padding, samples, length -----------------------------------------------------------------------------


def test_left_padding_is_left_out() -> None:
    pad, T = 3, 9
    q = np.zeros((2, 1, T, 4))
    k = np.zeros((2, 1, T, 4))
    q[..., 0] = 100
    k[0, 0, 0, 0] = k[1, 0, pad, 0] = 100  # the first key of each text
    keep = np.ones((2, T), bool)
    keep[1, :pad] = False
    _, record = regard.attend(q, k, k, mask=Mask.causal() & Mask.from_keep(keep), see=See(qk=True))
    (head,) = Trace([record]).heads()
    assert head.scores["first"].value == pytest.approx(1)
    assert head.scores["first"].queries == (T - 1) + (T - pad - 1)


def test_fully_masked_and_nan_queries_do_not_count() -> None:
    weights = PLANTED["previous"].copy()
    weights[4] = 0
    weights[6] = np.nan
    (head,) = Trace.from_weights(weights, kind="decoder").heads()
    assert head.scores["previous"].value == pytest.approx(1)
    assert head.scores["previous"].queries == N - 3


def test_long_text_is_sampled() -> None:
    T = 900
    weights = np.eye(T)[[0, *range(T - 1)]]
    heads = Trace.from_weights(weights, kind="decoder").heads(queries=100)
    assert heads[0].scores["previous"].value == pytest.approx(1)
    assert 60 <= heads[0].scores["previous"].queries <= 100
    assert "100 of 900 queries" in heads.text(lang="en")


def test_decoding_step_is_aligned_with_the_last_key() -> None:
    weights = np.zeros((2, 8))
    weights[0, 5] = weights[1, 6] = 1
    (head,) = Trace.from_weights(weights, kind="decoder").heads()
    assert head.scores["previous"].value == pytest.approx(1)


def test_window_mask_does_not_make_a_local_head() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 1, 30, 8)) * 0.01
    _, record = regard.attend(q, k, k, mask=Mask.window(2, 0), see=See(qk=True))
    (head,) = Trace([record]).heads()
    assert "local" not in head.scores  # no other key is visible


@given(T=st.integers(0, 9), S=st.integers(0, 9), B=st.integers(0, 2), H=st.integers(0, 2), seed=st.integers(0, 20))
def test_scores_are_from_zero_to_one(T: int, S: int, B: int, H: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = softmax(rng.normal(size=(B, H, T, S)) * 5) if S else np.zeros((B, H, T, S))
    weights[rng.random((B, H, T)) < 0.2] = 0
    for kind in ("decoder", "cross", "self"):
        trace = Trace.from_weights(weights, list("abcab d,a"[:T]), list("ab,abc.ab"[:S]), kind=kind)
        heads = trace.heads()
        assert len(heads) == H
        assert all(0 <= score.value <= 1 and score.queries > 0 for head in heads for score in head.scores.values())


# --- ranking, the table, and errors -----------------------------------------------------------------------


def three() -> Heads:
    weights = np.stack([PLANTED["first"], PLANTED["previous"], causal_even()])
    return Trace.from_weights(weights, TEXT, kind="decoder", name="h.0.attn").heads()


def test_ranked_by_one_pattern() -> None:
    heads = three()
    assert heads.ranked("previous")[0].head == 1
    assert heads.ranked("alignment") == []
    assert isinstance(heads[0], Head)
    with pytest.raises(UnknownNameError, match=f"choose one of {', '.join(names())}"):
        heads.ranked("inductoin")


def test_score_on_too_few_queries_is_listed_separately() -> None:
    weights = np.stack([np.eye(2), np.full((2, 2), 0.5)])
    table = Trace.from_weights(weights, ["a", "b"], kind="encoder", name="h.0.attn").heads().text(lang="en")
    assert "heads without any of the known patterns (every score below 0.3): 1" in table
    assert "a score of 0.3 or more is based on fewer than 3 queries: 1" in table


def test_heads_without_a_pattern_are_not_compared_with_an_empty_list() -> None:
    uniform = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    heads = Trace.from_weights(np.stack([uniform] * 2), list("abcdef"), kind="decoder", name="h.0.attn").heads()
    assert all(head.best is None for head in heads)
    assert "heads without any of the known patterns (every score below 0.3): 2" in heads.text(lang="en")
    chinese = heads.text(lang="zh")
    assert "2 个头不符合任何一种已知的模式" in chinese
    assert "以上" not in chinese


def test_table_in_both_languages() -> None:
    heads = three()
    english, chinese = heads.text(lang="en"), heads.text(lang="zh")
    assert str(heads) == english
    lines = english.splitlines()
    assert lines[0] == "What 3 heads look at, measured on 15 queries"
    assert lines[2].split() == ["layer", "head", "looks", "at", "score", "queries"]
    assert lines[3].split() == ["h.0.attn", "0", "first", "token", "1.00", "14"]
    assert "heads that do none of this (every score below 0.3): 1" in english
    assert "Attention is not explanation" in english
    assert "注意力不等于解释" in chinese
    assert "… and 1 more" in heads.text(most=1, lang="en")
    assert "heads left out, because this text or its labels are not enough" in heads.text("alignment", lang="en")
    assert "The same token elsewhere: 1 is also" in heads.text("same", lang="en")
    assert "The same token elsewhere: 1 is also" not in heads.text("first", lang="en")
    with pytest.raises(ArgumentError, match="lang='de'"):
        heads.text(lang="de")  # type: ignore[arg-type]


def test_table_without_tokens_names_the_missing_patterns() -> None:
    heads = Trace.from_weights(PLANTED["same"], kind="decoder").heads()
    assert "same" not in heads[0].scores
    assert "tokenizer=" in heads.text(lang="en")


def test_coarse_map_without_weights_is_refused_with_the_fix() -> None:
    q = np.random.default_rng(0).normal(size=(1, 1, 30, 4))
    _, record = regard.attend(q, q, q, see=See(map=8))
    with pytest.raises(NotKeptError, match=r"see=See\(qk=True\)"):
        Trace([record]).heads()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no records, so there is nothing to show"):
        find_heads(Trace())
    for wrong in (0, 1.5, "all"):
        with pytest.raises(ArgumentError, match=f"queries={wrong!r}"):
            Trace.from_weights(np.eye(3)).heads(queries=wrong)  # type: ignore[arg-type]
