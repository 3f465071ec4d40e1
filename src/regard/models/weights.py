"""What the weights of a new model are: small random numbers, so chosen that signals neither die nor explode."""

import math
from typing import TYPE_CHECKING

from torch import nn

from regard.layers import TokenEmbedding
from regard.layers.embeddings import SPREAD

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


def initialise(model: "Transformer") -> None:
    """Pre-norm as GPT-2, whose last projection of each sub-layer is smaller the more of them add up; post-norm Xavier.

    Under pre-norm a sum of n sub-layers would otherwise grow like √n; under post-norm each sum is normed at once.
    """
    pre_norm = model.config.norm.place == "pre"
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if pre_norm:
                nn.init.normal_(module.weight, std=SPREAD)
            else:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, TokenEmbedding) and module.factor is not None:
            nn.init.normal_(module.weight, std=1 / module.factor)  # × √d_model follows
    for stack in (model.encoder, model.decoder) if pre_norm else ():
        last = (
            []
            if stack is None
            else [
                weight
                for name, weight in stack.named_parameters()
                if name.endswith(("o_proj.weight", "feed_forward.down.weight"))
            ]
        )
        for weight in last:
            nn.init.normal_(weight, std=SPREAD / math.sqrt(len(last)))
