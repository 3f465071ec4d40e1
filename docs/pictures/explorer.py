"""python docs/pictures/explorer.py: the explorer in a browser, explorer.en.png and explorer.zh.png, for the README.

Needs Playwright and Chromium, as the browser tests do; REGARD_CHROMIUM names another program.
"""

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import regard
from regard.messages import LANGUAGES

FOLDER = Path(__file__).parent
SENTENCE = "The cat sat on the mat."


def main() -> None:
    trace = regard.load("translator").see(SENTENCE).trace
    program = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for lang in LANGUAGES:
            page_file = Path(folder, f"{lang}.html")
            trace.html(page_file, lang=lang)
            page = browser.new_page(viewport={"width": 1280, "height": 920}, color_scheme="light")
            page.goto(page_file.as_uri())
            page.wait_for_timeout(1500)
            page.screenshot(path=FOLDER / f"explorer.{lang}.png")
        browser.close()


if __name__ == "__main__":
    main()
