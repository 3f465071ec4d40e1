"""What the page of a Trace says: `trace.html`. The page holds both languages and fills in the values itself."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- choosing ---
    "page-title": Words(en="Where attention looks", zh="注意力看向哪里"),
    "page-layer": Words(en="Layer", zh="层"),
    "page-head": Words(en="Head", zh="头"),
    "page-heads": Words(en="Heads of this layer", zh="这一层的头"),
    "page-scale": Words(en="Colours", zh="颜色"),
    "page-auto": Words(en="square root, logarithmic for the largest", zh="平方根（最大的权重用对数）"),
    "page-linear": Words(en="linear", zh="线性"),
    "page-log": Words(en="logarithmic", zh="对数"),
    "page-renormalised": Words(en="without the first token, rows sum to 1", zh="略去首词元，每行重新归一"),
    "page-hidden": Words(en="without the first token", zh="略去首词元"),
    "page-theme": Words(en="Light or dark", zh="切换深浅色"),
    "page-picture": Words(en="Save picture", zh="保存图片"),
    # --- what it is of ---
    "page-kind-self": Words(en="self-attention", zh="自注意力"),
    "page-kind-encoder": Words(en="encoder self-attention", zh="编码器自注意力"),
    "page-kind-decoder": Words(en="decoder self-attention", zh="解码器自注意力"),
    "page-kind-cross": Words(en="cross-attention", zh="交叉注意力"),
    "page-size": Words(en="{T} queries × {S} keys", zh="{T} 个查询 × {S} 个键"),
    "page-part": Words(
        en="queries {rows}, keys {cols}, of {T} × {S}",
        zh="查询 {rows}，键 {cols}（全图 {T} × {S}）",
    ),
    "page-sample": Words(en="sample {sample} of {count}", zh="样本 {sample}（共 {count} 个）"),
    "page-cell": Words(en="each cell is {high} × {wide} tokens", zh="每格为 {high} × {wide} 个词元"),
    "page-rows-write": Words(en="rows: token read → token written", zh="行：读入的词元 → 写出的词元"),
    "page-rows-read": Words(
        en="rows: the token just read, the next one is written there", zh="行：刚读入的词元，由此写出下一个"
    ),
    "page-rows-look": Words(en="rows look at columns", zh="行：谁在看；列：被看的"),
    "page-prompt": Words(en="rows of the prompt, down to the line: {prompt}", zh="前 {prompt} 行是提示，到横线为止"),
    "page-no-key": Words(en="learned sink receives {share} %", zh="可学习的汇（sink）得到 {share}% 的注意力"),
    "page-first": Words(en="first token receives {share} %", zh="第一个词元得到 {share}% 的注意力"),
    "page-merged-characters": Words(
        en="parts of characters are merged: keys summed, queries averaged",
        zh="字符的各部分已合并：键相加，查询取平均",
    ),
    "page-merged-words": Words(
        en="tokens are merged to words: keys summed, queries averaged",
        zh="词元已合并成词：键相加，查询取平均",
    ),
    "page-bend": Words(
        en="square root up to {bend}, logarithmic above: a few large weights do not darken the others",
        zh="{bend} 以下按平方根，以上按对数：少数大权重不会压暗其余权重",
    ),
    "page-nothing": Words(en="nothing to draw: {T} queries, {S} keys", zh="没有可画的内容：{T} 个查询，{S} 个键"),
    # --- reading a cell ---
    "page-map": Words(
        en="Attention map. Rows look at columns. Arrow keys move from cell to cell.",
        zh="注意力图。行：谁在看；列：被看的。用方向键逐格移动。",
    ),
    "page-query": Words(en="query", zh="查询"),
    "page-key": Words(en="key", zh="键"),
    "page-weight": Words(en="weight", zh="权重"),
    "page-none": Words(en="hidden, or exactly 0", zh="不可见，或恰为 0"),
    "page-blind": Words(en="this query sees nothing", zh="这个查询什么也看不到"),
    "page-looks": Words(en="Where it looks", zh="它在看谁"),
    "page-seen": Words(en="Who looks at it", zh="谁在看它"),
    "page-text": Words(en="The text, as this query sees it", zh="这个查询眼中的文本"),
    # --- below ---
    "page-keys": Words(
        en="Keys: arrows move in the map, with Shift by ten; brackets change the head, comma and full stop the layer, "
        "c colours, l language, d light or dark; a click holds a cell, Esc lets it go",
        zh="按键：在图上用方向键移动，加 Shift 一次十格；方括号换头，逗号和句号换层，c 换颜色，l 换语言，d 换深浅；"
        "点击可固定一格，Esc 取消固定",
    ),
    "page-honest": Words(
        en="A weight says where a head read from, not why the model answered as it did. To test a reason, silence "
        "the head and look at what changes: regard.effect.",
        zh="权重说明一个头从哪里读取，并不说明模型为什么这样回答。想验证原因，请关掉这个头，看结果变了多少：regard.effect。",
    ),
    "page-noscript": Words(
        en="This page draws with JavaScript, which is switched off here; trace.plot() draws without.",
        zh="本页用 JavaScript 绘图，而这里关闭了它；trace.plot() 不需要它。",
    ),
}
