"""Messages of a check: the verdict, the first difference, and the names of test cases."""

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
        zh="{name} 需要 {wanted} 个字母；现在有 {found} 个",
    ),
    "sheet-numbers": Message(
        en="the number of values in {name} should be {wanted}, not {found}",
        zh="{name} 需要 {wanted} 个数；现在有 {found} 个",
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
    "verdict-slip": Message(en="Diagnosis: {what}", zh="诊断：{what}"),
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
}
