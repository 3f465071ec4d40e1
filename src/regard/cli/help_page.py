"""The help page of a command, in English or Chinese, fitted to the terminal.

Typer's own page is in English only and counts a Chinese character as one column.
"""

import re
import shutil
from itertools import pairwise
from typing import Any

from rich.cells import cell_len

from regard.messages import catalogue, say

WIDEST = 96
# Options of every command; `entry` removes them before a command is chosen.
GENERAL = (("--lang zh|en", "help-lang"), ("--debug", "help-debug"))

# A space, or one Chinese character or a run of other characters, together with opening punctuation, which must not end
# a line, and closing punctuation, which must not begin one.
CHINESE = r"\u2e80-\u9fff\uff00-\uffef“"
_ATOMS = re.compile(rf" +|[“「（]*(?:[{CHINESE}]|[^ {CHINESE}]+)[，。；：、！？）」”]*")


def help_page(command: Any, context: Any) -> str:
    """The help page: usage, description, commands, arguments, options and examples."""
    arguments, options = [], []
    for param in command.get_params(context):
        if param.param_type_name == "argument":
            arguments.append((_metavar(param), say(param.help)))
        elif "--help" not in param.opts:
            options.append((" ".join([*param.opts, _metavar(param)]).strip(), say(param.help)))
    options += [(name, say(key)) for name, key in (*GENERAL, ("--help, -h", "help-help"))]
    commands = [(name, say(one.help)) for name, one in getattr(command, "commands", {}).items()]

    pieces = [context.command_path, *[f"[{name}]" for name, _ in arguments]]
    pieces.append(say("help-usage-command") if commands else say("help-usage-options"))
    width = min(shutil.get_terminal_size().columns, WIDEST)
    blocks = [f"{say('help-usage')}{' '.join(pieces)}", "\n".join(fold(say(command.help), width))]
    sections = (("help-commands", commands), ("help-arguments", arguments), ("help-options", options))
    blocks += [f"{say(key)}\n{_table(rows, width)}" for key, rows in sections if rows]
    if f"{command.help}-examples" in catalogue():
        blocks.append(say(f"{command.help}-examples"))
    return "\n\n".join(blocks)


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces or between Chinese characters.

    >>> fold("attention 是这样计算的。", 14)
    ['attention 是这', '样计算的。']
    """
    text = text.lstrip(" ")
    return [text[start:end].rstrip() for start, end in pairwise([0, *line_breaks(text, width), len(text)])]


def line_breaks(text: str, width: int) -> list[int]:
    """The positions where a new line begins, for at most `width` columns; no line begins with closing punctuation.

    >>> line_breaks("注意力，和词元。", 8)
    [4]
    """
    places, start = [], 0
    for atom in _ATOMS.finditer(text):
        if atom.start() > start and cell_len(text[start : atom.end()].rstrip()) > width:
            places.append(start := atom.start())
    return places


def _table(rows: list[tuple[str, str]], width: int) -> str:
    first = max(cell_len(name) for name, _ in rows) + 4
    lines = []
    for name, text in rows:
        start = f"  {name}".ljust(first + len(name) - cell_len(name))
        for part in fold(text, max(24, width - first)):
            lines.append(start + part)
            start = " " * first
    return "\n".join(lines)


def _metavar(param: Any) -> str:
    return say(param.metavar) if param.metavar else ""
