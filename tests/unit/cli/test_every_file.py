"""Every command with every file that it reads or writes: none blocks, replaces a special file or prints an escape.

Commands and options come from the command line itself. The first test fails for a new option that takes a file and is
not in `READS` or `WRITES`.
"""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_disk import largest_file
from tiny_language import PAIRS

from regard import Trace
from regard.cli.application import application
from regard.cli.entry import INTERNAL_ERROR
from regard.course.progress import ProgressFile
from regard.messages import is_control

PATHS = {"file", "folder", "model", "see-model", "generate-model", "run", "runs", "data", "recipe", "convert-source"}
"""Placeholders, as `metavar-…`, of options that take a path."""

TINY = """training.steps=4 training.save_every=2 model.d_model=8 model.n_heads=2 model.d_ff=8 model.n_layers=1
puzzle.longest=4 puzzle.shortest=2 puzzle.valid_examples=4 data.batch_size=4 film.every=4 film.text=abc"""
TRAIN = "train copy --out RUN --film " + " ".join(f"--set {change}" for change in TINY.split())

# (command, parameter): a call that reads that path. `place` creates the names in capitals.
READS = {
    ("see", "model"): "see --model MODEL 'I love you.'",
    ("heads", "model"): "heads --model MODEL 'I love you.'",
    ("heads", "survey"): "heads --survey SURVEY",
    ("survey", "model"): "survey --model POET --texts TEXTS --out NEW",
    ("survey", "texts"): "survey --model POET --texts TEXTS --out NEW",
    ("survey", "out"): "survey --model POET --texts TEXTS --out SURVEY",
    ("convert", "source"): "convert POET NEW",
    ("translate", "model"): "translate --model MODEL 'I love you.'",
    ("generate", "model"): "generate --model POET 床",
    ("train", "recipe"): "train RECIPE --data DATA --out NEW",
    ("train", "data"): "train RECIPE --data DATA --out NEW",
    ("train", "out"): TRAIN,
    ("train", "start"): TRAIN.replace("--out RUN", "--start RUN --out NEW"),
    ("evaluate", "model"): "evaluate RUN --device cpu",
    ("evaluate", "data"): "evaluate MODEL --data DATA --device cpu",
    ("plot", "runs"): "plot RUN",
    ("film", "run"): "film RUN",
    ("learn start", "folder"): "learn start softmax --dir WORK",
    ("learn check", "file"): "learn check by-hand WORK/by-hand.toml",
    ("learn reset", "folder"): "learn reset softmax --dir WORK",
    ("learn import", "file"): "learn import TRANSFER",
    ("learn new", "parent"): "learn new mine --dir NEW",
    ("learn verify", "folder"): "learn verify OWN",
    ("learn grade", "folder"): "learn grade by-hand WORK",
}
ALSO_READ = [
    "learn",
    "learn list",
    "learn path",
    "learn ask --list",
    "learn hint softmax",
    "learn solution softmax --give-up",
]
"""Calls without a path that read $REGARD_HOME."""

# (command, parameter): a call that writes OUT.
WRITES = {
    ("see", "save"): "see --model MODEL 'I love you.' --save OUT",
    ("see", "html"): "see --model MODEL 'I love you.' --html OUT",
    ("see", "png"): "see --model MODEL 'I love you.' --png OUT",
    ("see", "svg"): "see --model MODEL 'I love you.' --svg OUT",
    ("evaluate", "output"): "evaluate MODEL --data DATA --device cpu --output OUT",
    ("plot", "png"): "plot RUN --png OUT",
    ("film", "gif"): "film RUN --gif OUT",
    ("learn export", "file"): "learn export OUT",
    ("learn certificate", "file"): "learn certificate OUT",
    ("learn grade", "table"): "learn grade by-hand WORK --csv OUT",
}

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\x08x"
Call = Callable[[str], tuple[int, str]]


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    command = command or application()
    yield " ".join(path), command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def test_every_option_that_takes_a_path_is_tried() -> None:
    found = {
        (name, param.name)
        for name, command in commands()
        for param in command.params
        if (param.metavar or "").removeprefix("metavar-") in PATHS
    }
    assert found == READS.keys() | WRITES.keys()


