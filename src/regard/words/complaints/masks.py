"""What is said about masks."""

from regard.words import Words

WORDS: dict[str, Words] = {
    "mask-dtype-float": Words(
        en="a mask is boolean, True = may look; found {dtype} {shape}. If 0 means look and -inf hide: "
        "Mask.from_additive(m). If 1 means keep: Mask.from_keep(m). Scores to be added go in bias=",
        zh="mask 是布尔型，True 表示可以看；现在是 {dtype} {shape}。若 0 为可看、-inf 为遮住：Mask.from_additive(m)；"
        "若 1 为保留：Mask.from_keep(m)；要加到得分上的数请用 bias=",
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
        zh="有头时，三维 mask {found}（得分 {scores}）可能表示每样本一个，也可能表示每头一个："
        "每样本一个请写 mask[:, None]，每头一个请写 mask[None]",
    ),
    "mask-shape": Words(
        en="mask {found} does not fit the scores {scores}: it must be (T, S) or have as many axes as the scores, "
        "each of size 1 or the same",
        zh="mask {found} 与得分 {scores} 不匹配：应为 (T, S)，或与得分同样多的轴，每轴大小为 1 或相同",
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
        "要加到得分上的数请用 bias=",
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
        "介于其间的是得分：请作为 bias= 传入",
    ),
}
