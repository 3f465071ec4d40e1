"""Messages of a check and of `regard learn build`: verdicts, differences, parts, and sources that cannot be run."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "exercise-unknown": Message(
        en="there is no exercise {asked!r}; `regard learn list` shows all {count}",
        zh="没有名为 {asked!r} 的练习；`regard learn list` 列出全部 {count} 个",
    ),
    "exercise-unknown-near": Message(
        en="there is no exercise {asked!r}; the closest of {count} is {nearest!r} (`regard learn list` shows them all)",
        zh="没有名为 {asked!r} 的练习；{count} 个练习里最接近的是 {nearest!r}（`regard learn list` 列出全部）",
    ),
    # --- check() in notebooks ---
    "check-nothing": Message(
        en='pass your code: check("{id}", {names})',
        zh='请传入你写的代码：check("{id}", {names})',
    ),
    "check-sheet": Message(
        en="{id} is an answer sheet: pass its text as a string",
        zh="{id} 是答题纸：请以字符串传入它的文本",
    ),
    "check-not-a-function": Message(
        en="{what} is a value, such as the result of a call; pass the function or class itself, without calling it",
        zh="{what} 是一个值，比如调用的结果；请传入函数或类本身，不要调用它",
    ),
    "check-no-source": Message(
        en="the source of {what} is not available; define it with def or class in a cell or a file",
        zh="无法读取 {what} 的源代码；请在单元格或文件里用 def 或 class 定义它",
    ),
    "check-value": Message(
        en="your code uses the notebook variable {name} ({type}), which cannot be sent to the grader; create it inside "
        "the function",
        zh="你的代码用到了笔记本中的变量 {name}（{type}），无法传给批改程序；请在函数内部创建它",
    ),
    "check-id": Message(
        en='the first argument is the id of an exercise as a string: check("softmax", softmax); found a value of '
        "type {type}. The list of ids: regard learn",
        zh='第一个参数是练习的 id，要写成字符串：check("softmax", softmax)；这里传入的类型是 {type}。'
        "id 列表：regard learn",
    ),
    "check-no-value": Message(
        en="your code uses {name}, which has no value yet; run the cell that sets it, then check again",
        zh="你的代码用到了 {name}，它还没有值；请先运行给它赋值的单元格，再来批改",
    ),
    # --- answer sheets ---
    "sheet-line": Message(
        en="line {line} cannot be read: {text}; write a number as 0.5, a row as [1, 2], a matrix as [[1, 2], [3, 4]], "
        'a word as "word"',
        zh='第 {line} 行无法读取：{text}；数写作 0.5，一行写作 [1, 2]，矩阵写作 [[1, 2], [3, 4]]，文字写作 "文字"',
    ),
    "sheet-seed": Message(
        en="the line `seed = …` is missing, which identifies the numbers of the sheet; `regard learn reset {id}` "
        "writes a new sheet and keeps yours under another name",
        zh="缺少 `seed = …` 这一行，它标明答题纸使用的数据；`regard learn reset {id}` "
        "会生成一张新的答题纸，你填写的会改名保留",
    ),
    "sheet-empty": Message(en="{name} is still empty", zh="{name} 尚未填写"),
    "sheet-unknown": Message(
        en="{name} is wrong, and no known mistake gives this answer; repeat this step",
        zh="{name} 不正确，也不符合任何已知的错误；请重新计算这一步",
    ),
    "sheet-letters": Message(
        en="the number of letters in {name} should be {wanted}, not {found}",
        zh="{name} 需要 {wanted} 个字母；实际有 {found} 个",
    ),
    "sheet-numbers": Message(
        en="the number of values in {name} should be {wanted}, not {found}",
        zh="{name} 需要 {wanted} 个数；实际有 {found} 个",
    ),
    "sheet-passed": Message(en="{title}: everything is right", zh="{title}：全部正确"),
    "sheet-failed": Message(
        en="{title}: {passed} of {count} answers right", zh="{title}：{count} 个答案对了 {passed} 个"
    ),
    "sheet-nothing-run": Message(en="{title}: the sheet could not be read", zh="{title}：答题纸无法读取"),
    "sheet-total": Message(
        en="the numbers of {name} sum to {found}; they should sum to {total}",
        zh="{name} 的各个数之和是 {found}；应当等于 {total}",
    ),
    "sheet-first": Message(en="The first wrong answer: {name}", zh="第一个错误的答案：{name}"),
    "sheet-got": Message(en="you typed", zh="你填的是"),
    "sheet-tolerance": Message(en="allowed: ± {tolerance}", zh="允许的误差：± {tolerance}"),
    # --- the lines of a verdict ---
    "verdict-passed": Message(en="{title}: all {count} tests pass", zh="{title}：{count} 项测试全部通过"),
    "verdict-failed": Message(
        en="{title}: {passed} of {count} tests pass", zh="{title}：{count} 项测试通过 {passed} 项"
    ),
    "verdict-nothing-run": Message(en="{title}: no test could be run", zh="{title}：测试无法运行"),
    "verdict-first": Message(en="The first test that fails: {name}", zh="第一个没通过的测试：{name}"),
    "verdict-call": Message(en="call", zh="调用"),
    "verdict-expected": Message(en="expected", zh="应得"),
    "verdict-got": Message(en="got", zh="实得"),
    "verdict-mistake": Message(en="Diagnosis: {what}", zh="诊断：{what}"),
    "verdict-printed": Message(en="Output and warnings of your program:", zh="程序的输出和警告："),
    "verdict-printed-more": Message(en="... and {count} more characters", zh="... 还有 {count} 个字符"),
    "verdict-next": Message(en="A hint: regard learn hint {id}", zh="看提示：regard learn hint {id}"),
    "verdict-again": Message(
        en="The same data once more: regard learn check {id} {file} --seed {seed}",
        zh="用同样的数据再查一次：regard learn check {id} {file} --seed {seed}",
    ),
    "verdict-again-here": Message(
        en='The same data once more: check("{id}", …, seed={seed})',
        zh='用同样的数据再查一次：check("{id}", …, seed={seed})',
    ),
    "verdict-tolerance": Message(
        en="allowed: |got - expected| ≤ {atol} + {rtol} · |expected|",
        zh="允许的误差：|实得 - 应得| ≤ {atol} + {rtol} · |应得|",
    ),
    "verdict-place": Message(
        en="first difference at {where}: expected {expected}, got {got}; {wrong} of {count} numbers differ",
        zh="第一处不同在 {where}：应得 {expected}，实得 {got}；{count} 个数里有 {wrong} 个不同",
    ),
    "verdict-large": Message(en="a {type} that is too large to send back", zh="过大而无法传回的 {type}"),
    "verdict-text-more": Message(en="{text} … ({count} characters)", zh="{text} …（共 {count} 个字符）"),
    "verdict-number-more": Message(en="<int of {bits} bits>", zh="<{bits} 位二进制的 int>"),
    "verdict-parts-more": Message(en="… and {count} more", zh="… 还有 {count} 个"),
    "verdict-readable": Message(
        en="Note: this system has neither namespaces nor Landlock, so the program could have read the solution.",
        zh="注意：这个系统既没有命名空间也没有 Landlock，程序可能读取了参考答案。",
    ),
    "verdict-result": Message(en="result", zh="result"),
    "verdict-argument": Message(en="argument {place}", zh="第 {place} 个参数"),
    "verdict-gradient": Message(en="the gradient of {name} ", zh="{name} 的梯度 "),
    "verdict-not-run": Message(en="not run", zh="没有运行"),
    "verdict-ended": Message(
        en="the program ended or was stopped before this call returned",
        zh="这次调用返回之前，程序已经结束或被终止",
    ),
    "verdict-error-got": Message(en="{type}: {message}", zh="{type}: {message}"),
    "verdict-error-line": Message(en=" (in line {line} of your code)", zh="（在你的代码第 {line} 行）"),
    # --- test cases that several exercises share ---
    "case-plain": Message(en="a plain call", zh="一次普通的调用"),
    "case-example": Message(en="the example of the task", zh="题目中的例子"),
    "case-zero-scores": Message(en="scores of exactly 0", zh="得分正好是 0"),
    "case-ties": Message(en="two keys with the same largest score", zh="两个键的得分同为最大"),
    "case-negative": Message(en="only negative scores", zh="得分全是负数"),
    "case-extreme": Message(en="scores of 1000 and -1000", zh="得分为 1000 和 -1000"),
    "case-small-weights": Message(en="weights below 0.01", zh="小于 0.01 的权重"),
    "case-equal-keys": Message(en="all keys are equal", zh="所有的键都相同"),
    "case-hidden-above": Message(
        en="hidden keys score 1000, visible ones about 0", zh="被屏蔽的键得分为 1000，可见的键得分约为 0"
    ),
    "case-visible-below": Message(
        en="visible keys score -20000 and less, hidden ones 0", zh="可见的键得分不高于 -20000，被屏蔽的键得分为 0"
    ),
    "case-nothing-hidden": Message(en="a mask that hides nothing", zh="没有屏蔽任何位置的掩码"),
    "case-one-visible": Message(en="one visible key per query", zh="每个查询只有一个可见的键"),
    "case-row-hidden": Message(en="one fully masked query", zh="有一个查询的所有键都被屏蔽"),
    "case-all-hidden": Message(en="a mask that hides everything", zh="屏蔽所有位置的掩码"),
    "case-all-different": Message(en="all sizes different", zh="各个维度的大小都不相同"),
    "case-all-the-same": Message(en="all sizes equal", zh="各个维度的大小都相同"),
    "case-samples-as-heads": Message(en="as many samples as heads", zh="样本数等于头数"),
    "case-one-sample": Message(en="a single sample", zh="只有一个样本"),
    "case-one-key": Message(en="a single key", zh="只有一个键"),
    # --- source that Python cannot read ---
    "source-empty": Message(
        en="the file is empty; write your answer into it, save it and check again",
        zh="文件是空的；请写下答案，保存后再批改",
    ),
    "source-too-long": Message(
        en="the file has more than {most:,} characters; an answer has a few hundred, so this may be the wrong file",
        zh="文件超过 {most:,} 个字符；答案一般只有几百个字符，可能选错了文件",
    ),
    "source-nul": Message(
        en="line {line} contains a NUL character; copy the text into a new file",
        zh="第 {line} 行含有 NUL 字符；请把内容复制到新文件",
    ),
    "source-not-utf8": Message(
        en="line {line} is not UTF-8; save the file again with the encoding UTF-8",
        zh="第 {line} 行不是 UTF-8；请用 UTF-8 编码重新保存文件",
    ),
    "source-utf16": Message(
        en="the file is UTF-16, which Python cannot read; save it again with the encoding UTF-8",
        zh="文件是 UTF-16 编码，Python 无法读取；请用 UTF-8 编码重新保存",
    ),
    "source-encoding": Message(
        en="the coding line at the top specifies {found!r}; remove that line and save the file as UTF-8",
        zh="开头的 coding 行指定了 {found!r}；请删除这一行，并把文件保存为 UTF-8",
    ),
    # --- syntax errors ---
    "source-full-width": Message(
        en="line {line} has the full-width character {sign}; switch the input method to English and type {plain}",
        zh="第 {line} 行的 {sign} 是全角字符；请切换到英文输入法，改成 {plain}",
    ),
    "source-full-widths": Message(
        en="full-width characters: {signs}{more}; switch the input method to English and type the ASCII characters",
        zh="有全角字符：{signs}{more}；请切换到英文输入法，改成半角字符",
    ),
    "source-full-width-place": Message(en="line {line} {sign} → {plain}", zh="第 {line} 行 {sign} → {plain}"),
    "source-full-width-more": Message(en=" · and {count} more", zh=" · 还有 {count} 处"),
    "source-invisible": Message(
        en="line {line} has an invisible character ({code}), often copied from a web page; type the line again",
        zh="第 {line} 行有不可见的字符（{code}），通常是从网页复制来的；请重新输入这一行",
    ),
    "source-character": Message(
        en="line {line} has the character {sign}, which is not valid in Python",
        zh="第 {line} 行的字符 {sign} 在 Python 中无效",
    ),
    "source-tabs": Message(
        en="the indentation of line {line} mixes tabs and spaces; use four spaces for every level",
        zh="第 {line} 行的缩进混用了制表符和空格；每一级请统一用四个空格",
    ),
    "source-indentation": Message(
        en="the indentation of line {line} does not match the lines above; use four spaces for every level",
        zh="第 {line} 行的缩进与上文不一致；每一级请统一用四个空格",
    ),
    "source-magic": Message(
        en="line {line} begins with % or !, which is a command of notebooks and not Python; delete the line",
        zh="第 {line} 行以 % 或 ! 开头，那是笔记本的命令，不是 Python；请删掉这一行",
    ),
    "source-colon": Message(
        en="line {line} needs a colon at its end, after def, if, for, while, else or class",
        zh="第 {line} 行末尾缺少冒号（def、if、for、while、else、class 后面要有）",
    ),
    "source-bracket": Message(
        en="the brackets of line {line} do not match; count the opening and the closing ones",
        zh="第 {line} 行的括号不成对；请数一数左右括号",
    ),
    "source-string": Message(
        en="the string that begins in line {line} is not closed; close it with the same quotation mark",
        zh="第 {line} 行开始的字符串没有结束；请用相同的引号结束它",
    ),
    "source-syntax": Message(
        en="Python cannot parse line {line}: {message}",
        zh="Python 无法解析第 {line} 行：{message}",
    ),
    # --- refused operations ---
    "sandbox-refused-package": Message(
        en="an answer may not use regard or read its files; write the calculation yourself. (Only softmax "
        "from deep_learning.activations may be imported, except where the task is to write softmax)",
        zh="答案不能使用 regard，也不能读取它的文件；请自己写出计算过程。（只能导入 deep_learning.activations 中的 "
        "softmax，且题目要求实现的不是 softmax）",
    ),
    "sandbox-refused-process": Message(
        en="an answer may not start other programs or processes",
        zh="答案不能启动其他程序或进程",
    ),
    "sandbox-refused-network": Message(
        en="an answer may not use the network; everything it needs is passed as arguments",
        zh="答案不能使用网络；所需的数据都通过参数传入",
    ),
    "sandbox-refused-signal": Message(
        en="an answer may not send signals to processes",
        zh="答案不能向进程发送信号",
    ),
    "sandbox-refused-native": Message(
        en="an answer may not load native libraries with ctypes; NumPy or PyTorch is enough",
        zh="答案不能用 ctypes 加载本地库；使用 NumPy 或 PyTorch 即可",
    ),
    "sandbox-refused-inside": Message(
        en="an answer may not inspect the interpreter or other processes",
        zh="答案不能查看解释器内部或其他进程",
    ),
    "sandbox-refused-limits": Message(
        en="an answer may not change its own limits",
        zh="答案不能修改自己的资源限制",
    ),
    "sandbox-refused-write": Message(
        en="an answer may write and delete files only in its own folder, which is removed afterwards",
        zh="答案只能在自己的文件夹里写入和删除文件，该文件夹在批改后会被删除",
    ),
    "sandbox-refused-files": Message(
        en="an answer may not write this many files or this much data",
        zh="答案写入的文件过多，或内容过大",
    ),
    "sandbox-refused-module": Message(
        en="on this system an answer may not import modules that open files by themselves: readline, sqlite3, dbm, "
        "tkinter, ssl, multiprocessing; none of them is needed",
        zh="在这个系统上，答案不能导入会自行打开文件的模块：readline、sqlite3、dbm、tkinter、ssl、multiprocessing；这里不需要它们",
    ),
    # --- the run ---
    "sandbox-exercise": Message(en="this exercise", zh="这道练习"),
    "sandbox-not-started": Message(
        en="your program could not be run: {python} did not start with NumPy; check the free memory and the space for "
        "temporary files",
        zh="无法运行程序：{python} 未能启动并加载 NumPy；请检查可用内存和临时文件夹的空间",
    ),
    # --- building ---
    "help-learn-build": Message(
        en="Run the bundled translator with your own passed functions. Exit code: 0 if the result is right, else 1.",
        zh="用你已通过批改的函数运行自带的翻译模型。结果正确时退出码为 0，否则为 1。",
    ),
    "help-learn-build-examples": Message(
        en="Examples:\n"
        "  regard learn build                         translate “I love you”, your parts\n"
        "  regard learn build She reads a book        translate another sentence\n"
        "  regard learn build poem --seed 3           write a poem with your parts\n"
        "  regard learn build --with softmax.py       see what an unfinished part does\n"
        "\n"
        "A part is yours once regard learn check passes. Your functions run in the\n"
        "sandbox of the check.",
        zh="示例：\n"
        "  regard learn build                         用你的部件翻译 “I love you”\n"
        "  regard learn build She reads a book        翻译另一句\n"
        "  regard learn build poem --seed 3           用你的部件写一首诗\n"
        "  regard learn build --with softmax.py       看看没写完的部件会带来什么结果\n"
        "\n"
        "regard learn check 通过之后，这个部件就是你的。你的函数在批改用的沙箱里运行。",
    ),
    "help-build-text": Message(
        en="the sentence to translate; default: I love you; poem writes a poem, from the Chinese text after it",
        zh="要翻译的句子；默认 I love you；写 poem 则作诗，后面可以接诗的开头",
    ),
    "help-build-model": Message(en="translator or poet; default: translator", zh="translator 或 poet；默认 translator"),
    "metavar-build-with": Message(en="[ID=]FILE", zh="[ID=]文件"),
    "metavar-build-model": Message(en="NAME", zh="名字"),
    "help-build-with": Message(
        en="use this program for its part, passed or not; FILE.py or ID=FILE.py; may be repeated",
        zh="用这个程序作为对应的部件，无论是否通过；写 文件.py 或 练习=文件.py；可以重复",
    ),
    "help-build-seed": Message(
        en="the seed of a poem; default 0, as in regard generate", zh="作诗的随机种子；默认 0，与 regard generate 相同"
    ),
    "build-model": Message(
        en="--model must be one of {known}; found {found!r}", zh="--model 只能是 {known} 之一；实际为 {found!r}"
    ),
    "build-seed-translator": Message(
        en="--seed is for poems; a translation is not sampled: regard learn build poem --seed {seed}",
        zh="--seed 只用于作诗；翻译不做采样：regard learn build poem --seed {seed}",
    ),
    "build-not-used": Message(
        en="{exercise} is not a part of the {model}; its parts are {known}",
        zh="{model} 里没有 {exercise} 这个部件；它的部件有 {known}",
    ),
    "build-no-part": Message(
        en="{exercise} is not a part of a bundled model; the parts are {known}",
        zh="{exercise} 不是自带模型的部件；部件有 {known}",
    ),
    "build-which-part": Message(
        en="which part is {file}? It cannot be inferred from its name and functions; write --with ID={file}, "
        "with ID one of {known}",
        zh="{file} 是哪个部件？从文件名和函数名看不出来；请写 --with 练习={file}，练习是 {known} 之一",
    ),
    "build-twice": Message(
        en="--with has two programs for {exercise}: {first} and {second}",
        zh="--with 为 {exercise} 指定了两个程序：{first} 和 {second}",
    ),
    # --- the list of parts ---
    "build-parts": Message(
        en="Parts of the {model}: {yours} of {count} are yours", zh="{model} 的部件：{count} 个里有 {yours} 个是你的"
    ),
    "build-part-passed": Message(en="yours", zh="你的"),
    "build-part-given": Message(en="yours, from {file}", zh="你的，来自 {file}"),
    "build-part-ours": Message(
        en="ours; yours after: regard learn start {exercise}",
        zh="用我们的部件；通过这道练习后换成你的：regard learn start {exercise}",
    ),
    "build-part-left-out": Message(
        en="ours in this run, so that the smaller part inside it is used",
        zh="这次用我们的部件，以便用到其中你写的小部件",
    ),
    "build-part-check-again": Message(
        en="ours; you passed it before programs were kept: regard learn check {exercise}",
        zh="我们的部件；你通过时程序还没有保存功能，请再批改一次：regard learn check {exercise}",
    ),
    "build-part-differs": Message(en="differs from ours by {gap}", zh="结果与我们的部件相差 {gap}"),
    "build-part-unreached": Message(en="not called", zh="没有被调用"),
    # --- the result ---
    "build-none": Message(
        en="None of the parts is yours yet. Begin with: regard learn start softmax",
        zh="还没有一个部件是你的。从这里开始：regard learn start softmax",
    ),
    "build-same": Message(
        en="The same as with our parts, token by token. Log-probability {score}.",
        zh="结果与使用我们的部件时逐个词元相同。对数概率 {score}。",
    ),
    "build-with-yours": Message(en="with your parts: ", zh="用你的部件："),
    "build-with-ours": Message(en="with our parts: ", zh="用我们的部件："),
    "build-first-difference": Message(
        en="First difference, token {at}: your parts wrote {yours}, ours {ours}.",
        zh="第一处不同是第 {at} 个词元：你的部件{yours}，我们的部件{ours}。",
    ),
    "build-wrote": Message(en="“{piece}”", zh="写的是“{piece}”"),
    "build-wrote-nothing": Message(en="nothing", zh="什么也没写"),
    "build-nothing": Message(en="(nothing)", zh="（什么也没写）"),
    "build-score": Message(
        en="Log-probability {yours}, with our parts {ours}.", zh="对数概率 {yours}，用我们的部件是 {ours}。"
    ),
    "build-impossible": Message(en="{score} (impossible)", zh="{score}（不可能）"),
    "build-again-wrong": Message(
        en="Read once more with the small parts, the same text has log-probability {again}, with the cache {cached}: "
        "the wrong part is {parts}.",
        zh="用小部件再读一遍，同一段文字的对数概率是 {again}，使用缓存时是 {cached}：出错的部件是 {parts}。",
    ),
    "build-again": Message(
        en="Read once more with the small parts, the same text has log-probability {again}, with the cache {cached}: "
        "two of the parts disagree.",
        zh="用小部件再读一遍，同一段文字的对数概率是 {again}，使用缓存时是 {cached}：有两个部件的结果不一致。",
    ),
    "build-head": Message(
        en="decoder layer {layer}, head {head}: attention computed by your parts",
        zh="解码器第 {layer} 层，头 {head}：由你的部件算出的注意力",
    ),
    "build-head-ours": Message(
        en="decoder layer {layer}, head {head}: attention computed by our parts",
        zh="解码器第 {layer} 层，头 {head}：由我们的部件算出的注意力",
    ),
    "build-head-difference": Message(
        en="Largest difference of the weights of this head from ours: {gap}",
        zh="这个头的权重与用我们的部件算出的权重最多相差 {gap}",
    ),
    "build-not-weights": Message(
        en="The weights of decoder layer {layer}, head {head} cannot be drawn: "
        "its rows sum to {low} … {high} instead of 1.",
        zh="解码器第 {layer} 层头 {head} 的权重画不出来：各行的和是 {low} … {high}，应该是 1。",
    ),
    "build-check": Message(
        en="See what is wrong: regard learn check {exercise} {file}",
        zh="查看错在哪里：regard learn check {exercise} {file}",
    ),
    "build-diagnosis": Message(
        en="{exercise} does not pass its check: {diagnosis}", zh="{exercise} 没有通过批改：{diagnosis}"
    ),
    "build-diagnosis-none": Message(
        en="its results are wrong, and no known mistake gives them", zh="结果不对，也不符合任何已知的错误"
    ),
    "build-complete": Message(
        en="Every part is yours: only the weights are ours now.",
        zh="所有部件都是你写的，现在只有权重还是我们的。",
    ),
    "build-next": Message(en="Next: regard learn start {exercise}", zh="下一步：regard learn start {exercise}"),
    # --- a part fails ---
    "build-failed": Message(en="{part} stopped the model: {reason}", zh="{part} 让模型停了下来：{reason}"),
    "build-line": Message(en="line {line}: ", zh="第 {line} 行："),
    "build-raises": Message(en="{where}{raised}: {message}", zh="{where}{raised}: {message}"),
    "build-shape": Message(
        en="{where}it must return an array {wanted}; found {found}",
        zh="{where}应该返回形状为 {wanted} 的数组；实际是 {found}",
    ),
    "build-value": Message(
        en="{where}it must return {wanted}; found {found}", zh="{where}应该返回 {wanted}；实际是 {found}"
    ),
    "build-missing-name": Message(en="it does not define {name}", zh="没有定义 {name}"),
    "build-too-slow": Message(en="it takes too long", zh="运行时间太长"),
    "build-too-much-memory": Message(en="it uses too much memory", zh="占用的内存太多"),
    "build-too-much-output": Message(en="it prints too much", zh="打印的内容太多"),
    "build-killed": Message(en="it ended the process", zh="它使进程意外退出"),
    "build-garbled": Message(en="it broke the program that calls it", zh="它破坏了调用它的程序"),
    "passed-not-kept": Message(
        en="the answer to {exercise} is not kept for regard learn build and certificate: {reason}",
        zh="{exercise} 的答案没有保存，regard learn build 和 certificate 用不了它：{reason}",
    ),
}
