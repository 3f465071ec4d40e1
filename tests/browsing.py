"""A real browser for tests: Chromium by Playwright, a page that fails on console output and on requests to elsewhere.

Uses the program in REGARD_CHROMIUM, else `chromium` on the path; without either, the tests are skipped.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
]
LOCAL = ("file:", "data:", "blob:", "about:")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@contextmanager
def opened(chromium: Browser, path: Path, address: str = "", wide: int = 1280, **options: Any) -> Iterator[Page]:
    """A page of a file, drawn. Console output, an error or a request to elsewhere fails the test at the end."""
    context = chromium.new_context(viewport={"width": wide, "height": 900}, **options)
    page = context.new_page()
    found: list[str] = []
    page.on("console", lambda message: found.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith(LOCAL) else found.append(request.url))
    page.goto(f"{path.as_uri()}#{address}")
    page.wait_for_selector(".readout dd, .failure:visible, .model-panel:visible")
    settled(page)
    yield page
    context.close()
    assert not found


def settled(page: Page) -> None:
    """Wait until the state is drawn and the answers have arrived."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(60)


def press(page: Page, *keys: str) -> None:
    """Press keys one after the other, each drawn before the next."""
    for key in keys:
        page.keyboard.press(key)
        settled(page)
