"""What is said when something cannot be done: what was asked, what was found, what to do."""

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
        zh="bias 会加到分数上，必须是浮点数；现在是 {dtype}；要说明谁能看谁，请用 mask=（True 表示可以看）",
    ),
    "bias-shape": Words(
        en="bias {found} does not broadcast to the scores {scores}; give (T, S) or as many axes as the scores",
        zh="bias {found} 无法广播到分数 {scores}；请给 (T, S)，或与分数同样多的轴",
    ),
    "bias-ambiguous": Words(
        en="a 3-D bias {found} beside heads (scores {scores}) may mean one per head or one per sample: "
        "write bias[None] for one per head, bias[:, None] for one per sample",
        zh="有头时，三维 bias {found}（分数 {scores}）可能表示每头一个，也可能表示每样本一个："
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
    # --- masks ---
    "mask-dtype-float": Words(
        en="a mask is boolean, True = may look; found {dtype} {shape}. If 0 means look and -inf hide: "
        "Mask.from_additive(m). If 1 means keep: Mask.from_keep(m). Scores to be added go in bias=",
        zh="mask 是布尔型，True 表示可以看；现在是 {dtype} {shape}。若 0 为可看、-inf 为遮住：Mask.from_additive(m)；"
        "若 1 为保留：Mask.from_keep(m)；要加到分数上的数请用 bias=",
    ),
    "mask-dtype-whole": Words(
        en="a mask is boolean, True = may look; found {dtype} {shape}. If 1 means keep: Mask.from_keep(m). "
        "If 1 means hide: Mask.from_blocked(m). For token ids: Mask.padding(ids, pad=0)",
        zh="mask 是布尔型，True 表示可以看；现在是 {dtype} {shape}。若 1 为保留：Mask.from_keep(m)；"
        "若 1 为遮住：Mask.from_blocked(m)；若是词元 id：Mask.padding(ids, pad=0)",
    ),
    "mask-dtype-other": Words(
        en="a mask is boolean, True = may look; found {dtype} {shape}; "
        "converters: Mask.from_keep, Mask.from_blocked, Mask.from_additive",
        zh="mask 是布尔型，True 表示可以看；现在是 {dtype} {shape}；"
        "可用的转换：Mask.from_keep、Mask.from_blocked、Mask.from_additive",
    ),
    "mask-not-array": Words(
        en="a mask is a Mask or a boolean array; found {found}; for the usual one write mask=Mask.causal()",
        zh="mask 应为 Mask 或布尔数组；现在是 {found}；常用的写法是 mask=Mask.causal()",
    ),
    "mask-combined": Words(
        en="a Mask can be combined by {sign} with a Mask or a boolean array; found {found}",
        zh="Mask 只能与 Mask 或布尔数组用 {sign} 组合；现在是 {found}",
    ),
    "mask-truth": Words(
        en="a Mask is neither true nor false: combine masks with & | ~, not with and, or, not",
        zh="Mask 没有真假之分：请用 & | ~ 组合，不要用 and、or、not",
    ),
    "mask-ambiguous": Words(
        en="a 3-D mask {found} beside heads (scores {scores}) may mean one per sample or one per head: "
        "write mask[:, None] for one per sample, mask[None] for one per head",
        zh="有头时，三维 mask {found}（分数 {scores}）可能表示每样本一个，也可能表示每头一个："
        "每样本一个请写 mask[:, None]，每头一个请写 mask[None]",
    ),
    "mask-shape": Words(
        en="mask {found} does not fit the scores {scores}: it must be (T, S) or have as many axes as the scores, "
        "each of size 1 or the same",
        zh="mask {found} 与分数 {scores} 不匹配：应为 (T, S)，或与分数同样多的轴，每轴大小为 1 或相同",
    ),
    "mask-samples": Words(
        en="Mask.{what} was given {found} samples, but the call has {wanted}; give one row per sample, or one for all",
        zh="Mask.{what} 给了 {found} 个样本，而这次调用有 {wanted} 个；请每个样本给一行，或所有样本共用一行",
    ),
    "mask-keys": Words(
        en="the mask's {what} {found} do not fit: the last axis must count the S={S} keys (T={T} queries)",
        zh="mask 的 {what} {found} 最后一轴与键数不符：键有 S={S} 个（查询 T={T} 个）",
    ),
    "mask-parts": Words(
        en="the parts of {name} have samples that do not fit together: {found}",
        zh="{name} 各部分的样本数对不上：{found}",
    ),
    "segments-length": Words(
        en="the segments of the queries have {found} positions, but there are T={T} queries",
        zh="查询的分段有 {found} 个位置，但查询有 T={T} 个",
    ),
    "segments-too-many-queries": Words(
        en="T={T} queries are more than the S={S} keys the segments name; give Mask.segments(ids, queries=...)",
        zh="查询 T={T} 个，多于分段给出的 S={S} 个键；请给 Mask.segments(ids, queries=...)",
    ),
    "window-side": Words(
        en="Mask.window({side}=…) must be a whole number of at least 0, or None for without end; found {value!r}",
        zh="Mask.window({side}=…) 必须是不小于 0 的整数，或用 None 表示不限；现在是 {value!r}",
    ),
    "pad-value": Words(
        en="Mask.padding(ids, pad=…) needs the id of the padding token, a whole number; found {value!r}",
        zh="Mask.padding(ids, pad=…) 需要填充词元的 id，即一个整数；现在是 {value!r}",
    ),
    "mask-too-few-axes": Words(
        en="{what} needs at least two axes (T, S); found {found}; for one value per key write mask[None, :]",
        zh="{what} 至少需要两个轴 (T, S)；现在是 {found}；若每个键一个值，请写 mask[None, :]",
    ),
    "prefix-negative": Words(
        en="Mask.prefix(n) needs n of at least 0; found {value}",
        zh="Mask.prefix(n) 的 n 不能小于 0；现在是 {value}",
    ),
    "mask-ids-dtype": Words(
        en="Mask.{what} needs whole numbers; found {dtype}",
        zh="Mask.{what} 需要整数；现在是 {dtype}",
    ),
    "mask-ids-shape": Words(
        en="{what} needs an array with at least one axis; found a single number",
        zh="{what} 需要至少一个轴的数组；现在只是一个数",
    ),
    "mask-not-zero-one": Words(
        en="Mask.{what} takes 0 and 1 only; found {value}; a mask of 0 and -inf goes to Mask.from_additive, "
        "scores to be added go in bias=",
        zh="Mask.{what} 只接受 0 和 1；发现了 {value}；由 0 与 -inf 组成的 mask 请用 Mask.from_additive，"
        "要加到分数上的数请用 bias=",
    ),
    "mask-one-row": Words(
        en="Mask.{what}(…, keys=True) takes (B, S) or (S,); found {found}",
        zh="Mask.{what}(…, keys=True) 只接受 (B, S) 或 (S,)；现在是 {found}",
    ),
    "from-blocked-3d": Words(
        en="nn.MultiheadAttention's 3-D attn_mask is (B·heads, T, S); found {found}; "
        "reshape it to (B, heads, T, S) first",
        zh="nn.MultiheadAttention 的三维 attn_mask 是 (B·头数, T, S)；现在是 {found}；请先 reshape 成 (B, 头数, T, S)",
    ),
    "from-additive-dtype": Words(
        en="Mask.from_additive takes a floating-point mask of 0 and -inf; found {dtype}; "
        "for 1 = keep use Mask.from_keep, for 1 = hide Mask.from_blocked",
        zh="Mask.from_additive 需要由 0 与 -inf 组成的浮点 mask；现在是 {dtype}；"
        "1 为保留请用 Mask.from_keep，1 为遮住请用 Mask.from_blocked",
    ),
    "from-additive-values": Words(
        en="Mask.from_additive takes 0, and -inf or the lowest {dtype} ({lowest:.4g}); found {value}; "
        "numbers in between are scores: pass them as bias=",
        zh="Mask.from_additive 只接受 0，以及 -inf 或 {dtype} 的最小值（{lowest:.4g}）；发现了 {value}；"
        "介于其间的是分数：请作为 bias= 传入",
    ),
    # --- explain ---
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
        zh="讲解 {T} × {S} 个分数需要 {need}，而可用内存只有 {free}；请只取几行：q[:8]、k[:8]、v[:8]",
    ),
    "explain-no-step": Words(
        en="there is no step {asked!r}; there are: {names}",
        zh="没有名为 {asked!r} 的步骤；现有：{names}",
    ),
    # --- feed-forward, norms, positions ---
    "unknown-choice": Words(
        en="there is no {name}={value!r}; choose one of: {choices}",
        zh="没有 {name}={value!r} 这个选项；可选：{choices}",
    ),
    "width-wanted": Words(
        en="x needs a last axis of at least one number, its width: (…, D); found {found}",
        zh="x 的最后一个轴是宽度，至少要有一个数：(…, D)；现在是 {found}",
    ),
    "part-shape": Words(
        en="{name} must have shape {wanted} to go with x {x}; found {found}; "
        "weights are used as x @ W (nn.Linear keeps the transpose: pass weight.T)",
        zh="{name} 的形状应为 {wanted}，才能与 x {x} 相配；现在是 {found}；"
        "权重按 x @ W 使用（nn.Linear 存的是转置：请传 weight.T）",
    ),
    "norm-shape": Words(
        en="{name} goes with the last axis of x {x}, so its shape must be {wanted}; found {found}",
        zh="{name} 与 x {x} 的最后一个轴一一对应，形状应为 {wanted}；现在是 {found}",
    ),
    "eps-value": Words(
        en="eps must be a finite number of at least 0; found {value!r}; 1e-5 and 1e-6 are usual",
        zh="eps 必须是不小于 0 的有限数；现在是 {value!r}；常用 1e-5 或 1e-6",
    ),
    "base-value": Words(
        en="base must be a positive finite number; found {value!r}; the papers use 10000",
        zh="base 必须是有限的正数；现在是 {value!r}；论文用的是 10000",
    ),
    "table-axes": Words(
        en="{what} needs a table of two axes, {axes}; found {found}",
        zh="{what} 需要两个轴的表 {axes}；现在是 {found}",
    ),
    "positions-beyond-table": Words(
        en="{length} positions from {start} on were asked for, but the table ends at max_len={max_len}: "
        "shorten the input, or use a table with max_len of at least {needed}",
        zh="要从位置 {start} 起取 {length} 个位置，但位置表只到 max_len={max_len}："
        "请缩短输入，或使用 max_len 不小于 {needed} 的位置表",
    ),
    "positions-shape": Words(
        en="positions {found} do not fit x {x}: give ({T},), or as many axes as x without its last, "
        "ending in {T}, the others of size 1 or the same; for one row per sample beside heads "
        "write positions[:, None]",
        zh="positions {found} 与 x {x} 不匹配：应为 ({T},)，或与 x 去掉最后一轴后的轴数相同，"
        "最后一轴为 {T}，其余各轴大小为 1 或相同；有头而每个样本一行时，请写 positions[:, None]",
    ),
    "positions-dtype": Words(
        en="positions must be whole numbers, or float32 or float64; found {dtype}; "
        "half precision cannot tell far positions apart",
        zh="positions 必须是整数，或 float32、float64；现在是 {dtype}；半精度分不清远处的位置",
    ),
    "rotary-axes": Words(
        en="rotate needs at least two axes, (…, positions, width); found x {found}",
        zh="rotate 至少需要两个轴（…，位置，宽度）；现在 x {found}",
    ),
    "rotary-odd-width": Words(
        en="rotary positions turn numbers in pairs, so the width of a head must be even; found {E}; "
        "nearest are {below} and {above}",
        zh="旋转位置编码把数两两成对地旋转，头的宽度必须是偶数；现在是 {E}；最接近的是 {below} 和 {above}",
    ),
    "buckets-odd": Words(
        en="with bidirectional=True half of the buckets are for keys after the query, so n_buckets must be "
        "even; found {n_buckets}; nearest are {below} and {above}",
        zh="bidirectional=True 时一半的桶留给查询之后的键，所以 n_buckets 必须是偶数；"
        "现在是 {n_buckets}；最接近的是 {below} 和 {above}",
    ),
    "buckets-distance": Words(
        en="max_distance={max_distance} must be larger than {exact}: the nearer distances have a bucket each",
        zh="max_distance={max_distance} 必须大于 {exact}：比它近的距离各占一个桶",
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
        en="backend 'chunked', which computes calls with see= or softcap=, has no gradients of gradients; "
        "backend='eager' has them",
        zh="计算带 see= 或 softcap= 的调用的后端 'chunked' 没有梯度的梯度；backend='eager' 有",
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
    # --- records and traces ---
    "weights-not-kept": Words(
        en="record {name!r} ({T} × {S}) did not keep q and k, so exact weights cannot be computed; "
        "ask for them beforehand: see=See(qk=True), and save them with trace.save(path, qk=True)",
        zh="记录 {name!r}（{T} × {S}）没有保留 q 和 k，无法再算出精确权重；"
        "请事先要求保留：see=See(qk=True)，存文件时用 trace.save(path, qk=True)",
    ),
    "rectangle-step": Words(
        en="a rectangle is given by slices without a step, such as slice(0, 64); found {found}",
        zh="矩形由不带步长的切片给出，例如 slice(0, 64)；现在是 {found}",
    ),
    "tokens-count": Words(
        en="{side} names {found} tokens, but there are {wanted} positions",
        zh="{side} 给了 {found} 个词元，但位置有 {wanted} 个",
    ),
    "tokens-samples": Words(
        en="{side} has tokens for {found} samples, but there are {B}",
        zh="{side} 给了 {found} 个样本的词元，但样本有 {B} 个",
    ),
    # --- the deep_learning doors ---
    "count-wanted": Words(
        en="{name} must be a whole number of at least {least}; found {value!r}",
        zh="{name} 必须是不小于 {least} 的整数；现在是 {value!r}",
    ),
    "axis-value": Words(
        en="axis={axis} is not an axis of an array of shape {shape}: it has {axes}",
        zh="形状为 {shape} 的数组没有 axis={axis}：它共有 {axes} 个轴",
    ),
    "numpy-wanted": Words(
        en="{name} must be a NumPy array here; found a torch tensor; "
        "tensors go to deep_learning.nn or regard.attend, or write {name}.detach().numpy()",
        zh="这里的 {name} 必须是 NumPy 数组；现在是 torch 张量；"
        "张量请用 deep_learning.nn 或 regard.attend，或写成 {name}.detach().numpy()",
    ),
    "tensor-wanted": Words(
        en="{name} must be a torch tensor here; found {found}; try torch.as_tensor({name}), "
        "or use deep_learning.attention, which takes NumPy arrays",
        zh="这里的 {name} 必须是 torch 张量；现在是 {found}；可用 torch.as_tensor({name})，"
        "或改用接受 NumPy 数组的 deep_learning.attention",
    ),
    "input-shape": Words(
        en="{name} must have shape {wanted}; found {found}",
        zh="{name} 的形状应为 {wanted}；现在是 {found}",
    ),
    "d-k-width": Words(
        en="d_k={d_k} is the width of Q and K in one head, but Q {Q} is {found} wide; "
        "make it ScaledDotProductAttention(d_k={found}), or leave d_k out",
        zh="d_k={d_k} 是一个头里 Q 与 K 的宽度，而 Q {Q} 的宽度是 {found}；"
        "请写 ScaledDotProductAttention(d_k={found})，或省略 d_k",
    ),
    "positions-too-long": Words(
        en="x has {T} positions, but there are encodings for max_len={max_len} only; "
        "make it PositionalEncoding(d_model, max_len={T}), or shorten x",
        zh="x 有 {T} 个位置，而位置编码只有 max_len={max_len} 个；"
        "请写 PositionalEncoding(d_model, max_len={T})，或截短 x",
    ),
    "added-mask-dtype": Words(
        en="this mask is added to the scores, 0 = visible and -inf = hidden, as create_causal_mask makes it; "
        "found {dtype} {found}. If 1 means visible: regard.Mask.of(mask == 1). "
        "If 1 means hidden: regard.Mask.of(mask == 0)",
        zh="这里的 mask 会加到分数上，0 为可见、-inf 为遮住，如 create_causal_mask 所给；现在是 {dtype} {found}。"
        "若 1 为可见：regard.Mask.of(mask == 1)；若 1 为遮住：regard.Mask.of(mask == 0)",
    ),
    "door-mask-values": Words(
        en="this mask says 1 = {one} and 0 = {zero}, and takes nothing else; found {value}; "
        "a mask of 0 and -inf goes in as regard.Mask.from_additive(mask)",
        zh="这个掩码以 1 表示{one}、0 表示{zero}，不接受其他值；发现了 {value}；"
        "由 0 与 -inf 组成的掩码请写成 regard.Mask.from_additive(mask)",
    ),
    "door-hidden": Words(en="hidden", zh="遮住"),
    "door-visible": Words(en="visible", zh="可见"),
    "stdin-closed": Words(en="- means stdin, and stdin is closed", zh="- 表示标准输入，但标准输入已关闭"),
    "added-mask-values": Words(
        en="this mask holds 0 (visible) and -inf (hidden) only; found {value}. To hide, write -inf; "
        "scores to be added are no mask: regard.attend(Q, K, V, bias=scores)",
        zh="这里的 mask 只能含 0（可见）与 -inf（遮住）；发现了 {value}。要遮住请写 -inf；"
        "要加到分数上的数不是 mask：regard.attend(Q, K, V, bias=scores)",
    ),
    "weights-axes": Words(
        en="attention weights have at least two axes, (…, queries, keys); found shape {found}",
        zh="注意力权重至少有两个轴（…，查询，键）；现在形状是 {found}",
    ),
    "weights-row-sum": Words(
        en="each row of attention weights sums to 1, or holds only 0; row {row} (sample, head, query) sums to "
        "{sum:.4g}. If these are scores, apply softmax first: regard.reference.softmax(w); "
        "if after dropout, take them before it",
        zh="注意力权重的每一行之和为 1，或整行为 0；而第 {row} 行（样本，头，查询）之和为 {sum:.4g}。"
        "如果这是分数，请先做 softmax：regard.reference.softmax(w)；"
        "如果经过了 dropout，请取它之前的权重",
    ),
    "weights-negative": Words(
        en="attention weights are never negative; row {row} (sample, head, query) holds {value:.4g}. "
        "If these are scores, apply softmax first: regard.reference.softmax(w); "
        "if after dropout, take them before it",
        zh="注意力权重不会是负数；而第 {row} 行（样本，头，查询）里有 {value:.4g}。"
        "如果这是分数，请先做 softmax：regard.reference.softmax(w)；"
        "如果经过了 dropout，请取它之前的权重",
    ),
    "weights-all-nan": Words(
        en="every row of these weights {found} is NaN: there is nothing to see; look for NaN or Inf in q and k",
        zh="这些权重 {found} 的每一行都是 NaN，没有可看的内容；请检查 q 和 k 中的 NaN 或 Inf",
    ),
    "kind-unknown": Words(
        en="there is no kind {asked!r} of attention; there are: {kinds}",
        zh="没有名为 {asked!r} 的注意力种类；现有：{kinds}",
    ),
    "not-a-record": Words(
        en="a Trace holds Records, such as attend(..., see=See()) gives; found {found}; "
        "for an array of weights use Trace.from_weights(w)",
        zh="Trace 里只放 Record，即 attend(..., see=See()) 给出的记录；现在是 {found}；"
        "若是权重数组，请用 Trace.from_weights(w)",
    ),
    "record-unknown": Words(
        en="no record is called {asked!r}; the nearest of the {count} is {nearest!r}; trace.names lists them all",
        zh="没有名为 {asked!r} 的记录；{count} 条记录中最接近的是 {nearest!r}；trace.names 会列出全部",
    ),
    "record-unknown-empty": Words(
        en="no record is called {asked!r}: this trace holds none",
        zh="没有名为 {asked!r} 的记录：这个 Trace 是空的",
    ),
    "record-ambiguous": Words(
        en="{asked!r} is the end of several names: {names}; give more of the name",
        zh="有多个名字以 {asked!r} 结尾：{names}；请把名字写得更完整",
    ),
    "record-index": Words(
        en="there is no record {asked}: this trace holds {count}, numbered from 0",
        zh="没有第 {asked} 号记录：这个 Trace 共有 {count} 条，从 0 开始编号",
    ),
    "record-key": Words(
        en="records are found by number, by name or by a slice; found {found}",
        zh="记录可按编号、名字或切片查找；现在给的是 {found}",
    ),
    "trace-empty": Words(
        en="this trace holds no records, so there is nothing to draw: "
        "nothing was run while it watched, or select() matched nothing",
        zh="这个 Trace 里没有记录，没有可画的内容：观察期间没有运行模型，或 select() 什么也没选中",
    ),
    "map-not-kept": Words(
        en="record {name!r} keeps no map, so it cannot be drawn; ask for one: see=See(map=256)",
        zh="记录 {name!r} 没有保留图（map），无法绘制；请事先要求：see=See(map=256)",
    ),
    # --- views ---
    "choice-range": Words(
        en="{what}={asked!r} is not there: choose a whole number from 0 to {last}",
        zh="没有 {what}={asked!r}：请选 0 到 {last} 之间的整数",
    ),
    "choice-none": Words(
        en="{what}={asked!r} is not there: record {name!r} has none at all (B H T S = {shape})",
        zh="没有 {what}={asked!r}：记录 {name!r} 一个也没有（B H T S = {shape}）",
    ),
    "option-unknown": Words(
        en="{option}={asked!r} is not known; choose one of {choices}",
        zh="不认识 {option}={asked!r}；请选 {choices} 之一",
    ),
    "width-narrow": Words(
        en="width={asked!r} is too narrow to draw in; give a whole number of at least {least} columns",
        zh="width={asked!r} 太窄，画不下；请给不小于 {least} 列的整数",
    ),
    "ax-one-picture": Words(
        en="ax= holds one picture, but {count} were asked for; choose layer= and head=, or leave ax out",
        zh="ax= 只能放一幅图，但这里要画 {count} 幅；请用 layer= 和 head= 选一幅，或去掉 ax",
    ),
    # --- files ---
    "file-absent": Words(
        en="there is no file {path}",
        zh="没有文件 {path}",
    ),
    "file-is-folder": Words(
        en="{path} is a folder; give the path of a file",
        zh="{path} 是文件夹；请给出文件的路径",
    ),
    "file-no-folder": Words(
        en="{path} cannot be written: there is no folder {folder}; make it first",
        zh="无法写入 {path}：文件夹 {folder} 不存在；请先创建",
    ),
    "file-unwritable": Words(
        en="{path} could not be written ({reason}); check the folder, the permission and the space left",
        zh="无法写入 {path}（{reason}）；请检查文件夹、权限和剩余空间",
    ),
    "trace-unreadable": Words(
        en="{path} could not be read as a safetensors file ({reason}): it is damaged, cut short or something "
        "else; save the trace again with trace.save(path)",
        zh="{path} 无法作为 safetensors 文件读取（{reason}）：文件损坏、不完整或不是这种格式；"
        "请用 trace.save(path) 重新保存",
    ),
    "trace-not-ours": Words(
        en="{path} is a safetensors file but not a trace; regard.read_trace reads what trace.save(path) wrote",
        zh="{path} 是 safetensors 文件，但不是 Trace；regard.read_trace 只读取 trace.save(path) 写的文件",
    ),
    "trace-newer": Words(
        en="{path} was written by a newer regard (trace version {found}; this one reads up to {known}): "
        "pip install --upgrade regard",
        zh="{path} 由更新版本的 regard 写成（Trace 版本 {found}；当前最高读到 {known}）：pip install --upgrade regard",
    ),
    "trace-garbled": Words(
        en="{path} is damaged: {place} makes no sense; save the trace again with trace.save(path)",
        zh="{path} 已损坏：{place} 处的内容无效；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-missing": Words(
        en="{path} is damaged: tensor {tensor!r} is missing; save the trace again with trace.save(path)",
        zh="{path} 已损坏：缺少张量 {tensor!r}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-shape": Words(
        en="{path} is damaged: tensor {tensor!r} has shape {found} where {wanted} belongs; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的形状是 {found}，应为 {wanted}；请用 trace.save(path) 重新保存",
    ),
    "trace-tensor-dtype": Words(
        en="{path} is damaged: tensor {tensor!r} has a dtype ({found}) that cannot stand there; "
        "save the trace again with trace.save(path)",
        zh="{path} 已损坏：张量 {tensor!r} 的 dtype（{found}）不该出现在这里；请用 trace.save(path) 重新保存",
    ),
    # --- packages ---
    "missing-package": Words(
        en="{what} needs {package}, which is not installed: pip install 'regard[{extra}]', or, in a clone, "
        "pip install -c constraints.txt -e '.[{extra}]'",
        zh="{what} 需要 {package}，但尚未安装：pip install 'regard[{extra}]'；在克隆的仓库里则是 "
        "pip install -c constraints.txt -e '.[{extra}]'",
    ),
}
