"""Explorer pages for the tests in a browser: answers computed in Python on request, or made up.

`open_explorer` mounts the front end on an empty page. Every request calls a function of the test, and its Answer
travels in the binary form that files store.
"""

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from browsing import settled
from playwright.sync_api import Page

from regard import Trace
from regard.errors import RegardError
from regard.hand_calculation.calculation import calculate
from regard.hand_calculation.calculation import script as numpy_script
from regard.messages import LANGUAGES
from regard.views.explorer import front
from regard.views.explorer.answers import Answer, sentence
from regard.views.explorer.source import TraceSource

ENTRY = """
import { answerFromBytes } from "./arrays.js";
import { mount } from "./mount.js";
import { spell } from "./number_text.js";

const names = ["overview", "head", "rectangle", "explain", "effect", "compare"];
const source = Object.fromEntries(names.map((ask) => [ask, async (request = {}) => {
  const found = JSON.parse(await window.answerOfPython(ask, JSON.stringify(request)));
  if (found.error) throw found.error;
  return answerFromBytes(Uint8Array.from(atob(found.answer), (sign) => sign.charCodeAt(0)).buffer);
}]));
window.spell = spell;
mount(document.getElementById("regard"), source, window.mountOptions).then((view) => { window.view = view; });
"""
Answering = Callable[[dict[str, Any]], Answer]


@dataclass
class MadeUp:
    """The answers of a Trace, with some entries of the overview and some requests answered by the test."""

    trace: Trace
    overview: dict[str, Any] = field(default_factory=dict)
    """Entries of the overview to replace."""
    record: dict[str, Any] = field(default_factory=dict)
    """Entries of every record to replace."""
    requests: dict[str, Answering] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def answer(self, ask: str, request: dict[str, Any]) -> Answer:
        self.asked.append((ask, request))
        if ask in self.requests:
            return self.requests[ask](request)
        source = TraceSource(self.trace)
        found: Answer = getattr(source, ask)(**request)
        if ask != "overview":
            return found
        records = [one | self.record for one in found.about["records"]]
        return Answer(found.about | {"records": records} | self.overview, found.arrays)


@cache
def joined_script() -> str:
    """The front end and the entry above as one module."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "front"
        shutil.copytree(str(front.FOLDER), place)
        (place / "entry.js").write_text(ENTRY, encoding="utf-8")
        return front.script("entry.js", place)


def open_explorer(page: Page, made_up: MadeUp, **state: Any) -> None:
    """Mount the explorer with a state to start with."""

    def answer_of_python(ask: str, request: str) -> str:
        try:
            answer = made_up.answer(ask, json.loads(request))
        except RegardError as error:
            return json.dumps({"error": sentence(error)})
        return json.dumps({"answer": base64.b64encode(answer.binary()).decode("ascii")})

    page.expose_function("answerOfPython", answer_of_python)
    options = {"lang": state.pop("lang", "en"), "theme": state.pop("theme", None), "state": state}
    page.set_content(
        f"<!doctype html><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<style>{front.style()} body {{ margin: 0 }}</style><div id='regard'></div>"
        f"<script>window.mountOptions = {json.dumps(options)}</script><script type='module'>{joined_script()}</script>"
    )
    page.wait_for_function("window.view")
    settled(page)


def explain_answer(q: Any, k: Any, v: Any, mask: Any, request: dict[str, Any], words: list[str]) -> Answer:
    """The answer to `explain` for arrays, from the hand calculation."""
    c, at = calculate(q, k, v, mask, None), request["query"]
    most = np.sort(np.argsort(-c.weights[at], kind="stable")[: request["most"]])
    one = calculate(q[at : at + 1], k, v, None if mask is None else np.asarray(mask)[at : at + 1], None)
    largest = float(c.highest[at, 0])
    about = {
        "query": at,
        "keys": most.tolist(),
        "E": c.q.shape[1],
        "Ev": c.v.shape[1],
        "scale": None,
        "softcap": None,
        "largest": largest if np.isfinite(largest) else None,
        "rest": {
            "keys": c.k.shape[0] - len(most),
            "weight": float(c.weights[at].sum() - c.weights[at, most].sum()) if len(most) < c.k.shape[0] else 0.0,
            "reason": "",
        },
        "labels": {"query": words[at], "keys": [words[i] for i in most]},
        "code": {lang: numpy_script(one, lang) for lang in LANGUAGES},
    }
    rows = {"dots": c.scores, "scaled": c.scaled, "masked": c.before_softmax, "exps": c.powers, "weights": c.weights}
    arrays = {name: values[at, most] for name, values in rows.items()}
    arrays |= {"q": c.q[at], "k": c.k[most], "v": c.v[most], "output": c.output[at], "sum": c.sums[at]}
    return Answer(about, arrays | {"visible": c.allowed[at, most].astype(np.uint8)})
