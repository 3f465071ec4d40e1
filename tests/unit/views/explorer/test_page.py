"""`trace.html`: one file that loads nothing, in which no token is code, and which is written whole or not at all."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from regard.errors import ArgumentError, FileError
from regard.trace import Trace
from regard.trace.trace import ScaleName
from regard.views.explorer.answers import Answer, read_compressed

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
