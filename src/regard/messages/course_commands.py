"""Messages of commands of `regard learn`: overview, path, notebooks, export and import of progress, certificate."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- overview ---
    "overview-was": Message(en="Last", zh="上次"),
    "overview-next": Message(en="Next", zh="下一步"),
    "overview-due": Message(en="Today", zh="今天"),
    "overview-progress": Message(en="So far", zh="进度"),
    "overview-was-none": Message(en="nothing yet: this is the beginning", zh="还没有记录：从头开始"),
    "overview-was-lesson": Message(en="lesson {id}", zh="课文：{id}"),
    "overview-was-exercise": Message(en="{id}, not passed yet", zh="{id}，尚未通过"),
    "overview-was-passed": Message(en="{id}, passed", zh="{id}，已通过"),
    "overview-was-question": Message(en="the question {id}, rated {rated}", zh="问题 {id}，打分 {rated}"),
    "overview-today": Message(en="today", zh="今天"),
    "overview-yesterday": Message(en="yesterday", zh="昨天"),
    "overview-day": Message(en="on {day}", zh="{day}"),
    "overview-due-some": Message(
        en="questions to repeat: {count} (regard learn ask)", zh="该复习的问题有 {count} 个（regard learn ask）"
    ),
    "overview-due-none": Message(
        en="nothing to repeat; new questions: regard learn ask", zh="没有要复习的问题；做新题：regard learn ask"
    ),
    "overview-counts": Message(
        en="{lessons_done} of {lessons_count} lessons, {exercises_done} of {exercises_count} exercises, "
        "{questions_done} of {questions_count} questions",
        zh="课文 {lessons_done}/{lessons_count}，练习 {exercises_done}/{exercises_count}，"
        "问题 {questions_done}/{questions_count}",
    ),
    "overview-left": Message(en="about {time} left", zh="大约还要 {time}"),
    "overview-lesson-done": Message(en="done", zh="完成"),
    "overview-marks": Message(
        en="One mark for each exercise: ✓ passed, … started, · not started. The times are what is left.",
        zh="每道练习一个记号：✓ 已通过，… 已开始，· 未开始。时间是还需要的时间。",
    ),
    "overview-marks-torch": Message(
        en="One mark for each exercise: ✓ passed, … started, · not started, × needs PyTorch. The times are what is "
        "left.",
        zh="每道练习一个记号：✓ 已通过，… 已开始，· 未开始，× 需要 PyTorch。时间是还需要的时间。",
    ),
    "overview-more": Message(
        en="All exercises: regard learn list · The whole path with times: regard learn path",
        zh="全部练习：regard learn list · 完整的学习路线和时间：regard learn path",
    ),
    # --- path ---
    "help-learn-path": Message(
        en="Show the whole course in order, with the time that each step takes and what is left.",
        zh="按顺序显示整个课程，每一步需要多少时间，还剩多少。",
    ),
    "help-path-lesson": Message(
        en="one lesson in detail, with every question; default: all lessons", zh="只看一课，列出每个问题；默认显示全部"
    ),
    "path-head": Message(en="About {total} in all, {left} left.", zh="总共大约 {total}，还剩 {left}。"),
    "path-lesson-left": Message(en="{total}, {left} left", zh="{total}，还剩 {left}"),
    "path-minutes": Message(en="{count} min", zh="{count} 分钟"),
    "path-hours": Message(en="{hours} h", zh="{hours} 小时"),
    "path-questions": Message(en="questions answered well: {done} of {count}", zh="答好的问题：{done}/{count}"),
    "path-rule": Message(
        en="The times are estimates: {words} words or {characters} Chinese characters a minute, {block:g} min for each "
        "code block and picture, {exercise:g} min for each exercise and {line:g} min for each line to write in it, "
        "{searched:g} min for each line to search for a bug, {step:g} min for each step of an answer sheet.",
        zh="时间是估计值：每分钟读 {characters} 个汉字或 {words} 个英文词；每段代码、每幅图 {block:g} 分钟；"
        "每道练习 {exercise:g} 分钟，其中要写的代码每行再加 {line:g} 分钟；找错的程序每行 {searched:g} 分钟；"
        "答题纸每步 {step:g} 分钟。",
    ),
    # --- export and import ---
    "help-learn-export": Message(
        en="Write all progress and the answers that passed to one file, to continue on another computer.",
        zh="把全部进度和通过的答案写进一个文件，以便换一台电脑继续学习。",
    ),
    "help-export-file": Message(en="the file to write, such as progress.json", zh="要写的文件，如 progress.json"),
    "help-learn-import": Message(
        en="Merge an exported file into the progress here. Nothing is lost, and the old progress is kept in a copy.",
        zh="把导出的文件合并到这里的进度中。不会丢失任何内容，原来的进度另存一份。",
    ),
    "help-import-file": Message(en="a file that regard learn export wrote", zh="regard learn export 写出的文件"),
    "transfer-which": Message(
        en="which file? For example: regard learn {command} progress.json",
        zh="哪个文件？例如：regard learn {command} progress.json",
    ),
    "export-not-utf8": Message(
        en="the kept answer {name} is not UTF-8 text and is not exported",
        zh="保存的答案 {name} 不是 UTF-8 文本，没有导出",
    ),
    "export-done": Message(
        en="Wrote {file}. With progress: exercises {exercises}, questions {questions}, lessons {lessons}; answers: "
        "{answers}. On another computer: regard learn import {quoted}",
        zh="已写入 {file}：{exercises} 道练习、{questions} 个问题、{lessons} 篇课文的进度，以及 {answers} 份答案。"
        "换一台电脑后运行：regard learn import {quoted}",
    ),
    "import-other": Message(
        en="{path} was not written by regard learn export", zh="{path} 不是 regard learn export 写出的文件"
    ),
    "import-newer": Message(
        en="{path} was written by a newer regard; update regard here, then import it",
        zh="{path} 由较新版本的 regard 生成；请先更新这里的 regard 再导入",
    ),
    "import-damaged": Message(
        en="{path} is damaged ({where}) and was not imported; export it again on the other computer",
        zh="{path} 已损坏（{where}），没有导入；请在原来的电脑上重新导出",
    ),
    "import-done": Message(
        en="Merged {file}. Exercises: {exercises}, questions: {questions}, lessons: {lessons}, answers: {answers}.",
        zh="已合并 {file}：{exercises} 道练习、{questions} 个问题、{lessons} 篇课文、{answers} 份答案。",
    ),
    "import-nothing-new": Message(
        en="The progress here had all of it already.", zh="这里的进度已经全部包含，没有变化。"
    ),
    "import-backup": Message(en="The progress before is kept in {backup}", zh="合并之前的进度保存在 {backup}"),
    "import-unknown": Message(
        en="This version of regard does not know {count} of the names: {names}. They are kept in {file}; import that "
        "file after an update.",
        zh="这个版本的 regard 不认识其中 {count} 个名字：{names}。它们保存在 {file}；更新之后可以再导入这个文件。",
    ),
    "progress-too-large": Message(
        en="{path} would be larger than {most}; nothing was imported", zh="{path} 将超过 {most}；没有导入"
    ),
    # --- notebook ---
    "help-learn-notebook": Message(
        en="Write a lesson as a Jupyter notebook: its text, code, pictures and exercises.",
        zh="把课文生成为 Jupyter 笔记本：正文、代码、图和练习都在其中。",
    ),
    "help-learn-notebook-examples": Message(
        en="Examples:\n"
        "  regard learn notebook 4                    write 04-masks.en.ipynb\n"
        "  regard learn notebook masks my-masks.ipynb\n"
        "  regard learn notebook --all course         all lessons, in the folder course\n"
        "\n"
        "A file that already exists is never overwritten.",
        zh="示例：\n"
        "  regard learn notebook 4                    生成 04-masks.zh-CN.ipynb\n"
        "  regard learn notebook masks my-masks.ipynb\n"
        "  regard learn notebook --all course         全部课文，放在文件夹 course 中\n"
        "\n"
        "已有的文件不会被覆盖。",
    ),
    "help-notebook-lesson": Message(
        en="the number or name of the lesson; with --all, the folder", zh="课文的编号或名字；用了 --all 则为文件夹"
    ),
    "metavar-file-or-folder": Message(en="FILE or FOLDER", zh="文件或文件夹"),
    "help-notebook-target": Message(
        en="the file (.ipynb) or folder to write to; default: the current folder",
        zh="要写入的文件（.ipynb）或文件夹；默认为当前文件夹",
    ),
    "help-notebook-all": Message(en="write all lessons", zh="生成全部课文"),
    "notebook-which": Message(
        en="which lesson? For example: regard learn notebook 4, or --all for all of them (the list: regard learn read)",
        zh="哪一课？例如：regard learn notebook 4；--all 表示全部（目录：regard learn read）",
    ),
    "notebook-all-folder": Message(
        en="--all takes one folder and no lesson; found {lesson!r} and {target!r}",
        zh="--all 只接受一个文件夹，不能再指定课文；收到了 {lesson!r} 和 {target!r}",
    ),
    "notebook-all-file": Message(
        en="--all writes several files, so {path} must be a folder", zh="--all 会生成多个文件，所以 {path} 必须是文件夹"
    ),
    "notebook-kept": Message(
        en="{file} already exists with other content and was not overwritten; give another file name or folder.",
        zh="{file} 已存在，内容与课文不同，因此没有覆盖；请换一个文件名或文件夹。",
    ),
    "notebook-open": Message(
        en="Open notebooks with Jupyter or VS Code, and choose a Python that has regard.",
        zh="可用 Jupyter 或 VS Code 打开笔记本，并选择装有 regard 的 Python。",
    ),
    "notebook-setup": Message(
        en="Run this cell first. It sets the language, and `!regard` then runs the command of this Python.",
        zh="请先运行这一格：它设定语言，并让 `!regard` 使用当前 Python 里的命令。",
    ),
    "notebook-training": Message(
        en="Training takes a while. To run a line, delete the # in front of it.",
        zh="训练需要一些时间。要运行某一行，请删去行首的 #。",
    ),
    "notebook-exercises": Message(
        en="## Exercises\n\nComplete a cell, then run it: the check shows the first difference and the likely mistake. "
        "For a hint, run `!regard learn hint` with the name of the exercise.",
        zh="## 练习\n\n补全一格代码，然后运行：批改会显示第一处不同和可能的错误。"
        "需要提示时，运行 `!regard learn hint`，后面写练习的名字。",
    ),
    # --- certificate ---
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
        zh="示例：\n"
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
        en="a name has at most {most} characters; found {found}", zh="姓名最多 {most} 个字符；实际为 {found} 个"
    ),
    "certificate-nothing": Message(
        en="no exercise is passed yet, so there is nothing to certify; begin with regard learn start softmax",
        zh="还没有通过任何练习，没有可以写进证书的内容；可以从 regard learn start softmax 开始",
    ),
    "certificate-written": Message(
        en="Wrote {path}. Exercises passed: {passed}. Open it in a browser; print it from there. "
        "To run every answer again: regard learn certificate --verify {quoted}",
        zh="已写入 {path}：{passed} 道练习。用浏览器打开，也可以在浏览器中打印。重新运行每份答案："
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
        en="Answers that pass again: {passes} of {count}.", zh="{count} 份答案中有 {passes} 份再次通过。"
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
