"""Both ends of a model: from ids to vectors, and from vectors to one score per token of the vocabulary."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.functional.few_rows import linear_rows
from regard.functional.position_wise import ActivationFunction
from regard.layers.feed_forward import Linear
from regard.position_rules import check_counts

SPREAD = 0.02
"""The standard deviation of GPT-2's new weights, and of BERT's."""


class TokenEmbedding(nn.Module):
    """A learned vector for each id; `scaled` multiplies it by √d_model, as the 2017 paper does.

    >>> TokenEmbedding(10, 4)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, vocab_size: int, d_model: int, scaled: bool = False) -> None:
        super().__init__()
        check_counts(vocab_size=(vocab_size, 1), d_model=(d_model, 1))
        self.factor = math.sqrt(d_model) if scaled else None
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model).normal_(std=SPREAD))

    def forward(self, ids: Tensor) -> Tensor:
        x = F.embedding(ids, self.weight)
        return x if self.factor is None else x * self.factor


class OutputLayer(nn.Module):
    """How well each token of the vocabulary goes with a vector: x · its row, of this layer's weight or a tied one.

    tied        there is no weight here; the embedding's is given with each call
    scaled      x is multiplied by 1/√d_model first, as T5 does where it ties
    transform   linear, this activation, this norm first, as BERT's masked-word head; None for nothing

    >>> rows = TokenEmbedding(10, 4).weight
    >>> OutputLayer(10, 4)(torch.zeros(2, 3, 4), rows).shape
    torch.Size([2, 3, 10])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        tied: bool = True,
        scaled: bool = False,
        bias: bool = False,
        transform: tuple[ActivationFunction, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        check_counts(vocab_size=(vocab_size, 1), d_model=(d_model, 1))
        self.factor = 1 / math.sqrt(d_model) if scaled else None
        self.weight = None if tied else nn.Parameter(torch.empty(vocab_size, d_model).normal_(std=SPREAD))
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        self.transform = None if transform is None else Linear(d_model, d_model, bias)
        self.activation = None if transform is None else transform[0]
        self.transform_norm = None if transform is None else transform[1]

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        """x (…, D), and the embedding's rows (W, D), to (…, W)."""
        if self.transform is not None and self.activation is not None and self.transform_norm is not None:
            x = self.transform_norm(self.activation(self.transform(x)))
        x = x if self.factor is None else x * self.factor
        return linear_rows(x, rows if self.weight is None else self.weight, self.bias)
