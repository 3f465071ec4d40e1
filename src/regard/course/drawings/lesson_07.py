"""The pictures of lesson 7: parameters, LayerNorm by hand, pre- and post-norm, gradients through 24 layers.

The gradients are of a deep stack of self-attention and feed-forward layers in NumPy, forward and backward. Its weights
are random, as before training (Xavier), and the same for every style; no weight is ever updated.
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from regard.course.drawings.blocks import Bars, Box, Curves, Drawing, Flow, Label, Line, Matrix, Sign
from regard.layer_checks import Projections
from regard.messages import Message
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


STYLE_LABELS: dict[Style, Label] = {
    "pre-norm": Message("pre-norm", "pre-norm"),
    "post-norm": Message("post-norm", "post-norm"),
    "no residual": Message("without residual", "没有残差"),
    "no norm": Message("without norm", "没有归一化"),
    "neither": Message("without both", "两者都没有"),
}


def layer_parameters() -> Drawing:
    """The parameters of one encoder layer of the 2017 paper."""
    d, d_ff = 512, 2048
    return Drawing(
        title=Message("Where the parameters of a layer are", "一层的参数在哪里"),
        blocks=(
            Bars(
                values={
                    Message("feed-forward", "前馈层"): (d * d_ff + d_ff + d_ff * d + d) / 1e3,
                    Message("attention", "注意力"): 4 * (d * d + d) / 1e3,
                    Message("two LayerNorms", "两个层归一化"): 2 * 2 * d / 1e3,
                },
                title=Message("encoder layer, d_model = 512, d_ff = 2048", "编码器层，d_model = 512，d_ff = 2048"),
                unit=" k",
                decimals=0,
            ),
        ),
        caption=Message(
            "Thousands of parameters, biases included. Two thirds are in the feed-forward layer.",
            "单位是千个参数，包括偏置。三分之二在前馈层。",
        ),
    )


def layer_norm_by_hand() -> Drawing:
    """Two rows, one ten times the other, become the same."""
    x = np.array([[1.0, 3.0, 5.0, 7.0], [10.0, 30.0, 50.0, 70.0]])
    centred = x - x.mean(axis=-1, keepdims=True)
    words = (Message("word 1", "词 1"), Message("word 2", "词 2"))
    return Drawing(
        title=Message("LayerNorm: each row for itself", "层归一化：每一行各算各的"),
        blocks=(
            Line(
                (
                    Matrix(values=x, title="x", rows=words, decimals=0, highest=100),
                    Sign("→"),
                    Matrix(values=centred, title=Message("− mean", "− 均值"), decimals=0, highest=50),
                    Sign("→"),
                    Matrix(
                        values=layer_norm(x, eps=0),
                        title=Message("÷ standard deviation", "÷ 标准差"),
                        decimals=3,
                        highest=2,
                    ),
                )
            ),
        ),
        caption=Message(
            "Means 4 and 40, standard deviations 2.236 and 22.36. The second row is ten times the first; afterwards "
            "they are equal.",
            "均值是 4 和 40，标准差是 2.236 和 22.36。第二行是第一行的十倍，归一化之后两行相同。",
        ),
    )


def pre_and_post_norm() -> Drawing:
    """One sub-layer, with the norm before or after."""
    sub_layer, norm = Message("attention or feed-forward", "注意力或前馈层"), "LayerNorm"
    start = Box(text="x", kind="input")
    return Drawing(
        title=Message("One sub-layer, two places for the norm", "同一个子层，归一化的两种位置"),
        blocks=(
            Flow(
                lanes=(
                    (start, Box(text=norm), Box(text=sub_layer, kind="attention"), Box(text="+", kind="quiet")),
                    (start, Box(text=sub_layer, kind="attention"), Box(text="+", kind="quiet"), Box(text=norm)),
                ),
                titles=(
                    Message("pre-norm (today)", "pre-norm（现在）"),
                    Message("post-norm (2017)", "post-norm（2017）"),
                ),
                skips=((0, 0, 3), (1, 0, 2)),
            ),
        ),
        caption=Message(
            "Left, the line from x to + touches no norm: it runs through the whole model. Right, every sub-layer "
            "rescales it.",
            "左边，从 x 到 + 的通路不经过归一化，一直贯穿整个模型。右边，每个子层都要把它重新缩放一次。",
        ),
    )


def gradients_through_layers() -> Drawing:
    """The gradient at the input of each of 24 layers, before training."""
    found = {style: stack_gradients(style).inputs for style in STYLE_LABELS}
    return Drawing(
        title=Message("The gradient that reaches each of 24 layers", "梯度传到 24 层中的每一层"),
        blocks=(
            Curves(
                x=np.arange(25.0),
                series={name: found[style] for style, name in STYLE_LABELS.items()},
                x_label=Message("layers below (24: the output)", "下面有几层（24 是输出）"),
                y_label=Message("norm of the gradient", "梯度的范数"),
                log_y=True,
            ),
        ),
        caption=Message(
            "A gradient of length 1 starts on the right and goes back to the left; random weights, before training. "
            "Without both it vanishes, with residuals alone it explodes.",
            "长度为 1 的梯度从右边出发，向左反向传播；权重随机，尚未训练。两者都没有，梯度消失；只有残差，梯度爆炸。",
        ),
    )


def weight_gradients() -> Drawing:
    """The gradient of W_1 in each layer: pre-norm against post-norm."""
    both: tuple[Style, ...] = ("pre-norm", "post-norm")
    return Drawing(
        title=Message("The gradient of W_1 in each layer", "每一层 W_1 的梯度"),
        blocks=(
            Curves(
                x=np.arange(1.0, 25.0),
                series={STYLE_LABELS[style]: stack_gradients(style).weights for style in both},
                x_label=Message("layer", "层"),
                y_label=Message("norm of the gradient of W_1", "W_1 的梯度的范数"),
            ),
        ),
        caption=Message(
            "Before training. With post-norm the layers near the output get large gradients: the first steps must "
            "be small, hence warm-up.",
            "训练之前。用 post-norm，靠近输出的层梯度很大，最初几步必须很小，所以需要预热。",
        ),
    )


DRAWINGS = {
    "layer-parameters": layer_parameters,
    "layer-norm-by-hand": layer_norm_by_hand,
    "pre-and-post-norm": pre_and_post_norm,
    "gradients-through-layers": gradients_through_layers,
    "weight-gradients": weight_gradients,
}
