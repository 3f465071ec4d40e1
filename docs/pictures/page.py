"""The picture of the page that `trace.html` writes, taken by a browser without a window.

    python docs/pictures/page.py chromium

One head of the poet, which has read a poem but for its last character: from there it looks at the rhyme.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import regard
from regard.messages import LANGUAGES

HERE = Path(__file__).parent
POEM = "五绝｜床前明月光，疑是地上霜。举头望明月，低头思故"
LAYER, HEAD = 5, 6
WIDTH, HEIGHT = 1180, 800


def photograph(browser: str) -> None:
    """Write page.en.png and page.zh.png beside this file."""
    poet = regard.load("poet", backend="torch")
    with torch.no_grad(), regard.watch(poet.model, poet.tokenizer) as trace:
        poet.model(torch.tensor([poet.tokenizer.encode(POEM)]))
    with tempfile.TemporaryDirectory() as folder:
        for lang in LANGUAGES:
            page, picture = Path(folder) / f"{lang}.html", HERE / f"page.{lang}.png"
            trace.html(page, lang=lang)
            options = ["--headless", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}"]
            subprocess.run([browser, *options, f"{page.as_uri()}#layer={LAYER}&head={HEAD}"], check=True)
            print(f"{picture.name}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    photograph(sys.argv[1])
