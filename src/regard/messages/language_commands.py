"""What the commands say that run a language model: see, translate, generate."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- regard see ---
    "help-see": Words(
        en="Run a model on TEXT and show where it looks: the bundled translator, from English to Chinese, "
        "or another model.",
        zh="让模型读一段文本，看它的注意力看向哪里：默认是自带的英译中翻译模型，也可以换成别的模型。",
    ),
    "help-see-examples": Words(
        en="Examples:\n"
        "  regard see I love you\n"
        '  regard see --layer all "The cat sat on the mat."\n'
        "  regard see --kind encoder --layer 0 --head mean I love you\n"
        "  regard see --model poet\n"
        "  echo I love you | regard see - --json",
        zh="例子：\n"
        "  regard see I love you\n"
        '  regard see --layer all "The cat sat on the mat."\n'
        "  regard see --kind encoder --layer 0 --head mean I love you\n"
        "  regard see --model poet 明月\n"
        "  echo I love you | regard see - --json",
    ),
    "metavar-kind": Words(en="KIND", zh="种类"),
    "metavar-layer": Words(en="N|all", zh="N|all"),
    "metavar-head": Words(en="N|all|mean", zh="N|all|mean"),
    "metavar-see-model": Words(en="MODEL", zh="模型"),
    "help-text": Words(
        en="the text; - reads it from stdin; without it, a short one of ours",
        zh="要看的文本；- 表示从标准输入读取；不写则用我们的例句",
    ),
    "help-kind": Words(
        en="encoder or decoder: each text looks at itself; cross: the translation looks at the text; "
        "without it, cross where there is any",
        zh="encoder 或 decoder：文本看自己；cross：译文看原文；不写时，有 cross 就用 cross",
    ),
    "help-layer": Words(
        en="one layer, counted from 0, or all; without it, that of the head that is shown, or with --head all where "
        "the model names no best one",
        zh="第几层（从 0 数起），或 all 表示全部；不写则取所显示的头所在的层；"
        "模型没有指明最好的头而写了 --head 时取全部",
    ),
    "help-head": Words(
        en="one head in full, counted from 0, all of them one after another, or their mean; without it, with "
        "--layer or --kind an overview, else the head that aligns best; where the model names none, the one with the "
        "clearest pattern (handmade: also by name)",
        zh="完整显示一个头（从 0 数起），all 则逐个显示，mean 显示各头的平均；不写时，写了 --layer 或 --kind 显示总览，"
        "否则显示对齐最好的头；模型没有指明的，显示规律最清楚的头；handmade 的头还可用名字",
    ),
    "help-see-model": Words(
        en="translator, poet, handmade (one layer built by hand), or the folder of a model or a run; "
        "translator without it",
        zh="translator（翻译）、poet（写诗）、handmade（手工搭的一层），或模型、训练所在的文件夹；不写则用 translator",
    ),
    "help-see-output": Words(
        en='show this translation, or this continuation, instead of the model\'s own; "" for none',
        zh='不看模型自己写的，改看这段译文或续文；"" 表示什么也不写',
    ),
    "help-width": Words(en="draw in N columns", zh="按 N 列的宽度绘制"),
    "help-save": Words(
        en="also save the trace, all layers and heads, as a safetensors file, for regard.read_trace",
        zh="同时把所有层和头的记录存成 safetensors 文件，可用 regard.read_trace 读取",
    ),
    "help-see-html": Words(
        en="also write all layers and heads as one page of HTML, to be opened in a browser",
        zh="同时把所有层和头写成一个 HTML 网页，用浏览器打开",
    ),
    "help-see-png": Words(
        en="draw the layers and heads that were chosen as a PNG file instead, or as SVG or PDF by its ending; without "
        "a choice, the same head as on the screen (needs matplotlib)",
        zh="改为把选中的层和头画成 PNG 文件，或按扩展名画成 SVG、PDF；没有选时画屏幕上显示的那个头（需要 matplotlib）",
    ),
    "see-best-cross": Words(
        en="decoder layer {layer}, head {head}: the head that best aligns what is written with the text",
        zh="解码器第 {layer} 层，头 {head}：写出的词与原文对齐得最好的头",
    ),
    "see-best-decoder": Words(
        en="decoder layer {layer}, head {head}: the most telling head",
        zh="解码器第 {layer} 层，头 {head}：最能看出门道的头",
    ),
    "see-matters": Words(
        en="decoder layer {layer}, head {head}: of the heads with a clear pattern, the one without which "
        "what is written changes most",
        zh="解码器第 {layer} 层，头 {head}：在规律清楚的头中，去掉它对写出的内容影响最大",
    ),
    "see-clearest": Words(
        en="layer {layer}, head {head}: of {count} heads, the one with the clearest pattern here",
        zh="第 {layer} 层，头 {head}：{count} 个头中，在这段文本上规律最清楚的一个",
    ),
    "see-more-translation": Words(
        en="more: --head all, --layer all, --kind encoder or decoder; --json for numbers",
        zh="还可以：--head all、--layer all、--kind encoder 或 decoder；--json 给出数字",
    ),
    "see-more-text": Words(
        en="more: --head all, --layer all; --json for numbers",
        zh="还可以：--head all、--layer all；--json 给出数字",
    ),
    "see-more-overview": Words(
        en="more: --layer all shows every head at a glance, --layer 0 --head 0 a certain one, --layer 0 --head all "
        "each; --json for numbers",
        zh="还可以：--layer all 一览所有的头，--layer 0 --head 0 指定一个头，--layer 0 --head all 逐个显示；"
        "--json 给出数字",
    ),
    "see-example": Words(
        en="this is our example; your own text goes after the command, or - to read it from stdin",
        zh="这是我们的例子；要看自己的文本，就写在命令后面，或写 - 从标准输入读取",
    ),
    "see-sentences": Words(
        en="several sentences are read as one here and translated worse than one by one, as regard translate does: "
        "give one sentence",
        zh="这里把几个句子当作一个来读，译得不如逐句翻译（regard translate 就是逐句的）：请只给一个句子",
    ),
    "read-as": Words(en="read as “{text}”", zh="读作“{text}”"),
    "text-is-file": Words(
        en="that is the name of a file, and was read as a text; for what is in it: regard {command} - < {file}",
        zh="这是一个文件的名字，刚才被当作文本读了；要读文件的内容：regard {command} - < {file}",
    ),
    "see-or": Words(en=" or ", zh=" 或 "),
    "see-choice": Words(
        en="{option} must be a number counted from 0, or {words}; found {found!r}",
        zh="{option} 必须是从 0 数起的编号，或 {words}；现在是 {found!r}",
    ),
    "see-number": Words(
        en="there is no {option} {found}: numbers go from 0 to {last}",
        zh="没有 {option} {found}：编号从 0 到 {last}",
    ),
    "see-kind": Words(
        en="this model has no attention of the kind {asked}; it has: {kinds}",
        zh="这个模型没有 {asked} 这种注意力；它有：{kinds}",
    ),
    "see-json-too-large": Words(
        en="--json writes every weight, at most {most} of them; found {found}; choose with --layer and --head, "
        "or use --save, which takes any number",
        zh="--json 会写出每一个权重，最多 {most} 个；现在有 {found} 个；"
        "请用 --layer 和 --head 选一部分，或用不限数量的 --save",
    ),
    # --- regard see --model handmade ---
    "see-handmade-one": Words(
        en="the layer built by hand is the only one, so there is nothing to choose with --kind and --layer; "
        "--head chooses among its heads",
        zh="手工搭的注意力只有一层，不能用 --kind 和 --layer 选择；可以用 --head 选它的头",
    ),
    "see-handmade-output": Words(
        en="the layer built by hand writes nothing, so there is no --output to put in its place; leave it out",
        zh="手工搭的这一层不写任何东西，没有什么可以用 --output 替换；请去掉它",
    ),
    "see-handmade": Words(
        en="No trained model: one layer built by hand; each head does what its name says.",
        zh="这不是训练出来的模型，只是手工搭成的一层注意力；每个头做的正是名字所说的事。中文按字切分。",
    ),
    "see-sentence": Words(
        en="the cat sat on the mat and the dog sat on the cat",
        zh="小明爱看书，小红也爱看书",
    ),
    "see-head": Words(en="head {number}: {does}", zh="头 {number}：{does}"),
    "head-previous-word": Words(
        en="previous word (each word looks at the one before it)",
        zh="前一个词（每个词看它前面的那个）",
    ),
    "head-same-word": Words(
        en="same word (looks at itself and wherever the word stood before)",
        zh="同一个词（看自己，以及前面出现过的同一个词）",
    ),
    "head-first-word": Words(
        en="first word (every word looks at the beginning)",
        zh="第一个词（每个词都看开头）",
    ),
    "head-all-so-far": Words(
        en="all so far (looks evenly at itself and everything before)",
        zh="此前的全部（均匀地看自己和前面的每个词）",
    ),
    "see-more": Words(
        en="more: --head 1 shows one head in full, --head all each of them; --json for numbers",
        zh="还可以：--head 1 完整显示一个头，--head all 逐个显示；--json 给出数字",
    ),
    "cli-text-empty": Words(
        en="there is no word in the text; try: regard see --model handmade the cat sat on the mat",
        zh="文本里没有词；试试：regard see --model handmade 小明去商店买了苹果",
    ),
    "cli-json-too-large": Words(
        en="--json writes every weight, of at most {most} words; found {found}; --save takes any number",
        zh="--json 会写出每一个权重，最多 {most} 个词；现在有 {found} 个；--save 不限长度",
    ),
    "cli-head-unknown": Words(
        en="there is no head {asked!r}; there are: {heads}, or all",
        zh="没有名为 {asked!r} 的头；现有：{heads}，或 all",
    ),
    "cli-text-too-long": Words(
        en="{found} words are more than regard see draws at once ({most}); give a part of the text, "
        "for example: head -c 50000",
        zh="共 {found} 个词，超过 regard see 一次能画的 {most} 个；请只给一部分文本，例如：head -c 50000",
    ),
    # --- regard translate ---
    "help-translate": Words(
        en="Translate English TEXT to Chinese, or with another model as that one learnt it.",
        zh="把英文文本译成中文；换成别的模型，则按那个模型学到的语言翻译。",
    ),
    "help-translate-examples": Words(
        en="Examples:\n"
        "  regard translate I love you\n"
        '  regard translate "What\'s the time? I have to go home."\n'
        "  regard translate - < english.txt > chinese.txt",
        zh="例子：\n"
        "  regard translate I love you\n"
        '  regard translate "What\'s the time? I have to go home."\n'
        "  regard translate - < english.txt > chinese.txt",
    ),
    "help-translate-text": Words(
        en="the text; - reads stdin, and each of its lines gives a line",
        zh="要翻译的文本；- 表示读取标准输入，每行对应输出一行",
    ),
    "help-beams": Words(
        en="keep the N likeliest beginnings on the way; without it, as many as suits the model",
        zh="束搜索的宽度：途中保留 N 个最可能的开头；不写则按模型的设定",
    ),
    "help-translate-model": Words(
        en="the folder of a model or a run; without it, the bundled translator",
        zh="模型或训练所在的文件夹；不写则用自带的翻译模型",
    ),
    "help-translate-json": Words(
        en="print JSON instead of text; with -, a line of JSON for each line",
        zh="输出 JSON 而不是文字；用 - 时每行输出一行 JSON",
    ),
    "translate-no-text": Words(
        en="what should be translated? For example: regard translate I love you; - reads stdin",
        zh="要翻译什么？例如：regard translate I love you；- 表示读取标准输入",
    ),
    "translate-beams": Words(
        en="--beams must be at most {most}; found {found}; more take longer and translate no better",
        zh="--beams 不能超过 {most}；现在是 {found}；再多只会更慢，译得并不更好",
    ),
    "translate-line": Words(en="line {number}: {reason}", zh="第 {number} 行：{reason}"),
    "translate-lines": Words(
        en="line {number}: {reason} ({count} such lines in all)",
        zh="第 {number} 行：{reason}（这样的共 {count} 行）",
    ),
    # --- regard generate ---
    "help-generate": Words(
        en="Go on from PROMPT, by chance: the bundled poet writes in the manner of the Tang.",
        zh="接着提示往下写，带随机性：自带的模型仿写唐诗。",
    ),
    "help-generate-examples": Words(
        en="Examples:\n"
        "  regard generate\n"
        "  regard generate --form 7x4 --seed 3 --count 2\n"
        '  regard generate "明月" --temperature 0.6',
        zh="例子：\n"
        "  regard generate\n"
        "  regard generate --form 七绝 --seed 3 --count 2\n"
        "  regard generate 明月 --temperature 0.6",
    ),
    "metavar-prompt": Words(en="PROMPT", zh="提示"),
    "metavar-form": Words(en="5x4|7x4|5x8|7x8", zh="五绝|七绝|五律|七律"),
    "metavar-value": Words(en="X", zh="X"),
    "metavar-generate-model": Words(en="MODEL", zh="模型"),
    "help-prompt": Words(
        en="how it begins; - reads it from stdin; without it, the model begins by itself",
        zh="开头；- 表示从标准输入读取；不写则由模型自己起头",
    ),
    "help-form": Words(
        en="characters in a line × lines of a poem; without it, by the first line of the prompt, else 5x4",
        zh="诗体，也可写成 5x4、7x4、5x8、7x8（每句字数 × 句数）；不写则按提示的第一句，否则五绝",
    ),
    "help-generate-seed": Words(
        en="the same seed gives the same text; 0 without it",
        zh="随机种子，相同的种子写出相同的文字；不写则为 0",
    ),
    "help-temperature": Words(
        en="below 1 tamer, above 1 wilder; 0 always takes the most likely; without it, as suits the model",
        zh="小于 1 更稳，大于 1 更跳脱；0 表示总取概率最高的；不写则按模型的设定",
    ),
    "help-count": Words(
        en="write so many texts, with this seed and those after it",
        zh="写几篇：种子从 --seed 起依次加一",
    ),
    "generate-no-marks": Words(
        en="the prompt has no punctuation, so it is read as one line; write it for example as “{written}”",
        zh="提示里没有标点，被当成一句；请加上标点，例如写成“{written}”",
    ),
    "help-generate-model": Words(
        en="poet, or the folder of a model or a run; poet without it",
        zh="poet（写诗），或模型、训练所在的文件夹；不写则用 poet",
    ),
}
