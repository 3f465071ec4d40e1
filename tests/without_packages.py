"""The command line in a child process in which chosen packages are not installed.

Neither `import` nor `importlib.util.find_spec` nor `importlib.metadata` finds them. One child runs many commands,
because importing torch takes seconds.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FINDER = """
import sys
from importlib.machinery import PathFinder

class Without:
    names = {names!r}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.names else PathFinder.find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, context):
        found = PathFinder.find_distributions(context)
        return (one for one in found if one.metadata["Name"].lower() not in map(str.lower, cls.names))

    invalidate_caches = PathFinder.invalidate_caches

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
DRIVER = """
import contextlib, io, json, sys
from regard.cli import main

def run(arguments):
    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"I love you\\n"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}

results = [run(arguments) for arguments in json.loads(sys.argv[1])]
json.dump(results, open(sys.argv[2], "w"))
"""


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


def environment(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Environment variables with which Python finds none of the packages; writes a sitecustomize into `folder`."""
    (folder / "sitecustomize.py").write_text(FINDER.format(names=set(names)), encoding="utf-8")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {"PYTHONPATH": str(folder), "HOME": str(home), "REGARD_LANG": "en", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, "REGARD_HOME": str(home)}


def run_without(
    names: Sequence[str], folder: Path, commands: Sequence[Sequence[str]], cwd: Path
) -> list[tuple[Sequence[str], CommandResult]]:
    """Each command with its result."""
    answers = folder / "answers.json"
    subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps([list(one) for one in commands]), str(answers)],
        env=environment(folder, names),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=True,
    )
    results = json.loads(answers.read_text(encoding="utf-8"))
    return [(command, CommandResult(**one)) for command, one in zip(commands, results, strict=True)]


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of the application, each with its path."""
    yield path, command
    children: Mapping[str, Any] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from commands_of(child, (*path, name))
