"""Texts of the views: captions and notes in the terminal, labels in matplotlib, and the panels of the explorer.

The panels are numbers, compare, generation, image and effect. The front end fills in the values.
"""

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
    # --- panels of the explorer ---
    # --- numbers: the panel ---
    "explorer-numbers-title": Message(en="The arithmetic of one query", zh="一个查询的计算过程"),
    "explorer-numbers-query": Message(en="Query", zh="查询"),
    "explorer-numbers-steps": Message(en="Steps", zh="步骤"),
    "explorer-numbers-back": Message(en="Back", zh="上一步"),
    "explorer-numbers-next": Message(en="Next step", zh="下一步"),
    "explorer-numbers-hint": Message(
        en="Space: next step, Shift + Space: back. Arrow keys move between the numbers, Ctrl + arrow keys past a "
        "vector. A cell lights the cells it was computed from.",
        zh="空格键：下一步；Shift + 空格键：上一步。方向键逐格移动，按住 Ctrl 跳过整个向量。"
        "选中一格，算出它的各格会亮起。",
    ),
    "explorer-numbers-copy": Message(en="Copy as NumPy", zh="复制为 NumPy 代码"),
    "explorer-numbers-copied": Message(en="Copied", zh="已复制"),
    "explorer-numbers-code": Message(en="NumPy code", zh="NumPy 代码"),
    "explorer-numbers-key": Message(en="key", zh="键"),
    "explorer-numbers-total": Message(en="all keys", zh="所有键"),
    "explorer-numbers-others": Message(en="other keys: {count}", zh="其余 {count} 个键"),
    "explorer-numbers-sink": Message(en="no key (sink)", zh="不属于任何键（注意力汇）"),
    "explorer-numbers-not-kept": Message(
        en="The numbers need q and k, which this trace did not keep: record it with See(qk=True).",
        zh="计算过程需要 q 和 k，而这个 Trace 没有保存它们：请用 See(qk=True) 记录。",
    ),
    "explorer-numbers-not-stored": Message(
        en="This file does not hold the numbers of this head; trace.widget() in a notebook computes those of every "
        "query.",
        zh="此文件没有保存这个头的计算过程；在笔记本中用 trace.widget() 可以计算每一个查询。",
    ),
    "explorer-numbers-other-queries": Message(
        en="Of this head the file holds the numbers of query {queries}; trace.widget() in a notebook computes those of "
        "every query.",
        zh="对于这个头，此文件只保存了查询 {queries} 的计算过程；在笔记本中用 trace.widget() 可以计算每一个查询。",
    ),
    # --- numbers: names of columns and of the cells below them ---
    "explorer-numbers-column-k": Message(en="k", zh="k"),
    "explorer-numbers-column-products": Message(en="q × k", zh="q × k"),
    "explorer-numbers-column-scores": Message(en="q · k", zh="q · k"),
    "explorer-numbers-column-scaled": Message(en="scaled", zh="缩放后"),
    "explorer-numbers-column-capped": Message(en="capped", zh="限幅后"),
    "explorer-numbers-column-biased": Message(en="with bias", zh="加偏置"),
    "explorer-numbers-column-masked": Message(en="masked", zh="掩码后"),
    "explorer-numbers-column-shifted": Message(en="− max", zh="减最大值"),
    "explorer-numbers-column-powers": Message(en="exp", zh="exp"),
    "explorer-numbers-column-weights": Message(en="weight", zh="权重"),
    "explorer-numbers-column-v": Message(en="v", zh="v"),
    "explorer-numbers-column-weighted": Message(en="weight × v", zh="权重 × v"),
    "explorer-numbers-total-largest": Message(en="largest", zh="最大值"),
    "explorer-numbers-total-sum": Message(en="sum", zh="总和"),
    "explorer-numbers-total-output": Message(en="output", zh="输出"),
    # --- numbers: the steps, in short ---
    "explorer-numbers-short-vectors": Message(en="q, k", zh="q、k"),
    "explorer-numbers-short-products": Message(en="multiply", zh="相乘"),
    "explorer-numbers-short-scores": Message(en="add", zh="相加"),
    "explorer-numbers-short-scaled": Message(en="scale", zh="缩放"),
    "explorer-numbers-short-capped": Message(en="softcap", zh="限幅"),
    "explorer-numbers-short-biased": Message(en="bias", zh="偏置"),
    "explorer-numbers-short-masked": Message(en="mask", zh="掩码"),
    "explorer-numbers-short-shifted": Message(en="− max", zh="减最大值"),
    "explorer-numbers-short-powers": Message(en="exp", zh="exp"),
    "explorer-numbers-short-sums": Message(en="sum", zh="求和"),
    "explorer-numbers-short-weights": Message(en="weights", zh="权重"),
    "explorer-numbers-short-weighted": Message(en="× v", zh="× v"),
    "explorer-numbers-short-output": Message(en="output", zh="输出"),
    # --- numbers: the steps, as formulas and in words ---
    "explorer-numbers-heading-vectors": Message(
        en="One query q, and a key k for each word", zh="一个查询 q，每个词一个键 k"
    ),
    "explorer-numbers-step-vectors": Message(
        en="“{query}” asks with its query; every word answers with its key. Both have {E} numbers.",
        zh="“{query}”用查询来提问，每个词用自己的键来应答；两者都是 {E} 个数。",
    ),
    "explorer-numbers-heading-products": Message(en="q × k: multiply dimension by dimension", zh="q × k：逐维相乘"),
    "explorer-numbers-step-products": Message(
        en="Where both numbers are large and have the same sign, the product is large: query and key agree there.",
        zh="两个数都大且符号相同，乘积就大：查询与键在这一维上相符。",
    ),
    "explorer-numbers-heading-scores": Message(
        en="q · k: add the products to one score", zh="q · k：把乘积相加，得到得分"
    ),
    "explorer-numbers-step-scores": Message(
        en="The dot product says how well query and key match.", zh="这就是点积：查询与键越相配，它越大。"
    ),
    "explorer-numbers-heading-scaled": Message(en="÷ √{E}: scale", zh="÷ √{E}：缩放"),
    "explorer-numbers-step-scaled": Message(
        en="Divide every score by √{E} = {root}: otherwise wide vectors give large scores, and softmax selects "
        "one key.",
        zh="每个得分都除以 √{E} = {root}：否则向量越宽得分越大，softmax 几乎只选中一个键。",
    ),
    "explorer-numbers-heading-scaled-given": Message(en="× {scale}: scale", zh="× {scale}：缩放"),
    "explorer-numbers-step-scaled-given": Message(
        en="Multiply every score by the model's own scale, {scale}.", zh="每个得分都乘以模型自己的缩放系数 {scale}。"
    ),
    "explorer-numbers-heading-capped": Message(
        en="{cap} · tanh(score / {cap}): softcap", zh="{cap} · tanh(得分 / {cap})：限幅"
    ),
    "explorer-numbers-step-capped": Message(
        en="Softcapping keeps every score between −{cap} and {cap}.",
        zh="限幅（softcap）使每个得分都在 −{cap} 与 {cap} 之间。",
    ),
    "explorer-numbers-heading-biased": Message(en="+ bias", zh="+ 偏置"),
    "explorer-numbers-step-biased": Message(
        en="Add the model's bias, which depends on the positions of query and key.",
        zh="加上模型的偏置，它取决于查询与键的位置。",
    ),
    "explorer-numbers-heading-masked": Message(en="Mask the keys that are not visible", zh="屏蔽不可见的键"),
    "explorer-numbers-step-masked": Message(
        en="Where a key is masked, the score becomes −∞, so that its weight is exactly 0.",
        zh="被屏蔽的键，得分改为 −∞，这样它的权重恰好是 0。",
    ),
    "explorer-numbers-heading-shifted": Message(
        en="Subtract the largest score, {largest}", zh="减去最大的得分 {largest}"
    ),
    "explorer-numbers-step-shifted": Message(
        en="The weights stay the same, and no exponential overflows.", zh="权重不变，而指数运算不会溢出。"
    ),
    "explorer-numbers-heading-powers": Message(en="exp: raise e to each number", zh="exp：以 e 为底取幂"),
    "explorer-numbers-step-powers": Message(
        en="Nothing is negative now, and the largest becomes exp(0) = 1.", zh="不再有负数，最大的那个变成 exp(0) = 1。"
    ),
    "explorer-numbers-heading-sums": Message(en="Add up the powers", zh="把幂加起来"),
    "explorer-numbers-step-sums": Message(
        en="Their sum turns the powers into shares of 1 in the next step.",
        zh="下一步用这个和，把幂变成总和为 1 的份额。",
    ),
    "explorer-numbers-heading-weights": Message(
        en="Divide by the sum: the attention weights", zh="除以总和：得到注意力权重"
    ),
    "explorer-numbers-step-weights": Message(
        en="These are the weights that the map shows. All of them together make 1.",
        zh="这就是热力图上显示的权重，全部加起来等于 1。",
    ),
    "explorer-numbers-heading-weighted": Message(en="Multiply each value v by its weight", zh="每个值 v 乘以它的权重"),
    "explorer-numbers-step-weighted": Message(
        en="A word with a small weight adds almost nothing, whatever its value is.",
        zh="权重小的词，无论值是多少，都几乎不起作用。",
    ),
    "explorer-numbers-heading-output": Message(en="Add the weighted values: the output", zh="加权后的值相加：得到输出"),
    "explorer-numbers-step-output": Message(
        en="The output is what “{query}” has read from all words. The model continues with it.",
        zh="输出就是“{query}”从所有词中读到的内容，模型用它继续计算。",
    ),
    # --- compare ---
    "explorer-compare-title": Message(en="Compare", zh="对比"),
    "explorer-compare-with": Message(en="Compare with", zh="对比对象"),
    "explorer-compare-as": Message(en="Shown as", zh="显示方式"),
    "explorer-compare-as-side": Message(en="Side by side", zh="并排"),
    "explorer-compare-as-difference": Message(en="Difference", zh="差值"),
    "explorer-compare-minus": Message(en="{right} minus {left}", zh="{right} 减去 {left}"),
    "explorer-compare-more": Message(en="more in {name}", zh="{name} 更多"),
    "explorer-compare-masked": Message(en="0 on both sides", zh="两边都为 0"),
    "explorer-compare-only": Message(en="only in {name}", zh="只有 {name} 有"),
    "explorer-compare-map": Message(
        en="Rows look at columns; arrow keys move from cell to cell.",
        zh="行：查询；列：键（被关注的词元）。用方向键逐格移动。",
    ),
    "explorer-compare-cell": Message(
        en="{query} → {key}: {one} in {left}, {two} in {right}, difference {by}",
        zh="{query} → {key}：{left} 为 {one}，{right} 为 {two}，相差 {by}",
    ),
    "explorer-compare-moved": Message(
        en="On average, {share}\u00a0% of a query's attention goes to other keys.",
        zh="平均而言，每个查询有 {share}% 的注意力落在不同的键上。",
    ),
    "explorer-compare-largest": Message(en="Largest differences", zh="差别最大的地方"),
    "explorer-compare-sizes": Message(
        en="These two maps have different sizes, so they are shown side by side and not subtracted.",
        zh="两张图的大小不同，因此只并排显示，不计算差值。",
    ),
    # --- generation ---
    "explorer-effect-measuring": Message(
        en="Silencing each head in turn: {done} of {count}", zh="正在逐个关闭各个头：{done}/{count}"
    ),
    "explorer-generation-title": Message(en="Written token by token", zh="逐个词元生成"),
    "explorer-generation-step": Message(en="Written token", zh="写出的词元"),
    "explorer-generation-place": Message(en="{at} of {count}", zh="第 {at} 个，共 {count} 个"),
    "explorer-generation-value": Message(
        en="token {at} of {count}: {token}", zh="第 {at} 个词元，共 {count} 个：{token}"
    ),
    "explorer-generation-play": Message(en="Play", zh="播放"),
    "explorer-generation-stop": Message(en="Stop", zh="停止"),
    "explorer-generation-next": Message(en="Next", zh="下一个"),
    "explorer-generation-hint": Message(
        en="The framed token is being written; the brighter a token before it, the more it is read at this moment.",
        zh="带框的词元正在写出；它前面的词元越亮，此刻被读取得越多。",
    ),
    "explorer-generation-hint-cross": Message(
        en="The framed token is being written; lines lead to the source words that it reads.",
        zh="带框的词元正在写出；连线指向它此刻读取的原文词语。",
    ),
    "explorer-generation-prompt": Message(en="prompt", zh="提示词"),
    "explorer-generation-answer": Message(en="answer", zh="回答"),
    "explorer-generation-others": Message(en="all other tokens", zh="其余所有词元"),
    "explorer-temperature": Message(en="Temperature T", zh="温度 T"),
    "explorer-temperature-hint": Message(
        en="Exact: each probability p becomes p^(1/T), divided by the sum over the whole vocabulary. The line marks p.",
        zh="数值精确：每个概率 p 变为 p^(1/T)，再除以整个词表上的总和；竖线标出 p。",
    ),
    "explorer-generation-likely": Message(en="Likely next tokens", zh="可能的下一个词元"),
    "explorer-generation-alignment": Message(en="Read from the source text", zh="从原文读取"),
    "explorer-generation-beams": Message(en="Beams", zh="束搜索的候选"),
    "explorer-generation-beams-hint": Message(
        en="The first is the answer; what differs is underlined. The number is its score: log-probability by length.",
        zh="第一个是最终答案；带下划线的词元与它不同。数字是搜索的得分：按长度归一化的对数概率。",
    ),
    # --- image ---
    "explorer-image-title": Message(en="Words and the picture", zh="词与图像"),
    "explorer-image-hint": Message(
        en="Point at a word: the picture is lit where it looks. Point at the picture: the words that look there.",
        zh="指向一个词，它看的地方就会亮起；指向图像的一块，就列出看这里的词。",
    ),
    "explorer-image-keys": Message(en="Picture; arrow keys move from patch to patch.", zh="图像；用方向键逐块移动。"),
    "explorer-image-word": Message(
        en="“{word}” gives {share} % of its attention to the picture.", zh="“{word}”把 {share}% 的注意力给了这幅图像。"
    ),
    "explorer-image-patch-gives": Message(
        en="The patch in row {row}, column {col} gives {share} % of its attention to the picture.",
        zh="第 {row} 行第 {col} 列的图块把 {share}% 的注意力给了图像。",
    ),
    "explorer-image-patch": Message(
        en="Words that look at row {row}, column {col} of the picture", zh="看图像第 {row} 行第 {col} 列的词"
    ),
    "explorer-image-pooled": Message(
        en="Each weight is a mean over {high} × {wide} positions: exact ones need q and k (See(qk=True)).",
        zh="每个权重是 {high} × {wide} 个位置的平均：要得到精确值，需要 q 和 k（See(qk=True)）。",
    ),
    # --- effect ---
    "explorer-effect-title": Message(en="Did it matter?", zh="它起作用了吗？"),
    "explorer-effect-honest": Message(
        en="Attention is not explanation: a large weight shows what was read, not that the answer depends on it.",
        zh="注意力不等于解释：权重大，只说明读了什么，不说明答案取决于它。",
    ),
    "explorer-effect-how": Message(
        en="To test it here, open the trace with its model and its inputs: trace.widget(model, inputs).",
        zh="要在这里检验，请连同模型和它的输入一起打开：trace.widget(model, inputs)。",
    ),
    "explorer-effect-silence": Message(en="Silence this head", zh="关闭这个头"),
    "explorer-effect-cut": Message(en="Cut {edge}", zh="切断 {edge}"),
    "explorer-effect-cut-none": Message(en="Select a cell to cut it", zh="选中一格即可切断"),
    "explorer-effect-without": Message(en="The next token without {what}", zh="去掉 {what} 之后的下一个词元"),
    "explorer-effect-bars": Message(en="Line: before. Bar: after.", zh="竖线：之前；条形：之后。"),
    "explorer-effect-little": Message(
        en="nats between the two predictions: it hardly mattered here.",
        zh="奈特（两次预测的 KL 散度）：在这里几乎不起作用。",
    ),
    "explorer-effect-much": Message(
        en="nats between the two predictions: the prediction changed.", zh="奈特（两次预测的 KL 散度）：预测改变了。"
    ),
    "explorer-effect-norms": Message(
        en="What “{query}” takes: weight × ‖v W_o‖", zh="“{query}”取得的内容：权重 × ‖v W_o‖"
    ),
    "explorer-effect-value": Message(en="What “{query}” takes: weight × ‖v‖", zh="“{query}”取得的内容：权重 × ‖v‖"),
    "explorer-effect-norms-hint": Message(
        en="Bar: weight × length of the vector. Line: the weight alone.", zh="条形：权重 × 向量长度；竖线：只看权重。"
    ),
}
