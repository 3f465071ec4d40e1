"""Texts of the explorer: its frame and the panels model, map, lines, sentence and neighbours.

The front end holds both languages and fills in the values itself. Its other panels have theirs in `views`.
"""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- frame ---
    "explorer-title": Message(en="Where attention looks", zh="注意力看向哪里"),
    "explorer-lead-map": Message(
        en="A neural network reads every word together with others: each row is a word that reads (the query); the "
        "brighter a cell, the more it takes from the word of its column (the key).",
        zh="神经网络读一个词时，也读别的词：每一行是一个正在读取的词（查询）；格子越亮，它从这一列的词（键）中取得的信息越多。",
    ),
    "explorer-lead-lines": Message(
        en="A line runs from a word that reads to a word it reads from. The thicker the line, the more it takes.",
        zh="每条线从正在读取的词连到被读取的词；线越粗，取得的信息越多。",
    ),
    "explorer-lead-sentence": Message(
        en="Choose a word. The brighter the others, the more it takes from them, or they from it.",
        zh="选一个词：其余的词越亮，它从它们那里取得的信息越多，或它们从它那里取得的越多。",
    ),
    "explorer-lead-generation": Message(
        en="How the text was written, token by token: the brighter a word, the more was read from it.",
        zh="文字是逐个词元写出来的：词越亮，写出时从它读取的信息越多。",
    ),
    "explorer-lead-compare": Message(
        en="Two maps side by side, where the same colour is the same weight; or their difference.",
        zh="两张热力图并排，颜色相同则权重相同；也可以看两者之差。",
    ),
    "explorer-lead-model": Message(
        en="Every tile is one head: one way in which the model reads from other words. Rows are layers. Open one to "
        "see where it looks.",
        zh="每一小格是一个头，即模型读取其他词的一种方式；每行是一层。点开即可看到它看向哪里。",
    ),
    "explorer-lead-numbers": Message(
        en="How the weights come about: the arithmetic of one word that reads, step by step.",
        zh="权重是怎样得出的：逐步算出一个正在读取的词的注意力。",
    ),
    "explorer-noscript": Message(
        en="This page needs JavaScript, which is disabled here; trace.plot() works without it.",
        zh="本页需要 JavaScript，而它已被禁用；trace.plot() 不需要它。",
    ),
    "explorer-honest": Message(
        en="A weight shows where a head reads from, not why the model gives its answer. To test a cause, switch the "
        "head off and measure what changes: regard.effect.",
        zh="权重说明一个头从哪里读取，不说明模型为什么这样回答。要验证原因，请关闭这个头，看结果变化多少：regard.effect。",
    ),
    "explorer-footer": Message(
        en="Everything works by keyboard: press ? for the list.", zh="所有操作都能用键盘完成：按 ? 查看按键。"
    ),
    # --- choices ---
    "explorer-depth": Message(en="Depth", zh="层级"),
    "explorer-depth-model": Message(en="Model", zh="模型"),
    "explorer-depth-head": Message(en="Head", zh="头"),
    "explorer-depth-numbers": Message(en="Numbers", zh="计算"),
    "explorer-view": Message(en="View", zh="视图"),
    "explorer-view-map": Message(en="Map", zh="热力图"),
    "explorer-view-lines": Message(en="Lines", zh="连线"),
    "explorer-view-sentence": Message(en="Sentence", zh="句子"),
    "explorer-view-generation": Message(en="Generation", zh="生成"),
    "explorer-view-compare": Message(en="Compare", zh="对比"),
    "explorer-merge": Message(en="Unit", zh="单位"),
    "explorer-merge-tokens": Message(en="Tokens", zh="词元"),
    "explorer-merge-characters": Message(en="Characters", zh="字符"),
    "explorer-merge-words": Message(en="Words", zh="词"),
    "explorer-scale": Message(en="Colours", zh="颜色"),
    "explorer-scale-auto": Message(en="automatic", zh="自动"),
    "explorer-scale-linear": Message(en="linear", zh="线性"),
    "explorer-scale-log": Message(en="logarithmic", zh="对数"),
    "explorer-scale-renormalised": Message(en="first token hidden, rows sum to 1", zh="略去首词元，每行重新归一化"),
    "explorer-scale-hidden": Message(en="first token hidden", zh="略去首词元"),
    "explorer-pair": Message(en="Texts", zh="句对"),
    "explorer-pair-both": Message(en="both", zh="全部"),
    "explorer-theme": Message(en="Light or dark", zh="切换深浅色"),
    "explorer-close": Message(en="Close", zh="关闭"),
    # --- head ---
    "explorer-head": Message(en="head", zh="头"),
    "explorer-layer": Message(en="layer", zh="层"),
    "explorer-heads": Message(en="Heads drawn together", zh="同时画出的头"),
    "explorer-kind-self": Message(en="self-attention", zh="自注意力"),
    "explorer-kind-encoder": Message(en="encoder self-attention", zh="编码器自注意力"),
    "explorer-kind-decoder": Message(en="decoder self-attention", zh="解码器自注意力"),
    "explorer-kind-cross": Message(en="cross-attention", zh="交叉注意力"),
    "explorer-size": Message(en="{T} queries × {S} keys", zh="{T} 个查询 × {S} 个键"),
    "explorer-sample": Message(en="sample {sample} of {samples}", zh="样本 {sample}（共 {samples} 个）"),
    "explorer-first": Message(en="the first token receives {share}\u00a0%", zh="第一个词元得到 {share}% 的注意力"),
    "explorer-no-key": Message(
        en="the learned sink receives {share}\u00a0%", zh="可学习的注意力汇（attention sink）得到 {share}% 的注意力"
    ),
    "explorer-does": Message(en="Looks at {pattern} · {score}\u00a0%", zh="模式：{pattern} · {score}%"),
    "explorer-does-nothing": Message(en="No clear pattern on this text", zh="在这段文本上没有明显的模式"),
    # --- patterns ---
    "explorer-pattern-previous": Message(en="the previous token", zh="前一个词元"),
    "explorer-pattern-itself": Message(en="the token itself", zh="词元自己"),
    "explorer-pattern-first": Message(en="the first token", zh="第一个词元"),
    "explorer-pattern-same": Message(en="the same token elsewhere", zh="别处的同一个词元"),
    "explorer-pattern-induction": Message(
        en="what followed the same token earlier (induction)", zh="同一词元上次出现后的下一个（归纳头）"
    ),
    "explorer-pattern-shifted": Message(
        en="{count} places from the same token earlier ({name})", zh="距上次同一词元 {count} 处（{name}）"
    ),
    "explorer-pattern-local": Message(en="neighbours within three places", zh="三个位置以内的邻近词元"),
    "explorer-pattern-separator": Message(en="punctuation and separators", zh="标点和分隔符"),
    "explorer-pattern-alignment": Message(
        en="a different key for each query (alignment)", zh="每个查询看不同的键（对齐）"
    ),
    "explorer-pattern-back": Message(en="{count} tokens back", zh="往前第 {count} 个词元"),
    "explorer-pattern-ahead": Message(en="{count} tokens ahead", zh="往后第 {count} 个词元"),
    "explorer-pattern-other": Message(en="{name}", zh="{name}"),
    "explorer-pattern-none": Message(en="no clear pattern", zh="没有明显的模式"),
    "explorer-family-previous": Message(en="previous", zh="前一个"),
    "explorer-family-itself": Message(en="itself", zh="自己"),
    "explorer-family-first": Message(en="first token", zh="首词元"),
    "explorer-family-same": Message(en="same token", zh="相同词元"),
    "explorer-family-induction": Message(en="induction", zh="归纳"),
    "explorer-family-shifted": Message(en="shifted induction", zh="错位归纳"),
    "explorer-family-local": Message(en="local", zh="邻近"),
    "explorer-family-separator": Message(en="separator", zh="分隔符"),
    "explorer-family-alignment": Message(en="alignment", zh="对齐"),
    "explorer-family-back": Message(en="further back", zh="更靠前"),
    "explorer-family-ahead": Message(en="ahead", zh="往后"),
    "explorer-family-other": Message(en="other", zh="其他"),
    "explorer-family-none": Message(en="no pattern", zh="无模式"),
    # --- model ---
    "explorer-model-label": Message(
        en="All heads: rows are layers. Arrow keys move, Enter opens a head.",
        zh="所有的头，每行一层。方向键移动，回车打开。",
    ),
    "explorer-model-best": Message(
        en="{family}: open the clearest head, {head}", zh="{family}：打开最明显的头，{head}"
    ),
    "explorer-model-corner": Message(en="In the corner of each tile: layer.head.", zh="每格左上角：层.头。"),
    "explorer-meaning-entropy": Message(
        en="Entropy of the weights, a mean over the queries: 0 where all attention goes to one key.",
        zh="权重的熵，对查询取平均：注意力全部集中在一个键上时为 0。",
    ),
    "explorer-meaning-sink": Message(
        en="The share of its attention that a head gives to the first token.", zh="头分给第一个词元的注意力份额。"
    ),
    "explorer-meaning-distance": Message(
        en="How many tokens a head looks away from the word that reads, on average.",
        zh="头所看的词元与正在读取的词平均相距多少个词元。",
    ),
    "explorer-meaning-effect": Message(
        en="How far the probabilities of the next token move when the head is silenced (KL divergence, nats).",
        zh="关闭这个头后，下一个词元的概率改变多少（KL 散度，单位是奈特）。",
    ),
    "explorer-show": Message(en="Show", zh="显示"),
    "explorer-show-maps": Message(en="small maps", zh="缩略图"),
    "explorer-show-pattern": Message(en="pattern", zh="模式"),
    "explorer-show-entropy": Message(en="entropy (nats)", zh="熵（奈特）"),
    "explorer-show-sink": Message(en="share of the first token", zh="首词元份额"),
    "explorer-show-distance": Message(en="mean distance", zh="平均距离"),
    "explorer-show-effect": Message(en="effect on the output", zh="对输出的影响"),
    "explorer-sort": Message(en="Order", zh="排序"),
    "explorer-sort-layer": Message(en="by layer", zh="按层"),
    "explorer-sort-measure": Message(en="largest first", zh="从大到小"),
    # --- map ---
    "explorer-map-label": Message(
        en="Attention map. Rows look at columns. Arrow keys move from cell to cell, Enter pins one, plus and minus "
        "zoom.",
        zh="注意力热力图。行：查询；列：键（被关注的词元）。方向键逐格移动，回车固定一格，加减号缩放。",
    ),
    "explorer-rows-write": Message(en="Rows: token read → token written", zh="行：读入的词元 → 写出的词元"),
    "explorer-rows-read": Message(
        en="Rows: the token just read, from which the next is written", zh="行：刚读入的词元，据此写出下一个"
    ),
    "explorer-rows-look": Message(en="Rows look at columns", zh="行：查询；列：键（被关注的词元）"),
    "explorer-cell-exact": Message(en="each cell is one weight", zh="每格是一个权重"),
    "explorer-cell-pooled": Message(
        en="each cell covers {high} queries × {wide} keys: their mean sum",
        zh="每格为 {high} 个查询 × {wide} 个键：对键求和、对查询取平均",
    ),
    "explorer-cell-characters": Message(
        en="parts of characters are merged: keys summed, queries averaged", zh="字符的各部分已合并：键相加，查询取平均"
    ),
    "explorer-cell-words": Message(
        en="tokens are merged to words: keys summed, queries averaged", zh="词元已合并成词：键相加，查询取平均"
    ),
    "explorer-part": Message(
        en="rows {rows} and columns {cols} of {T} × {S}", zh="第 {rows} 行、第 {cols} 列（共 {T} × {S}）"
    ),
    "explorer-prompt": Message(
        en="rows above the dashed line are the prompt ({prompt})", zh="虚线以上的 {prompt} 行是提示词"
    ),
    "explorer-note-stored": Message(en="this file stores no smaller cells here", zh="此文件在这里没有保存更细的格子"),
    "explorer-zoom-all": Message(en="Show all", zh="显示全部"),
    "explorer-masked": Message(en="masked, or exactly 0", zh="被屏蔽，或恰为 0"),
    "explorer-cell-said": Message(en="{query} looks at {key}: weight {weight}", zh="{query} 看 {key}：权重 {weight}"),
    "explorer-cell-masked": Message(en="{query} does not see {key}", zh="{query} 看不到 {key}"),
    "explorer-scale-note-auto": Message(
        en="Colours follow the square root of the weight.", zh="颜色按权重的平方根变化。"
    ),
    "explorer-scale-note-linear": Message(en="Colours follow the weight.", zh="颜色与权重成正比。"),
    "explorer-scale-note-log": Message(en="Colours follow the logarithm of the weight.", zh="颜色按权重的对数变化。"),
    "explorer-scale-note-hidden": Message(
        en="The first token is left out; colours follow the square root.", zh="已略去首词元；颜色按平方根变化。"
    ),
    "explorer-scale-note-renormalised": Message(
        en="The first token is left out and the rest of each row sums to 1.", zh="已略去首词元，每行其余权重之和为 1。"
    ),
    "explorer-scale-note-threshold": Message(
        en="Square root up to {weight}, logarithmic above: a few large weights do not darken the others.",
        zh="{weight} 以下按平方根，以上按对数：少数大权重不会压暗其余权重。",
    ),
    # --- lines and sentence ---
    "explorer-lines": Message(en="Direction of the lines", zh="连线方向"),
    "explorer-lines-vertical": Message(en="Vertical", zh="竖排"),
    "explorer-lines-horizontal": Message(en="Horizontal", zh="横排"),
    "explorer-threshold": Message(en="Smallest weight", zh="最小权重"),
    "explorer-lines-label": Message(
        en="Lines from each word that reads to the words it reads from. Arrow keys choose a word, r changes the side.",
        zh="从读取的词到被读取的词的连线。方向键选词，r 换边。",
    ),
    "explorer-lines-count": Message(
        en="{count} lines, weight {weight} or more", zh="{count} 条线，权重不小于 {weight}"
    ),
    "explorer-lines-own": Message(
        en="; of the selected word, {weight} or more", zh="；所选词的连线权重不小于 {weight}"
    ),
    "explorer-lines-part": Message(
        en="{count} lines, weight {weight} or more; {shown} words around the selected one",
        zh="{count} 条线，权重不小于 {weight}；只显示所选词周围的 {shown} 个词",
    ),
    "explorer-direction": Message(en="What the colours show", zh="颜色表示什么"),
    "explorer-direction-looks": Message(en="What it looks at", zh="它看谁"),
    "explorer-direction-seen": Message(en="Who looks at it", zh="谁看它"),
    "explorer-sentence-looks": Message(en="What {word} looks at", zh="{word} 看向谁"),
    "explorer-sentence-seen": Message(en="Who looks at {word}", zh="谁看向 {word}"),
    "explorer-queries": Message(en="Words that read (queries)", zh="读取的词（查询）"),
    "explorer-keys": Message(en="Words they read from (keys)", zh="被读取的词（键）"),
    "explorer-words-part": Message(
        en="{shown} of {count} words are shown, around the selected one",
        zh="共 {count} 个词，只显示所选词周围的 {shown} 个",
    ),
    "explorer-words-stripes": Message(
        en="Under each word every head has a stripe in its colour: the fuller the colour, the larger the weight.",
        zh="每个词下面，每个头各有一条自己颜色的色条：颜色越浓，权重越大。",
    ),
    # --- neighbours and pins ---
    "explorer-neighbours": Message(en="Selected cell", zh="所选格"),
    "explorer-selected": Message(en="Selected", zh="所选"),
    "explorer-query": Message(en="query", zh="查询"),
    "explorer-key": Message(en="key", zh="键"),
    "explorer-weight": Message(en="weight", zh="权重"),
    "explorer-looks": Message(en="This word looks at", zh="这个词看向"),
    "explorer-looks-several": Message(en="These tokens look at", zh="这些词元看向"),
    "explorer-seen": Message(en="Looked at by", zh="看向它的词"),
    "explorer-seen-several": Message(en="Looked at by", zh="看向它们的词元"),
    "explorer-in-part": Message(en=" (in the enlarged part)", zh="（放大部分之内）"),
    "explorer-none": Message(en="none", zh="无"),
    "explorer-sees-nothing": Message(en="sees no key at all", zh="看不到任何键"),
    "explorer-pins": Message(en="Pinned", zh="已固定"),
    "explorer-pin-remove": Message(en="Remove the pin {cell}", zh="取消固定 {cell}"),
    # --- saving ---
    "explorer-save": Message(en="Save", zh="保存"),
    "explorer-save-what": Message(en="What", zh="内容"),
    "explorer-save-png": Message(en="Picture (PNG, 2×)", zh="图片（PNG，2 倍）"),
    "explorer-save-svg": Message(en="Picture (SVG)", zh="矢量图（SVG）"),
    "explorer-save-csv": Message(en="Numbers (CSV)", zh="数据（CSV）"),
    "explorer-save-json": Message(en="Numbers (JSON)", zh="数据（JSON）"),
    "explorer-save-print": Message(en="Print or PDF", zh="打印或 PDF"),
    "explorer-copy-link": Message(en="Copy a link to this view", zh="复制当前视图的链接"),
    "explorer-copied": Message(en="Link copied", zh="链接已复制"),
    "explorer-figure-heads": Message(en="All heads: {show}", zh="所有的头：{show}"),
    "explorer-figure-weight": Message(en="attention weight", zh="注意力权重"),
    "explorer-figure-difference": Message(en="difference of the weights", zh="权重之差"),
    "explorer-figure-cell": Message(
        en="1 cell = {high} × {wide}: weights summed over its keys, averaged over its queries",
        zh="1 格 = {high} × {wide}：对格内的键求和，对查询取平均",
    ),
    "explorer-figure-maps": Message(
        en="Each small map is a head with its own colours: the brighter, the larger the weight. The strip below it "
        "shows its pattern.",
        zh="每个小图是一个头，颜色各自独立：越亮，权重越大。下方色条表示它的模式。",
    ),
    "explorer-figure-pattern": Message(
        en="Each tile is a head; its number is the share of its attention that follows the pattern, in %.",
        zh="每格是一个头，数字是符合该模式的注意力份额（%）。",
    ),
    "explorer-figure-sorted": Message(en="Below each tile: layer.head.", zh="每格下方：层.头。"),
    "explorer-figure-lines": Message(en="The thicker a line, the larger the weight.", zh="线越粗，权重越大。"),
    "explorer-figure-image": Message(
        en="The brighter a patch, the larger its weight; the largest is the brightest.",
        zh="图块越亮，权重越大；最大者最亮。",
    ),
    # --- help ---
    "explorer-failure-empty": Message(
        en="There is nothing to draw: the trace has no attention record with a head.",
        zh="没有可画的内容：这个 Trace 里没有任何带注意力头的记录。",
    ),
    "explorer-failure-not-stored": Message(
        en="This file does not hold {name}. In a notebook, trace.widget() computes it when asked.",
        zh="此文件没有保存 {name}。在笔记本中用 trace.widget() 打开，即可即时计算。",
    ),
    "explorer-help-title": Message(en="Keys", zh="按键"),
    "explorer-help-pointer": Message(
        en="With the pointer: a click pins a cell, a drag moves an enlarged map, two clicks enlarge it. The wheel "
        "zooms while the map has the focus, or with Ctrl.",
        zh="用鼠标：单击固定一格；放大后拖动可移动；双击放大。热力图获得焦点时（或按住 Ctrl）滚轮缩放。",
    ),
    "explorer-help-help": Message(en="these keys", zh="显示按键"),
    "explorer-help-model": Message(en="the whole model", zh="整个模型"),
    "explorer-help-head": Message(en="one head", zh="一个头"),
    "explorer-help-numbers": Message(en="the numbers", zh="计算过程"),
    "explorer-help-map": Message(en="map", zh="热力图"),
    "explorer-help-lines": Message(en="lines", zh="连线"),
    "explorer-help-sentence": Message(en="sentence", zh="句子"),
    "explorer-help-generation": Message(en="generation, token by token", zh="逐个词元生成"),
    "explorer-help-compare": Message(en="compare", zh="对比"),
    "explorer-help-head-before": Message(en="previous head", zh="上一个头"),
    "explorer-help-head-after": Message(en="next head", zh="下一个头"),
    "explorer-help-layer-before": Message(en="previous layer", zh="上一层"),
    "explorer-help-layer-after": Message(en="next layer", zh="下一层"),
    "explorer-help-scale": Message(en="other colours", zh="换颜色"),
    "explorer-help-merge": Message(en="tokens, characters, words", zh="词元、字符、词"),
    "explorer-help-direction": Message(en="looks at / looked at by", zh="它看谁 / 谁看它"),
    "explorer-help-zoom-in": Message(en="enlarge", zh="放大"),
    "explorer-help-zoom-out": Message(en="reduce", zh="缩小"),
    "explorer-help-zoom-all": Message(en="show all", zh="显示全部"),
    "explorer-help-pin": Message(en="pin the cell", zh="固定所选格"),
    "explorer-help-unpin": Message(en="remove pins, then the zoom", zh="取消固定，再取消缩放"),
    "explorer-help-language": Message(en="language", zh="语言"),
    "explorer-help-theme": Message(en="light or dark", zh="深浅色"),
    "explorer-help-arrows": Message(en="move", zh="移动"),
    "explorer-help-arrows-ten": Message(en="move by ten", zh="一次移动十格"),
    "explorer-help-ends": Message(en="to the ends", zh="到两端"),
    "explorer-help-pin-cell": Message(en="pin, or open a head", zh="固定，或打开一个头"),
    "explorer-help-step": Message(en="next step of the numbers", zh="计算的下一步"),
}
