"""The pictures of lesson 6: waves and the table of positions, the shift as a matrix, RoPE, ALiBi, and an experiment."""

import numpy as np

from regard.course.drawings import measured
from regard.course.drawings.blocks import Curves, Drawing, Label, Line, Matrix, Sign
from regard.messages import Message
from regard.reference import alibi_bias, alibi_slopes, rotary_frequencies, rotate, sinusoidal_positions

KINDS: dict[str, Label] = {
    "alibi": "ALiBi",
    "rotary": "RoPE",
    "none": Message("no positions", "没有位置编码"),
    "learned": Message("learned", "可学习的位置表"),
    "sinusoidal": Message("sine and cosine", "正弦与余弦"),
}


def position_waves() -> Drawing:
    """The sine of each pair at width 8."""
    x, factors = np.linspace(0, 60, 241), rotary_frequencies(8)
    return Drawing(
        title=Message("Four pairs, four speeds (d_model = 8)", "四对，四种快慢（d_model = 8）"),
        blocks=(
            Curves(
                x=x,
                series={
                    Message(f"pair {i}, factor {factor:.3g}", f"第 {i} 对，系数 {factor:.3g}"): np.sin(factor * x)
                    for i, factor in enumerate(factors)
                },
                x_label=Message("position", "位置"),
                y_label=Message("sine", "正弦"),
            ),
        ),
        caption=Message(
            "Pair 0 repeats after 6.3 positions and tells neighbours apart. Pair 3 repeats after 6,283 and has hardly "
            "moved at position 60.",
            "第 0 对每 6.3 个位置重复一次，能分清相邻的位置。第 3 对要 6283 个位置才重复，到位置 60 还几乎没有动。",
        ),
    )


def position_table() -> Drawing:
    """The sinusoidal table of 24 positions at width 32."""
    return Drawing(
        title=Message("The table of positions: 24 positions, 32 columns", "位置编码表：24 个位置，32 列"),
        blocks=(
            Matrix(
                values=sinusoidal_positions(24, 32),
                rows=[str(p) if p % 4 == 0 else "" for p in range(24)],
                decimals=None,
            ),
        ),
        caption=Message(
            "One row is added to one word vector. Orange is positive, blue negative; even columns are sines, odd ones "
            "cosines. Left, the fast pairs change from row to row; right, the slow ones hardly change.",
            "每一行加到一个词向量上。橙色为正，蓝色为负；偶数列是正弦，奇数列是余弦。左边的快波逐行变化，"
            "右边的慢波几乎不变。",
        ),
    )


def shift_as_rotation() -> Drawing:
    """Three positions forward is one matrix, for any position."""
    table = sinusoidal_positions(9, 4)
    lines = tuple(
        Line(
            (
                Matrix(values=shift_matrix(3, 4), title=Message("shift by 3", "后移 3 位"), decimals=3),
                Sign("×"),
                Matrix(values=table[p][:, None], title=f"PE({p})ᵀ", decimals=3),
                Sign("="),
                Matrix(values=table[p + 3][:, None], title=f"PE({p + 3})ᵀ", decimals=3),
            )
        )
        for p in (2, 5)
    )
    return Drawing(
        title=Message("Three positions forward: one rotation", "后移三位：在哪里都是同一个旋转"),
        blocks=lines,
        caption=Message(
            "Two blocks of 2 × 2 on the diagonal: pair 0 is rotated by 3 radians, pair 1 by 0.03. The matrix depends "
            "on the distance 3, not on the position.",
            "对角线上有两个 2 × 2 的块：第 0 对旋转 3 弧度，第 1 对旋转 0.03 弧度。"
            "这个矩阵只取决于距离 3，与位置无关。",
        ),
    )


def shift_matrix(k: int, d_model: int) -> np.ndarray:
    """The matrix that takes PE(p) to PE(p + k)."""
    matrix = np.zeros((d_model, d_model))
    for i, angle in enumerate(k * rotary_frequencies(d_model)):
        block = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix


