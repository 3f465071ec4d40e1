"""Coverage of the test calls: printed examples, edge cases of attention.

For each exercise with attention, `SEEN` says how a call's scores and mask come from its arguments; every corner below
must then occur in some call of every data set, or stand in `NOT_HERE` with its reason.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Call
from regard.course.exercises import edge_inputs
from regard.messages import LANGUAGES, catalogue


class Seen(NamedTuple):
    """The scaled scores of a call, B H T S, and which of them are visible."""

    scores: np.ndarray
    visible: np.ndarray


def seen(q: np.ndarray, k: np.ndarray, visible: Any = True) -> Seen:
    """Three axes are samples: add a head axis to them and to their mask."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    visible = np.asarray(visible)
    if scores.ndim == 3:
        scores, visible = scores[:, None], visible[:, None] if visible.ndim == 3 else visible
    scores = scores.reshape((1,) * (4 - scores.ndim) + scores.shape)
    return Seen(scores, np.broadcast_to(visible, scores.shape))


def split(x: np.ndarray, H: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], H, -1).swapaxes(-2, -3)


# --- the scores of a call -----------------------------------------------------------------------------------


def three(call: Call) -> Seen:
    return seen(call.args[0], call.args[1])


def crossed(call: Call) -> Seen:
    x, memory, W_q, W_k, _ = call.args
    return seen(x @ W_q, memory @ W_k)


def masked(call: Call) -> Seen:
    Q, K, _, mask = (*call.args, None)[:4]
    return seen(Q, K, True if mask is None else mask)


