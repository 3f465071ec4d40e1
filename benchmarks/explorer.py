"""python -m benchmarks.explorer: how fast the explorer's source answers, measured in one run.

A record of 131,072 tokens and 12 heads of width 64, float32: the overview, zoom steps to regions of 4,096 × 4,096
tokens as 512 × 512 cells, and the round trip of one head through the widget's messages, without the network.

`--browser` measures a page of 12 × 12 heads and 512 tokens in Chromium (REGARD_CHROMIUM, else `chromium` on the path):
its size, first paint, script for each frame while the pointer moves and while cells are pinned, and memory.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.commit import commit
from benchmarks.machine import machine
from regard.attention_call import WeightsFromQK
from regard.kernels.blocked import rectangle
from regard.masks import Mask
from regard.records import Record
from regard.trace import Trace
from regard.views.explorer.protocol import answered
from regard.views.explorer.source import TraceSource

TOKENS, HEADS, WIDTH, BINS = 131_072, 12, 64, 256
REGION, CELLS, REPEATS = 4096, 512, 7
LAYERS, SHORT, FRAMES = 12, 512, 60
PLACES = {"left of the diagonal": (100_000, 50_000), "on the diagonal": (100_000, 98_000), "at the start": (4096, 0)}


def long_record(tokens: int) -> Record:
    """A record with q, k, LSE and map. The LSE is that of independent scores, as its value does not change the time."""
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((1, HEADS, tokens, WIDTH), dtype=np.float32) for _ in range(2))
    lse = np.broadcast_to(np.log(np.arange(1, tokens + 1, dtype=np.float32)) + 0.5, (1, HEADS, tokens)).copy()
    pooled = np.tril(rng.random((1, HEADS, BINS, BINS), dtype=np.float32)) + 1e-6
    mask = Mask.causal()
    exact = WeightsFromQK(
        q=q,
        k=k,
        lse=lse,
        scale=WIDTH**-0.5,
        lead=(1, HEADS),
        compute=rectangle,
        mask=mask,
        bound=mask.bind((1, HEADS), tokens, tokens),
    )
    pooled /= pooled.sum(-1, keepdims=True)
    return Record(shape=(1, HEADS, tokens, tokens), map=pooled, lse=lse, exact=exact)


def milliseconds(run: Callable[[], Any], repeats: int = REPEATS) -> dict[str, float]:
    """The median and the slowest of several runs; one run before them is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return {"median": round(float(np.median(times)), 1), "slowest": round(max(times), 1)}


def measured(tokens: int = TOKENS) -> dict[str, Any]:
    """All measurements, in milliseconds."""
    trace = Trace(long_record(tokens))
    found: dict[str, Any] = {"overview": milliseconds(lambda: TraceSource(trace).overview(), 3)}
    source = TraceSource(trace)
    for name, place in PLACES.items():
        rows, cols = ([min(at, tokens - REGION), min(at, tokens - REGION) + REGION] for at in place)
        found[f"zoom {name}"] = milliseconds(partial(source.rectangle, 0, 3, rows, cols, [CELLS, CELLS]))
    one = {"id": 1, "layer": 0, "head": 3}
    found["one head by message"] = milliseconds(partial(answered, source, {**one, "ask": "head"}))
    query = {**one, "ask": "explain", "query": tokens - 1, "most": 64}
    found["one query by message"] = milliseconds(partial(answered, source, query))
    return found


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explorer", description=__doc__)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--browser", action="store_true", help="measure a page in Chromium instead")
    options = parser.parse_args()
    if options.browser:
        for name, value in in_browser().items():
            print(f"{name:44} {value:8}")
        return
    found = measured(options.tokens)
    if options.json:
        print(json.dumps({"commit": commit(), "machine": machine(), "tokens": options.tokens, "ms": found}, indent=2))
        return
    print(f"{options.tokens:,} tokens, {HEADS} heads of width {WIDTH}, float32; {machine()['processor']}")
    for name, times in found.items():
        print(f"{name:28} median {times['median']:8.1f} ms   slowest {times['slowest']:8.1f} ms")


if __name__ == "__main__":
    main()
