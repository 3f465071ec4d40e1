"""The parts of a Transformer, and recurrent layers, as PyTorch modules: they hold weights and call `functional`.

What varies is passed as an argument: the mask, the positions, the cache, the attention function.
"""

from importlib.util import find_spec

from regard.errors import MissingPackageError

if find_spec("torch") is None:
    raise MissingPackageError("missing-package", what="regard.layers", package="torch", extra="torch")

from regard.layers.attention import MultiHeadAttention
from regard.layers.position_wise import FeedForward, LayerNorm, OutputLayer, RMSNorm, TokenEmbedding
from regard.layers.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)
from regard.layers.recurrent import LSTM, AdditiveAttention, Elman, MultiplicativeAttention

__all__ = [
    "LSTM",
    "AdditiveAttention",
    "AlibiPositions",
    "Elman",
    "FeedForward",
    "LayerNorm",
    "LearnedPositions",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "NoPositions",
    "OutputLayer",
    "RMSNorm",
    "RelativePositions",
    "RotaryPositions",
    "SinusoidalPositions",
    "TokenEmbedding",
]
