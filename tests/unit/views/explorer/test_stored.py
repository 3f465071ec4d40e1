"""What a file stores fits its budget at any length, and holds exact parts around the strongest places."""

from typing import Any

import numpy as np
import pytest

import regard
from regard import Mask, See
from regard.records import Record
from regard.trace import Trace
from regard.views.explorer.answers import Answer, read_compressed
from regard.views.explorer.page import page
from regard.views.explorer.source import TraceSource
from regard.views.explorer.stored import stored_answers

MEGABYTE = 10**6


def read(source: TraceSource) -> dict[str, Answer]:
    return {name: read_compressed(text) for name, text in stored_answers(source).items()}


def long_record(T: int, heads: int = 2, **options: Any) -> Record:
    rng = np.random.default_rng(0)
    q, k = 0.1 * rng.standard_normal((2, 1, heads, T, 8), dtype=np.float32)
    q[..., 0] = k[..., 0] = 0
    q[0, :, T // 2, 0] = k[0, :, T // 4, 0] = 8  # one place that stands out
    tokens = [f"t{i}" for i in range(T)]
    record = regard.attend(q, k, k, mask=Mask.causal(), see=See(map=64, qk=True), **options)[1]
    return record.with_tokens(tokens, tokens)


def test_a_file_stores_every_head_and_says_what_it_can_answer() -> None:
    trace = Trace.from_weights(np.stack([np.eye(6), np.full((6, 6), 1 / 6)]), list("abcdef"))
    answers = read(TraceSource(trace))
    assert list(answers) == ["overview", "head-0-0", "head-0-1"]
    can = answers["overview"].about["records"][0]["can"]
    assert can == {"rectangle": "none", "explain": "none", "effect": False}
    np.testing.assert_array_equal(answers["head-0-0"].arrays["cells"], np.eye(6))


def test_levels_are_exact_parts_that_lead_to_the_strongest_place() -> None:
    record = long_record(2048)
    answers = read(TraceSource(Trace(record)))
    overview = answers["overview"].about
    assert overview["records"][0]["can"]["rectangle"] == "stored"
    levels = [level for level in overview["levels"] if level["head"] == 1]
    assert {level["high"] for level in levels} == {4, 1}
    exact = record.weights(head=1)[0]
    for level in levels:
        (a, b), (c, d), size = level["rows"], level["cols"], level["high"]
        answer = answers[f"level-{level['id']}"]
        expected = exact[a:b, c:d].reshape((b - a) // size, size, (d - c) // size, size).sum(-1).mean(1)
        np.testing.assert_allclose(answer.arrays["cells"].astype(float), expected, rtol=2e-3, atol=1e-6)
    assert any(a <= 1024 < b and c <= 512 < d for (a, b), (c, d) in ((lv["rows"], lv["cols"]) for lv in levels))
    single = next(level for level in levels if level["high"] == 1)
    labels = answers[f"level-{single['id']}"].about["labels"]
    assert labels["queries"][0] == f"t{single['rows'][0]}"


def test_the_end_of_the_diagonal_is_stored() -> None:
    levels = read(TraceSource(Trace(long_record(2048))))["overview"].about["levels"]
    assert any(level["rows"][1] == level["cols"][1] == 2048 and level["high"] == 1 for level in levels)


def test_maps_are_pooled_until_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.explorer.stored.BUDGET", 60_000)
    rng = np.random.default_rng(0)
    weights = rng.random((4, 200, 200))
    weights /= weights.sum(-1, keepdims=True)
    source = TraceSource(Trace.from_weights(weights, list(map(str, range(200)))))
    texts = stored_answers(source)
    assert sum(len(text) for name, text in texts.items() if name.startswith("head")) <= 60_000
    entry = read_compressed(texts["overview"]).about["records"][0]
    head = read_compressed(texts["head-0-3"])
    assert (entry["R"], entry["high"]) == (head.about["R"], head.about["high"])
    assert head.arrays["cells"].shape == (entry["R"], entry["C"])
    assert entry["labels"]["tokens"]["queries"] is None
    np.testing.assert_allclose(head.arrays["cells"].astype(float).sum(-1), 1, atol=5e-3)


def test_numbers_of_a_short_text_are_stored() -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 5, 4), dtype=np.float32)
    trace = Trace(regard.attend(q, k, v, see=See(qk=True, v=True))[1])
    answers = read(TraceSource(trace))
    assert {"numbers-0-0", "numbers-0-1"} <= set(answers)
    assert answers["overview"].about["records"][0]["can"]["explain"] == "full"


def test_numbers_that_do_not_fit_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.explorer.stored.SHARE_OF_NUMBERS", 0.0)
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 5, 4), dtype=np.float32)
    trace = Trace(regard.attend(q, k, v, see=See(qk=True, v=True))[1])
    answers = read(TraceSource(trace))
    assert "numbers-0-0" not in answers
    assert answers["overview"].about["records"][0]["can"]["explain"] == "none"


@pytest.mark.parametrize("T", [600, 4096])
def test_one_layer_of_twelve_heads_is_at_most_five_megabytes(T: int) -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 12, T, 16), dtype=np.float32)
    tokens = [f"token{i}" for i in range(T)]
    record = regard.attend(2 * q, k, k, see=See(qk=True))[1].with_tokens(tokens, tokens)  # no mask: the worst case
    assert len(page(TraceSource(Trace(record))).encode()) <= 5 * MEGABYTE


@pytest.mark.parametrize("causal", [True, False])
def test_twelve_layers_of_twelve_heads_are_at_most_fifteen_megabytes(causal: bool) -> None:
    rng = np.random.default_rng(0)
    weights = np.exp(rng.standard_normal((1, 12, 512, 512), dtype=np.float32) * 2)
    weights = np.tril(weights) if causal else weights
    weights /= weights.sum(-1, keepdims=True)
    trace = Trace.from_weights([weights] * 12, [f"token{i}" for i in range(512)])
    assert len(page(TraceSource(trace)).encode()) <= 15 * MEGABYTE


def test_a_million_tokens_open() -> None:
    T = 2**20
    rng = np.random.default_rng(0)
    pooled = np.tril(rng.random((1, 12, 256, 256), dtype=np.float32)) + 1e-9
    record = Record(shape=(1, 12, T, T), map=pooled / pooled.sum(-1, keepdims=True))
    source = TraceSource(Trace(record))
    entry = source.overview().about["records"][0]
    assert (entry["T"], entry["high"], entry["can"]["rectangle"]) == (T, 4096, "none")
    assert len(page(source).encode()) <= 5 * MEGABYTE