# --- a folder where every call works ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny_models: Path) -> Path:
    """A folder with one of each file that commands read, created by the commands."""
    from regard.cli import main

    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_HOME", str(folder / "home"))
        patch.chdir(folder)
        shutil.copytree(tiny_models / "translator", folder / "MODEL")
        shutil.copytree(tiny_models / "poet", folder / "POET")
        (folder / "DATA").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS * 3), encoding="utf-8")
        (folder / "DATA").rename(folder / "DATA.tsv")
        (folder / "RECIPE.toml").write_text(
            'task = "translation"\n[data]\ntrain = "DATA.tsv"\nvalid_share = 0.2\nsource = "en"\ntarget = "zh"\n'
            "max_len = 64\nbatch_tokens = 128\n[model]\npreset = 'paper_2017'\nn_layers = 1\nd_model = 8\nn_heads = 2\n"
            "d_ff = 8\n[training]\nsteps = 1\nlr = 0.01\n",
            encoding="utf-8",
        )
        (folder / "TEXTS").write_text("床前明月光\n疑是地上霜\n", encoding="utf-8")
        survey = "survey --model POET --texts TEXTS --out SURVEY"
        for call in (
            survey,
            TRAIN,
            "learn start softmax --dir WORK",
            "learn start by-hand --dir WORK",
            "learn hint softmax",
        ):
            assert main(shlex.split(call)) == 0
        (folder / "home" / "progress.backup.json").write_bytes((folder / "home" / "progress.json").read_bytes())
        assert main(shlex.split("learn solution softmax --give-up")) == 0
        ProgressFile().checked("by-hand", passed=True)
        for call in ("learn export TRANSFER", "learn new OWN"):
            assert main(shlex.split(call)) == 0
        grader = folder / "OWN" / "grader.py"  # one mistake instead of seven: verified in less time, as incomplete
        grader.write_text(
            grader.read_text(encoding="utf-8").replace(", MISTAKES,", ", MISTAKES[:1],"), encoding="utf-8"
        )
        # Create the font caches of matplotlib now, not during a test of full disks.
        assert main(shlex.split("plot RUN --png warm.png")) == main(shlex.split("film RUN --gif warm.gif")) == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, which a test may change."""
    folder = tmp_path / "place"
    shutil.copytree(made, folder)
    monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command with a time limit; return its exit code and output."""
    from regard.cli import main

    names = {"RECIPE": "RECIPE.toml", "DATA": "DATA.tsv"}

    def run_line(line: str) -> tuple[int, str]:
        line = re.sub(r"\b(RECIPE|DATA)\b", lambda found: names[found[0]], line)
        with at_most_seconds(30):
            code = main(shlex.split(line))
        out, err = capsys.readouterr()
        assert code != INTERNAL_ERROR, err
        assert "--debug" in line or "Traceback" not in err
        assert not [character for character in out + err if character not in "\n\t" and is_control(character)], repr(
            out + err
        )
        return code, out + err

    return run_line


