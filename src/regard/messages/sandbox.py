"""What is said about a learner's text that Python cannot read, and about what its program may not do."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- the text ---
    "source-empty": Words(
        en="the file is empty; write your answer into it, save it and check again",
        zh="文件是空的；请写下答案，保存后再批改",
    ),
    "source-too-long": Words(
        en="the file has more than {most:,} characters; an answer has some hundred, so this may be the wrong file",
        zh="文件超过 {most:,} 个字符；答案一般只有几百个字符，可能选错了文件",
    ),
    "source-nul": Words(
        en="line {line} holds a NUL character, which no editor writes; copy the text into a new file",
        zh="第 {line} 行有 NUL 字符，编辑器不会写出它；请把内容复制到新文件",
    ),
    "source-not-utf8": Words(
        en="line {line} is not UTF-8; save the file again with the encoding UTF-8",
        zh="第 {line} 行不是 UTF-8；请用 UTF-8 编码重新保存文件",
    ),
    "source-utf16": Words(
        en="the file is UTF-16, which Python cannot read; save it again with the encoding UTF-8",
        zh="文件是 UTF-16 编码，Python 读不了；请用 UTF-8 编码重新保存",
    ),
    "source-encoding": Words(
        en="the coding line at the top names {found!r}; remove that line and save the file as UTF-8",
        zh="开头的 coding 行写的是 {found!r}；请删去这一行，并把文件保存为 UTF-8",
    ),
    # --- what Python cannot read ---
    "source-full-width": Words(
        en="line {line} has the full-width sign {sign}; type {plain} instead, with the input method set to English",
        zh="第 {line} 行的 {sign} 是全角符号；请切换到英文输入法，改成 {plain}",
    ),
    "source-full-widths": Words(
        en="full-width signs: {signs}{more}; type the plain ones, with the input method set to English",
        zh="有全角符号：{signs}{more}；请切换到英文输入法，改成半角符号",
    ),
    "source-full-width-place": Words(en="line {line} {sign} → {plain}", zh="第 {line} 行 {sign} → {plain}"),
    "source-full-width-more": Words(en=" · and {count} more", zh=" · 还有 {count} 处"),
    "source-invisible": Words(
        en="line {line} has a character that cannot be seen ({code}), often copied from a page; type the line again",
        zh="第 {line} 行有看不见的字符（{code}），多半是从网页复制来的；请重新输入这一行",
    ),
    "source-strange": Words(
        en="line {line} has the sign {sign}, which Python does not know",
        zh="第 {line} 行有 Python 不认识的符号 {sign}",
    ),
    "source-tabs": Words(
        en="line {line} mixes tabs and spaces at its beginning; use four spaces for every level",
        zh="第 {line} 行的缩进混用了制表符和空格；每一级请统一用四个空格",
    ),
    "source-indentation": Words(
        en="the indentation of line {line} does not fit the lines above; use four spaces for every level",
        zh="第 {line} 行的缩进与上文不一致；每一级请统一用四个空格",
    ),
    "source-colon": Words(
        en="line {line} needs a colon at its end, after def, if, for, while, else or class",
        zh="第 {line} 行末尾缺少冒号（def、if、for、while、else、class 后面要有）",
    ),
    "source-bracket": Words(
        en="the brackets of line {line} do not match; count the opening and the closing ones",
        zh="第 {line} 行的括号不成对；请数一数左右括号",
    ),
    "source-string": Words(
        en="a string that begins in line {line} does not end; close it with the same quotation mark",
        zh="第 {line} 行开始的字符串没有结束；请用相同的引号收尾",
    ),
    "source-syntax": Words(
        en="Python cannot read line {line}: {message}",
        zh="Python 读不懂第 {line} 行：{message}",
    ),
    # --- what a program may not do ---
    "sandbox-refused-package": Words(
        en="an answer may not use regard itself, nor read its files; write the calculation yourself. (Only softmax "
        "from deep_learning.activations may be imported, where the task is not about softmax itself)",
        zh="答案不能使用 regard 本身，也不能读取它的文件；请自己写出计算。（只有 deep_learning.activations 里的 "
        "softmax 可以导入，前提是题目要写的不是 softmax 本身）",
    ),
    "sandbox-refused-process": Words(
        en="an answer may not start other programs or processes; it is not needed here",
        zh="答案不能启动其他程序或进程；这里用不到",
    ),
    "sandbox-refused-network": Words(
        en="an answer may not use the network; everything that it needs comes as arguments",
        zh="答案不能使用网络；需要的一切都在参数里",
    ),
    "sandbox-refused-signal": Words(
        en="an answer may not send signals to processes",
        zh="答案不能向进程发送信号",
    ),
    "sandbox-refused-native": Words(
        en="an answer may not load native libraries with ctypes; NumPy or PyTorch is enough",
        zh="答案不能用 ctypes 加载本地库；NumPy 或 PyTorch 就够了",
    ),
    "sandbox-refused-inside": Words(
        en="an answer may not look into the interpreter or other processes; nothing to be found there helps",
        zh="答案不能查看解释器内部或其他进程；那里没有有用的东西",
    ),
    "sandbox-refused-limits": Words(
        en="an answer may not change its own limits",
        zh="答案不能修改自己的资源限制",
    ),
    "sandbox-refused-write": Words(
        en="an answer may write and delete files only in its own folder, which is removed afterwards",
        zh="答案只能在自己的文件夹里写入和删除文件，这个文件夹事后会被清除",
    ),
    "sandbox-refused-files": Words(
        en="an answer may not write so many files, nor so much into them",
        zh="答案不能写这么多文件，也不能往里写这么多内容",
    ),
    "sandbox-refused-module": Words(
        en="on this system an answer may not import modules that open files by themselves: readline, sqlite3, dbm, "
        "tkinter, ssl, multiprocessing; they are not needed here",
        zh="在这个系统上，答案不能导入会自行打开文件的模块：readline、sqlite3、dbm、tkinter、ssl、multiprocessing；这里用不到它们",
    ),
    # --- the run ---
    "sandbox-exercise": Words(en="this exercise", zh="这道练习"),
    "sandbox-not-started": Words(
        en="your program could not be run: {python} did not start with NumPy; is there memory, and room for "
        "temporary files?",
        zh="无法运行程序：{python} 没能带着 NumPy 启动；请检查内存和临时文件夹的空间",
    ),
}
