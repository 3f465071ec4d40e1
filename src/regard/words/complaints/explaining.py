"""What is said about the hand calculation."""

from regard.words import Words

WORDS: dict[str, Words] = {
    "explain-axes": Words(
        en="explain shows one head at a time, so q, k and v need two axes (positions, width); "
        "found q {q}, k {k}, v {v}; pick one head: q[{pick}], k[{pick}], v[{pick}]",
        zh="explain 一次只讲一个头，q、k、v 应为两个轴（位置，宽度）；现在 q {q}，k {k}，v {v}；"
        "请选一个头：q[{pick}]、k[{pick}]、v[{pick}]",
    ),
    "explain-too-few-axes": Words(
        en="q, k and v need two axes (positions, width); found q {q}, k {k}, v {v}; one row is written [[1, 0]]",
        zh="q、k、v 应为两个轴（位置，宽度）；现在 q {q}，k {k}，v {v}；只有一行时写成 [[1, 0]]",
    ),
    "explain-ragged": Words(
        en="the rows of {name} have different lengths; give every row as many numbers",
        zh="{name} 各行的长度不同；请让每行的数字一样多",
    ),
    "explain-numbers": Words(
        en="{name} must hold real numbers; found {dtype}",
        zh="{name} 必须是实数；现在是 {dtype}",
    ),
    "explain-too-large": Words(
        en="explaining {T} × {S} scores needs {need}, and {free} are free; "
        "explain a few rows instead: q[:8], k[:8], v[:8]",
        zh="讲解 {T} × {S} 个得分需要 {need}，而可用内存只有 {free}；请只取几行：q[:8]、k[:8]、v[:8]",
    ),
    "explain-no-step": Words(
        en="there is no step {asked!r}; there are: {names}",
        zh="没有名为 {asked!r} 的步骤；现有：{names}",
    ),
}
