"""What the weights of a new model are: small random numbers, so chosen that signals neither die nor explode."""

import math
from typing import TYPE_CHECKING

from torch import nn

from regard.layers import FeedForward, MultiHeadAttention, TokenEmbedding
from regard.layers.positions import LearnedPositions, RelativePositions

if TYPE_CHECKING:
    from regard.models.transformer import Transformer

SPREAD = 0.02
"""The standard deviation of GPT-2's weights, and of BERT's."""


def initialise(model: "Transformer") -> None:
    """Pre-norm as GPT-2, whose last projection of each sub-layer is smaller the more of them add up; post-norm Xavier.

    Under pre-norm the sum of 2 L sub-layers would otherwise grow like √(2 L); under post-norm each sum is normed.
    """
    config = model.config
    pre_norm = config.norm.place == "pre"
    depth = max(config.n_encoder_layers or 0, config.n_decoder_layers or 0)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=SPREAD) if pre_norm else nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding):
            # × √d_model follows where it is scaled, so that both come out alike.
            nn.init.normal_(module.weight, std=SPREAD if module.factor is None else 1 / module.factor)
        elif isinstance(module, LearnedPositions | RelativePositions):
            nn.init.normal_(module.table, std=SPREAD)
    for module in model.modules() if pre_norm else ():
        last = module.o_proj if isinstance(module, MultiHeadAttention) else None
        last = module.down if isinstance(module, FeedForward) else last
        if last is not None:
            nn.init.normal_(last.weight, std=SPREAD / math.sqrt(2 * depth))
