"""One browser for all tests, and the files of some traces."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browsing import CHROMIUM, browser
from playwright.sync_api import Browser

from regard import Record, Trace
from regard.reference import softmax
from regard.views.explorer.page import write_page

TOKENS = ["床", "前", "明", "月", "光"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium, and REGARD_CHROMIUM is not set")
    with browser() as started:
        yield started


def causal(heads: int, length: int, seed: int = 0) -> np.ndarray:
    """Random causal weights, heads × length × length."""
    scores = np.random.default_rng(seed).normal(size=(heads, length, length)) * 2
    return softmax(np.where(np.tri(length, dtype=bool), scores, -np.inf))


@pytest.fixture(scope="session")
def layers() -> Trace:
    """Two layers of four heads over five characters."""
    found = [Trace.from_weights(causal(4, 5, at), TOKENS, name=f"h.{at}.attn", kind="decoder") for at in range(2)]
    return Trace(record for trace in found for record in trace)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, layers: Trace) -> Path:
    """Files: layers (two layers), english (words of several tokens), cross (a translation), long (a pooled map)."""
    made = tmp_path_factory.mktemp("pages")
    write_page(layers, made / "layers.html", lang="en")
    tokens = ["The", "Ġcat", "Ġsat", "Ġun", "believ", "ably", "Ġstill"]
    write_page(Trace.from_weights(causal(2, 7), tokens, name="h.0.attn"), made / "english.html", lang="en")
    cross = Trace.from_weights(
        np.stack([np.full((3, 4), 1 / 4), np.eye(3, 4)]), ["我", "爱", "你"], ["I", "love", "you", "."], kind="cross"
    )
    write_page(cross, made / "cross.html", lang="zh")
    pooled = softmax(np.random.default_rng(0).normal(size=(1, 4, 64, 64)))
    record = Record(shape=(1, 4, 32768, 32768), map=pooled, name="h.0.attn", kind="decoder")
    write_page(Trace([record]), made / "long.html", lang="en")
    return made
