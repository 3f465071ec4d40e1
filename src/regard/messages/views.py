"""Texts of the views: captions and notes in the terminal, labels in matplotlib."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- title ---
    "screen-self": Message(en="self-attention", zh="自注意力"),
    "screen-encoder": Message(en="encoder self-attention", zh="编码器自注意力"),
    "screen-decoder": Message(en="decoder self-attention", zh="解码器自注意力"),
    "screen-cross": Message(en="cross-attention", zh="交叉注意力"),
    "screen-size": Message(en="queries × keys: {T} × {S}", zh="查询 × 键：{T} × {S}"),
    "screen-part-queries": Message(en="queries {places}", zh="查询 {places}"),
    "screen-part-keys": Message(en="keys {places}", zh="键 {places}"),
    "screen-part-of": Message(en="of {T} × {S}", zh="全图 {T} × {S}"),
    "screen-head-of": Message(en="head {head} of {count}", zh="头 {head}（共 {count} 个）"),
    "screen-heads": Message(en="{count} heads", zh="{count} 个头"),
    "screen-layers": Message(en="{count} layers", zh="{count} 层"),
    "screen-sample": Message(en="sample {sample} of {count}", zh="样本 {sample}（共 {count} 个）"),
    "screen-head": Message(en="head {head}", zh="头 {head}"),
    "screen-mean": Message(en="mean of all heads", zh="各头平均"),
    "screen-head-column": Message(en="head", zh="头"),
    "screen-layer": Message(en="layer {layer}", zh="层 {layer}"),
    "screen-layer-of-kind": Message(en="layer {layer} · {kind}", zh="第 {layer} 层 · {kind}"),
    "screen-clearest": Message(
        en="of {count} heads, the one with the clearest pattern here",
        zh="{count} 个头中，在这段文本上模式最清晰的一个",
    ),
    "screen-named": Message(
        en="of {count} heads, the first one listed in the model's settings",
        zh="{count} 个头中，模型设置里列出的第一个",
    ),
    # --- notes ---
    "screen-rows-look": Message(en="rows look at columns", zh="行：查询；列：键（被关注的词元）"),
    "screen-rows-write": Message(
        en="rows: token read → token written; they look at columns", zh="行：读入的词元 → 写出的词元；列：被关注的词元"
    ),
    "screen-rows-read": Message(
        en="rows: the token just read, from which the next is written; they look at columns",
        zh="行：刚读入的词元，据此写出下一个；列：被关注的词元",
    ),
    "screen-two-rows": Message(en="two rows per line", zh="每行文字对应图中上下两行"),
    "screen-cell": Message(en="each cell is {high} × {wide} tokens", zh="每格为 {high} × {wide} 个词元"),
    "screen-cell-last": Message(
        en="each cell is {high} × {wide} tokens, the last ones fewer", zh="每格为 {high} × {wide} 个词元，末尾的格更小"
    ),
    "screen-cell-most": Message(en="each cell is up to {high} × {wide} tokens", zh="每格至多 {high} × {wide} 个词元"),
    "screen-hidden": Message(en="dots: masked or exactly 0", zh="点：被屏蔽，或恰为 0"),
    "screen-hidden-blank": Message(en="blank: masked or exactly 0", zh="空白：被屏蔽，或恰为 0"),
    # `width` and `html` are arguments in Python; on the command line the options are --width and --html.
    "screen-positions": Message(
        en="columns show positions: width {width}, or html, shows the tokens",
        zh="列上只标位置：width 设为 {width}，或改用 html，可看到词元",
    ),
    "screen-positions-page": Message(
        en="columns show positions: html shows the tokens", zh="列上只标位置：改用 html 可看到词元"
    ),
    "screen-fully-masked": Message(en="∅ sees nothing", zh="∅ 什么也看不到"),
    "screen-fully-masked-count": Message(en="{count} rows see nothing", zh="有 {count} 行什么也看不到"),
    "screen-thousandths": Message(en="numbers are thousandths", zh="数字以千分之一为单位"),
    "screen-times": Message(en="numbers are weights times {factor:,}", zh="数字是权重的 {factor:,} 倍"),
    "screen-bad": Message(en="red or !: NaN", zh="红色或 !：NaN"),
    "screen-nothing": Message(en="nothing to draw: {T} queries, {S} keys", zh="没有可画的内容：{T} 个查询，{S} 个键"),
    "screen-prompt": Message(en="rows of the prompt: {count}", zh="前 {count} 行是提示词"),
    "screen-scale-linear": Message(en="colour is proportional to the weight", zh="颜色与权重成正比"),
    "screen-scale-log": Message(en="colour is logarithmic", zh="颜色按对数变化"),
    "screen-scale-renormalised": Message(
        en="keys left out at the start: {count}; rows normalised to a sum of 1",
        zh="略去前 {count} 个词元，每行其余权重重新归一化",
    ),
    "screen-scale-hidden": Message(en="keys left out at the start: {count}", zh="略去前 {count} 个词元"),
    "screen-merged-characters": Message(
        en="parts of characters are merged: keys summed, queries averaged",
        zh="字符的各部分已合并：键相加，查询取平均",
    ),
    "screen-merged-words": Message(
        en="tokens are merged to words: keys summed, queries averaged",
        zh="词元已合并成词：键相加，查询取平均",
    ),
    # --- sinks and tokens ---
    "screen-first": Message(en="first token receives {share} %", zh="第一个词元得到 {share}% 的注意力"),
    "screen-no-key": Message(
        en="learned sink receives {share} %", zh="可学习的注意力汇（attention sink）得到 {share}% 的注意力"
    ),
    "screen-first-heads": Message(
        en="first token receives over {share} % in heads: {found}",
        zh="把 {share}% 以上的注意力放在第一个词元上的头：{found}",
    ),
    "screen-first-layers": Message(
        en="first token receives over {share} % in layers: {found}",
        zh="把 {share}% 以上的注意力放在第一个词元上的层：{found}",
    ),
    "screen-first-count": Message(
        en="first token receives over {share} % in {found} of {count} heads",
        zh="{count} 个头中有 {found} 个把 {share}% 以上的注意力放在第一个词元上",
    ),
    "screen-tokens": Message(en="tokens: ", zh="词元："),
    "screen-queries": Message(en="queries: ", zh="查询："),
    "screen-keys": Message(en="keys: ", zh="键："),
    # --- matplotlib ---
    "plot-rows-look": Message(en="query position", zh="查询位置"),
    "plot-rows-write": Message(en="token read → token written", zh="读入的词元 → 写出的词元"),
    "plot-rows-read": Message(en="token just read", zh="刚读入的词元"),
    "plot-keys": Message(en="key position", zh="键位置"),
    "plot-first": Message(en="first {share} %", zh="首词元 {share}%"),
    "plot-weight": Message(en="weight", zh="权重"),
    # --- attention over pictures ---
    "image-picture": Message(en="picture {number}", zh="图 {number}"),
    "image-crop": Message(en="crop {number}", zh="切块 {number}"),
    "image-frame": Message(en="frame {number}", zh="第 {number} 帧"),
    "image-whole": Message(en="whole picture", zh="整幅图"),
    "image-of-word": Message(en="attention of “{word}”", zh="“{word}”的注意力"),
    "image-of-patch": Message(en="attention of patch ({row}, {col})", zh="图块 ({row}, {col}) 的注意力"),
    "image-of-all": Message(en="mean attention of {count} queries", zh="{count} 个查询的平均注意力"),
    "image-to-word": Message(en="attention of each patch to “{word}”", zh="各图块对“{word}”的注意力"),
    "image-to-all": Message(en="attention of each patch to {count} keys", zh="各图块对 {count} 个键的注意力"),
    "image-share": Message(en="on the picture: {share}", zh="落在图像上：{share}"),
    "image-share-several": Message(en="on {count} pictures: {share}", zh="落在 {count} 幅图像上：{share}"),
    "image-sinks": Message(
        en="on sinks: {share} (× marks {count} patches that nearly every query attends to; at the border: {border})",
        zh="落在注意力汇上：{share}（× 标出 {count} 个几乎所有查询都关注的图块；其中在边缘的：{border}）",
    ),
    "image-first-token": Message(en="the first token", zh="第一个词元"),
    "image-share-first": Message(en="on {name}: {share}", zh="落在{name}上：{share}"),
    "image-window": Message(en="uncoloured patches lie outside of the window", zh="未着色的图块在窗口之外"),
    "image-more": Message(
        en="the {shown} pictures with the largest shares, of {count}", zh="共 {count} 幅，这里是份额最大的 {shown} 幅"
    ),
    "plot-scale-root": Message(en="square-root scale", zh="平方根刻度"),
    "plot-scale-threshold": Message(en="logarithmic above {weight}", zh="{weight} 以上为对数刻度"),
    "plot-hidden": Message(en="grey: hidden or exactly 0", zh="灰色：不可见，或恰为 0"),
    "plot-bad": Message(en="red: NaN", zh="红色：NaN"),
    "plot-thinned": Message(en="one token in {step} is named", zh="每 {step} 个词元标一个"),
    "plot-crowded": Message(en="too many tokens to name: positions", zh="词元太多，只标位置"),
    "plot-no-font": Message(
        en="no font for Chinese, Japanese or Korean was found, so matplotlib labels such tokens with their positions; "
        "install one, for example Noto Sans CJK SC",
        zh="没有找到中日韩字体，matplotlib 只能用位置标注这些词元；请安装一种，例如 Noto Sans CJK SC",
    ),
    # --- explorer: requests of the front end ---
    "source-failed": Message(
        en="the kernel could not answer: {reason}",
        zh="内核无法回答：{reason}",
    ),
    "source-argument": Message(
        en="{name} of the request {ask!r} must be whole numbers; found {found}",
        zh="请求 {ask!r} 的 {name} 必须是整数；实际为 {found}",
    ),
    "effect-request": Message(
        en="an effect needs silence={{layer, head}} or cut={{layer, head, query, key}}, one of them",
        zh="测量影响需要 silence={{layer, head}} 或 cut={{layer, head, query, key}}，二者选一",
    ),
    "effect-no-model": Message(
        en="without the model its effect cannot be measured; open the trace with trace.widget(model, inputs)",
        zh="没有模型就无法测量影响；请用 trace.widget(model, inputs) 打开",
    ),
    "widget-model": Message(
        en="widget(inputs=…) needs the model that reads them: trace.widget(model, inputs)",
        zh="widget(inputs=…) 需要读取它们的模型：trace.widget(model, inputs)",
    ),
    "widget-inputs": Message(
        en="widget(model) needs the inputs that the model was called with: trace.widget(model, inputs)",
        zh="widget(model) 需要调用模型时的输入：trace.widget(model, inputs)",
    ),
    "widget-seen": Message(
        en="a LanguageModel needs what its see() returned, or a text; found {found}: "
        "seen = lm.see(text); seen.trace.widget(lm, seen)",
        zh="LanguageModel 需要它的 see() 返回的结果或一段文本；实际为 {found}："
        "seen = lm.see(text); seen.trace.widget(lm, seen)",
    ),
    "numbers-not-kept": Message(
        en="record {name!r} did not keep q and k, so its arithmetic cannot be shown; request them beforehand: "
        "see=See(qk=True, v=True)",
        zh="记录 {name!r} 没有保留 q 和 k，无法显示计算过程；请事先要求保留：see=See(qk=True, v=True)",
    ),
    "source-range": Message(
        en="{name} {start}–{stop} are outside of the {length} positions of this map; choose a range inside it",
        zh="{name} 的范围 {start}–{stop} 不在图的 {length} 个位置之内；请选择图内的范围",
    ),
}
