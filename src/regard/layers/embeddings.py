"""TokenEmbedding, from ids to vectors, and OutputLayer, from vectors to logits."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.functional.linear_few_rows import linear_rows
from regard.functional.position_wise import ActivationFunction
from regard.layers.feed_forward import Linear

INITIAL_STD = 0.02
"""The standard deviation of the initial weights of GPT-2 and BERT."""


class TokenEmbedding(nn.Module):
    """A learned vector for each id; `scaled` multiplies it by √d_model, as the 2017 paper does.

    rounded_scale   √d_model is rounded to the dtype of the weights first, as Gemma does

    >>> TokenEmbedding(10, 4)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, vocab_size: int, d_model: int, scaled: bool = False, rounded_scale: bool = False) -> None:
        super().__init__()
        check_counts(vocab_size=(vocab_size, 1), d_model=(d_model, 1))
        self.factor = math.sqrt(d_model) if scaled else None
        self.rounded_scale = rounded_scale
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model).normal_(std=INITIAL_STD))

    def forward(self, ids: Tensor) -> Tensor:
        x = F.embedding(ids, self.weight)
        if self.factor is None:
            return x
        if not self.rounded_scale:
            return x * self.factor  # half precision is multiplied in float32
        return x * torch.full((), self.factor, dtype=x.dtype, device=x.device)


class OutputLayer(nn.Module):
    """Logits: x times the weight row of each token.

    tied        no weight of its own; the embedding's weight is an argument of each call
    scaled      x is multiplied by 1/√d_model first, as T5 does with tied weights
    transform   linear, this activation and this norm first, as BERT's masked-language head; None for none
    softcap     logits bounded to ± this value by tanh; None for no bound

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
        softcap: float | None = None,
    ) -> None:
        super().__init__()
        check_counts(vocab_size=(vocab_size, 1), d_model=(d_model, 1))
        self.factor = 1 / math.sqrt(d_model) if scaled else None
        self.softcap = softcap
        self.weight = None if tied else nn.Parameter(torch.empty(vocab_size, d_model).normal_(std=INITIAL_STD))
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        self.transform = None if transform is None else Linear(d_model, d_model, bias)
        self.activation = None if transform is None else transform[0]
        self.transform_norm = None if transform is None else transform[1]

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        """x (…, D) to logits (…, W); `rows` is the embedding's weight (W, D), used if tied."""
        if self.transform is not None and self.activation is not None and self.transform_norm is not None:
            x = self.transform_norm(self.activation(self.transform(x)))
        x = x if self.factor is None else x * self.factor
        logits = linear_rows(x, rows if self.weight is None else self.weight, self.bias)
        return logits if self.softcap is None else (logits / self.softcap).tanh() * self.softcap
