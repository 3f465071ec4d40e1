"""Files are opened, and text is printed, by one module each; exceptions are listed here with their reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "regard"
OPENING = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "rename", "safe_open"}
OPENING |= {
    "load_file",
    "save_file",
    "memmap",
    "fromfile",
    "tofile",
    "loadtxt",
    "savetxt",
    "imread",
    "imsave",
    "savefig",
}

# The calls that are allowed outside of these modules, by file.
ALLOWED = {
    "files/output.py": {
        "os.open",
        "os.replace",
        "os.rename",
        "temporary.write_bytes",
        "temporary.open",
        "made.open",
    },  # the module that writes files
    "files/safe_open.py": {"os.open", "os.fdopen"},  # the module that reads files
    "training/run_files.py": {"os.open", "source.rename"},  # new files of a run, and folders
    "images.py": {"Image.open"},  # of a file that files/safe_open.py opened, and of bytes
    "memory.py": {"open"},  # /proc/meminfo
    "cli/entry.py": {"os.open"},  # the null device
    "functional/int8_weight.py": {"source.read_text"},  # the bundled C++ code
    "cli/streams.py": {"open", "os.open"},  # the null device
    "cli/learn/exercise_commands.py": {"path.rename"},  # after the check by `resolve_target`
    "course/progress.py": {
        "temporary.write_bytes",
        "os.replace",
    },  # inside `write_atomically`; a broken file is renamed
    "checkpoints/tensor_file.py": {"temporary.open"},  # inside `write_atomically`
    "text/process_limits.py": {"open"},  # /proc/self/statm
    "trace/file.py": {"save_file", "safe_open"},  # inside `write_atomically`; after `check_file`
    "views/plots.py": {"figure.savefig"},  # into memory
    "views/curve_drawing.py": {"figure.savefig"},  # into memory
}
BUNDLED_TEXT_READERS = (
    "course/catalogue.py",
    "course/certificate.py",
    "course/own_exercises/loading.py",
    "course/drawings/__init__.py",
    "course/learner_model/building.py",
    "course/learner_model/program/__init__.py",
    "course/lessons/__init__.py",
    "course/lessons/markdown.py",
    "course/questions/__init__.py",
    "course/study_path.py",
    "recipes/recipe.py",
    "views/explorer/front.py",
)
"""These modules read texts that are bundled with the package."""


def calls(path: Path) -> Iterator[str]:
    """Calls by name that open, move or print: `os.open`, `temporary.write_bytes`, `print`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                yield f"{owner}.{name}"
            case ast.Call(func=ast.Attribute(attr=name)):
                yield f".{name}"


def sources() -> list[str]:
    found = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    # The sandbox for learners' programs has other rules, and exercises are texts for learners.
    return sorted(name for name in found if not name.startswith(("course/grading/", "course/exercises/")))


def test_files_are_opened_only_in_listed_modules() -> None:
    for name in sources():
        found = {call for call in calls(SOURCE / name) if call.split(".")[-1] in OPENING or call == "os.replace"}
        found -= {"read_text", "write_bytes"}  # functions of text/corpus.py and files/output.py, not methods of a path
        if name in BUNDLED_TEXT_READERS:
            found -= {"path.open", "path.read_text", "place.read_text", ".read_text", ".read_bytes"}
        what = f"{name}: open files with regard.files.safe_open, write them with regard.files.output"
        assert found <= ALLOWED.get(name, set()), what


def test_commands_do_not_call_print() -> None:
    for name in sources():
        if name.startswith("cli/") and name not in ("cli/streams.py", "cli/entry.py"):
            assert "print" not in set(calls(SOURCE / name)), f"{name}: put and talk show escapes as signs"
