"""`trace.html`: one file that loads nothing, in which no token is code, and which is written whole or not at all."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard import Mask, See
from regard.errors import ArgumentError, FileError
from regard.records import Record
from regard.trace import Trace
from regard.trace.trace import ScaleName
from regard.views.explorer.answers import Answer, read_compressed
from regard.views.explorer.page import page, stored_answers
from regard.views.explorer.source import TraceSource

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202eevil",
    "x" * 10**6,
    "{{script}}",
]


class Page(HTMLParser):
    """The elements of a page, and what its scripts hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self._open: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not {"src", "href", "onerror", "onload"} & set(given)
        if tag == "script":
            self._open = given
            self.scripts.append((given, ""))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            given, before = self.scripts[-1]
            self.scripts[-1] = given, before + data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None

    @property
    def answers(self) -> dict[str, Answer]:
        held = ((str(given["id"]), text) for given, text in self.scripts if "id" in given)
        return {name.removeprefix("regard-"): read_compressed(text) for name, text in held}


def page_of(trace: Trace, path: Path, **options: object) -> Page:
    trace.html(path / "page.html", **options)  # type: ignore[arg-type]
    return Page((path / "page.html").read_text(encoding="utf-8"))


def test_the_page_holds_the_weights_of_the_trace(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random((2, 7, 7))
    weights /= weights.sum(-1, keepdims=True)
    answers = page_of(Trace.from_weights(weights, list("abcdefg")), tmp_path).answers
    for head in (0, 1):
        cells = answers[f"head-0-{head}"].arrays["cells"].astype(float)
        np.testing.assert_allclose(cells, weights[head], rtol=1e-3)


def test_hostile_tokens_are_data(tmp_path: Path) -> None:
    page = page_of(Trace.from_weights(np.eye(5), HOSTILE, name="</title><script>alert(2)</script>"), tmp_path)
    assert page.tags.count("script") == 3  # the overview, one head, and the one script
    assert "img" not in page.tags
    labels = page.answers["overview"].about["labels"][0]
    assert labels[0] == HOSTILE[0]
    assert labels[4] == "{{script}}"
    assert (tmp_path / "page.html").stat().st_size < 400_000


def test_the_policy_allows_the_one_script_and_nothing_else(tmp_path: Path) -> None:
    page = page_of(Trace.from_weights(np.eye(2)), tmp_path)
    ((given, script),) = [each for each in page.scripts if "id" not in each[0]]
    assert given == {"type": "module"}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'")
    assert not re.findall(r"https?://(?!www\.w3\.org/)", (tmp_path / "page.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_empty_and_single_cell_maps_have_a_page(tmp_path: Path, shape: tuple[int, int]) -> None:
    answers = page_of(
        Trace.from_weights(np.ones(shape)[:, :1] if shape == (1, 1) else np.zeros(shape)), tmp_path
    ).answers
    assert answers["head-0-0"].arrays["cells"].shape == shape


def test_nan_is_kept(tmp_path: Path) -> None:
    weights = np.array([[1.0, 0.0], [np.nan, np.nan]])
    cells = page_of(Trace.from_weights(weights), tmp_path).answers["head-0-0"].arrays["cells"]
    np.testing.assert_array_equal(np.isnan(cells), np.isnan(weights))


def test_a_layer_and_a_sample_are_selected(tmp_path: Path) -> None:
    weights = np.stack([np.eye(2), np.eye(2)[::-1]])[:, None]
    trace = Trace.from_weights([weights, weights[::-1]], name="h")
    answers = page_of(trace, tmp_path, layer=1, sample=1, lang="zh").answers
    overview = answers["overview"].about
    assert [record["name"] for record in overview["records"]] == ["h.1"]
    assert (overview["records"][0]["sample"], overview["records"][0]["samples"]) == (1, 2)
    np.testing.assert_array_equal(answers["head-0-0"].arrays["cells"], np.eye(2))
    assert 'lang="zh-CN"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_part_has_its_weights_and_position(tmp_path: Path) -> None:
    weights = np.tril(np.ones((600, 600))) / np.arange(1, 601)[:, None]
    trace = Trace.from_weights(weights, list(map(str, range(600))))
    answers = page_of(trace, tmp_path, rows=slice(500, 510), cols=slice(3, 8)).answers
    entry = answers["overview"].about["records"][0]
    assert entry["part"] == {"top": 500, "left": 3, "T": 600, "S": 600}
    assert (entry["T"], entry["S"]) == (10, 5)
    np.testing.assert_allclose(answers["head-0-0"].arrays["cells"], weights[500:510, 3:8], rtol=1e-3)
    assert "renormalised" not in answers["overview"].about["scales"]


@pytest.mark.parametrize("scale", ["renormalised"])
def test_a_part_without_all_keys_cannot_be_normalised(tmp_path: Path, scale: ScaleName) -> None:
    trace = Trace.from_weights(np.eye(8))
    with pytest.raises(ArgumentError, match="renormalised"):
        trace.html(tmp_path / "page.html", rows=slice(0, 4), cols=slice(0, 4), scale=scale)
    assert not (tmp_path / "page.html").exists()


def test_the_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("before", encoding="utf-8")
    with pytest.raises(ArgumentError):
        Trace().html(target)
    assert target.read_text(encoding="utf-8") == "before"
    with pytest.raises(FileError):
        Trace.from_weights(np.eye(2)).html(tmp_path / "missing" / "page.html")


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
    assert can == {"rectangle": "none", "explain": "none", "effect": False, "queries": None}
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


@pytest.mark.parametrize("most_labels", [199, 200])
def test_maps_are_pooled_until_they_fit(monkeypatch: pytest.MonkeyPatch, most_labels: int) -> None:
    monkeypatch.setattr("regard.views.explorer.page.BUDGET", 60_000)
    rng = np.random.default_rng(0)
    weights = rng.random((4, 200, 200))
    weights /= weights.sum(-1, keepdims=True)
    monkeypatch.setattr("regard.views.explorer.overview.MOST_LABELS", most_labels)
    source = TraceSource(Trace.from_weights(weights, list(map(str, range(200)))))
    texts = stored_answers(source)
    assert sum(len(text) for name, text in texts.items() if name.startswith("head")) <= 60_000
    entry = read_compressed(texts["overview"]).about["records"][0]
    head = read_compressed(texts["head-0-3"])
    assert (entry["R"], entry["high"]) == (head.about["R"], head.about["high"])
    assert head.arrays["cells"].shape == (entry["R"], entry["C"])
    assert (entry["labels"]["tokens"]["queries"] is None) == (most_labels < 200)
    np.testing.assert_allclose(head.arrays["cells"].astype(float).sum(-1), 1, atol=5e-3)


def test_numbers_of_a_short_text_are_stored() -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 5, 4), dtype=np.float32)
    trace = Trace(regard.attend(q, k, v, see=See(qk=True, v=True))[1])
    answers = read(TraceSource(trace))
    assert {"numbers-0-0", "numbers-0-1"} <= set(answers)
    can = answers["overview"].about["records"][0]["can"]
    assert (can["explain"], can["queries"]) == ("full", [None, None])


def test_numbers_that_do_not_fit_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.explorer.page.SHARE_OF_NUMBERS", 0.0)
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 5, 4), dtype=np.float32)
    trace = Trace(regard.attend(q, k, v, see=See(qk=True, v=True))[1])
    answers = read(TraceSource(trace))
    assert "numbers-0-0" not in answers
    can = answers["overview"].about["records"][0]["can"]
    assert (can["explain"], can["queries"]) == ("full", [[], []])  # recorded, but not in this file


