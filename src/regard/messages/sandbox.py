"""Messages about a learner's source that Python cannot read, and about operations that a program may not use."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- reading the source ---
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
    "source-strange": Message(
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
        en="an answer may not write so many files or so much data",
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
}
