"""Elman and LSTM layers, and the attention of Bahdanau and of Luong, as modules; the formulas are in `functional`.

The matrices are stored as `nn.RNN` and `nn.LSTM` store them, (G·F, D) with G gates, so that weights can be copied.
"""

import math

import torch
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.dispatch import attend_in_model
from regard.functional.recurrent import LSTMState, additive_scores, elman, lstm, lstm_cell
from regard.layers.position_wise import Linear
from regard.masks import Mask
from regard.records import Attend


class _Recurrent(nn.Module):
    """The weights of a recurrent layer, drawn as PyTorch draws them: uniform within ±1/√F."""

    n_gates = 1

    def __init__(self, d_input: int, d_state: int) -> None:
        super().__init__()
        check_counts(d_input=(d_input, 1), d_state=(d_state, 1))
        self.d_state = d_state
        rows, bound = self.n_gates * d_state, 1 / math.sqrt(d_state)
        self.weight_x = nn.Parameter(torch.empty(rows, d_input).uniform_(-bound, bound))
        self.weight_h = nn.Parameter(torch.empty(rows, d_state).uniform_(-bound, bound))
        self.bias_x = nn.Parameter(torch.empty(rows).uniform_(-bound, bound))
        self.bias_h = nn.Parameter(torch.empty(rows).uniform_(-bound, bound))

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W_x, W_h, b_x and b_h, as `functional` takes them."""
        return self.weight_x.T, self.weight_h.T, self.bias_x, self.bias_h


class Elman(_Recurrent):
    """h' = tanh(x W_x + b_x + h W_h + b_h), step by step (Elman 1990).

    >>> Elman(8, 16)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 16])
    """

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """The states (B, T, F) after each step of x (B, T, D)."""
        return elman(x, h, *self.weights)


class LSTM(_Recurrent):
    """An LSTM with the gates i, f, g, o (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    >>> output, state = LSTM(8, 16)(torch.zeros(2, 5, 8))
    >>> output.shape, state.c.shape
    (torch.Size([2, 5, 16]), torch.Size([2, 16]))
    """

    n_gates = 4

    def __init__(self, d_input: int, d_state: int, forget_bias: float | None = None) -> None:
        """forget_bias: the first bias of the forget gates; 1 is usual (Jozefowicz et al. 2015), None is random."""
        super().__init__(d_input, d_state)
        if forget_bias is not None:
            forget = slice(d_state, 2 * d_state)
            with torch.no_grad():
                self.bias_x[forget] = forget_bias
                self.bias_h[forget] = 0.0

    def forward(self, x: Tensor, state: LSTMState | None = None) -> tuple[Tensor, LSTMState]:
        """The output (B, T, F) after each step of x (B, T, D), and the last state."""
        h, c = (None, None) if state is None else state
        return lstm(x, h, c, *self.weights)

    def step(self, x: Tensor, state: LSTMState) -> LSTMState:
        """The state after one input x (B, D)."""
        return lstm_cell(x, *state, *self.weights)


class AdditiveAttention(nn.Module):
    """score = w · tanh(q W_q + k W_k) (Bahdanau et al. 2015). The values are the keys.

    >>> AdditiveAttention(4, 6, d_hidden=8)(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6)).shape
    torch.Size([2, 3, 6])
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int, name: str = "attention") -> None:
        super().__init__()
        check_counts(d_query=(d_query, 1), d_key=(d_key, 1), d_hidden=(d_hidden, 1))
        self.name = name
        self.q_proj = Linear(d_query, d_hidden, bias=False)
        self.k_proj = Linear(d_key, d_hidden, bias=False)
        self.score = nn.Parameter(torch.empty(d_hidden).uniform_(-1 / math.sqrt(d_hidden), 1 / math.sqrt(d_hidden)))

    def forward(
        self,
        q: Tensor,
        memory: Tensor,
        *,
        keys: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """The weighted mean of `memory` (B, S, Ek) for each query of q (B, T, E): (B, T, Ek).

        keys   k_proj(memory), if it is known: a decoder that attends at each step computes it once
        """
        keys = self.k_proj(memory) if keys is None else keys
        bias = additive_scores(self.q_proj(q), keys, self.score)  # B T S
        # Queries and keys of zeros: the scores are the bias alone, so that any attention function can be used.
        zero_q, zero_k = (x.new_zeros(len(x), 1, x.shape[1], 1) for x in (q, memory))
        context = attend(zero_q, zero_k, memory[:, None], name=self.name, kind="cross", mask=mask, bias=bias[:, None])
        return context[:, 0]


class MultiplicativeAttention(nn.Module):
    """score = q W · k, "general", without a scale (Luong et al. 2015). The values are the keys.

    >>> MultiplicativeAttention(4, 6)(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6)).shape
    torch.Size([2, 3, 6])
    """

    def __init__(self, d_query: int, d_key: int, name: str = "attention") -> None:
        super().__init__()
        check_counts(d_query=(d_query, 1), d_key=(d_key, 1))
        self.name = name
        self.q_proj = Linear(d_query, d_key, bias=False)

    def forward(
        self, q: Tensor, memory: Tensor, *, mask: Mask | Tensor | None = None, attend: Attend = attend_in_model
    ) -> Tensor:
        """The weighted mean of `memory` (B, S, Ek) for each query of q (B, T, E): (B, T, Ek)."""
        keys = memory[:, None]
        context = attend(self.q_proj(q)[:, None], keys, keys, name=self.name, kind="cross", mask=mask, scale=1.0)
        return context[:, 0]
