"""Texts of the HTML page that `trace.html` writes. The page holds both languages and fills in the values itself."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- controls ---
    "page-title": Message(en="Where attention looks", zh="注意力看向哪里"),
    "page-layer": Message(en="Layer", zh="层"),
    "page-head": Message(en="Head", zh="头"),
    "page-heads": Message(en="Heads of this layer", zh="这一层的头"),
    "page-scale": Message(en="Colours", zh="颜色"),
    "page-auto": Message(en="square root, logarithmic for the largest", zh="平方根（最大的权重用对数）"),
    "page-linear": Message(en="linear", zh="线性"),
    "page-log": Message(en="logarithmic", zh="对数"),
    "page-renormalised": Message(en="without the first token, rows sum to 1", zh="略去首词元，每行重新归一化"),
    "page-hidden": Message(en="without the first token", zh="略去首词元"),
    "page-theme": Message(en="Light or dark", zh="切换深浅色"),
    "page-picture": Message(en="Save picture", zh="保存图片"),
    # --- title ---
    "page-kind-self": Message(en="self-attention", zh="自注意力"),
    "page-kind-encoder": Message(en="encoder self-attention", zh="编码器自注意力"),
    "page-kind-decoder": Message(en="decoder self-attention", zh="解码器自注意力"),
    "page-kind-cross": Message(en="cross-attention", zh="交叉注意力"),
    "page-size": Message(en="{T} queries × {S} keys", zh="{T} 个查询 × {S} 个键"),
    "page-part": Message(
        en="queries {rows}, keys {cols}, of {T} × {S}",
        zh="查询 {rows}，键 {cols}（全图 {T} × {S}）",
    ),
    "page-sample": Message(en="sample {sample} of {count}", zh="样本 {sample}（共 {count} 个）"),
    "page-cell": Message(en="each cell is {high} × {wide} tokens", zh="每格为 {high} × {wide} 个词元"),
    "page-rows-write": Message(en="rows: token read → token written", zh="行：读入的词元 → 写出的词元"),
    "page-rows-read": Message(
        en="rows: the token just read, from which the next is written", zh="行：刚读入的词元，据此写出下一个"
    ),
    "page-rows-look": Message(en="rows look at columns", zh="行：谁在看；列：被看的"),
    "page-prompt": Message(en="rows of the prompt, above the line: {prompt}", zh="前 {prompt} 行是提示（横线以上）"),
    "page-no-key": Message(en="learned sink receives {share} %", zh="可学习的汇（sink）得到 {share}% 的注意力"),
    "page-first": Message(en="first token receives {share} %", zh="第一个词元得到 {share}% 的注意力"),
    "page-merged-characters": Message(
        en="parts of characters are merged: keys summed, queries averaged",
        zh="字符的各部分已合并：键相加，查询取平均",
    ),
    "page-merged-words": Message(
        en="tokens are merged to words: keys summed, queries averaged",
        zh="词元已合并成词：键相加，查询取平均",
    ),
    "page-bend": Message(
        en="square root up to {bend}, logarithmic above: a few large weights do not darken the others",
        zh="{bend} 以下按平方根，以上按对数：少数大权重不会压暗其余权重",
    ),
    "page-nothing": Message(en="nothing to draw: {T} queries, {S} keys", zh="没有可画的内容：{T} 个查询，{S} 个键"),
    # --- selected cell ---
    "page-map": Message(
        en="Attention map. Rows look at columns. Arrow keys move from cell to cell.",
        zh="注意力图。行：谁在看；列：被看的。用方向键逐格移动。",
    ),
    "page-query": Message(en="query", zh="查询"),
    "page-key": Message(en="key", zh="键"),
    "page-weight": Message(en="weight", zh="权重"),
    "page-none": Message(en="hidden, or exactly 0", zh="不可见，或恰为 0"),
    "page-blind": Message(en="this query sees nothing", zh="这个查询什么也看不到"),
    "page-looks": Message(en="Keys this query looks at most", zh="这个查询最关注的键"),
    "page-seen": Message(en="Queries that look at this key most", zh="最关注这个键的查询"),
    "page-text": Message(en="The text, coloured by the weights of this query", zh="文本（按这个查询的权重着色）"),
    # --- footer ---
    "page-keys": Message(
        en="Keyboard: arrow keys move in the map, with Shift by ten cells; brackets change the head, comma and full "
        "stop the layer, c the colours, l the language, d light or dark. A click pins a cell, Esc unpins it.",
        zh="键盘：在图上用方向键移动，加 Shift 一次十格；方括号换头，逗号和句号换层，c 换颜色，l 换语言，d 换深浅。"
        "点击可固定一格，Esc 取消固定。",
    ),
    "page-honest": Message(
        en="A weight shows where a head reads from, not why the model gives its answer. To test a cause, switch the "
        "head off and measure what changes: regard.effect.",
        zh="权重说明一个头从哪里读取，不说明模型为什么这样回答。要验证原因，请关闭这个头，看结果变化多少：regard.effect。",
    ),
    "page-noscript": Message(
        en="This page needs JavaScript, which is disabled here; trace.plot() works without it.",
        zh="本页需要 JavaScript，而它已被禁用；trace.plot() 不需要它。",
    ),
}
