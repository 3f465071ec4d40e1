"""Training that starts from an existing model instead of random weights: `regard train RECIPE --start MODEL`."""

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.checkpoints.model_folder import model_folder_of
from regard.config import RecurrentConfig, TransformerConfig
from regard.errors import FileError
from regard.evaluation.translation import TOKENIZER, read_trained
from regard.messages import Listed
from regard.text.tokenizer import Tokenizer
from regard.training.run_files import sha256_of


class StartModel(NamedTuple):
    """A model to start from. `files` are the hashes of its files by name, for run.json."""

    folder: Path
    config: TransformerConfig | RecurrentConfig
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    files: dict[str, str]


def read_start(folder: str | os.PathLike[str]) -> StartModel:
    """The model and tokenizer of a run folder or a model folder; int8 weights as float32. Raises FileError."""
    found = read_trained(folder)
    place = model_folder_of(Path(folder))
    names = [path.name for path in sorted(place.iterdir()) if path.suffix == ".safetensors" or path.name == TOKENIZER]
    files = {name: sha256_of(place / name) for name in names}
    return StartModel(place, found.model.config, found.model.float().state_dict(), found.tokenizer, files)


def check_start(start: StartModel, config: TransformerConfig | RecurrentConfig, tokenizer: Tokenizer) -> None:
    """FileError unless the recipe's model has the config and the tokenizer of the start model.

    Dropout and forget_bias may differ.
    """
    if tokenizer.to_json() != start.tokenizer.to_json():
        raise FileError("start-tokenizer", path=str(start.folder / TOKENIZER))
    ours, theirs = (_architecture(each) for each in (config, start.config))
    if type(ours) is not type(theirs):
        values = {"wanted": type(theirs).__name__, "found": type(ours).__name__}
        raise FileError("start-config", path=str(start.folder), keys="model", name="model", **values)
    different = [each.name for each in fields(ours) if getattr(ours, each.name) != getattr(theirs, each.name)]
    if different:
        key = different[0]
        values = {"wanted": getattr(theirs, key), "found": getattr(ours, key)}
        raise FileError("start-config", path=str(start.folder), keys=Listed(different), name=key, **values)


def _architecture(config: TransformerConfig | RecurrentConfig) -> TransformerConfig | RecurrentConfig:
    """The config without dropout and initial biases, which leave shapes and names of the weights as they are."""
    if isinstance(config, RecurrentConfig):
        return replace(config, dropout=0.0, forget_bias=None)
    return replace(config, dropout=0.0, attention=replace(config.attention, dropout=0.0))
