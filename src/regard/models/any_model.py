"""A Transformer or a recurrent model, by its config: built anew, or read from a folder."""

import os

from regard.checkpoints import is_recurrent
from regard.config import RecurrentConfig
from regard.config.weights import ModelConfig
from regard.models.recurrent import RecurrentModel
from regard.models.transformer import Transformer

Model = Transformer | RecurrentModel


def build_model(config: ModelConfig) -> Model:
    """The model that a config describes, with initial weights.

    >>> type(build_model(RecurrentConfig(cell="lstm", vocab_size=9, d_model=4, d_state=8))).__name__
    'RecurrentModel'
    """
    return RecurrentModel(config) if isinstance(config, RecurrentConfig) else Transformer(config)


def read_any_model(folder: str | os.PathLike[str]) -> Model:
    """The model that `save` wrote, of either kind."""
    return RecurrentModel.read(folder) if is_recurrent(folder) else Transformer.read(folder)
