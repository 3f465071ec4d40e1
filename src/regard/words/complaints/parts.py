"""What is said about the parts of a Transformer: feed-forward, norms, positions."""

from regard.words import Words

WORDS: dict[str, Words] = {
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
    "position-outside-table": Words(
        en="position {value} is outside the table, which has rows for positions from 0 up to, but not including, "
        "max_len={max_len}: shorten the input, or use a longer table",
        zh="位置 {value} 不在位置表内：表中只有从 0 到 max_len={max_len}（不含）的位置；请缩短输入，或使用更长的位置表",
    ),
    "places-dtype": Words(
        en="{name} must be whole numbers, each the place of a token; found {dtype}",
        zh="{name} 必须是整数，每个数是一个词元的位置；现在是 {dtype}",
    ),
    "places-shape": Words(
        en="queries stand at places (T,) or (B, T) and keys at (S,) or (B, S), for the same samples; "
        "found queries {queries}, keys {keys}",
        zh="查询的位置应为 (T,) 或 (B, T)，键的位置应为 (S,) 或 (B, S)，样本数相同；现在查询是 {queries}，键是 {keys}",
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
        en="rotary positions need at least two axes, (…, positions, width); found x {found}",
        zh="旋转位置编码至少需要两个轴（…，位置，宽度）；现在 x {found}",
    ),
    "turns-shape": Words(
        en="turns {found} do not fit x {x}: make them for d_head={E} and as many positions as x has, {T}; "
        "for one row per sample beside heads make them from positions[:, None]",
        zh="turns {found} 与 x {x} 不匹配：请按 d_head={E}、与 x 相同的 {T} 个位置计算；"
        "有头而每个样本一行时，请用 positions[:, None] 计算",
    ),
    "yarn-base": Words(
        en="YarnScaling needs waves that grow longer from pair to pair, so base must be larger than 1; "
        "found {value!r}; the papers use 10000",
        zh="YarnScaling 要求各对的波长逐对增大，所以 base 必须大于 1；现在是 {value!r}；论文用的是 10000",
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
}
