"""What the views write beside a picture."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- what it is a picture of ---
    "screen-self": Words(en="self-attention", zh="自注意力"),
    "screen-encoder": Words(en="encoder self-attention", zh="编码器自注意力"),
    "screen-decoder": Words(en="decoder self-attention", zh="解码器自注意力"),
    "screen-cross": Words(en="cross-attention", zh="交叉注意力"),
    "screen-size": Words(en="queries × keys: {T} × {S}", zh="查询 × 键：{T} × {S}"),
    "screen-part-queries": Words(en="queries {places}", zh="查询 {places}"),
    "screen-part-keys": Words(en="keys {places}", zh="键 {places}"),
    "screen-part-of": Words(en="of {T} × {S}", zh="全图 {T} × {S}"),
    "screen-head-of": Words(en="head {head} of {count}", zh="头 {head}（共 {count} 个）"),
    "screen-heads": Words(en="{count} heads", zh="{count} 个头"),
    "screen-layers": Words(en="{count} layers", zh="{count} 层"),
    "screen-sample": Words(en="sample {sample} of {count}", zh="样本 {sample}（共 {count} 个）"),
    "screen-head": Words(en="head {head}", zh="头 {head}"),
    "screen-mean": Words(en="mean of all heads", zh="各头平均"),
    "screen-head-column": Words(en="head", zh="头"),
    "screen-layer": Words(en="layer {layer}", zh="层 {layer}"),
    "screen-layer-of-kind": Words(en="layer {layer} · {kind}", zh="第 {layer} 层 · {kind}"),
    "screen-telling": Words(
        en="of {count} heads, the one with the clearest pattern here",
        zh="{count} 个头中，在这段文本上规律最清楚的一个",
    ),
    "screen-named": Words(
        en="of {count} heads, the one that the model's settings name first",
        zh="{count} 个头中，模型设置里列在最前的一个",
    ),
    # --- how to read it ---
    "screen-rows-look": Words(en="rows look at columns", zh="行：谁在看；列：被看的"),
    "screen-rows-write": Words(
        en="rows: token read → token written; they look at columns", zh="行：读入的词元 → 写出的词元；列：被看的"
    ),
    "screen-rows-read": Words(
        en="rows: the token just read, the next one is written there; they look at columns",
        zh="行：刚读入的词元，由此写出下一个；列：被看的",
    ),
    "screen-two-rows": Words(en="two rows a line", zh="每行文字对应上下两行"),
    "screen-cell": Words(en="each cell is {high} × {wide} tokens", zh="每格为 {high} × {wide} 个词元"),
    "screen-cell-last": Words(
        en="each cell is {high} × {wide} tokens, the last ones fewer", zh="每格为 {high} × {wide} 个词元，末尾的不足"
    ),
    "screen-cell-most": Words(en="each cell is up to {high} × {wide} tokens", zh="每格至多 {high} × {wide} 个词元"),
    "screen-hidden": Words(en="dots: hidden or exactly 0", zh="点：不可见，或恰为 0"),
    "screen-hidden-blank": Words(en="blank: hidden or exactly 0", zh="空白：不可见，或恰为 0"),
    # `width` and `html` are what these are called in Python and, with two dashes, in the shell.
    "screen-positions": Words(
        en="columns are numbered: width {width}, or html, shows their words",
        zh="列上只标位置：width 设为 {width}，或改用 html，可看到词元",
    ),
    "screen-positions-page": Words(
        en="columns are numbered: html shows their words", zh="列上只标位置：改用 html 可看到词元"
    ),
    "screen-blind": Words(en="∅ sees nothing", zh="∅ 什么也看不到"),
    "screen-blind-count": Words(en="{count} rows see nothing", zh="有 {count} 行什么也看不到"),
    "screen-thousandths": Words(en="numbers are thousandths", zh="数字以千分之一为单位"),
    "screen-times": Words(en="numbers are weights times {factor:,}", zh="数字是权重的 {factor:,} 倍"),
    "screen-bad": Words(en="red or !: NaN", zh="红色或 !：NaN"),
    "screen-nothing": Words(en="nothing to draw: {T} queries, {S} keys", zh="没有可画的内容：{T} 个查询，{S} 个键"),
    "screen-prompt": Words(en="rows of the prompt: {count}", zh="前 {count} 行是提示"),
    "screen-scale-linear": Words(en="colour goes with the weight", zh="颜色与权重成正比"),
    "screen-scale-log": Words(en="colour goes with the logarithm", zh="颜色按对数变化"),
    "screen-scale-renormalised": Words(
        en="keys left out at the start: {count}; the rest of each row brought to a sum of 1",
        zh="略去前 {count} 个词元，每行其余权重重新归一",
    ),
    "screen-scale-hidden": Words(en="keys left out at the start: {count}", zh="略去前 {count} 个词元"),
    "screen-merged-characters": Words(
        en="parts of characters are merged: keys summed, queries averaged",
        zh="字符的各部分已合并：键相加，查询取平均",
    ),
    "screen-merged-words": Words(
        en="tokens are merged to words: keys summed, queries averaged",
        zh="词元已合并成词：键相加，查询取平均",
    ),
    # --- what to notice ---
    "screen-first": Words(en="first token receives {share} %", zh="第一个词元得到 {share}% 的注意力"),
    "screen-no-key": Words(en="learned sink receives {share} %", zh="可学习的汇（sink）得到 {share}% 的注意力"),
    "screen-first-heads": Words(
        en="first token receives over {share} % in heads: {found}",
        zh="把 {share}% 以上的注意力放在第一个词元上的头：{found}",
    ),
    "screen-first-layers": Words(
        en="first token receives over {share} % in layers: {found}",
        zh="把 {share}% 以上的注意力放在第一个词元上的层：{found}",
    ),
    "screen-first-count": Words(
        en="first token receives over {share} % in {found} of {count} heads",
        zh="{count} 个头中有 {found} 个把 {share}% 以上的注意力放在第一个词元上",
    ),
    "screen-tokens": Words(en="tokens: ", zh="词元："),
    "screen-queries": Words(en="queries: ", zh="查询："),
    "screen-keys": Words(en="keys: ", zh="键："),
    # --- matplotlib ---
    "plot-rows-look": Words(en="query position", zh="查询位置"),
    "plot-rows-write": Words(en="token read → token written", zh="读入的词元 → 写出的词元"),
    "plot-rows-read": Words(en="token just read", zh="刚读入的词元"),
    "plot-keys": Words(en="key position", zh="键位置"),
    "plot-first": Words(en="first {share} %", zh="首词元 {share}%"),
    "plot-weight": Words(en="weight", zh="权重"),
    "plot-scale-root": Words(en="square-root scale", zh="平方根刻度"),
    "plot-scale-bend": Words(en="above {weight} logarithmic", zh="{weight} 以上为对数刻度"),
    "plot-hidden": Words(en="grey: hidden or exactly 0", zh="灰色：不可见，或恰为 0"),
    "plot-bad": Words(en="red: NaN", zh="红色：NaN"),
    "plot-thinned": Words(en="one token in {step} is named", zh="每 {step} 个词元标一个"),
    "plot-crowded": Words(en="too many tokens to name: positions", zh="词元太多，只标位置"),
    "plot-no-font": Words(
        en="no font for Chinese, Japanese or Korean was found, so matplotlib writes the positions of such tokens "
        "in their place; install one, for example Noto Sans CJK SC",
        zh="没有找到中日韩字体，matplotlib 只能写出这些词元的位置；请安装一种，例如 Noto Sans CJK SC",
    ),
}
