"""The HTML page: one self-contained file with the weights themselves, small for any text length."""

import base64
import html.parser
import json
import re
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from regard import Record, Trace
from regard.errors import ArgumentError, FileError, NotKeptError
from regard.messages import LANGUAGES
from regard.messages.page import MESSAGES
from regard.reference import softmax
from regard.trace.trace import ScaleName
from regard.views import page as pages
from regard.views.page import page, page_payload, page_script, page_style
from regard.views.picture import picture
from regard.views.scales import Scale

SCRIPT = page_script()
MOON = ["æľ", "Ī", "Ġun", "likely"]


def weights(*shape: int) -> np.ndarray:
    return softmax(np.random.default_rng(0).normal(size=shape))


class Scripts(html.parser.HTMLParser):
    """The text of every script by its id, and the address of every tag that has one."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: dict[str | None, str] = {}
        self.addresses: list[str | None] = []
        self._inside: str | None = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inside = given.get("id") if tag == "script" else ""
        self.addresses += [given[name] for name in ("src", "href") if name in given]

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


def parts(text: str) -> tuple[dict[str, Any], np.ndarray]:
    found = Scripts(text).scripts
    return json.loads(found["data"]), np.frombuffer(zlib.decompress(base64.b64decode(found["maps"])), "<f2")


def test_the_page_holds_the_weights_of_the_trace() -> None:
    w = np.where(np.tri(5, dtype=bool), weights(1, 3, 5, 5), 0)
    w /= w.sum(-1, keepdims=True)
    w[0, 0, 4] = [1 - 1e-12, 1e-12, 0, 0, 0]
    data, maps = parts(page(Trace.from_weights(w, list("abcde"), name="h.0.attn")))
    assert maps.astype(float) == pytest.approx(w.ravel(), rel=1e-3, abs=1e-7)
    assert ((maps == 0) == (w.ravel() == 0)).all()  # a tiny weight is not masked
    (record,) = data["records"]
    assert [record[name] for name in ("name", "kind", "heads", "R", "C", "high", "wide")] == [
        "h.0.attn",
        "self",
        3,
        5,
        5,
        1,
        1,
    ]
    assert data["labels"][record["keys"]] == list("abcde")
    assert record["first"] == pytest.approx(w[0, :, :, 0].mean(-1), abs=1e-4)


def test_the_page_loads_nothing_and_tokens_cannot_inject_code() -> None:
    evil = "</script><script>alert(1)</script>{{maps}}"
    text = page(Trace.from_weights(weights(2, 2), [evil, "<!--"], name=evil))
    assert Scripts(text).addresses == []
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in text
    data, maps = parts(text)
    assert data["records"][0]["name"].startswith("</script>")
    assert len(maps) == 4
    assert "innerHTML" not in SCRIPT


def test_parts_of_characters_are_merged() -> None:
    trace = Trace.from_weights(weights(1, 2, 4, 4), MOON)
    data, _ = parts(page(trace))
    assert data["labels"] == [["月", "␣un", "likely"]]
    assert data["records"][0]["merged"] == "characters"
    data, maps = parts(page(trace, merge="words"))
    assert data["labels"] == [["月", "unlikely"]]
    assert len(maps) == 2 * 2 * 2
    data, _ = parts(page(trace, merge="tokens"))
    assert data["labels"] == [["⟨E6 9C⟩", "⟨88⟩", "␣un", "likely"]]


@pytest.mark.parametrize("length", [10_000, 1_000_000])
def test_one_layer_of_twelve_heads_is_below_five_megabytes(length: int) -> None:
    bins = -(-length // -(-length // 256))
    record = Record(shape=(1, 12, length, length), map=weights(1, 12, bins, bins).astype(np.float32))
    tokens = ["Ġattention"] * length
    text = page(Trace([record.with_tokens(tokens, tokens)]))
    assert len(text.encode()) < 5e6
    data, _ = parts(text)
    assert data["records"][0]["wide"] == -(-length // 256)
    assert data["labels"] == []  # cells of several tokens are labelled by positions


def test_many_layers_are_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_CELLS", 4 * 32 * 32)
    layers = Trace(Trace.from_weights(weights(2, 100, 100), name=f"h.{i}")[0] for i in range(2))
    data, maps = parts(page(layers))
    assert len(maps) <= 4 * 32 * 32
    assert {record["wide"] for record in data["records"]} == {4}
    assert maps.reshape(-1, 25).sum(-1, dtype=float) == pytest.approx(1, abs=2e-2)


def test_a_layer_and_a_sample_are_selected() -> None:
    w = weights(2, 1, 3, 3)
    trace = Trace([Trace.from_weights(torch.tensor(w), name=f"h.{i}")[0] for i in range(2)])
    data, maps = parts(page(trace, layer="h.1", sample=1))
    assert [record["name"] for record in data["records"]] == ["h.1"]
    assert (data["records"][0]["sample"], data["records"][0]["samples"]) == (1, 2)
    assert maps.astype(float) == pytest.approx(w[1].ravel(), rel=1e-3)


@pytest.mark.parametrize("shape", [(1, 2, 0, 3), (1, 2, 3, 0), (1, 1, 1, 1)])
def test_empty_and_single_cell_maps_have_a_page(shape: tuple[int, ...]) -> None:
    data, maps = parts(page(Trace.from_weights(np.ones(shape))))
    assert len(maps) == np.prod(shape)
    assert data["records"][0]["heads"] == shape[1]


def test_nan_is_kept() -> None:
    w = weights(3, 3)
    w[1] = np.nan
    assert np.isnan(parts(page(Trace.from_weights(w)))[1]).sum() == 3


# --- payload ---------------------------------------------------------------------------------------------


def test_the_payload_is_plain_json_and_compressed_half_floats() -> None:
    w = weights(1, 2, 3, 4)
    payload = page_payload(Trace.from_weights(w, name="h.0.attn"), lang="zh", scale="log")
    data = json.loads(json.dumps(payload.data))
    assert set(data) == {
        *("lang", "scale", "scales", "open", "texts", "words", "colours", "nan", "tables", "labels", "records")
    }
    assert (data["lang"], data["scale"], data["open"], data["texts"]) == ("zh", "log", [0, 0], None)
    assert data["scales"] == list(get_args(ScaleName))
    assert np.frombuffer(zlib.decompress(payload.maps), "<f2").astype(float) == pytest.approx(w.ravel(), rel=1e-3)
    (record,) = data["records"]
    assert [len(record["tables"][name]) for name in data["scales"]] == [2] * len(data["scales"])
    assert len(data["colours"]) == 64
    assert data["colours"][0] == {"rgb": [68, 1, 84], "text": "#fff"}
    assert data["colours"][-1] == {"rgb": [253, 231, 37], "text": "#000"}
    assert data["nan"]["rgb"] == [214, 39, 40]


@pytest.mark.parametrize("name", get_args(ScaleName))
@pytest.mark.parametrize("first", [0.0, 4.0])
def test_a_table_has_the_colours_of_its_scale(name: ScaleName, first: float) -> None:
    """With and without a sink, so with and without a logarithmic threshold."""
    scores = np.random.default_rng(0).normal(size=(1, 12, 12)) + first * (np.arange(12) == 0)
    trace = Trace.from_weights(softmax(scores))
    data = page_payload(trace).data
    table = data["tables"][data["records"][0]["tables"][name][0]]
    drawn = picture(trace[0], 0, 0, name)
    scale = Scale.of([drawn])
    assert table["boundaries"] == sorted(table["boundaries"])
    assert len(table["boundaries"]) == len(data["colours"]) - 1
    shown = drawn.cells[drawn.cells > 0]
    found = [bisect_right(table["boundaries"], weight) for weight in shown]
    assert found == pytest.approx(63 * scale.level(shown), abs=0.501)
    assert (table["threshold"] is None) == (scale.log_threshold is None)
    texts, numbers = zip(*table["legend"], strict=True)
    assert (numbers[0], numbers[-1]) == (0, 63)
    assert [float(text.removeprefix("≤ ")) for text in texts] == pytest.approx(
        [scale.weight(level) for level in scale.swatches()], rel=0.06
    )


def test_equal_scales_share_a_table() -> None:
    data = page_payload(Trace.from_weights(np.stack([np.eye(4)] * 3))).data
    assert all(len(set(indices)) == 1 for indices in data["records"][0]["tables"].values())
    assert len(data["tables"]) == len(data["scales"])


def test_the_script_defines_no_scale_and_the_style_only_its_own_elements() -> None:
    assert not re.search(r"sqrt|Math\.log\(|ceiling|\bviridis", SCRIPT)
    assert "document.getElementById" not in SCRIPT
    assert not re.search(r"^(let|var) |window\.\w+ =|globalThis", SCRIPT, flags=re.MULTILINE)
    assert SCRIPT.rstrip().endswith("export { mount };")
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", page_style())
    named = [each.strip() for group in selectors for each in group.split(",")]
    assert all(each.startswith(".regard-trace") for each in named if not each.startswith("@")), named


# --- opening head ----------------------------------------------------------------------------------------


def layers(kind: Any, *maps: np.ndarray, tokens: tuple[list[str], list[str]] | None = None) -> Trace:
    rows = tokens or (None, None)
    named = ((w, f"{'decoder.' * (kind == 'cross')}layers.{i}.{kind}") for i, w in enumerate(maps))
    return Trace(Trace.from_weights(w, *rows, name=name, kind=kind)[0] for w, name in named)


EVEN, DIAGONAL = np.full((4, 4), 0.25), np.eye(4)


def test_a_translation_opens_at_the_head_that_aligns_best() -> None:
    tokens = ["<bos>", "我", "爱", "你"], ["I", "love", "you", "<eos>"]
    cross = layers("cross", np.stack([EVEN, EVEN]), np.stack([EVEN, DIAGONAL]), tokens=tokens)
    trace = Trace([*layers("encoder", np.stack([DIAGONAL, DIAGONAL])), *cross])
    data, _ = parts(page(trace))
    assert data["open"] == [2, 1]
    assert data["texts"] == ["I love you", "我爱你"]
    assert [record["titles"]["en"] for record in data["records"]] == [
        "layer 0 · encoder self-attention",
        "layer 0 · cross-attention",
        "layer 1 · cross-attention",
    ]
    assert data["records"][2]["titles"]["zh"] == "第 1 层 · 交叉注意力"
    assert data["records"][2]["name"] == "decoder.layers.1.cross"


def test_a_decoder_opens_at_the_clearest_pattern() -> None:
    before = np.eye(6)[[0, 0, 1, 2, 3, 4]]
    data, _ = parts(page(layers("decoder", np.full((2, 6, 6), 1 / 6), np.stack([np.full((6, 6), 1 / 6), before]))))
    assert data["open"] == [1, 1]
    assert data["texts"] is None


def test_a_long_text_opens_at_its_first_head() -> None:
    record = Record(shape=(1, 2, 600, 600), map=weights(1, 2, 200, 200), name="h.0", kind="decoder")
    assert parts(page(Trace([record])))[0]["open"] == [0, 0]


def test_layers_with_equal_titles_keep_their_paths() -> None:
    names = ("stages.0.blocks.0.attn", "stages.0.blocks.1.attn", "attention", "h.1.attn", "h.1.attn")
    data, _ = parts(page(Trace(Trace.from_weights(np.eye(2), name=name)[0] for name in names)))
    found = [record["titles"]["en"] for record in data["records"]]
    assert found == [*names[:3], "layer 1 · self-attention", "layer 1 · self-attention#1"]


# --- a part ------------------------------------------------------------------------------------------------


def test_a_part_has_its_weights_and_position() -> None:
    w = weights(1, 2, 90, 90)
    trace = Trace.from_weights(w, [f"w{at}" for at in range(90)], name="h.0.attn", map=16)
    data, maps = parts(page(trace, rows=slice(70, 75), cols=slice(60, 70)))
    assert maps.astype(float) == pytest.approx(w[0, :, 70:75, 60:70].ravel(), rel=1e-3)
    (record,) = data["records"]
    assert record["part"] == {"rows": "70–74", "cols": "60–69", "T": 90, "S": 90, "top": 70, "left": 60}
    assert data["labels"][record["queries"]] == ["w70", "w71", "w72", "w73", "w74"]
    assert (record["firstColumn"], record["first"], record["merged"]) == (-1, [None, None], None)
    assert "renormalised" not in data["scales"]
    assert "renormalised" in parts(page(trace, rows=slice(70, 75)))[0]["scales"]
    whole, _ = parts(page(trace))
    assert whole["records"][0]["part"] is None
    assert whole["scales"] == list(get_args(ScaleName))


def test_a_part_is_never_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_CELLS", 2 * 20 * 20)
    trace = Trace.from_weights(weights(1, 2, 90, 90), map=16)
    data, _ = parts(page(trace, rows=slice(0, 20), cols=slice(0, 20)))
    assert data["records"][0]["R"] == 20
    with pytest.raises(ArgumentError, match=r"2 heads of 20 rows × 21 cols.*20 × 20 of each.*layer="):
        page(trace, rows=slice(0, 20), cols=slice(0, 21))


# --- words -----------------------------------------------------------------------------------------------


def test_both_languages_are_on_the_page() -> None:
    for lang in LANGUAGES:
        text = page(Trace.from_weights(np.eye(2)), lang=lang)
        assert f"<title>{getattr(MESSAGES['page-title'], lang)}</title>" in text
        data, _ = parts(text)
        assert data["lang"] == lang
        assert data["words"]["en"].keys() == data["words"]["zh"].keys()


def test_the_script_uses_every_message_and_no_other() -> None:
    used = {*re.findall(r'say\(view, "([\w-]+)"', SCRIPT), *re.findall(r'"data-(?:text|label)": "(\w+)"', SCRIPT)}
    used |= {"layer", "scale", "looks", "seen", "noscript"}
    used |= set(get_args(ScaleName))
    used |= {f"kind-{kind}" for kind in ("self", "encoder", "decoder", "cross")}
    used |= {f"rows-{which}" for which in ("write", "read", "look")}
    used |= {f"merged-{by}" for by in ("characters", "words")}
    assert used == {key.removeprefix("page-") for key in MESSAGES}


# --- the file --------------------------------------------------------------------------------------------


def test_the_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "注意力.html"
    Trace.from_weights(np.eye(2), ["月", "光"]).html(target, lang="zh")
    assert target.read_text(encoding="utf-8").startswith('<!doctype html>\n<html lang="zh-CN">')
    with pytest.raises(FileError, match="nowhere"):
        Trace.from_weights(np.eye(2)).html(tmp_path / "nowhere" / "a.html")
    with pytest.raises(NotKeptError, match=r"See\(map=256\)"):
        Trace([Record(shape=(1, 2, 3, 3))]).html(target)
    with pytest.raises(ArgumentError, match="no records"):
        Trace().html(target)
    assert "月" in target.read_text(encoding="utf-8")
