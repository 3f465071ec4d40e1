"""Messages about attention calls, masks, and the reasons that backends give."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- shapes of q, k, v ---
    "axes-differ": Message(
        en="q, k and v need the same number of axes, at least two (…, positions, width); found q {q}, k {k}, v {v}",
        zh="q、k、v 的轴数要相同，且至少两个（…，位置，宽度）；实际为 q {q}，k {k}，v {v}",
    ),
    "widths-differ": Message(
        en="q and k need the same width (last axis) to be compared; found {E_q} in q {q} and {E_k} in k {k}",
        zh="q 与 k 的宽度（最后一个轴）必须相同才能比较；实际上 q {q} 的宽度为 {E_q}，k {k} 的宽度为 {E_k}",
    ),
    "width-zero": Message(
        en="q and k have width 0 (last axis), so there is nothing to compare; found q {q}, k {k}",
        zh="q 与 k 的宽度（最后一个轴）为 0，没有可比较的内容；实际为 q {q}，k {k}",
    ),
    "key-value-lengths-differ": Message(
        en="each key needs its value: found {S_k} keys in k {k} and {S_v} values in v {v}",
        zh="每个键都要有对应的值：k {k} 有 {S_k} 个键，v {v} 有 {S_v} 个值",
    ),
    "key-value-heads-differ": Message(
        en="k and v need the same axes before the positions; found k {k} and v {v}",
        zh="k 与 v 在位置轴之前的各轴必须相同；实际为 k {k}，v {v}",
    ),
    "batches-differ": Message(
        en="q and k need the same axes for samples (only heads may be grouped, and from four axes up); "
        "found q {q} and k {k}; expand k and v to match",
        zh="q 与 k 的样本轴必须相同（只有头可以分组，且至少要有四个轴）；实际为 q {q}，k {k}；请把 k、v 扩展到一致",
    ),
    "heads-not-grouped": Message(
        en="{H} query heads cannot be shared among {G} key/value heads: {H} must be a multiple of {G}; "
        "found q {q} and k {k}; axes are (samples, heads, positions, width): was transpose(1, 2) forgotten?",
        zh="{H} 个查询头无法平均分给 {G} 个键值头：{H} 必须是 {G} 的倍数；实际为 q {q}，k {k}；"
        "各轴依次是（样本，头，位置，宽度）：是不是忘了 transpose(1, 2)？",
    ),
    "heads-do-not-divide": Message(
        en="{heads_name}={n_heads} must divide {width_name}={d_model}; nearest widths are {below} and {above}",
        zh="{heads_name}={n_heads} 必须整除 {width_name}={d_model}；最接近的宽度是 {below} 和 {above}",
    ),
    "heads-no-count": Message(
        en="{heads_name}={n_heads} and {width_name}={d_model} must both be at least 1",
        zh="{heads_name}={n_heads} 与 {width_name}={d_model} 都必须至少为 1",
    ),
    "output-shape": Message(
        en="{what} must have shape {wanted}; found {found}",
        zh="{what} 的形状应为 {wanted}；实际为 {found}",
    ),
    # --- dtypes of q, k, v ---
    "mixed-kinds": Message(
        en="q, k and v must all be NumPy arrays or all torch tensors; found q {q}, k {k}, v {v}",
        zh="q、k、v 必须都是 NumPy 数组或都是 torch 张量；实际为 q {q}，k {k}，v {v}",
    ),
    "not-an-array": Message(
        en="{name} must be a NumPy array or a torch tensor; found {found}; try numpy.asarray({name}, dtype=float)",
        zh="{name} 必须是 NumPy 数组或 torch 张量；实际为 {found}；可用 numpy.asarray({name}, dtype=float)",
    ),
    "tensor-not-dense": Message(
        en="{name} must be a dense tensor; found a tensor of layout {found}; convert it: {name}.to_dense(), or for a "
        "nested one torch.nested.to_padded_tensor({name}, 0.0) and a mask of the padding",
        zh="{name} 必须是稠密张量；实际的布局为 {found}；请先转换：{name}.to_dense()；"
        "嵌套张量用 torch.nested.to_padded_tensor({name}, 0.0)，并屏蔽填充",
    ),
    "float-wanted": Message(
        en="{name} must hold floating-point numbers (float16, bfloat16, float32 or float64); found {dtype}; "
        "convert it first, for example to float32",
        zh="{name} 必须是浮点数（float16、bfloat16、float32 或 float64）；实际为 {dtype}；请先转换，例如 float32",
    ),
    "dtypes-differ": Message(
        en="q, k and v need one dtype; found q {q}, k {k}, v {v}; convert them to the same one",
        zh="q、k、v 的 dtype 必须一致；实际为 q {q}，k {k}，v {v}；请转换成同一种",
    ),
    "devices-differ": Message(
        en="q, k and v must be on one device; found q {q}, k {k}, v {v}; move them with .to(device)",
        zh="q、k、v 必须在同一设备上；实际为 q {q}，k {k}，v {v}；请用 .to(device) 移到一起",
    ),
    # --- other arguments of attend ---
    "bias-dtype": Message(
        en="bias is added to the scores, so it must be floating-point; found {dtype}; "
        "to mask keys, use mask= (True = visible)",
        zh="bias 会加到得分上，必须是浮点数；实际为 {dtype}；要屏蔽某些键，请用 mask=（True 表示可见）",
    ),
    "bias-shape": Message(
        en="bias {found} does not broadcast to the scores {scores}; give (T, S) or as many axes as the scores",
        zh="bias {found} 无法广播到得分 {scores}；请给 (T, S)，或与得分同样多的轴",
    ),
    "bias-ambiguous": Message(
        en="a 3-D bias {found} beside heads (scores {scores}) may mean one per head or one per sample: "
        "write bias[None] for one per head, bias[:, None] for one per sample",
        zh="有头时，三维 bias {found}（得分 {scores}）可能表示每头一个，也可能表示每样本一个："
        "每头一个请写 bias[None]，每样本一个请写 bias[:, None]",
    ),
    "scale-value": Message(
        en="scale must be a finite number; found {value}; omit it for 1/sqrt(width); "
        "for a learned scale, multiply q by it",
        zh="scale 必须是有限的数；实际为 {value}；省略时为 1/sqrt(宽度)；可学习的缩放请直接乘到 q 上",
    ),
    "softcap-value": Message(
        en="softcap must be a positive finite number; found {value}; None turns it off",
        zh="softcap 必须是有限的正数；实际为 {value}；None 表示不使用",
    ),
    "dropout-value": Message(
        en="dropout must be at least 0 and below 1; found {value}",
        zh="dropout 必须不小于 0 且小于 1；实际为 {value}",
    ),
    "see-type": Message(
        en="see must be a See, for example see=See(map=256); found {found}",
        zh="see 必须是 See，例如 see=See(map=256)；实际为 {found}",
    ),
    "see-count": Message(
        en="See({name}=…) must be a whole number of at least 1, or None for off; found {value!r}",
        zh="See({name}=…) 必须是不小于 1 的整数，或用 None 关闭；实际为 {value!r}",
    ),
    "see-switch": Message(
        en="See({name}=…) must be True or False; found {value!r}",
        zh="See({name}=…) 必须是 True 或 False；实际为 {value!r}",
    ),
    "see-v-alone": Message(
        en="See(v=True) keeps the values beside q and k; request both: See(qk=True, v=True)",
        zh="See(v=True) 把值与 q、k 一起保留；请同时要求：See(qk=True, v=True)",
    ),
    "see-differentiable-numpy": Message(
        en="See(differentiable=True) requests gradients, which NumPy arrays do not have; give torch tensors",
        zh="See(differentiable=True) 要求梯度，而 NumPy 数组没有梯度；请使用 torch 张量",
    ),
    # --- backends ---
    "backend-unknown": Message(
        en="there is no backend {asked!r} for {kind} arrays; there are: {names}",
        zh="{kind} 数组没有名为 {asked!r} 的后端；现有：{names}",
    ),
    "backend-refuses": Message(
        en="backend {name!r} cannot run this call: {reason}; backend='auto' would take {chosen}",
        zh="后端 {name!r} 无法执行这次调用：{reason}；backend='auto' 会选择 {chosen}",
    ),
    "no-second-gradients": Message(
        en="backends 'chunked' and 'triton', which compute calls with see= or softcap=, have no gradients of "
        "gradients; backend='eager' has them",
        zh="后端 'chunked' 和 'triton'（用于带 see= 或 softcap= 的调用）不支持二阶梯度；backend='eager' 支持",
    ),
    "record-too-large": Message(
        en="the requested statistics would take {need}, and {free} are free; request a smaller map or top",
        zh="请求的统计量需要 {need}，而可用内存只有 {free}；请把 map 或 top 改小",
    ),
    "mask-too-large": Message(
        en="the whole mask ({T} × {S}) would take {need}, and {free} are free; request a block: rows=, cols=",
        zh="完整的掩码（{T} × {S}）需要 {need}，而可用内存只有 {free}；请用 rows= 和 cols= 只取一块",
    ),
    "matrix-too-large": Message(
        en="for this call PyTorch would build the whole matrix, {need}, and {free} are free (B H T S = {shape}); "
        "leave out dropout or the gradient of the bias",
        zh="这次调用会让 PyTorch 建立完整的矩阵，需要 {need}，而可用内存只有 {free}（B H T S = {shape}）；"
        "请去掉 dropout，或不要 bias 的梯度",
    ),
    "weights-too-large": Message(
        en="the full weights need {need}, and {free} are free (B H T S = {shape}); "
        "request see=See(map=256) or a rectangle of weights instead",
        zh="完整的权重需要 {need}，而可用内存只有 {free}（B H T S = {shape}）；请改用 see=See(map=256)，或只取一块矩形",
    ),
    "mask-dtype-float": Message(
        en="a mask is boolean, True = visible; found {dtype} {shape}. If 0 means visible and -inf masked: "
        "Mask.from_additive(m). If 1 means keep: Mask.from_keep(m). Scores to be added go in bias=",
        zh="mask 是布尔型，True 表示可见；实际为 {dtype} {shape}。若 0 为可见、-inf 为屏蔽：Mask.from_additive(m)；"
        "若 1 为保留：Mask.from_keep(m)；要加到得分上的数请用 bias=",
    ),
    "mask-dtype-whole": Message(
        en="a mask is boolean, True = visible; found {dtype} {shape}. If 1 means keep: Mask.from_keep(m). "
        "If 1 means masked: Mask.from_blocked(m). For token ids: Mask.padding(ids, pad=0)",
        zh="mask 是布尔型，True 表示可见；实际为 {dtype} {shape}。若 1 为保留：Mask.from_keep(m)；"
        "若 1 为屏蔽：Mask.from_blocked(m)；若是词元 id：Mask.padding(ids, pad=0)",
    ),
    "mask-dtype-other": Message(
        en="a mask is boolean, True = visible; found {dtype} {shape}; "
        "converters: Mask.from_keep, Mask.from_blocked, Mask.from_additive",
        zh="mask 是布尔型，True 表示可见；实际为 {dtype} {shape}；"
        "可用的转换：Mask.from_keep、Mask.from_blocked、Mask.from_additive",
    ),
    "mask-not-array": Message(
        en="a mask is a Mask or a boolean array; found {found}; for the usual one write mask=Mask.causal()",
        zh="mask 应为 Mask 或布尔数组；实际为 {found}；常用的写法是 mask=Mask.causal()",
    ),
    "mask-combined": Message(
        en="a Mask can be combined by {sign} with a Mask or a boolean array; found {found}",
        zh="Mask 只能与 Mask 或布尔数组用 {sign} 组合；实际为 {found}",
    ),
    "mask-truth": Message(
        en="a Mask is neither true nor false: combine masks with & | ~, not with and, or, not",
        zh="Mask 没有真假之分：请用 & | ~ 组合，不要用 and、or、not",
    ),
    "mask-ambiguous": Message(
        en="a 3-D mask {found} beside heads (scores {scores}) may mean one per sample or one per head: "
        "write mask[:, None] for one per sample, mask[None] for one per head",
        zh="有头时，三维 mask {found}（得分 {scores}）可能表示每样本一个，也可能表示每头一个："
        "每样本一个请写 mask[:, None]，每头一个请写 mask[None]",
    ),
    "mask-shape": Message(
        en="mask {found} does not fit the scores {scores}: it must be (T, S) or have as many axes as the scores, "
        "each of size 1 or the same",
        zh="mask {found} 与得分 {scores} 不匹配：应为 (T, S)，或与得分同样多的轴，每轴大小为 1 或相同",
    ),
    "mask-samples": Message(
        en="Mask.{what} was given {found} samples, but the call has {wanted}; give one row per sample, or one for all",
        zh="Mask.{what} 给了 {found} 个样本，而这次调用有 {wanted} 个；请每个样本给一行，或所有样本共用一行",
    ),
    "mask-keys": Message(
        en="the mask's {what} {found} do not fit: the last axis must count the S={S} keys (T={T} queries)",
        zh="mask 的 {what} {found} 最后一轴与键数不符：键有 S={S} 个（查询 T={T} 个）",
    ),
    "mask-parts": Message(
        en="the parts of {name} have different numbers of samples: {found}",
        zh="{name} 各部分的样本数不一致：{found}",
    ),
    "segments-length": Message(
        en="the segments of the queries have {found} positions, but there are T={T} queries",
        zh="查询的分段有 {found} 个位置，但查询有 T={T} 个",
    ),
    "segments-too-many-queries": Message(
        en="T={T} queries are more than the S={S} keys the segments name; give Mask.segments(ids, queries=...)",
        zh="查询 T={T} 个，多于分段给出的 S={S} 个键；请给 Mask.segments(ids, queries=...)",
    ),
    "window-side": Message(
        en="Mask.window({side}=…) must be a whole number of at least 0, or None for no limit; found {value!r}",
        zh="Mask.window({side}=…) 必须是不小于 0 的整数，或用 None 表示不限；实际为 {value!r}",
    ),
    "pad-value": Message(
        en="Mask.padding(ids, pad=…) needs the id of the padding token, a whole number; found {value!r}",
        zh="Mask.padding(ids, pad=…) 需要填充词元的 id，即一个整数；实际为 {value!r}",
    ),
    "mask-too-few-axes": Message(
        en="{what} needs at least two axes (T, S); found {found}; for one value per key write mask[None, :]",
        zh="{what} 至少需要两个轴 (T, S)；实际为 {found}；若每个键一个值，请写 mask[None, :]",
    ),
    "prefix-negative": Message(
        en="Mask.prefix(n) needs n of at least 0; found {value}",
        zh="Mask.prefix(n) 的 n 不能小于 0；实际为 {value}",
    ),
    "mask-ids-dtype": Message(
        en="Mask.{what} needs whole numbers; found {dtype}",
        zh="Mask.{what} 需要整数；实际为 {dtype}",
    ),
    "mask-ids-shape": Message(
        en="{what} needs an array with at least one axis; found a single number",
        zh="{what} 需要至少一个轴的数组；实际只是一个数",
    ),
    "mask-not-zero-one": Message(
        en="Mask.{what} takes 0 and 1 only; found {value}; a mask of 0 and -inf goes to Mask.from_additive, "
        "scores to be added go in bias=",
        zh="Mask.{what} 只接受 0 和 1；发现了 {value}；由 0 与 -inf 组成的 mask 请用 Mask.from_additive，"
        "要加到得分上的数请用 bias=",
    ),
    "mask-one-row": Message(
        en="Mask.{what}(…, keys=True) takes (B, S) or (S,); found {found}",
        zh="Mask.{what}(…, keys=True) 只接受 (B, S) 或 (S,)；实际为 {found}",
    ),
    "from-blocked-3d": Message(
        en="nn.MultiheadAttention's 3-D attn_mask is (B·heads, T, S); found {found}; "
        "reshape it to (B, heads, T, S) first",
        zh="nn.MultiheadAttention 的三维 attn_mask 是 (B·头数, T, S)；实际为 {found}；请先 reshape 成 (B, 头数, T, S)",
    ),
    "from-additive-dtype": Message(
        en="Mask.from_additive takes a floating-point mask of 0 and -inf; found {dtype}; "
        "for 1 = keep use Mask.from_keep, for 1 = masked Mask.from_blocked",
        zh="Mask.from_additive 需要由 0 与 -inf 组成的浮点 mask；实际为 {dtype}；"
        "1 为保留请用 Mask.from_keep，1 为屏蔽请用 Mask.from_blocked",
    ),
    "from-additive-values": Message(
        en="Mask.from_additive takes 0, and -inf or the lowest {dtype} ({lowest:.4g}); found {value}; "
        "numbers in between are scores: pass them as bias=",
        zh="Mask.from_additive 只接受 0，以及 -inf 或 {dtype} 的最小值（{lowest:.4g}）；发现了 {value}；"
        "介于其间的是得分：请作为 bias= 传入",
    ),
    "backend-yes": Message(en="yes", zh="可以"),
    "backend-yes-but": Message(en="yes ({remark})", zh="可以（{remark}）"),
    "whole-matrix": Message(en="builds the whole T × S matrix", zh="会建立完整的 T × S 矩阵"),
    "whole-matrix-dropout": Message(
        en="with dropout PyTorch builds the whole T × S matrix",
        zh="有 dropout 时 PyTorch 会建立完整的 T × S 矩阵",
    ),
    "whole-matrix-bias": Message(
        en="for a bias that needs gradients PyTorch builds the whole T × S matrix",
        zh="bias 需要梯度时 PyTorch 会建立完整的 T × S 矩阵",
    ),
    "no-dropout": Message(en="no dropout here; {backend} can", zh="不支持 dropout；{backend} 可以"),
    "no-statistics": Message(
        en="the fused kernel gives no statistics; {backend} does", zh="融合内核不给出统计量；{backend} 可以"
    ),
    "no-softcap": Message(
        en="PyTorch's kernel has no softcap; {backend} has", zh="PyTorch 的内核没有 softcap；{backend} 有"
    ),
    "no-bias-gradient": Message(
        en="computes no gradient for the bias; {backend} does", zh="不计算 bias 的梯度；{backend} 可以"
    ),
    "no-differentiable-statistics": Message(
        en="computes no gradients through map, LSE or entropy, as differentiable=True requests; these do: {backends}",
        zh="不计算 differentiable=True 要求的 map、LSE、熵的梯度；可以的有：{backends}",
    ),
    "no-tracing": Message(
        en="its threads cannot be traced by torch.compile; {backend} can be",
        zh="其线程无法被 torch.compile 追踪；{backend} 可以",
    ),
    "triton-missing": Message(
        en="Triton is not installed: `pip install triton`", zh="未安装 Triton：`pip install triton`"
    ),
    "triton-device": Message(
        en="needs a CUDA device; the tensors are on {device}", zh="需要 CUDA 设备；张量在 {device} 上"
    ),
    "triton-old-gpu": Message(
        en="needs a GPU of compute capability {oldest} at least; this one has {found}; {backend} needs none",
        zh="需要计算能力至少为 {oldest} 的 GPU；这块是 {found}；{backend} 没有要求",
    ),
    "triton-tracing": Message(
        en="cannot be traced by torch.compile; {backend} can be", zh="无法被 torch.compile 追踪；{backend} 可以"
    ),
    "triton-dtype": Message(
        en="does not support {dtype}, only bfloat16, float16 and float32; {backend} does",
        zh="不支持 {dtype}，只支持 bfloat16、float16 和 float32；{backend} 可以",
    ),
    "triton-width": Message(
        en="the head width is {width}, and at most {most} is supported; {backend} has no limit",
        zh="头宽为 {width}，而最多支持 {most}；{backend} 没有上限",
    ),
    "triton-bias": Message(en="no bias here; {backend} can", zh="不支持 bias；{backend} 可以"),
    "triton-mask": Message(
        en="supports only bands, kept keys and segments, not this mask; {backend} supports all",
        zh="只支持带状、保留键和分段掩码，不支持这个掩码；{backend} 都支持",
    ),
    "triton-padding": Message(
        en="computes no gradients through statistics with both segments and padding; {backend} does",
        zh="既有分段又有填充时，不计算统计量的梯度；{backend} 可以",
    ),
    "triton-top": Message(
        en="top={top} keys are requested, and at most {most} are supported; {backend} has no limit",
        zh="请求了 top={top} 个权重最大的键，而最多支持 {most} 个；{backend} 没有上限",
    ),
}
