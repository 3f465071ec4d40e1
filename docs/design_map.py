"""python docs/design_map.py: write the map in DESIGN.md, one line for each file, from the docstrings in src/.

A package is described by the first sentence of its `__init__.py`, a file by the first sentence of its docstring. Ranks
and the mark for PyTorch come from tests/unit/test_ranks.py, which checks the imports.
"""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
DESIGN = ROOT / "DESIGN.md"
START = "### Rank 0"

RANKS = {
    0: "messages, errors, files, sizes",
    1: "values: configs, masks, records, text",
    2: "arithmetic: the definition, its PyTorch twins, fast kernels",
    3: "the attention call, and the hand calculation",
    4: "layers, checkpoints, generation, traces",
    5: "models, training, capture",
    6: "recipes, language models, views",
    7: "the course",
    9: "the command line",
    10: "entry points",
}
NOTES = {
    "src/regard/course/exercises/": "One folder for each exercise: `task.toml` (texts), `stub.py`, `solution.py`,"
    " `grader.py` (calls and known mistakes); an answer sheet has neither stub nor solution."
    " `template` is for exercises of one's own",
    "src/regard/": "Modules of the package itself",
}


def ranks() -> ModuleType:
    """The tables of tests/unit/test_ranks.py."""
    spec = importlib.util.spec_from_file_location("ranks", ROOT / "tests/unit/test_ranks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files() -> list[Path]:
    """Every Python file below src/, without those of single exercises."""
    return sorted(
        path
        for path in SOURCE.rglob("*.py")
        if not path.match("course/exercises/*/*.py") and path.parent.name != "right"
    )


def first_sentence(path: Path) -> str:
    """The first paragraph of a docstring, up to its first full stop, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return paragraph.split(". ")[0].removesuffix(".")


def written() -> str:
    """The map, from the first heading of a rank on."""
    tables = ranks()
    rows: dict[int, dict[tuple[float, str], list[str]]] = {rank: {} for rank in RANKS}
    for path in files():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        rank = 10.0 if module == "regard" else tables.rank(module)
        folder = f"{path.parent.relative_to(ROOT).as_posix()}/"
        # Single modules of the package come before the packages of their rank.
        place = (rank if folder != "src/regard/" else float(int(rank)), folder)
        lines = rows[int(rank)].setdefault(place, [])
        if path.name != "__init__.py" or folder == "src/regard/":
            star = "* " if tables.needs_torch(module) and not _is_starred(folder, tables) else ""
            lines.append(f"- `{path.name}` {star}{first_sentence(path)}")
    text = []
    for rank, folders in rows.items():
        text.append(f"### Rank {rank}: {RANKS[rank]}\n")
        for (_, folder), lines in sorted(folders.items()):
            star = "* " if _is_starred(folder, tables) else ""
            note = NOTES.get(folder) or first_sentence(ROOT / folder / "__init__.py")
            text.append("\n".join([f"**`{folder}`** {star}{note}", *lines]) + "\n")
    return "\n".join(text)


def _is_starred(folder: str, tables: ModuleType) -> bool:
    """Whether a whole package needs PyTorch."""
    return tables.needs_torch(folder.removeprefix("src/").rstrip("/").replace("/", "."))


def main() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    start = text.index(START)
    end = text.index("\n## ", start)
    DESIGN.write_text(text[:start] + written() + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