def grouped(call: Call) -> Seen:
    Q, K, _ = call.args
    return seen(Q[None], np.repeat(K, len(Q) // len(K), axis=0)[None])


def cached(call: Call) -> Seen:
    q, k, _ = call.args[:3]
    cache = call.args[3] if len(call.args) > 3 else call.kwargs.get("cache")
    K = k if cache is None else np.concatenate([cache[0], k])
    return seen(q, K, np.tri(len(q), len(K), len(K) - len(q), dtype=bool))


def tiled(call: Call) -> Seen:
    _, q, k, _, q_start, k_start = call.args
    return seen(q, k, np.tri(len(q), len(k), q_start - k_start, dtype=bool))


def additive(call: Call) -> Seen:
    Q, K, _, W_q, W_k, v = call.args
    scores = np.tanh((Q @ W_q)[:, None] + K @ W_k) @ v
    return Seen(scores[None, None], np.ones((1, 1, *scores.shape), dtype=bool))


def padded(call: Call) -> Seen:
    ids, embedding, W_q, W_k, _ = call.args[:5]
    x, H = embedding[ids], (*call.args, 1)[5]
    return seen(split(x @ W_q, H), split(x @ W_k, H), (ids != 0)[:, None, None])


def beside(call: Call) -> Seen:
    Q, K, _, mask, H = call.args
    return seen(split(Q, H), split(K, H), mask[:, None])


def module(call: Call) -> Seen:
    Q, K = call.args[:2]
    assert call.instance is not None
    hidden = np.zeros((Q.shape[-2], K.shape[-2]), dtype=bool)
    if call.instance.kwargs["causal"]:
        hidden = ~np.tri(Q.shape[-2], K.shape[-2], K.shape[-2] - Q.shape[-2], dtype=bool)
    mask = call.kwargs.get("mask")
    if mask is not None:
        hidden = hidden | (mask[:, None] if mask.ndim == 3 and Q.ndim == 4 else mask).astype(bool)
    return seen(Q, K, ~hidden)


def projected(prefix: str, causal: bool = False) -> Callable[[Call], Seen]:
    """Self-attention of a module, from the given parameters."""

    def found(call: Call) -> Seen:
        assert call.instance is not None
        x, state, H = call.args[0], call.instance.state, (*call.instance.args, 1)[1]
        if f"{prefix}W_q.weight" in state:
            q, k = (x @ state[f"{prefix}{w}.weight"].T + state[f"{prefix}{w}.bias"] for w in ("W_q", "W_k"))
        else:
            q, k = (x @ state[f"W_{letter}"] + state[f"b_{letter}"] for letter in "QK")
        T, mask = x.shape[1], call.args[1] if len(call.args) == 2 and not causal else None
        visible: Any = np.tri(T, dtype=bool) if causal else True
        if mask is not None:
            shaped = {2: lambda m: m[:, None, None], 3: lambda m: m[:, None], 4: lambda m: m}[mask.ndim](mask)
            visible = shaped.astype(bool)
        return seen(split(q, H), split(k, H), visible)

    return found


def block(causal: bool = False) -> Callable[[Call], Seen]:
    """Self-attention of a pre-norm block. Layer norm rounds its inputs: so are the scores."""

    def found(call: Call) -> Seen:
        x, (weights, H) = call.args[0], (call.args[2:4] if causal else call.args[1:3])
        mask = None if causal else (*call.args, None)[3]
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        normal = normal * weights["self_attention_norm.weight"] + weights["self_attention_norm.bias"]
        names = (f"self_attention.{letter}_proj" for letter in "qk")
        q, k = (split(normal @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], H) for name in names)
        visible: Any = np.tri(x.shape[1], dtype=bool) if causal else True if mask is None else mask[:, None, None]
        scores, shown = seen(q, k, visible)
        return Seen(scores.round(9), shown)

    return found


SEEN: dict[str, Callable[[Call], Seen]] = {
    "simple-attention": three,
    "self-attention": three,
    "attention-backward": three,
    "online-softmax": three,
    "cross-attention": crossed,
    "multi-head-attention": lambda call: seen(*(split(x, call.args[3])[None] for x in call.args[:2])),
    "scaled-dot-product": masked,
    "gqa": grouped,
    "kv-cache": cached,
    "flash-tiles": tiled,
    "additive-attention": additive,
    "bug-mask-polarity": padded,
    "bug-padded-queries": padded,
    "bug-mask-beside-heads": beside,
    "bug-nan-after-masked-row": masked,
    "scaled-dot-product-module": module,
    "single-head-manual": projected(""),
    "masked-self-attention-module": projected(""),
    "self-attention-module": projected(""),
    "multi-head-self-attention-module": projected(""),
    "encoder-block": block(),
    "decoder-block": block(causal=True),
    "encoder-layer": projected("attention."),
    "decoder-layer": projected("self_attention.", causal=True),
}

# --- the corners --------------------------------------------------------------------------------------------


def rows(each: Seen) -> Iterator[np.ndarray]:
    """The visible scores of every query."""
    for index in np.ndindex(*each.scores.shape[:-1]):
        yield each.scores[index][each.visible[index]]


def some_row(test: Callable[[np.ndarray], bool]) -> Callable[[Seen], bool]:
    return lambda each: any(test(row) for row in rows(each) if len(row))


def hidden(test: Callable[[np.ndarray, np.ndarray], bool]) -> Callable[[Seen], bool]:
    """Whether the condition holds for some query with visible and hidden keys."""

    def found(each: Seen) -> bool:
        pairs = ((each.scores[at], each.visible[at]) for at in np.ndindex(*each.scores.shape[:-1]))
        return any(bool(v.any() and not v.all()) and test(s[v], s[~v]) for s, v in pairs)

    return found


CORNERS: dict[str, Callable[[Seen], bool]] = {
    "a score of 0 beside others": some_row(lambda row: 0 in row and bool(np.any(row != 0))),
    "only scores of 0": some_row(lambda row: len(row) > 1 and not row.any()),
    "a tie": some_row(lambda row: len(row) > 2 and np.sum(row == row.max()) == 2),
    "only negative scores": some_row(lambda row: len(row) > 1 and bool(np.all((row < 0) & (row > -10)))),
    "equal keys": some_row(lambda row: len(row) > 1 and bool(np.ptp(row) == 0)),
    "1000 and -1000 in one row": some_row(lambda row: row.max() >= 900 and row.min() <= -900),
    "a row of about -1000": some_row(lambda row: len(row) > 1 and row.min() > -2000 and row.max() <= -900),
    "one key": lambda each: each.scores.shape[-1] == 1,
    "as many queries as keys": lambda each: each.scores.shape[-1] == each.scores.shape[-2] > 1,
    "another number of queries": lambda each: each.scores.shape[-1] != each.scores.shape[-2],
    "one head": lambda each: each.scores.shape[1] == 1,
    "one sample": lambda each: each.scores.shape[0] == 1,
    "as many samples as heads": lambda each: each.scores.shape[0] == each.scores.shape[1] > 1,
    "B, H, T, S all different": lambda each: len({*each.scores.shape}) == 4,
    "nothing hidden": lambda each: bool(each.visible.all()),
    "one key visible": some_row(lambda row: len(row) == 1),
    "a hidden key far above": hidden(lambda v, h: h.max() >= 900 and np.abs(v).max() < 10),
    "visible keys far below": hidden(lambda v, h: v.max() <= -20_000 and h.max() >= 0),
    "a query that sees nothing": lambda each: not each.visible.any(-1).all(),
    "no query sees anything": lambda each: not each.visible.any(),
}

NO_MASK = {"one key visible", "a hidden key far above", "visible keys far below"}
NO_EMPTY = {"a query that sees nothing", "no query sees anything"}
NO_HEADS = {"as many samples as heads", "B, H, T, S all different"}
SELF = {"another number of queries", "B, H, T, S all different"}
ONE_HEAD = {"as many samples as heads"}
NOT_HERE: dict[str, set[str]] = {
    **dict.fromkeys(
        ("simple-attention", "attention-backward", "online-softmax", "cross-attention", "additive-attention"),
        NO_MASK | NO_EMPTY | NO_HEADS,
    ),
    "self-attention": NO_MASK | NO_EMPTY | NO_HEADS | SELF,
    "multi-head-attention": NO_MASK | NO_EMPTY | NO_HEADS | SELF,
    "gqa": NO_MASK | NO_EMPTY | NO_HEADS,
    "kv-cache": NO_EMPTY | NO_HEADS,  # the causal mask leaves the first query one key, and hides nothing from the last
    "flash-tiles": NO_HEADS,
    "scaled-dot-product": set(),
    "scaled-dot-product-module": set(),
    "bug-mask-polarity": NO_EMPTY | SELF | ONE_HEAD,
    "bug-padded-queries": NO_EMPTY | SELF,
    "bug-mask-beside-heads": NO_EMPTY,
    "bug-nan-after-masked-row": ONE_HEAD,
    "single-head-manual": NO_MASK | NO_EMPTY | SELF | ONE_HEAD,
    "masked-self-attention-module": NO_EMPTY | SELF | ONE_HEAD,
    "self-attention-module": NO_EMPTY | SELF,
    "multi-head-self-attention-module": NO_EMPTY | SELF,
    "encoder-block": NO_EMPTY | SELF,
    "decoder-block": NO_EMPTY | SELF,
    "encoder-layer": NO_EMPTY | SELF,
    "decoder-layer": NO_EMPTY | SELF,
}
"""Edge cases that do not apply: no mask in the task; no fully masked rows; no heads or samples; self-attention only."""


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_edge_case_occurs(name: str, seed: int) -> None:
    grader = exercise(name).grader
    assert grader is not None
    calls = [call for call in grader.cases(np.random.default_rng(seed)) if call.target not in ("compute_qkv", "finish")]
    found = [SEEN[name](call) for call in calls]
    missing = [corner for corner, occurs in CORNERS.items() if not any(map(occurs, found))]
    assert set(missing) <= NOT_HERE[name], set(missing) - NOT_HERE[name]


def test_the_width_of_a_head_is_never_the_number_of_heads_alone() -> None:
    """If both were equal in every call, mixing them up would not be detected."""
    for name in ("self-attention-module", "multi-head-self-attention-module", "encoder-layer", "decoder-layer"):
        grader = exercise(name).grader
        assert grader is not None
        sizes = [call.instance.args[:2] for call in grader.cases(np.random.default_rng(0)) if call.instance]
        assert {d_model // heads == heads for d_model, heads in sizes if heads > 1} >= {False}
        assert len({d_model // heads for d_model, heads in sizes}) >= 3


# --- printed examples ---------------------------------------------------------------------------------------

CODE = [row.id for row in entries() if row.kind != "sheet"]


@pytest.mark.parametrize("name", CODE)
def test_the_example_of_the_task_is_run(name: str) -> None:
    tried = exercise(name)
    assert tried.grader is not None
    calls = tried.grader.cases(np.random.default_rng(0))
    targets = "|".join(dict.fromkeys(call.target for call in calls))
    for language in LANGUAGES:
        lines = [line for line in getattr(tried.task, language).splitlines() if line.startswith("    >>>")]
        printed = sum(len(re.findall(rf"\b(?:{targets})\(", line)) for line in lines)
        assert sum(call.about == "example" for call in calls) == printed + (name == "scaled-dot-product-module")


def test_the_first_call_of_simple_attention_is_the_printed_example() -> None:
    grader = exercise("simple-attention").grader
    assert grader is not None
    Q, K, V = grader.cases(np.random.default_rng(0))[0].args
    assert (Q.tolist(), K.tolist(), V.tolist()) == ([[1, 0]], [[1, 0], [0, 1]], [[5, 0], [0, 10]])


# --- the edges themselves -----------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 4))
def test_queries_and_keys_give_the_exact_scores(seed: int, T: int, S: int) -> None:
    rng = np.random.default_rng(seed)
    for scores in edge_inputs.SCORES.values():
        wanted = scores(rng, T, S)
        q, k = (x.astype(np.float32) for x in edge_inputs.with_scores(rng, wanted))
        np.testing.assert_array_equal(q @ k.T / 2, wanted)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 4))
def test_masks_leave_and_hide_something(seed: int, T: int, S: int) -> None:
    visible = edge_inputs.some_visible(np.random.default_rng(seed), T, S)
    assert visible.any(-1).all()
    assert not visible.all(-1).any()


def test_every_edge_case_has_a_message() -> None:
    rng = np.random.default_rng(0)
    made = [*edge_inputs.edges(rng, 3, 4), *edge_inputs.masked_edges(rng, 3, 4, empty_rows=True)]
    assert {f"case-{edge.about}" for edge in made} <= set(catalogue())
