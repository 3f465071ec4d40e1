"""Messages for teachers: exercises of one's own, their verification, and the answers of a class."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
    # --- a folder ---
    "own-by-path": Message(
        en="{name} is not an exercise of the course; for the folder of that name, write {path}",
        zh="课程里没有练习 {name}；要使用同名的文件夹，请写 {path}",
    ),
    "own-no-folder": Message(en="there is no folder {path}", zh="没有文件夹 {path}"),
    "own-name": Message(
        en="the folder's name is the exercise's: up to 60 letters a-z, digits and hyphens; found {name!r}",
        zh="文件夹的名字就是练习的名字：最多 60 个小写字母 a-z、数字和连字符；实际为 {name!r}",
    ),
    "own-name-taken": Message(
        en="the course has an exercise {name} already; rename the folder",
        zh="课程里已有练习 {name}；请给文件夹换个名字",
    ),
    "own-toml": Message(en="{path} is not valid TOML: {reason}", zh="{path} 不是有效的 TOML：{reason}"),
    "own-not-utf8": Message(
        en="{path} is not UTF-8 text (byte {position}); save it as UTF-8",
        zh="{path} 不是 UTF-8 文本（第 {position} 字节）；请存为 UTF-8",
    ),
    "own-lacks": Message(
        en="{path} lacks {what}; compare with a folder of regard learn new",
        zh="{path} 缺少 {what}；可以与 regard learn new 创建的文件夹对照",
    ),
    "own-choice": Message(
        en="{path}: {name} must be one of {known}; found {found!r}",
        zh="{path}：{name} 只能是 {known}；实际为 {found!r}",
    ),
    "own-grader": Message(en="{path}, line {line}: {kind}: {message}", zh="{path} 第 {line} 行：{kind}：{message}"),
    # --- new ---
    "help-learn-new": Message(
        en="For teachers: write the folder of an exercise of your own, a worked example to change.",
        zh="教师：创建自编练习的文件夹，其中是一个可以直接运行的例子，供修改。",
    ),
    "help-learn-new-examples": Message(
        en="Examples:\n"
        "  regard learn new mean-pooling              write the folder mean-pooling\n"
        "  regard learn verify ./mean-pooling         does it work, and each diagnosis?\n"
        "  regard learn start ./mean-pooling          as a learner sees it\n"
        "  regard learn check ./mean-pooling mean-pooling.py",
        zh="示例：\n"
        "  regard learn new mean-pooling              创建文件夹 mean-pooling\n"
        "  regard learn verify ./mean-pooling         练习是否有效，诊断是否正确\n"
        "  regard learn start ./mean-pooling          学生看到的题目\n"
        "  regard learn check ./mean-pooling mean-pooling.py",
    ),
    "metavar-new-id": Message(en="ID", zh="名字"),
    "help-new-id": Message(
        en="the name of the exercise and of its folder: letters a-z, digits, hyphens",
        zh="练习的名字，也是文件夹的名字：小写字母、数字、连字符",
    ),
    "help-new-dir": Message(
        en="where to write the folder; default: the current folder", zh="在哪里创建文件夹；默认为当前文件夹"
    ),
    "new-which": Message(
        en="which name? For example: regard learn new mean-pooling",
        zh="叫什么名字？例如：regard learn new mean-pooling",
    ),
    "new-id": Message(
        en="a name has no separators; found {found!r}. Choose the place with --dir",
        zh="名字里不能有路径分隔符；实际为 {found!r}。位置请用 --dir 指定",
    ),
    "new-not-empty": Message(
        en="{path} is not empty; choose another name, or another place with --dir",
        zh="{path} 不是空文件夹；请换一个名字，或用 --dir 换一个位置",
    ),
    "new-written": Message(
        en="Wrote {path}, a worked example (mean pooling). Change these files:",
        zh="已创建 {path}，内容是一个完整的例子（平均池化）。请修改这些文件：",
    ),
    "new-then": Message(
        en="After every change: regard learn verify {folder}", zh="每次修改之后运行：regard learn verify {folder}"
    ),
    # --- verify ---
    "help-learn-verify": Message(
        en="For teachers: verify an exercise of your own: solution, initial file, each known mistake, texts.",
        zh="教师：验证自编的练习：参考答案、初始文件、每种已知错误和文字。",
    ),
    "help-learn-verify-examples": Message(
        en="The programs of the folder run: grader.py in this process, answers in the\n"
        "process of the check. Verify only folders that you trust.",
        zh="会运行文件夹里的程序：grader.py 在本进程里，答案在批改用的进程里。\n请只验证你信任的文件夹。",
    ),
    "help-verify-folder": Message(en="the folder of the exercise", zh="练习的文件夹"),
    "verify-which": Message(
        en="which folder? For example: regard learn verify ./mean-pooling",
        zh="哪个文件夹？例如：regard learn verify ./mean-pooling",
    ),
    "verify-texts": Message(en="every text is there, and none is unused", zh="文字齐全，没有多余的"),
    "verify-lacking": Message(en="task.toml lacks: {names}.", zh="task.toml 缺少：{names}。"),
    "verify-unused": Message(
        en="task.toml has texts that grader.py does not use: {names}.",
        zh="task.toml 里有 grader.py 没有用到的文字：{names}。",
    ),
    "verify-hints": Message(en="a hint is empty, or there is none.", zh="有空的提示，或者没有提示。"),
    "verify-mistakes": Message(en="there are known mistakes", zh="有已知的错误"),
    "verify-no-mistakes": Message(
        en="MISTAKES in grader.py is empty: learners would get general diagnoses only",
        zh="grader.py 里的 MISTAKES 是空的：学生只能得到一般的诊断",
    ),
    "verify-data": Message(en="the data are new for each seed", zh="每个种子的数据都不同"),
    "verify-data-fixed": Message(
        en="cases(rng) must give the same calls for one seed and other numbers for another; use rng for all of them",
        zh="cases(rng) 对同一个种子应给出相同的调用，对不同的种子应给出不同的数；数据都要由 rng 生成",
    ),
    "verify-solution": Message(en="solution.py passes", zh="solution.py 通过"),
    "verify-example": Message(
        en="the examples of the task are right ({language})", zh="题目里的例子正确（{language}）"
    ),
    "verify-stub": Message(en="stub.py fails, as a file without an answer", zh="stub.py 不通过，并识别为尚未作答"),
    "verify-mistake": Message(
        en="mistake {place}, {id}: fails with its own diagnosis", zh="错误 {place}，{id}：不通过，诊断正确"
    ),
    "verify-right": Message(en="right/{name} passes", zh="right/{name} 通过"),
    "verify-sheet-empty": Message(en="the empty sheet fails", zh="空白的答题纸不通过"),
    "verify-sheet-right": Message(en="a sheet with the right answers passes", zh="全部填对的答题纸通过"),
    "verify-passes": Message(
        en="it passes with seed {seed}; add a call to grader.py that shows the difference",
        zh="种子为 {seed} 时它通过了；请在 grader.py 里加一次能看出差别的调用",
    ),
    "verify-other-mistake": Message(
        en="with seed {seed} the diagnosis is {mistake}, not {wanted}; add a call that tells them apart",
        zh="种子为 {seed} 时诊断为 {mistake}，而不是 {wanted}；请加一次能区分两者的调用",
    ),
    "verify-ended": Message(
        en="the program of this mistake ends with {ended} and cannot be compared; a mistake must give an answer",
        zh="这种错误的程序以 {ended} 结束，无法比较；一种错误必须能给出结果",
    ),
    "verify-fails": Message(
        en="with seed {seed} it fails: {diagnosis}; tests: {tests}",
        zh="种子为 {seed} 时没有通过：{diagnosis}；测试：{tests}",
    ),
    "verify-stopped": Message(en="the verification can continue", zh="验证可以继续"),
    "verify-raised": Message(en="grader.py raised {kind}: {message}", zh="grader.py 抛出了 {kind}：{message}"),
    "verify-done": Message(
        en="The exercise works. For learners: regard learn start {folder}, then regard learn check {folder}; for a "
        "class: "
        "regard learn grade {folder} ANSWERS",
        zh="练习有效。学生使用：regard learn start {folder}，然后 regard learn check {folder}；批改全班："
        "regard learn grade {folder} 答案文件夹",
    ),
    "verify-undone": Message(en="Still to fix: {count}", zh="还要改正：{count} 处"),
    # --- grade ---
    "help-learn-grade": Message(
        en="For teachers: grade every answer of a folder to one exercise; a table of verdicts and diagnoses.",
        zh="教师：批改一个文件夹里对同一道练习的所有答案，列出结果和诊断。",
    ),
    "help-learn-grade-examples": Message(
        en="Examples:\n"
        "  regard learn grade softmax answers         anna.py …, or anna/softmax.py …\n"
        "  regard learn grade ./mean-pooling answers --csv table.csv\n"
        "\n"
        "Each answer runs in a process of its own with limits; they are not a security\n"
        "sandbox. Grade programs of strangers in a container.",
        zh="示例：\n"
        "  regard learn grade softmax answers         anna.py……或 anna/softmax.py……\n"
        "  regard learn grade ./mean-pooling answers --csv table.csv\n"
        "\n"
        "每份答案都在单独的进程里运行，有各种限制，但这不是安全沙箱：\n"
        "陌生人的程序请在容器里批改。",
    ),
    "help-grade-id": Message(
        en="the name of the exercise, or the folder of your own one (./mean-pooling)",
        zh="练习的名字，或自编练习的文件夹（./mean-pooling）",
    ),
    "help-grade-folder": Message(
        en="the folder of the answers: its files, and files named like the exercise in folders below",
        zh="答案的文件夹：其中的文件，以及下级文件夹里与练习同名的文件",
    ),
    "help-grade-csv": Message(en="also write the table to this file", zh="同时把表格写入这个文件"),
    "help-grade-seed": Message(
        en="the seed of the test data; default: new data, the same for all answers",
        zh="测试数据的随机种子；默认生成新的数据，所有答案用同一份",
    ),
    "grade-which": Message(
        en="which folder has the answers? For example: regard learn grade {exercise} answers",
        zh="答案在哪个文件夹？例如：regard learn grade {exercise} answers",
    ),
    "grade-no-folder": Message(en="there is no folder {path}", zh="没有文件夹 {path}"),
    "grade-too-many": Message(
        en="{path} has more than {most} answers; grade them in several folders",
        zh="{path} 里的答案超过 {most} 份；请分成几个文件夹批改",
    ),
    "grade-nothing": Message(
        en="{path} has no answers: no {ending} files, and no {name} in the folders below",
        zh="{path} 里没有答案：没有 {ending} 文件，下级文件夹里也没有 {name}",
    ),
    "grade-column-file": Message(en="file", zh="文件"),
    "grade-column-verdict": Message(en="verdict", zh="结果"),
    "grade-column-passed": Message(en="tests passed", zh="通过的测试"),
    "grade-column-tests": Message(en="tests", zh="测试总数"),
    "grade-column-mistake": Message(en="mistake", zh="错误"),
    "grade-column-diagnosis": Message(en="diagnosis", zh="诊断"),
    "grade-passed": Message(en="passed", zh="通过"),
    "grade-failed": Message(en="failed", zh="未通过"),
    "grade-unreadable": Message(en="unreadable", zh="无法读取"),
    "grade-result": Message(en="Passed: {passed} of {count}", zh="通过：{passed}/{count}"),
    "grade-mistakes": Message(en="Most frequent mistakes: {mistakes}", zh="最常见的错误：{mistakes}"),
    "grade-written": Message(en="Wrote {path}.", zh="已写入 {path}。"),
}
