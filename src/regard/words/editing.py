"""What `edit` and `effect` say: what cannot be edited, and what an edit did."""

from regard.words import Words

WORDS: dict[str, Words] = {
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
