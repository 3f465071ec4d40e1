"""`regard convert` and `regard pull`: models into Hugging Face's layout, and from its hub."""

from typing import Annotated

import typer

from regard.cli.streams import print_message, put, write_json
from regard.messages import say


def convert(
    source: Annotated[str, typer.Argument(metavar="metavar-convert-source", help="help-convert-source")],
    folder: Annotated[str, typer.Argument(metavar="metavar-convert-folder", help="help-convert-folder")],
    family: Annotated[str | None, typer.Option("--family", metavar="metavar-family", help="help-family")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.language.conversion import convert as run

    done = run(source, folder, family)
    if as_json:
        write_json({"family": done.family, "folder": str(done.folder), "files": list(done.files)})
    else:
        put(say("converted", family=done.family, folder=str(done.folder)))


def pull(
    name: Annotated[str, typer.Argument(metavar="metavar-hub-id", help="help-pull-id")],
    revision: Annotated[str, typer.Option("--revision", metavar="metavar-revision", help="help-revision")] = "main",
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.language.loading import pull as run

    folder = run(name, revision, quiet=as_json)
    if as_json:
        write_json({"name": name, "revision": revision, "folder": str(folder)})
    else:
        put(str(folder))
        print_message(say("pulled", name=name))
