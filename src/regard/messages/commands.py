"""Messages of the command line, help pages included; and of surveys."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- help pages: their frame ---
    "help-usage": Message(en="Usage: ", zh="用法："),
    "help-usage-options": Message(en="[options]", zh="[选项]"),
    "help-usage-command": Message(en="[options] COMMAND ...", zh="[选项] 命令 ..."),
    "help-arguments": Message(en="Arguments:", zh="参数："),
    "help-options": Message(en="Options:", zh="选项："),
    "help-commands": Message(en="Commands:", zh="命令："),
    "help-help": Message(en="show this page", zh="显示本页"),
    "help-lang": Message(
        en="language of the output; by default that of the environment (REGARD_LANG, LC_ALL, LC_MESSAGES, LANG)",
        zh="输出的语言；默认按环境变量（REGARD_LANG、LC_ALL、LC_MESSAGES、LANG）",
    ),
    "help-debug": Message(
        en="show the traceback of an error",
        zh="出错时显示完整的调用栈",
    ),
    "help-json": Message(en="print JSON instead of text", zh="输出 JSON 而不是文本"),
    "help-version": Message(en="show the version", zh="显示版本"),
    "saved": Message(en="saved {file}", zh="已保存 {file}"),
    "metavar-matrix": Message(en="MATRIX", zh="矩阵"),
    "metavar-text": Message(en="TEXT", zh="文本"),
    "metavar-number": Message(en="N", zh="N"),
    "metavar-file": Message(en="FILE", zh="文件"),
    # --- regard ---
    "help-regard": Message(
        en="Attention: build it, see it, learn it.",
        zh="注意力：构建、观察、学习。",
    ),
    "help-regard-examples": Message(
        en="Examples:\n"
        "  regard see I love you\n"
        "  regard translate Where is the station?\n"
        "  regard explain\n"
        "  regard learn\n"
        "  regard doctor\n"
        "\n"
        "Exit codes: 0 success, 1 a check failed, 2 usage, 3 a file cannot be read or\n"
        "written, 4 something is missing, 5 out of memory or disk, 70 a bug in regard,\n"
        "130 interrupted",
        zh="示例：\n"
        "  regard see I love you\n"
        "  regard generate 明月\n"
        "  regard explain\n"
        "  regard learn\n"
        "  regard doctor\n"
        "\n"
        "退出码：0 成功，1 检查未通过，2 用法错误，3 文件无法读写，4 缺少依赖，\n"
        "5 内存或磁盘空间不足，70 regard 自身的错误，130 被中断",
    ),
    # --- regard explain ---
    "help-explain": Message(
        en="Calculate attention by hand, step by step; by default with the numbers of the tutorial.",
        zh="逐步手算注意力。默认使用教程里的数字。",
    ),
    "help-explain-examples": Message(
        en="Examples:\n"
        "  regard explain\n"
        '  regard explain --q "1 0" --k "1 0; 0 1" --v "5 0; 0 10"\n'
        '  regard explain --q "1; 2" --k "1; 2" --v "3; 4" --causal --code > attention.py',
        zh="示例：\n"
        "  regard explain\n"
        '  regard explain --q "1 0" --k "1 0; 0 1" --v "5 0; 0 10"\n'
        '  regard explain --q "1; 2" --k "1; 2" --v "3; 4" --causal --code > attention.py',
    ),
    "help-q": Message(
        en="the queries, one per row: semicolons separate rows, spaces separate numbers; - reads stdin",
        zh="查询，每行一个：行用分号分隔，数字用空格分隔；- 表示从标准输入读取",
    ),
    "help-k": Message(en="the keys, as wide as the queries", zh="键，宽度与查询相同"),
    "help-v": Message(en="the values, one for each key", zh="值，每个键对应一个"),
    "help-causal": Message(
        en="causal mask: a query attends to itself and earlier keys",
        zh="因果掩码：每个查询只关注自己和之前的键",
    ),
    "help-mask": Message(
        en='the mask, for example "1 0; 1 1": 1 is visible, 0 is masked',
        zh='掩码，例如 "1 0; 1 1"：1 表示可见，0 表示被屏蔽',
    ),
    "help-code": Message(
        en="print runnable NumPy code instead of text",
        zh="输出可直接运行的 NumPy 代码",
    ),
    # --- regard doctor ---
    "help-doctor": Message(
        en="Show what can run on this machine, what cannot, and why.",
        zh="检查这台机器上哪些功能可用、哪些不可用，以及原因。",
    ),
    "doctor-machine": Message(en="machine", zh="机器"),
    "doctor-cores": Message(en="CPU cores: {count}", zh="CPU 核心数：{count}"),
    "doctor-memory": Message(en=", free memory: {free}", zh="，可用内存：{free}"),
    "doctor-memory-unknown": Message(en=", free memory: unknown", zh="，可用内存：未知"),
    "doctor-language": Message(en="language", zh="语言"),
    "doctor-speaks": Message(en="English ({why})", zh="中文（{why}）"),
    "doctor-language-default": Message(en="default", zh="默认"),
    "doctor-terminal": Message(en="terminal", zh="终端"),
    "doctor-terminal-is": Message(
        en="{columns} columns, {encoding}; {colors}",
        zh="{columns} 列，{encoding}；{colors}",
    ),
    "doctor-colors": Message(en="colours: {system}", zh="颜色：{system}"),
    "doctor-no-colors": Message(en="no colours (stdout is not a terminal)", zh="不使用颜色（标准输出不是终端）"),
    "doctor-plain-terminal": Message(en="a terminal without colours", zh="终端没有颜色"),
    "doctor-no-color-asked": Message(en="no colours (NO_COLOR is set)", zh="不使用颜色（设置了 NO_COLOR）"),
    "doctor-blas": Message(en=", BLAS: {name}", zh="，BLAS：{name}"),
    "doctor-torch": Message(
        en=", CUDA: {cuda}, Triton: {triton}, threads: {threads}",
        zh="，CUDA：{cuda}，Triton：{triton}，线程：{threads}",
    ),
    "doctor-torch-broken": Message(
        en=", installed but cannot be imported: {reason}",
        zh="，已安装但无法导入：{reason}",
    ),
    "doctor-no-cuda": Message(en="none", zh="无"),
    "doctor-no-triton": Message(en="none", zh="无"),
    "doctor-font": Message(en=", Chinese font: {name}", zh="，中文字体：{name}"),
    "doctor-no-font": Message(
        en=", no Chinese font found: plots are in English, with positions in place of Chinese tokens; install one, for "
        "example Noto Sans CJK",
        zh="，没有找到中文字体：图中文字改用英文，中文词元用位置代替；请安装一种，例如 Noto Sans CJK",
    ),
    "doctor-missing": Message(
        en="not installed; needed for {gives}: pip install 'regard[{extra}]'",
        zh="未安装；安装后可以{gives}：pip install 'regard[{extra}]'",
    ),
    "doctor-core-missing": Message(
        en="missing, but required by regard: pip install regard",
        zh="缺失，而 regard 依赖它：pip install regard",
    ),
    "extra-torch": Message(
        en="attend on PyTorch tensors, and deep_learning.nn", zh="对 PyTorch 张量使用 attend，并使用 deep_learning.nn"
    ),
    "extra-plot": Message(en="pictures with trace.plot()", zh="用 trace.plot() 画图"),
    "doctor-backends-numpy": Message(
        en="attention backends for NumPy arrays (the first yes is used)",
        zh="NumPy 数组的注意力后端（使用第一个可用的）",
    ),
    "doctor-backends-torch": Message(
        en="attention backends for torch tensors (the first yes is used)",
        zh="torch 张量的注意力后端（使用第一个可用的）",
    ),
    # --- notes and errors ---
    "cli-reading-stdin": Message(
        en="reading from the keyboard; end with Ctrl-D (Windows: Ctrl-Z, Enter)",
        zh="正在从键盘读取；按 Ctrl-D 结束（Windows：Ctrl-Z 回车）",
    ),
    "cli-stdin-not-utf8": Message(
        en="stdin is not UTF-8: byte 0x{byte} at position {position}; convert it, for example with iconv",
        zh="标准输入不是 UTF-8：第 {position} 个字节处是 0x{byte}；请先转换编码，例如用 iconv",
    ),
    "cli-stdin-large": Message(
        en="stdin has more than {most}, the most that this command reads; give a smaller part",
        zh="标准输入超过 {most}，此命令最多读取这么多；请分成较小的部分",
    ),
    "stdout-closed": Message(
        en="stdout is closed, so nothing can be printed; redirect it to a file or to /dev/null",
        zh="标准输出已关闭，无法输出结果；请把它重定向到文件或 /dev/null",
    ),
    "cli-escaped": Message(
        en="stdout is {encoding}, which cannot encode some of these characters; they are written as \\uXXXX. "
        "Set PYTHONIOENCODING=utf-8 to print them",
        zh="标准输出的编码是 {encoding}，无法表示其中一些字符，已写成 \\uXXXX；设置 PYTHONIOENCODING=utf-8 可正常输出",
    ),
    "folder-removed": Message(
        en="the current folder has been deleted or cannot be read: change to another one (cd)",
        zh="当前文件夹已被删除或无法访问，请先换到别的文件夹（cd）",
    ),
    "cli-stdin-line-long": Message(
        en="stdin has a line of more than {most} bytes, which is not text",
        zh="标准输入里有一行超过 {most} 字节，不是文本",
    ),
    "cli-number-from-zero": Message(
        en="{option} must be a finite number of at least 0; found {found!r}",
        zh="{option} 必须是不小于 0 的有限数；实际为 {found!r}",
    ),
    "cli-stdin-twice": Message(
        en="stdin can be read only once, but {options} all request it",
        zh="标准输入只能读一次，而 {options} 都要读它",
    ),
    "cli-matrices-together": Message(
        en="give all of --q, --k and --v, or none to use those of the tutorial; found {found}, missing {missing}",
        zh="--q、--k、--v 必须同时给出，或都不给（使用教程的数字）；实际有 {found}，缺 {missing}",
    ),
    "cli-matrix-large": Message(
        en="{option}, row {row}: {found} is larger than 1.8e308, the largest float64",
        zh="{option} 第 {row} 行：{found} 超过 float64 的最大值 1.8e308",
    ),
    "cli-matrix-empty": Message(
        en='{option} holds no numbers; a matrix is written "1 0; 0 1"',
        zh='{option} 里没有数字；矩阵写成 "1 0; 0 1"',
    ),
    "cli-matrix-ragged": Message(
        en="{option}: row {row} has {found} numbers, but row 1 has {wanted}",
        zh="{option} 第 {row} 行有 {found} 个数，而第 1 行有 {wanted} 个",
    ),
    "cli-matrix-not-number": Message(
        en='{option}, row {row}: {found!r} is not a number; a matrix is written "1 0; 0 1"',
        zh='{option} 第 {row} 行：{found!r} 不是数字；矩阵写成 "1 0; 0 1"',
    ),
    "cli-matrix-not-mask": Message(
        en="{option}, row {row}: a mask holds 1 (visible) and 0 (masked); found {found}",
        zh="{option} 第 {row} 行：掩码只能包含 1（可见）和 0（被屏蔽）；实际为 {found}",
    ),
    "cli-lang-unknown": Message(
        en="--lang must be one of {languages}; found {asked!r}",
        zh="--lang 必须是 {languages} 之一；实际为 {asked!r}",
    ),
    "cli-option-unknown": Message(
        en="there is no option {option} (see {command} --help; text that begins with - goes after --)",
        zh="没有选项 {option}（见 {command} --help；以 - 开头的文本请放在 -- 之后）",
    ),
    "cli-option-unknown-near": Message(
        en="there is no option {option}; did you mean {nearest}? (see {command} --help)",
        zh="没有选项 {option}；是不是想写 {nearest}？（见 {command} --help）",
    ),
    "cli-option-needs-value": Message(en="option {option} needs a value", zh="选项 {option} 需要一个值"),
    "cli-option-takes-no-value": Message(en="option {option} takes no value", zh="选项 {option} 不带值"),
    "cli-command-unknown": Message(
        en="there is no command {asked!r}; there are: {names} (see {command} --help)",
        zh="没有命令 {asked!r}；现有：{names}（见 {command} --help）",
    ),
    "cli-command-unknown-near": Message(
        en="there is no command {asked!r}; did you mean {nearest}? There are: {names}",
        zh="没有命令 {asked!r}；是不是想写 {nearest}？现有：{names}",
    ),
    "cli-extra-arguments": Message(
        en="{command} takes no such arguments: {found} (see {command} --help)",
        zh="{command} 用不上这些参数：{found}（见 {command} --help）",
    ),
    "cli-argument-missing": Message(
        en="{argument} is missing; write: {usage} (see {command} --help)",
        zh="缺少参数“{argument}”；请写成：{usage}（见 {command} --help）",
    ),
    "cli-usage-other": Message(
        en="{message} (see {command} --help)",
        zh="参数错误：{message}（见 {command} --help）",
    ),
    "cli-file-trouble": Message(en="{file}: {reason}", zh="{file}：{reason}"),
    "cli-out-of-memory": Message(en="out of memory", zh="内存不足"),
    "cli-out-of-memory-of": Message(en="out of memory: {need} requested", zh="内存不足：需要 {need}"),
    "cli-out-of-disk": Message(en="out of disk space", zh="磁盘空间不足"),
    "cli-this-command": Message(en="this command", zh="此命令"),
    "cli-unexpected": Message(
        en="internal error, {kind}: {message}; run again with --debug for the traceback",
        zh="regard 内部错误，{kind}：{message}；加上 --debug 重新运行可查看调用栈",
    ),
    # --- surveys ---
    "help-survey": Message(
        en="What every head of a model does over a corpus: patterns, entropy, sink and distance with confidence "
        "intervals, and the texts that show each head best. The same command continues an interrupted survey; torchrun "
        "splits the texts over processes.",
        zh="统计模型的每个头在一份语料上的行为：模式、熵、注意力汇（attention sink）和距离（带置信区间），"
        "以及最能体现每个头的文本。"
        "中断后执行同一命令即可继续；用 torchrun 可由多个进程分担文本。",
    ),
    "help-survey-examples": Message(
        en="Examples:\n"
        "  regard survey --model poet --texts poems.txt --out surveys/poet\n"
        "  regard heads --survey surveys/poet --find separator\n"
        "  torchrun --nproc-per-node 2 -m regard survey --model FOLDER --texts texts.txt --out surveys/model",
        zh="示例：\n"
        "  regard survey --model poet --texts poems.txt --out surveys/poet\n"
        "  regard heads --survey surveys/poet --find separator\n"
        "  torchrun --nproc-per-node 2 -m regard survey --model FOLDER --texts texts.txt --out surveys/model",
    ),
    "help-survey-model": Message(
        en="the model: poet, translator, or a folder", zh="模型：poet、translator，或一个文件夹"
    ),
    "help-survey-texts": Message(
        en="a file with a text on each line; for a translator source, tab, target",
        zh="文本文件，每行一段；翻译模型每行是原文、制表符、译文",
    ),
    "help-survey-out": Message(en="the folder of its state and result", zh="保存状态和结果的文件夹"),
    "help-survey-queries": Message(
        en="queries of each text that are measured, evenly spread; 64 by default",
        zh="每段文本测量的查询数，均匀分布；默认为 64",
    ),
    "help-heads-survey": Message(
        en="show the heads of a survey that is done, from its folder", zh="显示一次已完成的调查（survey）的结果"
    ),
    "survey-progress": Message(en="{texts:,} texts, {tokens:,} tokens", zh="已读 {texts:,} 段文本，{tokens:,} 个词元"),
    "survey-needs": Message(
        en="regard survey needs {name}; write: regard survey --model MODEL --texts FILE --out FOLDER",
        zh="regard survey 需要 {name}；请写成：regard survey --model 模型 --texts 文件 --out 文件夹",
    ),
    "heads-survey-text": Message(
        en="--survey shows a survey that is done, so it takes no text; leave out the text, or --survey",
        zh="--survey 显示已完成的调查，不需要文本；请去掉文本，或去掉 --survey",
    ),
    "survey-title": Message(
        en="What the heads of {model} look at: {texts} texts, {tokens} tokens",
        zh="{model} 的各个头关注什么：共 {texts} 段文本，{tokens} 个词元",
    ),
    "survey-entropy": Message(en="entropy", zh="熵"),
    "survey-sink": Message(en="sink", zh="注意力汇"),
    "survey-distance": Message(en="distance", zh="距离"),
    "survey-passages": Message(
        en="Where each shows best: ⟨query⟩ and [key]",
        zh="各头表现最明显的地方：⟨查询⟩ 与 [键]",
    ),
    "survey-passage": Message(
        en="{name}, head {head}, text {text}: {passage}",
        zh="{name}，头 {head}，文本 {text}：{passage}",
    ),
    "survey-empty": Message(en="empty texts, skipped: {count}", zh="空文本（已跳过）：{count}"),
    "survey-unreadable": Message(
        en="texts that the model cannot read, skipped: {count}", zh="模型无法读入的文本（已跳过）：{count}"
    ),
    "survey-cut": Message(
        en="texts longer than the model reads, of which only the beginning counts: {count}",
        zh="超过模型最大长度的文本（只统计开头部分）：{count}",
    ),
    "survey-intervals": Message(
        en="±: 95 % confidence interval over texts.",
        zh="±：以文本为单位的 95% 置信区间。",
    ),
    "survey-model": Message(
        en="survey needs a model that regard.load returns, its name or folder, or a torch.nn.Module with a tokenizer; "
        "found {found}",
        zh="survey 需要 regard.load 返回的模型、它的名字或文件夹，或带分词器的 torch.nn.Module；实际为 {found}",
    ),
    "survey-tokenizer": Message(
        en="survey of a PyTorch module needs tokenizer= with a method encode; found {found}",
        zh="对 PyTorch 模块做 survey 需要 tokenizer=，且带有 encode 方法；实际为 {found}",
    ),
    "survey-texts": Message(
        en="texts must be strings, or the path of a file with a text on each line; found {found}",
        zh="texts 应为若干字符串，或每行一段文本的文件的路径；实际为 {found}",
    ),
    "survey-not-utf8": Message(
        en="line {line} of {path} is not UTF-8; convert the file, for example with iconv",
        zh="{path} 的第 {line} 行不是 UTF-8；请先转换编码，例如用 iconv",
    ),
    "survey-no-texts": Message(
        en="there is no text to measure: all {count} are empty, or the model cannot read them{reason}",
        zh="没有可以测量的文本：全部 {count} 段都是空的，或模型无法读入{reason}",
    ),
    "survey-all-unreadable": Message(
        en="the model could read none of the first {count} texts: {reason}",
        zh="前 {count} 段文本模型一段也无法读入：{reason}",
    ),
    "survey-no-file": Message(
        en="there is no file {path}; texts= is the path of a file with a text on each line, or a list of strings such "
        "as [{text!r}]",
        zh="没有文件 {path}；texts= 应为每行一段文本的文件的路径，或字符串列表：[{text!r}]",
    ),
    "survey-training": Message(
        en="the module is in training mode, where dropout changes its attention; call model.eval() first",
        zh="该模块处于训练模式，dropout 会改变它的注意力；请先调用 model.eval()",
    ),
    "survey-target": Message(
        en="{name} is an encoder-decoder: write each text as source, tab, target",
        zh="{name} 是编码器–解码器：每段文本请写成“原文、制表符、译文”",
    ),
    "survey-no-ids": Message(en="the tokenizer gives no ids for it", zh="分词器没有给出任何 id"),
    "survey-id": Message(
        en="the tokenizer gives the id {id}, but the model knows {count} ids: it belongs to another model",
        zh="分词器给出的 id 是 {id}，而模型只有 {count} 个 id：它属于另一个模型",
    ),
    "survey-nothing": Message(
        en="no attention of {name} was recorded, so there are no heads to measure",
        zh="没有记录到 {name} 的注意力，因此没有可以测量的头",
    ),
    "survey-other": Message(
        en="{path} holds the survey of another model, or one with other settings; use another --out",
        zh="{path} 里是另一个模型或另一组设置的调查；请换一个 --out",
    ),
    "survey-other-texts": Message(
        en="the texts that {path} has already measured have changed; restore them, or use another --out",
        zh="{path} 已测量过的文本发生了变化；请恢复它们，或换一个 --out",
    ),
    "survey-needs-out": Message(
        en="a survey by several processes needs a folder for its state: out=, or --out",
        zh="多进程的调查需要一个保存状态的文件夹：out= 或 --out",
    ),
    "survey-absent": Message(
        en="{path} has no finished survey; run: regard survey --model MODEL --texts FILE --out {path}",
        zh="{path} 里没有完成的调查；请运行：regard survey --model 模型 --texts 文件 --out {path}",
    ),
    "survey-newer": Message(
        en="{path} has version {found}, which this regard does not read; pip install --upgrade regard",
        zh="{path} 的版本是 {found}，当前的 regard 无法读取；请 pip install --upgrade regard",
    ),
    "survey-garbled": Message(
        en="{path} is damaged; remove it: the texts it covers are then measured again",
        zh="{path} 已损坏；请删除它，其中的文本会重新测量",
    ),
}
