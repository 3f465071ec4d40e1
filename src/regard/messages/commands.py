"""What the command line says, help pages included."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- help pages: their frame ---
    "help-usage": Words(en="Usage: ", zh="用法："),
    "help-usage-options": Words(en="[options]", zh="[选项]"),
    "help-usage-command": Words(en="[options] COMMAND ...", zh="[选项] 命令 ..."),
    "help-arguments": Words(en="Arguments:", zh="参数："),
    "help-options": Words(en="Options:", zh="选项："),
    "help-commands": Words(en="Commands:", zh="命令："),
    "help-help": Words(en="show this page", zh="显示本页"),
    "help-lang": Words(
        en="the language to speak; otherwise that of the environment (REGARD_LANG, LC_ALL, LC_MESSAGES, LANG)",
        zh="使用的语言；不写则按环境变量（REGARD_LANG、LC_ALL、LC_MESSAGES、LANG）",
    ),
    "help-debug": Words(
        en="show the traceback when something goes wrong",
        zh="出错时显示完整的调用栈",
    ),
    "help-json": Words(en="print JSON instead of text", zh="输出 JSON 而不是文字"),
    "help-version": Words(en="show the version", zh="显示版本"),
    "saved": Words(en="saved {file}", zh="已保存 {file}"),
    "metavar-matrix": Words(en="MATRIX", zh="矩阵"),
    "metavar-text": Words(en="TEXT", zh="文本"),
    "metavar-number": Words(en="N", zh="N"),
    "metavar-file": Words(en="FILE", zh="文件"),
    # --- regard ---
    "help-regard": Words(
        en="See attention: build it, watch it, learn it.",
        zh="让注意力看得见：动手搭、亲眼看、学明白。",
    ),
    "help-regard-examples": Words(
        en="Examples:\n"
        "  regard see I love you\n"
        "  regard translate Where is the station?\n"
        "  regard explain\n"
        "  regard learn\n"
        "  regard doctor\n"
        "\n"
        "Exit codes: 0 fine, 1 a check failed, 2 usage, 3 a file cannot be read or\n"
        "written, 4 something is missing, 5 out of memory or disk, 70 a bug in regard,\n"
        "130 interrupted",
        zh="例子：\n"
        "  regard see I love you\n"
        "  regard generate 明月\n"
        "  regard explain\n"
        "  regard learn\n"
        "  regard doctor\n"
        "\n"
        "退出码：0 正常，1 检查未通过，2 用法不对，3 文件无法读写，4 缺少依赖，\n"
        "5 内存或磁盘不够，70 程序自身的错误，130 被中断",
    ),
    # --- regard explain ---
    "help-explain": Words(
        en="Calculate attention by hand, step by step; without matrices, with the numbers of the tutorial.",
        zh="一步一步手算注意力。不给矩阵时，用教程里的数字。",
    ),
    "help-explain-examples": Words(
        en="Examples:\n"
        "  regard explain\n"
        '  regard explain --q "1 0" --k "1 0; 0 1" --v "5 0; 0 10"\n'
        '  regard explain --q "1; 2" --k "1; 2" --v "3; 4" --causal --code > attention.py',
        zh="例子：\n"
        "  regard explain\n"
        '  regard explain --q "1 0" --k "1 0；0 1" --v "5 0；0 10"\n'
        '  regard explain --q "1; 2" --k "1; 2" --v "3; 4" --causal --code > attention.py',
    ),
    "help-q": Words(
        en="the queries, a row each: rows between semicolons, numbers between spaces; - reads stdin",
        zh="查询，每行一个：行之间用分号，数字之间用空格；- 表示从标准输入读取",
    ),
    "help-k": Words(en="the keys, as wide as the queries", zh="键，宽度与查询相同"),
    "help-v": Words(en="the values, one for each key", zh="值，每个键对应一个"),
    "help-causal": Words(
        en="each query sees itself and what is before it",
        zh="每个查询只看自己和前面的",
    ),
    "help-mask": Words(
        en='who may look where, for example "1 0; 1 1": 1 may look, 0 may not',
        zh='谁能看谁，例如 "1 0; 1 1"：1 可以看，0 不可以',
    ),
    "help-code": Words(
        en="print NumPy code that can be pasted, instead of text",
        zh="输出可以直接粘贴运行的 NumPy 代码",
    ),
    # --- regard doctor ---
    "help-doctor": Words(
        en="Tell what can run on this machine, what cannot, and why.",
        zh="检查这台机器上哪些能用，哪些不能用，为什么。",
    ),
    "doctor-machine": Words(en="machine", zh="机器"),
    "doctor-cores": Words(en="CPU cores: {count}", zh="CPU 核心数：{count}"),
    "doctor-memory": Words(en=", free memory: {free}", zh="，可用内存：{free}"),
    "doctor-memory-unknown": Words(en=", free memory: unknown", zh="，可用内存：未知"),
    "doctor-language": Words(en="language", zh="语言"),
    "doctor-speaks": Words(en="English ({why})", zh="中文（{why}）"),
    "doctor-language-default": Words(en="nothing else was asked for", zh="没有另外指定"),
    "doctor-terminal": Words(en="terminal", zh="终端"),
    "doctor-terminal-is": Words(
        en="{columns} columns, {encoding}; {colors}",
        zh="{columns} 列，{encoding}；{colors}",
    ),
    "doctor-colors": Words(en="colours: {system}", zh="颜色：{system}"),
    "doctor-no-colors": Words(en="no colours (stdout is not a terminal)", zh="不使用颜色（标准输出不是终端）"),
    "doctor-plain-terminal": Words(en="a terminal without colours", zh="终端没有颜色"),
    "doctor-no-color-asked": Words(en="no colours (NO_COLOR is set)", zh="不使用颜色（设置了 NO_COLOR）"),
    "doctor-blas": Words(en=", BLAS: {name}", zh="，BLAS：{name}"),
    "doctor-torch": Words(
        en=", CUDA: {cuda}, Triton: {triton}, threads: {threads}",
        zh="，CUDA：{cuda}，Triton：{triton}，线程：{threads}",
    ),
    "doctor-torch-broken": Words(
        en=", installed but cannot be imported: {reason}",
        zh="，已安装但无法导入：{reason}",
    ),
    "doctor-no-cuda": Words(en="none", zh="无"),
    "doctor-no-triton": Words(en="none", zh="无"),
    "doctor-font": Words(en=", Chinese font: {name}", zh="，中文字体：{name}"),
    "doctor-no-font": Words(
        en=", no Chinese font found: plots write English, and positions in place of Chinese tokens; install one, for "
        "example Noto Sans CJK",
        zh="，没有找到中文字体：图里的说明改用英文，中文词元改写位置；请安装一种，例如 Noto Sans CJK",
    ),
    "doctor-missing": Words(
        en="not installed; gives {gives}: pip install 'regard[{extra}]'",
        zh="未安装；装上可以{gives}：pip install 'regard[{extra}]'",
    ),
    "doctor-core-missing": Words(
        en="missing, though regard needs it: pip install regard",
        zh="缺失，而 regard 必须有它：pip install regard",
    ),
    "extra-torch": Words(
        en="attend on PyTorch tensors, and deep_learning.nn", zh="对 PyTorch 张量使用 attend，并使用 deep_learning.nn"
    ),
    "extra-plot": Words(en="pictures with trace.plot()", zh="用 trace.plot() 画图"),
    "doctor-backends-numpy": Words(
        en="who computes attention for NumPy arrays (the first yes is taken)",
        zh="NumPy 数组的注意力由谁计算（从上往下取第一个可用的）",
    ),
    "doctor-backends-torch": Words(
        en="who computes attention for torch tensors (the first yes is taken)",
        zh="torch 张量的注意力由谁计算（从上往下取第一个可用的）",
    ),
    # --- talk and complaints ---
    "cli-reading-stdin": Words(
        en="reading from the keyboard; end with Ctrl-D (Windows: Ctrl-Z, Enter)",
        zh="正在从键盘读取；按 Ctrl-D 结束（Windows：Ctrl-Z 回车）",
    ),
    "cli-stdin-not-utf8": Words(
        en="stdin is not UTF-8: byte 0x{byte} at position {position}; convert it, for example with iconv",
        zh="标准输入不是 UTF-8：第 {position} 个字节处是 0x{byte}；请先转换编码，例如用 iconv",
    ),
    "cli-stdin-large": Words(
        en="stdin has more than {most}, which is more than this command reads; give it a smaller part",
        zh="标准输入超过 {most}，此命令最多读取这么多；请分成较小的部分",
    ),
    "stdout-closed": Words(
        en="stdout is closed, so nothing can be printed; send it to a file or to /dev/null",
        zh="标准输出已关闭，无法输出结果；请把它重定向到文件或 /dev/null",
    ),
    "cli-escaped": Words(
        en="stdout is {encoding}, which lacks some of these characters; they are written as \\uXXXX. "
        "PYTHONIOENCODING=utf-8 writes them as they are",
        zh="标准输出的编码是 {encoding}，缺少其中一些字符，已写成 \\uXXXX；设置 PYTHONIOENCODING=utf-8 可原样输出",
    ),
    "cli-folder-gone": Words(
        en="the current folder has been deleted, or may not be read: change to another one (cd)",
        zh="当前文件夹已被删除或无法访问，请先换到别的文件夹（cd）",
    ),
    "cli-stdin-line-long": Words(
        en="stdin has a line of more than {most} bytes, which is no line of text",
        zh="标准输入里有一行超过 {most} 字节，这不像一行文字",
    ),
    "cli-number-from-zero": Words(
        en="{option} must be a finite number of at least 0; found {found!r}",
        zh="{option} 必须是不小于 0 的有限数；现在是 {found!r}",
    ),
    "cli-stdin-twice": Words(
        en="stdin can be read only once, but {options} all ask for it",
        zh="标准输入只能读一次，而 {options} 都要读它",
    ),
    "cli-matrices-together": Words(
        en="--q, --k and --v belong together: give all three, or none for the tutorial's; "
        "found {found}, missing {missing}",
        zh="--q、--k、--v 要一起给：三个都给，或都不给（用教程的数字）；现在有 {found}，缺 {missing}",
    ),
    "cli-matrix-large": Words(
        en="{option}, row {row}: {found} is larger than 1.8e308, the largest float64",
        zh="{option} 第 {row} 行：{found} 超过 float64 的最大值 1.8e308",
    ),
    "cli-matrix-empty": Words(
        en='{option} holds no numbers; a matrix is written "1 0; 0 1"',
        zh='{option} 里没有数字；矩阵写成 "1 0; 0 1"',
    ),
    "cli-matrix-ragged": Words(
        en="{option}: row {row} is {found} long, but row 1 is {wanted} long",
        zh="{option} 第 {row} 行有 {found} 个数，而第 1 行有 {wanted} 个",
    ),
    "cli-matrix-not-number": Words(
        en='{option}, row {row}: {found!r} is not a number; a matrix is written "1 0; 0 1"',
        zh='{option} 第 {row} 行：{found!r} 不是数字；矩阵写成 "1 0; 0 1"',
    ),
    "cli-matrix-not-mask": Words(
        en="{option}, row {row}: a mask holds 1 (may look) and 0 (may not); found {found}",
        zh="{option} 第 {row} 行：掩码只有 1（可以看）和 0（不可以）；发现了 {found}",
    ),
    "cli-lang-unknown": Words(
        en="--lang must be one of {languages}; found {asked!r}",
        zh="--lang 必须是 {languages} 之一；现在是 {asked!r}",
    ),
    "cli-option-unknown": Words(
        en="there is no option {option} (see {command} --help; text that begins with - goes after --)",
        zh="没有选项 {option}（见 {command} --help；以 - 开头的文本请放在 -- 之后）",
    ),
    "cli-option-unknown-near": Words(
        en="there is no option {option}; did you mean {nearest}? (see {command} --help)",
        zh="没有选项 {option}；是不是想写 {nearest}？（见 {command} --help）",
    ),
    "cli-option-needs-value": Words(en="option {option} needs a value", zh="选项 {option} 需要一个值"),
    "cli-option-takes-no-value": Words(en="option {option} takes no value", zh="选项 {option} 不带值"),
    "cli-command-unknown": Words(
        en="there is no command {asked!r}; there are: {names} (see {command} --help)",
        zh="没有命令 {asked!r}；现有：{names}（见 {command} --help）",
    ),
    "cli-command-unknown-near": Words(
        en="there is no command {asked!r}; did you mean {nearest}? There are: {names}",
        zh="没有命令 {asked!r}；是不是想写 {nearest}？现有：{names}",
    ),
    "cli-extra-arguments": Words(
        en="{command} has no use for: {found} (see {command} --help)",
        zh="{command} 用不上这些参数：{found}（见 {command} --help）",
    ),
    "cli-usage-other": Words(
        en="{message} (see {command} --help)",
        zh="参数不对：{message}（见 {command} --help）",
    ),
    "cli-file-trouble": Words(en="{file}: {reason}", zh="{file}：{reason}"),
    "cli-out-of-memory": Words(en="out of memory", zh="内存不够"),
    "cli-out-of-memory-of": Words(en="out of memory: {need} were asked for", zh="内存不够：需要 {need}"),
    "cli-out-of-disk": Words(en="out of disk space", zh="磁盘空间不够"),
    "cli-this-command": Words(en="this command", zh="这条命令"),
    "cli-unexpected": Words(
        en="a mistake of ours, {kind}: {message}; run again with --debug to see where",
        zh="regard 内部出错，{kind}：{message}；加上 --debug 再运行可以看到出错的地方",
    ),
}
