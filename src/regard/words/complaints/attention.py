"""What is said about calls of attention: shapes, dtypes, numbers, backends."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- shapes of q, k, v ---
    "axes-differ": Words(
        en="q, k and v need the same number of axes, at least two (…, positions, width); found q {q}, k {k}, v {v}",
        zh="q、k、v 的轴数要相同，且至少两个（…，位置，宽度）；现在 q {q}，k {k}，v {v}",
    ),
    "widths-differ": Words(
        en="q and k need the same width (last axis) to be compared; found {E_q} in q {q} and {E_k} in k {k}",
        zh="q 与 k 的宽度（最后一个轴）必须相同才能比较；现在 q {q} 为 {E_q}，k {k} 为 {E_k}",
    ),
    "width-zero": Words(
        en="q and k have width 0 (last axis), so there is nothing to compare; found q {q}, k {k}",
        zh="q 与 k 的宽度（最后一个轴）为 0，没有可比较的内容；现在 q {q}，k {k}",
    ),
    "key-value-lengths-differ": Words(
        en="each key needs its value: found {S_k} keys in k {k} and {S_v} values in v {v}",
        zh="每个键都要有对应的值：k {k} 有 {S_k} 个键，v {v} 有 {S_v} 个值",
    ),
    "key-value-heads-differ": Words(
        en="k and v need the same axes before the positions; found k {k} and v {v}",
        zh="k 与 v 在位置轴之前的各轴必须相同；现在 k {k}，v {v}",
    ),
    "batches-differ": Words(
        en="q and k need the same axes for samples (only heads may be grouped, and from four axes up); "
        "found q {q} and k {k}; expand k and v to match",
        zh="q 与 k 的样本轴必须相同（只有头可以分组，且要四个轴以上）；现在 q {q}，k {k}；请把 k、v 扩展到一致",
    ),
    "heads-not-grouped": Words(
        en="{H} query heads cannot be shared among {G} key/value heads: {H} must be a multiple of {G}; "
        "found q {q} and k {k}; axes are (samples, heads, positions, width): was transpose(1, 2) forgotten?",
        zh="{H} 个查询头无法由 {G} 个键值头分担：{H} 必须是 {G} 的倍数；现在 q {q}，k {k}；"
        "各轴依次是（样本，头，位置，宽度）：是不是忘了 transpose(1, 2)？",
    ),
    "heads-do-not-divide": Words(
        en="{heads_name}={n_heads} must divide {width_name}={d_model}; nearest widths are {below} and {above}",
        zh="{heads_name}={n_heads} 必须整除 {width_name}={d_model}；最接近的宽度是 {below} 和 {above}",
    ),
    "heads-no-count": Words(
        en="{heads_name}={n_heads} and {width_name}={d_model} must both be at least 1",
        zh="{heads_name}={n_heads} 与 {width_name}={d_model} 都必须至少为 1",
    ),
    "output-shape": Words(
        en="{what} must have shape {wanted}; found {found}",
        zh="{what} 的形状应为 {wanted}；现在是 {found}",
    ),
    # --- dtypes of q, k, v ---
    "mixed-kinds": Words(
        en="q, k and v must all be NumPy arrays or all torch tensors; found q {q}, k {k}, v {v}",
        zh="q、k、v 必须都是 NumPy 数组或都是 torch 张量；现在 q {q}，k {k}，v {v}",
    ),
    "not-an-array": Words(
        en="{name} must be a NumPy array or a torch tensor; found {found}; try numpy.asarray({name}, dtype=float)",
        zh="{name} 必须是 NumPy 数组或 torch 张量；现在是 {found}；可用 numpy.asarray({name}, dtype=float)",
    ),
    "float-wanted": Words(
        en="{name} must hold floating-point numbers (float16, bfloat16, float32 or float64); found {dtype}; "
        "convert it first, for example to float32",
        zh="{name} 必须是浮点数（float16、bfloat16、float32 或 float64）；现在是 {dtype}；请先转换，例如 float32",
    ),
    "dtypes-differ": Words(
        en="q, k and v need one dtype; found q {q}, k {k}, v {v}; convert them to the same one",
        zh="q、k、v 的 dtype 必须一致；现在 q {q}，k {k}，v {v}；请转换成同一种",
    ),
    "devices-differ": Words(
        en="q, k and v must be on one device; found q {q}, k {k}, v {v}; move them with .to(device)",
        zh="q、k、v 必须在同一设备上；现在 q {q}，k {k}，v {v}；请用 .to(device) 移到一起",
    ),
    # --- other arguments of attend ---
    "bias-dtype": Words(
        en="bias is added to the scores, so it must be floating-point; found {dtype}; "
        "to say who may look where, use mask= (True = may look)",
        zh="bias 会加到得分上，必须是浮点数；现在是 {dtype}；要说明谁能看谁，请用 mask=（True 表示可以看）",
    ),
    "bias-shape": Words(
        en="bias {found} does not broadcast to the scores {scores}; give (T, S) or as many axes as the scores",
        zh="bias {found} 无法广播到得分 {scores}；请给 (T, S)，或与得分同样多的轴",
    ),
    "bias-ambiguous": Words(
        en="a 3-D bias {found} beside heads (scores {scores}) may mean one per head or one per sample: "
        "write bias[None] for one per head, bias[:, None] for one per sample",
        zh="有头时，三维 bias {found}（得分 {scores}）可能表示每头一个，也可能表示每样本一个："
        "每头一个请写 bias[None]，每样本一个请写 bias[:, None]",
    ),
    "scale-value": Words(
        en="scale must be a finite number; found {value}; leave it out for 1/sqrt(width), "
        "and multiply q by one that is learned",
        zh="scale 必须是有限的数；现在是 {value}；省略即为 1/sqrt(宽度)，要学习的缩放请直接乘到 q 上",
    ),
    "softcap-value": Words(
        en="softcap must be a positive finite number; found {value}; None turns it off",
        zh="softcap 必须是有限的正数；现在是 {value}；None 表示不用",
    ),
    "dropout-value": Words(
        en="dropout must be at least 0 and below 1; found {value}",
        zh="dropout 必须不小于 0 且小于 1；现在是 {value}",
    ),
    "see-type": Words(
        en="see must be a See, for example see=See(map=256); found {found}",
        zh="see 必须是 See，例如 see=See(map=256)；现在是 {found}",
    ),
    "see-count": Words(
        en="See({name}=…) must be a whole number of at least 1, or None for off; found {value!r}",
        zh="See({name}=…) 必须是不小于 1 的整数，或用 None 关闭；现在是 {value!r}",
    ),
    "see-switch": Words(
        en="See({name}=…) must be True or False; found {value!r}",
        zh="See({name}=…) 必须是 True 或 False；现在是 {value!r}",
    ),
    "see-differentiable-numpy": Words(
        en="See(differentiable=True) asks for gradients, which NumPy arrays do not carry; give torch tensors",
        zh="See(differentiable=True) 要求梯度，而 NumPy 数组没有梯度；请给 torch 张量",
    ),
    # --- backends ---
    "backend-unknown": Words(
        en="there is no backend {asked!r} for {kind} arrays; there are: {names}",
        zh="{kind} 数组没有名为 {asked!r} 的后端；现有：{names}",
    ),
    "backend-refuses": Words(
        en="backend {name!r} cannot do this call: {reason}; backend='auto' would take {chosen}",
        zh="后端 {name!r} 做不了这次调用：{reason}；backend='auto' 会选择 {chosen}",
    ),
    "no-second-gradients": Words(
        en="backends 'chunked' and 'triton', which compute calls with see= or softcap=, have no gradients of "
        "gradients; backend='eager' has them",
        zh="计算带 see= 或 softcap= 的调用的后端 'chunked' 和 'triton' 没有梯度的梯度；backend='eager' 有",
    ),
    "record-too-large": Words(
        en="what see asks for would take {need}, and {free} are free; ask for a smaller map, or fewer of top",
        zh="see 要求的内容需要 {need}，而可用内存只有 {free}；请把 map 或 top 改小",
    ),
    "mask-too-large": Words(
        en="the whole mask ({T} × {S}) would take {need}, and {free} are free; ask for a block: rows=, cols=",
        zh="完整的掩码（{T} × {S}）需要 {need}，而可用内存只有 {free}；请用 rows= 和 cols= 只取一块",
    ),
    "matrix-too-large": Words(
        en="for this call PyTorch would build the whole matrix, {need}, and {free} are free (B H T S = {shape}); "
        "leave out dropout, or the gradient of the bias",
        zh="这次调用会让 PyTorch 建立完整的矩阵，需要 {need}，而可用内存只有 {free}（B H T S = {shape}）；"
        "请去掉 dropout，或不要 bias 的梯度",
    ),
    "weights-too-large": Words(
        en="the full weights need {need}, and {free} are free (B H T S = {shape}); "
        "ask for see=See(map=256) or a rectangle of weights instead",
        zh="完整的权重需要 {need}，而可用内存只有 {free}（B H T S = {shape}）；请改用 see=See(map=256)，或只要一块矩形",
    ),
}
