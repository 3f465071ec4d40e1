"""The help page of a command, in English or Chinese, fitted to the terminal.

Typer's own page is in English only and counts a Chinese character as one column.
"""

import shutil
from typing import Any

from rich.cells import cell_len

from regard.messages import catalogue, say
from regard.views.labels import fold

WIDEST = 96
# Options of every command; `entry` removes them before a command is chosen.
GENERAL = (("--lang zh|en", "help-lang"), ("--debug", "help-debug"))


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
