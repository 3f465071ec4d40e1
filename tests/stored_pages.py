"""What an HTML file of the explorer stores, read back for tests."""

import re
from pathlib import Path
from typing import Any

from regard.views.explorer.answers import Answer, read_compressed


def answers_in(path: Path) -> dict[str, Answer]:
    """The answers of a file, by their names."""
    found = re.findall(r'id="regard-([\w-]+)">([^<]*)</script>', path.read_text(encoding="utf-8"))
    return {name: read_compressed(text) for name, text in found}


def overview_in(path: Path) -> dict[str, Any]:
    """The overview of a file."""
    return answers_in(path)["overview"].about
