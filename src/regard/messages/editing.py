"""Messages of `edit`, `effect` and `Trace.relevance`."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- arguments of edit ---
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
        zh="# 后面应为某一次调用的序号，例如 'h.5.attn#1'；实际为 {asked!r}",
    ),
    "edit-name-ambiguous": Message(
        en="{asked!r} is the end of {count} names, the first of them {first!r}; use a longer name, or {pattern!r} "
        "for all of them",
        zh="{asked!r} 是 {count} 个名字的结尾，第一个是 {first!r}；请写更完整的名字，若要全部请写 {pattern!r}",
    ),
    "edit-heads": Message(
        en="{asked!r}: heads are whole numbers from 0, such as [3] or [0, 3]; found {found!r}",
        zh="{asked!r}：头用从 0 起的整数表示，例如 [3] 或 [0, 3]；实际为 {found!r}",
    ),
    "edit-edges": Message(
        en="{asked!r}: cut needs a list of (query, key) for all heads or (head, query, key) for one, or a Mask of "
        "the edges that stay visible; found {found!r}",
        zh="{asked!r}：cut 应为 (query, key)（所有头）或 (head, query, key)（一个头）的列表，或者表示剩余可见边的 "
        "Mask；实际为 {found!r}",
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
    "edit-mean-step": Message(
        en="{asked!r}: this call has one query and {S} keys, as a step of a generation has; its mean over the queries "
        "would change nothing. Give the mean of other texts: mean={{{asked!r}: (trace, heads)}}, with a trace recorded "
        "with See(outputs=True)",
        zh="{asked!r}：这次调用只有 1 个查询、{S} 个键，例如逐词生成中的一步，对查询求平均不会改变任何东西。请给出"
        "其他文本的平均值：mean={{{asked!r}: (trace, heads)}}，其中 trace 用 See(outputs=True) 记录",
    ),
    "edit-mean-unknown": Message(
        en="the Trace for the mean of {asked!r} has no record of that module; it has {names}",
        zh="用来给 {asked!r} 求平均的 Trace 里没有该模块的记录；它有 {names}",
    ),
    "edit-mean-shape": Message(
        en="{asked!r}: a mean is an array H Ev, one output for each head; found {found}",
        zh="{asked!r}：平均值应为 H Ev 的数组，每个头一个输出；实际为 {found}",
    ),
    "edit-mean-size": Message(
        en="{asked!r}: the mean has H Ev = {found}, but the outputs of this attention have {wanted}",
        zh="{asked!r}：给出的平均值为 H Ev = {found}，而该注意力的输出是 {wanted}",
    ),
    "edit-resample": Message(
        en="{asked!r}: resample needs a Record of another run, or a Record and heads, such as (trace[5], [3]); found "
        "{found}",
        zh="{asked!r}：resample 应为另一次运行的 Record，或 Record 加上头，例如 (trace[5], [3])；实际为 {found}",
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
        zh="编辑要像 edit 那样写成关键字参数：effect(model, inputs, {first}=…)；实际是放在一个字典里",
    ),
    "effect-path": Message(
        en='path is a pair of heads, such as (("h.0.attn", 3), ("h.5.attn", 1)); found {found}',
        zh='path 是一对头，例如 (("h.0.attn", 3), ("h.5.attn", 1))；实际为 {found}',
    ),
    "effect-path-layer": Message(
        en="layer {asked} computed no attention that was recorded; recorded were {names}",
        zh="第 {asked} 层没有记录到注意力；记录到的有 {names}",
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
        "实际为 {found!r}",
    ),
    "effect-unmasked": Message(
        en="sample {sample} has no masked token (id {mask}), and others have; mask one, or give position=",
        zh="样本 {sample} 里没有掩码词元（id 为 {mask}），而其他样本有；请用它替换一个词元，或给出 position=",
    ),
    "effect-cache": Message(
        en="inputs contains past_key_values, which the first of the two runs would change; give the whole text instead",
        zh="inputs 里有 past_key_values，两次运行中的第一次会改动它；请改为给出完整文本",
    ),
    "effect-inputs": Message(
        en="inputs is what the model is called with: a tensor of ids, a dict of arguments or a tuple of them; "
        "found {found}",
        zh="inputs 应为调用模型时的输入：id 张量、参数字典或参数元组；实际为 {found}",
    ),
    "effect-logits": Message(
        en="effect needs a model that returns logits, (B, T, W) or (B, W), such as Hugging Face's …ForCausalLM; "
        "found {found}",
        zh="effect 需要会返回 logits 的模型，形状为 (B, T, W) 或 (B, W)，例如 Hugging Face 的 …ForCausalLM；"
        "实际为 {found}",
    ),
    "effect-token": Message(
        en="{option} must be an id from 0 to {last}, or a list of {B} of them, one per sample; found {found!r}",
        zh="{option} 应为 0 到 {last} 之间的 id，或 {B} 个 id 的列表（每个样本一个）；实际为 {found!r}",
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
    # --- logit_attribution ---
    "attribution-training": Message(
        en="logit_attribution needs a run without dropout; call model.eval() first",
        zh="logit_attribution 需要不带 dropout 的运行；请先调用 model.eval()",
    ),
    "attribution-logits": Message(
        en="logit_attribution needs logits for every position, (B, T, W), as of a language model; found {shape}",
        zh="logit_attribution 需要每个位置的 logits，形状为 (B, T, W)，即语言模型的输出；实际为 {shape}",
    ),
    "attribution-output": Message(
        en="the logits of this model are not a linear function of its final norm (no output layer was found whose "
        "result they are, or they are bounded afterwards), so they are no sum of what the heads add; use regard.effect",
        zh="这个模型的 logits 不是最终归一化结果的线性函数（没有找到直接给出它们的输出层，或者之后又做了截断），因此"
        "不能分解为各头的贡献之和；请使用 regard.effect",
    ),
    "attribution-norm": Message(
        en="no final norm (LayerNorm or RMSNorm) was found between the layers and the output layer of this model, so "
        "what its heads add to a logit is unknown; use regard.effect",
        zh="在这个模型的各层与输出层之间没有找到最终的归一化（LayerNorm 或 RMSNorm），因此无法得知各头对 logit 的贡献；"
        "请使用 regard.effect",
    ),
    "attribution-blocks": Message(
        en="no module of this model takes the residual stream and returns it with attention added, so what heads add "
        "to a logit is unknown; add inside the module of each layer, or use regard.effect",
        zh="这个模型里没有输入残差流并返回加上注意力之后的残差流的模块，因此无法得知各头对 logit 的贡献；"
        "请在每层的模块内部做加法，或使用 regard.effect",
    ),
    "attribution-layers": Message(
        en="the layer of {name} does not simply add its output to the residual stream (as post-norm layers do not), so "
        "what its heads add to a logit is unknown; use regard.effect",
        zh="{name} 所在的层不是把输出直接加到残差流上（例如后置归一化的层），因此无法得知各头对 logit 的贡献；"
        "请使用 regard.effect",
    ),
    "attribution-projection": Message(
        en="the output projection of {name} was not found, so what its heads add to a logit is unknown; use "
        "regard.effect",
        zh="没有找到 {name} 的输出投影，因此无法得知各头对 logit 的贡献；请使用 regard.effect",
    ),
    "attribution-title": Message(
        en="what adds to the logit of {token} at position {position}",
        zh="位置 {position} 处 {token} 的 logit 由哪些部分相加而成",
    ),
    "attribution-title-against": Message(
        en="what adds to the logit of {token} minus that of {against} at position {position}",
        zh="位置 {position} 处 {token} 与 {against} 的 logit 之差由哪些部分相加而成",
    ),
    "attribution-layer-column": Message(en="layer", zh="层"),
    "attribution-head-column": Message(en="head", zh="头"),
    "attribution-adds-column": Message(en="adds", zh="贡献"),
    "attribution-others": Message(en="other heads", zh="其他头"),
    "attribution-rest": Message(en="embeddings, feed-forward layers, biases", zh="嵌入、前馈层与偏置"),
    "attribution-logit": Message(en="logit", zh="logit"),
    "attribution-caution": Message(
        en="Only the direct path: what a head changes in later layers is counted there.",
        zh="只计直接路径：某个头在后面各层中引起的变化计入那些层。",
    ),
    # --- relevance ---
    "relevance-loss": Message(
        en="relevance needs the loss as a tensor, such as logits[0, -1, token]; found {found}",
        zh="relevance 需要一个张量作为损失，例如 logits[0, -1, token]；实际为 {found}",
    ),
    "relevance-scalar": Message(
        en="relevance needs one number that carries gradients, such as logits[0, -1, token]; found shape {shape}, "
        "requires_grad={requires_grad}; run the model without torch.no_grad(), after model.requires_grad_()",
        zh="relevance 需要一个带梯度的数，例如 logits[0, -1, token]；实际形状为 {shape}，"
        "requires_grad={requires_grad}；请先调用 model.requires_grad_()，并且不要在 torch.no_grad() 中运行模型",
    ),
    "relevance-not-kept": Message(
        en="relevance needs exact weights, and {name} kept none; watch with see=See(qk=True)",
        zh="relevance 需要精确的权重，而 {name} 没有保留；观察时请使用 see=See(qk=True)",
    ),
    "relevance-freed": Message(
        en="the graph of this loss was freed by an earlier backward pass: call relevance before loss.backward(), or "
        "loss.backward(retain_graph=True)",
        zh="这个损失的计算图已被之前的反向传播释放：请在 loss.backward() 之前调用 relevance，或使用 "
        "loss.backward(retain_graph=True)",
    ),
    "relevance-elsewhere": Message(
        en="relevance needs the Trace of the run that computed the loss, as regard.watch(model, see=See(qk=True)) "
        "gives it, or a part of it; this one was read from a file or made of records",
        zh="relevance 需要计算该损失的那次运行的 Trace（由 regard.watch(model, see=See(qk=True)) 给出）或它的一部分；"
        "现在的 Trace 是从文件读入的，或由记录拼成的",
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
