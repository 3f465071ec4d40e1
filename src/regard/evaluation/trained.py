"""A trained model with its tokenizer, read from the folder of a run or of a model."""

import os
from pathlib import Path
from typing import NamedTuple

from regard.checkpoints.model_folder import RUN_MODEL, RUN_RECIPE, inside, model_of, read_json, run_of
from regard.errors import FileError
from regard.models import Transformer
from regard.text.tokenizer import Tokenizer

MODEL, TOKENIZER, RECIPE, RUN = RUN_MODEL, "tokenizer.json", RUN_RECIPE, "run.json"
"""What the files of a run are called."""
SETTINGS = "generation_config.json"


class Trained(NamedTuple):
    """What a run left behind.

    run        its folder, with its recipe; None where a model's folder stands alone
    language   that a translator writes, if the model's own settings say so
    """

    model: Transformer
    tokenizer: Tokenizer
    run: Path | None
    language: str | None


def read_trained(folder: str | os.PathLike[str]) -> Trained:
    """The model of a run's folder, of its `model` folder, or of any folder that holds a model and its tokenizer.

    Raises FileError with what is missing: a run that has not finished has no model yet.
    """
    given = Path(folder)
    if not given.is_dir():
        raise FileError("model-not-folder" if given.exists() else "model-no-folder", path=str(given))
    run, place = run_of(given), model_of(given)
    return Trained(Transformer.read(place), Tokenizer.read(place / TOKENIZER, within=place), run, _language(place))


def _language(folder: Path) -> str | None:
    if not os.path.lexists(folder / SETTINGS):
        return None
    match read_json(inside(folder, SETTINGS)):
        case {"target_language": str(language)}:
            return language
    return None
