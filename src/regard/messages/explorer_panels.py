"""Texts of the explorer's panels: numbers, compare, generation, image and effect. The front end fills in the values."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- numbers: the panel ---
    "explorer-numbers-title": Message(en="The arithmetic of one query", zh="一个查询的计算过程"),
    "explorer-numbers-query": Message(en="Query", zh="查询"),
    "explorer-numbers-steps": Message(en="Steps", zh="步骤"),
    "explorer-numbers-back": Message(en="Back", zh="上一步"),
    "explorer-numbers-next": Message(en="Next step", zh="下一步"),
    "explorer-numbers-hint": Message(
        en="Space: next step, Shift + Space: back. Arrow keys move between the numbers, Ctrl + arrow keys past a "
        "vector. A cell lights the cells it was computed from.",
        zh="空格键：下一步；Shift + 空格键：上一步。方向键在数字间移动，按住 Ctrl 跳过整个向量。"
        "选中一格，算出它的各格会亮起。",
    ),
    "explorer-numbers-copy": Message(en="Copy as NumPy", zh="复制为 NumPy 代码"),
    "explorer-numbers-copied": Message(en="Copied", zh="已复制"),
    "explorer-numbers-code": Message(en="NumPy code", zh="NumPy 代码"),
    "explorer-numbers-key": Message(en="key", zh="键"),
    "explorer-numbers-total": Message(en="all keys", zh="所有键"),
    "explorer-numbers-others": Message(en="{count} other keys", zh="其余 {count} 个键"),
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
    "explorer-numbers-heading-output": Message(en="Add the weighted values: the output", zh="加权的值相加：得到输出"),
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
        en="On average, {share} % of a query's attention goes to other keys.",
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
        zh="nat（两次预测的 KL 散度）：在这里几乎不起作用。",
    ),
    "explorer-effect-much": Message(
        en="nats between the two predictions: the prediction changed.", zh="nat（两次预测的 KL 散度）：预测改变了。"
    ),
    "explorer-effect-norms": Message(
        en="What “{query}” takes: weight × ‖v W_o‖", zh="“{query}”取得的内容：权重 × ‖v W_o‖"
    ),
    "explorer-effect-value": Message(en="What “{query}” takes: weight × ‖v‖", zh="“{query}”取得的内容：权重 × ‖v‖"),
    "explorer-effect-norms-hint": Message(
        en="Bar: weight × length of the vector. Line: the weight alone.", zh="条形：权重 × 向量长度；竖线：只看权重。"
    ),
}
