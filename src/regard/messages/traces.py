"""Messages about records, traces, measures and heads."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- records and traces ---
    "weights-not-kept": Words(
        en="record {name!r} ({T} × {S}) did not keep q and k, so exact weights cannot be computed; "
        "ask for them beforehand: see=See(qk=True), and save them with trace.save(path, qk=True)",
        zh="记录 {name!r}（{T} × {S}）没有保留 q 和 k，无法再算出精确权重；"
        "请事先要求保留：see=See(qk=True)，存文件时用 trace.save(path, qk=True)",
    ),
    "rectangle-step": Words(
        en="a rectangle is given by slices or ranges without a step, such as slice(0, 64) or range(0, 64); "
        "found {found}",
        zh="矩形由不带步长的切片或 range 给出，例如 slice(0, 64) 或 range(0, 64)；现在是 {found}",
    ),
    "rectangle-one": Words(
        en="a rectangle is given by slices or ranges; for position {found} alone write slice({found}, {next})",
        zh="矩形由切片或 range 给出；只要第 {found} 个位置，请写 slice({found}, {next})",
    ),
    "stitch-text": Words(
        en="no call of {name!r} read a beginning of one of these texts; give the ids that one generate returned, "
        "prompt included, or no ids where it leaves the prompt out, as Whisper's does",
        zh="{name!r} 的各次调用都没有读过其中某个文本的开头；请给出一次 generate 返回的编号，包括提示部分；"
        "如果 generate 不返回提示部分（如 Whisper），请不带 ids 调用 stitched()",
    ),
    "stitch-no-ids": Words(
        en="the ids that {name!r} read were not seen, so a text cannot be found by them; stitch without ids",
        zh="没有看到 {name!r} 读入的编号，无法按编号找到文本；请不带 ids 调用 stitched()",
    ),
    "stitch-in-turn": Words(
        en="a call of {name!r} seems to go on from a text that was not the last before it, as where texts are written "
        "in turn; rows of such texts are not put together: watch one text at a time",
        zh="{name!r} 有一次调用，接着的似乎不是紧挨在前面的那段文本，比如几段文本轮流着写；"
        "这样的文本没有拼到一起：请一次只观察一段文本",
    ),
    "stitch-parents": Words(
        en="{name!r} has {count} samples and goes on from samples {parents} of the call before, which has {before}; "
        "stitch a trace that holds every call of a text",
        zh="{name!r} 有 {count} 个样本，接着上一次调用的样本 {parents} 往下写，可上一次只有 {before} 个；"
        "请对包含全部调用的 Trace 使用 stitched()",
    ),
    "stitch-gap": Words(
        en="a call of {name!r} begins at token {start}, but the calls before it end at {end}; "
        "stitch a trace that holds every call of a text",
        zh="{name!r} 有一次调用从第 {start} 个词元开始，而之前的调用只到第 {end} 个；"
        "请对包含全部调用的 Trace 使用 stitched()",
    ),
    "stitch-far": Words(
        en="the calls of {name!r} begin at token {start}, far behind the keys that they have: the whole would take "
        "{wanted:,} numbers; stitch a trace that begins with the text",
        zh="{name!r} 的各次调用从第 {start} 个词元开始，远在已有的键之后：拼成整体需要 {wanted:,} 个数；"
        "请对从文本开头记录的 Trace 使用 stitched()",
    ),
    "tokens-count": Words(
        en="{side} names {found} tokens, but there are {wanted} positions",
        zh="{side} 给了 {found} 个词元，但位置有 {wanted} 个",
    ),
    "tokens-samples": Words(
        en="{side} has tokens for {found} samples, but there are {B}",
        zh="{side} 给了 {found} 个样本的词元，但样本有 {B} 个",
    ),
    "label-tokens": Words(
        en="{side} must be a list of strings, or one such list per sample; turn ids into tokens first",
        zh="{side} 应为字符串列表，或每个样本一个这样的列表；请先把 id 变成词元",
    ),
    "label-ragged": Words(
        en="{side} has rows of {shortest} to {longest} tokens, but samples in one batch are equally long: "
        "write the padding too, for example as ''",
        zh="{side} 各行有 {shortest} 到 {longest} 个词元，但同一批的样本一样长：请把填充也写上，例如写成 ''",
    ),
    "label-count": Words(
        en="{side} names {found} tokens, but {name!r} read {wanted}; give all that went in, padding included, "
        "and use a new Looking for each run",
        zh="{side} 给了 {found} 个词元，但 {name!r} 读了 {wanted} 个；请给出读入的全部词元（包括填充），"
        "并且每次运行用一个新的 Looking",
    ),
    "label-written": Words(
        en="written names {found} tokens, but tokens names {wanted}; give for each token what its query writes, "
        "'' for nothing",
        zh="written 给了 {found} 个词元，但 tokens 有 {wanted} 个；请为每个词元给出它的查询写出的词元，没有写出的用 ''",
    ),
    # --- views ---
    "choice-range": Words(
        en="{what}={asked!r} is not there: choose a whole number from 0 to {last}",
        zh="没有 {what}={asked!r}：请选 0 到 {last} 之间的整数",
    ),
    "choice-none": Words(
        en="{what}={asked!r} is not there: record {name!r} has none at all (B H T S = {shape})",
        zh="没有 {what}={asked!r}：记录 {name!r} 一个也没有（B H T S = {shape}）",
    ),
    "option-unknown": Words(
        en="{option}={asked!r} is not known; choose one of {choices}",
        zh="不认识 {option}={asked!r}；请选 {choices} 之一",
    ),
    "width-narrow": Words(
        en="width={asked!r} is too narrow to draw in; give a whole number of at least {least} columns",
        zh="width={asked!r} 太窄，画不下；请给不小于 {least} 列的整数",
    ),
    "ax-one-picture": Words(
        en="ax= holds one picture, but {count} were asked for; choose layer= and head=, or leave ax out",
        zh="ax= 只能放一幅图，但这里要画 {count} 幅；请用 layer= 和 head= 选一幅，或去掉 ax",
    ),
    "ax-not-axes": Words(
        en="ax= takes one Axes of matplotlib; found {found}; of an array of them give one, such as ax=axes[0]",
        zh="ax= 需要 matplotlib 的一个 Axes；现在是 {found}；若是数组，请给其中一个，例如 ax=axes[0]",
    ),
    "plot-vmax": Words(
        en="vmax={asked!r} must be a number above 0: the weight that gets the last colour, such as 1",
        zh="vmax={asked!r} 必须是大于 0 的数：得到最后一种颜色的权重，例如 1",
    ),
    "plot-cmap": Words(
        en='cmap={asked!r} is no colour map of matplotlib; try "viridis", "cividis" or "gray"',
        zh='matplotlib 没有 cmap={asked!r} 这种配色；可用 "viridis"、"cividis" 或 "gray"',
    ),
    "part-form": Words(
        en="{name}= takes positions that follow each other, such as {name}=slice(0, 64) or range(0, 64); "
        "found {asked!r}",
        zh="{name}= 需要一段连续的位置，例如 {name}=slice(0, 64) 或 range(0, 64)；现在是 {asked!r}",
    ),
    "part-empty": Words(
        en="{name}={asked!r} holds no position of record {record!r}; give a first one and one past the last, "
        "such as {name}=slice(0, {most})",
        zh="{name}={asked!r} 在记录 {record!r} 里一个位置也没有；请写明起点和终点（不含终点），"
        "例如 {name}=slice(0, {most})",
    ),
    "part-range": Words(
        en="{name}={asked!r} goes beyond record {record!r}, whose positions are 0 to {last}; "
        "try {name}=slice({start}, {stop})",
        zh="{name}={asked!r} 超出了记录 {record!r}，它的位置是 0 到 {last}；可以用 {name}=slice({start}, {stop})",
    ),
    "part-too-large": Words(
        en="{rows} rows × {cols} cols are too many to see every weight: at most {most} × {most} are drawn; "
        "give a smaller rows= and cols=, or neither, for the map of everything",
        zh="{rows} 行 × {cols} 列太大，看不清每个权重：最多画 {most} × {most}；"
        "请缩小 rows= 和 cols=，或两者都不写，画整张图",
    ),
    "part-screen": Words(
        en="{rows} rows × {cols} cols do not fit on {width} columns, where at most {high} × {wide} do; "
        "give a smaller rows= and cols=, a larger width=, or use trace.plot() or trace.html()",
        zh="{rows} 行 × {cols} 列在宽 {width} 列的终端里画不下，这里最多 {high} × {wide}；"
        "请缩小 rows= 和 cols=，加大 width=，或改用 trace.plot()、trace.html()",
    ),
    "part-page": Words(
        en="{heads} heads of {rows} rows × {cols} cols are too much for one page, which holds {most} × {most} of each; "
        "choose one layer=, or give a smaller rows= and cols=",
        zh="{heads} 个头，各 {rows} 行 × {cols} 列，一个网页放不下：每个头最多 {most} × {most}；"
        "请用 layer= 选一层，或缩小 rows= 和 cols=",
    ),
    "part-merged": Words(
        en="merge={merge!r} does not go with rows= and cols=, which count tokens; merge first and cut then: "
        "trace.merged({merge!r}).show(rows=...)",
        zh="merge={merge!r} 不能与 rows=、cols= 同用，后者按词元计数；请先合并再截取："
        "trace.merged({merge!r}).show(rows=...)",
    ),
    "part-renormalised": Words(
        en="scale='renormalised' brings whole rows to a sum of 1, but cols= holds {cols} of {S} keys; "
        "use scale='hidden', which leaves the other weights as they are",
        zh="scale='renormalised' 要把整行重新归一，但 cols= 只有 {S} 个键中的 {cols} 个；"
        "请用 scale='hidden'，其余权重保持不变",
    ),
    "label-cropped": Words(
        en="{name} had {S} keys after {end} tokens were read: something was taken back, so tokens cannot be told; "
        "run the text once more under a new Looking",
        zh="{name} 在读入 {end} 个词元之后只有 {S} 个键：有内容被收回，无法对应词元；请用新的 Looking 再运行一遍",
    ),
    "label-samples": Words(
        en="the records have from {fewest} to {most} samples, as after a beam search, so tokens cannot be told; "
        "run the text once more under a new Looking",
        zh="各记录的样本数从 {fewest} 到 {most} 不等（例如束搜索之后），无法对应词元；请用新的 Looking 再运行一遍",
    ),
    # --- what heads do; in both languages with the name that --find takes ---
    "pattern-previous": Words(en="previous token", zh="前一个词元 previous"),
    "pattern-itself": Words(en="the token itself", zh="词元自己 itself"),
    "pattern-first": Words(en="first token", zh="第一个词元 first"),
    "pattern-same": Words(en="same token elsewhere", zh="别处的同一个词元 same"),
    "pattern-induction": Words(
        en="what followed this token before (induction)",
        zh="此词元上次出现后的词元 induction",
    ),
    "pattern-local": Words(en="neighbours (local)", zh="邻近的词元 local"),
    "pattern-separator": Words(en="punctuation and separators", zh="标点和分隔符 separator"),
    "pattern-alignment": Words(en="a key of its own (alignment)", zh="每个查询看不同的键 alignment"),
    "pattern-back": Words(en="{count} tokens back ({name})", zh="往前第 {count} 个词元 {name}"),
    "pattern-next": Words(en="next token ({name})", zh="后一个词元 {name}"),
    "pattern-ahead": Words(en="{count} tokens ahead ({name})", zh="往后第 {count} 个词元 {name}"),
    "pattern-shifted-after": Words(
        en="{count} places after this token's earlier place (induction+{count})",
        zh="此词元上次出现处之后第 {count} 个词元 induction+{count}",
    ),
    "pattern-shifted-before": Words(
        en="{count} places before this token's earlier place (induction-{count})",
        zh="此词元上次出现处之前第 {count} 个词元 induction-{count}",
    ),
    # --- patterns of people's own ---
    "pattern-name": Words(
        en="a pattern's name is letters, digits and any of _ + . - and begins with a letter or digit; found {found!r}",
        zh="模式名由字母、数字和 _ + . - 组成，以字母或数字开头；现在是 {found!r}",
    ),
    "pattern-taken": Words(
        en="{asked!r} is a pattern that regard itself measures; choose another name",
        zh="{asked!r} 是 regard 自带的模式；请换一个名字",
    ),
    "pattern-function": Words(
        en="pattern {asked!r} needs a function from a View to how much each key counts; found {found}",
        zh="模式 {asked!r} 需要一个函数：输入 View，给出每个键计多少；现在是 {found}",
    ),
    "pattern-unregistered": Words(
        en="no pattern {asked!r} is registered; registered are: {patterns}",
        zh="没有注册过模式 {asked!r}；已注册的有：{patterns}",
    ),
    "pattern-shape": Words(
        en="pattern {asked!r} must give numbers or booleans of a shape that broadcasts to B r S = {wanted}; "
        "found {dtype} of shape {found}",
        zh="模式 {asked!r} 应给出可广播到 B r S = {wanted} 的数或布尔值；现在是形状 {found} 的 {dtype}",
    ),
    "pattern-values": Words(
        en="pattern {asked!r} must count each key with a number from 0 to 1, and gave others",
        zh="模式 {asked!r} 给每个键的数应在 0 到 1 之间，现在有超出的",
    ),
    # --- the table ---
    "heads-title": Words(
        en="What {count} heads look at, measured on {queries} queries",
        zh="{count} 个头在看什么（用 {queries} 个查询测得）",
    ),
    "heads-title-part": Words(
        en="What {count} heads look at, measured on {queries} of {total} queries",
        zh="{count} 个头在看什么（用 {total} 个查询中的 {queries} 个测得）",
    ),
    "heads-layer": Words(en="layer", zh="层"),
    "heads-head": Words(en="head", zh="头"),
    "heads-looks-at": Words(en="looks at", zh="看什么"),
    "heads-score": Words(en="score", zh="得分"),
    "heads-queries": Words(en="queries", zh="查询数"),
    "heads-more": Words(en="… and {count} more", zh="……还有 {count} 个"),
    "heads-none": Words(
        en="heads that do none of this (every score below {bar}): {count}",
        zh="另有 {count} 个头不属于以上任何一类（各项得分都低于 {bar}）",
    ),
    "heads-few": Words(
        en="heads that cannot be told, as a score of {bar} or more rests on fewer than {fewest} queries: {count}; "
        "a longer text tells more",
        zh="另有 {count} 个头看不出来：有得分达到 {bar}，但测得它的查询不到 {fewest} 个；换一段更长的文本试试",
    ),
    "heads-untold": Words(
        en="heads left out, because neither this text nor its labels can tell: {count}",
        zh="另有 {count} 个头未列出：这段文本或它的标签看不出这一点",
    ),
    "heads-no-tokens": Words(
        en="tokens are not named, so same token, induction and separators were not looked for: "
        "watch with tokenizer=, or name them: Trace(record.with_tokens(tokens, tokens) for record in trace)",
        zh="词元没有名字，因此没有找同一词元、归纳和分隔符：请在 watch 时给出 tokenizer=，"
        "或自己起名：Trace(record.with_tokens(tokens, tokens) for record in trace)",
    ),
    "heads-scale": Words(
        en="0: no more than looking evenly; 1: nothing else.\n"
        "The same token elsewhere: 1 is also looking evenly at it and at the token itself.",
        zh="0 表示和均匀地看没有差别，1 表示只看这些。\n别处的同一个词元：均匀地看自己和别处相同的词元，也得 1。",
    ),
    "heads-not-explanation": Words(
        en="Attention is not explanation: this is where a head looks, not what the model makes of it.\n"
        "To find out, take the head away: regard.edit, regard.effect.",
        zh="注意力不等于解释：这里只说明头看向哪里，不说明模型拿它做了什么。\n"
        "想知道，就把这个头关掉看看：regard.edit、regard.effect。",
    ),
    # --- regard heads ---
    "help-heads": Words(
        en="Find heads by what they look at on TEXT: the previous token, the same token, what followed it before, …",
        zh="在一段文本上，根据每个头看向哪里来挑头：前一个词元、同一个词元、它上次后面的词元，等等。",
    ),
    "help-heads-examples": Words(
        en="Examples:\n"
        "  regard heads\n"
        '  regard heads "The cat sat on the mat, and the dog sat on the cat."\n'
        "  regard heads --model poet --find separator\n"
        "  echo I love you | regard heads - --json",
        zh="例子：\n"
        "  regard heads\n"
        '  regard heads "The cat sat on the mat, and the dog sat on the cat."\n'
        "  regard heads --model poet --find separator\n"
        "  echo I love you | regard heads - --json",
    ),
    "metavar-pattern": Words(en="PATTERN", zh="种类"),
    "help-find": Words(
        en="rank by one thing: previous, itself, first, same, induction, local, separator, alignment, or with a "
        "number of yours back-4, ahead-1, induction+2",
        zh="只按一种来排：previous、itself、first、same、induction、local、separator、alignment，"
        "或带数字的 back-4、ahead-1、induction+2",
    ),
    "help-heads-count": Words(en="show so many heads; 20 without it", zh="列出多少个头；不写则为 20"),
    "heads-see": Words(
        en="to look at the first: regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
        zh="想看第一个：regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
    ),
    # --- complaints ---
    "pattern-unknown": Words(
        en="there is no pattern {asked!r}; choose one of {patterns} (the last three with any number)",
        zh="没有 {asked!r} 这一种；请选 {patterns} 之一（最后三种的数字可换）",
    ),
    "measure-unknown": Words(
        en="there is no measure {asked!r}; choose one of {measures}",
        zh="没有 {asked!r} 这种度量；请选 {measures} 之一",
    ),
    "measure-queries": Words(
        en="queries={value!r} must be a whole number of at least 1, or None for all",
        zh="queries={value!r} 必须是不小于 1 的整数；None 表示全部",
    ),
    "entropy-not-kept": Words(
        en="record {name!r} kept no entropies, and nothing to compute them from; ask beforehand for either: "
        "see=See(entropy=True), which is enough, or see=See(qk=True), which gives all exact weights",
        zh="记录 {name!r} 没有保留熵，也没有可以用来算出熵的东西；请事先要求其一：see=See(entropy=True) 就够了，"
        "或用 see=See(qk=True)，可得全部精确权重",
    ),
    "measure-two-texts": Words(
        en="{name!r} ({T} queries, {S} keys) looks from one text at another, where distance has no meaning; "
        "choose self-attention: trace.select(kind=...)",
        zh="{name!r}（{T} 个查询、{S} 个键）是一段文本看另一段，谈不上距离；请用 trace.select(kind=...) 选出自注意力",
    ),
    "measure-not-finite": Words(
        en="{name!r} has weights that are not finite, first at query {row}, so nothing can be multiplied with them",
        zh="{name!r} 的权重里有非有限的数，最先出现在第 {row} 个查询，无法继续相乘",
    ),
    "rollout-kinds": Words(
        en="rollout multiplies the layers of one stack of self-attention; encoder, decoder and cross-attention cannot "
        "be multiplied with each other, and here are: {kinds}; choose one side, for example "
        "trace.select(kind='encoder').rollout()",
        zh="rollout 只把同一侧自注意力的各层相乘；编码器、解码器和交叉注意力不能互乘，而这里有：{kinds}；"
        "请选出一侧，例如 trace.select(kind='encoder').rollout()",
    ),
    "rollout-runs": Words(
        en="rollout multiplies the layers of one run, and {name!r} is of a later one; choose one run by a slice such "
        "as trace[:2], or join the steps of a generation with trace.stitched()",
        zh="rollout 把同一次运行的各层相乘，而 {name!r} 属于后来的一次；请用切片选出一次运行，例如 trace[:2]，"
        "生成过程的各步可以先用 trace.stitched() 拼起来",
    ),
    "rollout-shapes": Words(
        en="rollout multiplies layers, so all must be self-attention of one size, queries as many as keys; "
        "{first!r} has B T S = {wanted}, {name!r} has {found}; choose with trace.select or a slice",
        zh="rollout 要把各层相乘，所以必须都是同样大小的自注意力，查询和键一样多；{first!r} 的 B T S 是 {wanted}，"
        "{name!r} 的是 {found}；请用 trace.select 或切片来选",
    ),
    "rollout-too-large": Words(
        en="rollout of {shape} (B rows T) needs {need}, and {free} is free; ask for fewer rows, "
        "for example the last: rows=slice(-1, None)",
        zh="{shape}（B 行 T）的 rollout 需要 {need}，可用 {free}；请少要几行，例如只要最后一行：rows=slice(-1, None)",
    ),
    "values-not-kept": Words(
        en="record {name!r} does not hold how long its values are: they were not asked for, see=See(values=True, "
        "qk=True), or the model did not show them, which `watch` then said; with v, and W_o if you have it, "
        "regard.trace.measures.value_weighted(record, v, W_o) needs neither",
        zh="记录 {name!r} 里没有各个值的长度：或是没有要求，see=See(values=True, qk=True)；或是模型没有露出它们，"
        "这时 `watch` 已经说明；手里有 v（最好还有 W_o）的话，用 regard.trace.measures.value_weighted(record, v, W_o)",
    ),
    "values-shape": Words(
        en="values of shape {found} do not fit {name!r}; wanted (B, G, S, Ev) = ({B}, a divisor of {H}, {S}, any)",
        zh="形状为 {found} 的 v 与 {name!r} 不符；应为 (B, G, S, Ev) = ({B}, {H} 的因数, {S}, 任意)",
    ),
    "values-projection": Words(
        en="W_o of shape {found} does not fit {H} heads of width {Ev}; wanted ({wanted}, d_model), "
        "the transpose of nn.Linear's weight",
        zh="形状为 {found} 的 W_o 与 {H} 个宽 {Ev} 的头不符；应为 ({wanted}, d_model)，即 nn.Linear 权重的转置",
    ),
}
