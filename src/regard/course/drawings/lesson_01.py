"""The pictures of lesson 1: the library as numbers, and two heads of the bundled translator."""

import warnings
from functools import cache

import numpy as np

from regard.course.drawings.blocks import Drawing, Line, Links, Matrix, Sign
from regard.language import load
from regard.messages import Message
from regard.reference import softmax
from regard.trace import Trace

BOOKS = (
    Message("Introduction to Deep Learning", "深度学习入门"),
    Message("Programming in Python", "Python 编程"),
    Message("Data Structures", "数据结构"),
)
TOPICS = (Message("learning", "学习"), Message("code", "编程"))
KEYS = np.array([[0.9, 0.3], [0.2, 0.9], [0.1, 0.7]])
QUERY = np.array([[4.0, 0.0]])
HOME = "Xiao Ming went to the store to buy apples, and then he went home."
NAME = 2
"""The number of tokens of the name in HOME: Xiao, Ming."""


@cache
def _trace(text: str) -> Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The translator never read the name in training.
        return load("translator").see(text).trace


def _words(tokens: tuple[tuple[str, ...], ...] | None) -> list[str]:
    """The tokens of the first sentence."""
    return list((tokens or ((),))[0])


def library() -> Drawing:
    """One query, the labels of three books, and the weights."""
    scores = QUERY @ KEYS.T
    return Drawing(
        title=Message("A library: one query, three books", "图书馆：一个查询，三本书"),
        blocks=(
            Line(
                (
                    Matrix(values=KEYS, title=Message("keys", "键"), rows=BOOKS, columns=TOPICS, decimals=1),
                    Sign(Message("· query →", "· 查询 →")),
                    Matrix(values=scores.T, title=Message("scores", "得分"), decimals=1),
                    Sign("softmax →"),
                    Matrix(values=softmax(scores).T, title=Message("weights", "权重"), decimals=3, highest=1.0),
                )
            ),
        ),
        caption=Message(
            "The query is [4, 0]: much about machine learning, nothing else. The best book gets most of the weight, "
            "and no book gets nothing.",
            "查询是 [4, 0]：只关心机器学习。最合适的书得到大部分权重，但没有一本书的权重是 0。",
        ),
    )


def translator_alignment() -> Drawing:
    """Where the translator looks while it writes 我爱你."""
    record = _trace("I love you")["decoder.layers.2.cross_attention"]
    return Drawing(
        title=Message("Writing 我爱你: where one head looks", "写“我爱你”时，一个头看的是哪里"),
        blocks=(
            Links(
                queries=_words(record.written),
                keys=_words(record.key_tokens),
                weights=np.asarray(record.weights(head=2))[0],
            ),
        ),
        caption=Message(
            "Above: the characters that the translator writes. Below: the English words. Layer 2, head 2 of its "
            "cross-attention; the thicker the line, the larger the weight.",
            "上面是翻译模型写出的字，下面是英文的词。这是第 2 层交叉注意力的头 2；线越粗，权重越大。",
        ),
    )


def he_and_the_name() -> Drawing:
    """The row of “he” in the encoder head that gives the name most weight."""
    records = _trace(HOME).select(kind="encoder")
    tokens = _words(records[0].key_tokens)
    rows = np.stack([np.asarray(record.weights())[0] for record in records])[:, :, tokens.index("he")]
    layer, head = np.unravel_index(rows[..., :NAME].sum(-1).argmax(), rows.shape[:2])
    row = rows[layer, head]
    first, whole = f"{row[0]:.2f}", f"{row[:NAME].sum():.2f}"
    return Drawing(
        title=Message("The row of “he” in one head", "“he” 这一行：一个头的权重"),
        blocks=(Links(queries=["he"], keys=tokens, weights=row[None], least=0.02, tight=True),),
        caption=Message(
            f"Layer {layer}, head {head} of the encoder, of all 24 heads the one that gives the name most: {first} for "
            f"Xiao, {whole} for both tokens of the name.",
            f"编码器第 {layer} 层的头 {head}，24 个头里它给名字的权重最大：Xiao 得 {first}，"
            f"名字的两个词元共得 {whole}。",
        ),
    )


DRAWINGS = {
    "library": library,
    "translator-alignment": translator_alignment,
    "he-and-the-name": he_and_the_name,
}
