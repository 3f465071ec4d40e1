"""A real browser for tests: Chromium by Playwright, a page that fails on console output and on requests to elsewhere.

Uses the program in REGARD_CHROMIUM, else `chromium` on the path; without either, the tests are skipped.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    "--renderer-process-limit=1",  # one process draws all pages: starting one takes longer than most tests
]
LOCAL = ("file:", "data:", "blob:", "about:")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@cache
def _context(chromium: Browser, **options: Any) -> BrowserContext:
    """Pages with the same options share it, and the process of a page that stays open: neither takes time to start."""
    context = chromium.new_context(**options)
    context.new_page()
    return context


@contextmanager
def browser_page(chromium: Browser, width: int = 1180, height: int = 900, **options: Any) -> Iterator[Page]:
    """An empty page. Console output, an error or a request to elsewhere fails the test at the end."""
    page = _context(chromium, **options).new_page()
    page.set_viewport_size({"width": width, "height": height})
    found: list[str] = []
    page.on("console", lambda message: found.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith(LOCAL) else found.append(request.url))
    try:
        yield page
    finally:
        page.close()
    assert not found


@contextmanager
def opened(chromium: Browser, path: Path, address: str = "", wide: int = 1280, **options: Any) -> Iterator[Page]:
    """A page of a file, drawn."""
    with browser_page(chromium, wide, **options) as page:
        page.goto(f"{path.as_uri()}#{address}")
        page.wait_for_selector(".readout dd, .failure:visible, .model-panel:visible")
        settled(page)
        yield page


def settled(page: Page) -> None:
    """Wait until the state is drawn and the answers have arrived."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(60)


def press(page: Page, *keys: str) -> None:
    """Press keys one after the other, each drawn before the next."""
    for key in keys:
        page.keyboard.press(key)
        settled(page)
