"""The pictures of the lessons: drawn as SVG for pages and as text for the terminal, from the same data.

Each module `lesson_NN` lists the drawings of its lesson in `DRAWINGS`; `drawing` finds one by name. Pictures of
measurements read them from `measured/`, JSON files written by the programs that measured.
"""

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.course.drawings.blocks import (
    Bars,
    Block,
    Box,
    Curves,
    Drawing,
    Flow,
    Label,
    Line,
    Links,
    Matrix,
    Sign,
    text_in,
)
from regard.errors import UnknownNameError
from regard.messages import Listed

__all__ = [
    "Bars",
    "Block",
    "Box",
    "Curves",
    "Drawing",
    "Flow",
    "Label",
    "Line",
    "Links",
    "Matrix",
    "Sign",
    "drawing",
    "drawings",
    "measured",
    "text_in",
]

HOME = Path(__file__).parent


@cache
def drawings() -> dict[str, Callable[[], Drawing]]:
    """The function of every drawing, by name, in the order of the lessons."""
    modules = (import_module(f"regard.course.drawings.{path.stem}") for path in sorted(HOME.glob("lesson_*.py")))
    return {name: make for module in modules for name, make in module.DRAWINGS.items()}


@cache
def drawing(name: str) -> Drawing:
    """The drawing with this name, made once: some run a model. Raises UnknownNameError.

    >>> drawing("flow-chart").title.en
    'Scaled dot-product attention, step by step'
    """
    known = drawings()
    if name not in known:
        raise UnknownNameError("unknown-choice", name="drawing", value=name, choices=Listed(known))
    return known[name]()


def measured(name: str) -> Any:
    """The content of measured/NAME.json.

    >>> measured("length-generalisation")["length"]
    32
    """
    return json.loads((HOME / "measured" / f"{name}.json").read_text(encoding="utf-8"))
