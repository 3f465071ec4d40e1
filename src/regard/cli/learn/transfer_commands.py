"""`regard learn export` and `regard learn import`: progress and passed answers as one file."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.streams import print_message, write_json
from regard.errors import ArgumentError
from regard.messages import Listed, say


def export_progress(
    file: Annotated[Path | None, typer.Argument(metavar="metavar-file", help="help-export-file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress_transfer import about, collect
    from regard.files.output import check_target, write_output

    if file is None:
        raise ArgumentError("transfer-which", command="export")
    check_target(file)
    found = collect(report=print_message)
    write_output(file, found.content())
    if as_json:
        write_json({"file": str(file), **about(found)})
    else:
        print_message(say("export-done", file=str(file), quoted=shlex.quote(str(file)), **about(found)))


def import_progress(
    file: Annotated[Path | None, typer.Argument(metavar="metavar-file", help="help-import-file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress_transfer import about, import_file

    if file is None:
        raise ArgumentError("transfer-which", command="import")
    done = import_file(file)
    unknown = done.unknown.progress
    names = sorted({*unknown.exercises, *unknown.questions, *unknown.lessons, *done.unknown.answers})
    if as_json:
        kept = {"backup": None if done.backup is None else str(done.backup), "unknown": names}
        aside = None if done.aside is None else str(done.aside)
        write_json(
            {"file": str(file), **about(done.known), "answers_written": done.answers_written} | kept | {"aside": aside}
        )
        return
    print_message(say("import-done", file=str(file), **about(done.known)))
    if done.backup is None:
        print_message(say("import-nothing-new"))
    else:
        print_message(say("import-backup", backup=str(done.backup)))
    if done.aside is not None:
        print_message(say("import-unknown", names=Listed.few(names), count=len(names), aside=str(done.aside)))
