"""The HTML page in a real browser: no console output, correct drawing, both languages.

Uses the program in REGARD_CHROMIUM, else `chromium` on the path; without either, these tests fail. `make test` leaves
them out: a browser is a system package.
"""

import base64
import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard import Record, Trace
from regard.messages import LANGUAGES, Language, say
from regard.reference import softmax
from regard.views.page import page_payload, page_script, page_style

CHROMIUM = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
    "--dump-dom",
]
TOKENS = ["床", "前", "明", "月", "光"]
PROBE = """
setTimeout(() => {
  const { map } = view.ui, all = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
  const found = document.body.dataset, saved = pictureToSave(view), { width, height } = map;
  found.colours = new Set(new Uint32Array(all.buffer)).size;
  found.saved = saved.width >= 2 * width && saved.height > 2 * height;
  const mark = cssValue(view, "--mark").match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16)).join();
  const pixels = saved.getContext("2d").getImageData(0, 0, saved.width, saved.height).data;
  found.marked = pixels.some((_, i) => i % 4 === 0 && pixels.slice(i, i + 3).join() === mark);
  const { colours } = view.data, levels = [...view.cells].filter((value) => value > 0)
    .map((value) => colours.indexOf(colourOf(view, value, view.table)) / (colours.length - 1));
  [found.brightest, found.faintest] =
    [Math.max(...levels), Math.min(...levels)].map((level) => (Math.floor(10 * level) / 10).toFixed(2));
  found.labels = JSON.stringify([view.layout.beside, view.layout.above]);
  const context = document.createElement("canvas").getContext("2d");
  context.font = fontOf(view, 20);
  found.han = widthOf(context, "床");
  const key = new KeyboardEvent("keydown", { key: "d", bubbles: true });
  document.body.dispatchEvent(key);
  found.themed = view.root.dataset.theme;
  document.body.style.width = `${innerWidth - 80}px`;  // a narrower window
}, 2000);
setTimeout(() => {
  const edge = document.body.getBoundingClientRect().right, all = [...document.querySelectorAll("body *:not(.map)")];
  const beyond = all.filter((one) => one.getBoundingClientRect().right > edge);
  document.body.dataset.beyond = beyond.map((one) => one.className || one.tagName).join();
}, 3000);
"""
"""Writes properties of the canvas to data attributes, as pixels are not part of the page's text."""

pytestmark = pytest.mark.web


@pytest.fixture(scope="module", autouse=True)
def browser() -> None:
    assert CHROMIUM, "these tests need Chromium: install it, or set REGARD_CHROMIUM to its path"


def page_dom(trace: Trace, folder: Path, lang: Language, wide: int = 1180, **options: Any) -> str:
    """The DOM of the page after its scripts and the probe ran."""
    end = "</script>\n</body>"
    path = folder / "page.html"
    trace.html(path, lang=lang, **options)
    path.write_text(path.read_text(encoding="utf-8").replace(end, PROBE + end), encoding="utf-8")
    return dom_of(path, wide)


def dom_of(path: Path, wide: int = 1180) -> str:
    """The DOM after the scripts ran. Any console output fails the test."""
    where = f"--window-size={wide},800", f"--user-data-dir={path.parent / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, *where, path.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert not re.findall(r"^.*CONSOLE.*$", done.stderr, flags=re.MULTILINE)
    return done.stdout


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_map_and_the_texts_are_drawn(lang: Language, tmp_path: Path) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 5, 5)) * 3)
    found = page_dom(Trace.from_weights(weights, TOKENS, name="h.0.attn"), tmp_path, lang)
    assert int(re.findall(r'data-colours="(\d+)"', found)[0]) > 10
    assert say("page-looks", lang) in found
    assert probed(found, "themed") == "dark"  # a key pressed without focus
    assert re.search(rf"<title>{say('page-title', lang)}</title>", found)
    assert re.search(r'class="top-keys"><li>.*?[床前明月光]', found, flags=re.DOTALL)
    assert all(token in re.findall(r'class="text">(.*?)</p>', found, flags=re.DOTALL)[0] for token in TOKENS)


def probed(found: str, name: str) -> str:
    return html.unescape(re.findall(rf'data-{name}="(.*?)"', found)[0])


def test_a_saved_picture_has_a_higher_resolution_and_no_selection(tmp_path: Path) -> None:
    found = page_dom(Trace.from_weights(np.eye(3), TOKENS[:3]), tmp_path, "en")
    assert (probed(found, "saved"), probed(found, "marked")) == ("true", "false")


