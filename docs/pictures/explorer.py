"""python docs/pictures/explorer.py: the explorer in a browser, a translation for the README and a poem for the guide.

Writes explorer.en.png, explorer.zh.png, page.en.png and page.zh.png. Needs Playwright and Chromium, as the browser
tests do; REGARD_CHROMIUM names another program.
"""

import os
import shutil
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright

import regard
from regard.messages import LANGUAGES
from regard.trace import Trace

FOLDER = Path(__file__).parent
SENTENCE = "The cat sat on the mat."
POEM = "五绝｜床前明月光，疑是地上霜。举头望明月，低头思故"
LAYER, HEAD = 5, 6


def main() -> None:
    translation = regard.load("translator").see(SENTENCE).trace
    poet = regard.load("poet", backend="torch")
    with torch.no_grad(), regard.watch(poet.model, poet.tokenizer) as poem:
        poet.model(torch.tensor([poet.tokenizer.encode(POEM)]))
    program = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        photograph(browser, translation, "explorer")
        photograph(browser, poem, "page", f"#layer={LAYER}&head={HEAD}")
        browser.close()


def photograph(browser: Browser, trace: Trace, name: str, state: str = "") -> None:
    """Write the picture NAME.LANG.png of a trace, in the state that the fragment of its address names."""
    with tempfile.TemporaryDirectory() as folder:
        for lang in LANGUAGES:
            file = Path(folder, f"{lang}.html")
            trace.html(file, lang=lang)
            page = browser.new_page(viewport={"width": 1280, "height": 920}, color_scheme="light")
            page.goto(file.as_uri() + state)
            page.wait_for_timeout(1500)
            page.screenshot(path=FOLDER / f"{name}.{lang}.png")


if __name__ == "__main__":
    main()
