"""The models that come with regard: their names, and where they lie."""

from pathlib import Path

from regard.errors import FileError

BUNDLED = ("translator", "poet")
"""English to Chinese; Tang poems. What they can do stands in the README.md beside each."""

ASSETS = Path(__file__).parents[1] / "assets"


def bundled(name: str) -> Path:
    """The folder of a bundled model. FileError where this installation lacks it."""
    folder = ASSETS / name
    if not folder.is_dir():
        raise FileError("bundled-absent", name=name, path=str(folder))
    return folder