@pytest.mark.parametrize(
    ("tokens", "turned", "thinned"),
    [
        (list("床前明月光") * 4, False, False),
        (list("床前明月光疑是地上霜举头望明月低头") * 4, False, True),
        (["a", "long", "word", "here"] * 8, True, False),
        (["a", "short", "one"], False, False),
    ],
)
def test_labels_are_rotated_all_or_none_and_never_overlap(
    tokens: list[str], turned: bool, thinned: bool, tmp_path: Path
) -> None:
    weights = np.full((len(tokens), len(tokens)), 1 / len(tokens))
    found = page_dom(Trace.from_weights(weights, tokens), tmp_path, "zh")
    beside, above = json.loads(probed(found, "labels"))
    assert above["turned"] == turned
    if tokens[0].isascii() or probed(found, "han") == "20":  # without a Chinese font the characters are narrower
        assert (above["step"] > 1, beside["step"] > 1) == (thinned, thinned)


def test_the_page_opens_at_the_head_that_aligns_best(tmp_path: Path) -> None:
    cross = Trace.from_weights(
        np.stack([np.full((3, 3), 1 / 3), np.eye(3)]),
        ["我", "爱", "你"],
        ["I", "love", "you"],
        name="decoder.layers.1.cross_attention",
        kind="cross",
    )
    found = page_dom(cross, tmp_path, "zh")
    assert "第 1 层 · 交叉注意力 · 3 个查询 × 3 个键 · 行：谁在看；列：被看的 · 头 1" in found
    assert re.search(r'class="texts">I love you → 我爱你<', found)
    assert 'title="decoder.layers.1.cross_attention"' in found


@pytest.mark.parametrize("tokens", [None, [f"w{i}" for i in range(300)]])
def test_a_part_shows_positions_of_the_whole_map(tokens: list[str] | None, tmp_path: Path) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 300, 300)))
    part: dict[str, Any] = {"rows": slice(200, 210), "cols": slice(150, 170)}
    found = page_dom(Trace.from_weights(weights, tokens, name="h.0.attn", map=64), tmp_path, "zh", **part)
    assert "查询 200–209，键 150–169（全图 300 × 300）" in found
    assert re.search(r'class="cell"[^>]*>查询 (w209 \()?209\)? → ', found)
    assert "renormalised" not in re.findall(r'class="scale".*?</select>', found, flags=re.DOTALL)[0]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("wide", [420, 700, 1180])
def test_only_the_map_extends_beyond_a_narrow_page(wide: int, lang: Language, tmp_path: Path) -> None:
    tokens = ["travelled", "across", "the", "mountains", "明月"] * 12
    weights = softmax(np.random.default_rng(0).normal(size=(9, 60, 60)))
    assert probed(page_dom(Trace.from_weights(weights, tokens), tmp_path, lang, wide), "beyond") == ""


def first_token(share: float) -> Trace:
    """Every query attends to the first of five keys with this share, and evenly to the others."""
    weights = np.full((5, 5), (1 - share) / 4)
    weights[:, 0] = share
    return Trace.from_weights(weights, TOKENS)


def test_negligible_weights_are_dark_and_the_largest_is_selected(tmp_path: Path) -> None:
    found = page_dom(first_token(0.9998), tmp_path, "zh")
    assert (probed(found, "brightest"), probed(found, "faintest")) == ("1.00", "0.00")
    assert re.search(r'class="threshold"></p>', found)
    assert "查询 光 (4) → 键 床 (0) · 权重 1.000" in found


def test_a_scale_with_a_threshold_is_explained(tmp_path: Path) -> None:
    found = page_dom(first_token(0.8), tmp_path, "zh")
    assert "0.050 以下按平方根，以上按对数" in found
    assert probed(found, "brightest") == "0.90"


def test_a_script_error_fails_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.page._half_floats", lambda cells: b"")
    with pytest.raises(AssertionError, match="CONSOLE"):
        page_dom(Trace.from_weights(np.eye(3)), tmp_path, "en")


def test_a_long_text_is_drawn(tmp_path: Path) -> None:
    pooled = softmax(np.random.default_rng(0).normal(size=(1, 4, 64, 64)))
    record = Record(shape=(1, 4, 32768, 32768), map=pooled, name="h.0.attn", kind="decoder")
    assert int(re.findall(r'data-colours="(\d+)"', page_dom(Trace([record]), tmp_path, "zh"))[0]) > 10


# --- mount ------------------------------------------------------------------------------------------------

