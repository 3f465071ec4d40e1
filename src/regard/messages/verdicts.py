"""What a check of an exercise says: the verdict, the first place that differs, and the diagnoses of a general kind."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    "exercise-unknown": Words(
        en="there is no exercise {asked!r}; `regard learn list` shows all {count}",
        zh="没有名为 {asked!r} 的练习；`regard learn list` 列出全部 {count} 个",
    ),
    "exercise-unknown-near": Words(
        en="there is no exercise {asked!r}; the nearest of {count} is {nearest!r} (`regard learn list` shows them all)",
        zh="没有名为 {asked!r} 的练习；{count} 个练习里最接近的是 {nearest!r}（`regard learn list` 列出全部）",
    ),
    # --- the door for notebooks ---
    "check-nothing": Words(
        en='give what you wrote: check("{id}", {names})',
        zh='请传入你写的内容：check("{id}", {names})',
    ),
    "check-sheet": Words(
        en="{id} is an answer sheet: give its text, as a string",
        zh="{id} 是答题纸：请以字符串传入它的文本",
    ),
    "check-no-source": Words(
        en="{what} has no source that can be read; define it with def or class in a cell or a file",
        zh="读不到 {what} 的源代码；请在单元格或文件里用 def 或 class 定义它",
    ),
    "check-value": Words(
        en="your code uses {name} of the notebook ({type}), which cannot be sent along; make it inside the function",
        zh="你的代码用到了笔记本里的 {name}（{type}），无法一起送去批改；请在函数里面创建它",
    ),
    "check-id": Words(
        en='the first argument is the id of an exercise, as text: check("softmax", softmax); this is a value of type '
        "{type}. The list of ids: regard learn",
        zh='第一个参数是练习的 id，要写成字符串：check("softmax", softmax)；这里传入的类型是 {type}。'
        "id 列表：regard learn",
    ),
    "check-no-value": Words(
        en="your code uses {name}, which has no value yet; run the cell that sets it, then check again",
        zh="你的代码用到了 {name}，它还没有值；请先运行给它赋值的单元格，再来批改",
    ),
    # --- answer sheets ---
    "sheet-line": Words(
        en="line {line} cannot be read: {text}; write a number as 0.5, a row as [1, 2], a matrix as [[1, 2], [3, 4]], "
        'a word as "so"',
        zh='第 {line} 行读不懂：{text}；数写作 0.5，一行写作 [1, 2]，矩阵写作 [[1, 2], [3, 4]]，文字写作 "这样"',
    ),
    "sheet-seed": Words(
        en="the line `seed = …` is missing, which tells whose numbers these are; `regard learn reset {id}` makes a new "
        "sheet, and keeps yours beside it",
        zh="缺少 `seed = …` 这一行，它说明这张答题纸用的是哪组数；`regard learn reset {id}` "
        "会生成一张新的，你填的会改名保留",
    ),
    "sheet-empty": Words(en="{name} is still empty", zh="{name} 还没有填"),
    "sheet-unknown": Words(
        en="{name} is not right, and no slip that we know gives this answer; go through it once more",
        zh="{name} 不对，也看不出是哪种常见的错误；请再做一遍这一步",
    ),
    "sheet-letters": Words(
        en="the count of letters in {name} should be {wanted}, not {found}",
        zh="{name} 需要 {wanted} 个字母；现在有 {found} 个",
    ),
    "sheet-numbers": Words(
        en="the count of numbers in {name} should be {wanted}, not {found}",
        zh="{name} 需要 {wanted} 个数；现在有 {found} 个",
    ),
    "sheet-passed": Words(en="{title}: everything is right", zh="{title}：全部正确"),
    "sheet-failed": Words(
        en="{title}: {passed} of {count} answers right", zh="{title}：{count} 个答案对了 {passed} 个"
    ),
    "sheet-nothing-run": Words(en="{title}: the sheet could not be read", zh="{title}：答题纸没能读懂"),
    "sheet-total": Words(
        en="the numbers of {name} sum to {found}; they should sum to {total}",
        zh="{name} 的各个数之和是 {found}；应当等于 {total}",
    ),
    "sheet-first": Words(en="The first that is not right: {name}", zh="第一处错误：{name}"),
    "sheet-got": Words(en="you typed", zh="你填的是"),
    "sheet-tolerance": Words(en="allowed: ± {tolerance}", zh="允许的误差：± {tolerance}"),
    # --- the lines of a verdict ---
    "verdict-passed": Words(en="{title}: all {count} tests pass", zh="{title}：{count} 项测试全部通过"),
    "verdict-failed": Words(en="{title}: {passed} of {count} tests pass", zh="{title}：{count} 项测试通过 {passed} 项"),
    "verdict-nothing-run": Words(en="{title}: no test could be run", zh="{title}：测试没能运行"),
    "verdict-first": Words(en="The first test that fails: {name}", zh="第一个没通过的测试：{name}"),
    "verdict-call": Words(en="call", zh="调用"),
    "verdict-expected": Words(en="expected", zh="应得"),
    "verdict-got": Words(en="got", zh="实得"),
    "verdict-slip": Words(en="Diagnosis: {what}", zh="诊断：{what}"),
    "verdict-printed": Words(en="Your program said (output and warnings):", zh="程序的输出和警告："),
    "verdict-printed-more": Words(en="... and {count} more characters", zh="... 还有 {count} 个字符"),
    "verdict-next": Words(en="A hint: regard learn hint {id}", zh="看提示：regard learn hint {id}"),
    "verdict-again": Words(
        en="The same data once more: regard learn check {id} {file} --seed {seed}",
        zh="用同样的数据再查一次：regard learn check {id} {file} --seed {seed}",
    ),
    "verdict-again-here": Words(
        en='The same data once more: check("{id}", …, seed={seed})',
        zh='用同样的数据再查一次：check("{id}", …, seed={seed})',
    ),
    "verdict-tolerance": Words(
        en="allowed: |got - expected| ≤ {atol} + {rtol} · |expected|",
        zh="允许的误差：|实得 - 应得| ≤ {atol} + {rtol} · |应得|",
    ),
    "verdict-place": Words(
        en="first difference at {where}: expected {expected}, got {got}; {wrong} of {count} numbers differ",
        zh="第一处不同在 {where}：应得 {expected}，实得 {got}；{count} 个数里有 {wrong} 个不同",
    ),
    "verdict-large": Words(en="a {type} too large to be sent back", zh="大得传不回来的 {type}"),
    "verdict-text-more": Words(en="{text} … ({count} characters)", zh="{text} …（共 {count} 个字符）"),
    "verdict-number-more": Words(en="<int of {bits} bits>", zh="<{bits} 位二进制的 int>"),
    "verdict-parts-more": Words(en="… and {count} more", zh="… 还有 {count} 个"),
    "verdict-readable": Words(
        en="Note: this system has neither namespaces nor Landlock, so a program could have read the solution.",
        zh="注意：这个系统既没有命名空间也没有 Landlock，程序有可能读到参考答案。",
    ),
    "verdict-result": Words(en="result", zh="result"),
    "verdict-argument": Words(en="argument {place}", zh="第 {place} 个参数"),
    "verdict-gradient": Words(en="the gradient of {name} ", zh="{name} 的梯度 "),
    "verdict-not-run": Words(en="not run", zh="没有运行"),
    "verdict-ended": Words(
        en="the program ended, or was stopped, before this call gave an answer",
        zh="这次调用还没给出结果，程序就结束了，或者被停止了",
    ),
    "verdict-error-got": Words(en="{type}: {message}", zh="{type}: {message}"),
    "verdict-error-line": Words(en=" (in line {line} of your text)", zh="（在你的代码第 {line} 行）"),
    # --- what a call tries, where several exercises try the same ---
    "case-plain": Words(en="a plain call", zh="一次普通的调用"),
    "case-example": Words(en="the example of the task", zh="题目中的例子"),
    "case-zero-scores": Words(en="scores of exactly 0", zh="得分正好是 0"),
    "case-ties": Words(en="two keys with the same largest score", zh="两个键的得分同为最大"),
    "case-negative": Words(en="only negative scores", zh="得分全是负数"),
    "case-extreme": Words(en="scores of 1000 and -1000", zh="得分为 1000 和 -1000"),
    "case-equal-keys": Words(en="all keys are equal", zh="所有的键都相同"),
    "case-hidden-above": Words(
        en="hidden keys score 1000, visible ones about 0", zh="遮住的键得分是 1000，可见的键在 0 附近"
    ),
    "case-visible-below": Words(
        en="visible keys score -20000 and less, hidden ones 0", zh="可见的键得分不高于 -20000，遮住的键得分是 0"
    ),
    "case-nothing-hidden": Words(en="a mask that hides nothing", zh="什么也没遮住的掩码"),
    "case-one-visible": Words(en="each query sees one key only", zh="每个查询只看得到一个键"),
    "case-row-hidden": Words(en="one query from which every key is hidden", zh="有一个查询，所有的键都被遮住"),
    "case-all-hidden": Words(en="a mask that hides everything", zh="把一切都遮住的掩码"),
    "case-all-different": Words(en="sizes that are all different", zh="各个维度的大小都不相同"),
    "case-all-the-same": Words(en="sizes that are all the same", zh="各个维度的大小都相同"),
    "case-samples-as-heads": Words(en="as many samples as heads", zh="样本和头一样多"),
    "case-one-sample": Words(en="a single sample", zh="只有一个样本"),
    "case-one-key": Words(en="a single key", zh="只有一个键"),
    # --- diagnoses that any exercise may get ---
    "slip-not-written": Words(
        en="{name} gives no result: it is not written yet, or its return is missing",
        zh="{name} 没有给出结果：还没有写，或者忘了 return",
    ),
    "slip-missing-name": Words(
        en="your text defines no {name}; the name must be written exactly so{nearest}",
        zh="你的代码里没有定义 {name}；名字必须一字不差{nearest}",
    ),
    "slip-nearest": Words(en=" (you have {nearest})", zh="（你写的是 {nearest}）"),
    "slip-not-callable": Words(en="{name} is not a function: it cannot be called", zh="{name} 不是函数，不能调用"),
    "slip-not-a-module": Words(
        en="{name} must be a class made from torch.nn.Module", zh="{name} 必须是继承 torch.nn.Module 的类"
    ),
    "slip-missing-parameter": Words(
        en="your module has no parameter {name}{nearest}; the weights are handed in by that name",
        zh="你的模块没有参数 {name}{nearest}；权重是按这个名字传入的",
    ),
    "slip-extra-parameter": Words(
        en="your module has a parameter {name} that the task does not ask for",
        zh="你的模块多了一个参数 {name}，题目没有要求",
    ),
    "slip-wrong-parameter": Words(
        en="parameter {name} must have shape {wanted}; yours has {found}",
        zh="参数 {name} 的形状必须是 {wanted}；你的是 {found}",
    ),
    "slip-refused": Words(
        en="your text asks for something that a check does not allow: {what}",
        zh="你的代码用到了批改时不允许的东西：{what}",
    ),
    "slip-raises": Words(
        en="your code stops with {type}: {message}",
        zh="你的代码因 {type} 而中断：{message}",
    ),
    "slip-raises-line": Words(
        en="your code stops in line {line} with {type}: {message}",
        zh="你的代码在第 {line} 行因 {type} 而中断：{message}",
    ),
    "slip-line": Words(en="line {line}: ", zh="第 {line} 行："),
    "slip-too-many-arguments": Words(
        en="the number of arguments that {name} takes is {takes}, but it is called with {given}",
        zh="调用 {name} 时给了 {given} 个参数，但它只接受 {takes} 个",
    ),
    "slip-missing-arguments": Words(
        en="{name} is called without {names}, which it needs", zh="调用 {name} 时没有给 {names}，但它需要这个参数"
    ),
    "slip-unexpected-argument": Words(
        en="{name} is called with {names}=, which it does not know", zh="调用 {name} 时给了 {names}=，但它没有这个参数"
    ),
    "slip-as-in-the-task": Words(
        en="; define it with the arguments that the task names", zh="；请按题目写的参数来定义它"
    ),
    "slip-recursion": Words(
        en="{where}a function calls itself without end; look at the case in which it should stop",
        zh="{where}函数一直在调用自己，停不下来；请检查它该在什么时候结束",
    ),
    "slip-input": Words(
        en="{where}your code waits for the keyboard, as input() does, and nobody types during a check; all that it "
        "needs comes as arguments",
        zh="{where}你的代码在等键盘输入，比如用了 input()，批改时没有人输入；需要的一切都在参数里",
    ),
    "slip-no-import": Words(
        en="line {line} uses {name}, which is not imported; add `{how}` at the top of your file",
        zh="第 {line} 行用到了 {name}，但还没有导入；请在文件开头加上 `{how}`",
    ),
    "slip-no-package": Words(
        en="there is no package {name} here; an answer needs NumPy alone, or PyTorch where the task is about it",
        zh="这里没有 {name} 这个包；答案只需要 NumPy，PyTorch 练习再加上 PyTorch",
    ),
    "raises-shapes": Words(
        en="these shapes do not fit together: {shapes}. Counted from the end, two axes fit when they are equally long "
        "or one of them has size 1",
        zh="这些形状配不到一起：{shapes}。从最后一个轴往前比，两个轴要一样长，或者其中一个大小为 1",
    ),
    "raises-broadcast": Words(
        en="two arrays do not fit together: an axis is longer in one than in the other, and neither has size 1 there",
        zh="两个数组的形状配不到一起：有一个轴在两边不一样长，而且都不是 1",
    ),
    "raises-assigned": Words(
        en="numbers of shape {one} do not fit into a place of shape {other}",
        zh="形状为 {one} 的数放不进形状为 {other} 的位置",
    ),
    "raises-joined": Words(
        en="only arrays whose other axes are equally long can be joined along one axis",
        zh="沿一个轴拼接时，其余的轴必须一样长",
    ),
    "raises-permuted": Words(
        en="transpose() or permute() must name every axis once; the array has another number of axes",
        zh="transpose() 或 permute() 要把每个轴各写一次；这里写的轴数和数组的轴数不一样",
    ),
    "raises-invert": Words(
        en="~, &, | and ^ work on truth values, and these are other numbers; write mask == 0, or convert to bool first",
        zh="~、&、|、^ 用于布尔值，这里却是别的数；请写成 mask == 0，或者先转成布尔",
    ),
    "raises-sizes-differ": Words(
        en="two tensors do not fit together: on axis {axis} one has size {one}, the other {other}; they must be equal, "
        "or one of them 1",
        zh="两个张量的形状配不到一起：在第 {axis} 个轴上，一个大小是 {one}，另一个是 {other}；要相等，或者其中一个是 1",
    ),
    "raises-in-place-shape": Words(
        en="what is calculated has shape {other}, and the tensor that is changed in place has shape {one}",
        zh="算出的结果形状是 {other}，而被就地修改的张量形状是 {one}",
    ),
    "raises-product": Words(
        en="these shapes cannot be multiplied: {one} and {other}; the last axis of the first must be as long as the "
        "second-last axis of the second. Is a transpose missing, or one too many?",
        zh="这两个形状不能相乘：{one} 和 {other}；前者的最后一个轴要和后者的倒数第二个轴一样长。是不是少了一次转置，"
        "或者多了一次？",
    ),
    "raises-product-sizes": Words(
        en="in a matrix product the last axis of the first has size {one}, the second-last axis of the second {other}; "
        "they must be equal. Is a transpose missing, or one too many?",
        zh="矩阵相乘时，前者最后一个轴的大小是 {one}，后者倒数第二个轴的大小是 {other}；两者必须相等。"
        "是不是少了一次转置，或者多了一次？",
    ),
    "raises-reshape": Words(
        en="{size} numbers do not fill the shape {shape}; the sizes of a shape must multiply to the number of elements",
        zh="{size} 个数填不满形状 {shape}；形状里各个大小的乘积必须等于元素的个数",
    ),
    "raises-view": Words(
        en="view() cannot be used after transpose() or permute(), which leave the numbers where they are in memory; "
        "write reshape(), or contiguous().view()",
        zh="transpose() 或 permute() 之后不能直接用 view()，因为数在内存里的位置没有变；请用 reshape()，"
        "或者 contiguous().view()",
    ),
    "raises-axis": Words(
        en="there is no axis {axis}: the array has {axes}, counted from 0, or from -1 at the end",
        zh="没有第 {axis} 个轴：这个数组有 {axes} 个轴，从 0 数起，或者从末尾的 -1 数起",
    ),
    "raises-axis-range": Words(
        en="there is no axis {axis}: this tensor has fewer axes. Count from the end: -1 is the last one",
        zh="没有第 {axis} 个轴：这个张量的轴没有那么多。请从后往前数：-1 是最后一个轴",
    ),
    "raises-index": Words(
        en="there is no element {index}: axis {axis} has size {size}, and the last index is one less",
        zh="没有第 {index} 个元素：第 {axis} 个轴的大小是 {size}，最大的下标要小 1",
    ),
    "raises-indices": Words(
        en="there are more indices in the brackets than the array has axes", zh="方括号里的下标比数组的轴还多"
    ),
    "raises-boolean-mask": Words(
        en="this mask must be boolean; write mask == 0 or mask.bool()",
        zh="这里的掩码必须是布尔的；请写成 mask == 0 或 mask.bool()",
    ),
    "raises-leaf-in-place": Words(
        en="an argument or parameter is changed in place, and its gradient is wanted; write x = x + y for x += y",
        zh="参数被就地修改了，而这里要它的梯度；请把 x += y 写成 x = x + y",
    ),
    "raises-gradient-in-place": Words(
        en="a tensor that the gradient needs was changed in place afterwards; write x = x + y for x += y, and "
        "masked_fill for masked_fill_",
        zh="求梯度要用到的张量后来被就地修改了；请把 x += y 写成 x = x + y，把 masked_fill_ 写成 masked_fill",
    ),
    "raises-numpy-of-gradient": Words(
        en="NumPy cannot take over a tensor whose gradient is wanted; do the calculation with PyTorch's functions",
        zh="需要梯度的张量不能转成 NumPy 数组；请用 PyTorch 的函数计算",
    ),
    "raises-dtypes": Words(
        en="two tensors of different dtypes meet, {one} and {other}; bring them to one dtype, as with .float()",
        zh="两个张量的 dtype 不同，一个是 {one}，一个是 {other}；请先统一，比如用 .float()",
    ),
    "raises-unbound": Words(
        en="{name} is used before it has a value on the way that was taken; give it one before the if or the loop",
        zh="这条路径上用到 {name} 时，它还没有值；请在 if 或循环之前先给它一个值",
    ),
    "raises-truth": Words(
        en="one truth value is needed here, and an array has many. For if and while write `mask is not None`, .any() "
        "or .all(); to choose number by number, np.where, masked_fill, np.maximum",
        zh="这里需要一个真假值，而数组有很多个。if 和 while 里请写 `mask is not None`、.any() 或 .all()；要逐个数地选，"
        "请用 np.where、masked_fill、np.maximum",
    ),
    "raises-boolean-index": Words(
        en="a mask in square brackets must have the shape of what it picks from: it is not broadcast; use np.where or "
        "masked_fill, which do that",
        zh="方括号里的掩码不会广播，形状必须和被选的数组一样；请用会广播的 np.where 或 masked_fill",
    ),
    "raises-boolean-minus": Words(
        en="minus does not work on truth values; write ~mask for the opposite, or mask == 0",
        zh="布尔值不能用减号；取反请写 ~mask，或者 mask == 0",
    ),
    "raises-stacked": Words(
        en="only arrays of the same shape can be stacked, and these differ",
        zh="只有形状相同的数组才能 stack 到一起，而这些形状不同",
    ),
    "raises-nothing": Words(
        en="the largest number of nothing is asked for: an array here is empty. Does a range or a cut go too far?",
        zh="这里在求空数组的最大值（或最小值）：是不是循环或切片超出了范围？",
    ),
    "raises-one-number": Words(
        en="this function takes one number, and it was given an array; use that of NumPy or PyTorch, such as np.exp "
        "for math.exp",
        zh="这个函数只接受一个数，却给了它一个数组；请用 NumPy 或 PyTorch 的函数，比如把 math.exp 换成 np.exp",
    ),
    "raises-whole-powers": Words(
        en="a whole number cannot be raised to negative whole powers; write it as a float, 10000.0 for 10000",
        zh="整数不能取负整数次幂；请写成小数，比如把 10000 写成 10000.0",
    ),
    "raises-infinity-as-whole": Words(
        en="an array of whole numbers cannot hold inf or NaN, nor can int(); make the array of floats, as with "
        "np.zeros(shape) or dtype=float",
        zh="整数数组放不下 inf 和 NaN，int() 也不行；请用小数的数组，比如 np.zeros(形状) 或 dtype=float",
    ),
    "raises-whole-wanted": Words(
        en="a whole number is needed here, and a float was given: / always gives a float; write // for sizes",
        zh="这里需要整数，却给了小数：/ 得到的总是小数；大小请用 // 来算",
    ),
    "raises-whole-index": Words(
        en="an index must be a whole number, and this is something else: / always gives a float; write // for places",
        zh="下标必须是整数，这里却是别的东西：/ 得到的总是小数；位置请用 // 来算",
    ),
    "raises-tensor-wanted": Words(
        en="torch.{name} takes a tensor, and it was given {type}; a single number needs no torch: math.sqrt(d_k)",
        zh="torch.{name} 要的是张量，却给了它 {type}；只有一个数时用不着 torch：math.sqrt(d_k)",
    ),
    "raises-none-used": Words(
        en="something here is None: an argument that was left out, a default, or a function without return",
        zh="这里用到的某个值是 None：没有传入的参数、默认值，或者函数忘了 return",
    ),
    "raises-operands": Words(
        en="{sign} does not work between {one} and {other}; make both arrays, or both tensors, first",
        zh="{one} 和 {other} 之间不能用 {sign}；请先把两边都变成数组，或者都变成张量",
    ),
    "raises-undefined": Words(
        en="the name {name} is used, but nothing is called that; is it spelt as where it got its value?",
        zh="用到了 {name}，但没有这个名字；请检查拼写是否和赋值的地方一致",
    ),
    "raises-one-shape": Words(
        en="the shape is one argument, in brackets of its own: np.zeros((2, 3)), not np.zeros(2, 3)",
        zh="形状是一个参数，要自带一层括号：写成 np.zeros((2, 3))，而不是 np.zeros(2, 3)",
    ),
    "raises-ragged": Words(
        en="rows of different length do not make an array; every row needs as many numbers as the others",
        zh="长短不一的行拼不成数组；每一行的个数必须相同",
    ),
    "raises-whole-numbers": Words(
        en="this function needs floats, and these are whole numbers or truth values; write .float() first",
        zh="这个函数需要小数，这里却是整数或布尔值；请先用 .float() 转换",
    ),
    "raises-called": Words(
        en="a value is called as if it were a function: is a sign missing before the brackets, or does a variable have "
        "the name of a function?",
        zh="把一个值当成函数来调用了：是不是括号前少了运算符，或者变量和函数重名了？",
    ),
    "raises-list-index": Words(
        en="a list or tuple has fewer elements than the index asks for; the last index is its length less 1",
        zh="列表或元组里没有那么多元素；最大的下标是长度减 1",
    ),
    "raises-equal-parts": Words(
        en="np.split needs parts of equal size, and this axis cannot be divided so; is it the right axis?",
        zh="np.split 要求每一份一样大，而这个轴不能这样平分；轴选对了吗？",
    ),
    "raises-in-a-list": Words(
        en="what is joined must stand in one list: np.concatenate([a, b]) or torch.cat([a, b])",
        zh="要拼接的数组必须放在一个列表里：np.concatenate([a, b]) 或 torch.cat([a, b])",
    ),
    "raises-by-zero": Words(en="something is divided by 0", zh="除数是 0"),
    "raises-first-init": Words(
        en="the first line of __init__ must be super().__init__()",
        zh="__init__ 的第一行必须是 super().__init__()",
    ),
    "raises-array-method": Words(
        en="NumPy's arrays have no {name}; is that a method of lists, or of PyTorch's tensors?",
        zh="NumPy 的数组没有 {name}；这是列表的方法，还是 PyTorch 张量的方法？",
    ),
    "raises-tensor-method": Words(
        en="PyTorch's tensors have no {name}; is that a method of lists, or of NumPy's arrays?",
        zh="PyTorch 的张量没有 {name}；这是列表的方法，还是 NumPy 数组的方法？",
    ),
    "slip-no-error": Words(
        en="these arguments cannot work and should raise {type}; your code gives a result",
        zh="这些参数无法使用，应当抛出 {type}；你的代码却给出了结果",
    ),
    "slip-mutates-input": Words(
        en="your code changes its argument ({names}); work on a copy, or write x = x - y for x -= y",
        zh="你的代码改动了传入的参数（{names}）；请先复制一份，或者把 x -= y 写成 x = x - y",
    ),
    "slip-hard-coded": Words(
        en="your code gives the same answer whatever it is given",
        zh="不管传入什么，你的代码都给出同样的答案",
    ),
    "slip-transposed": Words(
        en="your result is the right one transposed: rows and columns are exchanged",
        zh="你的结果是正确答案的转置：行和列对调了",
    ),
    "slip-wrong-type": Words(
        en="the result should be {expected}, not {got}",
        zh="结果应该是 {expected}，而不是 {got}",
    ),
    "slip-wrong-count": Words(
        en="the result should have {expected} parts, not {got}",
        zh="结果应该有 {expected} 个部分，而不是 {got} 个",
    ),
    "slip-wrong-shape": Words(
        en="the shape should be {expected}, not {got}",
        zh="形状应该是 {expected}，而不是 {got}",
    ),
    "slip-wrong-dtype": Words(
        en="the numbers should be {expected}, not {got}",
        zh="数的类型应该是 {expected}，而不是 {got}",
    ),
    "slip-nan-for-infinity": Words(
        en="your result has {got} where {expected} is right: look for inf - inf, 0/0, or -inf times 0",
        zh="应该是 {expected} 的地方，你的结果是 {got}：检查有没有 inf - inf、0/0 或 -inf 乘 0",
    ),
    "slip-not-finite": Words(
        en="your result has {got} where a finite number is right: look for exp of a large number, 0/0, or -inf times 0",
        zh="应该是有限数的地方，你的结果是 {got}：检查有没有对很大的数取 exp、0/0 或 -inf 乘 0",
    ),
    "slip-no-gradient": Words(
        en="the numbers are right, but no gradient reaches {name}: do without detach(), .data, .numpy() and no_grad()",
        zh="数值是对的，但梯度传不到 {name}：中间不要用 detach()、.data、.numpy() 或 no_grad()",
    ),
    "slip-wrong-gradient": Words(
        en="the numbers are right, but the gradient of {name} is not",
        zh="数值是对的，但 {name} 的梯度不对",
    ),
    "slip-rounded": Words(
        en="your numbers are the right ones rounded to {places} places; do not round",
        zh="你的数是正确答案保留 {places} 位小数的结果；不要四舍五入",
    ),
    "slip-low-precision": Words(
        en="your numbers are right to about three digits and float16 holds all of them: do not calculate in float16",
        zh="你的数只有大约三位是准的，而且都是 float16 能表示的数：不要用 float16 计算",
    ),
    "slip-near": Words(
        en="your numbers are near the right ones, but not equal: they are off by up to {most}. Possible causes: "
        "a small number added to a denominator, a constant with too few digits, a dtype with few digits",
        zh="你的数和正确答案很接近，但不相等：最多差 {most}。可能的原因：分母上多加了小数、常数的位数不够、"
        "dtype 的精度低",
    ),
    "slip-not-shares": Words(
        en="every row should sum to 1; one of yours sums to {total}",
        zh="每一行之和应为 1；你有一行之和是 {total}",
    ),
    "slip-wrong-value": Words(en="expected {expected}, got {got}", zh="应得 {expected}，实得 {got}"),
    "slip-unknown": Words(
        en="no slip that we know gives these numbers; compare the call above with the task, step by step",
        zh="没有哪种已知的错误会得出这些数；请对照上面的调用，一步一步核对题目",
    ),
    "slip-two": Words(
        en="two at once. First: {first}. Second: {second}", zh="同时有两处。第一：{first}。第二：{second}"
    ),
    "slip-bug-and": Words(
        en="the bug that came with the program is still there, and something else is wrong: {second}",
        zh="程序原来的错误还在，而且还有一处：{second}",
    ),
    "slip-too-slow": Words(
        en="your code did not come to an end in time: look for a loop without end",
        zh="你的代码没有按时结束：检查有没有死循环",
    ),
    "slip-too-much-memory": Words(
        en="your code asked for more memory than a check allows", zh="你的代码要的内存超过了批改允许的上限"
    ),
    "slip-too-much-output": Words(
        en="your code printed more than a check allows: is there a print in a loop?",
        zh="你的代码打印得太多，超过了批改允许的上限：循环里是不是有 print？",
    ),
    "slip-killed": Words(
        en="your program ended before its calls were done (exit, crash, or a signal)",
        zh="你的程序没等调用做完就结束了（退出、崩溃或收到信号）",
    ),
    "slip-garbled": Words(
        en="what your program sent back could not be read; leave the files and pipes of the check alone",
        zh="你的程序传回的内容无法读取；请不要碰批改所用的文件和管道",
    ),
}
