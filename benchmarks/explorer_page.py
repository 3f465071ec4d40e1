"""The page of 12 × 12 heads and 512 tokens in Chromium: size, first paint, script for each frame, memory.

`python -m benchmarks.explorer --browser` prints it. Chromium is REGARD_CHROMIUM, else `chromium` on the path.
"""

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from regard.trace import Trace

LAYERS, HEADS, SHORT, FRAMES = 12, 12, 512, 60


def short_trace() -> Trace:
    """12 layers of 12 heads over 512 tokens, causal, each with its own sharp diagonal among random scores."""
    rng = np.random.default_rng(0)
    layers = []
    for layer in range(LAYERS):
        scores = rng.standard_normal((HEADS, SHORT, SHORT), dtype=np.float32)
        for head in range(HEADS):
            scores[head] += 4 * np.eye(SHORT, k=-head, dtype=np.float32)
        scores = np.where(np.tri(SHORT, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        tokens = [f"w{at}" for at in range(SHORT)]
        weights /= weights.sum(-1, keepdims=True)
        layers.append(Trace.from_weights(weights, tokens, name=f"h.{layer}", kind="decoder", map=SHORT)[0])
    return Trace(layers)


def in_browser() -> dict[str, float]:
    """The page of `short_trace` in Chromium. Script times are the longest tasks of the page's own functions."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    found: dict[str, float] = {}
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        short_trace().html(path)
        found["file, MB"] = round(path.stat().st_size / 1e6, 2)
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector(".readout dd")
        paints = "performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint').startTime"
        found["first paint, ms"] = round(page.evaluate(paints), 1)
        page.wait_for_timeout(1500)
        box = page.locator("canvas.map").bounding_box()
        assert box is not None
        for name, click in (("hover", False), ("pin", True)):
            browser.start_tracing(page=page, categories=["devtools.timeline"])
            for at in range(FRAMES):
                page.mouse.move(box["x"] + 80 + 5 * at, box["y"] + box["height"] - 20 - 3 * at % 150)
                if click:
                    page.mouse.down()
                    page.mouse.up()
                page.wait_for_timeout(25)
            times = script_times(json.loads(browser.stop_tracing())["traceEvents"])
            found[f"script for each frame, {name}, median ms"] = round(float(np.median(times)), 1)
            found[f"script for each frame, {name}, slowest ms"] = round(max(times), 1)
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in _metrics(session)}
        found["memory of scripts, MB"] = round(metrics["JSHeapUsedSize"] / 1e6, 1)
        found["memory of the page's process, MB"] = _renderer_memory(browser)
        browser.close()
    return found


def _metrics(session: Any) -> list[dict[str, Any]]:
    session.send("Performance.enable")
    metrics: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    return metrics


def script_times(events: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of script between two frames: callbacks of the frame, and the events before it."""
    names = {"FireAnimationFrame", "EventDispatch"}
    own = sorted((one for one in events if one.get("ph") == "X" and one["name"] in names), key=lambda one: one["ts"])
    times, since = [], 0.0
    for one in own:
        since += one.get("tdur", one.get("dur", 0)) / 1000  # of the thread: other programs do not count
        if one["name"] == "FireAnimationFrame":
            times.append(since)
            since = 0.0
    return times or [0.0]


def _renderer_memory(browser: Any) -> float:
    """The private memory of the largest renderer, by Linux; 0 elsewhere."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = [0]
    for process in processes:
        rollup = Path(f"/proc/{process['id']}/smaps_rollup")
        if process["type"] == "renderer" and rollup.exists():
            lines = (line.split() for line in rollup.read_text().splitlines() if line.startswith("Private_"))
            sizes.append(sum(int(line[1]) for line in lines))
    return round(max(sizes) / 1e3, 1)
