"""One Trace shows the same numbers in terminal, plot, widget, page and file."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import pytest
from drawn_axes import axes_of

from regard import Mask, Record, See, Trace, attend, read_trace
from regard.views.explorer.answers import Answer
from stored_pages import answers_in

HALF = 2.0**-11
"""Half floats are off by at most this share of a weight."""
ROUNDED = 0.000016
"""Maps in a trace file are off by at most this weight."""


def record_of(tokens: int, bins: int) -> Record:
    """A record of two heads with q and k."""
    draw = np.random.default_rng(tokens)
    q, k, v = (2 * draw.normal(size=(1, 2, tokens, 8)).astype(np.float32) for _ in range(3))
    return attend(q, k, v, mask=Mask.causal(), see=See(map=bins, qk=True))[1]


def in_terminal(trace: Trace, head: int, folder: Path) -> np.ndarray:
    """The numbers in the cells, with two digits; masked cells are empty."""
    screen = io.StringIO()
    trace.show(0, head=head, file=screen, width=200, color="none", lang="en")
    length = trace[0].shape[2]
    rows = [line for line in screen.getvalue().splitlines() if re.match(r"\d+ ", line) and ":" not in line]
    found = np.zeros((length, length))
    for row, line in enumerate(rows[:length]):
        numbers = [float(number) for number in re.findall(r"\d?\.\d+", line)]
        found[row, : len(numbers)] = numbers
    return found


def in_plot(trace: Trace, head: int, folder: Path) -> np.ndarray:
    return np.maximum(axes_of(trace, 0, head).images[0].get_array(), 0)  # masked cells are drawn by −1


def in_widget(trace: Trace, head: int, folder: Path) -> np.ndarray:
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anywidget.AnyWidget, "send", lambda self, content, buffers=None: sent.append((content, buffers)))
        trace.widget()._handle_custom_msg({"id": 1, "ask": "head", "layer": 0, "head": head}, [])
    ((reply, buffers),) = sent
    form = reply["arrays"][0]
    assert form["name"] == "cells"
    return np.frombuffer(buffers[0], form["dtype"]).reshape(form["shape"]).astype(float)


def in_page(trace: Trace, head: int, folder: Path) -> np.ndarray:
    trace.html(folder / "page.html")
    found: Answer = answers_in(folder / "page.html")[f"head-0-{head}"]
    return found.arrays["cells"].astype(float)


def in_file(trace: Trace, head: int, folder: Path) -> np.ndarray:
    trace.save(folder / "file.safetensors")
    found = read_trace(folder / "file.safetensors")[0].map
    assert found is not None
    return np.asarray(found[0, head])


PLACES = [(in_plot, 0, 0), (in_widget, HALF, 1e-7), (in_page, HALF, 1e-7), (in_file, 0, ROUNDED)]


@pytest.mark.parametrize(
    ("tokens", "bins", "where", "relative", "absolute"),
    [(7, 7, in_terminal, 0, 0.00501), *((7, 7, *place) for place in PLACES), *((300, 60, *place) for place in PLACES)],
)
def test_the_same_numbers_are_shown_everywhere(
    tmp_path: Path,
    tokens: int,
    bins: int,
    where: Callable[[Trace, int, Path], np.ndarray],
    relative: float,
    absolute: float,
) -> None:
    record = record_of(tokens, bins)
    assert record.map is not None
    for head in (0, 1):
        shown = where(Trace([record]), head, tmp_path)
        np.testing.assert_allclose(shown, record.map[0, head], rtol=relative, atol=absolute)
        assert np.abs(shown - record.map[0, 1 - head]).max() > 0.1
