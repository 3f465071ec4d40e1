"""Messages about records, traces, measures and heads."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- records and traces ---
    "weights-not-kept": Message(
        en="record {name!r} ({T} × {S}) did not keep q and k, so exact weights cannot be computed; "
        "request them beforehand: see=See(qk=True), and save them with trace.save(path, qk=True)",
        zh="记录 {name!r}（{T} × {S}）没有保留 q 和 k，无法计算精确权重；"
        "请事先要求保留：see=See(qk=True)，存文件时用 trace.save(path, qk=True)",
    ),
    "rectangle-step": Message(
        en="a rectangle is given by slices or ranges without a step, such as slice(0, 64) or range(0, 64); "
        "found {found}",
        zh="矩形区域要用不带步长的切片或 range 指定，例如 slice(0, 64) 或 range(0, 64)；实际为 {found}",
    ),
    "rectangle-one": Message(
        en="a rectangle is given by slices or ranges; for position {found} alone write slice({found}, {next})",
        zh="矩形区域要用切片或 range 指定；只要第 {found} 个位置，请写 slice({found}, {next})",
    ),
    "stitch-text": Message(
        en="no call of {name!r} read the start of one of these texts; give the ids that generate returned, "
        "prompt included, or no ids where generate omits the prompt, as Whisper's does",
        zh="{name!r} 的各次调用都没有读过其中某个文本的开头；请给出 generate 返回的 id，包括提示词；"
        "如果 generate 不返回提示词（如 Whisper），请不带 ids 调用 stitched()",
    ),
    "stitch-no-ids": Message(
        en="the ids that {name!r} read were not recorded, so texts cannot be found by ids; call stitched() without ids",
        zh="没有记录 {name!r} 读入的 id，无法按 id 找到文本；请不带 ids 调用 stitched()",
    ),
    "stitch-in-turn": Message(
        en="a call of {name!r} seems to continue a text that is not the most recent one, as when texts are "
        "written in turn; rows of such texts are not merged: watch one text at a time",
        zh="{name!r} 的一次调用接续的似乎不是最近的一段文本，例如几段文本交替生成；"
        "这些文本的行没有合并：请一次只观察一段文本",
    ),
    "stitch-parents": Message(
        en="{name!r} has {count} samples and continues samples {parents} of the previous call, which has {before}; "
        "stitch a trace that holds every call of a text",
        zh="{name!r} 有 {count} 个样本，接续上一次调用的样本 {parents}，但上一次只有 {before} 个样本；"
        "请对包含全部调用的 Trace 使用 stitched()",
    ),
    "stitch-gap": Message(
        en="a call of {name!r} begins at token {start}, but the calls before it end at {end}; "
        "stitch a trace that holds every call of a text",
        zh="{name!r} 有一次调用从第 {start} 个词元开始，而之前的调用只到第 {end} 个；"
        "请对包含全部调用的 Trace 使用 stitched()",
    ),
    "stitch-far": Message(
        en="the calls of {name!r} begin at token {start}, far after their keys: the stitched record would take "
        "{wanted:,} numbers; stitch a trace that begins with the text",
        zh="{name!r} 的各次调用从第 {start} 个词元开始，远在已有的键之后：拼成整体需要 {wanted:,} 个数；"
        "请对从文本开头记录的 Trace 使用 stitched()",
    ),
    "tokens-count": Message(
        en="{side} names {found} tokens, but there are {wanted} positions",
        zh="{side} 给了 {found} 个词元，但位置有 {wanted} 个",
    ),
    "tokens-samples": Message(
        en="{side} has tokens for {found} samples, but there are {B}",
        zh="{side} 给了 {found} 个样本的词元，但样本有 {B} 个",
    ),
    "label-tokens": Message(
        en="{side} must be a list of strings, or one such list per sample; convert ids to tokens first",
        zh="{side} 应为字符串列表，或每个样本一个这样的列表；请先把 id 转换为词元",
    ),
    "label-ragged": Message(
        en="{side} has rows of {shortest} to {longest} tokens, but samples in one batch are equally long: "
        "write the padding too, for example as ''",
        zh="{side} 各行有 {shortest} 到 {longest} 个词元，但同一批的样本一样长：请把填充也写上，例如写成 ''",
    ),
    "label-count": Message(
        en="{side} names {found} tokens, but {name!r} read {wanted}; give all input tokens, padding included, "
        "and use a new Recorder for each run",
        zh="{side} 给了 {found} 个词元，但 {name!r} 读了 {wanted} 个；请给出读入的全部词元（包括填充），"
        "并且每次运行使用新的 Recorder",
    ),
    "label-written": Message(
        en="written names {found} tokens, but tokens names {wanted}; give the token that each query generates, "
        "'' for none",
        zh="written 给了 {found} 个词元，但 tokens 有 {wanted} 个；请给出每个查询生成的词元，没有生成的用 ''",
    ),
    # --- views ---
    "choice-range": Message(
        en="{what}={asked!r} is not there: choose a whole number from 0 to {last}",
        zh="没有 {what}={asked!r}：请选 0 到 {last} 之间的整数",
    ),
    "choice-none": Message(
        en="{what}={asked!r} is not there: record {name!r} has none at all (B H T S = {shape})",
        zh="没有 {what}={asked!r}：记录 {name!r} 一个也没有（B H T S = {shape}）",
    ),
    "option-unknown": Message(
        en="{option}={asked!r} is not known; choose one of {choices}",
        zh="不认识 {option}={asked!r}；请选 {choices} 之一",
    ),
    "width-narrow": Message(
        en="width={asked!r} is too narrow to draw in; give a whole number of at least {least} columns",
        zh="width={asked!r} 太窄，画不下；请给不小于 {least} 列的整数",
    ),
    "ax-one-picture": Message(
        en="ax= holds one picture, but {count} were asked for; choose layer= and head=, or leave ax out",
        zh="ax= 只能放一幅图，但这里要画 {count} 幅；请用 layer= 和 head= 选一幅，或去掉 ax",
    ),
    "ax-not-axes": Message(
        en="ax= takes one Axes of matplotlib; found {found}; of an array of them give one, such as ax=axes[0]",
        zh="ax= 需要 matplotlib 的一个 Axes；实际为 {found}；若是数组，请给其中一个，例如 ax=axes[0]",
    ),
    "plot-vmax": Message(
        en="vmax={asked!r} must be a number above 0: the weight that gets the last colour, such as 1",
        zh="vmax={asked!r} 必须是大于 0 的数：得到最后一种颜色的权重，例如 1",
    ),
    "plot-cmap": Message(
        en='cmap={asked!r} is no colour map of matplotlib; try "viridis", "cividis" or "gray"',
        zh='matplotlib 没有 cmap={asked!r} 这种配色；可用 "viridis"、"cividis" 或 "gray"',
    ),
    "part-form": Message(
        en="{name}= takes positions that follow each other, such as {name}=slice(0, 64) or range(0, 64); "
        "found {asked!r}",
        zh="{name}= 需要一段连续的位置，例如 {name}=slice(0, 64) 或 range(0, 64)；实际为 {asked!r}",
    ),
    "part-empty": Message(
        en="{name}={asked!r} holds no position of record {record!r}; give a first one and one past the last, "
        "such as {name}=slice(0, {most})",
        zh="{name}={asked!r} 在记录 {record!r} 里一个位置也没有；请写明起点和终点（不含终点），"
        "例如 {name}=slice(0, {most})",
    ),
    "part-range": Message(
        en="{name}={asked!r} goes beyond record {record!r}, whose positions are 0 to {last}; "
        "try {name}=slice({start}, {stop})",
        zh="{name}={asked!r} 超出了记录 {record!r}，它的位置是 0 到 {last}；可以用 {name}=slice({start}, {stop})",
    ),
    "part-too-large": Message(
        en="{rows} rows × {cols} cols are too many to see every weight: at most {most} × {most} are drawn; "
        "give a smaller rows= and cols=, or neither, for the map of everything",
        zh="{rows} 行 × {cols} 列太大，看不清每个权重：最多画 {most} × {most}；"
        "请缩小 rows= 和 cols=，或两者都不写，画整张图",
    ),
    "part-screen": Message(
        en="{rows} rows × {cols} cols do not fit on {width} columns, where at most {high} × {wide} do; "
        "give a smaller rows= and cols=, a larger width=, or use trace.plot() or trace.html()",
        zh="{rows} 行 × {cols} 列在宽 {width} 列的终端里画不下，这里最多 {high} × {wide}；"
        "请缩小 rows= 和 cols=，加大 width=，或改用 trace.plot()、trace.html()",
    ),
    "part-merged": Message(
        en="merge={merge!r} does not go with rows= and cols=, which count tokens; merge first and cut then: "
        "trace.merged({merge!r}).show(rows=...)",
        zh="merge={merge!r} 不能与 rows=、cols= 同用，后者按词元计数；请先合并再截取："
        "trace.merged({merge!r}).show(rows=...)",
    ),
    "part-renormalised": Message(
        en="scale='renormalised' brings whole rows to a sum of 1, but cols= holds {cols} of {S} keys; "
        "use scale='hidden', which leaves the other weights as they are",
        zh="scale='renormalised' 要把整行重新归一，但 cols= 只有 {S} 个键中的 {cols} 个；"
        "请用 scale='hidden'，其余权重保持不变",
    ),
    "label-cropped": Message(
        en="{name} had {S} keys after {end} tokens were read: the cache was cropped, so tokens cannot be assigned; "
        "run the text again with a new Recorder",
        zh="{name} 在读入 {end} 个词元之后只有 {S} 个键：缓存被裁剪，无法对应词元；请用新的 Recorder 重新运行",
    ),
    "label-samples": Message(
        en="the records have from {fewest} to {most} samples, as after a beam search, so tokens cannot be assigned; "
        "run the text again with a new Recorder",
        zh="各记录的样本数从 {fewest} 到 {most} 不等（例如束搜索之后），无法对应词元；请用新的 Recorder 重新运行",
    ),
    # --- patterns of heads; the Chinese labels include the name for --find ---
    "pattern-previous": Message(en="previous token", zh="前一个词元 previous"),
    "pattern-itself": Message(en="the token itself", zh="词元自己 itself"),
    "pattern-first": Message(en="first token", zh="第一个词元 first"),
    "pattern-same": Message(en="same token elsewhere", zh="别处的同一个词元 same"),
    "pattern-induction": Message(
        en="what followed this token before (induction)",
        zh="此词元上次出现后的词元 induction",
    ),
    "pattern-local": Message(en="neighbours (local)", zh="邻近的词元 local"),
    "pattern-separator": Message(en="punctuation and separators", zh="标点和分隔符 separator"),
    "pattern-alignment": Message(en="a different key for each query (alignment)", zh="每个查询看不同的键 alignment"),
    "pattern-back": Message(en="{count} tokens back ({name})", zh="往前第 {count} 个词元 {name}"),
    "pattern-next": Message(en="next token ({name})", zh="后一个词元 {name}"),
    "pattern-ahead": Message(en="{count} tokens ahead ({name})", zh="往后第 {count} 个词元 {name}"),
    "pattern-shifted-after": Message(
        en="{count} places after this token's earlier position (induction+{count})",
        zh="此词元上次出现处之后第 {count} 个词元 induction+{count}",
    ),
    "pattern-shifted-before": Message(
        en="{count} places before this token's earlier position (induction-{count})",
        zh="此词元上次出现处之前第 {count} 个词元 induction-{count}",
    ),
    # --- registered patterns ---
    "pattern-name": Message(
        en="a pattern's name is letters, digits and any of _ + . - and begins with a letter or digit; found {found!r}",
        zh="模式名由字母、数字和 _ + . - 组成，以字母或数字开头；实际为 {found!r}",
    ),
    "pattern-taken": Message(
        en="{asked!r} is a built-in pattern; choose another name",
        zh="{asked!r} 是 regard 自带的模式；请换一个名字",
    ),
    "pattern-function": Message(
        en="pattern {asked!r} needs a function that takes PatternRows and returns a factor for each key; found {found}",
        zh="模式 {asked!r} 需要一个函数：输入 PatternRows，返回每个键的系数；实际为 {found}",
    ),
    "pattern-unregistered": Message(
        en="no pattern {asked!r} is registered; registered are: {patterns}",
        zh="没有注册过模式 {asked!r}；已注册的有：{patterns}",
    ),
    "pattern-shape": Message(
        en="pattern {asked!r} must return numbers or booleans of a shape that broadcasts to B r S = {wanted}; "
        "found {dtype} of shape {found}",
        zh="模式 {asked!r} 应返回可广播到 B r S = {wanted} 的数或布尔值；实际为形状 {found} 的 {dtype}",
    ),
    "pattern-values": Message(
        en="pattern {asked!r} must return numbers from 0 to 1; some are outside",
        zh="模式 {asked!r} 返回的数应在 0 到 1 之间；有的超出了范围",
    ),
    # --- the table ---
    "heads-title": Message(
        en="What {count} heads look at, measured on {queries} queries",
        zh="{count} 个头在看什么（用 {queries} 个查询测得）",
    ),
    "heads-title-part": Message(
        en="What {count} heads look at, measured on {queries} of {total} queries",
        zh="{count} 个头在看什么（用 {total} 个查询中的 {queries} 个测得）",
    ),
    "heads-layer": Message(en="layer", zh="层"),
    "heads-head": Message(en="head", zh="头"),
    "heads-looks-at": Message(en="looks at", zh="看什么"),
    "heads-score": Message(en="score", zh="得分"),
    "heads-queries": Message(en="queries", zh="查询数"),
    "heads-more": Message(en="… and {count} more", zh="……还有 {count} 个"),
    "heads-none": Message(
        en="heads that do none of this (every score below {bar}): {count}",
        zh="另有 {count} 个头不属于以上任何一类（各项得分都低于 {bar}）",
    ),
    "heads-none-at-all": Message(
        en="heads without any of the known patterns (every score below {bar}): {count}",
        zh="{count} 个头不符合任何一种已知的模式（各项得分都低于 {bar}）",
    ),
    "heads-few": Message(
        en="heads not classified, because a score of {bar} or more is based on fewer than {fewest} queries: {count}; "
        "try a longer text",
        zh="另有 {count} 个头无法判断：有得分达到 {bar}，但依据的查询不到 {fewest} 个；请换一段更长的文本",
    ),
    "heads-unmeasured": Message(
        en="heads left out, because this text or its labels are not enough to measure them: {count}",
        zh="另有 {count} 个头未列出：这段文本或它的标签不足以测量这一项",
    ),
    "heads-no-tokens": Message(
        en="the tokens are unknown, so same token, induction and separators were not measured: "
        "watch with tokenizer=, or set them: Trace(record.with_tokens(tokens, tokens) for record in trace)",
        zh="词元未知，因此没有测量同一词元、归纳和分隔符：请在 watch 时给出 tokenizer=，"
        "或自行设置：Trace(record.with_tokens(tokens, tokens) for record in trace)",
    ),
    "heads-scale": Message(
        en="0: as much as uniform attention; 1: all of the attention.",
        zh="0 表示与均匀的注意力没有差别，1 表示只关注这些位置。",
    ),
    "heads-scale-same": Message(
        en="The same token elsewhere: 1 is also attention spread evenly over it and the token itself.",
        zh="别处的同一个词元：注意力均匀分布在自身和别处相同的词元上，也得 1。",
    ),
    "heads-not-explanation": Message(
        en="Attention is not explanation: this is where a head looks, not what the model makes of it.\n"
        "To find out, take the head away: regard.edit, regard.effect.",
        zh="注意力不等于解释：这里只说明头看向哪里，不说明模型如何使用它。\n"
        "要了解它的作用，请关闭这个头再比较结果：regard.edit、regard.effect。",
    ),
    # --- regard heads ---
    "help-heads": Message(
        en="Find heads by what they look at on TEXT: the previous token, the same token, what followed it before, …",
        zh="在一段文本上，按每个头看向哪里来查找注意力头：前一个词元、同一个词元、它上次出现后的词元，等等。",
    ),
    "help-heads-examples": Message(
        en="Examples:\n"
        "  regard heads\n"
        '  regard heads "The cat sat on the mat, and the dog sat on the cat."\n'
        "  regard heads --model poet --find separator\n"
        "  echo I love you | regard heads - --json",
        zh="示例：\n"
        "  regard heads\n"
        '  regard heads "The cat sat on the mat, and the dog sat on the cat."\n'
        "  regard heads --model poet --find separator\n"
        "  echo I love you | regard heads - --json",
    ),
    "metavar-pattern": Message(en="PATTERN", zh="模式"),
    "help-find": Message(
        en="rank by one pattern: previous, itself, first, same, induction, local, separator, alignment, or one with a "
        "number such as back-4, ahead-1, induction+2",
        zh="只按一种模式排序：previous、itself、first、same、induction、local、separator、alignment，"
        "或带数字的 back-4、ahead-1、induction+2",
    ),
    "help-heads-count": Message(en="number of heads to show; 20 by default", zh="列出的头数；默认为 20"),
    "heads-see": Message(
        en="to look at the first: regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
        zh="查看第一个：regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
    ),
    "heads-see-one": Message(
        en="to look at one: regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
        zh="查看其中一个：regard see --model {model} --kind {kind} --layer {layer} --head {head} {text}",
    ),
    # --- errors of measures ---
    "pattern-unknown": Message(
        en="there is no pattern {asked!r}; choose one of {patterns} (the last three with any number)",
        zh="没有 {asked!r} 这种模式；请选 {patterns} 之一（最后三种的数字可换）",
    ),
    "measure-unknown": Message(
        en="there is no measure {asked!r}; choose one of {measures}",
        zh="没有 {asked!r} 这种度量；请选 {measures} 之一",
    ),
    "measure-queries": Message(
        en="queries={value!r} must be a whole number of at least 1, or None for all",
        zh="queries={value!r} 必须是不小于 1 的整数；None 表示全部",
    ),
    "entropy-not-kept": Message(
        en="record {name!r} has neither entropies nor exact weights; request one of them beforehand: "
        "see=See(entropy=True), which is enough, or see=See(qk=True), which gives all exact weights",
        zh="记录 {name!r} 既没有熵，也没有精确权重；请事先要求其一：see=See(entropy=True) 即可，"
        "或用 see=See(qk=True) 得到全部精确权重",
    ),
    "measure-two-texts": Message(
        en="{name!r} ({T} queries, {S} keys) attends from one text to another, where distance has no meaning; "
        "choose self-attention: trace.select(kind=...)",
        zh="{name!r}（{T} 个查询、{S} 个键）是两段文本之间的注意力，没有距离可言；"
        "请用 trace.select(kind=...) 选出自注意力",
    ),
    "measure-not-finite": Message(
        en="{name!r} has weights that are not finite, first at query {row}, so layers cannot be multiplied",
        zh="{name!r} 的权重中有非有限值，最先出现在第 {row} 个查询，各层无法相乘",
    ),
    "rollout-kinds": Message(
        en="rollout multiplies the layers of one stack of self-attention; encoder, decoder and cross-attention cannot "
        "be multiplied with each other, and here are: {kinds}; choose one side, for example "
        "trace.select(kind='encoder').rollout()",
        zh="rollout 只把同一侧自注意力的各层相乘；编码器、解码器和交叉注意力不能互乘，而这里有：{kinds}；"
        "请选出一侧，例如 trace.select(kind='encoder').rollout()",
    ),
    "rollout-runs": Message(
        en="rollout multiplies the layers of one run, and {name!r} is of a later run; choose one run by a slice such "
        "as trace[:2], or join the steps of a generation with trace.stitched()",
        zh="rollout 把同一次运行的各层相乘，而 {name!r} 属于后来的一次；请用切片选出一次运行，例如 trace[:2]，"
        "生成过程的各步可以先用 trace.stitched() 拼起来",
    ),
    "rollout-shapes": Message(
        en="rollout multiplies layers, so all must be self-attention of one size, queries as many as keys; "
        "{first!r} has B T S = {wanted}, {name!r} has {found}; choose with trace.select or a slice",
        zh="rollout 要把各层相乘，所以必须都是同样大小的自注意力，查询和键一样多；{first!r} 的 B T S 是 {wanted}，"
        "{name!r} 的是 {found}；请用 trace.select 或切片来选",
    ),
    "rollout-too-large": Message(
        en="rollout of {shape} (B rows T) needs {need}, and {free} is free; request fewer rows, "
        "for example the last: rows=slice(-1, None)",
        zh="{shape}（B 行 T）的 rollout 需要 {need}，可用 {free}；请少要几行，例如只要最后一行：rows=slice(-1, None)",
    ),
    "values-not-kept": Message(
        en="record {name!r} has no norms of its values: they were not asked for, see=See(values=True, qk=True), "
        "or the model did not show them, which `watch` then reports; with v, and W_o if you have it, "
        "use regard.trace.measures.value_weighted(record, v, W_o)",
        zh="记录 {name!r} 中没有各个值的范数：可能没有请求，see=See(values=True, qk=True)；也可能无法从模型读取，"
        "此时 `watch` 会给出提示；如果有 v（最好还有 W_o），请用 regard.trace.measures.value_weighted(record, v, W_o)",
    ),
    "values-shape": Message(
        en="values of shape {found} do not fit {name!r}; wanted (B, G, S, Ev) = ({B}, a divisor of {H}, {S}, any)",
        zh="形状为 {found} 的 v 与 {name!r} 不符；应为 (B, G, S, Ev) = ({B}, {H} 的因数, {S}, 任意)",
    ),
    "values-projection": Message(
        en="W_o of shape {found} does not fit {H} heads of width {Ev}; wanted ({wanted}, d_model), "
        "the transpose of nn.Linear's weight",
        zh="形状为 {found} 的 W_o 与 {H} 个宽 {Ev} 的头不符；应为 ({wanted}, d_model)，即 nn.Linear 权重的转置",
    ),
    # --- pictures ---
    "image-grid": Message(
        en="a grid of {rows} × {cols} has {patches} patches, from position {first} on; there are {length} {side}. "
        "Give the grid and first= that fit",
        zh="{rows} × {cols} 的网格有 {patches} 个图块，从位置 {first} 开始；而 {side} 只有 {length} 个。"
        "请改正 grid 和 first=",
    ),
    "image-grid-form": Message(
        en="grid= takes the rows and columns of patches, such as (14, 14); found {found!r}",
        zh="grid= 应为图块的行数和列数，例如 (14, 14)；实际为 {found!r}",
    ),
    "image-first": Message(
        en="first= is the position of the first patch, a whole number from 0 on; found {found!r}",
        zh="first= 是第一个图块的位置，应为不小于 0 的整数；实际为 {found!r}",
    ),
    "image-pixels": Message(
        en="a picture is an array (height, width, 3), bytes or floats from 0 to 1, or the bytes of a PNG file; "
        "found {found}",
        zh="图片应为 (高, 宽, 3) 的数组（字节，或 0 到 1 的浮点数），或 PNG 文件的字节；实际为 {found}",
    ),
    # --- attention over pictures ---
    "image-none": Message(
        en="none of the {count} records has a picture: trace.image needs a model that reads images. If it reads one, "
        "give watch(…, images=(picture, (rows, columns))), or the picture of a record with with_image",
        zh="{count} 条记录都没有图片：trace.image 需要读取图像的模型。如果模型确实读入了图像，请用 "
        "watch(…, images=(图片, (行数, 列数)))，或用 with_image 给记录加上图片",
    ),
    "watch-images": Message(
        en="images=: a grid of {rows} × {cols} has {patches} patches, but the model read {found}: give the grid that "
        "has this number of patches",
        zh="images=：{rows} × {cols} 的网格有 {patches} 个图块，而模型读入的是 {found} 个：请给出图块数相符的网格",
    ),
    "watch-images-own": Message(
        en="images=: the given grid is {rows} × {cols}, but by its inputs the model's own is {grids}, which was used",
        zh="images=：给出的网格是 {rows} × {cols}，而模型输入表明它自己的网格是 {grids}，已采用后者",
    ),
    "image-not-here": Message(
        en="{name!r} has no patches of a picture among its queries or keys: choose another layer",
        zh="{name!r} 的查询和键中没有图块：请选择别的层",
    ),
    "image-number": Message(
        en="image={asked}: {name!r} has no such picture; its pictures are numbered {found}",
        zh="image={asked}：{name!r} 没有这幅图片；图片的编号是 {found}",
    ),
    "image-number-form": Message(
        en="image= is the number of a picture, from 0 on; found {found!r}",
        zh="image= 是图片的编号，从 0 开始；实际为 {found!r}",
    ),
    "image-head": Message(
        en='head= is the number of a head, or "mean"; found {found!r}',
        zh='head= 应为头的编号，或 "mean"；实际为 {found!r}',
    ),
    "image-query": Message(
        en="a query is a word, a position, or the row and column of a patch such as (2, 5); found {found!r}",
        zh="查询应为一个词、一个位置，或图块的行和列，例如 (2, 5)；实际为 {found!r}",
    ),
    "image-no-words": Message(
        en="{name!r} has no words, so that {asked!r} cannot be found: give {found}, a position, or a patch such as "
        "(2, 5); for a text, give watch the tokenizer",
        zh="{name!r} 没有词，找不到 {asked!r}：请给出 {found}、位置，或图块，例如 (2, 5)；"
        "如果是文本，请把 tokenizer 交给 watch",
    ),
    "image-word": Message(
        en="there is no {asked!r} among the {count} tokens of {name!r}; give a word as it is written there, or a "
        "position",
        zh="{name!r} 的 {count} 个词元中没有 {asked!r}；请给出文本中的词（与原文写法一致），或一个位置",
    ),
    "image-patch-range": Message(
        en="there is no patch {asked!r}: the picture has {rows} × {cols} patches, counted from (0, 0)",
        zh="没有图块 {asked!r}：图片有 {rows} × {cols} 个图块，从 (0, 0) 开始数",
    ),
    "image-patch-none": Message(
        en="the queries of {name!r} are no patches, so that {asked!r} cannot be one: give a word or a position",
        zh="{name!r} 的查询不是图块，没有 {asked!r}：请给出一个词或一个位置",
    ),
    # --- comparison of two traces ---
    "compare-trace": Message(
        en="compare needs another Trace; found {found}",
        zh="compare 需要另一个 Trace；实际为 {found}",
    ),
    "compare-heads": Message(
        en="traces are compared layer by layer and head by head: this one has {left} layers × heads, the other {right}",
        zh="两个 Trace 要逐层逐头比较：这一个是 {left}（层 × 头），另一个是 {right}",
    ),
    "compare-tokens": Message(
        en="{name!r} has {left} {side} in one trace and {right} in the other; give both their tokens, by which they "
        "are aligned: record.with_tokens(…)",
        zh="{name!r} 在两个 Trace 中的 {side} 数不同（{left} 和 {right}）；"
        "请给出两边的词元以便对齐：record.with_tokens(…)",
    ),
    "compare-too-large": Message(
        en="{name!r} has {T} × {S} weights per head, too many to compare one by one; compare parts of shorter texts",
        zh="{name!r} 每个头有 {T} × {S} 个权重，太多，无法逐个比较；请比较较短的文本",
    ),
    "compare-layer": Message(en="layer", zh="层"),
    "compare-head": Message(en="head", zh="头"),
    "compare-distance": Message(en="distance", zh="距离"),
    "compare-largest": Message(en="largest change", zh="最大变化"),
    "compare-where": Message(en="where", zh="位置"),
    "compare-scale": Message(
        en="distance: Jensen–Shannon, 0 equal, 1 nothing in common; largest change: the other trace minus this one",
        zh="距离：Jensen–Shannon 距离，0 为相同，1 为毫无重合；最大变化：另一个 Trace 的值减去这个 Trace 的值",
    ),
    "compare-maps": Message(
        en="of {count} of {of} layers the maps were compared, bin by bin: q and k were not kept (See(qk=True))",
        zh="{of} 层中有 {count} 层没有保留 q 和 k（See(qk=True)），比较的是注意力图的各格",
    ),
    "compare-unpaired": Message(
        en="not compared, because only one trace has them: {names}",
        zh="只有一个 Trace 有，因而没有比较：{names}",
    ),
    "compare-side-0": Message(en="first", zh="第一个"),
    "compare-side-1": Message(en="second", zh="第二个"),
    "outputs-not-kept": Message(
        en="the outputs of the heads of {name} were not recorded; record with see=See(outputs=True)",
        zh="{name} 没有记录各头的输出；记录时请使用 see=See(outputs=True)",
    ),
}