TWO_MOUNTS = """<!doctype html>
<html><head><meta charset="utf-8"><style>{style}</style></head>
<body><div id="one"></div><div id="two"></div><p id="found"></p>
<script>const before = new Set(Object.getOwnPropertyNames(window));</script>
<script type="module">
{script}
const payloads = {payloads}, sent = JSON.stringify(payloads), changes = {{ one: [], two: [] }};
const bytes = Uint8Array.from(atob(payloads[1].maps), (sign) => sign.charCodeAt(0));
const places = ["one", "two"].map((id) => document.getElementById(id));
places.forEach((place) => place.addEventListener("regard-change", (event) => changes[place.id].push(event.detail)));
const one = await mount(places[0], payloads[0]), two = await mount(places[1], {{ ...payloads[1], maps: bytes }});
const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
const shown = (view) => ({{
  lang: view.root.lang, title: view.root.querySelector("h1").textContent, theme: view.root.dataset.theme ?? null,
  scale: view.root.querySelector(".scale").value, head: view.state.head, about: view.ui.about.textContent,
  cell: view.ui.cell.textContent, text: view.ui.text.textContent, ground: getComputedStyle(view.root).backgroundColor,
  image: view.ui.map.toDataURL(),
}});
const start = [one, two].map(shown);
["c", "l", "d", "]"].forEach((key) => press(two.root, key));
press(two.ui.map, "Home");
const pressed = [one, two].map(shown);
two.unmount();
press(one.root, "]");
document.getElementById("found").textContent = JSON.stringify({{
  start, pressed, left: shown(one), empty: places[1].childElementCount === 0, same: JSON.stringify(payloads) === sent,
  globals: Object.getOwnPropertyNames(window).filter((name) => !before.has(name)), changes,
}});
</script></body></html>"""


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two views on one page show: at the start, after keys for the second, and after it was removed."""
    traces = {
        "en": Trace.from_weights(softmax(np.random.default_rng(0).normal(size=(2, 5, 5))), TOKENS, name="h.0.attn"),
        "zh": Trace.from_weights(
            softmax(np.random.default_rng(1).normal(size=(3, 4, 4))), list("abcd"), name="h.1.attn"
        ),
    }
    payloads = []
    for lang in LANGUAGES:
        made = page_payload(traces[lang], lang=lang)
        payloads.append(made.data | {"maps": base64.b64encode(made.maps).decode()})
    path = tmp_path_factory.mktemp("mounts") / "mounts.html"
    values = {"style": page_style(), "script": page_script(), "payloads": json.dumps(payloads)}
    path.write_text(TWO_MOUNTS.format(**values), encoding="utf-8")
    found = re.findall(r'<p id="found">(.*?)</p>', dom_of(path), flags=re.DOTALL)[0]
    return dict(json.loads(html.unescape(found)))


def test_two_mounts_show_their_own_traces(mounts: dict[str, Any]) -> None:
    one, two = mounts["start"]
    assert (one["lang"], two["lang"]) == ("en", "zh-CN")
    assert (one["title"], two["title"]) == (say("page-title", "en"), say("page-title", "zh"))
    assert (one["text"], two["text"]) == ("".join(TOKENS), "abcd")
    assert one["about"].startswith("layer 0 · self-attention · 5 queries × 5 keys")
    assert two["about"].startswith("第 1 层 · 自注意力 · 4 个查询 × 4 个键")


def test_keys_change_only_the_mount_that_receives_them(mounts: dict[str, Any]) -> None:
    (before, _), (one, two) = mounts["start"], mounts["pressed"]
    assert one == before
    assert (two["lang"], two["scale"], two["head"], two["theme"]) == ("en", "linear", 1, "dark")
    assert two["cell"].startswith("query d (3) → key a (0) · weight ")
    assert (one["ground"], two["ground"]) == ("rgb(255, 255, 255)", "rgb(22, 22, 26)")


def test_a_change_is_reported_to_the_element_of_its_mount(mounts: dict[str, Any]) -> None:
    changes = mounts["changes"]
    assert changes["one"] == [{"layer": 0, "head": head, "lang": "en"} for head in (0, 1)]
    assert changes["two"][-1] == {"layer": 0, "head": 1, "lang": "en"}


def test_a_removed_mount_leaves_the_other(mounts: dict[str, Any]) -> None:
    assert mounts["empty"]
    assert mounts["left"]["head"] == 1


def test_mount_adds_no_globals_and_does_not_modify_the_payload(mounts: dict[str, Any]) -> None:
    assert mounts["globals"] == []
    assert mounts["same"]
