"""Recurrent layers and their attention in PyTorch: the counterparts of `reference.recurrent`.

Whole texts run in PyTorch's own kernels, which take all steps in one call; a cell is written out.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.functional.attention import linear, scaled_dot_product_attention
from regard.layer_checks import check_additive, check_general, check_recurrent
from regard.masks import Mask

MaskLike = Mask | Tensor | None


class LSTMState(NamedTuple):
    """The state of an LSTM: h, which it outputs, and c, the cell that carries information over many steps."""

    h: Tensor
    c: Tensor


def elman_cell(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b_x: Tensor | None = None, b_h: Tensor | None = None
) -> Tensor:
    """tanh(x W_x + b_x + h W_h + b_h): the next state (…, F) for an input x (…, D) and a state h (…, F)."""
    check_recurrent(x, {"h": h}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=1, steps=0)
    return torch.tanh(linear(x, W_x, b_x) + linear(h, W_h, b_h))


def elman(
    x: Tensor,
    h: Tensor | None,
    W_x: Tensor,
    W_h: Tensor,
    b_x: Tensor | None = None,
    b_h: Tensor | None = None,
) -> Tensor:
    """The states (…, T, F) after each step of x (…, T, D). h (…, F) is the state before, zeros if None.

    >>> states = elman(torch.ones(3, 1), None, torch.tensor([[0.5]]), torch.tensor([[1.0]]))
    >>> [round(state, 3) for state in states.flatten().tolist()]
    [0.462, 0.745, 0.847]
    """
    check_recurrent(x, {"h": h}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=1, steps=1)
    if x.numel() == 0:
        return x.new_zeros((*x.shape[:-1], len(W_h)))
    weights = _kernel_weights(W_x, W_h, b_x, b_h)
    output, _ = torch.rnn_tanh(
        _samples(x), _initial(h, x, W_h), weights, len(weights) == 4, 1, 0.0, _trains(), False, True
    )
    return output.reshape(*x.shape[:-1], -1)


def lstm_cell(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    W_x: Tensor,
    W_h: Tensor,
    b_x: Tensor | None = None,
    b_h: Tensor | None = None,
) -> LSTMState:
    """The next h and c, each (…, F), for an input x (…, D). The columns of W_x and W_h are the gates i, f, g, o."""
    check_recurrent(x, {"h": h, "c": c}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=4, steps=0)
    i, f, g, o = (linear(x, W_x, b_x) + linear(h, W_h, b_h)).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return LSTMState(o.sigmoid() * c.tanh(), c)


def lstm(
    x: Tensor,
    h: Tensor | None,
    c: Tensor | None,
    W_x: Tensor,
    W_h: Tensor,
    b_x: Tensor | None = None,
    b_h: Tensor | None = None,
) -> tuple[Tensor, LSTMState]:
    """The output h (…, T, F) after each step of x (…, T, D), and the last state. h and c before: zeros if None.

    >>> output, state = lstm(torch.zeros(3, 2), None, torch.tensor([8.0]), torch.zeros(2, 4), torch.zeros(1, 4))
    >>> state.c.tolist(), output.shape
    ([1.0], torch.Size([3, 1]))
    """
    check_recurrent(x, {"h": h, "c": c}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=4, steps=1)
    lead, F = x.shape[:-2], len(W_h)
    before = _initial(h, x, W_h), _initial(c, x, W_h)
    if x.numel() == 0:
        return x.new_zeros((*x.shape[:-1], F)), LSTMState(*(each.reshape(*lead, F) for each in before))
    weights = _kernel_weights(W_x, W_h, b_x, b_h)
    output, *last = torch.lstm(_samples(x), before, weights, len(weights) == 4, 1, 0.0, _trains(), False, True)
    return output.reshape(*x.shape[:-1], F), LSTMState(*(each.reshape(*lead, F) for each in last))


def _trains() -> bool:
    """The `train` argument of the kernels, which changes nothing without dropout: cuDNN needs it for gradients."""
    return torch.is_grad_enabled()


def additive_scores(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """w · tanh(q + k), (…, T, S), for projected queries (…, T, A) and keys (…, S, A) (Bahdanau et al. 2015)."""
    return (q[..., :, None, :] + k[..., None, :, :]).tanh() @ w


def additive_attention(
    q: Tensor, k: Tensor, v: Tensor, W_q: Tensor, W_k: Tensor, w: Tensor, mask: MaskLike = None
) -> tuple[Tensor, Tensor]:
    """Bahdanau's attention and its weights, (…, T, Ev) and (…, T, S), for q (…, T, E), k (…, S, Ek), v (…, S, Ev).

    W_q (E, A), W_k (Ek, A) and w (A,). A query to which nothing is visible gets zeros.
    """
    check_additive(q, k, W_q, W_k, w)
    scores = additive_scores(linear(q, W_q), linear(k, W_k), w)
    zero_q, zero_k = q.new_zeros((*q.shape[:-1], 1)), k.new_zeros((*k.shape[:-1], 1))
    return scaled_dot_product_attention(zero_q, zero_k, v, mask, bias=scores)


def multiplicative_attention(
    q: Tensor, k: Tensor, v: Tensor, W: Tensor | None = None, mask: MaskLike = None
) -> tuple[Tensor, Tensor]:
    """Luong's attention and its weights: "general" with W (E, Ek), "dot" without. The scores have no scale."""
    if W is not None:
        check_general(q, k, W)
        q = linear(q, W)
    return scaled_dot_product_attention(q, k, v, mask, scale=1.0)


def _samples(x: Tensor) -> Tensor:
    """x as (B, T, D)."""
    return x.reshape(-1, *x.shape[-2:])


def _initial(state: Tensor | None, x: Tensor, W_h: Tensor) -> Tensor:
    """A state as PyTorch's kernels take it, (1, B, F)."""
    B, F = x.shape[:-2].numel(), len(W_h)
    return x.new_zeros((1, B, F)) if state is None else state.reshape(1, B, F)


def _kernel_weights(W_x: Tensor, W_h: Tensor, b_x: Tensor | None, b_h: Tensor | None) -> list[Tensor]:
    """The weights as PyTorch's kernels take them: transposed; both biases or none."""
    if b_x is None and b_h is None:
        return [W_x.T, W_h.T]
    zeros = W_x.new_zeros(W_x.shape[-1])
    return [W_x.T, W_h.T, *(zeros if each is None else each for each in (b_x, b_h))]
