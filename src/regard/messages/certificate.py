"""Messages of `regard learn certificate`: the command, the page, and what a verification finds."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- command ---
    "help-learn-certificate": Message(
        en="Write a page (HTML) of what you passed, with the answers; --verify runs all of them again.",
        zh="生成一个网页（HTML），列出通过的练习并附上答案；--verify 会把它们全部重新运行。",
    ),
    "help-learn-certificate-examples": Message(
        en="Examples:\n"
        "  regard learn certificate mine.html --name 'Ada Lovelace'\n"
        "  regard learn certificate --verify mine.html\n"
        "\n"
        "The page is not signed: it shows what is in it, and anyone can run it again.\n"
        "--verify runs the programs in the page; verify pages of strangers in a\n"
        "container.",
        zh="例子：\n"
        "  regard learn certificate mine.html --name 王小明\n"
        "  regard learn certificate --verify mine.html\n"
        "\n"
        "这个页面没有签名：它只列出内容，任何人都可以重新运行。\n"
        "--verify 会运行页面里的程序；陌生人的页面请在容器里验证。",
    ),
    "metavar-certificate": Message(en="FILE.html", zh="文件.html"),
    "help-certificate-file": Message(en="the page to write, or to verify", zh="要生成的页面，或要验证的页面"),
    "metavar-person": Message(en="NAME", zh="姓名"),
    "help-certificate-name": Message(en="your name, as it is to be printed", zh="印在页面上的姓名"),
    "help-certificate-verify": Message(
        en="run every answer of the page again; exit code 0 if all pass",
        zh="重新运行页面里的每份答案；全部通过时退出码为 0",
    ),
    "certificate-which": Message(
        en="which file? For example: regard learn certificate mine.html --name 'Ada Lovelace'",
        zh="哪个文件？例如：regard learn certificate mine.html --name 王小明",
    ),
    "certificate-name-verify": Message(
        en="--name is for writing a page; --verify {path} takes the name from the page",
        zh="--name 用于生成页面；--verify {path} 使用页面里的姓名",
    ),
    "certificate-name": Message(
        en="a name has at most {most} characters; found {found}", zh="姓名最多 {most} 个字符；现在是 {found} 个"
    ),
    "certificate-nothing": Message(
        en="no exercise is passed yet, so there is nothing to certify; begin with regard learn start softmax",
        zh="还没有通过任何练习，没有可以写进证书的内容；可以从 regard learn start softmax 开始",
    ),
    "certificate-written": Message(
        en="Wrote {path}: {passed} exercises. Open it in a browser; print it from there. To run every answer again: "
        "regard learn certificate --verify {quoted}",
        zh="已写入 {path}：{passed} 道练习。用浏览器打开，也可以从那里打印。重新运行每份答案："
        "regard learn certificate --verify {quoted}",
    ),
    "certificate-without-answers": Message(
        en="The answers to {names} were passed before answers were kept: check them once more to include them.",
        zh="{names} 是在开始保存答案之前通过的：再批改一次，就能写进证书。",
    ),
    "certificate-other": Message(
        en="{path} was not written by regard learn certificate", zh="{path} 不是 regard learn certificate 写出的页面"
    ),
    "certificate-newer": Message(
        en="{path} was written by a newer regard; update regard to verify it",
        zh="{path} 由较新版本的 regard 生成；请更新 regard 后再验证",
    ),
    "certificate-damaged": Message(
        en="the data in {path} are damaged ({where}); nothing was run",
        zh="{path} 里的数据已损坏（{where}）；没有运行任何程序",
    ),
    # --- verification ---
    "certificate-passes": Message(en="passes again", zh="再次通过"),
    "certificate-fails": Message(en="does not pass: {reason}", zh="没有通过：{reason}"),
    "certificate-changed": Message(
        en="not run: the answer does not have the hash that is stated", zh="没有运行：答案与所写的哈希不符"
    ),
    "certificate-unkept": Message(en="not run: the page has no answer", zh="没有运行：页面里没有答案"),
    "certificate-unknown": Message(
        en="not run: this version of regard has no such exercise", zh="没有运行：这个版本的 regard 没有这道练习"
    ),
    "certificate-no-torch": Message(
        en="not run: it needs PyTorch (pip install 'regard[torch]')",
        zh="没有运行：需要 PyTorch（pip install 'regard[torch]'）",
    ),
    "certificate-result": Message(
        en="{passes} of {count} answers pass again.", zh="{count} 份答案中有 {passes} 份再次通过。"
    ),
    "certificate-edited": Message(
        en="The page differs from what this regard writes for its data: it was edited, or written by another build of "
        "regard. What counts is the list above.",
        zh="页面与 regard 根据其中的数据生成的不一致：它被改动过，或由另一个版本的 regard 生成。请以上面的结果为准。",
    ),
    "certificate-not-compared": Message(
        en="The page was written by regard {theirs}, and this is {ours}: whether the text on the page was edited "
        "cannot be "
        "told. What counts is the list above.",
        zh="页面由 regard {theirs} 生成，而这里是 {ours}：无法判断页面上的文字是否改动过。请以上面的结果为准。",
    ),
    # --- page ---
    "certificate-course": Message(en="regard · attention and Transformers", zh="regard · 注意力与 Transformer"),
    "certificate-title": Message(en="Certificate", zh="学习证书"),
    "certificate-claim": Message(
        en="passed {passed} of the {count} exercises of the course: ",
        zh="完成了本课程 {count} 道练习中的 {passed} 道：",
    ),
    "certificate-days": Message(
        en="programs written, bugs found and sheets calculated by hand, from {first} to {last}.",
        zh="编写程序、找出错误、手算答题，从 {first}到 {last}。",
    ),
    "certificate-one-day": Message(
        en="programs written, bugs found and sheets calculated by hand, on {last}.",
        zh="编写程序、找出错误、手算答题，{last}。",
    ),
    "certificate-day": Message(en="{day} {month} {year}", zh="{year} 年 {month} 月 {day} 日"),
    "certificate-exercises": Message(en="exercises passed", zh="通过的练习"),
    "certificate-lessons": Message(en="lessons read", zh="读过的课文"),
    "certificate-questions": Message(en="questions answered well", zh="答好的问题"),
    "certificate-time": Message(en="estimated time", zh="估计用时"),
    "certificate-picture": Message(
        en="One square for each exercise, one row for each lesson; filled: passed ({passed} of {count})",
        zh="每道练习一个方格，每课一行；实心表示已通过（{passed}/{count}）",
    ),
    "certificate-column-title": Message(en="Exercise", zh="练习"),
    "certificate-column-id": Message(en="Name", zh="名字"),
    "certificate-column-day": Message(en="Passed on", zh="通过日期"),
    "certificate-column-hash": Message(en="SHA-256 of the answer", zh="答案的 SHA-256"),
    "certificate-no-answer": Message(en="answer not kept", zh="未保存答案"),
    "certificate-what": Message(
        en="What this page is: a record that regard wrote on the learner’s own computer. It is not signed, and does "
        "not prove "
        "who wrote the answers or when. Exercises are graded by a program on new data; lessons and questions are what "
        "the "
        "learner reported.",
        zh="这是什么：regard 在学习者自己的电脑上生成的记录。它没有签名，不能证明答案是谁写的、何时写的。"
        "练习由程序用新的数据批改；课文和问题由学习者自己记录。",
    ),
    "certificate-again": Message(
        en="What can be checked: the answers are inside the file of this page, each with its SHA-256, of which the "
        "first 16 "
        "digits are shown. "
        "This command runs all of them again, on new data, and reports each:",
        zh="什么可以验证：每份答案都在这个页面的文件里，上面列出了它的 SHA-256 的前 16 位。"
        "下面的命令用新的数据重新运行全部答案，逐项报告结果：",
    ),
    "certificate-one": Message(
        en="One exercise alone: regard learn start ID shows its task, and regard learn check ID FILE grades any "
        "answer to it.",
        zh="单独一道练习：regard learn start 练习名 显示题目，regard learn check 练习名 文件 批改任何一份答案。",
    ),
    "certificate-made": Message(en="Written by regard {regard} on {day}", zh="由 regard {regard} 写于 {day}"),
}
