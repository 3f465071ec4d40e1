"""Messages of the overview of `regard learn`, of the path with its times, and of exported and imported progress."""

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
        en="Wrote {file}: progress on {exercises} exercises, {questions} questions and {lessons} lessons, and "
        "{answers} answers. On another computer: regard learn import {quoted}",
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
        en="Merged {file}: {exercises} exercises, {questions} questions, {lessons} lessons, {answers} answers.",
        zh="已合并 {file}：{exercises} 道练习、{questions} 个问题、{lessons} 篇课文、{answers} 份答案。",
    ),
    "import-nothing-new": Message(
        en="The progress here had all of it already.", zh="这里的进度已经全部包含，没有变化。"
    ),
    "import-backup": Message(en="The progress before is kept in {backup}", zh="合并之前的进度保存在 {backup}"),
    "import-unknown": Message(
        en="This version of regard does not know {count} of the names: {names}. They are kept in {aside}; import that "
        "file after an update.",
        zh="这个版本的 regard 不认识其中 {count} 个名字：{names}。它们保存在 {aside}；更新之后可以再导入这个文件。",
    ),
    "progress-too-large": Message(
        en="{path} would be larger than {most}; nothing was imported", zh="{path} 将超过 {most}；没有导入"
    ),
}
