"""Messages of `regard learn notebook`, and the texts that it adds to a lesson."""

from regard.messages import Message

MESSAGES: dict[str, Message] = {
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
        zh="例子：\n"
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
}
