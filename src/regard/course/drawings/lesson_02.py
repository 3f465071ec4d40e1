"""The pictures of lesson 2: the tutorial's numbers, projections and weights as matrices, the steps, and softmax."""

import numpy as np

from regard.course.drawings.blocks import Box, Curves, Drawing, Flow, Line, Matrix, Sign
from regard.messages import Message
from regard.reference import scaled_dot_product_attention, softmax

Q = np.array([[1.0, 0.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
V = np.array([[10.0, 0.0], [0.0, 20.0], [30.0, 0.0]])
KEYS = ("k₁", "k₂", "k₃")
WORDS = ("cat", "sat", "mat")
FEATURES = (Message("noun", "名词"), Message("verb", "动词"), Message("alive", "有生命"))
X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
W_Q = np.array([[0.0, 2.0], [2.0, 0.0], [0.0, 1.0]])
W_K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
W_V = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def calculation_by_hand() -> Drawing:
    """Scores, weights and output of the tutorial's three keys."""
    scores = Q @ K.T
    output, weights = scaled_dot_product_attention(Q, K, V)
    return Drawing(
        title=Message("Three keys, calculated by hand", "三个键，手算一遍"),
        blocks=(
            Line(
                (
                    Matrix(values=Q, title="Q", rows=("q",), decimals=0),
                    Sign("×"),
                    Matrix(values=K.T, title="Kᵀ", columns=KEYS, decimals=0),
                    Sign("="),
                    Matrix(values=scores, title=Message("scores", "得分"), columns=KEYS, decimals=0),
                )
            ),
            Line(
                (
                    Matrix(values=scores / np.sqrt(2), title=Message("÷ √2", "÷ √2"), columns=KEYS, decimals=3),
                    Sign("softmax →"),
                    Matrix(values=weights, title=Message("weights", "权重"), columns=KEYS, decimals=3, highest=1.0),
                )
            ),
            Line(
                (
                    Matrix(values=weights, title=Message("weights", "权重"), columns=KEYS, decimals=3, highest=1.0),
                    Sign("×"),
                    Matrix(values=V, title="V", rows=KEYS, decimals=0),
                    Sign("="),
                    Matrix(values=output, title=Message("output", "输出"), decimals=3),
                )
            ),
        ),
        caption=Message(
            "The query equals the first and the third key: both get the weight 0.401. The second key has the score 0 "
            "and still gets 0.198: a score of 0 is not a weight of 0.",
            "查询与第一个、第三个键相同，所以二者的权重都是 0.401。第二个键的得分是 0，权重仍有 0.198："
            "得分为 0 不等于权重为 0。",
        ),
    )


def flow_chart() -> Drawing:
    """From the words to the output: six steps with their shapes."""
    return Drawing(
        title=Message("Scaled dot-product attention, step by step", "缩放点积注意力的每一步"),
        blocks=(
            Flow(
                lanes=(
                    (
                        Box(text=Message("x W_q", "x W_q"), shape="Q: (T, d_k)", kind="input"),
                        Box(text=Message("Q Kᵀ: scores", "Q Kᵀ：得分"), shape="(T, S)", kind="attention"),
                        Box(text="÷ √d_k", shape="(T, S)", kind="attention"),
                        Box(text=Message("mask: −∞", "掩码：−∞"), shape="(T, S)", kind="attention"),
                        Box(text=Message("softmax: weights", "softmax：权重"), shape="(T, S)", kind="attention"),
                        Box(text=Message("weights × V", "权重 × V"), shape="(T, d_v)", kind="position-wise"),
                    ),
                    (
                        Box(text=Message("x W_k", "x W_k"), shape="K: (S, d_k)", kind="input"),
                        Box(text="Kᵀ", shape="(d_k, S)", kind="quiet"),
                        None,
                        None,
                        Box(text=Message("x W_v", "x W_v"), shape="V: (S, d_v)", kind="input", begins=True),
                        Box(text="V", shape="(S, d_v)", kind="quiet"),
                    ),
                ),
                titles=(Message("queries", "查询"), Message("keys and values", "键和值")),
                across=((1, 1, 0), (5, 1, 0)),
            ),
        ),
        caption=Message(
            "T queries, S keys. The scores have one row for each query and one column for each key.",
            "T 个查询，S 个键。得分矩阵的每一行对应一个查询，每一列对应一个键。",
        ),
    )


def softmax_of_one_score() -> Drawing:
    """How the weight of one key grows with its score, the other two fixed."""
    x = np.linspace(-4, 4, 81)
    weights = softmax(np.stack([x, np.zeros_like(x), np.full_like(x, 1.0)], axis=-1))
    names = (
        Message("this key", "这个键"),
        Message("a key with score 0", "得分为 0 的键"),
        Message("a key with score 1", "得分为 1 的键"),
    )
    return Drawing(
        title=Message("One score moves all weights", "一个得分变化，所有权重都变"),
        blocks=(
            Curves(
                x=x,
                series=dict(zip(names, weights.T, strict=True)),
                x_label=Message("score of this key", "这个键的得分"),
                y_label=Message("weight", "权重"),
            ),
        ),
        caption=Message("The weights always sum to 1.", "权重之和始终为 1。"),
    )


def projections() -> Drawing:
    """The same three words as queries, as keys and as values."""

    def line(weights: np.ndarray, name: str, result: str) -> Line:
        return Line(
            (
                Matrix(values=X, title="X", rows=WORDS, columns=FEATURES, decimals=0),
                Sign("×"),
                Matrix(values=weights, title=name, rows=FEATURES, decimals=0, highest=2.0),
                Sign("="),
                Matrix(values=X @ weights, title=result, rows=WORDS, decimals=0, highest=3.0),
            )
        )

    return Drawing(
        title=Message("Three projections of the same words", "同样的词，三种投影"),
        blocks=(line(W_Q, "W_q", "Q"), line(W_K, "W_k", "K"), line(W_V, "W_v", "V")),
        caption=Message(
            "Each row of X is a word. A word gets three roles: what it looks for (Q), what it is found by (K), what it "
            "passes on (V). These matrices are set by hand; a model learns its own.",
            "X 的每一行是一个词。每个词有三种角色：找什么（Q），凭什么被找到（K），提供什么（V）。"
            "这里的矩阵是手工设定的，模型里的是学出来的。",
        ),
    )


def three_words() -> Drawing:
    """Scores, weights and output of three words that attend to each other."""
    q, k, v = X @ W_Q, X @ W_K, X @ W_V
    output, weights = scaled_dot_product_attention(q, k, v)
    return Drawing(
        title=Message("Three words attend to each other", "三个词互相注意"),
        blocks=(
            Line(
                (
                    Matrix(
                        values=q @ k.T,
                        title=Message("scores", "得分"),
                        rows=WORDS,
                        columns=WORDS,
                        decimals=0,
                        highest=4.0,
                    ),
                    Sign("÷ √2, softmax →"),
                    Matrix(values=weights, title=Message("weights", "权重"), rows=WORDS, columns=WORDS, highest=1.0),
                )
            ),
            Line(
                (
                    Matrix(values=weights, title=Message("weights", "权重"), rows=WORDS, columns=WORDS, highest=1.0),
                    Sign("×"),
                    Matrix(values=v, title="V", rows=WORDS, decimals=0),
                    Sign("="),
                    Matrix(values=output, title=Message("output", "输出"), rows=WORDS),
                )
            ),
        ),
        caption=Message(
            "Rows are queries, columns are keys; every row of the weights sums to 1. The nouns attend to the verb, the "
            "verb attends to the living noun. The scores are not symmetric.",
            "行是查询，列是键；权重的每一行加起来等于 1。名词关注动词，动词更关注有生命的名词。得分矩阵不对称。",
        ),
    )


DRAWINGS = {
    "calculation-by-hand": calculation_by_hand,
    "flow-chart": flow_chart,
    "softmax-of-one-score": softmax_of_one_score,
    "projections": projections,
    "three-words": three_words,
}
