"""The pictures of lesson 10: the stacks of four families, their masks, their training tasks, their weights."""

from math import prod

import numpy as np

from regard.config import AttentionStyle, Biases, Embeddings, Norm, Output, Relative, TransformerConfig
from regard.config.weights import weight_shapes
from regard.course.drawings.blocks import Box, Drawing, Flow, Line, Matrix
from regard.masks import Mask
from regard.messages import Message

WORDS = ("The", "cat", "sat", "on", "the", "mat")


def same_parts() -> Drawing:
    """The stacks of BERT, of GPT and Llama, and of T5, side by side."""
    embedding = Box(text=Message("embedding", "词嵌入"), kind="input")
    both = Box(text=Message("self-attention ↔", "自注意力 ↔"), kind="attention")
    back = Box(text=Message("self-attention ←", "自注意力 ←"), kind="attention")
    cross = Box(text=Message("cross-attention", "交叉注意力"), kind="attention")
    forward = Box(text=Message("feed-forward", "前馈层"), kind="position-wise")
    output = Box(text=Message("output", "输出层"))
    return Drawing(
        title=Message("The same parts, three arrangements", "同样的部件，三种组合"),
        blocks=(
            Flow(
                lanes=(
                    (embedding, both, None, forward, output),
                    (embedding, back, None, forward, output),
                    (embedding, both, forward, None, None),
                    (embedding, back, cross, forward, output),
                ),
                titles=(
                    "BERT",
                    Message("GPT, Llama", "GPT、Llama"),
                    Message("T5: encoder", "T5：编码器"),
                    Message("T5: decoder", "T5：解码器"),
                ),
                across=((2, 2, 3),),
            ),
        ),
        caption=Message(
            "↔ sees both sides, ← sees itself and what is before it. Attention and feed-forward together are one "
            "layer, which repeats; each has a residual connection and a norm, not drawn here. The arrow is the "
            "encoder’s output after its last layer.",
            "↔ 两边都能看，← 只看自己和前面。注意力和前馈层合起来是一层，重复多次；每个部件都有残差连接和归一化，"
            "图中没有画。横向的箭头是编码器最后一层的输出。",
        ),
    )


def three_masks() -> Drawing:
    """What each position sees in an encoder, in a decoder, and in the three attentions of an encoder–decoder."""
    n, target = len(WORDS), ("<bos>", "猫", "坐")
    full, causal = np.ones((n, n), dtype=bool), Mask.causal().dense(n, n)
    return Drawing(
        title=Message("Three kinds of models, three kinds of masks", "三类模型，三种掩码"),
        blocks=(
            Line(
                (
                    Matrix(
                        values=full,
                        title=Message("BERT; encoder of 2017, T5", "BERT；2017、T5 的编码器"),
                        rows=WORDS,
                        columns=WORDS,
                    ),
                    Matrix(values=causal, title=Message("GPT, Llama", "GPT、Llama"), rows=WORDS, columns=WORDS),
                )
            ),
            Line(
                (
                    Matrix(
                        values=np.ones((len(target), n), dtype=bool),
                        title=Message("2017, T5: decoder to encoder", "2017、T5：解码器看编码器"),
                        rows=target,
                        columns=WORDS,
                    ),
                    Matrix(
                        values=Mask.causal().dense(len(target), len(target)),
                        title=Message("decoder to itself", "解码器看自己"),
                        rows=target,
                        columns=target,
                    ),
                )
            ),
        ),
        caption=Message(
            "Rows are queries, columns are keys; filled is visible. An encoder–decoder uses the first, third and "
            "fourth.",
            "行是查询，列是键，填上的格子表示可见。编码器–解码器用到第一、第三和第四种。",
        ),
    )


def training_tasks() -> Drawing:
    """The input and the targets of four training tasks, from one sentence."""
    sentence = " ".join(WORDS)

    def lane(model: str, given: str, wanted: str) -> tuple[Box, Box, Box]:
        return Box(text=given, kind="input"), Box(text=model, kind="attention"), Box(text=wanted, kind="position-wise")

    return Drawing(
        title=Message("One sentence, four training tasks", "一个句子，四种训练任务"),
        blocks=(
            Flow(
                lanes=(
                    lane("BERT", sentence.replace("sat", "[MASK]"), "sat"),
                    lane("GPT, Llama", " ".join(WORDS[:-1]), " ".join(WORDS[1:])),
                ),
                titles=(Message("masked words", "掩码语言模型"), Message("next token", "预测下一个词元")),
            ),
            Flow(
                lanes=(
                    lane("T5", sentence.replace("cat sat", "<X>").replace("mat", "<Y>"), "<X> cat sat <Y> mat <Z>"),
                    lane("2017", sentence, "猫坐在垫子上"),
                ),
                titles=(Message("span corruption", "片段还原"), Message("translation", "翻译")),
            ),
        ),
        caption=Message(
            "Above the input, below the targets. BERT predicts the masked word only, GPT a word at every position, T5 "
            "the missing spans, the model of 2017 a translation.",
            "上面是输入，下面是目标。BERT 只预测被盖住的词，GPT 在每个位置都预测一个词，T5 预测缺失的片段，"
            "2017 年的模型预测译文。",
        ),
    )


def where_weights_are() -> Drawing:
    """The share of embeddings, attention, feed-forward and the rest in the weights of five models."""
    t5 = TransformerConfig.paper_2017(
        vocab_size=32_128,
        positions=Relative(),
        norm=Norm(kind="rms", place="pre", eps=1e-6, final=True),
        attention=AttentionStyle(scale=1.0),
        biases=Biases.none(),
        embeddings=Embeddings(),
        output=Output(scaled=True),
    )
    models = {
        "T5 small": t5,
        "BERT base": TransformerConfig.bert(),
        "GPT-2": TransformerConfig.gpt2(),
        "Llama 3.2 1B": TransformerConfig.llama("1B"),
        "Llama 3.1 8B": TransformerConfig.llama("8B"),
    }
    rows, values = [], []
    for name, config in models.items():
        sizes = {weight: prod(shape) for weight, shape in weight_shapes(config).items()}
        total = sum(sizes.values())
        parts = [
            sum(size for weight, size in sizes.items() if wanted in weight and "norm" not in weight)
            for wanted in ("_attention.", "feed_forward.")
        ]
        table = sum(size for weight, size in sizes.items() if weight in ("embedding.weight", "output.weight"))
        rows.append(f"{name}, {total / 1e6:,.0f} M")
        values.append([100 * part / total for part in (table, *parts, total - table - sum(parts))])
    return Drawing(
        title=Message("Where the weights are, in percent", "权重都在哪里（百分比）"),
        blocks=(
            Matrix(
                values=np.array(values),
                rows=rows,
                columns=(
                    Message("embedding, output", "词嵌入与输出"),
                    Message("attention", "注意力"),
                    Message("feed-forward", "前馈层"),
                    Message("rest", "其他"),
                ),
                decimals=1,
            ),
        ),
        caption=Message(
            "Small models spend much on the vocabulary, large ones on the feed-forward layers. The rest is positions, "
            "norms, biases of the output, and BERT’s output transform.",
            "小模型的权重有很大一部分用在词表上，大模型则用在前馈层上。"
            "其他包括位置表、归一化、输出层的偏置，以及 BERT 的输出变换。",
        ),
    )


DRAWINGS = {
    "same-parts": same_parts,
    "three-masks": three_masks,
    "training-tasks": training_tasks,
    "where-weights-are": where_weights_are,
}
