"""The pictures of lesson 4: masks as grids, one mask in four conventions, masked scores, and a mask beside a cache."""

import numpy as np

from regard.course.drawings.blocks import Drawing, Line, Matrix, Sign
from regard.masks import Mask
from regard.messages import Message
from regard.reference import softmax

WORDS = ("I", "love", "you", "pad", "pad")
REAL = np.array([True, True, True, False, False])
SCORES = np.array([[1.2, 0.8, 0.5], [0.9, 1.1, 0.7], [0.6, 0.4, 1.0]])
"""The scores of the notes."""


def mask_grids() -> Drawing:
    """Causal, padding, and both."""
    causal = np.asarray(Mask.causal().dense(5, 5))
    padding = np.broadcast_to(REAL, (5, 5))
    return Drawing(
        title=Message("Causal, padding, and both", "因果掩码、填充掩码，以及两者合用"),
        blocks=(
            Line(
                (
                    Matrix(values=causal, title=Message("causal", "因果"), rows=WORDS, columns=WORDS),
                    Sign(Message("and", "且")),
                    Matrix(values=padding, title=Message("padding", "填充"), columns=WORDS),
                    Sign("="),
                    Matrix(values=causal & padding, title=Message("both", "合用"), columns=WORDS),
                )
            ),
        ),
        caption=Message(
            "Rows are queries, columns are keys; green is visible. A causal mask cuts off the upper right triangle, a "
            "padding mask whole columns. A key must be visible in both.",
            "行是查询，列是键，绿色表示可见。因果掩码去掉右上角的三角形，填充掩码去掉整列。"
            "合用时，两个掩码都允许的键才可见。",
        ),
    )


def three_conventions() -> Drawing:
    """The same causal mask in each convention."""
    visible = np.asarray(Mask.causal().dense(3, 3))
    return Drawing(
        title=Message("One mask, four notations", "同一个掩码的四种写法"),
        blocks=(
            Line(
                (
                    Matrix(
                        values=np.where(visible, 0.0, -np.inf),
                        title=Message("added", "相加"),
                        decimals=0,
                        highest=1.0,
                    ),
                    Sign("  "),
                    Matrix(values=(~visible).astype(float), title=Message("1 = hide", "1 = 屏蔽"), decimals=0),
                    Sign("  "),
                    Matrix(values=visible.astype(float), title=Message("0 = hide", "0 = 屏蔽"), decimals=0),
                    Sign("→"),
                    Matrix(values=visible, title="regard"),
                )
            ),
        ),
        caption=Message(
            "The second and the third are opposites and look alike: both are 0 and 1. Read the documentation of the "
            "function, then convert once.",
            "第二种和第三种正好相反，看上去却一样，都是 0 和 1。先查清函数的文档，再统一转换一次。",
        ),
    )


def masked_scores() -> Drawing:
    """The scores of the notes under a causal and under a padding mask."""

    def line(visible: np.ndarray, name: Message) -> Line:
        masked = np.where(visible, SCORES, -np.inf)
        return Line(
            (
                Matrix(values=SCORES, title=Message("scores", "得分"), decimals=1, highest=1.2),
                Sign(name),
                Matrix(values=masked, title=Message("masked", "屏蔽后"), decimals=1, highest=1.2),
                Sign("softmax →"),
                Matrix(values=softmax(masked), title=Message("weights", "权重"), decimals=3, highest=1.0),
            )
        )

    return Drawing(
        title=Message("The same scores under two masks", "同样的得分，两种掩码"),
        blocks=(
            line(np.asarray(Mask.causal().dense(3, 3)), Message("causal →", "因果 →")),
            line(np.tile([True, True, False], (3, 1)), Message("padding →", "填充 →")),
        ),
        caption=Message(
            "Above: each row also sees itself. Below: the third key is padding, and its column is 0 in every row. "
            "Every row still sums to 1.",
            "上：每一行还能看到自己。下：第三个键是填充，每一行里它的权重都是 0。每一行加起来仍然是 1。",
        ),
    )


def causal_with_a_cache() -> Drawing:
    """Two new queries and four keys: aligned at the beginning, and at the end."""
    queries, keys = ("q₂", "q₃"), ("k₀", "k₁", "k₂", "k₃")
    return Drawing(
        title=Message("A causal mask beside a cache", "有缓存时的因果掩码"),
        blocks=(
            Line(
                (
                    Matrix(
                        values=np.tril(np.ones((2, 4), dtype=bool)),
                        title=Message("wrong: from the first key", "错：从第一个键对齐"),
                        rows=queries,
                        columns=keys,
                    ),
                    Sign("   "),
                    Matrix(
                        values=np.asarray(Mask.causal().dense(2, 4)),
                        title=Message("right: to the last key", "对：与最后一个键对齐"),
                        rows=queries,
                        columns=keys,
                    ),
                )
            ),
        ),
        caption=Message(
            "Keys 0 and 1 come from the cache; the new queries are at positions 2 and 3. Each sees all keys up to its "
            "own position.",
            "键 0 和键 1 来自缓存，新的查询在位置 2 和 3。每个查询能看到直到自己位置为止的所有键。",
        ),
    )


DRAWINGS = {
    "mask-grids": mask_grids,
    "three-conventions": three_conventions,
    "masked-scores": masked_scores,
    "causal-with-a-cache": causal_with_a_cache,
}
