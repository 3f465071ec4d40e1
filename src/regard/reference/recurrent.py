"""Recurrent layers and the attention that was first added to them: the definitions, with backward passes by hand.

    Elman   h' = tanh(x W_x + b_x + h W_h + b_h)                                            Elman 1990
    LSTM    i, f, g, o = x W_x + b_x + h W_h + b_h     σ for i, f, o and tanh for g         Hochreiter, Schmidhuber 1997
            c' = f ∘ c + i ∘ g,  h' = o ∘ tanh(c')                                          f: Gers et al. 2000

    additive         score = w · tanh(q W_q + k W_k)                                        Bahdanau et al. 2015
    multiplicative   score = q · k (dot) or q W · k (general), without a scale              Luong et al. 2015

The gates are in PyTorch's order, i f g o, and there are two biases, as in `nn.LSTM`; its matrices are the transposes
of ours. F is the width of a state.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regard.layer_checks import check_additive, check_general, check_recurrent
from regard.reference.attention import (
    MaskLike,
    computing_dtype,
    linear,
    linear_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from regard.reference.inputs import array_likes

Optional = np.ndarray | None


class ElmanGradients(NamedTuple):
    """The gradients of the input, of the state before it, and of the weights; None for what was not given."""

    x: np.ndarray
    h: Optional
    W_x: np.ndarray
    W_h: np.ndarray
    b_x: Optional = None
    b_h: Optional = None


class LSTMGradients(NamedTuple):
    """The gradients of the input, of the states before it, and of the weights; None for what was not given."""

    x: np.ndarray
    h: Optional
    c: Optional
    W_x: np.ndarray
    W_h: np.ndarray
    b_x: Optional = None
    b_h: Optional = None


class LSTMState(NamedTuple):
    """The state of an LSTM: h, which it outputs, and c, the cell that carries information over many steps."""

    h: np.ndarray
    c: np.ndarray


class AdditiveGradients(NamedTuple):
    """The gradients of queries, keys, values and the three weights of additive attention."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    W_q: np.ndarray
    W_k: np.ndarray
    w: np.ndarray


