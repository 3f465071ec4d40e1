"""The page in a real browser: it starts without a complaint, draws, and speaks both languages.

Chromium is asked for by its name, or by what REGARD_CHROMIUM says; where there is none, nothing is tested here.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from regard import Record, Trace
from regard.reference import softmax
from regard.words import LANGUAGES, Language, say

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
    "--window-size=1180,800",
    "--dump-dom",
]
TOKENS = ["床", "前", "明", "月", "光"]
PROBE = """<script>
setTimeout(() => {
  const map = document.getElementById("map"), all = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
  document.body.dataset.colours = new Set(new Uint32Array(all.buffer)).size;
}, 2000);
</script>"""
"""How many colours the picture has, told where it can be read: pixels are not part of a page's text."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, or REGARD_CHROMIUM to say where it is")


def opened(trace: Trace, folder: Path, lang: Language) -> str:
    """The page as it is after its script has run; whatever its console said fails the test."""
    path = folder / "page.html"
    trace.html(path, lang=lang)
    path.write_text(path.read_text(encoding="utf-8").replace("</html>", PROBE + "</html>"), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
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


def test_a_script_that_stumbles_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.page._halves", lambda cells: b"")
    with pytest.raises(AssertionError, match="CONSOLE"):
        opened(Trace.from_weights(np.eye(3)), tmp_path, "en")


def test_a_long_text_is_drawn_too(tmp_path: Path) -> None:
    pooled = softmax(np.random.default_rng(0).normal(size=(1, 4, 64, 64)))
    record = Record(shape=(1, 4, 32768, 32768), map=pooled, name="h.0.attn", kind="decoder")
    assert int(re.findall(r'data-colours="(\d+)"', opened(Trace([record]), tmp_path, "zh"))[0]) > 10
