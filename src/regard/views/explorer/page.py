"""A Trace as one self-contained HTML file: the answers to all requests stored in it, no network, no server.

The size depends on the number of heads, not on the length of the text: see `stored`.
"""

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.files.output import check_target, write_output
from regard.messages import Language, say
from regard.trace.token_merging import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views.explorer import front
from regard.views.explorer.effects import effects_of
from regard.views.explorer.source import TraceSource
from regard.views.explorer.stored import stored_answers

TAGS: dict[Language, str] = {"zh": "zh-CN", "en": "en"}


def write_page(
    trace: Trace,
    path: str | os.PathLike[str],
    layer: int | str | None = None,
    sample: int = 0,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
    *,
    model: Any = None,
    inputs: Any = None,
    tokenizer: Any = None,
) -> None:
    """Write the page of one sample, completely or not at all. Raises as `widget`, and FileError."""
    target = Path(path)
    check_target(target)
    options: dict[str, Any] = {"lang": lang, "scale": scale, "merge": merge, "rows": rows, "cols": cols}
    source = TraceSource(trace, layer, sample, effects=effects_of(model, inputs, tokenizer), **options)
    write_output(target, page(source).encode())


def page(source: TraceSource) -> str:
    """The page as text."""
    return filled(stored_answers(source), source.lang)


def filled(answers: Mapping[str, str], lang: Language) -> str:
    """The template with compressed answers, by the ids of their elements.

    Answers are in base64, so no token can end its element. The policy allows the one script by its hash.
    """
    script = "\n" + front.script("page.js") + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    values = {
        "{{lang}}": TAGS[lang],
        "{{policy}}": f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "{{title}}": html.escape(say("explorer-title", lang)),
        "{{style}}": front.style(),
        "{{noscript}}": html.escape(say("explorer-noscript", lang)),
        "{{answers}}": "\n".join(_element(name, answer) for name, answer in answers.items()),
        "{{script}}": script,
    }
    return _insert(front.template(), values.items())


def _element(name: str, answer: str) -> str:
    return f'<script type="application/octet-stream;base64" id="regard-{name}">{answer}</script>'


def _insert(template: str, values: Iterable[tuple[str, str]]) -> str:
    """Each value at its placeholder. Inserted values are not searched again."""
    done = ""
    for place, value in values:
        before, template = template.split(place, 1)
        done += before + value
    return done + template