class MultiplicativeGradients(NamedTuple):
    """The gradients of queries, keys, values, and of W if it was given."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    W: Optional = None


# --- Elman ---------------------------------------------------------------------------------------------------


@array_likes
def elman_cell(
    x: np.ndarray, h: np.ndarray, W_x: np.ndarray, W_h: np.ndarray, b_x: Optional = None, b_h: Optional = None
) -> np.ndarray:
    """The next state (…, F) for an input x (…, D) and a state h (…, F).

    >>> elman_cell(np.array([1.0]), np.array([0.0]), np.array([[0.5]]), np.array([[2.0]])).round(4).tolist()
    [0.4621]
    """
    check_recurrent(x, {"h": h}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=1, steps=0)
    return np.tanh(linear(x, W_x, b_x) + linear(h, W_h, b_h))


@array_likes
def elman_cell_backward(
    grad_h: np.ndarray,
    x: np.ndarray,
    h: np.ndarray,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> ElmanGradients:
    """The gradients of x, h and the weights, given the gradient of the next state: d(tanh) = 1 − tanh²."""
    d_sum = grad_h * (1 - elman_cell(x, h, W_x, W_h, b_x, b_h) ** 2)
    d_x, d_W_x, d_b_x = linear_backward(d_sum, x, W_x, b_x)
    d_h, d_W_h, d_b_h = linear_backward(d_sum, h, W_h, b_h)
    return ElmanGradients(d_x, d_h, d_W_x, d_W_h, d_b_x, d_b_h)


@array_likes
def elman(
    x: np.ndarray,
    h: Optional,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> np.ndarray:
    """The states (…, T, F) after each step of x (…, T, D). h (…, F) is the state before, zeros if None.

    >>> elman(np.ones((3, 1)), None, np.array([[0.5]]), np.array([[1.0]])).round(3).ravel().tolist()
    [0.462, 0.745, 0.847]
    """
    check_recurrent(x, {"h": h}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=1, steps=1)
    states = [_initial(h, x, W_h)]
    for t in range(x.shape[-2]):
        states.append(elman_cell(x[..., t, :], states[-1], W_x, W_h, b_x, b_h))
    return _over_time(states)


@array_likes
def elman_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    h: Optional,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> ElmanGradients:
    """Backpropagation through time: the gradients, given those of the states (…, T, F).

    The gradient passes one tanh and one W_hᵀ per step, so it shrinks or grows with the distance, like a power.
    """
    output = elman(x, h, W_x, W_h, b_x, b_h)
    before = np.concatenate([_initial(h, x, W_h)[..., None, :], output], axis=-2)  # … T+1 F
    d_h = np.zeros_like(before[..., 0, :])
    steps: list[ElmanGradients] = []
    for t in reversed(range(x.shape[-2])):
        d_h = grad_output[..., t, :] + d_h
        step = elman_cell_backward(d_h, x[..., t, :], before[..., t, :], W_x, W_h, b_x, b_h)
        assert step.h is not None
        d_h = step.h
        steps.append(step)
    weights = (_summed(steps, name, like) for name, like in _named(W_x, W_h, b_x, b_h))
    return ElmanGradients(_inputs(steps, x), None if h is None else d_h, *weights)  # type: ignore[arg-type]


# --- LSTM ----------------------------------------------------------------------------------------------------


@array_likes
def lstm_cell(
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> LSTMState:
    """The next h and c, each (…, F), for an input x (…, D). W_x (D, 4F) and W_h (F, 4F) hold the gates i, f, g, o.

    >>> state = lstm_cell(np.zeros(1), np.zeros(1), np.array([2.0]), np.zeros((1, 4)), np.zeros((1, 4)))
    >>> state.c.tolist(), state.h.round(4).tolist()  # all gates half open: half of the cell is kept
    ([1.0], [0.3808])
    """
    check_recurrent(x, {"h": h, "c": c}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=4, steps=0)
    i, f, g, o = _gates(x, h, W_x, W_h, b_x, b_h)
    c = f * c + i * g
    return LSTMState(o * np.tanh(c), c)


@array_likes
def lstm_cell_backward(
    grad_h: np.ndarray,
    grad_c: np.ndarray,
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> LSTMGradients:
    """The gradients of x, h, c and the weights, given those of the next h and c.

    dc' = grad_c + dh' ∘ o ∘ (1 − tanh²(c')), and from c' to c only the factor f remains: where the forget gate is
    open, the gradient passes a step undiminished. Hochreiter & Schmidhuber call this the constant error carousel.
    """
    i, f, g, o = _gates(x, h, W_x, W_h, b_x, b_h)
    tanh_c = np.tanh(f * c + i * g)
    d_next = grad_c + grad_h * o * (1 - tanh_c**2)
    d_i, d_f, d_g, d_o = d_next * g, d_next * c, d_next * i, grad_h * tanh_c
    d_sum = np.concatenate([d_i * i * (1 - i), d_f * f * (1 - f), d_g * (1 - g**2), d_o * o * (1 - o)], axis=-1)
    d_x, d_W_x, d_b_x = linear_backward(d_sum, x, W_x, b_x)
    d_h, d_W_h, d_b_h = linear_backward(d_sum, h, W_h, b_h)
    return LSTMGradients(d_x, d_h, d_next * f, d_W_x, d_W_h, d_b_x, d_b_h)


@array_likes
def lstm(
    x: np.ndarray,
    h: Optional,
    c: Optional,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
) -> tuple[np.ndarray, LSTMState]:
    """The output h (…, T, F) after each step of x (…, T, D), and the last state. h and c before: zeros if None.

    >>> output, state = lstm(np.zeros((3, 2)), None, [8.0], np.zeros((2, 4)), np.zeros((1, 4)))
    >>> state.c.tolist(), output.shape
    ([1.0], (3, 1))
    """
    check_recurrent(x, {"h": h, "c": c}, {"W_x": W_x, "W_h": W_h, "b_x": b_x, "b_h": b_h}, n_gates=4, steps=1)
    states = _lstm_states(x, h, c, W_x, W_h, b_x, b_h)
    return _over_time([state.h for state in states]), states[-1]


@array_likes
def lstm_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    h: Optional,
    c: Optional,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional = None,
    b_h: Optional = None,
    *,
    grad_c: Optional = None,
) -> LSTMGradients:
    """Backpropagation through time: the gradients, given those of the output (…, T, F) and of the last c, if any."""
    before = _lstm_states(x, h, c, W_x, W_h, b_x, b_h)
    d_h = np.zeros_like(before[0].h)
    d_c = np.zeros_like(before[0].c) if grad_c is None else grad_c
    steps: list[LSTMGradients] = []
    for t in reversed(range(x.shape[-2])):
        d_h = grad_output[..., t, :] + d_h
        step = lstm_cell_backward(d_h, d_c, x[..., t, :], *before[t], W_x, W_h, b_x, b_h)
        assert step.h is not None
        assert step.c is not None
        d_h, d_c = step.h, step.c
        steps.append(step)
    weights = (_summed(steps, name, like) for name, like in _named(W_x, W_h, b_x, b_h))
    d_first = (None if h is None else d_h, None if c is None else d_c)
    return LSTMGradients(_inputs(steps, x), *d_first, *weights)  # type: ignore[arg-type]


# --- attention -----------------------------------------------------------------------------------------------


@array_likes
def additive_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    W_q: np.ndarray,
    W_k: np.ndarray,
    w: np.ndarray,
    mask: MaskLike = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bahdanau's attention and its weights, (…, T, Ev) and (…, T, S), for q (…, T, E), k (…, S, Ek), v (…, S, Ev).

    W_q (E, A), W_k (Ek, A) and w (A,). The paper's s, h, W_a, U_a and v_a are our q, k, W_q, W_k and w; its values
    are the keys themselves. A query to which nothing is visible gets zeros.

    >>> q, k = np.array([[1.0]]), np.array([[0.0], [1.0]])
    >>> additive_attention(q, k, k, np.eye(1), np.eye(1), np.ones(1))[1].round(4).tolist()
    [[0.4496, 0.5504]]
    """
    check_additive(q, k, W_q, W_k, w)
    scores = np.tanh(_sums(q, k, W_q, W_k)) @ w
    return scaled_dot_product_attention(_nothing(q), _nothing(k), v, mask, bias=scores)


@array_likes
def additive_attention_backward(
    grad_output: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    W_q: np.ndarray,
    W_k: np.ndarray,
    w: np.ndarray,
    mask: MaskLike = None,
) -> AdditiveGradients:
    """The gradients of q, k, v, W_q, W_k and w. Softmax and values as in `scaled_dot_product_attention_backward`."""
    check_additive(q, k, W_q, W_k, w)
    tanh = np.tanh(_sums(q, k, W_q, W_k))  # … T S A
    inner = scaled_dot_product_attention_backward(grad_output, _nothing(q), _nothing(k), v, mask, bias=tanh @ w)
    assert inner.bias is not None
    d_scores = inner.bias[..., None]  # … T S 1
    d_sums = d_scores * w * (1 - tanh**2)
    d_q, d_W_q, _ = linear_backward(d_sums.sum(-2), q, W_q)
    d_k, d_W_k, _ = linear_backward(d_sums.sum(-3), k, W_k)
    return AdditiveGradients(d_q, d_k, inner.v, d_W_q, d_W_k, (d_scores * tanh).reshape(-1, len(w)).sum(0))


@array_likes
def multiplicative_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, W: Optional = None, mask: MaskLike = None
) -> tuple[np.ndarray, np.ndarray]:
    """Luong's attention and its weights: "general" with W (E, Ek), "dot" without.

    The same as scaled dot-product attention without the scale, of the projected queries.

    >>> q, k = np.array([[1.0]]), np.array([[0.0], [1.0]])
    >>> multiplicative_attention(q, k, k, 2 * np.eye(1))[1].round(4).tolist()
    [[0.1192, 0.8808]]
    """
    if W is not None:
        check_general(q, k, W)
        q = linear(q, W)
    return scaled_dot_product_attention(q, k, v, mask, scale=1.0)


@array_likes
def multiplicative_attention_backward(
    grad_output: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    W: Optional = None,
    mask: MaskLike = None,
) -> MultiplicativeGradients:
    """The gradients of q, k, v, and of W if given."""
    if W is None:
        inner = scaled_dot_product_attention_backward(grad_output, q, k, v, mask, scale=1.0)
        return MultiplicativeGradients(inner.q, inner.k, inner.v)
    check_general(q, k, W)
    inner = scaled_dot_product_attention_backward(grad_output, linear(q, W), k, v, mask, scale=1.0)
    d_q, d_W, _ = linear_backward(inner.q, q, W)
    return MultiplicativeGradients(d_q, inner.k, inner.v, d_W)


# --- parts ---------------------------------------------------------------------------------------------------


def _gates(
    x: np.ndarray, h: np.ndarray, W_x: np.ndarray, W_h: np.ndarray, b_x: Optional, b_h: Optional
) -> tuple[np.ndarray, ...]:
    """i, f, g and o, each (…, F)."""
    i, f, g, o = np.split(linear(x, W_x, b_x) + linear(h, W_h, b_h), 4, axis=-1)
    return _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2  # 1 / (1 + exp(−x)), which would overflow for large negative x


def _lstm_states(
    x: np.ndarray,
    h: Optional,
    c: Optional,
    W_x: np.ndarray,
    W_h: np.ndarray,
    b_x: Optional,
    b_h: Optional,
) -> list[LSTMState]:
    """The T + 1 states: before the first step, and after each."""
    states = [LSTMState(_initial(h, x, W_h), _initial(c, x, W_h))]
    for t in range(x.shape[-2]):
        states.append(lstm_cell(x[..., t, :], *states[-1], W_x, W_h, b_x, b_h))
    return states


def _initial(state: Optional, x: np.ndarray, W_h: np.ndarray) -> np.ndarray:
    return np.zeros((*x.shape[:-2], len(W_h)), computing_dtype(x)) if state is None else state


def _over_time(states: Sequence[np.ndarray]) -> np.ndarray:
    """The states after each step, (…, T, F), without the initial one."""
    return np.stack(states, axis=-2)[..., 1:, :]


def _inputs(steps: Sequence[ElmanGradients] | Sequence[LSTMGradients], x: np.ndarray) -> np.ndarray:
    """The gradients of x, (…, T, D), from those of the steps, last step first."""
    return np.stack([step.x for step in reversed(steps)], axis=-2) if steps else np.zeros_like(x)


def _summed(steps: Sequence[ElmanGradients] | Sequence[LSTMGradients], name: str, like: Optional) -> Optional:
    """The gradient of a weight that all steps share: the sum over the steps."""
    return None if like is None else sum((getattr(step, name) for step in steps), start=np.zeros_like(like))


def _named(W_x: np.ndarray, W_h: np.ndarray, b_x: Optional, b_h: Optional) -> tuple[tuple[str, Optional], ...]:
    return ("W_x", W_x), ("W_h", W_h), ("b_x", b_x), ("b_h", b_h)


def _sums(q: np.ndarray, k: np.ndarray, W_q: np.ndarray, W_k: np.ndarray) -> np.ndarray:
    """q W_q + k W_k for every query and key, (…, T, S, A)."""
    return linear(q, W_q)[..., :, None, :] + linear(k, W_k)[..., None, :, :]


def _nothing(x: np.ndarray) -> np.ndarray:
    """Queries or keys of zeros: their scores are 0, so that the bias alone gives the scores."""
    return np.zeros((*x.shape[:-1], 1), computing_dtype(x))
