"""Messages of `watch`, `edit` and `effect`."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- what to watch ---
    "watch-model": Words(
        en="watch needs a PyTorch model, a torch.nn.Module; found {found}",
        zh="watch 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}",
    ),
    "watch-inner": Words(
        en="watch needs a PyTorch model, a torch.nn.Module; found {found}: give it the `.model` of that",
        zh="watch 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}：请把它的 `.model` 交给 watch",
    ),
    "watch-meta": Words(
        en="{name} is on the meta device, where there are shapes but no numbers to look at; load the weights first, "
        'for example with model.to_empty(device="cpu") and load_state_dict',
        zh="{name} 在 meta 设备上，只有形状、没有可看的数值；请先加载权重，"
        '例如 model.to_empty(device="cpu") 再 load_state_dict',
    ),
    "watch-see": Words(
        en="see must be a See, such as See(map=64, entropy=True); found {found}",
        zh="see 应为 See，例如 See(map=64, entropy=True)；现在是 {found}",
    ),
    "watch-differentiable": Words(
        en="a model is watched from below autograd, so what is seen carries no gradients; leave out "
        "See(differentiable=True), or let the model call regard.attend with it",
        zh="观察模型的位置在 autograd 之下，看到的内容没有梯度；请去掉 See(differentiable=True)，"
        "或在模型里用它调用 regard.attend",
    ),
    "watch-layers": Words(
        en='layers must be names of modules, such as ["h.0.attn", "h.1.*"], or numbers of layers; found {found}',
        zh='layers 应为模块名（例如 ["h.0.attn", "h.1.*"]）或层号；现在是 {found}',
    ),
    "watch-layer-unknown": Words(
        en="no module of this model is called {asked!r}, and no name ends so; did you mean {nearest!r}?",
        zh="该模型没有名为 {asked!r} 的模块，也没有以此结尾的名字；是否想写 {nearest!r}？",
    ),
    "watch-layer-unlike": Words(
        en="no module of this model is called {asked!r}, no name ends so, and none is like it; watch one call of the "
        "model without naming layers: trace.names has the names",
        zh="该模型没有名为 {asked!r} 的模块，没有以此结尾的名字，也没有相近的名字；请先不指定层，watch 一次模型的调用："
        "名字都在 trace.names 里",
    ),
    "watch-layer-number": Words(
        en="there is no layer {asked}; the layers of this model are numbered {first} to {last}, or from -1 back, and "
        "what is inside of them is chosen by name",
        zh="没有第 {asked} 层；该模型的层号是 {first} 到 {last}（也可从 -1 倒数），层里面的模块请按名字选",
    ),
    "watch-layers-unnumbered": Words(
        en="there is no layer {asked}: this model has no numbered layers; choose by name",
        zh="没有第 {asked} 层：该模型的层没有编号；请按名字选",
    ),
    "watch-closed": Words(
        en="a watch is opened by `with`, which gives its Trace; write: with regard.watch(model) as trace: model(ids)",
        zh="watch 要用 `with` 打开，这样才得到 Trace；请写成：with regard.watch(model) as trace: model(ids)",
    ),
    "watch-again": Words(
        en="a watch is opened once; call regard.watch again for another Trace",
        zh="每个 watch 只能打开一次；要另一个 Trace，请再调用一次 regard.watch",
    ),
    "watch-values": Words(
        en="the values of {names} were not to be seen, and their lengths are None; call model.eval() where weights go "
        "through dropout, and leave out torch.no_grad() where nn.TransformerEncoderLayer does everything in one step",
        zh="看不到 {names} 的值，长度为 None；权重经过 dropout 的，请先调用 model.eval()；"
        "nn.TransformerEncoderLayer 一步算完的，请不要用 torch.no_grad()",
    ),
    # --- tokens ---
    "watch-tokenizer": Words(
        en="tokenizer must be Hugging Face's, regard's, or a function from a list of ids to a list of strings; "
        "found {found}",
        zh="tokenizer 应为 Hugging Face 或 regard 的分词器，或把编号列表变成字符串列表的函数；现在是 {found}",
    ),
    "watch-tokens": Words(
        en="the tokenizer made {found} of {wanted} ids; it must give one string for each",
        zh="分词器把 {wanted} 个编号变成了 {found}；应当每个编号给出一个字符串",
    ),
    "watch-tables": Words(
        en="ids of several embedding tables fitted the same attention, and none of them are what the model was called "
        "with, so tokens may be labelled by the wrong ones; give the model get_input_embeddings(), which returns the "
        "table of its tokens",
        zh="有几个嵌入表查的编号大小都合适，又都不是调用模型时给的输入，词元的文字可能取错了；"
        "请给模型加上 get_input_embeddings()，返回词元的嵌入表",
    ),
    "watch-no-words": Words(
        en="the tokenizer failed while the model ran, so that tokens have no words here: {reason}; give watch one that "
        "knows every id",
        zh="模型运行时分词器出了错，所以这里的词元没有文字：{reason}；请给 watch 一个认识所有编号的分词器",
    ),
    # --- what fits ---
    "watch-budget": Words(
        en='budget must be a number of bytes, or a text such as "2 GB"; found {value!r}',
        zh='budget 应为字节数，或 "2 GB" 这样的文字；现在是 {value!r}',
    ),
    "watch-budget-small": Words(
        en="a budget of {budget} is too small for {name}: without any map it takes about {need}; "
        'give more, such as budget="1 GB", or watch fewer layers',
        zh="{budget} 的预算对 {name} 来说太小：即使不要图（map）也需要约 {need}；"
        '请加大预算，例如 budget="1 GB"，或少看几层',
    ),
    "watch-left-out": Words(
        en="a budget of {budget} did not hold everything: {parts}; all of it takes {need}",
        zh="{budget} 的预算放不下全部内容：{parts}；全部需要 {need}",
    ),
    "watch-left-out-qk": Words(
        en="records without q and k, so that weights() has nothing to compute from: {count}",
        zh="{count} 条记录没有保留 q 和 k，weights() 无从计算",
    ),
    "watch-left-out-map": Words(
        en="maps coarser than {asked} bins: {count}, down to {bins}",
        zh="{count} 张图比 {asked} 格更粗，最少 {bins} 格",
    ),
    "watch-left-out-no-map": Words(en="records without a map: {count}", zh="{count} 条记录没有图"),
    "watch-left-out-top": Words(
        en="records without strongest keys: {count}",
        zh="{count} 条记录没有最强的键",
    ),
    "watch-and": Words(en=", ", zh="，"),
    # --- Hugging Face's door ---
    "door-unsupported": Words(
        en='attn_implementation="{name}" computes what "sdpa" does, which has no {what}; {module} needs it: '
        'choose "eager" and use regard.watch, which sees that too',
        zh='attn_implementation="{name}" 与 "sdpa" 算法相同，没有 {what}，而 {module} 需要它：'
        '请选 "eager" 并使用 regard.watch，它同样看得到',
    ),
    # --- compiled models ---
    "watch-order": Words(
        en="in compiled code modules are named by their order, and {calls} attentions do not fit {count} modules: "
        "names may be wrong; run the model uncompiled to be sure of them",
        zh="编译后的代码里，模块按顺序命名，而 {calls} 次注意力与 {count} 个模块对不上：名字可能有误；"
        "想要确切的名字，请运行未编译的模型",
    ),
    # --- layouts ---
    "watch-layout": Words(
        en="{name} lays its weights out in its own way ({shape} with {H} heads), so heads, samples and queries cannot "
        "be told apart and may be mixed up in its record; lay them out as B H T S",
        zh="{name} 用自己的方式排列权重（形状 {shape}，{H} 个头），无法分清头、样本与查询，记录里可能弄混；"
        "请按 B H T S 排列",
    ),
    # --- nothing seen ---
    "watch-lost": Words(
        en="{names} made a softmax that may be attention, and what became of it was not understood, so that it is not "
        "recorded; multiply all of it with the values (weights @ v), or use F.scaled_dot_product_attention",
        zh="{names} 算出的 softmax 可能是注意力，但没能看懂它之后的去向，所以没有记录；"
        "请把它整个与值相乘（weights @ v），或改用 F.scaled_dot_product_attention",
    ),
    "watch-refused": Words(
        en="{names}: {reason}; there is no matrix of weights of queries by keys, and nothing is recorded",
        zh="{names}：{reason}；没有查询 × 键的权重矩阵，因此没有记录",
    ),
    "watch-refused-landmarks": Words(
        en="attention is approximated through landmarks",
        zh="注意力借助地标点（landmark）近似计算",
    ),
    "watch-refused-hashed": Words(
        en="queries and keys are grouped by hashes",
        zh="查询和键按哈希值分组",
    ),
    "watch-refused-chunks": Words(
        en="queries and keys are cut into chunks, which are not put together here",
        zh="查询和键被切成小块，这里不作拼合",
    ),
    "watch-refused-resolutions": Words(
        en="attention is approximated at several resolutions",
        zh="注意力以多种分辨率近似计算",
    ),
    "watch-refused-sampled": Words(
        en="only some queries are computed, and the others take the mean of the values",
        zh="只计算部分查询，其余查询取值的平均",
    ),
    "watch-refused-correlation": Words(
        en="values are shifted by autocorrelation, not weighed by keys",
        zh="值按自相关平移，而不是按键加权",
    ),
    "watch-refused-pieces": Words(
        en="its sparse attention could not be put together from its pieces, or the whole is too large for the memory "
        "that is free",
        zh="无法把稀疏注意力的各部分拼成完整的矩阵，或完整矩阵超出可用内存",
    ),
    "watch-row-sums": Words(
        en="rows of the weights of {names} do not sum to 1, and what was done to them does not tell why: they may be "
        "parts of larger rows; compare with what the model computes before relying on them",
        zh="{names} 的权重有些行之和不为 1，从其计算过程看不出原因：它们可能只是更大的行的一部分；"
        "使用前请与模型实际的计算核对",
    ),
    "watch-across": Words(
        en="the softmax of {names} is not over the keys that its product with the values sums over, but over another "
        "axis (queries, heads): its rows do not sum to 1, and it is not recorded as attention; write softmax over the "
        "axis of the keys",
        zh="{names} 的 softmax 不是对与值相乘时求和的键做的，而是对另一个维度（查询、头）做的：各行之和不为 1，"
        "没有当作注意力记录；请对键所在的维度做 softmax",
    ),
    "watch-unseen": Words(
        en="the attention of {names} could not be observed and is not recorded; the model ran as it does unwatched: "
        "{reason}",
        zh="{names} 的注意力无法观察，没有记录；模型照常运行：{reason}",
    ),
    "watch-unseen-meta": Words(
        en="its tensors are on the meta device and hold no numbers",
        zh="张量在 meta 设备上，没有数值",
    ),
    "watch-unseen-type": Words(
        en="its tensors are of a type that computes in its own way ({found})",
        zh="张量的类型（{found}）有自己的计算方式",
    ),
    "watch-saw-nothing": Words(
        en="nothing was seen: no attention of this model was computed inside the block by this thread. A model that "
        "runs in another thread must be watched there; one that runs elsewhere (an inner copy, a CUDA graph) must be "
        "watched as it is called. Of compiled code only scaled_dot_product_attention is seen: run flex_attention, and "
        "attention written by hand, uncompiled, or choose SDPA. A model without softmax attention (a state space "
        "model such as Mamba, RWKV, FNet, a convolution, linear attention) has no weights to record",
        zh="什么也没看到：这段代码里，本线程没有算过该模型的注意力。模型若在别的线程中运行，请在那个线程里 watch；"
        "若实际运行的是另一份（内部副本、CUDA 图），请 watch 真正被调用的那个。编译后的代码里只看得到 "
        "scaled_dot_product_attention：flex_attention 和手写的注意力请不要编译，或改用 SDPA。没有 softmax 注意力的模型"
        "（Mamba 等状态空间模型、RWKV、FNet、卷积、线性注意力）没有权重可以记录",
    ),
    "watch-saw-others": Words(
        en="nothing was seen of this model, though attention was computed {count} times by something else; "
        "watch the model that is called",
        zh="没有看到该模型的注意力，但别处算了 {count} 次；请 watch 真正被调用的模型",
    ),
    "watch-saw-other-layers": Words(
        en="none of the layers asked for computed attention; these did: {names}",
        zh="所要的层都没有算注意力；算过的有：{names}",
    ),
    # --- what is asked for ---
    "edit-model": Words(
        en="edit needs a PyTorch model, a torch.nn.Module; found {found}",
        zh="edit 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}",
    ),
    "edit-mapping": Words(
        en='{how} goes by the names of a Trace or the numbers of layers, such as {how}={{"h.5.attn": {example}}} or '
        "{how}={{5: {example}}}; found {found}",
        zh='{how} 要按 Trace 中的名字或层号给出，例如 {how}={{"h.5.attn": {example}}} 或 {how}={{5: {example}}}；'
        "现在是 {found}",
    ),
    "edit-keyword": Words(
        en="{function} has no argument {asked!r}; it takes {known}",
        zh="{function} 没有参数 {asked!r}；可用的参数有：{known}",
    ),
    "edit-layer-several": Words(
        en="layer {asked} has more than one attention: {names}; write the name of the one that you mean",
        zh="第 {asked} 层有不止一处注意力：{names}；请写出所指那一处的名字",
    ),
    "edit-number": Words(
        en="after # stands the number of one call, such as 'h.5.attn#1'; found {asked!r}",
        zh="# 后面应是某一次调用的序号，例如 'h.5.attn#1'；现在是 {asked!r}",
    ),
    "edit-name-ambiguous": Words(
        en="{asked!r} is the end of {count} names, the first of them {first!r}; write more of the one that you mean, "
        "or {pattern!r} for all of them",
        zh="{asked!r} 是 {count} 个名字的结尾，第一个是 {first!r}；请写得更完整，若要全部请写 {pattern!r}",
    ),
    "edit-heads": Words(
        en="{asked!r}: heads are whole numbers from 0, such as [3] or [0, 3]; found {found!r}",
        zh="{asked!r}：头用从 0 起的整数表示，例如 [3] 或 [0, 3]；现在是 {found!r}",
    ),
    "edit-edges": Words(
        en="{asked!r}: what is cut is a list of (query, key) for all heads or (head, query, key) for one, "
        "or a Mask of who may still look where; found {found!r}",
        zh="{asked!r}：要剪的边应为 (query, key)（所有头）或 (head, query, key)（一个头）的列表，"
        "或者用 Mask 说明还能看哪里；现在是 {found!r}",
    ),
    # --- what is met ---
    "edit-head-range": Words(
        en="{asked!r} has {H} heads, from 0 to {last}; head {head} was asked for",
        zh="{asked!r} 有 {H} 个头，编号 0 到 {last}；要求的是头 {head}",
    ),
    "edit-edge-missed": Words(
        en="edge {edge} of {asked!r} was never there to be cut: it had at most {T} queries and {S} keys, "
        "counted from 0",
        zh="{asked!r} 的边 {edge} 从未出现，无从剪起：最多只有 {T} 个查询、{S} 个键（从 0 数起）",
    ),
    "edit-freeze-shape": Words(
        en="{asked!r} computes weights of B H T S = {wanted}, and the pattern to freeze has {found}; where one call "
        "of several is meant, write its number, such as {call!r}",
        zh="{asked!r} 算出的权重形状为 B H T S = {wanted}，而要冻结的模式是 {found}；"
        "若只指其中一次调用，请写上序号，例如 {call!r}",
    ),
    "edit-layout": Words(
        en="{asked!r} lays its weights out in its own way ({shape} with {H} heads), so heads and edges cannot be told "
        "apart; only B H T S can be edited",
        zh="{asked!r} 用自己的方式排列权重（形状 {shape}，{H} 个头），无法分清头与边；只能编辑 B H T S",
    ),
    "edit-axis": Words(
        en="{asked!r} takes its softmax of {shape} along axis {dim}; only weights whose keys are the last axis "
        "can be edited",
        zh="{asked!r} 对形状 {shape} 沿第 {dim} 轴做 softmax；只能编辑键在最后一轴的权重",
    ),
    "edit-positions": Words(
        en="{asked!r} looks at a cache of {S} keys with empty room behind its {T} queries, so positions cannot be "
        "told; use a cache that grows, or none (use_cache=False)",
        zh="{asked!r} 的 {T} 个查询面对 {S} 个键的缓存，其后还有空位，无法判断位置；"
        "请改用会增长的缓存，或不用缓存（use_cache=False）",
    ),
    "edit-too-large": Words(
        en="to cut edges of {asked!r} takes a mask of {T} × {S}, {need}, and {free} are free; shorten the text",
        zh="给 {asked!r} 剪边需要 {T} × {S} 的掩码（{need}），现有空闲 {free}；请缩短文本",
    ),
    "edit-call-again": Words(
        en="{asked!r} means one call, but checkpointed activations are computed again here and nobody can tell which "
        "call that repeats; leave the number out, or switch checkpointing off",
        zh="{asked!r} 指某一次调用，但激活检查点正在重新计算，无法判断重复的是哪一次；请去掉序号，或关闭检查点",
    ),
    "edit-gate": Words(
        en="the edit of {asked!r} fell on {call!r}, a softmax of shape {shape} that is no attention, for no values are "
        "weighed with it: a gate, perhaps. The outputs are not what you asked for; name the calls that are "
        "attention: {meant}",
        zh="对 {asked!r} 的编辑落到了 {call!r} 上：这个 softmax（形状 {shape}）不是注意力，没有用来给值加权，"
        "可能是门控。模型的输出因此不是所要的结果；请写明是注意力的调用：{meant}",
    ),
    # --- what was not met ---
    "edit-nothing-seen": Words(
        en="{asked!r} was not edited: this thread computed no attention of this model inside the block that can be. "
        "Run the model inside the block, in the same thread; with Hugging Face, attn_implementation='sdpa' or 'eager'",
        zh="没有编辑 {asked!r}：这段代码里，本线程没有算过该模型可以编辑的注意力。请在同一线程、在这段代码里运行模型；"
        "Hugging Face 模型请用 attn_implementation='sdpa' 或 'eager'",
    ),
    "edit-not-done": Words(
        en="{asked!r} was not edited: it computed no attention of its own inside the block (nor that call of it, "
        "if a number was given); attention was computed in {nearest!r}, for example",
        zh="没有编辑 {asked!r}：这段代码里它自己没有算过注意力（给了序号时，没有那一次调用）；例如 {nearest!r} 算过",
    ),
    # --- effect ---
    "effect-training": Words(
        en="effect compares two runs, which in training mode dropout makes differ by itself; call model.eval() first",
        zh="effect 比较两次运行，而训练模式下 dropout 本身就会造成差别；请先调用 model.eval()",
    ),
    "effect-edits": Words(
        en="edits are keywords, as for edit: effect(model, inputs, {first}=…); found one dict of them",
        zh="编辑要像 edit 那样写成关键字参数：effect(model, inputs, {first}=…)；现在是把它们放进了一个字典",
    ),
    "effect-decoder": Words(
        en="{model} has an encoder and a decoder, and the decoder was given nothing to read; write "
        'inputs={{"input_ids": ids, "decoder_input_ids": torch.tensor([[{start}]])}}, which asks for the first token '
        "of the output; further ids ask for later ones",
        zh="{model} 由编码器和解码器组成，但没有给出解码器要读的内容；请写 "
        'inputs={{"input_ids": ids, "decoder_input_ids": torch.tensor([[{start}]])}}，这样看的是输出的第一个词元；'
        "多给几个 id，就看后面的词元",
    ),
    "effect-one-number": Words(
        en="logits of shape {found} are one number each, not scores to choose from, so no probability can move; "
        "compare the outputs inside and outside of regard.edit instead",
        zh="logits 的形状为 {found}，每处只有一个数，不是可供选择的得分，谈不上概率变化；"
        "请改为比较 regard.edit 内外两次的输出",
    ),
    "effect-multi-label": Words(
        en="this model gives every label a probability of its own (problem_type='multi_label_classification'), so "
        "there is no one distribution to move; compare the outputs inside and outside of regard.edit instead",
        zh="这个模型给每个标签单独的概率（problem_type='multi_label_classification'），没有统一的分布可比；"
        "请改为比较 regard.edit 内外两次的输出",
    ),
    "effect-no-position": Words(
        en="position={found!r} was given, but logits of shape {shape} have no positions: leave it out",
        zh="给出了 position={found!r}，但形状为 {shape} 的 logits 没有位置之分；请去掉它",
    ),
    "effect-position": Words(
        en="position must be a whole number from 0 to {last}, or below 0 to count from the end, or a list of {B} of "
        "them, one per sample; found {found!r}",
        zh="position 应为 0 到 {last} 之间的整数（负数从末尾数起），或 {B} 个这样的数的列表（每个样本一个）；"
        "现在是 {found!r}",
    ),
    "effect-unmasked": Words(
        en="sample {sample} has no masked token (id {mask}), and others have; mask one, or give position=",
        zh="样本 {sample} 没有被掩盖的词元（id 为 {mask}），而别的样本有；请掩盖一个，或给出 position=",
    ),
    "effect-cache": Words(
        en="inputs holds past_key_values, which the first of the two runs would change; give the whole text instead",
        zh="inputs 里有 past_key_values，两次运行中的第一次就会改动它；请改为给出完整文本",
    ),
    "effect-inputs": Words(
        en="inputs is what the model is called with: a tensor of ids, a dict of arguments or a tuple of them; "
        "found {found}",
        zh="inputs 应为调用模型时的输入：id 张量、参数字典或参数元组；现在是 {found}",
    ),
    "effect-logits": Words(
        en="effect needs a model that returns logits, (B, T, W) or (B, W), such as Hugging Face's …ForCausalLM; "
        "found {found}",
        zh="effect 需要会返回 logits 的模型，形状为 (B, T, W) 或 (B, W)，例如 Hugging Face 的 …ForCausalLM；"
        "现在是 {found}",
    ),
    "effect-token": Words(
        en="token must be an id from 0 to {last}, or a list of {B} of them, one per sample; found {found!r}",
        zh="token 应为 0 到 {last} 之间的 id，或 {B} 个 id 的列表（每个样本一个）；现在是 {found!r}",
    ),
    "effect-title-next": Words(
        en="next token: moved by {kl:.4g} nats (KL of before to after)",
        zh="下一个词元的分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-masked": Words(
        en="masked token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处被掩盖的词元，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-token": Words(
        en="token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处的词元，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-class": Words(
        en="class: moved by {kl:.4g} nats (KL of before to after)",
        zh="类别的分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-token-class": Words(
        en="class of the token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处词元的类别，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-most-moved": Words(
        en="(of all positions the one that moved most; position= asks for another)",
        zh="（所有位置中变化最大的一处；用 position= 可以指定别处）",
    ),
    "effect-sample": Words(en="sample {sample}, ", zh="样本 {sample}，"),
    "effect-token-column": Words(en="token", zh="词元"),
    "effect-class-column": Words(en="class", zh="类别"),
    "effect-before-column": Words(en="before", zh="编辑前"),
    "effect-after-column": Words(en="after", zh="编辑后"),
    "effect-change-column": Words(en="change", zh="变化"),
    "effect-followed-token": Words(en="→ the token followed. ", zh="→ 所跟踪的词元。"),
    "effect-followed-class": Words(en="→ the class followed. ", zh="→ 所跟踪的类别。"),
    "effect-caution": Words(
        en="Attention is not explanation: this is what the edit does to this model, on this input.",
        zh="注意力不等于解释：这里只说明该编辑对这个模型、这段输入有何影响。",
    ),
}
