"""Messages of `regard learn`: help pages, lists, and progress."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- regard learn ---
    "help-learn": Message(
        en="Practise: exercises that check what you write, interview questions, lessons.",
        zh="动手练习：自动批改的练习、面试题和课程。",
    ),
    "help-learn-examples": Message(
        en="Examples:\n"
        "  regard learn                               where you were, and what to do next\n"
        "  regard learn path                          the whole course, with times\n"
        "  regard learn start softmax                 show the task and write softmax.py\n"
        "  regard learn check softmax softmax.py --on-save\n"
        "  regard learn build                         run the real translator with what you wrote\n"
        "  regard learn ask                           an interview question\n"
        "  regard learn interview                     ten of them, timed, with a summary\n"
        "\n"
        "Progress is saved in the folder REGARD_HOME, otherwise in ~/.regard",
        zh="示例：\n"
        "  regard learn                               上次学到哪里，下一步做什么\n"
        "  regard learn path                          整个课程的路线和时间\n"
        "  regard learn start softmax                 显示题目，并生成 softmax.py\n"
        "  regard learn check softmax softmax.py --on-save\n"
        "  regard learn build                         用你写的代码运行真正的翻译模型\n"
        "  regard learn ask                           回答一道面试题\n"
        "  regard learn interview                     模拟面试：十道题，计时，最后有小结\n"
        "\n"
        "进度保存在环境变量 REGARD_HOME 指定的文件夹中；未设置时保存在 ~/.regard",
    ),
    "metavar-id": Message(en="ID", zh="练习"),
    "help-id": Message(
        en="the name of the exercise, see regard learn list, or the folder of one's own (./mean-pooling)",
        zh="练习的名字，见 regard learn list；或自己的练习的文件夹（./mean-pooling）",
    ),
    "learn-which": Message(
        en="which exercise? For example: regard learn {command} softmax (all of them: regard learn list)",
        zh="哪道练习？例如：regard learn {command} softmax（全部练习：regard learn list）",
    ),
    "learn-json-place": Message(
        en="--json goes after the command: regard learn {command} --json",
        zh="--json 要写在命令后面：regard learn {command} --json",
    ),
    # --- list ---
    "help-learn-list": Message(
        en="List the exercises with your progress, and the check-list of four.",
        zh="列出练习、学习进度和四项自查清单。",
    ),
    "learn-lesson": Message(en="Lesson {number}  {title}", zh="第 {number} 课  {title}"),
    "learn-lesson-short": Message(en="lesson {number}", zh="第 {number} 课"),
    "learn-kind-code": Message(en="write · {track}", zh="写代码 · {track}"),
    "learn-kind-bug": Message(en="find the bug · {track}", zh="找错 · {track}"),
    "learn-kind-sheet": Message(en="answer sheet", zh="填答案"),
    "learn-torch-exercises": Message(en="Checking an exercise marked ×", zh="检查标有 × 的练习"),
    "learn-passed": Message(en="Passed: {passed} of {count}", zh="已通过：{passed}/{count}"),
    "learn-marks": Message(en="(✓ passed, … started, · not started)", zh="（✓ 已通过，… 已开始，· 未开始）"),
    "learn-marks-torch": Message(
        en="(✓ passed, … started, · not started, × needs PyTorch)",
        zh="（✓ 已通过，… 已开始，· 未开始，× 需要 PyTorch）",
    ),
    "learn-checklist": Message(
        en="Ready for the interview? {done} of {count}",
        zh="面试准备好了吗？{done}/{count}",
    ),
    "learn-item-flow": Message(en="order the flow chart", zh="画出流程图"),
    "learn-item-hand": Message(en="calculate the weights by hand", zh="手算注意力权重"),
    "learn-item-code": Message(en="write both exercises", zh="完成两道编程题"),
    "learn-item-words": Message(en="answer in your own words", zh="用自己的话回答"),
    "learn-due": Message(
        en="Questions due today: {count}. regard learn ask",
        zh="今天该复习的问题：{count} 个。regard learn ask",
    ),
    "learn-next": Message(en="Next: {step}", zh="下一步：{step}"),
    "learn-next-begin": Message(
        en="regard learn read 1, then lesson {lesson} with its first exercise: regard learn start {exercise}",
        zh="regard learn read 1，然后是第 {lesson} 课和它的第一道练习：regard learn start {exercise}",
    ),
    "learn-next-start": Message(
        en="regard learn start {exercise}",
        zh="做练习：regard learn start {exercise}",
    ),
    "learn-next-read": Message(
        en=" (before it, if you like: regard learn read {lesson})",
        zh="（想先看课文：regard learn read {lesson}）",
    ),
    "learn-next-go-on": Message(
        en="continue with {exercise}: regard learn check {exercise}, or regard learn hint {exercise}",
        zh="继续做 {exercise}：regard learn check {exercise}，或者 regard learn hint {exercise}",
    ),
    "learn-all-passed": Message(
        en="All exercises are passed. Keep practising questions: regard learn ask",
        zh="练习已全部通过。可以继续练习问答：regard learn ask",
    ),
    # --- start ---
    "help-learn-start": Message(
        en="Show the task and write the initial file: ID.py, or ID.toml for an answer sheet.",
        zh="显示题目，并生成初始文件：练习名.py；答题纸为 练习名.toml。",
    ),
    "help-learn-dir": Message(
        en="the folder for the file; default: the current folder", zh="存放文件的文件夹；默认为当前文件夹"
    ),
    "learn-written": Message(en="Wrote {file}.", zh="已生成 {file}。"),
    "learn-already-there": Message(en="{file} already exists and is unchanged.", zh="{file} 已存在，内容未改动。"),
    "learn-then": Message(
        en="Edit it, then run: regard learn check {exercise} {file}",
        zh="打开并完成后运行：regard learn check {exercise} {file}",
    ),
    "learn-changed": Message(
        en="{file} already exists with your changes and was not overwritten. To start again "
        "(your file is kept under another name): regard learn reset {exercise}, or choose another folder with --dir.",
        zh="{file} 已存在，其中有你写的内容，因此没有覆盖。要重新开始（旧文件会改名保留）："
        "regard learn reset {exercise}；也可以用 --dir 换一个文件夹。",
    ),
    # --- check ---
    "help-learn-check": Message(
        en="Check an answer: show expected and actual results and the likely mistake. Exit code: 0 if passed, else 1.",
        zh="批改答案：显示预期结果、实际结果和可能的错误。通过时退出码为 0，否则为 1。",
    ),
    "help-learn-check-examples": Message(
        en="Your program runs in a separate process with limits on time, memory and\n"
        "output. This protects against accidents; it is not a security sandbox.\n"
        "Check only code that you would also run yourself.",
        zh="你的程序在单独的进程里运行，时间、内存和输出都有限制。\n"
        "这只能防止意外，不是安全沙箱：只批改你愿意直接运行的代码。",
    ),
    "help-check-file": Message(
        en="the file with your answer; default: the file that start wrote in this folder; - reads stdin",
        zh="答案文件；默认为当前文件夹中 start 生成的文件；- 表示从标准输入读取",
    ),
    "help-on-save": Message(
        en="check again each time the file is saved, until Ctrl-C", zh="每次保存文件时重新批改，按 Ctrl-C 结束"
    ),
    "help-check-seed": Message(
        en="the seed of the test data, to repeat the same numbers; default: new numbers each time",
        zh="测试数据的随机种子，用于重现同样的数据；默认每次重新生成",
    ),
    "check-no-file": Message(
        en="there is no file {path}; regard learn start {exercise} writes the initial file",
        zh="文件 {path} 不存在；可用 regard learn start {exercise} 生成初始文件",
    ),
    "check-then": Message(
        en="Compare with the solution: regard learn solution {exercise} · Next step: regard learn",
        zh="对照参考答案：regard learn solution {exercise} · 下一步：regard learn",
    ),
    "check-then-sheet": Message(en="Next step: regard learn", zh="下一步：regard learn"),
    "on-save-stdin": Message(
        en="--on-save needs a file, not stdin: regard learn check {exercise} FILE --on-save",
        zh="--on-save 需要一个文件，不能是标准输入：regard learn check {exercise} 文件 --on-save",
    ),
    "on-save-waiting": Message(
        en="Waiting for {path} to be saved; press Ctrl-C to stop.", zh="等待 {path} 保存；按 Ctrl-C 结束。"
    ),
    "on-save-again": Message(en="--- {time}  {path} was saved ---", zh="--- {time}  {path} 已保存 ---"),
    # --- hint ---
    "help-learn-hint": Message(
        en="Show a hint: first the idea, then the formula, then almost the code; each call shows the next one.",
        zh="显示提示：先是思路，然后是公式，最后接近完整的代码；每次调用显示下一条。",
    ),
    "help-hint-step": Message(
        en="show this hint, 1 to 3, instead of the next one", zh="显示第几条提示（1 到 3）；默认显示下一条"
    ),
    "hint-step": Message(
        en="{exercise} has hints 1 to {count}; found --step {found}",
        zh="{exercise} 共有第 1 到第 {count} 条提示；实际为 --step {found}",
    ),
    "hint-head": Message(en="Hint {step} of {count}", zh="提示 {step}/{count}"),
    "hint-more": Message(
        en="Still stuck? The next one: regard learn hint {exercise}",
        zh="还是没有思路？看下一条：regard learn hint {exercise}",
    ),
    "hint-last": Message(
        en="That was the last hint. To see a solution: regard learn solution {exercise}",
        zh="这是最后一条提示。查看参考答案：regard learn solution {exercise}",
    ),
    # --- solution ---
    "help-learn-solution": Message(
        en="Show the solution once the exercise is passed or given up.",
        zh="显示参考答案；通过练习或选择放弃之后才能查看。",
    ),
    "help-give-up": Message(
        en="show it without having passed; this is recorded, and you can still pass later",
        zh="未通过也查看；会记录下来，之后仍可继续完成练习",
    ),
    "help-solution-seed": Message(
        en="the seed of your answer sheet; default: that of the sheet in this folder",
        zh="答题纸上的 seed；默认取当前文件夹中那张答题纸的 seed",
    ),
    "solution-locked": Message(
        en="{exercise} is not passed yet: try a hint (regard learn hint {exercise}); to see the solution anyway, "
        "regard learn solution {exercise} --give-up",
        zh="{exercise} 尚未通过：可以先看提示（regard learn hint {exercise}）；仍要查看答案："
        "regard learn solution {exercise} --give-up",
    ),
    "solution-seed": Message(
        en="These are the answers for seed 0; for your sheet: regard learn solution {exercise} --seed N, "
        "with the seed of the sheet",
        zh="这是 seed 为 0 时的答案；你的答题纸请用：regard learn solution {exercise} --seed N，N 为答题纸上的 seed",
    ),
    # --- reset ---
    "help-learn-reset": Message(
        en="Restart an exercise: clear its progress, restore the initial file, keep your file under another name.",
        zh="重新开始一道练习：清除进度，恢复 start 生成的初始文件；你的文件会改名保留。",
    ),
    "help-reset-all": Message(
        en="clear all progress; answer files are not changed",
        zh="清除全部进度；不改动答案文件",
    ),
    "help-reset-dir": Message(
        en="the folder of the file; default: the current folder", zh="文件所在的文件夹；默认为当前文件夹"
    ),
    "reset-one-or-all": Message(
        en="--all clears all progress and takes no exercise; found {exercise!r}",
        zh="--all 会清除全部进度，不能同时指定练习；实际指定了 {exercise!r}",
    ),
    "reset-nothing": Message(en="There was no progress to clear.", zh="没有可清除的进度。"),
    "reset-all": Message(
        en="All progress is cleared: {exercises} exercises, {questions} questions. The old progress is kept in {kept}; "
        "rename that file to {name} to restore it.",
        zh="全部进度已清除：{exercises} 道练习，{questions} 个问题。原来的进度保存在 {kept}；"
        "把该文件改名为 {name} 即可恢复。",
    ),
    "reset-done": Message(en="{exercise} is reset.", zh="{exercise} 已重置。"),
    "reset-kept": Message(
        en="{path} is restored; your file is kept as {kept}", zh="{path} 已恢复；你的文件保存为 {kept}"
    ),
    # --- ask ---
    "help-learn-ask": Message(
        en="Ask an interview question: think, compare with the answer, rate yourself; it is repeated when due.",
        zh="回答一道面试题：先思考，再看答案，然后给自己打分；到期后会再次提问。",
    ),
    "metavar-question": Message(en="QUESTION", zh="问题"),
    "help-question": Message(
        en="the name of the question, see --list; default: the next one due",
        zh="问题的名字，见 --list；默认为下一个到期的问题",
    ),
    "help-reveal": Message(en="show the answers directly", zh="直接显示答案"),
    "metavar-rating": Message(en="again|unsure|good", zh="again|unsure|good"),
    "help-rate": Message(
        en="how well you answered, also 1, 2, 3; it determines when the question is repeated",
        zh="答得怎么样：again 忘了、unsure 不确定、good 会了，也可以写 1、2、3；它决定下次提问的时间",
    ),
    "help-ask-list": Message(en="list all questions with the day they are due", zh="列出所有问题和各自的复习日期"),
    "rate-which": Message(
        en="which question do you rate? regard learn ask QUESTION --rate good (their names: regard learn ask --list)",
        zh="给哪个问题打分？regard learn ask 问题 --rate good（问题的名字：regard learn ask --list）",
    ),
    "rate-unknown": Message(
        en="a rating is 1 (again), 2 (unsure) or 3 (good); found {found!r}",
        zh="打分只能是 1（again，忘了）、2（unsure，不确定）或 3（good，会了）；实际为 {found!r}",
    ),
    "ask-think": Message(
        en="Think, preferably aloud. Press Enter for the short answer:",
        zh="先想一想，最好说出来。按回车键查看简短回答：",
    ),
    "ask-deeper": Message(en="Press Enter for the detailed answer:", zh="按回车键查看详细回答："),
    "ask-rate": Message(
        en="How well did you answer? 1 again, 2 unsure, 3 good:", zh="回答得怎么样？1 忘了，2 不确定，3 会了："
    ),
    "ask-how": Message(
        en="The answers: regard learn ask {question} --reveal\nThen rate yourself: "
        "regard learn ask {question} --rate again|unsure|good",
        zh="看答案：regard learn ask {question} --reveal\n然后给自己打分："
        "regard learn ask {question} --rate again|unsure|good",
    ),
    "ask-experiment": Message(en="Try it yourself:", zh="自己试一试："),
    "ask-links": Message(
        en="Continue with: {commands}",
        zh="继续学习：{commands}",
    ),
    "ask-again-today": Message(en="It will be repeated today.", zh="今天会再次提问。"),
    "ask-again-on": Message(en="It will be repeated on {day}.", zh="{day} 再次提问。"),
    "ask-nothing-due": Message(
        en="No question is due; the next one is due on {day}. To practise anyway: regard learn ask --list",
        zh="目前没有到期的问题；下一个在 {day} 到期。要现在练习：regard learn ask --list",
    ),
    "question-unknown": Message(
        en="there is no question {asked!r}; `regard learn ask --list` shows all {count}",
        zh="没有问题 {asked!r}；`regard learn ask --list` 列出全部 {count} 个",
    ),
    "question-unknown-near": Message(
        en="there is no question {asked!r}; did you mean {nearest}? (all {count}: regard learn ask --list)",
        zh="没有问题 {asked!r}；是不是想写 {nearest}？（全部 {count} 个：regard learn ask --list）",
    ),
    # --- interview ---
    "help-learn-interview": Message(
        en="A mock interview: questions by topic and level, timed and rated by yourself, with a summary at the end.",
        zh="模拟面试：按主题和难度出题，计时，自己打分，最后给出小结。",
    ),
    "metavar-topic": Message(en="TOPIC", zh="主题"),
    "help-topic": Message(en="only questions of this topic, see --list", zh="只问这个主题，见 --list"),
    "metavar-level": Message(en="1|2|3", zh="1|2|3"),
    "help-level": Message(
        en="only questions of this level: 1 basic, 2 usual, 3 specialist", zh="只问这个难度：1 基础，2 常见，3 深入"
    ),
    "help-questions": Message(en="the number of questions; default: 10", zh="题数；默认 10"),
    "help-interview-seed": Message(
        en="choose the same questions again; default: new ones each time", zh="重复同一组题；默认每次重新抽题"
    ),
    "help-interview-reveal": Message(
        en="print the questions with their answers, without asking", zh="直接打印题目和答案，不提问"
    ),
    "metavar-ratings": Message(en="RATINGS", zh="打分"),
    "help-ratings": Message(
        en="ratings of the questions in their order, such as 3,1,2; with --seed, without a terminal",
        zh="按题目顺序打分，如 3,1,2；与 --seed 一起，用于没有终端时",
    ),
    "help-topic-list": Message(
        en="list the topics with the number of questions of each level", zh="列出主题和各难度的题数"
    ),
    "interview-none": Message(
        en="the topic {topic} has no question of level {level}; its levels: {levels}",
        zh="主题 {topic} 没有难度 {level} 的题；现有难度：{levels}",
    ),
    "topic-unknown": Message(
        en="there is no topic {asked!r}; choose one of: {topics}", zh="没有主题 {asked!r}；可选：{topics}"
    ),
    "topic-unknown-near": Message(
        en="there is no topic {asked!r}; did you mean {nearest}? All topics: {topics}",
        zh="没有主题 {asked!r}；是不是想写 {nearest}？全部主题：{topics}",
    ),
    "level-unknown": Message(
        en="a level is 1 (basic), 2 (usual) or 3 (specialist); found {found!r}",
        zh="难度只能是 1（基础）、2（常见）或 3（深入）；实际为 {found!r}",
    ),
    "interview-rate-seed": Message(
        en="--rate needs the --seed with which the questions were chosen", zh="--rate 要和抽题时的 --seed 一起用"
    ),
    "interview-rate-count": Message(
        en="found {found} ratings for {count} questions", zh="打分有 {found} 个，题目只有 {count} 道"
    ),
    "interview-fewer": Message(en="Only {count} questions match.", zh="符合条件的题目只有 {count} 道。"),
    "interview-begin": Message(
        en="{count} questions, time limit {limit}. The time counts until you ask for the answer. Ctrl-D ends early.",
        zh="共 {count} 题，限时 {limit}。计时到查看答案为止。按 Ctrl-D 提前结束。",
    ),
    "interview-question": Message(
        en="Question {number} of {count} · {topic} · level {level} · limit {limit}",
        zh="第 {number}/{count} 题 · {topic} · 难度 {level} · 限时 {limit}",
    ),
    "interview-answer": Message(
        en="Answer aloud, then press Enter for the answer:", zh="说出你的回答，然后按回车键查看答案："
    ),
    "interview-time": Message(en="Time: {time} (limit {limit})", zh="用时 {time}（限时 {limit}）"),
    "interview-how": Message(
        en="The answers: {command} --reveal\nThen rate yourself, one number per question: {command} --rate 3,2,1,…",
        zh="看答案：{command} --reveal\n然后给自己打分，每题一个数：{command} --rate 3,2,1,…",
    ),
    "interview-nothing-rated": Message(en="No question was rated.", zh="没有打分的题目。"),
    "interview-score": Message(
        en="Score: {score} % of {count} questions ({good} good, {unsure} unsure, {again} again)",
        zh="得分：{count} 题，{score}%（会了 {good}，不确定 {unsure}，忘了 {again}）",
    ),
    "interview-total-time": Message(
        en="Time: {time}, limit {limit}; questions over their limit: {over}",
        zh="用时：{time}，限时 {limit}；超时的题目：{over} 道",
    ),
    "interview-weakest": Message(en="Weakest topics: {topics}", zh="最薄弱的主题：{topics}"),
    "interview-study": Message(en="Study again:", zh="建议重新学习："),
    "interview-columns": Message(
        en="The numbers of questions are those of levels 1, 2 and 3.", zh="三列数字是难度 1、2、3 的题数。"
    ),
    # --- read ---
    "help-learn-read": Message(
        en="Read a lesson in the terminal; without an argument, list the lessons. Files and pipes get Markdown.",
        zh="在终端中阅读课文；不带参数则列出全部课文。输出到文件或管道时为 Markdown。",
    ),
    "metavar-lesson": Message(en="LESSON", zh="课文"),
    "help-lesson": Message(en="the number or name of the lesson", zh="课文的编号或名字"),
    "read-more": Message(
        en="To read one: regard learn read 1",
        zh="读其中一课：regard learn read 1",
    ),
    "read-marked": Message(
        en="Lesson {number} now counts as read. Next: {next}", zh="第 {number} 课已记为读过。下一步：{next}"
    ),
    "lesson-unknown": Message(
        en="there is no lesson {asked!r}; available: {listed}", zh="没有课文 {asked!r}；现有：{listed}"
    ),
    "lesson-unknown-near": Message(
        en="there is no lesson {asked!r}; did you mean {nearest}? Available: {listed}",
        zh="没有课文 {asked!r}；是不是想写 {nearest}？现有：{listed}",
    ),
    # --- progress ---
    "progress-not-kept": Message(
        en="progress is not saved: {reason}; set the variable REGARD_HOME to use another folder",
        zh="进度未保存：{reason}；可用环境变量 REGARD_HOME 指定另一个文件夹",
    ),
    "progress-busy": Message(
        en="another regard process has locked {path} for {seconds:.0f} seconds",
        zh="另一个 regard 进程锁定 {path} 已超过 {seconds:.0f} 秒",
    ),
    "progress-broken": Message(
        en="{path} is damaged and is kept as {kept}; {then}", zh="{path} 已损坏，已改名为 {kept} 保留；{then}"
    ),
    "progress-newer": Message(
        en="{path} was written by a newer regard and is kept as {kept}; {then}",
        zh="{path} 由较新版本的 regard 写入，已改名为 {kept} 保留；{then}",
    ),
    "progress-then-backup": Message(en="continuing from the backup", zh="从备份继续"),
    "progress-then-anew": Message(en="there is no backup, so progress starts from zero", zh="没有备份，进度从零开始"),
}
