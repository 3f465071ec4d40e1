"""A trained model with its tokenizer, read from the folder of a run or of a model."""

import os
from pathlib import Path
from typing import NamedTuple

from regard.errors import FileError
from regard.models import Transformer
from regard.text.tokenizer import Tokenizer

MODEL, TOKENIZER, RECIPE, RUN = "model", "tokenizer.json", "recipe.toml", "run.json"
"""What the files of a run are called."""


class Trained(NamedTuple):
    """What a run left behind. `run` is its folder, with its recipe; None where a model's folder stands alone."""

    model: Transformer
    tokenizer: Tokenizer
    run: Path | None


def read_trained(folder: str | os.PathLike[str]) -> Trained:
    """The model of a run's folder, of its `model` folder, or of any folder that holds a model and its tokenizer.

    Raises FileError with what is missing: a run that has not finished has no model yet.
    """
    given = Path(folder)
    if not given.is_dir():
        raise FileError("model-not-folder" if given.exists() else "model-no-folder", path=str(given))
    place = given.resolve()
    run: Path | None = None
    if (given / RECIPE).is_file():
        run, given = given, given / MODEL
        if not given.is_dir():
            raise FileError("evaluate-unfinished", path=str(run))
    elif place.name == MODEL and (place.parent / RECIPE).is_file():
        run = place.parent
    return Trained(Transformer.read(given), Tokenizer.read(given / TOKENIZER), run)
