"""The widget in real notebooks: JupyterLab, Notebook 7 and marimo draw it, and their kernels answer.

Each test starts one server on loopback and ends it with its kernel. Where scripts do not run, the picture is shown.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import settled
from notebook_hosts import Host, jupyter, marimo, own_home, write_marimo, write_notebook
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from regard import Trace
from regard.messages import say

pytestmark = pytest.mark.web

MAKE = """import numpy as np
from regard import Mask, See, attend
from regard.trace import Trace
draw = np.random.default_rng(0)
q, k, v = (draw.normal(size=(1, 4, 6, 8)).astype("f4") for _ in range(3))
_, record = attend(q, k, v, mask=Mask.causal(), see=See(map=256, qk=True, v=True))
trace = Trace([record])"""
SETUP = f'import os\nfrom pathlib import Path\n_ = Path("kernel.pid").write_text(str(os.getpid()))\n{MAKE}'
ENGLISH = 'one = trace.widget(lang="en")\none'
CHINESE = 'two = trace.widget(lang="zh")\ntwo'
BROKEN = """def lost(layer, head):
    raise OSError("the disk is gone")
bad = trace.widget(lang="zh")
bad.source.head = lost
bad"""
CELLS = [SETUP, ENGLISH, CHINESE, BROKEN]
ADDRESS = {"lab": "/lab/tree/n.ipynb", "notebook": "/notebooks/n.ipynb", "marimo": "/"}
KERNEL_IDLE = "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
SAVE_STATE = "config/lab/user-settings/@jupyter-widgets/jupyterlab-manager/plugin.jupyterlab-settings"


@contextmanager
def browsing(chromium: Browser, host: Host) -> Iterator[BrowserContext]:
    """A signed-in browser. A request to anywhere but the host fails the test at the end."""
    context = chromium.new_context(viewport={"width": 1400, "height": 5000})  # JupyterLab draws what is visible
    elsewhere: list[str] = []
    local = (host.url, host.url.replace("http:", "ws:"), "data:", "blob:")
    context.on("request", lambda request: None if request.url.startswith(local) else elsewhere.append(request.url))
    host.sign_in(context)
    yield context
    context.close()
    assert not elsewhere


def opened(context: BrowserContext, host: Host, program: str) -> tuple[Page, list[str]]:
    """The notebook with all its cells run, and the errors on the console since then."""
    page = context.new_page()
    errors: list[str] = []
    page.goto(host.url + ADDRESS[program])
    if program != "marimo":
        page.wait_for_function("window.jupyterapp")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        page.wait_for_function(KERNEL_IDLE)
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    if program != "marimo":
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.locator(".regard-explorer").nth(2).wait_for(state="attached", timeout=120_000)
    for at in (0, 1):
        view(page, at).locator(".readout dd").first.wait_for(state="attached")
    return page, errors


def view(page: Page, at: int) -> Locator:
    return page.locator(".regard-explorer").nth(at)


def said(readout: str) -> tuple[int, int, float]:
    """Query, key and weight of an English readout."""
    query, key, weight = re.findall(r"query\s+(\d+)\s+key\s+(\d+)\s+weight ([\d.]+)", readout)[0]
    return int(query), int(key), float(weight)


def the_same_trace() -> Trace:
    names: dict[str, Any] = {}
    exec(MAKE, names)
    trace = names["trace"]
    assert isinstance(trace, Trace)
    return trace


def try_out(page: Page) -> None:
    """What a person does: point, pin, open another head, change what the other widget shows, read an error."""
    trace, one, two = the_same_trace(), view(page, 0), view(page, 1)
    assert one.locator("h1").inner_text() == say("explorer-title", "en")
    assert two.locator("h1").inner_text() == say("explorer-title", "zh")
    before, drawn = two.inner_text(), one.locator(".map")
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box
    drawn.hover(position={"x": 0.4 * box["width"], "y": 0.8 * box["height"]})
    settled(page)
    query, key, weight = said(one.locator(".readout").inner_text())
    assert weight == pytest.approx(float(trace[0].weights()[0, 0, query, key]), abs=5e-4)
    drawn.click(position={"x": 0.4 * box["width"], "y": 0.8 * box["height"]})
    settled(page)
    assert one.locator(".pins li").count() == 1
    page.keyboard.press("]")
    one.get_by_role("heading", name="head 1").wait_for()
    settled(page)
    query, key, weight = said(one.locator(".readout").inner_text())
    assert weight == pytest.approx(float(trace[0].weights()[0, 1, query, key]), abs=5e-4)
    for sign in ("x", "d", "d", "b", "y"):  # in JupyterLab: cut, delete and insert a cell, and change it to code
        page.keyboard.press(sign)
    one.get_by_role("radio", name="Numbers").click()
    one.locator(".numbers-panel td").first.wait_for()  # computed by the kernel
    assert two.inner_text() == before
    reason = say("source-failed", "zh", reason="OSError: the disk is gone")
    assert reason in view(page, 2).inner_text()


def kernel_of(folder: Path) -> int:
    return int((folder / "kernel.pid").read_text(encoding="utf-8"))


def has_ended(process: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def saved(page: Page, notebook: Path) -> dict[str, Any]:
    """The file of a notebook with its outputs."""
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    found: dict[str, Any] = {}
    while not found or not found["cells"][3]["outputs"]:
        page.wait_for_timeout(100)
        text = notebook.read_text(encoding="utf-8")
        found = json.loads(text) if text.rstrip().endswith("}") else {}  # the server may be writing it
    assert [cell["source"] for cell in found["cells"]] in (CELLS, [cell.splitlines(True) for cell in CELLS])
    return found


def test_jupyterlab_draws_two_widgets_and_keeps_their_pictures(chromium: Browser, folder: Path) -> None:
    write_notebook(folder / "n.ipynb", CELLS)
    settings = folder.parent / "home-lab" / SAVE_STATE
    settings.parent.mkdir(parents=True)
    settings.write_text('{"saveState": true}', encoding="utf-8")
    with jupyter(folder, "lab") as host, browsing(chromium, host) as context:
        page, errors = opened(context, host, "lab")
        try_out(page)
        assert errors == []
        assert "widgets" in saved(page, folder / "n.ipynb")["metadata"]
        page.close()
        for session in context.request.get(f"{host.url}/api/sessions").json():
            context.request.delete(f"{host.url}/api/sessions/{session['id']}", headers=host.headers)
        assert has_ended(kernel_of(folder))
        again = context.new_page()
        again.goto(host.url + ADDRESS["lab"])
        printed = again.locator(".jp-OutputArea-output [role=alert]").first
        printed.wait_for(timeout=120_000)
        assert printed.inner_text().startswith("The kernel does not answer")
        picture = again.locator(".jp-OutputArea-output img").first
        assert picture.evaluate("(image) => image.naturalWidth") > 100
    assert not list(folder.parent.glob("home-lab/runtime/*.pid"))


@pytest.mark.long  # JupyterLab has the same front end
def test_notebook_7_draws_it_and_a_converted_notebook_shows_the_picture(chromium: Browser, folder: Path) -> None:
    write_notebook(folder / "n.ipynb", CELLS)
    with jupyter(folder, "notebook") as host:
        with browsing(chromium, host) as context:
            page, errors = opened(context, host, "notebook")
            try_out(page)
            assert errors == []
            outputs = [cell["outputs"] for cell in saved(page, folder / "n.ipynb")["cells"][1:]]
        for (output,) in outputs:
            assert {"image/svg+xml", "text/plain"} < set(output["data"])
    assert has_ended(kernel_of(folder))
    convert = [sys.executable, "-m", "nbconvert", "--to", "html", "n.ipynb"]
    subprocess.run(convert, cwd=folder, env=own_home(folder.parent / "home"), check=True, capture_output=True)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.route(lambda address: not address.startswith(("file:", "data:")), lambda route: route.abort())
    page.goto((folder / "n.html").as_uri())
    pictures = page.locator(".jp-OutputArea-output img")
    assert pictures.count() == 3
    box = pictures.first.bounding_box()
    context.close()
    assert box
    assert min(box["width"], box["height"]) > 100


def test_marimo_draws_two_widgets(chromium: Browser, folder: Path) -> None:
    write_marimo(folder / "n.py", CELLS)
    with marimo(folder / "n.py") as host, browsing(chromium, host) as context:
        page, errors = opened(context, host, "marimo")
        try_out(page)
        assert errors == []
    assert has_ended(kernel_of(folder))
