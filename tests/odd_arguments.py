"""Odd arguments for every command, generated from the application, so that new commands are covered.

`draw(random, commands)` returns one command with some of its options and arguments, with odd values.
`run_commands(commands, folder)` runs them in one child process with limited memory.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from without_packages import commands_of

CODES = {0, 1, 2, 3, 4, 5, 130}
NUMBERS = [
    *("0", "-1", "1", "3", "9" * 5000, "1e309", "-0", "1e-400", "nan", "inf"),
    *("0x10", "1_0", "٣", "½", "", " ", "1.5"),
]
TEXTS = [
    *("", " ", "\u3000", "-", "--", "—", "I love you", "xyzzy", "12345", "\n\n", "a\tb", "{}", "%s%n{0}"),
    *("我爱你", "こんにちは", "안녕", "床前明月光", "😀" * 40, "a" * 3000, "é" * 500, "[" * 2000),
    *("\x1b[31mred\x1b[0m", "\u202e\u200b", "bad\udcff", "all", "mean", "cross", "copy", "handmade"),
    *("softmax", "by-hand", "encoder-layer", "why-sqrt-d-k", "translator", "poet"),
]
# None outside the folder of the test, and no device: as root, a bug in writing could replace one.
PATHS = [
    *("", ".", "folder/..", "absent", "a/b/c/d.png", "file.txt", "folder", "x" * 300, "nul"),
    *("broken.toml", "deep.toml", "run", "link", "～/a", "bad\udcff.png"),
    *("a.png", "a.html", "a.safetensors", "a.gif", "a.exe"),
]
CHANGES = [
    *("training.steps=1", "model.d_model=131072", "a=1", "=", "a", "a.b.c=1", "model={}", "[" * 500),
    *("data.train=[]", 'data.train=["/etc/passwd"]', "data.max_len=-1", "training.seed=1e3", "training.lr=nan"),
    *("training.steps=" + "9" * 5000, "model.norm=[[[[1]]]]", "puzzle.longest=99", "model.n_heads=0"),
    *("film.every=0", "name=\x1b[2J", ".".join("a" * 500) + "=1", "data.batch_size=10000000000"),
]
VALID = {
    "metavar-number": ["0", "1", "2", "60"],
    "metavar-value": ["0", "0.7"],
    "metavar-kind": ["encoder", "decoder", "cross"],
    "metavar-layer": ["0", "1", "all"],
    "metavar-head": ["0", "3", "all", "mean"],
    "metavar-matrix": ["1", "1 0", "1 0; 0 1"],
    "metavar-see-model": ["translator", "poet", "handmade"],
    "metavar-generate-model": ["poet"],
    "metavar-model": ["translator", "poet", "run"],
    "metavar-prompt": ["床前明月光", "明月"],
    "metavar-form": ["五绝", "7x4"],
    "metavar-recipe": ["copy", "sort", "shakespeare-char"],
    "metavar-data": ["file.txt", "folder"],
    "metavar-id": ["softmax", "by-hand", "encoder-layer"],
    "metavar-question": ["why-sqrt-d-k"],
    "metavar-rating": ["1", "good"],
    "metavar-device": ["cpu"],
    "metavar-run": ["run"],
    "metavar-runs": ["run"],
    "metavar-text": ["I love you", "The quokka has 12345 eggs."],
}
"""Valid values by placeholder, so that some commands pass the parsing of arguments."""
DRIVER = """
import contextlib, io, json, os, resource, sys
from regard.cli import main
sys.argv[0] = "regard"
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))
answers = open(sys.argv[2], "w", encoding="utf-8")
for arguments in json.load(open(sys.argv[1], encoding="utf-8")):
    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"I love you\\n"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"[:300]
    result = {"code": code, "err": err.getvalue()[-600:], "printed": len(out.getvalue())}
    print(json.dumps(result), file=answers, flush=True)
