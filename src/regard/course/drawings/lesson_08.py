"""The pictures of lesson 8: the whole Transformer with one sentence in it, training, beam search, and a film.

Shapes, weights and probabilities are those of the bundled translator.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from regard.course.drawings import measured
from regard.course.drawings.blocks import Box, Curves, Drawing, Flow, Label, Line, Matrix
from regard.language import load
from regard.messages import Message
from regard.reference import softmax

SENTENCE, TRANSLATION = "I love you", "我爱你"
SEARCHED = "I paid three hundred yuan for these shoes."
GREEDY, BEST = "这双鞋我花了三百元买了这双鞋。", "我花了三百元买了这双鞋。"


class Pass(NamedTuple):
    """One forward pass of the translator: the shape of each part, and the probabilities of the next token, (T, W)."""

    shapes: dict[str, tuple[int, ...]]
    source: list[str]
    ids: list[int]
    probabilities: np.ndarray


@cache
def forward_pass(text: str, output: str) -> Pass:
    """The bundled translator reads `text`, and `output` after its <bos>."""
    translator = load("translator")
    bos, eos = (translator.tokenizer.special(name) for name in ("bos", "eos"))
    source, ids = [*translator.tokenizer.encode(text), eos], [bos, *translator.tokenizer.encode(output)]
    shapes: dict[str, tuple[int, ...]] = {}
    inputs = np.array([ids]), np.array([source])
    logits = translator.model(*inputs, observer=lambda name, x: shapes.setdefault(name, x.shape))[0]
    logits = logits.astype(np.float64)
    words = [piece.strip() for piece in translator.tokenizer.pieces(source)]
    return Pass(shapes, words, [*ids[1:], eos], softmax(logits))


def whole_transformer() -> Drawing:
    """Both stacks, from ids to logits, with the shapes of one sentence."""
    shapes = forward_pass(SENTENCE, TRANSLATION).shapes

    def box(text: Label, name: str, kind: str = "plain") -> Box:
        return Box(text=text, shape=str(shapes[name]), kind=kind)  # type: ignore[arg-type]

    feed_forward = Message("feed-forward", "前馈层")
    embedding = Message("embedding × √320 + positions", "词嵌入 × √320 + 位置编码")
    encoder = (
        Box(text="I love you <eos>", shape="(1, 4)", kind="input"),
        box(embedding, "encoder.positions", "quiet"),
        box(Message("self-attention", "自注意力"), "encoder.layers.0.self_attention", "attention"),
        box(feed_forward, "encoder.layers.0.feed_forward", "position-wise"),
        box(Message("… 3 layers, norm", "…… 共 3 层，归一化"), "encoder.norm"),
        None,
        None,
        None,
    )
    decoder = (
        Box(text="<bos> 我 爱 你", shape="(1, 4)", kind="input"),
        box(embedding, "decoder.positions", "quiet"),
        None,
        box(Message("masked self-attention", "带掩码的自注意力"), "decoder.layers.0.self_attention", "attention"),
        box(Message("cross-attention", "交叉注意力"), "decoder.layers.0.cross_attention", "attention"),
        box(feed_forward, "decoder.layers.0.feed_forward", "position-wise"),
        box(Message("… 3 layers, norm", "…… 共 3 层，归一化"), "decoder.norm"),
        box(Message("output layer: logits", "输出层：logits"), "logits", "input"),
    )
    return Drawing(
        title=Message("One sentence in the whole Transformer", "一句话穿过整个 Transformer"),
        blocks=(
            Flow(
                lanes=(encoder, decoder),
                titles=(Message("encoder", "编码器"), Message("decoder", "解码器")),
                across=((4, 0, 1),),
            ),
        ),
        caption=Message(
            "The bundled translator. Every sub-layer has its residual connection and its norm. The encoder's output "
            "goes to the cross-attention of all three decoder layers.",
            "自带的翻译模型。每个子层都有残差连接和归一化。编码器的输出送到解码器全部三层的交叉注意力。",
        ),
    )


def three_attentions() -> Drawing:
    """Weights of three heads: in the encoder, in the decoder, and between them."""
    trace = load("translator").see(SENTENCE, output=TRANSLATION).trace
    heads = (
        ("encoder.layers.0.self_attention", 7, Message("encoder: self", "编码器：自注意力")),
        ("decoder.layers.2.self_attention", 3, Message("decoder: masked self", "解码器：带掩码")),
        ("decoder.layers.2.cross_attention", 2, Message("cross", "交叉注意力")),
    )
    return Drawing(
        title=Message("Three kinds of attention, three heads", "三种注意力，三个头"),
        blocks=tuple(
            Line(
                tuple(
                    Matrix(
                        values=np.asarray(trace[name].weights(head=head)[0], dtype=float),
                        title=title,
                        rows=_plain(trace[name].query_tokens),
                        columns=_plain(trace[name].key_tokens),
                        highest=1.0,
                    )
                    for name, head, title in group
                )
            )
            for group in (heads[:2], heads[2:])
        ),
        caption=Message(
            "Rows are queries, columns are keys; weights of the bundled translator. Above the diagonal the decoder "
            "sees nothing. In cross-attention the queries are Chinese, the keys English: the row <bos> writes 我.",
            "行是查询，列是键；权重来自自带的翻译模型。解码器看不到对角线以上的部分。交叉注意力的查询是中文，键是英文："
            "<bos> 这一行要写出“我”。",
        ),
    )


def teacher_forcing() -> Drawing:
    """The probability of each target in each row."""
    found = forward_pass(SENTENCE, TRANSLATION)
    targets = [*TRANSLATION, "<eos>"]
    values = found.probabilities[:, found.ids]
    return Drawing(
        title=Message("All positions are trained at once", "所有位置一次训练"),
        blocks=(
            Matrix(
                values=values,
                title=Message("probability of the next token", "下一个词元的概率"),
                rows=["<bos>", *TRANSLATION],
                columns=targets,
                decimals=3,
                highest=1.0,
                marked=frozenset((i, i) for i in range(len(targets))),
            ),
        ),
        caption=Message(
            "Rows: what the decoder reads. Framed: the target of this row, the token one place further. One pass gives "
            "four predictions.",
            "行是解码器读到的词元。框出的是这一行的目标，也就是后一位的词元。一遍计算得到四个预测。",
        ),
    )


def smoothed_loss() -> Drawing:
    """The loss over the probability of the right token."""
    classes, p = 8000, np.linspace(0.01, 0.9999, 200)
    wrong = np.log((1 - p) / (classes - 1))
    losses: dict[Label, np.ndarray] = {}
    for epsilon in (0.0, 0.1):
        wanted = 1 - epsilon + epsilon / classes
        losses[f"ε = {epsilon:g}"] = -(wanted * np.log(p) + (1 - wanted) * wrong)
    return Drawing(
        title=Message("Label smoothing does not reward certainty", "标签平滑不鼓励绝对的把握"),
        blocks=(
            Curves(
                x=p,
                series=losses,
                x_label=Message("probability of the right token", "正确词元的概率"),
                y_label=Message("loss", "损失"),
            ),
        ),
        caption=Message(
            "8,000 tokens; the wrong ones share the rest evenly. With ε = 0.1 the loss is lowest at 0.9 and rises "
            "again towards 1.",
            "共 8000 个词元，错误的词元平分剩下的概率。ε = 0.1 时，损失在 0.9 处最小，越接近 1 反而越大。",
        ),
    )


def warm_up() -> Drawing:
    """The learning rate of the 2017 paper."""
    steps = np.arange(1.0, 20_001.0, 50)
    return Drawing(
        title=Message("Warm-up: the learning rate of 2017", "预热：2017 年的学习率"),
        blocks=(
            Curves(
                x=steps,
                series={
                    Message(f"warm-up {w:,}", f"预热 {w} 步"): 1e3 * learning_rate(steps, warmup=w)
                    for w in (4000, 8000)
                },
                x_label=Message("step", "步"),
                y_label=Message("learning rate × 1000", "学习率 × 1000"),
            ),
        ),
        caption=Message(
            "d_model = 512. The rate rises evenly, then falls as 1/√step. The paper uses 4,000 steps.",
            "d_model = 512。学习率先均匀上升，再按 1/√步数 下降。论文用的是 4000 步。",
        ),
    )


def learning_rate(step: np.ndarray, *, d_model: int = 512, warmup: int = 4000) -> np.ndarray:
    """d_model^−0.5 · min(step^−0.5, step · warmup^−1.5), section 5.3 of the 2017 paper.

    >>> float(learning_rate(np.array(4000.0)).round(6))
    0.000699
    """
    return np.asarray(d_model**-0.5 * np.minimum(step**-0.5, step * warmup**-1.5))


def greedy_and_beam() -> Drawing:
    """Two translations, token by token."""
    names = {GREEDY: Message("greedy", "贪心"), BEST: Message("beam search", "束搜索")}
    parts = []
    for output, name in names.items():
        steps = step_probabilities(SEARCHED, output)
        total = f"{np.log(steps).sum():.3f}".replace("-", "−")
        parts.append(
            Matrix(
                values=steps[None],
                title=Message(f"{name.en}: sum of logarithms {total}", f"{name.zh}：对数之和 {total}"),
                columns=[*output, "<eos>"],
                decimals=3,
                highest=1.0,
            )
        )
    return Drawing(
        title=Message(f"“{SEARCHED}”, written in two ways", f"“{SEARCHED}”的两种译文"),
        blocks=tuple(parts),
        caption=Message(
            "The probability of each token after those before it. After 父亲 greedy takes 一 and pays at the full "
            "stop, three tokens later; beam search also keeps 就 and finds the better sentence.",
            "每个词元在前文之后的概率。在“父亲”之后，贪心选了“一”，三个词元之后，到句号就吃了亏；束搜索也保留了“就”，"
            "找到了更好的句子。",
        ),
    )


def step_probabilities(text: str, output: str) -> np.ndarray:
    """The probability of each token of `output` and of its end."""
    found = forward_pass(text, output)
    return np.asarray(found.probabilities[np.arange(len(found.ids)), found.ids])


def frame(film: Any, title: Label, weights: list[list[float]]) -> Matrix:
    """One frame of a stored film; ↵ is the end."""
    columns = ["↵" if token == "<eos>" else token for token in film["columns"]]
    values = np.array(weights)
    return Matrix(values=values, title=title, rows=film["rows"], columns=columns, decimals=None, highest=1.0)


def loss_curve(film: Any) -> Curves:
    """The training loss of a stored film."""
    return Curves(
        x=np.array([float(step) for step in film["loss"]]),
        series={Message("training loss", "训练损失"): np.array(list(film["loss"].values()))},
        x_label=Message("step", "步"),
        log_y=True,
    )


def copy_film() -> Drawing:
    """Four frames of the recipe `copy`, and its loss; from docs/pictures/film_frames.py."""
    film = measured("copy-film")
    (weights,) = film["frames"].values()
    frames = [frame(film, Message(f"step {step}", f"第 {step} 步"), weights[step]) for step in weights]
    return Drawing(
        title=Message("A head learns to copy", "一个头学会照抄"),
        blocks=(
            Line(tuple(frames[:2])),
            Line(tuple(frames[2:])),
            loss_curve(film),
        ),
        caption=Message(
            "Cross-attention of the recipe copy, seed 0. Each row looks at the letter that it has to write next (↵ "
            "is the end): a diagonal, once learned. The loss falls at the same time.",
            "配方 copy 的交叉注意力，种子 0。每一行看的是接下来要写的字母（↵ 是结尾）：学会之后就是一条对角线。损失"
            "同时下降。",
        ),
    )


def _plain(tokens: Sequence[Sequence[str]] | None) -> list[str]:
    """The tokens of the only sample, without the mark of a space."""
    return [token.strip() for token in tokens[0]] if tokens else []


DRAWINGS = {
    "whole-transformer": whole_transformer,
    "three-attentions": three_attentions,
    "teacher-forcing": teacher_forcing,
    "smoothed-loss": smoothed_loss,
    "warm-up": warm_up,
    "greedy-and-beam": greedy_and_beam,
    "copy-film": copy_film,
}
