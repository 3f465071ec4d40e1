"""The command-line application, and the help page of a command in English or Chinese, fitted to the terminal.

Help texts and placeholders are message keys, which the help page resolves. Typer's own page is in English only and
counts a Chinese character as one column.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from typer.core import TyperCommand, TyperGroup

from regard.cli.doctor_command import doctor
from regard.cli.explain_command import explain
from regard.cli.heads_commands import heads, survey
from regard.cli.language_commands import chat, convert, generate, pull, translate
from regard.cli.learn import COMMANDS, learn
from regard.cli.see_command import see
from regard.cli.streams import WIDEST, put
from regard.cli.training_commands import evaluate, film, plot, train
from regard.errors import ArgumentError, FileError, UnknownNameError
from regard.messages import Listed, catalogue, say
from regard.views.labels import fold


class Command(TyperCommand):
    """A command with our help page and our error message for extra arguments."""

    def get_help(self, ctx: Any) -> str:
        return help_page(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest:
            raise ArgumentError("cli-extra-arguments", found=" ".join(rest), command=ctx.command_path)
        return rest

    def invoke(self, ctx: Any) -> Any:
        # Without a current folder relative paths fail, and importing torch ends the process.
        try:
            os.getcwd()
        except OSError as error:
            raise FileError("folder-removed") from error
        return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """A group of commands with our help page; the error for an unknown name suggests the nearest one."""

    def get_help(self, ctx: Any) -> str:
        return help_page(self, ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, names = args[0], list(self.commands)
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, n=1)
            key = "cli-command-unknown-near" if near else "cli-command-unknown"
            raise UnknownNameError(
                key, asked=name, nearest=near[0] if near else "", names=Listed(names), command=ctx.command_path
            )
        return super().resolve_command(ctx, args)


@cache
def application() -> Any:
    """The root command, built once."""
    language = (see, heads, survey, translate, generate, chat)
    commands = (*language, explain, train, evaluate, plot, film, convert, pull, doctor)
    app = _group("help-regard", _root, {command.__name__: command for command in commands})
    app.add_typer(_group("help-learn", learn, COMMANDS, path="learn-"), name="learn")
    return typer.main.get_command(app)


def _group(
    help: str, alone: Callable[..., Any], commands: Mapping[str, Callable[..., Any]], path: str = ""
) -> typer.Typer:
    """A group of commands; `alone` runs without a command, and `path` is part of the help keys."""
    context = {"help_option_names": ["--help", "-h"]}
    app = typer.Typer(
        cls=CommandGroup,
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=context,
    )
    app.callback(invoke_without_command=True)(alone)
    for name, command in commands.items():
        app.command(name, cls=Command, help=f"help-{path}{name}", context_settings=context)(command)
    return app


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="help-version")] = False,
) -> None:
    if version:
        from regard import __version__

        put(f"regard {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        put(context.get_help())


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
