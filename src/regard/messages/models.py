"""Error messages about model configurations, layers, inputs, and conversion from and to PyTorch modules."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- configuration ---
    "heads-swapped": Words(
        en="n_heads={n_heads} must divide d_model={d_model}; nearest widths are {below} and {above}, "
        "nearest numbers of heads {counts}; did you swap layers and heads?",
        zh="n_heads={n_heads} 必须整除 d_model={d_model}；最接近的宽度是 {below} 和 {above}，最接近的头数是 {counts}；"
        "是不是把层数和头数写反了？",
    ),
    "config-groups": Words(
        en="n_kv_heads={n_kv_heads} must divide n_heads={n_heads}, so that each serves equally many query heads; "
        "possible: {counts}",
        zh="n_kv_heads={n_kv_heads} 必须整除 n_heads={n_heads}，以便每个键值头对应同样多的查询头；可选值：{counts}",
    ),
    "config-kind": Words(
        en="{name} must be {choices} (from regard.config); found {found}",
        zh="{name} 应为 {choices}（见 regard.config）；现在是 {found}",
    ),
    "config-positive": Words(
        en="{name} must be a number greater than 0; found {value!r}",
        zh="{name} 必须是大于 0 的数；现在是 {value!r}",
    ),
    "scaling-order": Words(
        en="slow={slow} must be less than fast={fast}: waves between the two are mixed",
        zh="slow={slow} 必须小于 fast={fast}：介于两者之间的波会被混合",
    ),
    "config-unknown": Words(
        en="TransformerConfig has no field {asked!r}; the nearest is {nearest!r}",
        zh="TransformerConfig 没有 {asked!r} 这个字段；最接近的是 {nearest!r}",
    ),
    "config-no-stack": Words(
        en="a Transformer needs layers: give n_encoder_layers, n_decoder_layers, or both",
        zh="Transformer 至少要有一层：请给出 n_encoder_layers 或 n_decoder_layers，也可两者都给",
    ),
    "config-learned-length": Words(
        en="Learned positions are a table and need its length: give max_len, for example max_len=1024",
        zh="Learned 位置编码是一张表，必须知道表长：请给出 max_len，例如 max_len=1024",
    ),
    "config-vectors": Words(
        en="without a vocabulary (vocab_size=None) there is nothing to embed and nothing to score: leave embeddings "
        "as they are and give output=None",
        zh="没有词表（vocab_size=None）就没有嵌入，也没有要打分的词元：请让 embeddings 保持默认值，并设 output=None",
    ),
    "config-source-vocabulary": Words(
        en="source_vocab_size is for a model with encoder and decoder; this one has kind {kind!r}",
        zh="source_vocab_size 只用于同时有编码器和解码器的模型；这个模型的类型是 {kind!r}",
    ),
    # --- weights ---
    "weights-missing": Words(
        en="{count} weights of this model are missing: {names}; were they saved with the same config?",
        zh="这个模型缺少 {count} 个权重：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-unexpected": Words(
        en="{count} weights belong to no part of this model: {names}; were they saved with the same config?",
        zh="有 {count} 个权重不属于这个模型的任何部分：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-shape": Words(
        en="{count} weights have another shape than the config says (found ≠ wanted): {names}",
        zh="有 {count} 个权重的形状与 config 不符（实际 ≠ 应为）：{names}",
    ),
    "weights-dtype": Words(
        en="all weights must have one dtype, float16, float32 or float64; found {found}",
        zh="所有权重必须是同一种 dtype：float16、float32 或 float64；现在有 {found}",
    ),
    # --- what is put in ---
    "ids-kind": Words(
        en="{what} must be whole numbers, places in the vocabulary, as a tokenizer gives them; found {found}",
        zh="{what} 必须是整数，即分词器给出的词表编号；现在是 {found}",
    ),
    "ids-axes": Words(
        en="{what} must have two axes, (samples, positions), and at least one position; found shape {found}; "
        "one text alone is ids[None]",
        zh="{what} 必须有两个轴（样本，位置），且至少有一个位置；现在的形状是 {found}；只有一段文本时请写 ids[None]",
    ),
    "vectors-wanted": Words(
        en="this model has no vocabulary, so {what} must be vectors of floating-point numbers, "
        "(samples, positions, {D}); found shape {shape} and {found}",
        zh="这个模型没有词表，所以 {what} 必须是浮点数向量（样本，位置，{D}）；现在的形状是 {shape}，类型是 {found}",
    ),
    "ids-out-of-range": Words(
        en="{what}{place} is {value}, and this vocabulary has the ids 0 to {last}: was the text made with another "
        "tokenizer?",
        zh="{what}{place} 是 {value}，而这个词表的编号是 0 到 {last}：文本是不是用别的分词器处理的？",
    ),
    "value-out-of-range": Words(
        en="{what}{place} is {value}; it must be from 0 to {last}: check how {what} was made",
        zh="{what}{place} 是 {value}，超出范围 0 到 {last}；请检查 {what} 是怎样得到的",
    ),
    "mask-two-ways": Words(
        en="a raw mask {found} beside {B} samples of {T} positions could have a row per sample or a row per query: "
        "write Mask.from_keep(mask) for the first (True = no padding), Mask.of(mask) for the second",
        zh="有 {B} 个样本、{T} 个位置时，形状为 {found} 的数组掩码可能是每个样本一行，也可能是每个查询一行：前者请写 "
        "Mask.from_keep(mask)（True 表示不是填充），后者请写 Mask.of(mask)",
    ),
    "ids-too-long": Words(
        en="{what} would reach {length} positions, but this model has max_len={max_len}; leave out {excess} tokens",
        zh="{what} 会用到 {length} 个位置，但这个模型 max_len={max_len}；请去掉 {excess} 个词元",
    ),
    "positions-of-ids": Words(
        en="positions must be whole numbers from 0 on, ({T},) or ({B}, {T}) to go with ids; "
        "found shape {shape} and {found}",
        zh="positions 必须是从 0 起的整数，形状为 ({T},) 或 ({B}, {T})，与 ids 相配；"
        "现在的形状是 {shape}，类型是 {found}",
    ),
    "source-missing": Words(
        en="this model has an encoder and a decoder: give source, the text that the encoder reads",
        zh="这个模型有编码器和解码器：请给出 source，即编码器要读的文本",
    ),
    "source-unneeded": Words(
        en="this model has kind {kind!r} and reads no source: leave source and source_mask out, and give ids alone",
        zh="这个模型的类型是 {kind!r}，不读 source：请去掉 source 和 source_mask，只给 ids",
    ),
    "batches-of-source": Words(
        en="{what} has {found} samples where {wanted} are expected: ids and source need equally many, at every step",
        zh="{what} 有 {found} 个样本，应为 {wanted} 个：ids 与 source 的样本数必须相同，且每一步保持不变",
    ),
    "segments-unneeded": Words(
        en="this model tells no segments apart (n_segments=None): leave segments out",
        zh="这个模型不区分句段（n_segments=None）：请去掉 segments",
    ),
    "segments-shape": Words(
        en="segments must be whole numbers, one for each of ids {wanted}; found shape {shape} and {found}",
        zh="segments 必须是整数，与 ids {wanted} 一一对应；现在的形状是 {shape}，类型是 {found}",
    ),
    # --- decoding ---
    "decoding-encoder": Words(
        en="begin needs a decoder, which writes one token after another; this model has an encoder only: "
        "call model(ids) instead",
        zh="begin 需要解码器，由它逐个写出词元；这个模型只有编码器：请直接调用 model(ids)",
    ),
    "decoding-vectors": Words(
        en="begin needs a vocabulary to choose tokens from; this model gives vectors (output=None): "
        "call model(ids) instead",
        zh="begin 需要词表来选词元；这个模型给出的是向量（output=None）：请直接调用 model(ids)",
    ),
    "keep-shape": Words(
        en="keep must be booleans {wanted} like ids, False = padding; found shape {shape} and {found}",
        zh="keep 必须是布尔数组，形状与 ids 相同，即 {wanted}，False 表示填充；现在的形状是 {shape}，类型是 {found}",
    ),
    "rows-out-of-range": Words(
        en="rows must be samples that are being decoded, at least one, from 0 to {last}; found {found}",
        zh="rows 必须是正在解码的样本，即 0 到 {last} 的整数，且至少一个；现在是 {found}",
    ),
    "crop-length": Words(
        en="length must be a whole number from 0 to {longest}, the columns read so far; found {value!r}",
        zh="length 必须是 0 到 {longest} 的整数（已读的列数）；现在是 {value!r}",
    ),
    "decoding-full": Words(
        en="{length} columns are more than the {max_len} that this decoding has room for; read or write less, or begin "
        "with a larger max_len where the model allows it",
        zh="{length} 列超出了本次解码能容纳的 {max_len} 列；请少读或少写一些，"
        "或在模型允许时用更大的 max_len 重新 begin",
    ),
    "decoding-training": Words(
        en="the model is in training mode, where dropout makes every run differ; call model.eval() first",
        zh="模型处于训练模式，dropout 会让每次结果不同；请先调用 model.eval()",
    ),
    "static-without-length": Words(
        en="a static cache needs to know its length and this model sets none; give max_len, for example max_len=1024",
        zh="静态缓存必须事先知道长度，而这个模型没有规定；请给出 max_len，例如 max_len=1024",
    ),
    "compile-growing": Words(
        en="compile=True needs memory that does not move: add cache='static'",
        zh="compile=True 要求缓存的内存位置固定不变：请加上 cache='static'",
    ),
    "source-mask-keys": Words(
        en="begin() needs a source_mask about keys alone, such as Mask.padding(source, pad=0); found {mask}",
        zh="begin() 的 source_mask 只能指明哪些源词元可看（对所有查询都一样），"
        "例如 Mask.padding(source, pad=0)；现在是 {mask}",
    ),
    "rows-too-early": Words(
        en="nothing has been read yet, so there are no samples to choose from; call step first",
        zh="还没有读入任何内容，没有可选的样本；请先调用 step",
    ),
    "keep-order": Words(
        en="padding (False in keep) may only stand before a text, never after its first token; "
        "fill shorter texts up on their left",
        zh="填充（keep 中的 False）只能放在文本之前，不能出现在它的第一个词元之后；请在较短文本的左侧填充",
    ),
    "ids-tensor": Words(
        en="{what} must be a torch tensor; found {found}; use torch.tensor({what})",
        zh="{what} 必须是 torch 张量；现在是 {found}；请用 torch.tensor({what})",
    ),
    "memory-missing": Words(
        en="this Block looks at an encoder's output: give it as memory, (samples, positions, width)",
        zh="这个 Block 要看编码器的输出：请用 memory 给出，形状为（样本，位置，宽度）",
    ),
    "memory-unneeded": Words(
        en="this Block has no cross-attention, so nothing would look at memory: leave it out, "
        "or build it with cross=True",
        zh="这个 Block 没有交叉注意力，memory 不会被看到：请去掉它，或用 cross=True 构建",
    ),
    "tied-twice": Words(
        en="tied=False and output= both say what the output layer is; give output=Output(tied=False, …) alone",
        zh="tied=False 与 output= 都在规定输出层；请只给 output=Output(tied=False, …)",
    ),
    "ids-ragged": Words(
        en="{what} cannot be made into an array: its rows differ in length, or it holds something that is no number; "
        "fill shorter rows up",
        zh="{what} 无法变成数组：各行长度不同，或含有不是数字的内容；请把较短的行补齐",
    ),
    "vectors-shape": Words(
        en="vectors must have three axes (samples, positions, {D}); found {found}",
        zh="向量必须有三个轴（样本，位置，{D}）；现在的形状是 {found}",
    ),
    "cache-dtype": Words(
        en="the cache holds {there} and what is read now is {found}; begin anew after changing dtype or autocast",
        zh="缓存里是 {there}，现在读入的是 {found}；改变 dtype 或 autocast 之后请重新 begin",
    ),
    "compile-looking": Words(
        en="a compiled step runs without Python, so nobody could look: leave compile=True or attend= out",
        zh="编译后的步骤不再经过 Python，没有人能观察：请去掉 compile=True，或去掉 attend=",
    ),
    "no-encoder": Words(
        en="this model has no encoder: call model(ids) instead",
        zh="这个模型没有编码器：请直接调用 model(ids)",
    ),
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
    "interchange-class": Words(
        en="{call} takes {choices}, and none of their subclasses; found {found}",
        zh="{call} 只接受 {choices}，不接受其子类；现在是 {found}",
    ),
    "interchange-value": Words(
        en="{call} cannot carry over a {module} with {name}={found}: the other side has only {wanted}; "
        "build it with that first",
        zh="{call} 无法转换 {name}={found} 的 {module}：对方只支持 {wanted}；请先按这个值构建模块",
    ),
    "interchange-several": Words(
        en="{call} cannot carry over a {module} with several values of {name} ({found}): the other side has one for "
        "all parts; make them alike first",
        zh="{call} 无法转换这个 {module}，因为 {name} 有多个值（{found}）：对方所有部分共用一个值；请先把它们统一",
    ),
    "interchange-part": Words(
        en="{call} cannot carry over a {module} whose {place} is a {found}: the other side has no such part; "
        "build it without that first",
        zh="{call} 无法转换这个 {module}，因为 {place} 是 {found}：对方没有这样的部分；请先构建一个不含它的模块",
    ),
    "interchange-shared": Words(
        en="{call} cannot carry over a {module} in which {names} are one weight: copies of it would go separate ways; "
        "give each its own first",
        zh="{call} 无法转换这个 {module}，因为 {names} 是同一个权重：复制后它们会各自变化；请先让每处有自己的权重",
    ),
    "interchange-weights": Words(
        en="{call} cannot carry over this {module}: {count} weights are missing, left over or of another shape on the "
        "other side ({names}); biases must be everywhere or nowhere, and all layers equally wide",
        zh="{call} 无法转换这个 {module}：有 {count} 个权重在对方缺失、多余或形状不同（{names}）；"
        "偏置要么处处都有，要么处处没有，各层宽度也必须相同",
    ),
}
