"""Messages of the commands that run a language model: see, translate, generate."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- regard see ---
    "help-see": Message(
        en="Run a model on TEXT and show where it looks: the bundled translator, from English to Chinese, "
        "or another model.",
        zh="用模型处理一段文本，并显示它的注意力。默认使用自带的英译中翻译模型，也可以指定其他模型。",
    ),
    "help-see-examples": Message(
        en="Examples:\n"
        "  regard see I love you\n"
        '  regard see --layer all "The cat sat on the mat."\n'
        "  regard see --kind encoder --layer 0 --head mean I love you\n"
        "  regard see --model poet\n"
        "  echo I love you | regard see - --json",
        zh="示例：\n"
        "  regard see I love you\n"
        '  regard see --layer all "The cat sat on the mat."\n'
        "  regard see --kind encoder --layer 0 --head mean I love you\n"
        "  regard see --model poet 明月\n"
        "  echo I love you | regard see - --json",
    ),
    "metavar-kind": Message(en="KIND", zh="种类"),
    "metavar-layer": Message(en="N|all", zh="N|all"),
    "metavar-head": Message(en="N|all|mean", zh="N|all|mean"),
    "metavar-see-model": Message(en="MODEL", zh="模型"),
    "help-text": Message(
        en="the text; - reads it from stdin; by default a short example",
        zh="文本；- 表示从标准输入读取；默认使用例句",
    ),
    "help-kind": Message(
        en="encoder or decoder: self-attention; cross: the translation attends to the text; "
        "by default cross if the model has it",
        zh="encoder 或 decoder：自注意力；cross：译文对原文的交叉注意力；默认优先使用 cross",
    ),
    "help-layer": Message(
        en="one layer, counted from 0, or all; by default that of the shown head; with --head, all layers if the "
        "model names no best head",
        zh="层号（从 0 开始），或 all 表示全部；默认为所显示的头所在的层；指定了 --head 而模型没有指明最佳的头时为全部",
    ),
    "help-head": Message(
        en="one head in full, counted from 0, all heads one after another, or their mean; by default an overview with "
        "--layer or --kind, else the head that aligns best; if the model names none, the one with the "
        "clearest pattern (handmade: also by name)",
        zh="完整显示一个注意力头（从 0 开始编号），all 逐个显示，mean 显示各头的平均；"
        "默认：指定了 --layer 或 --kind 时显示总览，否则显示对齐最好的头；"
        "模型没有指明时，显示模式最清晰的头；handmade 的头还可用名字",
    ),
    "help-see-model": Message(
        en="translator, poet, handmade (one layer built by hand), or the folder of a model or a run; "
        "by default translator",
        zh="translator（翻译）、poet（写诗）、handmade（手工设定权重的一层），或模型、训练的文件夹；默认为 translator",
    ),
    "help-see-output": Message(
        en='use this translation, or this continuation, instead of the model\'s own; "" for none',
        zh='使用这段译文或续写，而不是模型自己的输出；"" 表示空',
    ),
    "help-see-silence": Message(
        en="also silence the shown head, and print what that does to the tokens that the model writes",
        zh="同时关掉所显示的头，输出它对模型所写词元的影响",
    ),
    "see-silence-one": Message(
        en="--silence needs one head: name it with --layer N --head N",
        zh="--silence 需要指定一个头：请用 --layer N --head N",
    ),
    "see-handmade-silence": Message(
        en="--silence needs a model that writes text; the hand-made layer writes none",
        zh="--silence 需要会写文本的模型；手工搭建的那一层不输出文本",
    ),
    "see-silenced-reads": Message(
        en="row {row}: this head looks at {token} (weight {weight})",
        zh="{row} 这一行：这个头看的是 {token}（权重 {weight}）",
    ),
    "see-silenced": Message(
        en="without this head, probability of the written token (largest change first):",
        zh="关掉这个头之后，所写词元的概率（变化最大的在前）：",
    ),
    "see-silenced-instead": Message(en="now most likely: {token}", zh="现在最可能的是：{token}"),
    "help-width": Message(en="draw in N columns", zh="绘制宽度为 N 列"),
    "help-save": Message(
        en="also save the trace, all layers and heads, as a safetensors file, for regard.read_trace",
        zh="同时把所有层和头的记录保存为 safetensors 文件，可用 regard.read_trace 读取",
    ),
    "help-see-html": Message(
        en="also save the explorer of all layers and heads as one HTML file for a browser",
        zh="同时把所有层和头保存为一个可交互的 HTML 文件，用浏览器打开",
    ),
    "help-see-png": Message(
        en="save the chosen layers and heads as a PNG file instead, or as SVG or PDF by its ending; by default "
        "the head that would be printed (needs matplotlib)",
        zh="改为把选中的层和头保存为 PNG 图片，或按扩展名保存为 SVG、PDF；默认为终端显示的那个头（需要 matplotlib）",
    ),
    "help-see-svg": Message(
        en="save one head as an SVG that fits a column of a paper instead; by default the head that would be printed "
        "(needs no matplotlib)",
        zh="改为把一个头保存为适合论文单栏宽度的 SVG；默认为终端显示的那个头（不需要 matplotlib）",
    ),
    "see-svg-one": Message(
        en="--svg draws one head; choose it with --layer and --head, or use --png for several",
        zh="--svg 只画一个头；请用 --layer 和 --head 选定，要画多个请用 --png",
    ),
    "see-best-cross": Message(
        en="decoder layer {layer}, head {head}: the head that best aligns what is written with the text",
        zh="解码器第 {layer} 层，头 {head}：写出的词与原文对齐得最好的头",
    ),
    "see-best-decoder": Message(
        en="decoder layer {layer}, head {head}: the most informative head",
        zh="解码器第 {layer} 层，头 {head}：信息量最大的头",
    ),
    "see-matters": Message(
        en="decoder layer {layer}, head {head}: among the heads with a clear pattern, the one with the "
        "largest effect on the output",
        zh="解码器第 {layer} 层，头 {head}：在模式清晰的头中，对输出影响最大的一个",
    ),
    "see-clearest": Message(
        en="layer {layer}, head {head}: of {count} heads, the one with the clearest pattern here",
        zh="第 {layer} 层，头 {head}：{count} 个头中，在这段文本上模式最清晰的一个",
    ),
    "see-more-translation": Message(
        en="more: --head all, --layer all, --kind encoder or decoder; --json for numbers",
        zh="还可以：--head all、--layer all、--kind encoder 或 decoder；--json 输出数值",
    ),
    "see-more-text": Message(
        en="more: --head all, --layer all; --json for numbers",
        zh="还可以：--head all、--layer all；--json 输出数值",
    ),
    "see-more-overview": Message(
        en="more: --layer all shows an overview of every head, --layer 0 --head 0 one head, --layer 0 --head all "
        "each; --json for numbers",
        zh="还可以：--layer all 显示所有头的总览，--layer 0 --head 0 指定一个头，--layer 0 --head all 逐个显示；"
        "--json 输出数值",
    ),
    "see-example": Message(
        en="this is an example; give your own text after the command, or - to read it from stdin",
        zh="这是示例；请在命令后写上自己的文本，或用 - 从标准输入读取",
    ),
    "see-sentences": Message(
        en="several sentences are read as one here, which translates worse than sentence by sentence (regard "
        "translate): give one sentence",
        zh="这里把多个句子当作一个句子处理，翻译质量不如逐句翻译（regard translate）：请只给一个句子",
    ),
    "read-as": Message(en="read as “{text}”", zh="读作“{text}”"),
    "text-is-file": Message(
        en="this is the name of a file, but was read as text; to read the file: regard {command} - < {file}",
        zh="这是一个文件名，已被当作文本；要读取文件内容：regard {command} - < {file}",
    ),
    "see-or": Message(en=" or ", zh=" 或 "),
    "see-choice": Message(
        en="{option} must be a number counted from 0, or {words}; found {found!r}",
        zh="{option} 必须是从 0 开始的编号，或 {words}；实际为 {found!r}",
    ),
    "see-number": Message(
        en="there is no {option} {found}: numbers go from 0 to {last}",
        zh="没有 {option} {found}：编号从 0 到 {last}",
    ),
    "see-kind": Message(
        en="this model has no {asked} attention; it has: {kinds}",
        zh="这个模型没有 {asked} 这种注意力；它有：{kinds}",
    ),
    "see-json-too-large": Message(
        en="--json writes every weight, at most {most} of them; found {found}; choose with --layer and --head, "
        "or use --save, which takes any number",
        zh="--json 会写出每一个权重，最多 {most} 个；实际有 {found} 个；"
        "请用 --layer 和 --head 选择一部分，或使用不限数量的 --save",
    ),
    # --- regard see --model handmade ---
    "see-handmade-one": Message(
        en="handmade has only one layer, so there is nothing to choose with --kind and --layer; "
        "--head chooses among its heads",
        zh="handmade 只有一层，不能用 --kind 和 --layer 选择；可以用 --head 选择它的头",
    ),
    "see-handmade-output": Message(
        en="handmade writes nothing, so --output has no effect; leave it out",
        zh="handmade 没有输出，--output 不起作用；请去掉它",
    ),
    "see-handmade": Message(
        en="No trained model: one layer built by hand; each head does what its name says.",
        zh="这不是训练得到的模型，而是手工设定权重的一层注意力；每个头的作用如其名称。中文按字切分。",
    ),
    "see-sentence": Message(
        en="the cat sat on the mat and the dog sat on the cat",
        zh="小明爱看书，小红也爱看书",
    ),
    "see-head": Message(en="head {number}: {does}", zh="头 {number}：{does}"),
    "head-previous-word": Message(
        en="previous word (each word looks at the one before it)",
        zh="前一个词（每个词看它前面的那个）",
    ),
    "head-same-word": Message(
        en="same word (looks at itself and wherever the word stood before)",
        zh="同一个词（看自己，以及前面出现过的同一个词）",
    ),
    "head-first-word": Message(
        en="first word (every word looks at the beginning)",
        zh="第一个词（每个词都看开头）",
    ),
    "head-all-so-far": Message(
        en="all so far (looks evenly at itself and everything before)",
        zh="此前的全部（注意力均匀分布在自己和前面的每个词上）",
    ),
    "see-more": Message(
        en="more: --head 1 shows one head in full, --head all each of them; --json for numbers",
        zh="还可以：--head 1 完整显示一个头，--head all 逐个显示；--json 输出数值",
    ),
    "cli-text-empty": Message(
        en="there is no word in the text; try: regard see --model handmade the cat sat on the mat",
        zh="文本里没有词；试试：regard see --model handmade 小明去商店买了苹果",
    ),
    "cli-json-too-large": Message(
        en="--json writes every weight, of at most {most} words; found {found}; --save takes any number",
        zh="--json 会写出每一个权重，最多 {most} 个词；实际有 {found} 个；--save 不限长度",
    ),
    "cli-head-unknown": Message(
        en="there is no head {asked!r}; there are: {heads}, or all",
        zh="没有名为 {asked!r} 的头；现有：{heads}，或 all",
    ),
    "cli-text-too-long": Message(
        en="{found} words are more than regard see draws at once ({most}); give a part of the text, "
        "for example: head -c 50000",
        zh="共 {found} 个词，超过 regard see 一次能画的 {most} 个；请只给一部分文本，例如：head -c 50000",
    ),
    # --- regard translate ---
    "help-translate": Message(
        en="Translate English TEXT to Chinese, or with another model in its own languages.",
        zh="把英文文本译成中文；指定其他模型时，按该模型的语言翻译。",
    ),
    "help-translate-examples": Message(
        en="Examples:\n"
        "  regard translate I love you\n"
        '  regard translate "What\'s the time? I have to go home."\n'
        "  regard translate - < english.txt > chinese.txt",
        zh="示例：\n"
        "  regard translate I love you\n"
        '  regard translate "What\'s the time? I have to go home."\n'
        "  regard translate - < english.txt > chinese.txt",
    ),
    "help-translate-text": Message(
        en="the text; - reads stdin and prints a line for each of its lines",
        zh="要翻译的文本；- 表示读取标准输入，每行对应输出一行",
    ),
    "help-beams": Message(
        en="beam width: keep the N most likely hypotheses; by default the model's setting",
        zh="束宽：保留 N 个最可能的候选；默认为模型的设置",
    ),
    "help-translate-model": Message(
        en="the folder of a model or a run; by default the bundled translator",
        zh="模型或训练的文件夹；默认为自带的翻译模型",
    ),
    "help-translate-json": Message(
        en="print JSON instead of text; with -, a line of JSON for each line",
        zh="输出 JSON 而不是文本；用 - 时每行输出一行 JSON",
    ),
    "translate-no-text": Message(
        en="what should be translated? For example: regard translate I love you; - reads stdin",
        zh="要翻译什么？例如：regard translate I love you；- 表示读取标准输入",
    ),
    "translate-beams": Message(
        en="--beams must be at most {most}; found {found}; larger values are slower and not better",
        zh="--beams 不能超过 {most}；实际为 {found}；更大的值更慢，翻译质量并不提高",
    ),
    "translate-line": Message(en="line {number}: {reason}", zh="第 {number} 行：{reason}"),
    "translate-lines": Message(
        en="line {number}: {reason} ({count} such lines in all)",
        zh="第 {number} 行：{reason}（共有 {count} 行如此）",
    ),
    # --- regard generate ---
    "help-generate": Message(
        en="Continue PROMPT by sampling: the bundled poet writes poems in the style of the Tang dynasty.",
        zh="用随机采样续写提示词：自带的模型仿写唐诗。",
    ),
    "help-generate-examples": Message(
        en="Examples:\n"
        "  regard generate\n"
        "  regard generate --form 7x4 --seed 3 --count 2\n"
        '  regard generate "明月" --temperature 0.6\n'
        "  regard generate --model FOLDER --top-p 0.9 The capital of France is",
        zh="示例：\n"
        "  regard generate\n"
        "  regard generate --form 七绝 --seed 3 --count 2\n"
        "  regard generate 明月 --temperature 0.6\n"
        "  regard generate --model 文件夹 --max-tokens 50 --top-p 0.9 法国的首都是",
    ),
    "metavar-prompt": Message(en="PROMPT", zh="提示词"),
    "metavar-form": Message(en="5x4|7x4|5x8|7x8", zh="五绝|七绝|五律|七律"),
    "metavar-value": Message(en="X", zh="X"),
    "metavar-generate-model": Message(en="MODEL", zh="模型"),
    "help-prompt": Message(
        en="the beginning; - reads it from stdin; by default the model writes it",
        zh="开头；- 表示从标准输入读取；默认由模型自己开头",
    ),
    "help-form": Message(
        en="characters per line × lines of a poem; by default by the first line of the prompt, else 5x4",
        zh="诗体，也可写成 5x4、7x4、5x8、7x8（每句字数 × 句数）；默认按提示词的第一句判断，否则为五绝",
    ),
    "help-generate-seed": Message(
        en="the same seed gives the same text; by default 0",
        zh="随机种子，相同的种子生成相同的文本；默认为 0",
    ),
    "help-temperature": Message(
        en="below 1 less random, above 1 more random; 0 always takes the most likely token; "
        "by default the model's setting",
        zh="小于 1 更确定，大于 1 更随机；0 表示总取概率最高的词元；默认为模型的设置",
    ),
    "help-top-k": Message(
        en="sample from the N most likely tokens; by default the model's setting",
        zh="只从概率最高的 N 个词元中采样；默认为模型的设置",
    ),
    "help-top-p": Message(
        en="sample from the fewest tokens whose probability reaches X together, such as 0.9; "
        "by default the model's setting",
        zh="只从累计概率达到 X 的最少词元中采样，例如 0.9；默认为模型的设置",
    ),
    "help-min-p": Message(
        en="sample from tokens with at least X times the highest probability, such as 0.05; "
        "by default the model's setting",
        zh="只从概率不低于最高概率 X 倍的词元中采样，例如 0.05；默认为模型的设置",
    ),
    "help-generate-most": Message(
        en="the most tokens to add; by default the model's setting", zh="最多续写的词元数；默认为模型的设置"
    ),
    "help-generate-beams": Message(
        en="beam search that keeps the N most likely texts, instead of sampling",
        zh="不采样，改用束搜索，保留 N 个最可能的文本",
    ),
    "help-stop": Message(
        en="end before this text; may be given several times", zh="遇到这段文本即停止，不输出它；可以给出多次"
    ),
    "help-stream": Message(
        en="print the text while it is written; the default in a terminal", zh="边生成边输出；在终端中默认如此"
    ),
    "generate-stream-json": Message(
        en="--json prints whole texts at the end: leave out --stream or --json",
        zh="--json 在最后输出完整文本：请去掉 --stream 或 --json",
    ),
    "help-count": Message(
        en="the number of texts, with this seed and the following ones",
        zh="文本的数量：种子从 --seed 起依次加一",
    ),
    "generate-no-marks": Message(
        en="the prompt has no punctuation, so it is read as one line; add punctuation, for example “{written}”",
        zh="提示词里没有标点，被当成一句；请加上标点，例如写成“{written}”",
    ),
    # --- regard chat, convert, pull ---
    "help-chat": Message(
        en="Talk to a model in the terminal, and see what its answers attend to.",
        zh="在终端与模型对话，并查看回答关注了什么。",
    ),
    "help-chat-examples": Message(
        en="Examples:\n"
        "  regard chat --model SmolLM2-135M-Instruct.gguf\n"
        "  regard chat --model Qwen/Qwen3-0.6B --temperature 0\n"
        "  echo Hello | regard chat --model FOLDER --json",
        zh="示例：\n"
        "  regard chat --model SmolLM2-135M-Instruct.gguf\n"
        "  regard chat --model Qwen/Qwen3-0.6B --temperature 0\n"
        "  echo 你好 | regard chat --model 文件夹 --json",
    ),
    "metavar-chat-model": Message(en="MODEL", zh="模型"),
    "help-chat-model": Message(
        en="the folder of a model, a GGUF file, or the id of a model that was pulled",
        zh="模型的文件夹、GGUF 文件，或已下载的模型的 id",
    ),
    "help-chat-system": Message(en="the instruction before the conversation", zh="对话之前的指令"),
    "help-chat-most": Message(en="the most tokens of an answer; by default 512", zh="回答的最大词元数；默认为 512"),
    "help-convert": Message(
        en="Write a model in Hugging Face's layout: config.json, safetensors and its tokenizer.",
        zh="把模型转换成 Hugging Face 的格式：config.json、safetensors 和分词器。",
    ),
    "help-convert-examples": Message(
        en="Examples:\n  regard convert model.gguf FOLDER\n  regard convert runs/zh/model FOLDER --family marian",
        zh="示例：\n  regard convert model.gguf 文件夹\n  regard convert runs/zh/model 文件夹 --family marian",
    ),
    "metavar-convert-source": Message(en="SOURCE", zh="来源"),
    "metavar-convert-folder": Message(en="FOLDER", zh="文件夹"),
    "metavar-family": Message(en="FAMILY", zh="家族"),
    "help-convert-source": Message(
        en="a GGUF file, a folder of the hub, or a folder that regard wrote",
        zh="GGUF 文件、hub 格式的文件夹，或 regard 保存的文件夹",
    ),
    "help-convert-folder": Message(en="the new folder", zh="新文件夹"),
    "help-family": Message(
        en="for a folder that regard wrote, the model_type to write; by default the first that describes the model",
        zh="来源是 regard 保存的文件夹时，目标的 model_type；默认为第一个能描述该模型的",
    ),
    "converted": Message(en="{folder}: a model of type {family}", zh="{folder}：{family} 类型的模型"),
    "help-pull": Message(
        en="Download a model from Hugging Face's hub into its usual cache; an interrupted download continues.",
        zh="从 Hugging Face 下载模型，存入它的默认缓存；中断后可继续。",
    ),
    "help-pull-examples": Message(
        en="Examples:\n"
        "  regard pull HuggingFaceTB/SmolLM2-135M-Instruct\n"
        "  HF_ENDPOINT=https://MIRROR regard pull openai-community/gpt2\n"
        "\n"
        "Only safetensors, settings and tokenizers are downloaded, no code and no pickles.\n"
        "HF_HOME sets the cache; with HF_HUB_OFFLINE nothing is downloaded",
        zh="示例：\n"
        "  regard pull HuggingFaceTB/SmolLM2-135M-Instruct\n"
        "  HF_ENDPOINT=https://镜像站 regard pull openai-community/gpt2\n"
        "\n"
        "只下载 safetensors、设置和分词器，不下载代码和 pickle。\n"
        "HF_HOME 设置缓存的位置；设置了 HF_HUB_OFFLINE 时不下载",
    ),
    "metavar-hub-id": Message(en="ID", zh="ID"),
    "metavar-backend": Message(en="BACKEND", zh="后端"),
    "help-backend": Message(
        en="what computes the model: numpy, torch or transformers; by default the fastest that fits",
        zh="由什么计算：numpy、torch 或 transformers；默认为适用的后端中最快的",
    ),
    "metavar-weights": Message(en="WEIGHTS", zh="权重"),
    "help-weights": Message(
        en="float32, or int8: a quarter of the memory and faster on a CPU; by default float32",
        zh="float32 或 int8：内存为四分之一，在 CPU 上更快；默认为 float32",
    ),
    "help-prompt-lookup": Message(
        en="with temperature 0: the most tokens read at once where the text repeats itself; the same text, sooner",
        zh="温度为 0 时：文本重复时一次最多读入的词元数；结果相同，更快",
    ),
    "metavar-revision": Message(en="REVISION", zh="版本"),
    "help-pull-id": Message(en="organisation/name", zh="组织/名称"),
    "help-revision": Message(en="a branch, a tag or a commit; by default main", zh="分支、标签或提交；默认为 main"),
    "metavar-file-name": Message(en="NAME", zh="文件名"),
    "help-pull-file": Message(
        en="only this file of the repository, such as one of several GGUF files",
        zh="只下载仓库中的这个文件，例如几个 GGUF 文件之一",
    ),
    "pulled": Message(
        en='now: regard see --model {name} "a text"', zh='现在可以：regard see --model {name} "一段文本"'
    ),
    "help-generate-model": Message(
        en="poet, or the folder of a model or a run; by default poet",
        zh="poet（写诗），或模型、训练的文件夹；默认为 poet",
    ),
}
