"""Error messages about model configurations, layers, inputs, and conversion from and to PyTorch modules."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- configuration ---
    "heads-swapped": Message(
        en="n_heads={n_heads} must divide d_model={d_model}; nearest widths are {below} and {above}, "
        "nearest numbers of heads {counts}; did you swap layers and heads?",
        zh="n_heads={n_heads} 必须整除 d_model={d_model}；最接近的宽度是 {below} 和 {above}，最接近的头数是 {counts}；"
        "是不是把层数和头数写反了？",
    ),
    "config-groups": Message(
        en="n_kv_heads={n_kv_heads} must divide n_heads={n_heads}, so that each serves the same number of query heads; "
        "possible: {counts}",
        zh="n_kv_heads={n_kv_heads} 必须整除 n_heads={n_heads}，使每个键值头对应相同数量的查询头；可选值：{counts}",
    ),
    "config-kind": Message(
        en="{name} must be {choices} (from regard.config); found {found}",
        zh="{name} 应为 {choices}（见 regard.config）；实际为 {found}",
    ),
    "config-positive": Message(
        en="{name} must be a number greater than 0; found {value!r}",
        zh="{name} 必须是大于 0 的数；实际为 {value!r}",
    ),
    "scaling-order": Message(
        en="slow={slow} must be less than fast={fast}: frequencies between the two are interpolated",
        zh="slow={slow} 必须小于 fast={fast}：介于两者之间的频率按插值处理",
    ),
    "config-unknown": Message(
        en="TransformerConfig has no field {asked!r}; the nearest is {nearest!r}",
        zh="TransformerConfig 没有字段 {asked!r}；最接近的是 {nearest!r}",
    ),
    "config-no-stack": Message(
        en="a Transformer needs layers: set n_encoder_layers, n_decoder_layers, or both",
        zh="Transformer 至少要有一层：请设置 n_encoder_layers 或 n_decoder_layers，或两者都设置",
    ),
    "config-learned-length": Message(
        en="Learned positions are a table of fixed length: set max_len, for example max_len=1024",
        zh="Learned 位置编码是一张定长的表：请设置 max_len，例如 max_len=1024",
    ),
    "config-vectors": Message(
        en="without a vocabulary (vocab_size=None) there is nothing to embed and no logits: leave embeddings at "
        "its default and set output=None",
        zh="没有词表（vocab_size=None）就没有嵌入和输出层：请让 embeddings 保持默认值，并设 output=None",
    ),
    "config-source-vocabulary": Message(
        en="source_vocab_size is for a model with encoder and decoder; this one has kind {kind!r}",
        zh="source_vocab_size 只用于同时有编码器和解码器的模型；这个模型的类型是 {kind!r}",
    ),
    # --- weights ---
    "weights-missing": Message(
        en="{count} weights of this model are missing: {names}; were they saved with the same config?",
        zh="这个模型缺少 {count} 个权重：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-unexpected": Message(
        en="{count} weights belong to no part of this model: {names}; were they saved with the same config?",
        zh="有 {count} 个权重不属于这个模型的任何部分：{names}；保存时用的是同一个 config 吗？",
    ),
    "weights-tables": Message(
        en="{names} hold different embeddings, and regard computes one table for both sides; use the transformers "
        "package",
        zh="{names} 里的嵌入表不同，而 regard 两侧只用一张表；请用 transformers 计算",
    ),
    "weights-shape": Message(
        en="{count} weights differ in shape from the config (found ≠ expected): {names}",
        zh="有 {count} 个权重的形状与 config 不符（实际 ≠ 预期）：{names}",
    ),
    "weights-dtype": Message(
        en="all weights must have one dtype, float16, float32 or float64; found {found}",
        zh="所有权重必须是同一种 dtype：float16、float32 或 float64；实际有 {found}",
    ),
    # --- inputs ---
    "ids-kind": Message(
        en="{what} must be whole numbers, the token ids of a tokenizer; found {found}",
        zh="{what} 必须是整数，即分词器给出的词元 id；实际为 {found}",
    ),
    "ids-axes": Message(
        en="{what} must have two axes, (samples, positions), and at least one position; found shape {found}; "
        "one text alone is ids[None]",
        zh="{what} 必须有两个轴（样本，位置），且至少有一个位置；实际形状为 {found}；只有一段文本时请写 ids[None]",
    ),
    "vectors-wanted": Message(
        en="this model has no vocabulary, so {what} must be vectors of floating-point numbers, "
        "(samples, positions, {D}); found shape {shape} and {found}",
        zh="这个模型没有词表，所以 {what} 必须是浮点数向量（样本，位置，{D}）；实际形状为 {shape}，类型是 {found}",
    ),
    "ids-out-of-range": Message(
        en="{what}{place} is {value}, but this vocabulary has the ids 0 to {last}: was another tokenizer used?",
        zh="{what}{place} 是 {value}，而这个词表的 id 范围是 0 到 {last}：是否使用了别的分词器？",
    ),
    "value-out-of-range": Message(
        en="{what}{place} is {value}; it must be from 0 to {last}: check how {what} is computed",
        zh="{what}{place} 是 {value}，超出范围 0 到 {last}；请检查 {what} 的计算方法",
    ),
    "mask-two-ways": Message(
        en="for {B} samples of {T} positions, a raw mask {found} could have one row per sample or one row per query: "
        "write Mask.from_keep(mask) for the first (True = not padding), Mask.of(mask) for the second",
        zh="有 {B} 个样本、{T} 个位置时，形状为 {found} 的数组掩码可能是每个样本一行，也可能是每个查询一行：前者请写 "
        "Mask.from_keep(mask)（True 表示不是填充），后者请写 Mask.of(mask)",
    ),
    "ids-too-long": Message(
        en="{what} needs {length} positions, but this model has max_len={max_len}; leave out {excess} tokens",
        zh="{what} 需要 {length} 个位置，但这个模型的 max_len={max_len}；请去掉 {excess} 个词元",
    ),
    "positions-of-ids": Message(
        en="positions must be whole numbers of at least 0, of shape ({T},) or ({B}, {T}) to match ids; "
        "found shape {shape} and {found}",
        zh="positions 必须是非负整数，形状为 ({T},) 或 ({B}, {T})，与 ids 一致；实际形状为 {shape}，类型是 {found}",
    ),
    "recurrent-attention": Message(
        en="attention={attention!r} needs an encoder: set n_encoder_layers, or attention to None",
        zh="attention={attention!r} 需要编码器：请设置 n_encoder_layers，或把 attention 设为 None",
    ),
    "recurrent-width": Message(
        en="d_state={d_state} must be even: each direction of the encoder has half of it",
        zh="d_state={d_state} 必须是偶数：编码器的两个方向各占一半",
    ),
    "recurrent-forget-bias": Message(
        en="forget_bias={value!r} must be a finite number and needs cell='lstm'; found cell={cell!r}. Set it to None "
        "for random biases",
        zh="forget_bias={value!r} 必须是有限的数，并且要求 cell='lstm'；实际为 cell={cell!r}。"
        "设为 None 则随机初始化偏置",
    ),
    "recurrent-padding": Message(
        en="a recurrent model reads padding as text: give texts of one length, or one text at a time",
        zh="循环网络会把填充当作文本读入：请传入等长的文本，或一次只传一段",
    ),
    "recurrent-crop": Message(
        en="crop({length}) after {found} ids: a recurrent state cannot drop a part of what it has read; "
        "call crop(0) and read the text again",
        zh="已读 {found} 个 id，无法 crop({length})：循环网络的状态不能去掉读过的一部分；请调用 crop(0) 并重新读入",
    ),
    "source-missing": Message(
        en="this model has an encoder and a decoder: pass source, the input of the encoder",
        zh="这个模型有编码器和解码器：请传入 source，即编码器的输入",
    ),
    "source-unneeded": Message(
        en="this model has kind {kind!r} and takes no source: leave out source and source_mask, and pass only ids",
        zh="这个模型的类型是 {kind!r}，不接受 source：请去掉 source 和 source_mask，只传入 ids",
    ),
    "batches-of-source": Message(
        en="{what} has {found} samples where {wanted} are expected: ids and source need the same number, at every step",
        zh="{what} 有 {found} 个样本，应为 {wanted} 个：ids 与 source 的样本数必须相同，且每一步保持不变",
    ),
    "segments-unneeded": Message(
        en="this model has no segments (n_segments=None): leave out segments",
        zh="这个模型没有句段嵌入（n_segments=None）：请去掉 segments",
    ),
    "segments-shape": Message(
        en="segments must be whole numbers, one for each of ids {wanted}; found shape {shape} and {found}",
        zh="segments 必须是整数，与 ids {wanted} 一一对应；实际形状为 {shape}，类型是 {found}",
    ),
    # --- decoding ---
    "decoding-encoder": Message(
        en="begin needs a decoder, which generates one token at a time; this model has only an encoder: "
        "call model(ids) instead",
        zh="begin 需要解码器，由它逐个生成词元；这个模型只有编码器：请直接调用 model(ids)",
    ),
    "decoding-vectors": Message(
        en="begin needs logits over a vocabulary; this model returns vectors (output=None): call model(ids) instead",
        zh="begin 需要词表上的 logits；这个模型输出的是向量（output=None）：请直接调用 model(ids)",
    ),
    "keep-shape": Message(
        en="keep must be booleans of shape {wanted}, like ids, False = padding; found shape {shape} and {found}",
        zh="keep 必须是布尔数组，形状与 ids 相同，即 {wanted}，False 表示填充；实际形状为 {shape}，类型是 {found}",
    ),
    "rows-out-of-range": Message(
        en="rows must be samples that are being decoded, at least one, from 0 to {last}; found {found}",
        zh="rows 必须是正在解码的样本，即 0 到 {last} 的整数，且至少一个；实际为 {found}",
    ),
    "crop-length": Message(
        en="length must be a whole number from 0 to {longest}, the columns read so far; found {value!r}",
        zh="length 必须是 0 到 {longest} 的整数（已读的列数）；实际为 {value!r}",
    ),
    "decoding-full": Message(
        en="{length} columns are more than the maximum of this decoding, {max_len}; read or generate fewer, or "
        "call begin with a larger max_len if the model allows it",
        zh="{length} 列超出了本次解码的上限 {max_len} 列；请减少读入或生成的词元，"
        "或在模型允许时用更大的 max_len 重新调用 begin",
    ),
    "decoding-training": Message(
        en="the model is in training mode, where dropout makes every result different; call model.eval() first",
        zh="模型处于训练模式，dropout 会让每次结果不同；请先调用 model.eval()",
    ),
    "static-without-length": Message(
        en="a static cache needs a length, and this model has no max_len; set max_len, for example max_len=1024",
        zh="静态缓存需要固定长度，而这个模型没有 max_len；请设置 max_len，例如 max_len=1024",
    ),
    "compile-growing": Message(
        en="compile=True needs a cache at a fixed address: add cache='static'",
        zh="compile=True 要求缓存的内存地址固定：请加上 cache='static'",
    ),
    "source-mask-keys": Message(
        en="begin() needs a source_mask that is the same for all queries, such as Mask.padding(source, pad=0); "
        "found {mask}",
        zh="begin() 的 source_mask 对所有查询必须相同，例如 Mask.padding(source, pad=0)；实际为 {mask}",
    ),
    "rows-too-early": Message(
        en="nothing has been read yet, so there are no samples to choose from; call step first",
        zh="还没有读入任何内容，没有可选的样本；请先调用 step",
    ),
    "keep-order": Message(
        en="padding (False in keep) is allowed only before a text, never after its first token; "
        "pad shorter texts on the left",
        zh="填充（keep 中的 False）只能在文本之前，不能在第一个词元之后；请在较短文本的左侧填充",
    ),
    "ids-tensor": Message(
        en="{what} must be a torch tensor; found {found}; use torch.tensor({what})",
        zh="{what} 必须是 torch 张量；实际为 {found}；请用 torch.tensor({what})",
    ),
    "memory-missing": Message(
        en="this Block attends to an encoder's output: pass it as memory, (samples, positions, width)",
        zh="这个 Block 需要编码器的输出：请用 memory 传入，形状为（样本，位置，宽度）",
    ),
    "memory-unneeded": Message(
        en="this Block has no cross-attention, so memory would not be used: leave it out, or build it with cross=True",
        zh="这个 Block 没有交叉注意力，memory 不会被使用：请去掉它，或用 cross=True 构建",
    ),
    "tied-twice": Message(
        en="tied=False and output= both define the output layer; pass only output=Output(tied=False, …)",
        zh="tied=False 与 output= 都定义了输出层；请只传入 output=Output(tied=False, …)",
    ),
    "ids-ragged": Message(
        en="{what} cannot be made into an array: its rows differ in length, or an element is not a number; "
        "pad shorter rows",
        zh="{what} 无法转换为数组：各行长度不同，或含有非数值元素；请把较短的行补齐",
    ),
    "vectors-shape": Message(
        en="vectors must have three axes (samples, positions, {D}); found {found}",
        zh="向量必须有三个轴（样本，位置，{D}）；实际形状为 {found}",
    ),
    "cache-dtype": Message(
        en="the cache has dtype {there} and the new input {found}; call begin again after changing dtype or autocast",
        zh="缓存的 dtype 是 {there}，新输入的是 {found}；改变 dtype 或 autocast 之后请重新调用 begin",
    ),
    "compile-recording": Message(
        en="a compiled step does not call Python, so attention cannot be recorded: leave out compile=True or attend=",
        zh="编译后的步骤不经过 Python，无法记录注意力：请去掉 compile=True，或去掉 attend=",
    ),
    "no-encoder": Message(
        en="this model has no encoder: call model(ids) instead",
        zh="这个模型没有编码器：请直接调用 model(ids)",
    ),
    "unknown-choice": Message(
        en="there is no {name}={value!r}; choose one of: {choices}",
        zh="没有 {name}={value!r} 这个选项；可选：{choices}",
    ),
    "width-wanted": Message(
        en="x needs a last axis of at least one number, its width: (…, D); found {found}",
        zh="x 的最后一个轴是宽度，至少要有一个数：(…, D)；实际为 {found}",
    ),
    "part-shape": Message(
        en="{name} must have shape {wanted} to match x {x}; found {found}; "
        "weights are used as x @ W (nn.Linear stores the transpose: pass weight.T)",
        zh="{name} 的形状应为 {wanted}，才能与 x {x} 匹配；实际为 {found}；"
        "权重按 x @ W 使用（nn.Linear 存的是转置：请传 weight.T）",
    ),
    "norm-shape": Message(
        en="{name} belongs to the last axis of x {x}, so its shape must be {wanted}; found {found}",
        zh="{name} 与 x {x} 的最后一个轴一一对应，形状应为 {wanted}；实际为 {found}",
    ),
    "norm-plus-one": Message(
        en="norm.plus_one is a setting of RMSNorm: it needs norm.kind='rms'; found {found!r}",
        zh="norm.plus_one 只用于 RMSNorm，需要 norm.kind='rms'；实际为 {found!r}",
    ),
    "eps-value": Message(
        en="eps must be a finite number of at least 0; found {value!r}; 1e-5 and 1e-6 are usual",
        zh="eps 必须是不小于 0 的有限数；实际为 {value!r}；常用 1e-5 或 1e-6",
    ),
    "base-value": Message(
        en="base must be a positive finite number; found {value!r}; the papers use 10000",
        zh="base 必须是有限的正数；实际为 {value!r}；论文用的是 10000",
    ),
    "table-axes": Message(
        en="{what} needs a table of two axes, {axes}; found {found}",
        zh="{what} 需要两个轴的表 {axes}；实际为 {found}",
    ),
    "positions-beyond-table": Message(
        en="{length} positions from {start} on were requested, but the table ends at max_len={max_len}: "
        "shorten the input, or use a table with max_len of at least {needed}",
        zh="要从位置 {start} 起取 {length} 个位置，但位置表只到 max_len={max_len}："
        "请缩短输入，或使用 max_len 不小于 {needed} 的位置表",
    ),
    "position-outside-table": Message(
        en="position {value} is outside the table, which has rows for positions from 0 up to, but not including, "
        "max_len={max_len}: shorten the input, or use a longer table",
        zh="位置 {value} 不在位置表内：表中只有从 0 到 max_len={max_len}（不含）的位置；请缩短输入，或使用更长的位置表",
    ),
    "places-dtype": Message(
        en="{name} must be whole numbers, each the position of a token; found {dtype}",
        zh="{name} 必须是整数，每个数是一个词元的位置；实际为 {dtype}",
    ),
    "places-shape": Message(
        en="query positions must be (T,) or (B, T) and key positions (S,) or (B, S), for the same samples; "
        "found queries {queries}, keys {keys}",
        zh="查询的位置应为 (T,) 或 (B, T)，键的位置应为 (S,) 或 (B, S)，样本数相同；查询实际为 {queries}，键是 {keys}",
    ),
    "positions-shape": Message(
        en="positions {found} do not fit x {x}: use ({T},), or the axes of x without the last one, "
        "ending in {T}, each other axis of size 1 or that of x; for one row per sample and several heads "
        "write positions[:, None]",
        zh="positions {found} 与 x {x} 不匹配：应为 ({T},)，或与 x 去掉最后一轴后的轴数相同，"
        "最后一轴为 {T}，其余各轴大小为 1 或与 x 相同；有多个头且每个样本一行时，请写 positions[:, None]",
    ),
    "positions-dtype": Message(
        en="positions must be whole numbers, or float32 or float64; found {dtype}; "
        "half precision cannot represent large positions exactly",
        zh="positions 必须是整数，或 float32、float64；实际为 {dtype}；半精度无法精确表示较大的位置",
    ),
    "rotary-axes": Message(
        en="rotary positions need at least two axes, (…, positions, width); found x {found}",
        zh="旋转位置编码至少需要两个轴（…，位置，宽度）；实际为 x {found}",
    ),
    "rotations-shape": Message(
        en="rotations {found} do not fit x {x}: compute them for d_head={E} and the {T} positions of x; "
        "for one row per sample and several heads compute them from positions[:, None]",
        zh="rotations {found} 与 x {x} 不匹配：请按 d_head={E}、与 x 相同的 {T} 个位置计算；"
        "有多个头且每个样本一行时，请用 positions[:, None] 计算",
    ),
    "yarn-base": Message(
        en="YarnScaling needs wavelengths that increase from pair to pair, so base must be larger than 1; "
        "found {value!r}; the papers use 10000",
        zh="YarnScaling 要求各对的波长逐对增大，所以 base 必须大于 1；实际为 {value!r}；论文用的是 10000",
    ),
    "rotary-fraction": Message(
        en="fraction of rotary positions must be greater than 0 and at most 1; found {value!r}",
        zh="旋转位置编码的 fraction 必须大于 0 且不超过 1；实际为 {value!r}",
    ),
    "rotary-factors": Message(
        en="scaling has {found} factors; a head whose first {E} numbers are rotated needs {wanted}, one for each pair",
        zh="scaling 有 {found} 个 factors；旋转一个头的前 {E} 个数需要 {wanted} 个，每对一个",
    ),
    "rotary-odd-share": Message(
        en="rotary positions rotate numbers in pairs, and fraction={fraction} of a head of width {E} is {found} "
        "numbers; it must be an even number, at least 2",
        zh="旋转位置编码把数两两成对地旋转；宽度为 {E} 的头，fraction={fraction} 对应 {found} 个数，"
        "必须是不小于 2 的偶数",
    ),
    "rotary-odd-width": Message(
        en="rotary positions rotate numbers in pairs, so the width of a head must be even; found {E}; "
        "nearest are {below} and {above}",
        zh="旋转位置编码把数两两成对地旋转，头的宽度必须是偶数；实际为 {E}；最接近的是 {below} 和 {above}",
    ),
    "buckets-odd": Message(
        en="with bidirectional=True half of the buckets are for keys after the query, so n_buckets must be "
        "even; found {n_buckets}; nearest are {below} and {above}",
        zh="bidirectional=True 时一半的桶留给查询之后的键，所以 n_buckets 必须是偶数；"
        "实际为 {n_buckets}；最接近的是 {below} 和 {above}",
    ),
    "buckets-distance": Message(
        en="max_distance={max_distance} must be larger than {exact}: each smaller distance has a bucket of its own",
        zh="max_distance={max_distance} 必须大于 {exact}：更小的距离各占一个桶",
    ),
    "interchange-class": Message(
        en="{call} takes {choices}, but no subclasses; found {found}",
        zh="{call} 只接受 {choices}，不接受其子类；实际为 {found}",
    ),
    "interchange-value": Message(
        en="{call} cannot convert a {module} with {name}={found}: the target supports only {wanted}; "
        "build the module with that value first",
        zh="{call} 无法转换 {name}={found} 的 {module}：目标模块只支持 {wanted}；请先按这个值构建模块",
    ),
    "interchange-several": Message(
        en="{call} cannot convert a {module} with several values of {name} ({found}): the target has one value for "
        "all parts; make them equal first",
        zh="{call} 无法转换这个 {module}，因为 {name} 有多个值（{found}）：目标模块各部分共用一个值；请先统一",
    ),
    "interchange-part": Message(
        en="{call} cannot convert a {module} whose {place} is a {found}: the target has no such part; "
        "build the module without it first",
        zh="{call} 无法转换这个 {module}，因为 {place} 是 {found}：目标模块没有这样的部分；请先构建一个不含它的模块",
    ),
    "interchange-shared": Message(
        en="{call} cannot convert a {module} in which {names} share one weight: the copies would no longer be shared; "
        "give each part its own weight first",
        zh="{call} 无法转换这个 {module}，因为 {names} 是同一个权重：复制后不再共享；请先让每处有各自的权重",
    ),
    "interchange-weights": Message(
        en="{call} cannot convert this {module}: {count} weights are missing, left over or of another shape in the "
        "target ({names}); all layers must have biases or none, and the same width",
        zh="{call} 无法转换这个 {module}：有 {count} 个权重在目标模块中缺失、多余或形状不同（{names}）；"
        "各层必须都有偏置或都没有偏置，宽度也必须相同",
    ),
}
