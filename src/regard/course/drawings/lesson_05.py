"""The pictures of lesson 5: many heads as a flow chart, splitting right and wrong, and heads of the translator."""

import numpy as np

from regard.course.drawings.blocks import Box, Drawing, Flow, Line, Matrix, Sign
from regard.language import load
from regard.messages import Message
from regard.reference import merge_heads, split_heads

HEADS, WIDTH = 2, 4
WORDS = (Message("word 1", "词 1"), Message("word 2", "词 2"), Message("word 3", "词 3"))
NUMBERS = np.arange(10.0, 40.0, 10.0)[:, None] + np.arange(HEADS * WIDTH)
"""Three words with eight features: 10 to 17, 20 to 27, 30 to 37."""


def multi_head_flow() -> Drawing:
    """The flow chart with the projections, beside the one that leaves them out."""

    def boxes(projected: bool) -> list[Box | None]:
        project = Box(text=Message("x W_q, x W_k, x W_v", "x W_q、x W_k、x W_v"), shape="3 × (B, T, 512)", kind="input")
        return [
            Box(text=Message("input x", "输入 x"), shape="(B, T, 512)", kind="input"),
            project if projected else None,
            Box(
                text=Message("split: 8 heads of 64", "拆成 8 个头，各宽 64"),
                shape="3 × (B, 8, T, 64)" if projected else "(B, 8, T, 64)",
            ),
            Box(text=Message("attention in each head", "各个头计算注意力"), shape="(B, 8, T, 64)", kind="attention"),
            Box(text=Message("merge", "合并"), shape="(B, T, 512)"),
            Box(text="× W_o", shape="(B, T, 512)", kind="position-wise"),
        ]

    return Drawing(
        title=Message("Many heads: project, split, attend, merge, project", "多头：投影、拆分、计算、合并、再投影"),
        blocks=(
            Flow(
                lanes=(boxes(True), boxes(False)),
                titles=(Message("right", "正确"), Message("often drawn: no projections", "常见的图：漏了投影")),
            ),
        ),
        caption=Message(
            "d_model = 512, 8 heads, d_k = 64. On the right each head would see only its own 64 features, and its "
            "scores would be symmetric.",
            "d_model = 512，8 个头，d_k = 64。照右边的画法，每个头只能看到自己的 64 个特征，得分也是对称的。",
        ),
    )


def _matrix(values: np.ndarray, title: Message, labelled: bool = False) -> Matrix:
    return Matrix(values=values, title=title, rows=WORDS if labelled else (), decimals=0, highest=40.0)


def split_and_merge() -> Drawing:
    """Eight columns become two heads of four, and back."""
    heads = split_heads(NUMBERS, HEADS)
    first, second = (_matrix(heads[at], Message(f"head {at}", f"头 {at}")) for at in range(HEADS))
    whole = Message("x W_q", "x W_q")
    return Drawing(
        title=Message("Split into two heads, and merge", "拆成两个头，再合并"),
        blocks=(
            Line(
                (_matrix(NUMBERS, whole, labelled=True), Sign(Message("split →", "拆分 →")), first, Sign(" "), second)
            ),
            Line((first, Sign(" "), second, Sign(Message("merge →", "合并 →")), _matrix(merge_heads(heads), whole))),
        ),
        caption=Message(
            "Head 0 takes the columns 0 to 3 of every word, head 1 the columns 4 to 7. Merging puts them back, "
            "side by side.",
            "头 0 取每个词的第 0 到 3 列，头 1 取第 4 到 7 列。合并就是并排放回去。",
        ),
    )


def wrong_split() -> Drawing:
    """A reshape without the transpose: the right shape, the wrong numbers."""
    wrong = NUMBERS.reshape(HEADS, len(WORDS), WIDTH)
    return Drawing(
        title=Message("A reshape alone mixes the words", "只用 reshape，词就混在一起了"),
        blocks=(
            Line(
                (
                    _matrix(NUMBERS, Message("x W_q", "x W_q"), labelled=True),
                    Sign("reshape →"),
                    _matrix(wrong[0], Message("head 0", "头 0")),
                    Sign(" "),
                    _matrix(wrong[1], Message("head 1", "头 1")),
                )
            ),
        ),
        caption=Message(
            "Both heads have the right shape, 3 × 4. But the rows of head 0 are word 1, word 1 again, and half of "
            "word 2; word 3 is missing.",
            "两个头的形状都对，3 × 4。可是头 0 的三行是词 1、还是词 1、半个词 2，词 3 不见了。",
        ),
    )


def heads_of_the_translator() -> Drawing:
    """Three heads with a clear pattern, and the mean of one layer."""
    records = load("translator").see("The cat sat on the mat.").trace.select(kind="encoder")
    words = list((records[0].key_tokens or ((),))[0])
    found = records.heads()
    patterns = {
        "previous": (Message("previous word", "前一个词"), -1),
        "ahead-1": (Message("next word", "后一个词"), 1),
        "itself": (Message("itself", "自己"), 0),
    }
    maps = []
    for pattern, (name, offset) in patterns.items():
        best = found.ranked(pattern)[0]
        layer, weights = records.names.index(best.name), np.asarray(records[best.name].weights())[0, best.head]
        share = np.diagonal(weights, offset).mean()
        title = Message(
            f"{name.en} {share:.2f}: layer {layer}, head {best.head}",
            f"{name.zh} {share:.2f}：第 {layer} 层，头 {best.head}",
        )
        maps.append((weights, title))
    mean = np.asarray(records[0].weights())[0].mean(0)
    maps.append((mean, Message("mean of the 8 heads of layer 0", "第 0 层 8 个头的平均")))
    drawn = [
        Matrix(
            values=weights,
            title=title,
            rows=() if at % 2 else words,  # Beside each other, the words stand once.
            columns=words,
            decimals=None,
            highest=1.0,
        )
        for at, (weights, title) in enumerate(maps)
    ]
    return Drawing(
        title=Message("Three heads of the translator, and a mean", "翻译模型的三个头，以及一个平均"),
        blocks=(Line((drawn[0], Sign(" "), drawn[1])), Line((drawn[2], Sign(" "), drawn[3]))),
        caption=Message(
            "“The cat sat on the mat.” in the encoder: of 24 heads the three that fit their pattern best, with the "
            "mean weight on it. None fits it perfectly. Yellow is 1. In the mean of the heads hardly anything is "
            "left to see.",
            "编码器读 “The cat sat on the mat.”：24 个头里最符合各自规律的三个，数字是落在规律上的平均权重，"
            "没有一个完全符合。黄色是 1。对头取平均之后，这些规律几乎都看不出来了。",
        ),
    )


DRAWINGS = {
    "multi-head-flow": multi_head_flow,
    "split-and-merge": split_and_merge,
    "wrong-split": wrong_split,
    "heads-of-the-translator": heads_of_the_translator,
}