def rope_scores() -> Drawing:
    """Scores of one query vector and one key vector at all positions: added positions against rotation."""
    n, width = 7, 8
    q, k = np.random.default_rng(62).normal(size=(2, 1, width)).repeat(n, axis=1)
    table, places = sinusoidal_positions(n, width), np.arange(n)
    labels = [str(p) for p in places]
    both = {
        Message("sine and cosine added", "加上正弦与余弦"): (q + table) @ (k + table).T,
        Message("RoPE: rotated", "RoPE：旋转"): rotate(q, places) @ rotate(k, places).T,
    }
    return Drawing(
        title=Message("The same two words at all distances", "同样两个词，放在各种位置上"),
        blocks=(
            Line(
                tuple(
                    Matrix(values=scores, title=title, rows=labels, columns=labels, decimals=1)
                    for title, scores in both.items()
                )
            ),
        ),
        caption=Message(
            "Scores of one query (rows: its position) and one key (columns: its position). With RoPE every diagonal "
            "has one number: only the distance counts. With added positions it has not.",
            "同一个查询（行：它的位置）与同一个键（列：它的位置）的得分。用 RoPE 时，每条对角线上是同一个数："
            "只看距离。把位置加到词向量上则不是这样。",
        ),
    )


def alibi_distance() -> Drawing:
    """ALiBi's bias of the steepest and another head of eight, with the causal mask."""
    n, slopes = 6, alibi_slopes(8)
    bias = np.where(np.tri(n, dtype=bool), alibi_bias(8, n, n), -np.inf)
    return Drawing(
        title=Message("ALiBi: subtract slope × distance from the scores", "ALiBi：从得分里减去斜率 × 距离"),
        blocks=(
            Line(
                tuple(
                    Matrix(
                        values=bias[head] + 0.0,
                        title=Message(f"head {head}, slope {slopes[head]:.3g}", f"头 {head}，斜率 {slopes[head]:.3g}"),
                        highest=2.5,
                    )
                    for head in (0, 2)
                )
            ),
        ),
        caption=Message(
            "Two of eight heads. The steep one attends to what is near, the flat one sees far. −∞ is the causal mask.",
            "八个头中的两个。斜率大的头只看近处，斜率小的头看得远。−∞ 是因果掩码。",
        ),
    )


def length_generalisation() -> Drawing:
    """Accuracy by position, trained on 32 positions; from the report in benchmarks/results."""
    data = measured("length-generalisation")
    size, length = data["bin"], data["length"]
    bins = {kind: np.array(data["kinds"][kind]["bins"]) for kind in KINDS}
    return Drawing(
        title=Message(f"Trained on {length} positions, tested on 128", f"训练时有 {length} 个位置，测试到 128 个"),
        blocks=(
            Curves(
                x=(np.arange(len(bins["none"])) + 0.5) * size,
                series={name: 100 * bins[kind] for kind, name in KINDS.items()},
                x_label=Message("position in the text", "在文本中的位置"),
                y_label=Message("right answers, %", "答对的比例，%"),
                marked_x=length,
            ),
        ),
        caption=Message(
            f"Each point is the mean of {size} positions and {data['seeds']} trainings. The dashed line is the length "
            f"of training, {length}; beyond it, only the positions are new. Chance is {data['chance']:.1%}.",
            f"每个点是 {size} 个位置、{data['seeds']} 次训练的平均。训练只到位置 {length}（虚线）；再往后，任务不变，"
            f"只有位置是新的。随机猜的正确率是 {data['chance']:.1%}。",
        ),
    )


DRAWINGS = {
    "position-waves": position_waves,
    "position-table": position_table,
    "shift-as-rotation": shift_as_rotation,
    "rope-scores": rope_scores,
    "alibi-distance": alibi_distance,
    "length-generalisation": length_generalisation,
}
