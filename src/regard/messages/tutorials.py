"""Error messages of the tutorial package `deep_learning`, and those about masks, weights and records."""

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
}
