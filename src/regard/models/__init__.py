"""One Transformer in PyTorch for the 2017 paper, BERT, GPT-2 and Llama, selected by a config.

RecurrentModel takes and returns the same, for comparison.
"""

import os
from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.models", package="torch", extra="torch")

from regard.checkpoints import is_recurrent
from regard.config import RecurrentConfig
from regard.config.weights import ModelConfig
from regard.models.decoding import Decoding
from regard.models.interchange import from_torch, to_torch
from regard.models.recurrent import RecurrentModel
from regard.models.transformer import Block, Stack, Transformer

__all__ = [
    "Block",
    "Decoding",
    "Model",
    "RecurrentModel",
    "Stack",
    "Transformer",
    "build_model",
    "from_torch",
    "read_any_model",
    "to_torch",
]

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
