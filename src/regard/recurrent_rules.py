"""Rules and checks of recurrent layers and of their attention, shared by NumPy and torch. No arrays, only shapes."""

from collections.abc import Mapping
from typing import Any

from regard.axes import Shape
from regard.errors import ShapeError

GATES = ("i", "f", "g", "o")
"""The gates of an LSTM in the order of its columns, as in PyTorch: input, forget, candidate, output."""


def check_recurrent(x: Any, states: Mapping[str, Any], weights: Mapping[str, Any], n_gates: int, steps: int) -> None:
    """ShapeError unless x (…, D) or (…, T, D), states (…, F) and weights fit together.

    states    h, and c of an LSTM; None for zeros
    weights   W_x (D, G·F), W_h (F, G·F) and the biases (G·F,), None for no bias; G is `n_gates`
    steps     the number of time axes of x: 0 for a cell, 1 for a whole text
    """
    if x.ndim < 1 + steps:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    W_h: Shape = tuple(weights["W_h"].shape)
    F = W_h[0] if W_h else 0
    wanted: dict[str, Shape] = {"W_h": (F, n_gates * F), "W_x": (x.shape[-1], n_gates * F)}
    wanted |= dict.fromkeys(("b_x", "b_h"), (n_gates * F,))
    wanted |= dict.fromkeys(states, (*x.shape[: x.ndim - 1 - steps], F))
    for name, part in {**weights, **states}.items():
        if part is not None and tuple(part.shape) != wanted[name]:
            raise ShapeError("output-shape", what=name, wanted=wanted[name], found=tuple(part.shape))


def check_additive(q: Any, k: Any, W_q: Any, W_k: Any, w: Any) -> None:
    """ShapeError unless W_q (E, A), W_k (Ek, A) and w (A,) fit queries (…, T, E) and keys (…, S, Ek)."""
    A = w.shape[:1]
    wanted = {"W_q": (q.shape[-1], *A), "W_k": (k.shape[-1], *A), "w": A}
    for name, part in (("W_q", W_q), ("W_k", W_k), ("w", w)):
        if tuple(part.shape) != tuple(wanted[name]):
            raise ShapeError("output-shape", what=name, wanted=tuple(wanted[name]), found=tuple(part.shape))


def check_general(q: Any, k: Any, W: Any) -> None:
    """ShapeError unless W (E, Ek) fits queries (…, T, E) and keys (…, S, Ek)."""
    wanted = (q.shape[-1], k.shape[-1])
    if tuple(W.shape) != wanted:
        raise ShapeError("output-shape", what="W", wanted=wanted, found=tuple(W.shape))
