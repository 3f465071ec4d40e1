"""python -m benchmarks.explorer: how fast the explorer's source answers, measured in one run.

A record of 131,072 tokens and 12 heads of width 64, float32: the overview, zoom steps to regions of 4,096 × 4,096
tokens as 512 × 512 cells, and the round trip of one head through the widget's messages, without the network. With
--notebook: the same round trip in a real JupyterLab, from the browser's request to its answer, for 512 tokens. With
--browser: the page of 12 × 12 heads and 512 tokens in Chromium (`explorer_page`).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commit import commit
from benchmarks.explorer_page import in_browser
from benchmarks.machine import machine
from regard.attention_call import WeightsFromQK
from regard.kernels.blocked import rectangle
from regard.masks import Mask
from regard.records import Record
from regard.trace import Trace
from regard.views.explorer.answers import answered
from regard.views.explorer.source import TraceSource

TOKENS, HEADS, WIDTH, BINS = 131_072, 12, 64, 256
REGION, CELLS, REPEATS = 4096, 512, 7
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


CELL = """import numpy as np
from regard import Trace
found = [Trace.from_weights(np.random.default_rng(i).dirichlet(np.ones(512), (12, 512))) for i in range(12)]
Trace([record for trace in found for record in trace]).widget(lang="en")"""
TIMED = """
let start = null;
const { send } = WebSocket.prototype;
const text = (data) => typeof data === "string" ? data : new TextDecoder("latin1").decode(data);
window.trips = [];
WebSocket.prototype.send = function (data) {
  if (!this.timed) this.addEventListener("message", ({ data }) => {
    if (start === null || !text(data).includes('"about"')) return;
    window.trips.push(performance.now() - start);
    start = null;
  });
  this.timed = true;
  if (text(data).includes('"ask":"head"')) start = performance.now();
  return send.call(this, data);
};"""
KERNEL_IDLE = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


def in_notebook(heads: int = 11) -> dict[str, float]:
    """Milliseconds of the round trip of one head in JupyterLab, timed in the browser at its socket."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the servers that the tests start
    from browsing import browser
    from notebook_hosts import jupyter, write_notebook

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notebooks"
        folder.mkdir()
        write_notebook(folder / "n.ipynb", [CELL])
        with jupyter(folder, "lab") as host, browser() as chromium:
            context = chromium.new_context(viewport={"width": 1400, "height": 2000})
            host.sign_in(context)
            page = context.new_page()
            page.add_init_script(TIMED)
            page.goto(f"{host.url}/lab/tree/n.ipynb")
            page.wait_for_function(KERNEL_IDLE, timeout=60_000)
            page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
            page.locator(".regard-explorer .map").wait_for(timeout=60_000)
            page.wait_for_function("window.trips.length")
            page.locator(".regard-explorer .map").focus()
            for done in range(2, heads + 1):
                page.keyboard.press("]")
                page.wait_for_function(f"window.trips.length >= {done}")
            times = page.evaluate("window.trips")[1:]
            context.close()
    return {"median": round(float(np.median(times)), 1), "slowest": round(max(times), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explorer", description=__doc__)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--notebook", action="store_true", help="also the round trip in a real JupyterLab")
    parser.add_argument("--browser", action="store_true", help="measure a page in Chromium instead")
    options = parser.parse_args()
    if options.browser:
        for name, value in in_browser().items():
            print(f"{name:44} {value:8}")
        return
    found = measured(options.tokens)
    if options.notebook:
        found["one head in JupyterLab"] = in_notebook()
    if options.json:
        print(json.dumps({"commit": commit(), "machine": machine(), "tokens": options.tokens, "ms": found}, indent=2))
        return
    print(f"{options.tokens:,} tokens, {HEADS} heads of width {WIDTH}, float32; {machine()['processor']}")
    for name, times in found.items():
        print(f"{name:28} median {times['median']:8.1f} ms   slowest {times['slowest']:8.1f} ms")


if __name__ == "__main__":
    main()
