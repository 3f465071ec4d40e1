"""Messages of the general diagnoses: mistakes that the check of any exercise may name."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    "mistake-not-written": Message(
        en="{name} returns nothing: it is not written yet, or the return statement is missing",
        zh="{name} 没有返回结果：尚未实现，或者缺少 return",
    ),
    "mistake-missing-name": Message(
        en="your code does not define {name}; the name must match exactly{nearest}",
        zh="你的代码里没有定义 {name}；名字必须完全一致{nearest}",
    ),
    "mistake-nearest": Message(en=" (you have {nearest})", zh="（你写的是 {nearest}）"),
    "mistake-not-callable": Message(en="{name} is not a function and cannot be called", zh="{name} 不是函数，不能调用"),
    "mistake-not-a-module": Message(
        en="{name} must be a subclass of torch.nn.Module", zh="{name} 必须是继承 torch.nn.Module 的类"
    ),
    "mistake-missing-parameter": Message(
        en="your module has no parameter {name}{nearest}; the weights are loaded by that name",
        zh="你的模块没有参数 {name}{nearest}；权重按这个名字加载",
    ),
    "mistake-plain-tensor": Message(
        en="{name} is a plain tensor, neither trained nor stored with the module; write nn.Parameter(…) around it",
        zh="{name} 只是普通的张量：既不会被训练，也不会随模块保存；要用 nn.Parameter(…) 包起来",
    ),
    "mistake-layer-for-parameter": Message(
        en="{name} is a layer; here it must be an nn.Parameter of its own, used as x @ {name}",
        zh="{name} 是一个层；这里它必须是单独的 nn.Parameter，用法是 x @ {name}",
    ),
    "mistake-extra-parameter": Message(
        en="your module has an extra parameter {name}, which the task does not mention",
        zh="你的模块多了一个参数 {name}，题目中没有",
    ),
    "mistake-wrong-parameter": Message(
        en="parameter {name} must have shape {wanted}; yours has {found}",
        zh="参数 {name} 的形状必须是 {wanted}；你的是 {found}",
    ),
    "mistake-refused": Message(
        en="your code does something that a check does not allow: {what}",
        zh="你的代码使用了批改时不允许的操作：{what}",
    ),
    "mistake-raises": Message(
        en="your code raises {type}: {message}",
        zh="你的代码抛出 {type}：{message}",
    ),
    "mistake-raises-line": Message(
        en="line {line} of your code raises {type}: {message}",
        zh="你的代码第 {line} 行抛出 {type}：{message}",
    ),
    "mistake-line": Message(en="line {line}: ", zh="第 {line} 行："),
    "mistake-too-many-arguments": Message(
        en="wrong number of arguments for {name}: it takes {takes} and is called with {given}",
        zh="调用 {name} 时传入了 {given} 个参数，但它只接受 {takes} 个",
    ),
    "mistake-missing-arguments": Message(
        en="{name} is called without {names}, which is required", zh="调用 {name} 时没有传入必需的参数 {names}"
    ),
    "mistake-unexpected-argument": Message(
        en="{name} is called with {names}=, but has no such parameter",
        zh="调用 {name} 时传入了 {names}=，但它没有这个参数",
    ),
    "mistake-as-in-the-task": Message(
        en="; define it with the parameters given in the task", zh="；请按题目给出的参数定义它"
    ),
    "mistake-recursion": Message(
        en="{where}infinite recursion; check the condition that ends it",
        zh="{where}无限递归；请检查递归的终止条件",
    ),
    "mistake-input": Message(
        en="{where}your code waits for keyboard input, for example with input(), which a check does not provide; "
        "everything it needs is passed as arguments",
        zh="{where}你的代码在等待键盘输入，例如 input()，批改时没有键盘输入；所需的数据都通过参数传入",
    ),
    "mistake-no-import": Message(
        en="line {line} uses {name}, which is not imported; add `{how}` at the top of your file",
        zh="第 {line} 行用到了 {name}，但还没有导入；请在文件开头加上 `{how}`",
    ),
    "mistake-no-package": Message(
        en="there is no package {name} here; an answer needs only NumPy, or PyTorch in PyTorch exercises",
        zh="没有安装 {name}；答案只需要 NumPy，PyTorch 练习还可以使用 PyTorch",
    ),
    "raises-shapes": Message(
        en="these shapes cannot be broadcast: {shapes}. Compared from the last axis, two sizes must be equal, or one "
        "of them must be 1",
        zh="这些形状无法广播：{shapes}。从最后一个轴向前比较，两个轴的大小必须相等，或者其中一个为 1",
    ),
    "raises-broadcast": Message(
        en="two arrays cannot be broadcast: an axis has different sizes in both, and neither of them is 1",
        zh="两个数组无法广播：有一个轴的大小不同，且都不为 1",
    ),
    "raises-assigned": Message(
        en="an array of shape {one} cannot be assigned to a slice of shape {other}",
        zh="形状为 {one} 的数组无法赋值给形状为 {other} 的切片",
    ),
    "raises-joined": Message(
        en="to concatenate arrays along one axis, all other axes must have equal sizes",
        zh="沿一个轴拼接时，其余各轴的大小必须相等",
    ),
    "raises-permuted": Message(
        en="transpose() or permute() must name every axis once; the array has a different number of axes",
        zh="transpose() 或 permute() 必须列出每个轴各一次；这里的轴数与数组的轴数不同",
    ),
    "raises-invert": Message(
        en="~, &, | and ^ need booleans, but these are numbers; write mask == 0, or convert to bool first",
        zh="~、&、|、^ 用于布尔值，这里却是数值；请写成 mask == 0，或者先转换为布尔类型",
    ),
    "raises-sizes-differ": Message(
        en="two tensors cannot be broadcast: on axis {axis} one has size {one}, the other {other}; the sizes must be "
        "equal, or one of them 1",
        zh="两个张量无法广播：第 {axis} 个轴的大小分别是 {one} 和 {other}；必须相等，或者其中一个为 1",
    ),
    "raises-in-place-shape": Message(
        en="the result has shape {other}, but the tensor changed in place has shape {one}",
        zh="计算结果的形状是 {other}，而原地修改的张量形状是 {one}",
    ),
    "raises-product": Message(
        en="these shapes cannot be multiplied: {one} and {other}; the last axis of the first must have the size of "
        "the second-last axis of the second. Is a transpose missing, or is there one too many?",
        zh="这两个形状不能相乘：{one} 和 {other}；前者最后一个轴的大小必须等于后者倒数第二个轴的大小。"
        "是否少了一次转置，或者多了一次？",
    ),
    "raises-product-sizes": Message(
        en="in a matrix product the last axis of the first has size {one}, the second-last axis of the second {other}; "
        "they must be equal. Is a transpose missing, or is there one too many?",
        zh="矩阵相乘时，前者最后一个轴的大小是 {one}，后者倒数第二个轴的大小是 {other}；两者必须相等。"
        "是否少了一次转置，或者多了一次？",
    ),
    "raises-reshape": Message(
        en="{size} elements do not fit the shape {shape}; the product of the sizes must equal the number of elements",
        zh="{size} 个元素与形状 {shape} 不符；各轴大小的乘积必须等于元素个数",
    ),
    "raises-view": Message(
        en="view() does not work after transpose() or permute(), which do not move the data in memory; "
        "write reshape(), or contiguous().view()",
        zh="transpose() 或 permute() 之后不能直接用 view()，因为数据在内存中的排列没有改变；请用 reshape()，"
        "或者 contiguous().view()",
    ),
    "raises-axis": Message(
        en="there is no axis {axis}: the number of axes is {axes}, counted from 0, or from the end with -1",
        zh="没有第 {axis} 个轴：这个数组有 {axes} 个轴，从 0 开始编号，或从末尾以 -1 开始",
    ),
    "raises-axis-range": Message(
        en="there is no axis {axis}: this tensor has fewer axes. The last axis is -1",
        zh="没有第 {axis} 个轴：这个张量的轴数较少。最后一个轴是 -1",
    ),
    "raises-index": Message(
        en="there is no element {index}: axis {axis} has size {size}, so the last index is one less",
        zh="没有第 {index} 个元素：第 {axis} 个轴的大小是 {size}，最大的下标是大小减 1",
    ),
    "raises-indices": Message(
        en="there are more indices in the brackets than the array has axes", zh="方括号中的下标个数多于数组的轴数"
    ),
    "raises-boolean-mask": Message(
        en="this mask must be boolean; write mask == 0 or mask.bool()",
        zh="这里的掩码必须是布尔的；请写成 mask == 0 或 mask.bool()",
    ),
    "raises-leaf-in-place": Message(
        en="an argument or parameter that needs a gradient is changed in place; write x = x + y instead of x += y",
        zh="需要梯度的参数被原地修改了；请把 x += y 写成 x = x + y",
    ),
    "raises-gradient-in-place": Message(
        en="a tensor needed for the gradient was changed in place afterwards; write x = x + y instead of x += y, and "
        "masked_fill instead of masked_fill_",
        zh="求梯度所需的张量之后被原地修改了；请把 x += y 写成 x = x + y，把 masked_fill_ 写成 masked_fill",
    ),
    "raises-numpy-of-gradient": Message(
        en="a tensor that needs a gradient cannot be converted to NumPy; use PyTorch functions for the calculation",
        zh="需要梯度的张量不能转换为 NumPy 数组；请用 PyTorch 的函数计算",
    ),
    "raises-dtypes": Message(
        en="two tensors have different dtypes, {one} and {other}; convert them to one dtype, for example with .float()",
        zh="两个张量的 dtype 不同，一个是 {one}，一个是 {other}；请先转换为同一类型，例如用 .float()",
    ),
    "raises-unbound": Message(
        en="{name} is used before it has a value; assign it before the if or the loop",
        zh="使用 {name} 时它还没有值；请在 if 或循环之前先给它赋值",
    ),
    "raises-truth": Message(
        en="a single boolean is needed here, but an array has many. For if and while write `mask is not None`, .any() "
        "or .all(); to choose element by element, use np.where, masked_fill or np.maximum",
        zh="这里需要单个布尔值，而数组有多个元素。if 和 while 中请写 `mask is not None`、.any() 或 .all()；"
        "要逐元素选择，请用 np.where、masked_fill、np.maximum",
    ),
    "raises-boolean-index": Message(
        en="a mask in square brackets is not broadcast: it must have the shape of the indexed array; use np.where or "
        "masked_fill, which broadcast",
        zh="方括号中的掩码不会广播，形状必须与被索引的数组相同；请用会广播的 np.where 或 masked_fill",
    ),
    "raises-boolean-minus": Message(
        en="minus does not work on booleans; write ~mask for the inverse, or mask == 0",
        zh="布尔值不能用减号；取反请写 ~mask，或者 mask == 0",
    ),
    "raises-stacked": Message(
        en="only arrays of the same shape can be stacked, but these shapes differ",
        zh="只有形状相同的数组才能 stack，而这些数组的形状不同",
    ),
    "raises-nothing": Message(
        en="the maximum of an empty array is undefined: does a loop or a slice go too far?",
        zh="这里对空数组求最大值（或最小值）：循环或切片是否超出了范围？",
    ),
    "raises-one-number": Message(
        en="this function takes a single number, but was given an array; use the NumPy or PyTorch function, for "
        "example np.exp instead of math.exp",
        zh="这个函数只接受单个数，却传入了数组；请用 NumPy 或 PyTorch 的函数，例如把 math.exp 换成 np.exp",
    ),
    "raises-whole-powers": Message(
        en="an integer cannot be raised to a negative integer power; use a float, 10000.0 instead of 10000",
        zh="整数不能取负整数次幂；请使用浮点数，例如把 10000 写成 10000.0",
    ),
    "raises-infinity-as-whole": Message(
        en="an integer array cannot hold inf or NaN, and int() cannot convert them; use a float array, for example "
        "np.zeros(shape) or dtype=float",
        zh="整数数组不能存放 inf 和 NaN，int() 也不能转换它们；请用浮点数组，例如 np.zeros(形状) 或 dtype=float",
    ),
    "raises-whole-wanted": Message(
        en="an integer is needed here, but a float was given: / always returns a float; use // for sizes",
        zh="这里需要整数，却传入了浮点数：/ 的结果总是浮点数；计算大小请用 //",
    ),
    "raises-whole-index": Message(
        en="an index must be an integer: / always returns a float; use // for positions",
        zh="下标必须是整数：/ 的结果总是浮点数；计算位置请用 //",
    ),
    "raises-tensor-wanted": Message(
        en="torch.{name} takes a tensor, but was given {type}; for a single number use math, as in math.sqrt(d_k)",
        zh="torch.{name} 需要张量，却传入了 {type}；单个数请用 math，例如 math.sqrt(d_k)",
    ),
    "raises-none-used": Message(
        en="a value here is None: an omitted argument, a default, or a function without return",
        zh="这里用到的某个值是 None：没有传入的参数、默认值，或者缺少 return 的函数",
    ),
    "raises-operands": Message(
        en="{sign} does not work between {one} and {other}; convert both to arrays, or both to tensors",
        zh="{one} 和 {other} 之间不能用 {sign}；请先把两者都转换为数组，或都转换为张量",
    ),
    "raises-undefined": Message(
        en="the name {name} is not defined; check its spelling",
        zh="名字 {name} 没有定义；请检查拼写",
    ),
    "raises-one-shape": Message(
        en="the shape is one argument, a tuple: np.zeros((2, 3)), not np.zeros(2, 3)",
        zh="形状是一个参数，要写成元组：np.zeros((2, 3))，而不是 np.zeros(2, 3)",
    ),
    "raises-ragged": Message(
        en="rows of different lengths do not form an array; all rows need the same number of elements",
        zh="长度不同的行不能构成数组；每一行的元素个数必须相同",
    ),
    "raises-whole-numbers": Message(
        en="this function needs floats, but these are integers or booleans; use .float() first",
        zh="这个函数需要浮点数，这里却是整数或布尔值；请先用 .float() 转换",
    ),
    "raises-called": Message(
        en="a value is called like a function: is an operator missing before the parentheses, or does a variable have "
        "the name of a function?",
        zh="把一个值当作函数调用了：是否括号前缺少运算符，或者变量与函数重名？",
    ),
    "raises-list-index": Message(
        en="the index is beyond the end of a list or tuple; the last index is its length minus 1",
        zh="下标超出了列表或元组的长度；最大的下标是长度减 1",
    ),
    "raises-equal-parts": Message(
        en="np.split needs parts of equal size, but the size of this axis is not divisible; is it the right axis?",
        zh="np.split 要求各份大小相等，而这个轴的大小不能整除；轴是否正确？",
    ),
    "raises-in-a-list": Message(
        en="pass the arrays as one list: np.concatenate([a, b]) or torch.cat([a, b])",
        zh="要拼接的数组必须放在一个列表中：np.concatenate([a, b]) 或 torch.cat([a, b])",
    ),
    "raises-by-zero": Message(en="division by 0", zh="除数是 0"),
    "raises-first-init": Message(
        en="the first line of __init__ must be super().__init__()",
        zh="__init__ 的第一行必须是 super().__init__()",
    ),
    "raises-array-method": Message(
        en="NumPy arrays have no {name}; is it a method of lists or of PyTorch tensors?",
        zh="NumPy 的数组没有 {name}；这是列表的方法，还是 PyTorch 张量的方法？",
    ),
    "raises-tensor-method": Message(
        en="PyTorch tensors have no {name}; is it a method of lists or of NumPy arrays?",
        zh="PyTorch 的张量没有 {name}；这是列表的方法，还是 NumPy 数组的方法？",
    ),
    "mistake-no-error": Message(
        en="these arguments are invalid and should raise {type}; your code returns a result",
        zh="这些参数无效，应当抛出 {type}；你的代码却返回了结果",
    ),
    "mistake-mutates-input": Message(
        en="your code changes its argument ({names}); work on a copy, or write x = x - y instead of x -= y",
        zh="你的代码修改了传入的参数（{names}）；请先复制，或者把 x -= y 写成 x = x - y",
    ),
    "mistake-hard-coded": Message(
        en="your code returns the same result for all arguments",
        zh="无论传入什么参数，你的代码都返回同样的结果",
    ),
    "mistake-transposed": Message(
        en="your result is the right one transposed: rows and columns are exchanged",
        zh="你的结果是正确答案的转置：行和列对调了",
    ),
    "mistake-wrong-type": Message(
        en="the result should be {expected}, not {got}",
        zh="结果应该是 {expected}，而不是 {got}",
    ),
    "mistake-wrong-count": Message(
        en="the result should have {expected} parts, not {got}",
        zh="结果应该有 {expected} 个部分，而不是 {got} 个",
    ),
    "mistake-wrong-shape": Message(
        en="the shape should be {expected}, not {got}",
        zh="形状应该是 {expected}，而不是 {got}",
    ),
    "mistake-wrong-dtype": Message(
        en="the numbers should be {expected}, not {got}",
        zh="数的类型应该是 {expected}，而不是 {got}",
    ),
    "mistake-nan-for-infinity": Message(
        en="your result has {got} where {expected} is expected: check for inf - inf, 0/0, or -inf times 0",
        zh="应该是 {expected} 的地方，你的结果是 {got}：检查有没有 inf - inf、0/0 或 -inf 乘 0",
    ),
    "mistake-not-finite": Message(
        en="your result has {got} where a finite number is expected: check for exp of a large number, 0/0, or "
        "-inf times 0",
        zh="应该是有限数的地方，你的结果是 {got}：检查有没有对很大的数取 exp、0/0 或 -inf 乘 0",
    ),
    "mistake-no-gradient": Message(
        en="the numbers are right, but no gradient reaches {name}: do not use detach(), .data, .numpy() or no_grad()",
        zh="数值是对的，但梯度传不到 {name}：不要使用 detach()、.data、.numpy() 或 no_grad()",
    ),
    "mistake-wrong-gradient": Message(
        en="the numbers are right, but the gradient of {name} is wrong",
        zh="数值是对的，但 {name} 的梯度不对",
    ),
    "mistake-rounded": Message(
        en="your numbers are the right ones rounded to {places} decimals; do not round",
        zh="你的数是正确答案保留 {places} 位小数的结果；不要四舍五入",
    ),
    "mistake-low-precision": Message(
        en="your numbers are right to about three digits and all fit in float16; do not calculate in half precision",
        zh="你的数只精确到大约三位，而且都能用 float16 表示：不要用半精度（float16、bfloat16）计算",
    ),
    "mistake-near": Message(
        en="your numbers are close to the right ones, but not equal: the error is up to {most}. Possible causes: "
        "a small number added to a denominator, a constant with too few digits, a dtype of low precision",
        zh="你的数与正确答案接近但不相等：误差最大为 {most}。可能的原因：分母上加了一个很小的数、常数的位数不够、"
        "dtype 的精度较低",
    ),
    "mistake-not-shares": Message(
        en="every row should sum to 1; one of yours sums to {total}",
        zh="每一行之和应为 1；你有一行之和是 {total}",
    ),
    "mistake-wrong-value": Message(en="expected {expected}, got {got}", zh="应得 {expected}，实得 {got}"),
    "mistake-not-repeatable": Message(
        en="two calls with the same arguments give different results: your function draws random numbers itself, or "
        "keeps something from an earlier call; its result must follow from its arguments alone",
        zh="用同样的参数调用两次，结果却不同：你的函数自己抽了随机数，或者留下了上一次调用的内容；结果必须只由参数决定",
    ),
    "mistake-unknown": Message(
        en="no known mistake gives these numbers; compare the call above with the task, step by step",
        zh="这些数不符合任何已知的错误；请根据上面的调用逐步核对题目",
    ),
    "mistake-two": Message(
        en="two mistakes. First: {first}. Second: {second}", zh="有两处错误。第一：{first}。第二：{second}"
    ),
    "mistake-bug-and": Message(
        en="the original bug of the program is still there, and there is another mistake: {second}",
        zh="程序原有的错误还在，而且还有一处错误：{second}",
    ),
    "mistake-too-slow": Message(
        en="your code did not finish in time: check for an infinite loop",
        zh="你的代码没有按时结束：请检查是否有死循环",
    ),
    "mistake-too-much-memory": Message(
        en="your code used more memory than a check allows", zh="你的代码使用的内存超过了批改允许的上限"
    ),
    "mistake-too-much-output": Message(
        en="your code printed more than a check allows: is there a print in a loop?",
        zh="你的代码打印的内容超过了批改允许的上限：循环中是否有 print？",
    ),
    "mistake-killed": Message(
        en="your program ended before all calls returned (exit, crash, or a signal)",
        zh="你的程序在调用完成之前就结束了（退出、崩溃或收到信号）",
    ),
    "mistake-garbled": Message(
        en="the answer of your program could not be read; do not use the files and pipes of the check",
        zh="你的程序传回的内容无法读取；请不要使用批改程序的文件和管道",
    ),
}
