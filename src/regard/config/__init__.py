"""TransformerConfig and its parts: the description of a Transformer, checked, without any computation.

RecurrentConfig describes the recurrent models that it is compared with.
"""

from regard.config.recurrent import RecurrentConfig
from regard.config.styles import (
    Alibi,
    AttentionStyle,
    Biases,
    Embeddings,
    FactorScaling,
    Learned,
    LinearScaling,
    Llama3Scaling,
    Norm,
    NtkScaling,
    Output,
    Positions,
    Relative,
    Rotary,
    Scaling,
    Sinusoidal,
    YarnScaling,
)
from regard.config.transformer import GATES, TransformerConfig
from regard.config.tree import from_tree, recurrent_from_tree, to_tree

__all__ = [
    "GATES",
    "Alibi",
    "AttentionStyle",
    "Biases",
    "Embeddings",
    "FactorScaling",
    "Learned",
    "LinearScaling",
    "Llama3Scaling",
    "Norm",
    "NtkScaling",
    "Output",
    "Positions",
    "RecurrentConfig",
    "Relative",
    "Rotary",
    "Scaling",
    "Sinusoidal",
    "TransformerConfig",
    "YarnScaling",
    "from_tree",
    "recurrent_from_tree",
    "to_tree",
]
