"""One Transformer in PyTorch for the 2017 paper, BERT, GPT-2 and Llama, selected by a config.

RecurrentModel takes and returns the same, for comparison.
"""

from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.models", package="torch", extra="torch")

from regard.models.any_model import Model, build_model, read_any_model
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
