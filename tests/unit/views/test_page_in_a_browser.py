"""The page in a real browser: it starts without a complaint, draws, and speaks both languages.

Chromium is asked for by its name, or by what REGARD_CHROMIUM says; where there is none, nothing is tested here.
"""

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
PROBE = """<script>
setTimeout(() => {
  const map = document.getElementById("map"), all = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
  document.body.dataset.colours = new Set(new Uint32Array(all.buffer)).size;
  const kept = pictureToKeep(), { width, height } = map;
  document.body.dataset.kept = kept.width >= 2 * width && kept.height > 2 * height;
  const mark = style("--mark").match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16)).join();
  const pixels = kept.getContext("2d").getImageData(0, 0, kept.width, kept.height).data;
  document.body.dataset.pointed = pixels.some((_, i) => i % 4 === 0 && pixels.slice(i, i + 3).join() === mark);
  const levels = [...state.cells].filter((value) => value > 0).map((value) => levelOf(value, state.colours));
  [document.body.dataset.brightest, document.body.dataset.faintest] =
    [Math.max(...levels), Math.min(...levels)].map((level) => (Math.floor(10 * level) / 10).toFixed(2));
  document.body.dataset.labels = JSON.stringify([state.layout.beside, state.layout.above]);
  document.body.style.width = `${innerWidth - 80}px`;  // as where somebody makes the window narrower
}, 2000);
setTimeout(() => {
  const edge = document.body.getBoundingClientRect().right, all = [...document.querySelectorAll("body *:not(#map)")];
  const beyond = all.filter((one) => one.getBoundingClientRect().right > edge);
  document.body.dataset.beyond = beyond.map((one) => one.id || one.tagName).join();
}, 3000);
</script>"""
"""What the picture is like, told where it can be read: pixels are not part of a page's text."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or REGARD_CHROMIUM to say where it is")


def opened(trace: Trace, folder: Path, lang: Language, wide: int = 1180, **options: Any) -> str:
    """The page as it is after its script has run; whatever its console said fails the test."""
    path = folder / "page.html"
    trace.html(path, lang=lang, **options)
    path.write_text(path.read_text(encoding="utf-8").replace("</html>", PROBE + "</html>"), encoding="utf-8")
    where = f"--window-size={wide},800", f"--user-data-dir={folder / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, *where, path.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert not re.findall(r"^.*CONSOLE.*$", done.stderr, flags=re.MULTILINE)
    return done.stdout


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_draws_and_speaks(lang: Language, tmp_path: Path) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 5, 5)) * 3)
    found = opened(Trace.from_weights(weights, TOKENS, name="h.0.attn"), tmp_path, lang)
    assert int(re.findall(r'data-colours="(\d+)"', found)[0]) > 10
    assert say("page-looks", lang) in found
    assert re.search(r'id="looks"><li>.*?[床前明月光]', found, flags=re.DOTALL)
    assert all(token in re.findall(r'id="text">(.*?)</p>', found, flags=re.DOTALL)[0] for token in TOKENS)


def told(found: str, name: str) -> str:
    return html.unescape(re.findall(rf'data-{name}="(.*?)"', found)[0])


def test_the_picture_to_keep_is_finer_and_points_at_nothing(tmp_path: Path) -> None:
    found = opened(Trace.from_weights(np.eye(3), TOKENS[:3]), tmp_path, "en")
    assert (told(found, "kept"), told(found, "pointed")) == ("true", "false")


@pytest.mark.parametrize(
    ("tokens", "turned", "thinned"),
    [
        (list("床前明月光") * 4, False, False),
        (list("床前明月光疑是地上霜举头望明月低头") * 4, False, True),
        (["a", "long", "word", "here"] * 8, True, False),
        (["a", "short", "one"], False, False),
    ],
)
def test_labels_are_turned_all_or_none_and_never_overlap(
    tokens: list[str], turned: bool, thinned: bool, tmp_path: Path
) -> None:
    weights = np.full((len(tokens), len(tokens)), 1 / len(tokens))
    beside, above = json.loads(told(opened(Trace.from_weights(weights, tokens), tmp_path, "zh"), "labels"))
    assert above["turned"] == turned
    assert (above["step"] > 1, beside["step"] > 1) == (thinned, thinned)


def test_it_opens_at_the_head_that_aligns_and_names_it(tmp_path: Path) -> None:
    cross = Trace.from_weights(
        np.stack([np.full((3, 3), 1 / 3), np.eye(3)]),
        ["我", "爱", "你"],
        ["I", "love", "you"],
        name="decoder.layers.1.cross_attention",
        kind="cross",
    )
    found = opened(cross, tmp_path, "zh")
    assert "第 1 层 · 交叉注意力 · 3 个查询 × 3 个键 · 行：谁在看；列：被看的 · 头 1" in found
    assert re.search(r'id="texts">I love you → 我爱你<', found)
    assert 'title="decoder.layers.1.cross_attention"' in found


@pytest.mark.parametrize("tokens", [None, [f"w{i}" for i in range(300)]])
def test_a_part_is_named_by_its_true_positions(tokens: list[str] | None, tmp_path: Path) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 300, 300)))
    part = {"rows": slice(200, 210), "cols": slice(150, 170)}
    found = opened(Trace.from_weights(weights, tokens, name="h.0.attn", map=64), tmp_path, "zh", **part)
    assert "查询 200–209，键 150–169（全图 300 × 300）" in found
    assert re.search(r'id="cell"[^>]*>查询 (w209 \()?209\)? → ', found)
    assert "renormalised" not in re.findall(r'id="scale".*?</select>', found, flags=re.DOTALL)[0]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("wide", [420, 700, 1180])
def test_only_the_map_may_go_beyond_the_edge_of_a_narrow_page(wide: int, lang: Language, tmp_path: Path) -> None:
    tokens = ["travelled", "across", "the", "mountains", "明月"] * 12
    weights = softmax(np.random.default_rng(0).normal(size=(9, 60, 60)))
    assert told(opened(Trace.from_weights(weights, tokens), tmp_path, lang, wide), "beyond") == ""


def first_token(share: float) -> Trace:
    """Every query rests on the first of five, and looks at the others evenly."""
    weights = np.full((5, 5), (1 - share) / 4)
    weights[:, 0] = share
    return Trace.from_weights(weights, TOKENS)


def test_next_to_nothing_is_dark_and_the_strongest_key_is_chosen(tmp_path: Path) -> None:
    found = opened(first_token(0.9998), tmp_path, "zh")
    assert (told(found, "brightest"), told(found, "faintest")) == ("1.00", "0.00")
    assert re.search(r'id="bend"></p>', found)
    assert "查询 光 (4) → 键 床 (0) · 权重 1.000" in found


def test_a_scale_with_a_bend_is_named(tmp_path: Path) -> None:
    found = opened(first_token(0.8), tmp_path, "zh")
    assert "0.050 以下按平方根，以上按对数" in found
    assert told(found, "brightest") == "0.90"


def test_a_script_that_stumbles_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.page._halves", lambda cells: b"")
    with pytest.raises(AssertionError, match="CONSOLE"):
        opened(Trace.from_weights(np.eye(3)), tmp_path, "en")


def test_a_long_text_is_drawn_too(tmp_path: Path) -> None:
    pooled = softmax(np.random.default_rng(0).normal(size=(1, 4, 64, 64)))
    record = Record(shape=(1, 4, 32768, 32768), map=pooled, name="h.0.attn", kind="decoder")
    assert int(re.findall(r'data-colours="(\d+)"', opened(Trace([record]), tmp_path, "zh"))[0]) > 10
