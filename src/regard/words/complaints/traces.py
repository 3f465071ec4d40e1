"""What is said about records and traces, and pictures of them."""

from regard.words import Words

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
}
