"""The pictures of lesson 3: the spread of scores, the largest weight, temperature, and where projections start."""

import numpy as np

from regard.course.drawings.blocks import Bars, Curves, Drawing, Label
from regard.messages import Message
from regard.reference import softmax

WIDTHS = tuple(2**power for power in range(2, 10))
"""d_k from 4 to 512."""
UNSCALED = Message("q · k, not scaled", "q · k，不缩放")
SCALED = Message("q · k / √d_k", "q · k / √d_k")


def _scores(width: int, rows: int, keys: int) -> np.ndarray:
    """Dot products of random queries and keys: entries independent, mean 0, variance 1. Rows × keys."""
    rng = np.random.default_rng(width)
    return np.einsum("rd,rkd->rk", rng.normal(size=(rows, width)), rng.normal(size=(rows, keys, width)))


def spread_of_scores() -> Drawing:
    """The standard deviation of dot products over their width."""
    spread = np.array([_scores(width, 300, 8).std() for width in WIDTHS])
    return Drawing(
        title=Message("Scores spread with the width", "向量越宽，得分越分散"),
        blocks=(
            Curves(
                x=np.array(WIDTHS, dtype=float),
                series={UNSCALED: spread, SCALED: spread / np.sqrt(WIDTHS)},
                x_label="d_k",
                y_label=Message("standard deviation of the scores", "得分的标准差"),
            ),
        ),
        caption=Message(
            "Random queries and keys: independent entries, mean 0, variance 1. Without the scale the spread grows like "
            "√d_k; divided by √d_k it stays at 1.",
            "随机的查询和键：各分量独立、均值 0、方差 1。不缩放时标准差按 √d_k 增长；除以 √d_k 之后始终是 1。",
        ),
    )


def largest_weight() -> Drawing:
    """The median of the largest of 16 weights over the width, for three scales."""

    def medians(power: float) -> np.ndarray:
        tops = (softmax(_scores(width, 300, 16) / width**power).max(-1) for width in WIDTHS)
        return np.array([np.median(top) for top in tops])

    series: dict[Label, np.ndarray] = {
        UNSCALED: medians(0.0),
        SCALED: medians(0.5),
        Message("q · k / d_k", "q · k / d_k"): medians(1.0),
    }
    return Drawing(
        title=Message("The largest of 16 weights", "16 个权重里最大的一个"),
        blocks=(
            Curves(
                x=np.array(WIDTHS, dtype=float),
                series=series,
                x_label="d_k",
                y_label=Message("largest weight, median of 300 rows", "最大的权重，300 行的中位数"),
                log_x=True,
            ),
        ),
        caption=Message(
            "Not scaled, one key takes everything as the width grows. Divided by d_k, all keys become equal (1/16 = "
            "0.0625). Only √d_k gives the same picture at every width.",
            "不缩放时，宽度越大，一个键就越独占全部权重；除以 d_k，所有的键趋于相等（1/16 = 0.0625）。"
            "只有除以 √d_k，任何宽度下结果都一样。",
        ),
    )


def temperature() -> Drawing:
    """Three weights over the temperature."""
    x, scores = np.logspace(-1, 2, 61), np.array([2.0, 1.0, 0.0])
    weights = softmax(scores / x[:, None])
    names = [Message(f"score {score:.0f}", f"得分 {score:.0f}") for score in scores]
    return Drawing(
        title=Message("Temperature: from one key to all keys", "温度：从只取一个键到平均分配"),
        blocks=(
            Curves(
                x=x,
                series=dict(zip(names, weights.T, strict=True)),
                x_label=Message("temperature: scores are divided by it", "温度：得分除以它"),
                y_label=Message("weight", "权重"),
                log_x=True,
            ),
        ),
        caption=Message(
            "At a low temperature the largest score takes all the weight; at a high one all weights approach 1/3. The "
            "order never changes.",
            "温度低，最大的得分独占全部权重；温度高，三个权重都趋近 1/3。大小次序始终不变。",
        ),
    )


def spread_at_the_start() -> Drawing:
    """The standard deviation of scaled scores for three ways to start W_q and W_k."""
    rng, width = np.random.default_rng(0), 64
    x = rng.normal(size=(1000, width))
    # Scores of neighbours: independent words.
    starts: dict[Label, tuple[np.ndarray, ...]] = {
        "nn.Linear: U(±1/√d)": tuple(rng.uniform(-1, 1, size=(2, width, width)) / np.sqrt(width)),
        "Xavier: U(±√(3/d))": tuple(rng.uniform(-1, 1, size=(2, width, width)) * np.sqrt(3 / width)),
        "torch.randn": tuple(rng.normal(size=(2, width, width))),
    }
    spread = {
        name: float((((x @ w_q)[:-1] * (x @ w_k)[1:]).sum(-1) / np.sqrt(width)).std())
        for name, (w_q, w_k) in starts.items()
    }
    return Drawing(
        title=Message("Spread of the scaled scores before training", "训练之前，缩放后的得分有多分散"),
        blocks=(Bars(values=spread, decimals=2),),
        caption=Message(
            "Width 64, one head, random words of variance 1; standard deviation of q · k / √d_k. Only Xavier begins "
            "near 1; plain normal numbers would saturate softmax in spite of the scale.",
            "宽 64，一个头，随机的词，方差 1；图中是 q · k / √d_k 的标准差。只有 Xavier 从 1 附近开始；"
            "直接用标准正态随机数，即使缩放，softmax 也会饱和。",
        ),
    )


DRAWINGS = {
    "spread-of-scores": spread_of_scores,
    "largest-weight": largest_weight,
    "spread-at-the-start": spread_at_the_start,
    "temperature": temperature,
}
