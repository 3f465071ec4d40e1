"""What is said when something cannot be done: what was asked, what was found, what to do."""

from regard.words import Words

WORDS: dict[str, Words] = {
    # --- shapes of q, k, v ---
    "axes-differ": Words(
        en="q, k and v need the same number of axes, at least two (…, positions, width); found q {q}, k {k}, v {v}",
        zh="q、k、v 的轴数要相同，且至少两个（…, 位置, 宽度）；现在 q {q}，k {k}，v {v}",
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
        "found q {q} and k {k}",
        zh="{H} 个查询头无法由 {G} 个键值头分担：{H} 必须是 {G} 的倍数；现在 q {q}，k {k}",
    ),
    "heads-do-not-divide": Words(
        en="{heads_name}={n_heads} must divide {width_name}={d_model}; nearest widths are {below} and {above}",
        zh="{heads_name}={n_heads} 必须整除 {width_name}={d_model}；最接近的宽度是 {below} 和 {above}",
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
        en="scale must be a finite number; found {value}; leave it out for 1/sqrt(width)",
        zh="scale 必须是有限的数；现在是 {value}；省略即为 1/sqrt(宽度)",
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
        "若 1 为遮住：Mask.from_blocked(m)；若是 token id：Mask.padding(ids, pad=0)",
    ),
    "mask-dtype-other": Words(
        en="a mask is boolean, True = may look; found {dtype} {shape}",
        zh="mask 是布尔型，True 表示可以看；现在是 {dtype} {shape}",
    ),
    "mask-not-array": Words(
        en="a mask is a Mask or a boolean array; found {found}",
        zh="mask 应为 Mask 或布尔数组；现在是 {found}",
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
        "each of size 1 or the same; for one value per key use mask[..., None, :]",
        zh="mask {found} 与分数 {scores} 不合：应为 (T, S)，或与分数同样多的轴，每轴大小为 1 或相同；"
        "若是每个键一个值，请用 mask[..., None, :]",
    ),
    "mask-samples": Words(
        en="the mask's {what} have {found} samples, but the call has {wanted}",
        zh="mask 的 {what} 有 {found} 个样本，而这次调用有 {wanted} 个",
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
    "from-additive-shape": Words(
        en="Mask.from_additive needs at least two axes (T, S); found {found}; for one value per key write mask[None, :]",
        zh="Mask.from_additive 至少需要两个轴 (T, S)；现在是 {found}；若每个键一个值，请写 mask[None, :]",
    ),
    "from-additive-values": Words(
        en="Mask.from_additive takes 0, and -inf or the lowest {dtype} ({lowest:.4g}); found {value}; "
        "numbers in between are scores: pass them as bias=",
        zh="Mask.from_additive 只接受 0，以及 -inf 或 {dtype} 的最小值（{lowest:.4g}）；发现了 {value}；"
        "介于其间的是分数：请作为 bias= 传入",
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
    "no-backend": Words(
        en="no backend can do this call: {reasons}",
        zh="没有后端能做这次调用：{reasons}",
    ),
    "weights-too-large": Words(
        en="the full weights need {need}, and {free} are free (B H T S = {shape}); "
        "ask for see=See(map=256) or a rectangle of weights instead",
        zh="完整的权重需要 {need}，而可用内存只有 {free}（B H T S = {shape}）；请改用 see=See(map=256)，或只要一块矩形",
    ),
    # --- records and traces ---
    "weights-not-kept": Words(
        en="record {name!r} ({T} × {S}) did not keep q and k, so exact weights cannot be computed; "
        "ask for them beforehand: see=See(qk=True)",
        zh="记录 {name!r}（{T} × {S}）没有保留 q 和 k，无法再算出精确权重；请事先要求保留：see=See(qk=True)",
    ),
    "rectangle-step": Words(
        en="a rectangle of weights is contiguous: slices without a step; found rows={rows}, cols={cols}",
        zh="权重的矩形必须连续：切片不能带步长；现在 rows={rows}，cols={cols}",
    ),
    "tokens-count": Words(
        en="{side} names {found} tokens, but there are {wanted} positions",
        zh="{side} 给了 {found} 个词元，但位置有 {wanted} 个",
    ),
    "tokens-samples": Words(
        en="{side} has tokens for {found} samples, but there are {B}",
        zh="{side} 给了 {found} 个样本的词元，但样本有 {B} 个",
    ),
    # --- packages ---
    "missing-package": Words(
        en="{what} needs {package}, which is not installed: pip install 'regard[{extra}]'",
        zh="{what} 需要 {package}，但尚未安装：pip install 'regard[{extra}]'",
    ),
}
