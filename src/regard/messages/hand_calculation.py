"""Messages of the hand calculation, and the comments of its code."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- around the steps ---
    "hand-head": Words(
        en="Attention by hand: output = {formula}",
        zh="手算注意力：output = {formula}",
    ),
    "hand-sizes": Words(
        en="T = {T} (queries), S = {S} (keys), E = {E} (width of Q and K, often written d_k), Ev = {Ev} (width of V)",
        zh="T = {T}（查询数），S = {S}（键数），E = {E}（Q、K 的宽度，常写作 d_k），Ev = {Ev}（V 的宽度）",
    ),
    "hand-foot": Words(
        en="Numbers are rounded only for display; every step is calculated with all digits.",
        zh="数字只在显示时四舍五入；每一步都用全部位数计算。",
    ),
    "hand-more": Words(
        en="... and {count} more, calculated in the same way",
        zh="... 还有 {count} 个，算法相同",
    ),
    # --- the steps: what is calculated ---
    "hand-queries-title": Words(en="Q: the queries", zh="Q：查询"),
    "hand-keys-title": Words(en="K: the keys", zh="K：键"),
    "hand-values-title": Words(en="V: the values", zh="V：值"),
    "hand-scores-title": Words(en="scores = Q Kᵀ: compare", zh="scores = Q Kᵀ：比较"),
    "hand-scaled-title": Words(en="scaled = scores {by}: scale", zh="scaled = scores {by}：缩放"),
    "hand-masked-title": Words(en="masked: hide what may not be seen", zh="masked：遮住不该看的"),
    "hand-shifted-title": Words(
        en="shifted = {before} - row maximum: softmax, part 1",
        zh="shifted = {before} - 行最大值：softmax 第 1 步",
    ),
    "hand-powers-title": Words(
        en="powers = exp(shifted): softmax, part 2", zh="powers = exp(shifted)：softmax 第 2 步"
    ),
    "hand-sums-title": Words(
        en="sums = row sums of powers: softmax, part 3", zh="sums = powers 的行和：softmax 第 3 步"
    ),
    "hand-weights-title": Words(
        en="weights = powers / sums: softmax, part 4", zh="weights = powers / sums：softmax 第 4 步"
    ),
    "hand-output-title": Words(en="output = weights V: mix the values", zh="output = weights V：混合各个值"),
    # --- the steps: why ---
    "hand-queries": Words(
        en="Each row is one query: what that position is looking for.",
        zh="每一行是一个查询：这个位置想找什么。",
    ),
    "hand-keys": Words(
        en="Each row is one key: what that position can be found by.",
        zh="每一行是一个键：这个位置凭什么被找到。",
    ),
    "hand-values": Words(
        en="Each row is one value: what that position hands over when it is looked at.",
        zh="每一行是一个值：这个位置被看到时交出什么。",
    ),
    "hand-scores": Words(
        en="Each score is the dot product of a query and a key: multiply number by number, then add.",
        zh="每个得分是一个查询与一个键的点积：逐个相乘，再相加。",
    ),
    "hand-scaled": Words(
        en="Divide every score by √E = √{E} = {root}: else wide vectors make large scores, and softmax picks one key.",
        zh="每个得分都除以 √E = √{E} = {root}：否则向量越宽得分越大，softmax 会变得几乎只选一个键。",
    ),
    "hand-scaled-given": Words(
        en="Multiply every score by the scale that was given, {scale}.",
        zh="每个得分都乘以给定的缩放系数 {scale}。",
    ),
    "hand-masked": Words(
        en="Where a query may not look, its score becomes -inf, so that its weight will be exactly 0.",
        zh="查询不能看的地方，得分改为 -inf，这样它的权重就恰好是 0。",
    ),
    "hand-shifted": Words(
        en="Subtract from each row its largest score: the weights stay the same, and nothing can overflow.",
        zh="每一行减去本行最大的得分：权重不变，而指数运算不会溢出。",
    ),
    "hand-powers": Words(
        en="Raise e to each number: nothing is negative now, and the largest of a row becomes exp(0) = 1.",
        zh="以 e 为底取幂：不再有负数，每行最大的那个变成 exp(0) = 1。",
    ),
    "hand-sums": Words(
        en="Add up the powers of each row.",
        zh="把每一行的幂加起来。",
    ),
    "hand-weights": Words(
        en="Divide each row by its sum: the weights of each row sum to 1.",
        zh="每一行除以本行的和：每行权重之和为 1。",
    ),
    "hand-weights-some-zero": Words(
        en="Divide each row by its sum: the weights of each row sum to 1; if all scores are -inf, all are 0.",
        zh="每一行除以本行的和：每行权重之和为 1；若一行的得分全是 -inf，权重就全是 0。",
    ),
    "hand-output": Words(
        en="Each row of the output is the sum of the values, each multiplied by its weight.",
        zh="输出的每一行，是各个值乘以各自权重后的总和。",
    ),
    # --- the corners where people stumble ---
    "hand-sees": Words(
        en="q{row} may look at {seen}; hidden from it: {hidden}",
        zh="q{row} 可以看 {seen}；看不到 {hidden}",
    ),
    "hand-sees-all": Words(
        en="q{row} may look at every key",
        zh="q{row} 可以看所有的键",
    ),
    "hand-blind": Words(
        en="q{row} may look nowhere: all its scores are -inf",
        zh="q{row} 哪里都不能看：它的得分全是 -inf",
    ),
    "hand-not-finite": Words(
        en="q{row} meets nan or inf, in itself or in a key it may look at: its whole row is nan",
        zh="q{row} 遇到了 nan 或 inf（在自己身上，或在它能看的键里）：整行都是 nan",
    ),
    "hand-row": Words(en="q{row}: {sum}", zh="q{row}：{sum}"),
    "hand-highest": Words(
        en="q{row}: subtract {highest}",
        zh="q{row}：减去 {highest}",
    ),
    "hand-no-highest": Words(
        en="q{row}: there is nothing to subtract, because every score is -inf",
        zh="q{row}：没有可减的，因为得分全是 -inf",
    ),
    "hand-weights-zero": Words(
        en="q{row}: all weights are 0, because every score is -inf; 0 / 0 would be nan",
        zh="q{row}：权重全是 0，因为得分全是 -inf；若算 0 / 0 就成了 nan",
    ),
    "hand-zero-score": Words(
        en="A score of 0 is not a weight of 0, only -inf is: q{row} and k{column} score 0, "
        "and still the weight is {weight}.",
        zh="得分为 0 不等于权重为 0，只有 -inf 才是：q{row} 与 k{column} 的得分是 0，权重却是 {weight}。",
    ),
    "hand-underflow": Words(
        en="q{row} and k{column} score {score}, so far below the largest that the weight is smaller than any "
        "float64 and is stored as 0.",
        zh="q{row} 与 k{column} 的得分是 {score}，比最大的低太多，权重比任何 float64 都小，只能存成 0。",
    ),
    "hand-output-zero": Words(
        en="q{row}: this query may look nowhere: its output is zero",
        zh="q{row}：这个查询哪里都不能看：输出为零",
    ),
    "hand-output-nothing": Words(
        en="q{row}: every score is -inf, so there is nothing to mix: its output is zero",
        zh="q{row}：得分全是 -inf，没有可混合的值：输出为零",
    ),
    # --- comments of the code ---
    "script-inputs": Words(
        en="one row per query, key and value",
        zh="每个查询、键、值各占一行",
    ),
    "script-mask": Words(
        en="1: this query may look at this key; 0: it may not",
        zh="1：这个查询可以看这个键；0：不可以",
    ),
    "script-quiet": Words(
        en="some of these numbers overflow or are nan; no need to warn about it",
        zh="有些数会溢出，或本来就是 nan；不必为此发出警告",
    ),
    "script-scores": Words(
        en="compare every query with every key, then scale",
        zh="每个查询与每个键比较，再缩放",
    ),
    "script-not-finite": Words(
        en="a query that meets nan or inf gets a row of nan",
        zh="遇到 nan 或 inf 的查询，整行都是 nan",
    ),
    "script-softmax": Words(
        en="softmax: subtract the row maximum, take exponentials, divide by the row sum",
        zh="softmax：减去行最大值，取指数，再除以行和",
    ),
    "script-nowhere": Words(
        en="a query that may look nowhere has no maximum, and gets weights of 0",
        zh="哪里都不能看的查询没有最大值，权重全为 0",
    ),
    "script-output": Words(
        en="the values, mixed by their weights",
        zh="按权重混合各个值",
    ),
    "script-bad-values": Words(
        en="nan or inf in a value reaches only the queries that may look at it (0 times nan would be nan)",
        zh="值里的 nan 或 inf 只影响能看到它的查询（否则 0 乘 nan 会变成 nan）",
    ),
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
