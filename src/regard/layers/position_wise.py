"""Layers that act on each position alone: embedding, norms, feed-forward and output, as modules.

Linear is a version of nn.Linear that is fast for few rows, as in decoding. The formulas are in `functional`.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.config import GATES
from regard.config.styles import check_dropout
from regard.config.transformer import Activation, inner_activation
from regard.errors import ArgumentError
from regard.functional import layer_norm, rms_norm
from regard.functional.int8_weight import Int8Weight
from regard.functional.position_wise import ACTIVATIONS, ActivationFunction, get_activation, linear_rows
from regard.messages import Listed


class Linear(nn.Linear):
    """x Wᵀ + b: `nn.Linear` with a faster forward for few rows; `weight` may be an `Int8Weight`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear_rows(x, self.weight, self.bias)


class FeedForward(nn.Module):
    """down(f(up(x))) with f ReLU, GELU or SiLU; for SwiGLU and GeGLU down(f(gate(x)) ∘ up(x)).

    >>> import torch
    >>> FeedForward(8)(torch.zeros(2, 3, 8)).shape, FeedForward(8, 16, activation="swiglu").gate
    (torch.Size([2, 3, 8]), Linear(in_features=8, out_features=16, bias=True))
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        *,
        activation: Activation = "relu",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(activation, str) or activation not in {*ACTIVATIONS, *GATES}:
            choices = Listed((*ACTIVATIONS, *GATES))
            raise ArgumentError("unknown-choice", name="activation", value=activation, choices=choices)
        check_counts(d_model=(d_model, 1), d_ff=(1 if d_ff is None else d_ff, 1))
        check_dropout(dropout)
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.activation = get_activation(inner_activation(activation))
        self.gate = Linear(d_model, d_ff, bias) if activation in GATES else None
        self.up = Linear(d_model, d_ff, bias)
        self.down = Linear(d_ff, d_model, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            hidden = self.activation(self.up(x))  # … F
        else:
            hidden = self.activation(self.gate(x)) * self.up(x)
        return self.down(self.dropout(hidden) if self.training else hidden)


class LayerNorm(nn.Module):
    """Each vector with mean 0 and variance 1, then times a weight and plus a bias (Ba et al. 2016).

    >>> LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach().round(decimals=2)
    tensor([-1.2200,  0.0000,  1.2200])
    """

    def __init__(self, width: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        check_counts(width=(width, 1))
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Each vector divided by its root mean square, then times a weight (Zhang and Sennrich 2019).

    plus_one   times 1 + weight instead, as Gemma; the weight is 0 at first

    >>> RMSNorm(2, eps=0.0)(torch.tensor([3.0, 4.0])).detach().round(decimals=2)
    tensor([0.8500, 1.1300])
    """

    def __init__(self, width: int, eps: float = 1e-6, plus_one: bool = False) -> None:
        super().__init__()
        check_counts(width=(width, 1))
        self.eps, self.plus_one = eps, plus_one
        self.weight = nn.Parameter(torch.zeros(width) if plus_one else torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps, self.plus_one)


INITIAL_STD = 0.02
"""The standard deviation of the initial weights of GPT-2 and BERT."""


def initial_weight(*shape: int) -> nn.Parameter:
    """A weight of random normal values; of none on the meta device, where drawing them would import torch._dynamo."""
    weight = torch.empty(*shape)
    return nn.Parameter(weight if weight.is_meta else weight.normal_(std=INITIAL_STD))


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
        self.weight = initial_weight(vocab_size, d_model)

    def forward(self, ids: Tensor) -> Tensor:
        weight: Tensor | Int8Weight = self.weight
        x = weight.rows(ids) if isinstance(weight, Int8Weight) else F.embedding(ids, weight)
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
        self.weight = None if tied else initial_weight(vocab_size, d_model)
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        self.transform = None if transform is None else Linear(d_model, d_model, bias)
        self.activation = None if transform is None else transform[0]
        self.transform_norm = None if transform is None else transform[1]

    def forward(self, x: Tensor, rows: Tensor | Int8Weight) -> Tensor:
        """x (…, D) to logits (…, W); `rows` is the embedding's weight (W, D), used if tied."""
        if self.transform is not None and self.activation is not None and self.transform_norm is not None:
            x = self.transform_norm(self.activation(self.transform(x)))
        x = x if self.factor is None else x * self.factor
        logits = linear_rows(x, rows if self.weight is None else self.weight, self.bias)
        return logits if self.softcap is None else (logits / self.softcap).tanh() * self.softcap
