"""What `regard learn` says: its help pages, its lists, and what is kept between two days."""

from regard.messages import Words

WORDS: dict[str, Words] = {
    # --- regard learn ---
    "help-learn": Words(
        en="Practise: exercises that check what you write, interview questions, lessons.",
        zh="动手练：会批改的练习、面试题、课文。",
    ),
    "help-learn-examples": Words(
        en="Examples:\n"
        "  regard learn                               what there is, and what to do next\n"
        "  regard learn start softmax                 the task, and softmax.py to begin from\n"
        "  regard learn check softmax softmax.py --on-save\n"
        "  regard learn ask                           an interview question\n"
        "\n"
        "Progress is kept in the folder REGARD_HOME, otherwise in ~/.regard",
        zh="例子：\n"
        "  regard learn                               有哪些练习，下一步做什么\n"
        "  regard learn start softmax                 看题目，并得到 softmax.py\n"
        "  regard learn check softmax softmax.py --on-save\n"
        "  regard learn ask                           来一道面试题\n"
        "\n"
        "进度保存在环境变量 REGARD_HOME 指定的文件夹里；没有设置则在 ~/.regard",
    ),
    "metavar-id": Words(en="ID", zh="练习"),
    "help-id": Words(en="the exercise, as regard learn list names it", zh="练习的名字，见 regard learn list"),
    "learn-which": Words(
        en="which exercise? For example: regard learn {command} softmax (all of them: regard learn list)",
        zh="哪道练习？例如：regard learn {command} softmax（全部练习：regard learn list）",
    ),
    "learn-json-place": Words(
        en="--json goes after the command: regard learn {command} --json",
        zh="--json 要写在命令后面：regard learn {command} --json",
    ),
    # --- list ---
    "help-learn-list": Words(
        en="List the exercises with your progress, and the check-list of four.",
        zh="列出练习和你的进度，还有四项自查清单。",
    ),
    "learn-lesson": Words(en="Lesson {number}  {title}", zh="第 {number} 课  {title}"),
    "learn-lesson-short": Words(en="lesson {number}", zh="第 {number} 课"),
    "learn-lesson-coming": Words(en="{title} (its text is still to come)", zh="{title}（课文还没有写）"),
    "learn-kind-code": Words(en="write · {track}", zh="写代码 · {track}"),
    "learn-kind-bug": Words(en="find the bug · {track}", zh="找错 · {track}"),
    "learn-kind-sheet": Words(en="answer sheet", zh="填答案"),
    "learn-torch-exercises": Words(en="Checking an exercise marked ×", zh="检查标有 × 的练习"),
    "learn-passed": Words(en="Passed: {passed} of {count}", zh="已通过：{passed}/{count}"),
    "learn-marks": Words(en="(✓ passed, … begun, · not yet)", zh="（✓ 通过，… 做过，· 还没做）"),
    "learn-marks-torch": Words(
        en="(✓ passed, … begun, · not yet, × needs PyTorch)",
        zh="（✓ 通过，… 做过，· 还没做，× 需要 PyTorch）",
    ),
    "learn-checklist": Words(
        en="Ready for the interview? {done} of {count}",
        zh="面试准备好了吗？{done}/{count}",
    ),
    "learn-item-flow": Words(en="put the flow chart together", zh="画出流程图"),
    "learn-item-hand": Words(en="calculate the weights by hand", zh="手算注意力权重"),
    "learn-item-code": Words(en="write both exercises", zh="完成两道编程题"),
    "learn-item-words": Words(en="answer in your own words", zh="用自己的话回答"),
    "learn-due": Words(
        en="Questions due today: {count}. regard learn ask",
        zh="今天该复习的问题：{count} 个。regard learn ask",
    ),
    "learn-next-begin": Words(
        en="Next: regard learn read 1, then lesson {lesson} with its first exercise: regard learn start {exercise}",
        zh="下一步：regard learn read 1，然后是第 {lesson} 课和它的第一道练习：regard learn start {exercise}",
    ),
    "learn-next-start": Words(
        en="Next: regard learn start {exercise}",
        zh="下一步：regard learn start {exercise}",
    ),
    "learn-next-read": Words(
        en=" (before it, if you like: regard learn read {lesson})",
        zh="（想先看课文：regard learn read {lesson}）",
    ),
    "learn-next-go-on": Words(
        en="Next: go on with {exercise}: regard learn check {exercise}, or regard learn hint {exercise}",
        zh="下一步：继续做 {exercise}：regard learn check {exercise}，或者 regard learn hint {exercise}",
    ),
    "learn-all-passed": Words(
        en="All exercises are passed. Questions stay with you: regard learn ask",
        zh="练习全部通过了。问题还可以接着练：regard learn ask",
    ),
    # --- start ---
    "help-learn-start": Words(
        en="Show the task, and write a file to begin from: ID.py, or ID.toml for an answer sheet.",
        zh="显示题目，并写出一个起始文件：练习名.py；答题纸是 练习名.toml。",
    ),
    "help-learn-dir": Words(
        en="the folder for the file; otherwise this one", zh="文件放在哪个文件夹；不写则放在当前文件夹"
    ),
    "learn-written": Words(en="Wrote {file}.", zh="已写好 {file}。"),
    "learn-already-there": Words(
        en="{file} is there already, as it was begun.", zh="{file} 已经在了，还是最初的样子。"
    ),
    "learn-then": Words(
        en="Open it, fill it in, then: regard learn check {exercise} {file}",
        zh="打开它，写好以后运行：regard learn check {exercise} {file}",
    ),
    "learn-changed": Words(
        en="{file} is there already, with your work in it, and was left as it is. To begin anew "
        "(yours is kept under another name): regard learn reset {exercise}, or choose another folder with --dir.",
        zh="{file} 已经在了，里面有你写的内容，没有改动它。想从头再来（旧文件会改名保留）："
        "regard learn reset {exercise}；也可以用 --dir 换一个文件夹。",
    ),
    # --- check ---
    "help-learn-check": Words(
        en="Check an answer: what was expected, what came, and the likely slip. Exit code 0 if it passes, 1 if not.",
        zh="批改答案：应该得到什么，实际得到什么，可能错在哪里。通过时退出码为 0，否则为 1。",
    ),
    "help-learn-check-examples": Words(
        en="Your program runs in a process of its own, with limits of time, memory and\n"
        "output. That is for accidents, and no security sandbox: check only what you\n"
        "would also run yourself.",
        zh="你的程序在单独的进程里运行，时间、内存和输出都有限制。\n"
        "这是为了防意外，不是安全沙箱：只批改你自己也敢直接运行的代码。",
    ),
    "help-check-file": Words(
        en="the file with your answer; otherwise the one that start wrote, in this folder; - reads stdin",
        zh="写有答案的文件；不写则用当前文件夹里 start 写出的文件；- 表示从标准输入读取",
    ),
    "help-on-save": Words(
        en="check again each time the file is saved, until Ctrl-C", zh="每次保存文件都重新批改，按 Ctrl-C 结束"
    ),
    "help-check-seed": Words(
        en="the seed of the test data, to see the same numbers again; otherwise they are new each time",
        zh="测试数据的随机种子，用来重现同样的数字；不写则每次都是新的",
    ),
    "check-no-file": Words(
        en="there is no file {path}; regard learn start {exercise} writes one to begin from",
        zh="文件 {path} 不存在；regard learn start {exercise} 会写出一个起始文件",
    ),
    "check-then": Words(
        en="To compare: regard learn solution {exercise} · What comes next: regard learn",
        zh="对照参考答案：regard learn solution {exercise} · 接下来做什么：regard learn",
    ),
    "check-then-sheet": Words(en="What comes next: regard learn", zh="接下来做什么：regard learn"),
    "on-save-stdin": Words(
        en="--on-save needs a file to look at, not stdin: regard learn check {exercise} FILE --on-save",
        zh="--on-save 需要一个文件，不能是标准输入：regard learn check {exercise} 文件 --on-save",
    ),
    "on-save-waiting": Words(
        en="Waiting for {path} to be saved; Ctrl-C ends.", zh="等待 {path} 保存；按 Ctrl-C 结束。"
    ),
    "on-save-again": Words(en="--- {time}  {path} was saved ---", zh="--- {time}  {path} 已保存 ---"),
    # --- hint ---
    "help-learn-hint": Words(
        en="Give a hint: the idea, then the formula, then nearly the line; each call gives the next.",
        zh="给一个提示：先是思路，再是公式，最后差不多就是那行代码；每次给下一步。",
    ),
    "help-hint-step": Words(en="this step, 1 to 3, instead of the next", zh="直接看第几步（1 到 3），而不是下一步"),
    "hint-step": Words(
        en="{exercise} has hints 1 to {count}; found --step {found}",
        zh="{exercise} 的提示是第 1 到第 {count} 步；现在是 --step {found}",
    ),
    "hint-head": Words(en="Hint {step} of {count}", zh="提示 {step}/{count}"),
    "hint-more": Words(
        en="Still stuck? The next one: regard learn hint {exercise}",
        zh="还是没思路？看下一步：regard learn hint {exercise}",
    ),
    "hint-last": Words(
        en="That was the last hint. To see a right answer: regard learn solution {exercise}",
        zh="提示到此为止。想看参考答案：regard learn solution {exercise}",
    ),
    # --- solution ---
    "help-learn-solution": Words(
        en="Show a right answer, once the exercise is passed or given up.",
        zh="显示参考答案；先通过练习，或者放弃之后才能看。",
    ),
    "help-give-up": Words(
        en="see it without having passed; this is remembered, and you may still pass later",
        zh="没通过也要看；会记下来，之后仍然可以再通过",
    ),
    "help-solution-seed": Words(
        en="the seed that stands in your answer sheet; otherwise that of the sheet in this folder",
        zh="你的答题纸上写着的 seed；不写则用当前文件夹里那张的",
    ),
    "solution-locked": Words(
        en="{exercise} is not passed yet: a hint helps (regard learn hint {exercise}); to see the answer anyway, "
        "regard learn solution {exercise} --give-up",
        zh="{exercise} 还没有通过：可以先看提示（regard learn hint {exercise}）；一定要看答案："
        "regard learn solution {exercise} --give-up",
    ),
    "solution-seed": Words(
        en="These are the answers for seed 0; for your sheet: regard learn solution {exercise} --seed N, "
        "with the seed that stands in it",
        zh="这是 seed 为 0 时的答案；你的答题纸请用：regard learn solution {exercise} --seed N，N 是纸上写着的 seed",
    ),
    # --- reset ---
    "help-learn-reset": Words(
        en="Begin an exercise anew: progress is forgotten, the file is as start wrote it, and yours is kept beside it.",
        zh="从头做一道练习：清除它的进度，文件恢复成 start 写出的样子；你写的会改名保留。",
    ),
    "help-reset-all": Words(
        en="forget all progress; files of answers stay as they are",
        zh="清除全部进度；答案文件不动",
    ),
    "help-reset-dir": Words(en="where the file is; otherwise this folder", zh="文件所在的文件夹；不写则为当前文件夹"),
    "reset-one-or-all": Words(
        en="--all forgets everything, so it goes without an exercise; found {exercise!r} beside it",
        zh="--all 会清除全部进度，不能再写练习名；现在还写了 {exercise!r}",
    ),
    "reset-nothing": Words(en="There was no progress to forget.", zh="本来就没有进度。"),
    "reset-all": Words(
        en="All progress is forgotten: {exercises} exercises, {questions} questions. It is kept in {kept}; rename that "
        "file to {name} to have it back.",
        zh="全部进度已清除：{exercises} 道练习，{questions} 个问题。原来的保存在 {kept}；"
        "把这个文件改名为 {name}，就能恢复。",
    ),
    "reset-done": Words(en="{exercise} begins anew.", zh="{exercise} 可以从头再来了。"),
    "reset-kept": Words(
        en="{path} is as it was begun; yours is kept as {kept}", zh="{path} 已恢复；你写的保存为 {kept}"
    ),
    # --- ask ---
    "help-learn-ask": Words(
        en="Ask an interview question: think, look, rate yourself; it comes again when it is due.",
        zh="来一道面试题：先想，再看答案，给自己打分；到时候会再问你。",
    ),
    "metavar-question": Words(en="QUESTION", zh="问题"),
    "help-question": Words(
        en="the question, as --list names it; otherwise the one whose turn it is",
        zh="问题的名字，见 --list；不写则轮到哪个问哪个",
    ),
    "help-reveal": Words(en="show the answers at once", zh="直接显示答案"),
    "metavar-rating": Words(en="again|unsure|good", zh="again|unsure|good"),
    "help-rate": Words(
        en="how well it went, also 1, 2, 3; it decides when the question comes again",
        zh="答得怎么样：again 忘了、unsure 不确定、good 会了，也可以写 1、2、3；下次什么时候问由它决定",
    ),
    "help-ask-list": Words(en="list all questions with the day they are due", zh="列出所有问题和各自的复习日期"),
    "rate-which": Words(
        en="which question is rated? regard learn ask QUESTION --rate good (their names: regard learn ask --list)",
        zh="给哪个问题打分？regard learn ask 问题 --rate good（问题的名字：regard learn ask --list）",
    ),
    "rate-unknown": Words(
        en="a rating is 1 (again), 2 (unsure) or 3 (good); found {found!r}",
        zh="打分只能是 1（again，忘了）、2（unsure，不确定）或 3（good，会了）；现在是 {found!r}",
    ),
    "ask-think": Words(
        en="Think, best aloud. Enter shows the short answer:", zh="先想一想，最好说出声来。按回车看简短回答："
    ),
    "ask-deeper": Words(en="Enter shows what lies deeper:", zh="按回车看深入的回答："),
    "ask-rate": Words(en="How did it go? 1 again, 2 unsure, 3 good:", zh="答得怎么样？1 忘了，2 不确定，3 会了："),
    "ask-how": Words(
        en="The answers: regard learn ask {question} --reveal\nThen rate yourself: "
        "regard learn ask {question} --rate again|unsure|good",
        zh="看答案：regard learn ask {question} --reveal\n然后给自己打分："
        "regard learn ask {question} --rate again|unsure|good",
    ),
    "ask-experiment": Words(en="See for yourself:", zh="自己试一试："),
    "ask-links": Words(
        en="Go on: {commands}",
        zh="接着学：{commands}",
    ),
    "ask-again-today": Words(en="It comes again today.", zh="今天会再问一次。"),
    "ask-again-on": Words(en="It comes again on {day}.", zh="{day} 再问。"),
    "ask-nothing-due": Words(
        en="Nothing is due; the next question comes on {day}. To practise one anyway: regard learn ask --list",
        zh="现在没有要复习的问题；下一个在 {day}。想现在就练：regard learn ask --list",
    ),
    "question-unknown": Words(
        en="there is no question {asked!r}; `regard learn ask --list` shows all {count}",
        zh="没有问题 {asked!r}；`regard learn ask --list` 列出全部 {count} 个",
    ),
    "question-unknown-near": Words(
        en="there is no question {asked!r}; did you mean {nearest}? (all {count}: regard learn ask --list)",
        zh="没有问题 {asked!r}；是不是想写 {nearest}？（全部 {count} 个：regard learn ask --list）",
    ),
    # --- read ---
    "help-learn-read": Words(
        en="Read a lesson in the terminal; without one, list them. Into a file or pipe it goes as Markdown.",
        zh="在终端里读课文；不写则列出全部。输出到文件或管道时是 Markdown。",
    ),
    "metavar-lesson": Words(en="LESSON", zh="课文"),
    "help-lesson": Words(en="its number or its name", zh="第几课，或者它的名字"),
    "read-more": Words(
        en="To read one: regard learn read 1 (page by page: regard learn read 1 | less)",
        zh="读其中一课：regard learn read 1（分页看：regard learn read 1 | less）",
    ),
    "lesson-coming": Words(
        en="the text of lesson {number} is not written yet; its exercises are there: {exercises}",
        zh="第 {number} 课的课文还没有写；练习已经有了：{exercises}",
    ),
    "lesson-unknown": Words(
        en="there is no lesson {asked!r}; there are: {listed}", zh="没有课文 {asked!r}；现有：{listed}"
    ),
    "lesson-unknown-near": Words(
        en="there is no lesson {asked!r}; did you mean {nearest}? There are: {listed}",
        zh="没有课文 {asked!r}；是不是想写 {nearest}？现有：{listed}",
    ),
    # --- progress ---
    "progress-not-kept": Words(
        en="progress is not kept: {reason}; another folder is chosen with the variable REGARD_HOME",
        zh="进度没有保存：{reason}；可以用环境变量 REGARD_HOME 换一个文件夹",
    ),
    "progress-busy": Words(
        en="another regard has held {path} for {seconds:.0f} seconds",
        zh="另一个 regard 占用 {path} 已超过 {seconds:.0f} 秒",
    ),
    "progress-broken": Words(
        en="{path} is damaged and is kept as {aside}; {then}", zh="{path} 已损坏，改名为 {aside} 保留；{then}"
    ),
    "progress-newer": Words(
        en="{path} was written by a newer regard and is kept as {aside}; {then}",
        zh="{path} 由更新版本的 regard 写成，改名为 {aside} 保留；{then}",
    ),
    "progress-then-backup": Words(en="going on from the backup", zh="从备份继续"),
    "progress-then-anew": Words(en="there is no backup, so progress begins anew", zh="没有备份，进度从头开始"),
}
