"""Five demonstrations of attention in the terminal, with NumPy alone.

    python examples/attention_demo.py [--lang zh|en] [--save DIR]

1 self-attention, 2 query, key and value, 3 the causal mask, 4 several heads, 5 a picture of the weights. The script
computes every number on the screen from fixed seeds. With matplotlib it also saves each demonstration as a PNG file.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deep_learning.attention import MultiHeadAttention, create_causal_mask, scaled_dot_product_attention
from regard import Trace
from regard.messages import LANGUAGES, Language, language, use_language

Tell = Callable[[str, str], str]
"""Chooses between an English and a Chinese text."""


class Demonstration(NamedTuple):
    """A title, a Trace to draw, and lines that explain it."""

    title: str
    trace: Trace
    lines: list[str]


def embed(words: list[str], width: int = 16, seed: int = 0) -> np.ndarray:
    """One random vector per word, (T, width); equal words have equal vectors."""
    vocabulary = list(dict.fromkeys(words))
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), width))
    return table[[vocabulary.index(word) for word in words]]


def sentence(tell: Tell) -> list[str]:
    return tell("cats love fish and fish love water", "猫 爱 鱼 而 鱼 爱 水").split()


def self_attention(tell: Tell) -> Demonstration:
    """Each word is query, key and value at once."""
    words = sentence(tell)
    x = embed(words)
    output, weights = scaled_dot_product_attention(x, x, x)
    word, here, again = words[2], 2, 4  # one word in two places
    own, other = weights[here, here], weights[here, again]
    apart = np.abs(output[here] - output[again]).max()
    low, high = weights.sum(-1).min(), weights.sum(-1).max()
    return Demonstration(
        tell("Self-attention", "自注意力"),
        Trace.from_weights(weights, queries=words),
        [
            tell(
                f"“{word}” occurs twice; its weights are {own:.3f} and {other:.3f}: equal vectors have equal scores.",
                f"“{word}”出现两次，权重是 {own:.3f} 和 {other:.3f}：向量相同，得分就相同。",
            ),
            tell(
                f"Its two outputs differ by {apart:.1g}: without positions, attention ignores the order.",
                f"它的两个输出相差 {apart:.1g}：没有位置编码，注意力与词的顺序无关。",
            ),
            tell(
                f"Every row sums to 1: the sums lie between {low:.6f} and {high:.6f}.",
                f"每一行的和都是 1：各行之和在 {low:.6f} 与 {high:.6f} 之间。",
            ),
        ],
    )


def query_key_value(tell: Tell) -> Demonstration:
    """The library: a request, three labels, three contents; numbers from the tutorial's hand calculation."""
    Q = np.array([[1.0, 0.0]])
    K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    V = np.array([[10.0, 0.0], [0.0, 20.0], [30.0, 0.0]])
    books = [
        tell("Deep Learning", "深度学习入门"),
        tell("Python", "Python 编程"),
        tell("Machine Learning", "机器学习实战"),
    ]
    scores = Q @ K.T
    output, weights = scaled_dot_product_attention(Q, K, V)
    return Demonstration(
        tell("Query, key, value: a search in the library", "查询、键、值：在图书馆找书"),
        Trace.from_weights(weights, queries=[tell("my request", "我想找的")], keys=books, kind="cross"),
        [
            tell("scores   Q Kᵀ        ", "得分      Q Kᵀ        ") + spell(scores),
            tell("scaled   Q Kᵀ / √d_k ", "缩放后    Q Kᵀ / √d_k ") + spell(scores / np.sqrt(2)),
            tell("weights  softmax     ", "权重      softmax     ") + spell(weights),
            tell("output   weights · V ", "输出      权重 · V    ") + spell(output),
            tell(
                f"“{books[1]}” has score {scores[0, 1]:g} and weight {weights[0, 1]:.1%}: "
                "a score of 0 does not give a weight of 0; only -inf does.",
                f"“{books[1]}”的得分是 {scores[0, 1]:g}，权重却有 {weights[0, 1]:.1%}："
                "得分为 0 不等于权重为 0，只有得分为 -inf 时才是。",
            ),
        ],
    )


def causal_mask(tell: Tell) -> Demonstration:
    """The same words; each sees only itself and the words before it."""
    words = sentence(tell)
    x, mask = embed(words), create_causal_mask(len(words))
    output, weights = scaled_dot_product_attention(x, x, x, mask)
    changed = x.copy()
    changed[-1] = 100.0
    after, _ = scaled_dot_product_attention(changed, changed, changed, mask)
    above, leaked = np.triu(weights, 1).sum(), np.abs(after - output)[:-1].max()
    return Demonstration(
        tell("The causal mask", "因果掩码"),
        Trace.from_weights(weights, queries=words, kind="decoder"),
        [
            tell(
                f"The weights above the diagonal sum to {above:g}. “{words[0]}” sees only itself: {weights[0, 0]:g}.",
                f"对角线以上的权重之和是 {above:g}。“{words[0]}”只能看到自己：{weights[0, 0]:g}。",
            ),
            tell(
                f"With another vector for the last word, the outputs before it change by {leaked:g}: "
                "nothing leaks from the future.",
                f"换掉最后一个词的向量，它之前的输出变化 {leaked:g}：未来的信息没有泄露。",
            ),
        ],
    )


