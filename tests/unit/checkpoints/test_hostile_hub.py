"""Invalid and hostile folders in Hugging Face's layout: refused by our own error, fast, without opening other files.

One process reads them all. An audit hook records what it opens, imports and starts.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hostile_gguf
import hostile_hub
from hostile_hub import write_valid

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs, sockets and ru_maxrss are of POSIX")

FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = hostile_hub.FOLDERS | {
    name: (partial(hostile_gguf.write, make=make), reason) for name, (make, reason) in hostile_gguf.FILES.items()
}
HARMLESS: dict[str, Callable[[Path], Any]] = hostile_hub.HARMLESS | {
    name: partial(hostile_gguf.write, make=make) for name, make in hostile_gguf.HARMLESS.items()
}
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from regard.checkpoints import read_model
from regard.errors import FileError

events = []
def watch(event, arguments):
    if event == "open" and not isinstance(arguments[0], int):  # a descriptor is of a file that was opened by name
        events.append([event, str(arguments[0])])
    elif event == "import" or event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
        events.append([event, str(arguments[0])])

read_model(sys.argv[1]), read_model(sys.argv[2])  # imports what a valid model needs
FileError("family-missing", path="").text("zh")  # so are the messages
sys.addaudithook(watch)
for folder in map(Path, sys.argv[3:]):
    events.clear()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    messages = None
    try:
        found = read_model(folder)
        shapes = found.tensors.shapes
        unused = list(found.unused)
    except FileError as error:
        unused, messages = [], [error.text("en"), error.text("zh")]
    seconds = time.process_time() - began
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([folder.name, messages, unused, seconds, megabytes, events]))
"""


def read_all(names: list[str], root: Path) -> dict[str, dict[str, Any]]:
    valid, of_gguf = root / "valid", root / "gguf"
    for each in (valid, of_gguf):
        each.mkdir()
        write_valid(each)
    hostile_gguf.write(of_gguf, hostile_gguf.content)
    folders = {}
    for number, name in enumerate(names):
        folder = root / str(number) / "model"
        folder.mkdir(parents=True)
        write_valid(folder)
        (FOLDERS[name][0] if name in FOLDERS else HARMLESS[name])(folder)
        folders[name] = folder
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(valid), str(of_gguf), *map(str, folders.values())],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    keys = ("folder", "messages", "unused", "seconds", "megabytes", "events")
    lines = [dict(zip(keys, json.loads(line), strict=True)) for line in done.stdout.splitlines()]
    return {name: line | {"folder": folders[name]} for name, line in zip(names, lines, strict=True)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return read_all([*FOLDERS, *HARMLESS], tmp_path_factory.mktemp("hostile"))


def test_there_are_many() -> None:
    assert len(FOLDERS) >= 160


@pytest.mark.parametrize("name", FOLDERS)
def test_it_is_refused_by_name_place_and_reason(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    found = outcomes[name]
    assert found["messages"] is not None, "it was read"
    english, chinese = found["messages"]
    assert str(found["folder"]) in english
    assert str(found["folder"]) in chinese
    assert re.search(FOLDERS[name][1], english), english
    assert re.search("[一-鿿]", chinese), chinese
    assert len(english) < 1500


@pytest.mark.parametrize("name", [*FOLDERS, *HARMLESS])
def test_it_takes_little_time_and_memory_and_opens_only_its_own_files(
    name: str, outcomes: dict[str, dict[str, Any]]
) -> None:
    found = outcomes[name]
    assert found["seconds"] <= 5
    assert found["megabytes"] <= 200
    inside = str(found["folder"])
    for event, what in found["events"]:
        assert event == "open", (event, what)
        assert Path(what).is_relative_to(inside), what
        assert Path(what).suffix in (".json", ".safetensors", ".gguf"), what


@pytest.mark.parametrize("name", HARMLESS)
def test_code_and_kernels_that_a_config_names_are_not_used(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    found = outcomes[name]
    assert found["messages"] is None, found["messages"]
    if "code" in name:
        assert "auto_map" in found["unused"]
