"""`regard.load` of hostile folders that the package transformers would compute: refused fast, by our own error.

One process reads them all. An audit hook records what it opens, imports and starts.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from public_folders import byte_tokenizer, saved
from transformers import GPTJConfig, GPTJForCausalLM

from hostile_hub import OTHER_FOLDERS, OTHER_HARMLESS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and ru_maxrss are of POSIX")

PROGRAM = """
import json, resource, sys, time, warnings
from pathlib import Path
import regard
from regard.errors import RegardError

warnings.simplefilter("ignore")
events = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        events.append([event, arguments[0], str(arguments[1])])
    elif event == "import" or event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
        events.append([event, str(arguments[0]), ""])

regard.load(sys.argv[1]).generate("a", max_new_tokens=2)  # imports what a valid model needs
sys.addaudithook(watch)
for folder in map(Path, sys.argv[2:]):
    events.clear()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    messages = None
    try:
        lm = regard.load(folder)
        lm.generate("a", max_new_tokens=2)
        lm.see("The cat", output="")
    except RegardError as error:
        messages = [error.text("en"), error.text("zh")]
    except BaseException as error:
        messages = [f"{type(error).__name__}: {error}", ""]
    seconds = time.process_time() - began
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([messages, seconds, megabytes, events]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    root = tmp_path_factory.mktemp("others")
    inner = byte_tokenizer()
    config = GPTJConfig(
        vocab_size=inner.get_vocab_size(),
        n_embd=16,
        n_layer=2,
        n_head=2,
        rotary_dim=4,
        bos_token_id=0,
        eos_token_id=1,
        architectures=["GPTJForCausalLM"],
    )
    valid = saved(root / "valid", GPTJForCausalLM(config), inner)
    names, folders = [*OTHER_FOLDERS, *OTHER_HARMLESS], []
    for number, name in enumerate(names):
        folders.append(shutil.copytree(valid, root / str(number) / "model"))
        (OTHER_FOLDERS[name][0] if name in OTHER_FOLDERS else OTHER_HARMLESS[name])(folders[-1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(valid), *map(str, folders)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    keys = ("messages", "seconds", "megabytes", "events")
    lines = [dict(zip(keys, json.loads(line), strict=True)) for line in done.stdout.splitlines()]
    return {name: line | {"folder": at} for name, line, at in zip(names, lines, folders, strict=True)}


def test_there_are_many() -> None:
    assert len(OTHER_FOLDERS) >= 40


@pytest.mark.parametrize("name", OTHER_FOLDERS)
def test_it_is_refused_by_name_place_and_reason(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    found = outcomes[name]
    assert found["messages"] is not None, "it was loaded"
    english, chinese = found["messages"]
    assert str(found["folder"]) in english
    assert re.search(OTHER_FOLDERS[name][1], english.replace(str(found["folder"].parents[1]), "")), english
    assert re.search("[一-鿿]", chinese), chinese
    assert len(english) < 1500


@pytest.mark.parametrize("name", OTHER_HARMLESS)
def test_code_and_kernels_are_not_used(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes[name]["messages"] is None, outcomes[name]["messages"]


@pytest.mark.parametrize("name", [*OTHER_FOLDERS, *OTHER_HARMLESS])
def test_it_takes_little_time_and_memory_and_opens_only_its_own_files(
    name: str, outcomes: dict[str, dict[str, Any]]
) -> None:
    found = outcomes[name]
    assert found["seconds"] <= 5
    assert found["megabytes"] <= 200
    root = str(found["folder"].parents[1])
    for event, what, mode in found["events"]:
        assert "evil" not in what, (event, what)
        assert not event.startswith(("socket.", "os.")), (event, what)
        assert event != "subprocess.Popen" or what == sys.executable  # a tokenizer is tried in its own process
        if event == "open":
            assert not what.startswith(root) or Path(what).is_relative_to(found["folder"]), what
            assert not any(letter in mode for letter in "wax+"), (what, mode)
            assert what != "/etc/passwd"
