"""The initial weights of a Transformer, before training."""

import math
from typing import TYPE_CHECKING

from torch import nn

from regard.layers import TokenEmbedding
from regard.layers.embeddings import INITIAL_STD

if TYPE_CHECKING:
    from regard.models.transformer import Transformer


def initialise(model: "Transformer") -> None:
    """Post-norm: Xavier. Else: as GPT-2, with the last projection of each of n sub-layers scaled by 1/√n.

    Without post-norm the sum of n sub-layers would otherwise grow like √n; under post-norm each sum is normed.
    """
    pre_norm = model.config.norm.place != "post"
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if pre_norm:
                nn.init.normal_(module.weight, std=INITIAL_STD)
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
            nn.init.normal_(weight, std=INITIAL_STD / math.sqrt(len(last)))
