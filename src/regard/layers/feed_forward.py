"""FeedForward, plain and gated, and Linear, a version of nn.Linear that is fast for few rows, as in decoding."""

from torch import Tensor, nn

from regard.arrays import check_counts
from regard.config import GATES
from regard.config.styles import check_dropout
from regard.config.transformer import Activation, inner_activation
from regard.errors import ArgumentError
from regard.functional.linear_few_rows import linear_rows
from regard.functional.position_wise import ACTIVATIONS, get_activation
from regard.messages import Listed


class Linear(nn.Linear):
    """x Wᵀ + b: `nn.Linear` with a faster forward for few rows."""

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