def gpt2_like(layers: int, T: int) -> Trace:
    """Layers of 12 heads of 64 dimensions; head 5 of the last one attends to the token before."""
    rng = np.random.default_rng(0)
    tokens, records = [f"t{i}" for i in range(T)], []
    for layer in range(layers):
        q, k, v = rng.standard_normal((3, 1, 12, T, 64), dtype=np.float32)
        if layer == layers - 1:
            q[0, 5, 1:] = 2 * k[0, 5, :-1]
        record = regard.attend(q, k, v, mask=Mask.causal(), see=See(qk=True, v=True))[1]
        records.append(record.named(f"h.{layer}.attn", "decoder").with_tokens(tokens, tokens))
    return Trace(records)


def test_every_head_of_a_gpt2_is_explained_in_its_file() -> None:
    source = TraceSource(gpt2_like(12, 60))
    texts = stored_answers(source)
    records = read_compressed(texts["overview"]).about["records"]
    assert [record["can"]["queries"] for record in records] == [[None] * 12] * 12
    assert len(page(source).encode()) <= 15 * MEGABYTE


def test_the_head_that_opens_is_explained_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.explorer.page.BUDGET", 500_000)
    source = TraceSource(gpt2_like(2, 60))
    queries = [record["can"]["queries"] for record in read(source)["overview"].about["records"]]
    assert source.opening == (1, 5)
    assert queries[1][5] is None
    assert 0 < sum(held is None for layer in queries for held in layer) < 24
    assert all(held in (None, []) for layer in queries for held in layer)


@pytest.mark.parametrize("T", [200, 512])
def test_a_longer_text_has_the_numbers_of_some_queries(T: int) -> None:
    trace = gpt2_like(1, T)
    source = TraceSource(trace)
    answers = read(source)
    entry = answers["overview"].about["records"][0]
    queries = entry["can"]["queries"]
    opening = source.opening[1]
    without = [head for head in range(12) if head != opening and not source.patterns[0].score[head]]
    assert len(without) > 5
    assert all(queries[head] == [] for head in without)
    assert (entry["R"] - 1) * entry["high"] in queries[opening]
    assert np.asarray(trace[0].weights(rows=queries[5][0], head=5)).max() > 0.9  # the strongest query of its pattern
    for head, query in [(number, query) for number in (5, opening) for query in queries[number]]:
        stored, wanted = answers[f"numbers-0-{head}-{query}"], source.explain(0, head, query)
        assert stored.about["keys"] == wanted.about["keys"]
        assert len(stored.about["keys"]) == 64
        for name, values in wanted.arrays.items():
            np.testing.assert_array_equal(stored.arrays[name], values)
    assert len(page(source).encode()) <= 5 * MEGABYTE


def test_a_part_holds_no_numbers() -> None:
    answers = read(TraceSource(gpt2_like(1, 60), rows=slice(10, 20)))
    assert answers["overview"].about["records"][0]["can"]["queries"] == [[]] * 12


@pytest.mark.parametrize("T", [600, 4096])
def test_one_layer_of_twelve_heads_is_at_most_five_megabytes(T: int) -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 12, T, 16), dtype=np.float32)
    tokens = [f"token{i}" for i in range(T)]
    record = regard.attend(2 * q, k, k, see=See(qk=True))[1].with_tokens(tokens, tokens)  # no mask: the worst case
    assert len(page(TraceSource(Trace(record))).encode()) <= 5 * MEGABYTE


@pytest.mark.parametrize("causal", [pytest.param(True, marks=pytest.mark.long), False])  # a mask makes it smaller
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
