"""Messages of `watch`, `edit` and `effect`."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- arguments of watch ---
    "watch-model": Message(
        en="watch needs a PyTorch model, a torch.nn.Module; found {found}",
        zh="watch 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}",
    ),
    "watch-inner": Message(
        en="watch needs a PyTorch model, a torch.nn.Module; found {found}: pass its `.model`",
        zh="watch 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}：请传入它的 `.model`",
    ),
    "watch-meta": Message(
        en="{name} is on the meta device, which has shapes but no data; load the weights first, for example with "
        'model.to_empty(device="cpu") and load_state_dict',
        zh='{name} 在 meta 设备上，只有形状、没有数据；请先加载权重，例如 model.to_empty(device="cpu") 再 '
        "load_state_dict",
    ),
    "watch-see": Message(
        en="see must be a See, such as See(map=64, entropy=True); found {found}",
        zh="see 应为 See，例如 See(map=64, entropy=True)；现在是 {found}",
    ),
    "watch-differentiable": Message(
        en="watch works below autograd, so its records carry no gradients; leave out See(differentiable=True), or "
        "call regard.attend with it in the model",
        zh="watch 在 autograd 之下工作，记录不带梯度；请去掉 See(differentiable=True)，或在模型里用它调用 "
        "regard.attend",
    ),
    "watch-layers": Message(
        en='layers must be module names, such as ["h.0.attn", "h.1.*"], or layer numbers; found {found}',
        zh='layers 应为模块名（例如 ["h.0.attn", "h.1.*"]）或层号；现在是 {found}',
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
    "watch-values": Message(
        en="the values of {names} could not be captured, and their norms are None; call model.eval() if the weights "
        "go through dropout, and leave out torch.no_grad() if nn.TransformerEncoderLayer runs as one fused step",
        zh="无法捕获 {names} 的值，其范数为 None；如果权重经过 dropout，请先调用 model.eval()；如果 "
        "nn.TransformerEncoderLayer 走融合路径，请不要用 torch.no_grad()",
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
        zh="{name} 应为数字；现在是 {value!r}",
    ),
    "monitor-log": Message(
        en="log must be a function of (metrics, step), or an object with add_scalar or log; found {found}",
        zh="log 应为接收 (metrics, step) 的函数，或带有 add_scalar 或 log 方法的对象；现在是 {found}",
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
        zh="{name} 的注意力熵已塌缩：平均 {entropy:.3g} nat，低于 {floor:g}，几乎每个查询都只关注一个键；"
        "可以尝试降低学习率或使用 QK 归一化",
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
        zh="tokenizer 应为 Hugging Face 或 regard 的分词器，或把 id 列表转换成字符串列表的函数；现在是 {found}",
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
        zh='budget 应为字节数，或 "2 GB" 这样的字符串；现在是 {value!r}',
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
    "door-unsupported": Message(
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
    # --- arguments of edit ---
    "edit-model": Message(
        en="edit needs a PyTorch model, a torch.nn.Module; found {found}",
        zh="edit 需要一个 PyTorch 模型（torch.nn.Module）；现在是 {found}",
    ),
    "edit-mapping": Message(
        en='{how} needs names of a Trace or layer numbers as keys, such as {how}={{"h.5.attn": {example}}} or {how}'
        "={{5: {example}}}; found {found}",
        zh='{how} 的键应为 Trace 中的名字或层号，例如 {how}={{"h.5.attn": {example}}} 或 {how}={{5: {example}}}；现'
        "在是 {found}",
    ),
    "edit-keyword": Message(
        en="{function} has no argument {asked!r}; its arguments are {known}",
        zh="{function} 没有参数 {asked!r}；可用的参数有：{known}",
    ),
    "edit-layer-several": Message(
        en="layer {asked} has more than one attention: {names}; use the name of the one that you mean",
        zh="第 {asked} 层有不止一处注意力：{names}；请写出所指那一处的名字",
    ),
    "edit-number": Message(
        en="after # comes the number of one call, such as 'h.5.attn#1'; found {asked!r}",
        zh="# 后面应为某一次调用的序号，例如 'h.5.attn#1'；现在是 {asked!r}",
    ),
    "edit-name-ambiguous": Message(
        en="{asked!r} is the end of {count} names, the first of them {first!r}; use a longer name, or {pattern!r} "
        "for all of them",
        zh="{asked!r} 是 {count} 个名字的结尾，第一个是 {first!r}；请写更完整的名字，若要全部请写 {pattern!r}",
    ),
    "edit-heads": Message(
        en="{asked!r}: heads are whole numbers from 0, such as [3] or [0, 3]; found {found!r}",
        zh="{asked!r}：头用从 0 起的整数表示，例如 [3] 或 [0, 3]；现在是 {found!r}",
    ),
    "edit-edges": Message(
        en="{asked!r}: cut needs a list of (query, key) for all heads or (head, query, key) for one, or a Mask of "
        "the edges that stay visible; found {found!r}",
        zh="{asked!r}：cut 应为 (query, key)（所有头）或 (head, query, key)（一个头）的列表，或者表示剩余可见边的 "
        "Mask；现在是 {found!r}",
    ),
    # --- edits that cannot be applied ---
    "edit-head-range": Message(
        en="{asked!r} has {H} heads, from 0 to {last}; head {head} was requested",
        zh="{asked!r} 有 {H} 个头，编号 0 到 {last}；指定的是头 {head}",
    ),
    "edit-edge-missed": Message(
        en="edge {edge} of {asked!r} was in no call: there were at most {T} queries and {S} keys, counted from 0",
        zh="{asked!r} 的边 {edge} 没有出现在任何一次调用中：最多只有 {T} 个查询、{S} 个键（从 0 数起）",
    ),
    "edit-freeze-shape": Message(
        en="{asked!r} computes weights of B H T S = {wanted}, and the pattern to freeze has {found}; to select one "
        "call of several, add its number, such as {call!r}",
        zh="{asked!r} 的权重形状为 B H T S = {wanted}，而给定的是 {found}；若只指其中一次调用，请加上序号，例"
        "如 {call!r}",
    ),
    "edit-resample": Message(
        en="{asked!r}: resample needs a Record of another run, or a Record and heads, such as (trace[5], [3]); found "
        "{found}",
        zh="{asked!r}：resample 应为另一次运行的 Record，或 Record 加上头，例如 (trace[5], [3])；现在是 {found}",
    ),
    "edit-resample-shape": Message(
        en="{asked!r} computes outputs of B H T Ev = {wanted}, and those to put in their place have {found}; record a "
        "text of the same length",
        zh="{asked!r} 的输出形状为 B H T Ev = {wanted}，而用来替换的是 {found}；请记录同样长度的文本",
    ),
    "edit-product": Message(
        en="the product of the weights of {asked!r} with its values was not found (shape {shape}), so its outputs "
        "cannot be replaced; use attn_implementation='sdpa'",
        zh="没有找到 {asked!r} 的权重与值的乘积（形状 {shape}），因此无法替换它的输出；请使用 "
        "attn_implementation='sdpa'",
    ),
    "edit-layout": Message(
        en="{asked!r} arranges its weights in its own layout ({shape} with {H} heads), so heads and edges are "
        "ambiguous; only B H T S can be edited",
        zh="{asked!r} 的权重使用自己的布局（形状 {shape}，{H} 个头），无法区分头与边；只能编辑 B H T S",
    ),
    "edit-axis": Message(
        en="{asked!r} computes its softmax of {shape} along axis {dim}; only weights whose keys are the last axis "
        "can be edited",
        zh="{asked!r} 对形状 {shape} 沿第 {dim} 轴做 softmax；只能编辑键在最后一轴的权重",
    ),
    "edit-positions": Message(
        en="{asked!r} has a cache of {S} keys with unused positions after its {T} queries, so positions are "
        "unknown; use a cache that grows, or none (use_cache=False)",
        zh="{asked!r} 有 {T} 个查询，缓存有 {S} 个键且末尾有未用的位置，无法确定位置；请改用会增长的缓存，或不用缓存"
        "（use_cache=False）",
    ),
    "edit-too-large": Message(
        en="cutting edges of {asked!r} needs a mask of {T} × {S}, {need}, and {free} are free; shorten the text",
        zh="切断 {asked!r} 的边需要 {T} × {S} 的掩码（{need}），可用内存 {free}；请缩短文本",
    ),
    "edit-call-again": Message(
        en="{asked!r} selects one call, but activation checkpointing repeats calls here and which one is repeated "
        "is unknown; leave the number out, or switch checkpointing off",
        zh="{asked!r} 指某一次调用，但激活检查点正在重新计算，无法确定重复的是哪一次；请去掉序号，或关闭激活检查点",
    ),
    "edit-gate": Message(
        en="the edit of {asked!r} fell on {call!r}, a softmax of shape {shape} that is not attention, because no "
        "values are weighted with it: perhaps a gate. The outputs are not what you requested; name the calls "
        "that are attention: {meant}",
        zh="对 {asked!r} 的编辑落到了 {call!r} 上：这个 softmax（形状 {shape}）不是注意力，没有用来给值加权，可能是"
        "门控。模型的输出因此不是所要的结果；请写明是注意力的调用：{meant}",
    ),
    # --- edits that were not made ---
    "edit-nothing-seen": Message(
        en="{asked!r} was not edited: this thread computed no attention of this model inside the block that can be "
        "edited. Run the model inside the block, in the same thread; with Hugging Face, use "
        "attn_implementation='sdpa' or 'eager'",
        zh="没有编辑 {asked!r}：在这段代码里，本线程没有计算过该模型可以编辑的注意力。请在同一线程、在这段代码里运行"
        "模型；Hugging Face 模型请用 attn_implementation='sdpa' 或 'eager'",
    ),
    "edit-not-done": Message(
        en="{asked!r} was not edited: it computed no attention of its own inside the block (or not that call, if a "
        "number was given); for example, {nearest!r} computed attention",
        zh="没有编辑 {asked!r}：在这段代码里它自己没有计算过注意力（给了序号时，没有那一次调用）；例如 {nearest!r} "
        "计算过",
    ),
    # --- effect ---
    "effect-training": Message(
        en="effect compares two runs, which differ by dropout alone in training mode; call model.eval() first",
        zh="effect 比较两次运行，而训练模式下仅 dropout 就会造成差别；请先调用 model.eval()",
    ),
    "effect-edits": Message(
        en="pass edits as keywords, as for edit: effect(model, inputs, {first}=…); found one dict of them",
        zh="编辑要像 edit 那样写成关键字参数：effect(model, inputs, {first}=…)；现在是放在一个字典里",
    ),
    "effect-path": Message(
        en='path is a pair of heads, such as (("h.0.attn", 3), ("h.5.attn", 1)); found {found}',
        zh='path 是一对头，例如 (("h.0.attn", 3), ("h.5.attn", 1))；现在是 {found}',
    ),
    "effect-path-order": Message(
        en="a path goes from an earlier attention to a later one; {first} does not run before {second}",
        zh="路径从先计算的注意力通向后计算的注意力；{first} 并不在 {second} 之前运行",
    ),
    "effect-decoder": Message(
        en='{model} has an encoder and a decoder, and the decoder has no input; write inputs={{"input_ids": ids, '
        '"decoder_input_ids": torch.tensor([[{start}]])}} for the first token of the output; add ids for later '
        "ones",
        zh='{model} 由编码器和解码器组成，但没有给出解码器的输入；请写 inputs={{"input_ids": ids, '
        '"decoder_input_ids": torch.tensor([[{start}]])}}，这样预测的是输出的第一个词元；再加上几个 id，就预测后'
        "面的词元",
    ),
    "effect-one-number": Message(
        en="logits of shape {found} are one number each, not scores of several classes, so there is no probability "
        "to compare; compare the outputs inside and outside of regard.edit instead",
        zh="logits 的形状为 {found}，每处只有一个数，不是多个类别的得分，没有概率可以比较；请改为比较 regard.edit 内"
        "外两次的输出",
    ),
    "effect-multi-label": Message(
        en="this model gives every label its own probability (problem_type='multi_label_classification'), so there "
        "is no single distribution to compare; compare the outputs inside and outside of regard.edit instead",
        zh="这个模型给每个标签单独的概率（problem_type='multi_label_classification'），没有单一的分布可以比较；请改"
        "为比较 regard.edit 内外两次的输出",
    ),
    "effect-no-position": Message(
        en="position={found!r} was given, but logits of shape {shape} have no positions: leave it out",
        zh="给出了 position={found!r}，但形状为 {shape} 的 logits 没有位置之分；请去掉它",
    ),
    "effect-position": Message(
        en="position must be a whole number from 0 to {last}, or below 0 to count from the end, or a list of {B} of "
        "them, one per sample; found {found!r}",
        zh="position 应为 0 到 {last} 之间的整数（负数从末尾数起），或 {B} 个这样的数的列表（每个样本一个）；"
        "现在是 {found!r}",
    ),
    "effect-unmasked": Message(
        en="sample {sample} has no masked token (id {mask}), and others have; mask one, or give position=",
        zh="样本 {sample} 没有被掩码的词元（id 为 {mask}），而其他样本有；请用它替换一个词元，或给出 position=",
    ),
    "effect-cache": Message(
        en="inputs contains past_key_values, which the first of the two runs would change; give the whole text instead",
        zh="inputs 里有 past_key_values，两次运行中的第一次会改动它；请改为给出完整文本",
    ),
    "effect-inputs": Message(
        en="inputs is what the model is called with: a tensor of ids, a dict of arguments or a tuple of them; "
        "found {found}",
        zh="inputs 应为调用模型时的输入：id 张量、参数字典或参数元组；现在是 {found}",
    ),
    "effect-logits": Message(
        en="effect needs a model that returns logits, (B, T, W) or (B, W), such as Hugging Face's …ForCausalLM; "
        "found {found}",
        zh="effect 需要会返回 logits 的模型，形状为 (B, T, W) 或 (B, W)，例如 Hugging Face 的 …ForCausalLM；"
        "现在是 {found}",
    ),
    "effect-token": Message(
        en="token must be an id from 0 to {last}, or a list of {B} of them, one per sample; found {found!r}",
        zh="token 应为 0 到 {last} 之间的 id，或 {B} 个 id 的列表（每个样本一个）；现在是 {found!r}",
    ),
    "effect-title-next": Message(
        en="next token: moved by {kl:.4g} nats (KL of before to after)",
        zh="下一个词元的分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-masked": Message(
        en="masked token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处被掩码的词元，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-token": Message(
        en="token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处的词元，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-class": Message(
        en="class: moved by {kl:.4g} nats (KL of before to after)",
        zh="类别的分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-title-token-class": Message(
        en="class of the token at position {position}: moved by {kl:.4g} nats (KL of before to after)",
        zh="位置 {position} 处词元的类别，其分布变化了 {kl:.4g} 奈特（编辑前对编辑后的 KL 散度）",
    ),
    "effect-most-moved": Message(
        en="(of all positions the one that moved most; use position= for another)",
        zh="（所有位置中变化最大的一处；用 position= 可以指定其他位置）",
    ),
    "effect-sample": Message(en="sample {sample}, ", zh="样本 {sample}，"),
    "effect-token-column": Message(en="token", zh="词元"),
    "effect-class-column": Message(en="class", zh="类别"),
    "effect-before-column": Message(en="before", zh="编辑前"),
    "effect-after-column": Message(en="after", zh="编辑后"),
    "effect-change-column": Message(en="change", zh="变化"),
    "effect-followed-token": Message(en="→ the token followed. ", zh="→ 所跟踪的词元。"),
    "effect-followed-class": Message(en="→ the class followed. ", zh="→ 所跟踪的类别。"),
    "effect-caution": Message(
        en="Attention is not explanation: this is what the edit does to this model, on this input.",
        zh="注意力不等于解释：这里只说明该编辑对这个模型、这段输入有何影响。",
    ),
    # --- relevance ---
    "relevance-loss": Message(
        en="relevance needs the loss as a tensor, such as logits[0, -1, token]; found {found}",
        zh="relevance 需要一个张量作为损失，例如 logits[0, -1, token]；现在是 {found}",
    ),
    "relevance-scalar": Message(
        en="relevance needs one number that carries gradients, such as logits[0, -1, token]; found shape {shape}, "
        "requires_grad={requires_grad}; run the model without torch.no_grad(), after model.requires_grad_()",
        zh="relevance 需要一个带梯度的数，例如 logits[0, -1, token]；现在形状是 {shape}，"
        "requires_grad={requires_grad}；请先调用 model.requires_grad_()，并且不要在 torch.no_grad() 中运行模型",
    ),
    "relevance-not-kept": Message(
        en="relevance needs exact weights, and {name} kept none; watch with see=See(qk=True)",
        zh="relevance 需要精确的权重，而 {name} 没有保留；观察时请使用 see=See(qk=True)",
    ),
    "relevance-dropout": Message(
        en="{name} ran with dropout, so the gradient of its weights is unknown; call model.eval() before the run",
        zh="{name} 运行时使用了 dropout，因此无法得知其权重的梯度；运行之前请调用 model.eval()",
    ),
    "relevance-missing": Message(
        en="the backward pass of this loss gave no gradient for {count} of {of} records: {names}; either the loss does "
        "not depend on them (select the others, such as trace[:4]), or the model computes them in code that regard "
        "cannot follow backwards, such as flex_attention or compiled code",
        zh="这个损失的反向传播没有给出 {of} 条记录中 {count} 条的梯度：{names}；可能是损失不依赖它们（请只选取"
        "其余记录，例如 trace[:4]），也可能是模型用 regard 无法反向跟踪的代码计算它们，例如 flex_attention 或编译后"
        "的代码",
    ),
}
