"""A deep stack of self-attention and feed-forward layers in NumPy, forward and backward, for lesson 7.

The weights are random, as before training (Xavier), and the same for every style; no weight is ever updated.
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from regard.layer_checks import Projections
from regard.reference import (
    feed_forward,
    feed_forward_backward,
    layer_norm,
    layer_norm_backward,
    multi_head_attention,
    multi_head_attention_backward,
)

Style = Literal["pre-norm", "post-norm", "no residual", "no norm", "neither"]
STYLES: tuple[Style, ...] = ("pre-norm", "post-norm", "no residual", "no norm", "neither")
"""x + f(norm(x)); norm(x + f(x)); norm(f(x)); x + f(x); f(x)."""
N_HEADS = 4


class Layer(NamedTuple):
    """The weights of one layer."""

    projections: Projections
    W_1: np.ndarray
    W_2: np.ndarray


class StackGradients(NamedTuple):
    """What one backward pass finds.

    inputs   the norm of the gradient at the input of each layer, and last at the output of the stack
    weights  the norm of the gradient of W_1 of each layer
    output   the output, T × d_model
    """

    inputs: np.ndarray
    weights: np.ndarray
    output: np.ndarray


@cache
def stack_gradients(style: Style, n_layers: int = 24, d_model: int = 32, T: int = 8) -> StackGradients:
    """Run one text through the stack, and a random gradient of length 1 back through it.

    >>> found = stack_gradients("neither", n_layers=2)
    >>> found.inputs.shape, found.weights.shape, bool(found.inputs[0] < 1)
    ((3,), (2,), True)
    """
    random = np.random.default_rng(0)
    layers = [_layer(random, d_model) for _ in range(n_layers)]
    x, inputs = random.normal(size=(T, d_model)), []
    for layer in layers:
        for part in ("attention", "feed-forward"):
            inputs.append(x)
            x = _forward(style, part, x, layer)
    output = layer_norm(x) if style == "pre-norm" else x
    gradient = random.normal(size=x.shape)
    gradient /= np.linalg.norm(gradient)
    if style == "pre-norm":
        gradient = layer_norm_backward(gradient, x).x
    sizes, weights = [np.linalg.norm(gradient)], []
    for layer in reversed(layers):
        gradient, d_W_1 = _backward(style, "feed-forward", gradient, inputs.pop(), layer)
        gradient, _ = _backward(style, "attention", gradient, inputs.pop(), layer)
        sizes.append(np.linalg.norm(gradient))
        weights.append(np.linalg.norm(d_W_1))
    return StackGradients(np.array(sizes[::-1]), np.array(weights[::-1]), output)


def _layer(random: np.random.Generator, d: int) -> Layer:
    """Xavier: variance 2 / (inputs + outputs)."""
    W_q, W_k, W_v, W_o = random.normal(size=(4, d, d)) / np.sqrt(d)
    W_1, W_2 = (random.normal(size=shape) * np.sqrt(2 / (5 * d)) for shape in ((d, 4 * d), (4 * d, d)))
    return Layer(Projections(W_q, W_k, W_v, W_o), W_1, W_2)


def _f(part: str, x: np.ndarray, layer: Layer) -> np.ndarray:
    if part == "attention":
        return multi_head_attention(x, x, x, layer.projections, N_HEADS)[0]
    return feed_forward(x, layer.W_1, layer.W_2)


def _f_backward(part: str, gradient: np.ndarray, x: np.ndarray, layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of x, and that of W_q or W_1."""
    if part == "attention":
        found = multi_head_attention_backward(gradient, x, x, x, layer.projections, N_HEADS)
        return found.q + found.k + found.v, found.projections.W_q
    both = feed_forward_backward(gradient, x, layer.W_1, layer.W_2)
    return both.x, both.W_1


def _forward(style: Style, part: str, x: np.ndarray, layer: Layer) -> np.ndarray:
    if style == "pre-norm":
        return x + _f(part, layer_norm(x), layer)
    y = _f(part, x, layer)
    if style in ("post-norm", "no norm"):
        y = x + y
    return layer_norm(y) if style in ("post-norm", "no residual") else y


def _backward(
    style: Style, part: str, gradient: np.ndarray, x: np.ndarray, layer: Layer
) -> tuple[np.ndarray, np.ndarray]:
    if style == "pre-norm":
        inner, d_W = _f_backward(part, gradient, layer_norm(x), layer)
        return gradient + layer_norm_backward(inner, x).x, d_W
    residual = style in ("post-norm", "no norm")
    if style in ("post-norm", "no residual"):
        y = _f(part, x, layer)
        gradient = layer_norm_backward(gradient, x + y if residual else y).x
    inner, d_W = _f_backward(part, gradient, x, layer)
    return (gradient + inner if residual else inner), d_W