@contextmanager
def at_most_seconds(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError("the command blocks")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


EVERY_READ = sorted({*READS.values(), *ALSO_READ})


@pytest.mark.parametrize("line", EVERY_READ)
def test_every_call_works_on_valid_files(line: str, place: Path, call: Call) -> None:
    code, output = call(line)
    assert code == (1 if "check" in line or "verify" in line else 0), output


# --- files that are read ---------------------------------------------------------------------------------


def files_of(line: str, place: Path) -> list[Path]:
    """The files that a call may read."""
    named = [word for word in ("MODEL", "POET", "RUN", "SURVEY", "WORK", "OWN") if re.search(rf"\b{word}\b", line)]
    found = [path for word in named for path in sorted((place / word).rglob("*")) if path.is_file()]
    found += [
        place / name
        for word, name in (
            ("RECIPE", "RECIPE.toml"),
            ("DATA", "DATA.tsv"),
            ("TEXTS", "TEXTS"),
            ("TRANSFER", "TRANSFER"),
        )
        if word in line
    ]
    if line.startswith("learn"):
        found += sorted(path for path in (place / "home").iterdir() if path.is_file())
    return found


def replace_with_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_with_link_to_device(path: Path) -> None:
    path.unlink()
    path.symlink_to(os.ttyname(_terminal()[1]))


@cache
def _terminal() -> tuple[int, int]:
    """A pseudo-terminal, open until the tests end."""
    return pty.openpty()


@pytest.mark.parametrize(
    "replace", [replace_with_fifo, pytest.param(replace_with_link_to_device, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("line", EVERY_READ)
def test_no_command_blocks_on_a_file(line: str, replace: Callable[[Path], None], place: Path, call: Call) -> None:
    for path in files_of(line, place):
        kept = path.with_name(path.name + ".kept")
        shutil.copy2(path, kept)
        replace(path)
        mode = path.lstat().st_mode
        code, output = call(line)
        assert stat.S_IFMT(path.lstat().st_mode) == stat.S_IFMT(mode), f"{path} was replaced"
        assert code in (0, 1, 3), output  # 0: a file that this command does not need
        if path.name == "progress.json" and line in ("learn list", "learn hint softmax"):
            assert "FIFO" in output or "device" in output
        path.unlink()
        kept.rename(path)
        shutil.rmtree(place / "NEW", ignore_errors=True)


NEEDED = {
    "see": ["MODEL/config.json", "MODEL/model.safetensors", "MODEL/tokenizer.json", "MODEL/generation_config.json"],
    "evaluate RUN": [
        "RUN/recipe.toml",
        "RUN/model/config.json",
        "RUN/model/model.safetensors",
        "RUN/model/tokenizer.json",
    ],
    "plot": ["RUN/metrics.jsonl"],
    "film": ["RUN/film/step-00000000.safetensors"],
    "train copy": [
        "RUN/recipe.toml",
        "RUN/finished.json",
        "RUN/run.json",
        "RUN/tokenizer.json",
        "RUN/metrics.jsonl",
        "RUN/model/config.json",
    ],
}


@pytest.mark.parametrize("start", NEEDED)
def test_links_out_of_a_run_or_model_are_refused(start: str, place: Path, call: Call) -> None:
    line = next(line for line in EVERY_READ if line.startswith(start))
    for name in NEEDED[start]:
        path, outside = place / name, place / "outside"
        path.rename(outside)
        path.symlink_to(outside)
        code, output = call(line)
        assert code == 3, output
        assert "outside of its folder" in output
        path.unlink()
        outside.rename(path)
    assert call(line)[0] == 0


def test_a_link_to_another_model_folder_is_refused(place: Path, call: Call) -> None:
    (place / "RUN" / "model").rename(place / "other")
    (place / "RUN" / "model").symlink_to(place / "other")
    for line in ("evaluate RUN --device cpu", "see --model RUN abc"):
        assert "outside of its folder" in call(line)[1]


def test_endless_stdin_is_refused(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return len(buffer)

    monkeypatch.setattr("regard.cli.streams.LARGEST_STDIN", 2**20)
    for line in (
        "see --model MODEL -",
        "generate --model POET -",
        "explain --q - --k 1 --v 1",
        "translate --model MODEL -",
        "learn check softmax -",
        "learn check softmax /dev/stdin",
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
        code, output = call(line)
        assert code in (3, 5), output


# --- files that are written ------------------------------------------------------------------------------


def endings(place: Path) -> dict[tuple[str, str], str]:
    pages = {("see", "html"): ".html", ("see", "svg"): ".svg", ("learn certificate", "file"): ".html"}
    return {("see", "save"): ".safetensors", ("film", "gif"): ".gif", **pages}


def outputs(place: Path) -> Iterator[tuple[str, str]]:
    for key, line in WRITES.items():
        yield line, endings(place).get(key, ".txt" if key[0] == "evaluate" or key[0].startswith("learn") else ".png")


def test_special_files_are_not_replaced(place: Path, call: Call) -> None:
    main, other = pty.openpty()
    for line, ending in outputs(place):
        fifo = place / f"fifo{ending}"
        if not fifo.exists():
            os.mkfifo(fifo)
        assert call(line.replace("OUT", str(fifo)))[0] == 3
        assert stat.S_ISFIFO(fifo.lstat().st_mode)
        device = Path(os.ttyname(other))
        code, output = call(line.replace("OUT", str(device)))
        assert (code, "is a device" in output) == (3, True)
        assert stat.S_ISCHR(device.lstat().st_mode)
        code, output = call(line.replace("OUT", "-"))
        assert (code, "- is not the name of a file" in output) == (2, True)
    os.close(main)
    os.close(other)
    assert not (place / "-").exists()


def test_a_link_to_a_file_stays_a_link(place: Path, call: Call) -> None:
    (place / "far").mkdir()
    for number, (line, ending) in enumerate(outputs(place)):
        real, link = place / "far" / f"{number}{ending}", place / f"{number}{ending}"
        real.write_text("old")
        real.chmod(0o600)
        link.symlink_to(real)
        code, output = call(line.replace("OUT", str(link)))
        assert code == 0, output
        assert link.is_symlink()
        assert real.read_bytes() != b"old"
        assert real.stat().st_mode & 0o777 == 0o600


def all_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


SIZES = re.compile(r"needs [0-9.]+ (B|[KMG]iB), and [0-9.]+ (B|[KMG]iB) is free")


def test_a_full_disk_exits_with_5_and_sizes(place: Path, call: Call) -> None:
    for line, ending in outputs(place):
        before = all_files(place)
        with largest_file(8):
            code, output = call(line.replace("OUT", f"new{ending}"))
        assert code == 5, output
        assert SIZES.search(output), output
        assert all_files(place) == before


def test_exercises_on_a_full_disk(place: Path, call: Call) -> None:
    before = all_files(place)
    with largest_file(8):
        for line in (
            "learn start layer-norm --dir WORK",
            "learn start order-the-flow --dir WORK/new",
            "learn reset softmax --dir WORK",
        ):
            code, output = call(line)
            assert code == 5, output
            assert SIZES.search(output), output
    assert all_files(place) == before
    (place / "WORK" / "softmax.py").write_text("an answer")
    with largest_file(8):
        assert call("learn reset softmax --dir WORK")[0] == 5
    assert (place / "WORK" / "softmax.py").read_text() == "an answer"
    assert sorted(path.name for path in (place / "WORK").iterdir()) == ["by-hand.toml", "new", "softmax.py"]
    with largest_file(8):
        code, output = call("learn hint softmax")  # the command works even if progress cannot be saved
    assert code == 0
    assert SIZES.search(output), output
    assert all_files(place / "home") == {path: content for path, content in before.items() if "home" in path.parts}


@pytest.mark.parametrize("size", [8, 600, 3000])
def test_a_film_on_a_full_disk(size: int, place: Path, call: Call) -> None:
    with largest_file(size):
        code, output = call(TRAIN.replace("RUN", "FULL"))
    assert code == 5, output
    assert SIZES.search(output), output
    assert not list((place / "FULL").rglob(".*"))


# --- escapes ---------------------------------------------------------------------------------------------


def hostile_json(content: bytes) -> Iterator[bytes]:
    """The content with escapes as a key, and in place of values."""
    tree = json.loads(content)
    yield json.dumps({**tree, HOSTILE: 1}).encode()
    for name, value in tree.items():
        yield json.dumps({**tree, name: HOSTILE}).encode()
        if isinstance(value, dict):
            yield json.dumps({**tree, name: {**value, HOSTILE: 1}}).encode()
        yield json.dumps({HOSTILE if key == name else key: one for key, one in tree.items()}).encode()


def hostile_toml(content: bytes) -> Iterator[bytes]:
    quoted = json.dumps(HOSTILE)
    text = content.decode()
    yield f"{quoted} = 1\n{text}".encode()
    yield f"{text}\n[{quoted}]\n{quoted} = {quoted}\n".encode()
    for line in text.splitlines():
        key, equals, _ = line.partition(" = ")
        if equals:
            yield text.replace(line, f"{key} = {quoted}", 1).encode()
    yield text.replace("=", f"= {HOSTILE}", 1).encode()


def hostile_contents(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    if path.suffix == ".json":
        yield from hostile_json(content)
    elif path.suffix == ".toml":
        yield from hostile_toml(content)
    yield HOSTILE.encode() + content
    yield content + HOSTILE.encode() + b"\n"
    yield content.replace(b"\n", HOSTILE.encode() + b"\n", 1)


FAST_READS = [line for line in EVERY_READ if not line.startswith(("train RECIPE", "learn check"))]


@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("line", FAST_READS)
def test_no_escape_of_a_file_reaches_the_terminal(line: str, thorough: bool, place: Path, call: Call) -> None:
    for path in files_of(line, place):
        if path.suffix == ".safetensors" or path.name.endswith(("lock", ".backup.json")):
            continue
        content = path.read_bytes()
        many = list(hostile_contents(path))
        # An unknown key, and for a run an unexpected place.
        for hostile in many[:40] if thorough else many[:1]:
            path.write_bytes(hostile)
            call(line)
            shutil.rmtree(place / "NEW", ignore_errors=True)
            path.write_bytes(content)


def test_names_of_records_tokens_metrics_and_folders(place: Path, call: Call) -> None:
    run = place / f"r{HOSTILE}"
    (run / "film").mkdir(parents=True)
    for step in (0, 10):
        weights = np.stack([np.eye(3), np.full((3, 3), 1 / 3)])
        Trace.from_weights(weights[None], [HOSTILE, "b", f"c{HOSTILE}"], name=HOSTILE).save(
            run / "film" / f"step-{step:08d}.safetensors"
        )
    lines = [{"step": step, "loss": 1.0 / (step + 1), HOSTILE: 2.0} for step in range(3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    name = shlex.quote(run.name)
    for line in (
        f"film {name}",
        f"film {name} --json",
        f"film {name} --layer x",
        f"film {name} --head 9",
        f"plot {name}",
        f"plot {name} --metric {shlex.quote(HOSTILE)}",
        f"plot {name} --metric x",
        f"plot {name} --json",
        f"plot {name} RUN",
        f"film {name} --gif g.gif",
        f"plot {name} --png p.png",
        f"evaluate {name}",
        f"see --model {name}",
        f"train {name}.toml",
        f"train copy --out {name}",
        f"train copy --out x --set {shlex.quote(HOSTILE)}=1",
        f"learn check softmax {name}",
        f"learn check {name}",
        f"learn start softmax --dir {name}",
        f"learn reset softmax --dir {name}",
        f"translate --model MODEL {name}",
        f"see --model MODEL {name}",
        f"heads --model MODEL {name}",
        f"see --model MODEL a --html {name}.html",
        f"see --model MODEL a --png {name}",
        f"see --{name}",
        name,
        f"generate --model POET {name} --debug",
        f"film {name} --layer x --debug",
        f"learn ask {name}",
    ):
        call(line)


def test_output_of_an_answer_is_escaped(place: Path, call: Call) -> None:
    for text in (
        f"print({HOSTILE!r})\n",
        f"raise ValueError({HOSTILE!r})\n",
        f"def softmax(x): return {HOSTILE!r}\n",
        f"x = '{HOSTILE}\n",
    ):
        (place / "WORK" / "softmax.py").write_text(text, encoding="utf-8")
        for line in ("learn check softmax WORK/softmax.py", "learn check softmax WORK/softmax.py --json"):
            assert call(line)[0] == 1
