"""What is said when a model is watched or edited."""

from regard.words import Words

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
}
