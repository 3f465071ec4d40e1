"""Messages of `watch` and `monitor`."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- arguments of watch ---
    "module-wanted": Message(
        en="{function} needs a PyTorch model, a torch.nn.Module; found {found}",
        zh="{function} 需要一个 PyTorch 模型（torch.nn.Module）；实际为 {found}",
    ),
    "module-inner": Message(
        en="{function} needs a PyTorch model, a torch.nn.Module; found {found}: pass its `.model`",
        zh="{function} 需要一个 PyTorch 模型（torch.nn.Module）；实际为 {found}：请传入它的 `.model`",
    ),
    "module-numpy": Message(
        en="{function} needs a PyTorch model, a torch.nn.Module; this {found} computes in NumPy: pass "
        'regard.load(…, backend="torch").model',
        zh="{function} 需要一个 PyTorch 模型（torch.nn.Module）；这个 {found} 由 NumPy 计算：请传入 "
        'regard.load(…, backend="torch").model',
    ),
    "watch-meta": Message(
        en="{name} is on the meta device, which has shapes but no data; load the weights first, for example with "
        'model.to_empty(device="cpu") and load_state_dict',
        zh='{name} 在 meta 设备上，只有形状、没有数据；请先加载权重，例如 model.to_empty(device="cpu") 再 '
        "load_state_dict",
    ),
    "watch-see": Message(
        en="see must be a See, such as See(map=64, entropy=True); found {found}",
        zh="see 应为 See，例如 See(map=64, entropy=True)；实际为 {found}",
    ),
    "watch-differentiable": Message(
        en="watch works below autograd, so its records carry no gradients; leave out See(differentiable=True), or "
        "call regard.attend with it in the model",
        zh="watch 工作在 autograd 的下层，记录不带梯度；请去掉 See(differentiable=True)，或在模型里用它调用 "
        "regard.attend",
    ),
    "watch-layers": Message(
        en='layers must be module names, such as ["h.0.attn", "h.1.*"], or layer numbers; found {found}',
        zh='layers 应为模块名（例如 ["h.0.attn", "h.1.*"]）或层号；实际为 {found}',
    ),
    "watch-layer-unknown": Message(
        en="no module of this model is called {asked!r}, and no name ends with it; did you mean {nearest!r}?",
        zh="该模型没有名为 {asked!r} 的模块，也没有以此结尾的名字；是否想写 {nearest!r}？",
    ),
    "watch-layer-unlike": Message(
        en="no module of this model is called {asked!r}, no name ends with it, and none is similar; watch one call "
        "of the model without layers=: trace.names lists the names",
        zh="该模型没有名为 {asked!r} 的模块，没有以此结尾的名字，也没有相近的名字；请先不指定 layers，用 watch 运行"
        "一次模型：trace.names 列出所有名字",
    ),
    "watch-layer-number": Message(
        en="there is no layer {asked}; the layers of this model are numbered {first} to {last}, or from -1 back; "
        "choose modules inside a layer by name",
        zh="没有第 {asked} 层；该模型的层号是 {first} 到 {last}（负数表示从末尾倒数）；层内的模块请按名字选择",
    ),
    "watch-layers-unnumbered": Message(
        en="there is no layer {asked}: this model has no numbered layers; choose by name",
        zh="没有第 {asked} 层：该模型的层没有编号；请按名字选择",
    ),
    "watch-closed": Message(
        en="regard.watch is opened by `with`, which gives the Trace; write: with regard.watch(model) as trace: "
        "model(ids)",
        zh="regard.watch 要用 `with` 打开，才能得到 Trace；请写成：with regard.watch(model) as trace: model(ids)",
    ),
    "watch-again": Message(
        en="each watch can be opened once; call regard.watch again for another Trace",
        zh="每个 watch 只能打开一次；需要另一个 Trace 时，请再调用一次 regard.watch",
    ),
    "watch-keys": Message(
        en="the cache changed keys of earlier tokens while the text was generated",
        zh="在生成文本的过程中，缓存改动了先前词元的键",
    ),
    "watch-values": Message(
        en="the values of {names} could not be captured, so their norms and the outputs are None; call model.eval() if "
        "the weights go through dropout",
        zh="无法捕获 {names} 的值，其范数和输出为 None；如果权重经过 dropout，请先调用 model.eval()",
    ),
    "watch-max-score": Message(
        en="max_score of {names} is None: the model changed the weights after its softmax, or combined several "
        "softmaxes, so that no score can be computed from them; the other statistics are those of the weights",
        zh="{names} 的 max_score 为 None：模型在 softmax 之后改动了权重，或合并了多个 softmax，无法由权重算出得分；"
        "其他统计量仍按权重计算",
    ),
    # --- monitor ---
    "monitor-threshold": Message(
        en="{name} must be a number; found {value!r}",
        zh="{name} 应为数字；实际为 {value!r}",
    ),
    "monitor-log": Message(
        en="log must be a function of (metrics, step), or an object with add_scalar or log; found {found}",
        zh="log 应为接收 (metrics, step) 的函数，或带有 add_scalar 或 log 方法的对象；实际为 {found}",
    ),
    "monitor-graph": Message(
        en="regard.monitor measures outside of compiled graphs; with fullgraph=True, compile first and pass the "
        "compiled model to regard.monitor",
        zh="regard.monitor 在编译图之外测量；使用 fullgraph=True 时，请先编译，再把编译后的模型传给 regard.monitor",
    ),
    "monitor-nothing": Message(
        en="regard.monitor found no attention in this model and has stopped measuring; the training continues "
        "({reason})",
        zh="regard.monitor 在该模型中没有发现注意力，已停止测量；训练不受影响（{reason}）",
    ),
    "monitor-error": Message(
        en="regard.monitor could not measure and has stopped; the training continues ({reason})",
        zh="regard.monitor 测量失败，已停止；训练不受影响（{reason}）",
    ),
    "monitor-uncalled": Message(
        en="regard.monitor measured nothing: {found} was never called in training mode with gradients; pass the "
        "module that the training loop calls",
        zh="regard.monitor 没有测到任何数据：{found} 从未在训练模式下带梯度调用；请传入训练循环实际调用的模块",
    ),
    "monitor-step": Message(en="step {step}: {text}", zh="第 {step} 步：{text}"),
    "monitor-entropy": Message(
        en="the attention entropy of {name} has collapsed: {entropy:.3g} nats on average, below {floor:g}, so that "
        "nearly every query attends to a single key; a lower learning rate or QK normalisation may help",
        zh="{name} 的注意力熵已塌缩：平均 {entropy:.3g} 奈特，低于 {floor:g}，几乎每个查询都只关注一个键；"
        "可以尝试降低学习率或使用 QK 归一化",
    ),
    "monitor-nan": Message(
        en="the attention of {name}, head {head}, is NaN: its inputs or its weights are not finite, or scores "
        "overflowed",
        zh="{name} 第 {head} 个头的注意力为 NaN：它的输入或权重中有非有限值，或得分溢出",
    ),
    "monitor-scores": Message(
        en="the attention scores of {name}, head {head}, have grown to {score:.4g}, above {limit:g}; in half precision "
        "this often comes before a divergence; a lower learning rate, QK normalisation or QK-clip may help",
        zh="{name} 第 {head} 个头的注意力得分已增大到 {score:.4g}，超过 {limit:g}；在半精度下，这往往是训练发散的"
        "前兆；可以尝试降低学习率、使用 QK 归一化或 QK-clip",
    ),
    # --- tokens ---
    "watch-tokenizer": Message(
        en="tokenizer must be Hugging Face's, regard's, or a function from a list of ids to a list of strings; "
        "found {found}",
        zh="tokenizer 应为 Hugging Face 或 regard 的分词器，或把 id 列表转换成字符串列表的函数；实际为 {found}",
    ),
    "watch-tokens": Message(
        en="the tokenizer returned {found} for {wanted} ids; it must return one string for each",
        zh="分词器对 {wanted} 个 id 返回了 {found}；应当为每个 id 返回一个字符串",
    ),
    "watch-tables": Message(
        en="ids of several embedding tables fit the same attention, and none of them are inputs of the model, so "
        "tokens may be labelled with the wrong ids; give the model a get_input_embeddings() that returns its "
        "token embedding",
        zh="有多个嵌入表的 id 与同一处注意力大小相符，且都不是模型的输入，词元的文字可能取错；请给模型加上 "
        "get_input_embeddings()，返回词元的嵌入表",
    ),
    "watch-no-words": Message(
        en="the tokenizer failed while the model ran, so tokens have no text here: {reason}; pass a tokenizer that "
        "knows every id",
        zh="模型运行时分词器出错，所以这里的词元没有文字：{reason}；请传入能解码所有 id 的分词器",
    ),
    # --- budget ---
    "watch-budget": Message(
        en='budget must be a number of bytes, or a string such as "2 GB"; found {value!r}',
        zh='budget 应为字节数，或 "2 GB" 这样的字符串；实际为 {value!r}',
    ),
    "watch-budget-small": Message(
        en="a budget of {budget} is too small for {name}: even without a map it needs about {need}; use a larger "
        'budget, such as budget="1 GB", or watch fewer layers',
        zh='{budget} 的预算对 {name} 来说太小：即使不要图（map）也需要约 {need}；请加大预算，例如 budget="1 GB"，或'
        "观察更少的层",
    ),
    "watch-left-out": Message(
        en="a budget of {budget} did not hold everything: {parts}; all of it takes {need}",
        zh="{budget} 的预算放不下全部内容：{parts}；全部需要 {need}",
    ),
    "watch-left-out-qk": Message(
        en="records without q and k, so that weights() has nothing to compute from: {count}",
        zh="{count} 条记录没有保留 q 和 k，weights() 无从计算",
    ),
    "watch-left-out-outputs": Message(
        en="records without the outputs of heads: {count}", zh="{count} 条记录没有各头的输出"
    ),
    "watch-left-out-map": Message(
        en="maps coarser than {asked} bins: {count}, down to {bins}",
        zh="{count} 张图比 {asked} 格更粗，最少 {bins} 格",
    ),
    "watch-left-out-no-map": Message(en="records without a map: {count}", zh="{count} 条记录没有图"),
    "watch-left-out-top": Message(
        en="records without top keys: {count}",
        zh="{count} 条记录没有权重最大的键（top）",
    ),
    "watch-and": Message(en=", ", zh="，"),
    # --- Hugging Face's attention implementation ---
    "implementation-unsupported": Message(
        en='attn_implementation="{name}" computes what "sdpa" does, which does not support {what}; {module} needs '
        'it: choose "eager" and use regard.watch, which supports it',
        zh='attn_implementation="{name}" 与 "sdpa" 的计算相同，不支持 {what}，而 {module} 需要它：请选择 "eager" 并'
        "使用 regard.watch，它支持这种情况",
    ),
    # --- compiled models ---
    "watch-order": Message(
        en="in compiled code modules are named by their order, and {calls} attentions do not fit {count} modules: "
        "names may be wrong; run the model uncompiled for reliable names",
        zh="在编译后的代码里，模块按顺序命名，而 {calls} 次注意力与 {count} 个模块不相符：名字可能有误；要得到可靠的"
        "名字，请运行未编译的模型",
    ),
    # --- layouts ---
    "watch-layout": Message(
        en="{name} arranges its weights in its own layout ({shape} with {H} heads), so heads, samples and queries "
        "may be mixed up in its record; arrange them as B H T S",
        zh="{name} 的权重使用自己的布局（形状 {shape}，{H} 个头），记录里的头、样本与查询可能混淆；请按 B H T S 排列",
    ),
    # --- nothing recorded ---
    "watch-lost": Message(
        en="{names} computed a softmax that may be attention, but its use could not be followed, so it is not "
        "recorded; multiply all of it with the values (weights @ v), or use F.scaled_dot_product_attention",
        zh="{names} 计算的 softmax 可能是注意力，但无法跟踪它的用途，所以没有记录；请把它整个与值相乘（weights @ v）"
        "，或改用 F.scaled_dot_product_attention",
    ),
    "watch-refused": Message(
        en="{names}: {reason}; there is no matrix of weights of queries by keys, and nothing is recorded",
        zh="{names}：{reason}；没有查询 × 键的权重矩阵，因此没有记录",
    ),
    "watch-refused-landmarks": Message(
        en="attention is approximated through landmarks",
        zh="注意力通过地标点（landmark）近似计算",
    ),
    "watch-refused-hashed": Message(
        en="queries and keys are grouped by hashes",
        zh="查询和键按哈希值分组",
    ),
    "watch-refused-chunks": Message(
        en="queries and keys are split into chunks, which are not assembled here",
        zh="查询和键被切分成块，这里不拼接",
    ),
    "watch-refused-resolutions": Message(
        en="attention is approximated at several resolutions",
        zh="注意力以多种分辨率近似计算",
    ),
    "watch-refused-sampled": Message(
        en="only some queries are computed, and the others get the mean of the values",
        zh="只计算部分查询，其余查询取所有值的平均",
    ),
    "watch-refused-correlation": Message(
        en="values are shifted by autocorrelation, not weighted by keys",
        zh="值按自相关平移，而不是按键加权",
    ),
    "watch-refused-points": Message(
        en="values are read at a few points of the picture, between its positions, not weighted by keys",
        zh="值取自图片上若干点（位于位置之间），而不是按键加权",
    ),
    "watch-refused-pieces": Message(
        en="its sparse attention could not be assembled from its pieces, or the whole matrix needs more memory than "
        "is free",
        zh="无法把稀疏注意力的各部分拼成完整的矩阵，或完整矩阵超出可用内存",
    ),
    "watch-row-sums": Message(
        en="rows of the weights of {names} do not sum to 1, for an unknown reason: they may be parts of larger "
        "rows; compare with what the model computes before relying on them",
        zh="{names} 的权重有些行之和不为 1，原因未知：它们可能只是更大的行的一部分；使用前请与模型的实际计算核对",
    ),
    "watch-across": Message(
        en="the softmax of {names} is not over the keys that its product with the values sums over, but over "
        "another axis (queries, heads): its rows do not sum to 1, and it is not recorded as attention; use "
        "softmax over the axis of the keys",
        zh="{names} 的 softmax 所在的维度不是与值相乘时求和的键维度，而是另一个维度（查询、头）：各行之和不为 1，没"
        "有作为注意力记录；请对键所在的维度做 softmax",
    ),
    "watch-unseen": Message(
        en="the attention of {names} could not be observed and is not recorded; the model ran as without watch: "
        "{reason}",
        zh="{names} 的注意力无法观察，没有记录；模型正常运行，不受影响：{reason}",
    ),
    "watch-unseen-meta": Message(
        en="its tensors are on the meta device and hold no data",
        zh="张量在 meta 设备上，没有数据",
    ),
    "watch-unseen-type": Message(
        en="its tensors are of a type that handles operators itself ({found})",
        zh="张量的类型（{found}）自行处理算子",
    ),
    "watch-saw-nothing": Message(
        en="nothing is recorded: this thread computed no attention of this model inside the block. If the model "
        "runs in another thread, watch it there; if another copy of it runs (an inner copy, a CUDA graph), watch "
        "that one. In compiled code only scaled_dot_product_attention is visible: run flex_attention, and "
        "attention written by hand, uncompiled, or use SDPA. A model without softmax attention (a state space "
        "model such as Mamba, RWKV, FNet, a convolution, linear attention) has no weights to record",
        zh="没有任何记录：在这段代码里，本线程没有计算过该模型的注意力。如果模型在别的线程中运行，请在那个线程里使用"
        " watch；如果实际运行的是另一份（内部副本、CUDA 图），请对那一份使用 watch。编译后的代码里只能看到 "
        "scaled_dot_product_attention：flex_attention 和手写的注意力请不要编译，或改用 SDPA。没有 softmax 注意力"
        "的模型（Mamba 等状态空间模型、RWKV、FNet、卷积、线性注意力）没有权重可以记录",
    ),
    "watch-saw-others": Message(
        en="no attention of this model was computed, but something else computed attention {count} times; watch the "
        "model that is called",
        zh="该模型没有计算注意力，但别处计算了 {count} 次；请对真正被调用的模型使用 watch",
    ),
    "watch-saw-other-layers": Message(
        en="none of the requested layers computed attention; these did: {names}",
        zh="指定的层都没有计算注意力；计算过的有：{names}",
    ),
    # --- gather ---
    "gather-alone": Message(
        en="gather needs the process group of a distributed run: start it with torchrun and call "
        "torch.distributed.init_process_group() first",
        zh="gather 需要分布式运行的进程组：请用 torchrun 启动，并先调用 torch.distributed.init_process_group()",
    ),
    "gather-split": Message(
        en='gather cannot tell what the processes divide; choose split="samples" (DDP, FSDP), split="heads" (tensor '
        'parallel), split="queries" (context parallel) or split="keys" (same queries), the same in every process',
        zh='gather 无法判断各进程划分的是什么；请指定 split="samples"（DDP、FSDP）、split="heads"（张量并行）、'
        'split="queries"（上下文并行）或 split="keys"（查询相同），所有进程一致',
    ),
    "gather-arguments": Message(
        en="every process must call gather with the same split and map; found {found}",
        zh="所有进程调用 gather 时，split 和 map 必须相同；实际为 {found}",
    ),
    "gather-names": Message(
        en="process {rank} recorded {count} calls and process 0 {wanted}; the first difference is {name} against "
        "{other}; watch the same layers and the same number of forwards in every process",
        zh="进程 {rank} 记录了 {count} 次调用，进程 0 记录了 {wanted} 次；第一处不同是 {name} 与 {other}；"
        "请让每个进程观察相同的层、运行相同次数的前向",
    ),
    "gather-sizes": Message(
        en='the parts of {name} do not fit together for split="{split}": {shapes}; pad the texts of all processes to '
        "one length, use the same See, or choose another split",
        zh='{name} 的各部分无法按 split="{split}" 合并：{shapes}；请把所有进程的文本填充到同一长度、使用相同的 See，'
        "或改用别的 split",
    ),
    "gather-queries": Message(
        en='the parts of {name} have different queries, so split="{split}" is not what the processes divide; with '
        'different texts it is split="samples", with different positions of one text split="queries"',
        zh='{name} 的各部分查询不同，可见各进程划分的不是 split="{split}"；文本不同时应为 split="samples"，'
        '同一文本的不同位置应为 split="queries"',
    ),
    "gather-chunks": Message(
        en="{count} positions cannot be divided into {chunks} chunks of one length; pad the text, or give positions=",
        zh="{count} 个位置无法平均分成 {chunks} 段；请填充文本，或用 positions= 给出位置",
    ),
    "gather-positions": Message(
        en="the positions of all processes ({sizes} of them) must be 0, 1, 2 … of one text, each once; give each "
        "process those of its own queries",
        zh="所有进程的位置（个数为 {sizes}）合起来必须是同一文本的 0、1、2……，每个恰好一次；"
        "请让每个进程给出自己查询的位置",
    ),
    "gather-positions-type": Message(
        en='positions must be None, "balanced", or a list of whole numbers; found {found}',
        zh='positions 必须是 None、"balanced" 或整数列表；实际是 {found}',
    ),
    "gather-positions-unused": Message(
        en='positions is only for split="queries"; the split is {split}',
        zh='positions 只用于 split="queries"；实际的 split 为 {split}',
    ),
    "gather-ring": Message(
        en="{name} was called {count} times in process {rank} of {world}, which is no ring: there it attends once to "
        "the keys of each process, or only to those before its own",
        zh="{name} 在进程 {rank}（共 {world} 个）中被调用 {count} 次，不是环形注意力：环形注意力对每个进程的键"
        "各计算一次，或只对自己之前的键计算",
    ),
    "gather-rectangle": Message(
        en='a call of {name} has the shape {shape}, but with split="queries" {rows} queries and {cols} keys belong to '
        "it; give the positions= of this process's queries",
        zh='{name} 的一次调用形状为 {shape}，但按 split="queries" 它应有 {rows} 个查询和 {cols} 个键；'
        "请用 positions= 给出该进程的查询位置",
    ),
    "gather-lse": Message(
        en="{name} has no LSE, so the share of each part of the keys is unknown; watch with See(lse=True)",
        zh="{name} 没有 LSE，无法得知各部分键所占的比重；观察时请使用 See(lse=True)",
    ),
    "gather-rest": Message(
        en="the rows of {name} do not sum to 1 (a learned sink, or weights changed after the softmax), so its parts of "
        "the keys cannot be merged",
        zh="{name} 的各行之和不为 1（有可学习的注意力汇，或 softmax 之后权重被改动），因此各部分键无法合并",
    ),
    "gather-weights": Message(
        en="{fields} of {name} sum over queries, and each query has its own share in every part of the keys; watch "
        "with See(qk=True), or do not request them",
        zh="{name} 的 {fields} 是对查询求和得到的，而每个查询在各部分键中所占的份额不同；观察时请使用 "
        "See(qk=True)，或不要请求这些统计量",
    ),
    "gather-failed": Message(
        en="process {rank} could not send its part of the trace; see the error of that process",
        zh="进程 {rank} 未能发送它的那部分 Trace；原因见该进程自己的错误信息",
    ),
    "gather-lost": Message(
        en="process {rank} of {world} lost the connection to the others while it gathered the trace: {reason}; the "
        "trace of each process is unchanged",
        zh="共 {world} 个进程，进程 {rank} 在合并 Trace 时与其他进程断开了连接：{reason}；各进程自己的 Trace 没有变化",
    ),
}
