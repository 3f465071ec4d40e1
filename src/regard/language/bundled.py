"""The models that come with regard, by their names, and those of other folders: where they lie."""

import os
from pathlib import Path

from regard.checkpoints.model_folder import model_of
from regard.errors import FileError
from regard.words import Listed

BUNDLED = ("translator", "poet")
"""English to Chinese; Tang poems. What they can do stands in the README.md beside each."""

ASSETS = Path(__file__).parents[1] / "assets"


def find_model(source: str | os.PathLike[str]) -> Path:
    """The folder of a model: a bundled one's by its name, a folder's own, or of a run the one that holds its model."""
    folder = bundled(str(source)) if source in BUNDLED else Path(source)
    if not (os.fspath(source) and folder.exists()):
        raise FileError("language-no-folder", found=str(source), names=Listed(BUNDLED))
    return model_of(folder)


def bundled(name: str) -> Path:
    """The folder of a bundled model. FileError where this installation lacks it."""
    folder = ASSETS / name
    if not folder.is_dir():
        raise FileError("bundled-absent", name=name, path=str(folder))
    return folder