"""


class CommandResult(NamedTuple):
    arguments: list[str]
    code: Any
    err: str
    printed: int


def make_folder(folder: Path) -> None:
    """Create the files and folders that the arguments name."""
    (folder / "file.txt").write_text("I love you.\n", encoding="utf-8")
    (folder / "folder").mkdir()
    (folder / "broken.toml").write_text("name = [", encoding="utf-8")
    (folder / "deep.toml").write_text(f"x = {'[' * 5000}", encoding="utf-8")
    (folder / "run").mkdir()
    (folder / "run" / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n', encoding="utf-8")
    (folder / "link").symlink_to(folder / "absent")


def draw(rng: random.Random, commands: Sequence[tuple[tuple[str, ...], Any]]) -> list[str]:
    """One command with some of its options and arguments, and sometimes an unknown one."""
    path, command = rng.choice(commands)
    words: list[str] = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            words += [_value(rng, parameter) for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
        elif "--on-save" not in parameter.opts and rng.random() < 0.35:
            name = rng.choice(parameter.opts)
            is_flag = getattr(parameter, "is_flag", False)
            words += [name] if is_flag else [name, _value(rng, parameter)]
            if rng.random() < 0.05:
                words[-1:] = [f"{name}={words[-1]}"]
    if rng.random() < 0.1:
        rng.shuffle(words)
    if path == ("train",):
        words += ["--set", "training.steps=1"]  # a whole training takes minutes
    words += rng.choice([[], [], [], ["--lang", "zh"], ["--lang=xx"], ["--nonsense"], ["--"]])
    return [*path, *words]


def _value(rng: random.Random, parameter: Any) -> str:
    """A value for the parameter: mostly of its kind, sometimes any."""
    kinds = {"metavar-key-value": CHANGES, "metavar-matrix": [*NUMBERS, "1 0; 0 1", "1 2; 3", "[[1, 0], [0, 1]]", "a"]}
    kinds |= dict.fromkeys(("metavar-number", "metavar-value", "metavar-speed", "metavar-seconds"), NUMBERS)
    kinds |= dict.fromkeys(("metavar-file", "metavar-folder", "metavar-data", "metavar-run", "metavar-runs"), PATHS)
    if parameter.metavar in VALID and rng.random() < 0.6:
        return rng.choice(VALID[parameter.metavar])
    candidates = kinds.get(parameter.metavar, TEXTS)
    return rng.choice(candidates if rng.random() < 0.8 else [*NUMBERS, *TEXTS, *PATHS])


def odd_commands(application: Any, seed: int, count: int) -> Iterator[list[str]]:
    """`count` commands, with the commands of the application in turn."""
    rng, commands = random.Random(seed), list(commands_of(application))
    for place in range(count):
        yield draw(rng, [commands[place % len(commands)]])


def run_commands(
    commands: Sequence[Sequence[str]], folder: Path, memory: int = 3 * 2**33, seconds: int = 900
) -> list[CommandResult]:
    """The result of each command. If the child dies, the code of the last command holds its exit status."""
    make_folder(folder)
    requests, answers = folder.parent / "requests.json", folder.parent / "answers.jsonl"
    requests.write_text(json.dumps([list(one) for one in commands]), encoding="utf-8")
    variables = {**os.environ, "REGARD_HOME": str(folder.parent / "home"), "REGARD_LANG": "en", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(requests), str(answers), str(memory)],
        env=variables,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    results = [CommandResult(list(command), **line) for command, line in zip(commands, lines, strict=False)]
    if len(results) < len(commands):
        results.append(
            CommandResult(list(commands[len(results)]), f"died: {done.returncode}", done.stderr.decode()[-600:], 0)
        )
    return results


def violations(results: Sequence[CommandResult]) -> list[str]:
    """Descriptions of forbidden results: an unknown exit code, a traceback, no or several error messages."""
    found = []
    for one in results:
        errors = [line for line in one.err.splitlines() if line.startswith("regard: ")]
        bad = one.code not in CODES or "Traceback" in one.err or len(errors) > 1
        bad = bad or (one.code in (2, 3, 4, 5) and not errors and len(one.err) < 600)
        if bad:
            found.append(f"{one.code} {[word[:60] for word in one.arguments]}\n    {one.err[-300:]}")
    return found
