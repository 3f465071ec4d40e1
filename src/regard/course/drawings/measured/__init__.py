"""Results that pictures show: each JSON file is written by the program that measured it."""

import json
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent


def measured(name: str) -> Any:
    """The content of NAME.json.

    >>> measured("length-generalisation")["length"]
    32
    """
    return json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
