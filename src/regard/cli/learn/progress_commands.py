"""`regard learn export`, `import` and `certificate`: progress as files for another computer or another reader."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_commands import exit_on_signals
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import Listed, one_line, say

if TYPE_CHECKING:
    from regard.course.certificate import Checked


# --- export and import -------------------------------------------------------------------------------------


def export_progress(
    file: Annotated[Path | None, typer.Argument(metavar="metavar-file", help="help-export-file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.passed_answers import about, collect
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
    from regard.course.passed_answers import about, import_file

    if file is None:
        raise ArgumentError("transfer-which", command="import")
    done = import_file(file)
    unknown = done.unknown.progress
    names = sorted({*unknown.exercises, *unknown.questions, *unknown.lessons, *done.unknown.answers})
    if as_json:
        kept = {"backup": None if done.backup is None else str(done.backup), "unknown": names}
        unknown_file = None if done.unknown_file is None else str(done.unknown_file)
        counts = {**about(done.known), "answers_written": done.answers_written}
        write_json({"file": str(file), **counts, **kept, "unknown_file": unknown_file})
        return
    print_message(say("import-done", file=str(file), **about(done.known)))
    if done.backup is None:
        print_message(say("import-nothing-new"))
    else:
        print_message(say("import-backup", backup=str(done.backup)))
    if done.unknown_file is not None:
        print_message(say("import-unknown", names=Listed.few(names), count=len(names), file=str(done.unknown_file)))


# --- certificate -------------------------------------------------------------------------------------------


def certificate(
    file: Annotated[Path | None, typer.Argument(metavar="metavar-file", help="help-certificate-file")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="metavar-person", help="help-certificate-name")] = None,
    again: Annotated[bool, typer.Option("--verify", help="help-certificate-verify")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if file is None:
        raise ArgumentError("certificate-which")
    if again and name is not None:
        raise ArgumentError("certificate-name-verify", path=str(file))
    if again:
        _verify(file, as_json)
    else:
        _write(file, name or "", as_json)


def _write(file: Path, name: str, as_json: bool) -> None:
    from regard.course.certificate import collect, page
    from regard.course.passed_answers import PassedAnswers
    from regard.course.progress import ProgressFile
    from regard.files.output import PAGES, check_target, extension_of, write_output

    extension_of(file, *PAGES)
    check_target(file)
    found = collect(ProgressFile(report=print_message).read(), PassedAnswers(report=print_message), name)
    write_output(file, page(found).encode())
    missing = [item.id for item in found.items if item.answer is None]
    if as_json:
        write_json({"file": str(file), "passed": len(found.items), "without_answers": missing})
        return
    print_message(say("certificate-written", path=str(file), quoted=shlex.quote(str(file)), passed=len(found.items)))
    if missing:
        print_message(say("certificate-without-answers", names=Listed.few(missing)))


def _verify(file: Path, as_json: bool) -> None:
    """Run the answers again and report each at once: PyTorch needs seconds for every one."""
    from regard import __version__
    from regard.course.certificate import page, read_certificate, verify

    found, text = read_certificate(file)
    is_comparable = found.regard == __version__
    is_edited = is_comparable and page(found) != text.replace("\r\n", "\n")
    results = []
    with exit_on_signals():
        for checked in verify(found):
            results.append(checked)
            if not as_json:
                put(_line(checked), flush=True)
    passes = sum(checked.outcome == "passes" for checked in results)
    if as_json:
        items = [{"id": one.item.id, "outcome": one.outcome, "reason": one.reason or None} for one in results]
        about = {"file": str(file), "name": found.name, "passes": passes, "count": len(results)}
        write_json(about | {"edited": is_edited if is_comparable else None, "items": items})
    else:
        print_message("\n" + say("certificate-result", passes=passes, count=len(results)))
        if is_edited:
            print_message(say("certificate-edited"))
        elif not is_comparable:
            print_message(say("certificate-not-compared", theirs=one_line(found.regard), ours=__version__))
    raise typer.Exit(0 if passes == len(results) and not is_edited else 1)


def _line(checked: "Checked") -> str:
    keys = {"no-answer": "unkept"}
    text = say(f"certificate-{keys.get(checked.outcome, checked.outcome)}", reason=one_line(checked.reason))
    sign = "✓" if checked.outcome == "passes" else "✗" if checked.outcome in ("fails", "changed") else "–"
    return f"{sign} {one_line(checked.item.id):32}  {text}"