def heads_compared(tell: Tell) -> Demonstration:
    """Four heads with random weights, on the same words."""
    words = sentence(tell)
    x = embed(words)[None]
    _, weights = MultiHeadAttention(d_model=16, num_heads=4, seed=0).forward(x, x, x, return_weights=True)
    looker = 2
    favourites = [
        tell(f"head {head} ", f"头 {head} ") + f"“{words[row.argmax()]}” {row.max():.3f}"
        for head, row in enumerate(weights[0, :, looker])
    ]
    join = tell(", ", "，")
    gap = np.abs(weights[0, :, None] - weights[0, None, :]).max()
    return Demonstration(
        tell("Four heads compared", "四个头的对比"),
        Trace.from_weights(weights, queries=words),
        [
            tell(
                f"“{words[looker]}” looks most at: {join.join(favourites)}.",
                f"“{words[looker]}”最关注的是：{join.join(favourites)}。",
            ),
            tell(
                f"For the same pair of words two heads differ by up to {gap:.3f}: "
                "each head has its own columns of W_q and W_k.",
                f"对同一对词，两个头的权重最多相差 {gap:.3f}：每个头使用 W_q、W_k 中不同的列。",
            ),
            tell(
                "These weights are random: training decides what a head attends to.",
                "这里的参数是随机的：一个头关注什么，由训练决定。",
            ),
        ],
    )


def weights_drawn(tell: Tell) -> Demonstration:
    """Cross-attention from a translation to its source; the vectors are set by hand so that the pairs match."""
    source, translation = ["I", "love", "you"], ["我", "爱", "你"]
    vectors = 2 * np.eye(3)
    _, weights = scaled_dot_product_attention(vectors, vectors, vectors)
    pairs = [f"{translation[i]}→{source[j]} {weights[i, j]:.3f}" for i, j in enumerate(weights.argmax(-1))]
    join = tell(", ", "，")
    return Demonstration(
        tell("A picture of the weights: I love you → 我爱你", "权重图：I love you → 我爱你"),
        Trace.from_weights(weights, queries=translation, keys=source, kind="cross"),
        [
            tell(f"Largest in each row: {join.join(pairs)}.", f"每一行最大的：{join.join(pairs)}。"),
            tell(
                "The vectors are set by hand so that each pair matches; a model has to learn them.",
                "这里的向量是手工设定的，使每一对都匹配；模型需要通过训练得到。",
            ),
        ],
    )


DEMONSTRATIONS = (self_attention, query_key_value, causal_mask, heads_compared, weights_drawn)


def spell(row: np.ndarray) -> str:
    return "[" + "  ".join(f"{number:.4g}" for number in row.ravel()) + "]"


def save(shown: list[Demonstration], folder: Path, tell: Tell) -> str:
    """Save one PNG per demonstration if matplotlib is installed; return a message."""
    try:
        import matplotlib
    except ImportError:
        return tell(
            "No pictures saved: matplotlib is not installed (pip install 'regard[plot]').",
            "没有保存图片：尚未安装 matplotlib（pip install 'regard[plot]'）。",
        )
    matplotlib.use("Agg")  # files only, no window
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, demonstration in enumerate(shown, 1):
        paths.append(folder / f"attention_demo_{number}.png")
        demonstration.trace.plot().savefig(paths[-1], dpi=120)
    names = ", ".join(map(str, paths))
    return tell(f"Saved {len(paths)} pictures: {names}", f"保存了 {len(paths)} 张图片：{names}")


def main(arguments: list[str] | None = None) -> None:
    """Show all five."""
    parser = argparse.ArgumentParser(description="Five demonstrations of attention / 注意力的五个演示")
    parser.add_argument("--lang", choices=LANGUAGES, help="default: from LANG / 默认取自 LANG")
    parser.add_argument("--save", type=Path, default=Path(), metavar="DIR", help="folder for PNG files / 图片目录")
    options = parser.parse_args(arguments)
    lang: Language = options.lang or language()

    def tell(en: str, zh: str) -> str:
        return zh if lang == "zh" else en

    shown = []
    for number, demonstrate in enumerate(DEMONSTRATIONS, 1):
        demonstration = demonstrate(tell)
        shown.append(demonstration)
        print(f"{number}  {demonstration.title}\n")
        demonstration.trace.show(lang=lang)
        print("", *demonstration.lines, "", sep="\n")
    with use_language(lang):
        print(save(shown, options.save, tell))


if __name__ == "__main__":
    main()
