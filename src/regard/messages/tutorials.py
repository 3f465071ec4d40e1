"""Messages of the tutorial package `deep_learning` and of the hand calculation."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "count-wanted": Message(
        en="{name} must be a whole number of at least {least}; found {value!r}",
        zh="{name} 必须是不小于 {least} 的整数；实际为 {value!r}",
    ),
    "axis-value": Message(
        en="axis={axis} is not an axis of an array of shape {shape}: it has {axes}",
        zh="形状为 {shape} 的数组没有 axis={axis}：它共有 {axes} 个轴",
    ),
    "numpy-wanted": Message(
        en="{name} must be a NumPy array here; found a torch tensor; "
        "for tensors use deep_learning.nn or regard.attend, or write {name}.detach().numpy()",
        zh="这里的 {name} 必须是 NumPy 数组；实际为 torch 张量；"
        "张量请用 deep_learning.nn 或 regard.attend，或写成 {name}.detach().numpy()",
    ),
    "tensor-wanted": Message(
        en="{name} must be a torch tensor here; found {found}; try torch.as_tensor({name}), "
        "or use deep_learning.attention, which takes NumPy arrays",
        zh="这里的 {name} 必须是 torch 张量；实际为 {found}；可用 torch.as_tensor({name})，"
        "或改用接受 NumPy 数组的 deep_learning.attention",
    ),
    "input-shape": Message(
        en="{name} must have shape {wanted}; found {found}",
        zh="{name} 的形状应为 {wanted}；实际为 {found}",
    ),
    "d-k-width": Message(
        en="d_k={d_k} is the width of Q and K in one head, but Q {Q} is {found} wide; "
        "use ScaledDotProductAttention(d_k={found}), or leave out d_k",
        zh="d_k={d_k} 是一个头里 Q 与 K 的宽度，而 Q {Q} 的宽度是 {found}；"
        "请写 ScaledDotProductAttention(d_k={found})，或省略 d_k",
    ),
    "positions-too-long": Message(
        en="x has {T} positions, but there are encodings for max_len={max_len} only; "
        "use PositionalEncoding(d_model, max_len={T}), or shorten x",
        zh="x 有 {T} 个位置，而位置编码只有 max_len={max_len} 个；"
        "请写 PositionalEncoding(d_model, max_len={T})，或截短 x",
    ),
    "added-mask-dtype": Message(
        en="this mask is added to the scores, 0 = visible and -inf = masked, as in create_causal_mask; "
        "found {dtype} {found}. If 1 means visible: regard.Mask.of(mask == 1). "
        "If 1 means masked: regard.Mask.of(mask == 0)",
        zh="这里的 mask 会加到得分上，0 表示可见、-inf 表示屏蔽，与 create_causal_mask 相同；实际为 {dtype} {found}。"
        "若 1 表示可见：regard.Mask.of(mask == 1)；若 1 表示屏蔽：regard.Mask.of(mask == 0)",
    ),
    "mask-zero-or-one": Message(
        en="this mask accepts only 1 = {one} and 0 = {zero}; found {value}; "
        "for a mask of 0 and -inf use regard.Mask.from_additive(mask)",
        zh="这个掩码以 1 表示{one}、0 表示{zero}，不接受其他值；发现了 {value}；"
        "由 0 与 -inf 组成的掩码请写成 regard.Mask.from_additive(mask)",
    ),
    "mask-hidden": Message(en="masked", zh="屏蔽"),
    "mask-visible": Message(en="visible", zh="可见"),
    "stdin-closed": Message(en="- means stdin, and stdin is closed", zh="- 表示标准输入，但标准输入已关闭"),
    "added-mask-values": Message(
        en="this mask may hold only 0 (visible) and -inf (masked); found {value}. To mask a key, write -inf; "
        "to add to the scores, use regard.attend(Q, K, V, bias=scores)",
        zh="这里的 mask 只能含 0（可见）与 -inf（屏蔽）；发现了 {value}。要屏蔽请写 -inf；"
        "要给得分加上偏置，请用 regard.attend(Q, K, V, bias=scores)",
    ),
    "weights-axes": Message(
        en="attention weights have at least two axes, (…, queries, keys); found shape {found}",
        zh="注意力权重至少有两个轴（…，查询，键）；实际形状为 {found}",
    ),
    "weights-row-sum": Message(
        en="each row of attention weights sums to 1, or holds only 0; row {row} (sample, head, query) sums to "
        "{sum:.4g}. If these are scores, apply softmax first: regard.reference.softmax(w); "
        "if they are taken after dropout, take them before it",
        zh="注意力权重的每一行之和为 1，或整行为 0；而第 {row} 行（样本，头，查询）之和为 {sum:.4g}。"
        "如果这是得分，请先做 softmax：regard.reference.softmax(w)；"
        "如果经过了 dropout，请取它之前的权重",
    ),
    "weights-negative": Message(
        en="attention weights are never negative; row {row} (sample, head, query) holds {value:.4g}. "
        "If these are scores, apply softmax first: regard.reference.softmax(w); "
        "if they are taken after dropout, take them before it",
        zh="注意力权重不会是负数；而第 {row} 行（样本，头，查询）里有 {value:.4g}。"
        "如果这是得分，请先做 softmax：regard.reference.softmax(w)；"
        "如果经过了 dropout，请取它之前的权重",
    ),
    "weights-all-nan": Message(
        en="every row of these weights {found} is NaN: there is nothing to show; check q and k for NaN or Inf",
        zh="这些权重 {found} 的每一行都是 NaN，没有可显示的内容；请检查 q 和 k 中的 NaN 或 Inf",
    ),
    "kind-unknown": Message(
        en="there is no kind {asked!r} of attention; there are: {kinds}",
        zh="没有名为 {asked!r} 的注意力种类；现有：{kinds}",
    ),
    "not-a-record": Message(
        en="a Trace holds Records, such as attend(..., see=See()) returns; found {found}; "
        "for an array of weights use Trace.from_weights(w)",
        zh="Trace 里只放 Record，即 attend(..., see=See()) 返回的记录；实际为 {found}；"
        "若是权重数组，请用 Trace.from_weights(w)",
    ),
    "record-unknown": Message(
        en="no record is called {asked!r}; the nearest of the {count} is {nearest!r}; trace.names lists them all",
        zh="没有名为 {asked!r} 的记录；{count} 条记录中最接近的是 {nearest!r}；trace.names 会列出全部",
    ),
    "record-unknown-empty": Message(
        en="no record is called {asked!r}: this trace holds none",
        zh="没有名为 {asked!r} 的记录：这个 Trace 是空的",
    ),
    "record-ambiguous": Message(
        en="{asked!r} matches several names: {names}; use a longer part of the name",
        zh="{asked!r} 与多个名字匹配：{names}；请把名字写得更完整",
    ),
    "record-index": Message(
        en="there is no record {asked}: this trace holds {count}, numbered from 0",
        zh="没有第 {asked} 号记录：这个 Trace 共有 {count} 条，从 0 开始编号",
    ),
    "record-key": Message(
        en="records are found by number, by name or by a slice; found {found}",
        zh="记录可按编号、名字或切片查找；实际给出的是 {found}",
    ),
    "trace-empty": Message(
        en="this trace holds no records, so there is nothing to show: "
        "no model ran while it recorded, or select() matched nothing",
        zh="这个 Trace 里没有记录，没有可显示的内容：观察期间没有运行模型，或 select() 没有选中任何记录",
    ),
    "map-not-kept": Message(
        en="record {name!r} has no map, so it cannot be drawn; request one: see=See(map=256)",
        zh="记录 {name!r} 没有记录图（map），无法绘制；请在记录时指定：see=See(map=256)",
    ),
    # --- hand calculation ---
    # --- around the steps ---
    "hand-head": Message(
        en="Attention by hand: output = {formula}",
        zh="手算注意力：output = {formula}",
    ),
    "hand-sizes": Message(
        en="T = {T} (queries), S = {S} (keys), E = {E} (width of Q and K, often written d_k), Ev = {Ev} (width of V)",
        zh="T = {T}（查询数），S = {S}（键数），E = {E}（Q、K 的宽度，常写作 d_k），Ev = {Ev}（V 的宽度）",
    ),
    "hand-foot": Message(
        en="Numbers are rounded only for display; every step is calculated with all digits.",
        zh="数字只在显示时四舍五入；每一步都用全部位数计算。",
    ),
    "hand-more": Message(
        en="... and {count} more, calculated in the same way",
        zh="... 还有 {count} 个，算法相同",
    ),
    # --- the steps: what is calculated ---
    "hand-queries-title": Message(en="Q: the queries", zh="Q：查询"),
    "hand-keys-title": Message(en="K: the keys", zh="K：键"),
    "hand-values-title": Message(en="V: the values", zh="V：值"),
    "hand-scores-title": Message(en="scores = Q Kᵀ: compare", zh="scores = Q Kᵀ：比较"),
    "hand-scaled-title": Message(en="scaled = scores {by}: scale", zh="scaled = scores {by}：缩放"),
    "hand-masked-title": Message(en="masked: mask keys that are not visible", zh="masked：屏蔽不可见的键"),
    "hand-shifted-title": Message(
        en="shifted = {before} - row maximum: softmax, part 1",
        zh="shifted = {before} - 行最大值：softmax 第 1 步",
    ),
    "hand-powers-title": Message(
        en="powers = exp(shifted): softmax, part 2", zh="powers = exp(shifted)：softmax 第 2 步"
    ),
    "hand-sums-title": Message(
        en="sums = row sums of powers: softmax, part 3", zh="sums = powers 的行和：softmax 第 3 步"
    ),
    "hand-weights-title": Message(
        en="weights = powers / sums: softmax, part 4", zh="weights = powers / sums：softmax 第 4 步"
    ),
    "hand-output-title": Message(en="output = weights V: mix the values", zh="output = weights V：混合各个值"),
    # --- the steps: why ---
    "hand-queries": Message(
        en="Each row is one query: what that position is looking for.",
        zh="每一行是一个查询：这个位置要查找什么。",
    ),
    "hand-keys": Message(
        en="Each row is one key: what that position is found by.",
        zh="每一行是一个键：这个位置用来与查询匹配的向量。",
    ),
    "hand-values": Message(
        en="Each row is one value: what that position contributes when it is attended to.",
        zh="每一行是一个值：这个位置被关注时提供什么。",
    ),
    "hand-scores": Message(
        en="Each score is the dot product of a query and a key: multiply number by number, then add.",
        zh="每个得分是一个查询与一个键的点积：逐个相乘，再相加。",
    ),
    "hand-scaled": Message(
        en="Divide every score by √E = √{E} = {root}: otherwise wide vectors give large scores, and softmax selects "
        "one key.",
        zh="每个得分都除以 √E = √{E} = {root}：否则向量越宽得分越大，softmax 几乎只选中一个键。",
    ),
    "hand-scaled-given": Message(
        en="Multiply every score by the given scale, {scale}.",
        zh="每个得分都乘以给定的缩放系数 {scale}。",
    ),
    "hand-masked": Message(
        en="Where a key is masked, the score becomes -inf, so that its weight is exactly 0.",
        zh="被屏蔽的键，得分改为 -inf，这样它的权重恰好是 0。",
    ),
    "hand-shifted": Message(
        en="Subtract from each row its largest score: the weights stay the same, and no exponential overflows.",
        zh="每一行减去本行最大的得分：权重不变，而指数运算不会溢出。",
    ),
    "hand-powers": Message(
        en="Raise e to each number: nothing is negative now, and the largest of a row becomes exp(0) = 1.",
        zh="以 e 为底取幂：不再有负数，每行最大的那个变成 exp(0) = 1。",
    ),
    "hand-sums": Message(
        en="Add up the powers of each row.",
        zh="把每一行的幂加起来。",
    ),
    "hand-weights": Message(
        en="Divide each row by its sum: the weights of each row sum to 1.",
        zh="每一行除以本行的和：每行权重之和为 1。",
    ),
    "hand-weights-some-zero": Message(
        en="Divide each row by its sum: the weights of each row sum to 1; if all scores are -inf, all are 0.",
        zh="每一行除以本行的和：每行权重之和为 1；若一行的得分全是 -inf，权重就全是 0。",
    ),
    "hand-output": Message(
        en="Each row of the output is the sum of the values, each multiplied by its weight.",
        zh="输出的每一行，是各个值乘以各自权重后的总和。",
    ),
    # --- edge cases ---
    "hand-sees": Message(
        en="q{row} attends to {seen}; masked: {hidden}",
        zh="q{row} 可见的键：{seen}；被屏蔽的键：{hidden}",
    ),
    "hand-sees-all": Message(
        en="every key is visible to q{row}",
        zh="q{row} 可见所有的键",
    ),
    "hand-fully-masked": Message(
        en="no key is visible to q{row}: all its scores are -inf",
        zh="q{row} 没有可见的键：它的得分全是 -inf",
    ),
    "hand-not-finite": Message(
        en="q{row}, or a key visible to it, contains nan or inf: its whole row is nan",
        zh="q{row} 或它可见的键含有 nan 或 inf：整行都是 nan",
    ),
    "hand-row": Message(en="q{row}: {sum}", zh="q{row}：{sum}"),
    "hand-highest": Message(
        en="q{row}: subtract {highest}",
        zh="q{row}：减去 {highest}",
    ),
    "hand-no-highest": Message(
        en="q{row}: there is nothing to subtract, because every score is -inf",
        zh="q{row}：没有可减的，因为得分全是 -inf",
    ),
    "hand-weights-zero": Message(
        en="q{row}: all weights are 0, because every score is -inf; 0 / 0 would be nan",
        zh="q{row}：权重全是 0，因为得分全是 -inf；若算 0 / 0 就成了 nan",
    ),
    "hand-zero-score": Message(
        en="A score of 0 is not a weight of 0, only -inf is: q{row} and k{column} score 0, "
        "and still the weight is {weight}.",
        zh="得分为 0 不等于权重为 0，只有 -inf 才是：q{row} 与 k{column} 的得分是 0，权重却是 {weight}。",
    ),
    "hand-underflow": Message(
        en="q{row} and k{column} score {score}, so far below the largest that the weight is smaller than any "
        "float64 and is stored as 0.",
        zh="q{row} 与 k{column} 的得分是 {score}，比最大的低太多，权重比任何 float64 都小，只能存成 0。",
    ),
    "hand-output-zero": Message(
        en="q{row}: no key is visible to this query: its output is zero",
        zh="q{row}：这个查询没有可见的键：输出为零",
    ),
    "hand-output-nothing": Message(
        en="q{row}: every score is -inf, so there is nothing to mix: its output is zero",
        zh="q{row}：得分全是 -inf，没有可混合的值：输出为零",
    ),
    # --- comments of the code ---
    "script-inputs": Message(
        en="one row per query, key and value",
        zh="每个查询、键、值各占一行",
    ),
    "script-mask": Message(
        en="1: the key is visible to the query; 0: masked",
        zh="1：键对查询可见；0：被屏蔽",
    ),
    "script-quiet": Message(
        en="some of these numbers overflow or are nan; NumPy need not warn",
        zh="有些数会溢出，或本来就是 nan；NumPy 不必警告",
    ),
    "script-scores": Message(
        en="compare every query with every key, then scale",
        zh="每个查询与每个键比较，再缩放",
    ),
    "script-not-finite": Message(
        en="if a query or a key visible to it contains nan or inf, its row is nan",
        zh="若查询或它可见的键含有 nan 或 inf，整行都是 nan",
    ),
    "script-softmax": Message(
        en="softmax: subtract the row maximum, take exponentials, divide by the row sum",
        zh="softmax：减去行最大值，取指数，再除以行和",
    ),
    "script-nowhere": Message(
        en="a fully masked query has no maximum, and gets weights of 0",
        zh="被完全屏蔽的查询没有最大值，权重全为 0",
    ),
    "script-others": Message(
        en="the {count} keys that are not listed: the sum of their exp, and their part of the output",
        zh="未列出的 {count} 个键：它们的 exp 之和，以及它们对输出的贡献",
    ),
    "script-output": Message(
        en="the sum of the values, weighted",
        zh="按权重对值求和",
    ),
    "script-bad-values": Message(
        en="nan or inf in a value affects only the queries that see it (0 times nan would be nan)",
        zh="值里的 nan 或 inf 只影响能看见它的查询（否则 0 乘 nan 会变成 nan）",
    ),
    "explain-axes": Message(
        en="explain shows one head at a time, so q, k and v need two axes (positions, width); "
        "found q {q}, k {k}, v {v}; pick one head: q[{pick}], k[{pick}], v[{pick}]",
        zh="explain 一次只讲一个头，q、k、v 应为两个轴（位置，宽度）；实际为 q {q}，k {k}，v {v}；"
        "请选一个头：q[{pick}]、k[{pick}]、v[{pick}]",
    ),
    "explain-too-few-axes": Message(
        en="q, k and v need two axes (positions, width); found q {q}, k {k}, v {v}; one row is written [[1, 0]]",
        zh="q、k、v 应为两个轴（位置，宽度）；实际为 q {q}，k {k}，v {v}；只有一行时写成 [[1, 0]]",
    ),
    "explain-ragged": Message(
        en="the rows of {name} have different lengths; give every row the same number of elements",
        zh="{name} 各行的长度不同；请让每行的元素个数相同",
    ),
    "explain-numbers": Message(
        en="{name} must hold real numbers; found {dtype}",
        zh="{name} 必须是实数；实际为 {dtype}",
    ),
    "explain-too-large": Message(
        en="explaining {T} × {S} scores needs {need}, and {free} are free; "
        "explain a few rows instead: q[:8], k[:8], v[:8]",
        zh="讲解 {T} × {S} 个得分需要 {need}，而可用内存只有 {free}；请只取几行：q[:8]、k[:8]、v[:8]",
    ),
    "explain-no-step": Message(
        en="there is no step {asked!r}; there are: {names}",
        zh="没有名为 {asked!r} 的步骤；现有：{names}",
    ),
}
