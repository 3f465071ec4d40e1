"""The pictures of lesson 7: parameters, LayerNorm by hand, pre- and post-norm, gradients through 24 layers."""

import numpy as np

from regard.course.drawings.blocks import Bars, Box, Curves, Drawing, Flow, Label, Line, Matrix, Sign
from regard.course.drawings.deep_stack import Style, stack_gradients
from regard.messages import Message
from regard.reference import layer_norm

STYLES: dict[Style, Label] = {
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
    found = {style: stack_gradients(style).inputs for style in STYLES}
    return Drawing(
        title=Message("The gradient that reaches each of 24 layers", "梯度传到 24 层中的每一层"),
        blocks=(
            Curves(
                x=np.arange(25.0),
                series={name: found[style] for style, name in STYLES.items()},
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
                series={STYLES[style]: stack_gradients(style).weights for style in both},
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
