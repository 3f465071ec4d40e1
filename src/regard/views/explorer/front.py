"""The front end: the ES modules of `front/` joined into one script, and its style sheet.

Modules import one another by `import { name, … } from "./module.js"` and export by `export` before a declaration. They
are joined in the order of their dependencies, without these lines, so their top-level names must be unique. A mistake
in the modules raises a FrontError, which no input of a person can cause.
"""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

FOLDER = files("regard.views.explorer") / "front"
_IMPORT = re.compile(r'^import\s*(?P<what>[^;]*?)\s*from\s*"\./(?P<module>[\w.]+)";[ \t]*\n?', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_DECLARED = re.compile(
    r"^(?P<exported>export )?(?:async )?(?:function\*?|class|const|let|var)\s+(?P<names>[\w$]+|\{[^}]*\}|\[[^\]]*\])",
    re.MULTILINE,
)
_COMMENT = re.compile(r"/\*\*.*?\*/[ \t]*|^[ \t]*//[^\n]*\n", re.DOTALL | re.MULTILINE)
_INDENTATION = re.compile(r"^\s+", re.MULTILINE)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_SPACE = re.compile(r"\s*([{};,])\s*|(?<=[\w-]):\s+")
_OTHER = re.compile(r"^(?:import\b|export\s*[{*]).*", re.MULTILINE)


class FrontError(Exception):
    """A module of the front end cannot be joined with the others."""


def script(entry: str, folder: Traversable = FOLDER) -> str:
    """The module `entry` and all that it imports as one module without imports; only `export default` is left."""
    names: dict[str, str] = {}
    parts = []
    for module in modules_of(entry, folder):
        text = _read(folder, module)
        for name in _declared(text):
            if name in names:
                raise FrontError(f"{module}: {name} is also declared in {names[name]}")
            names[name] = module
        bare = _IMPORT.sub("", text)
        if left := _OTHER.search(bare):
            raise FrontError(f"{module}: cannot join {left[0]!r}")
        bare = _EXPORT.sub("", bare)
        parts.append(f"// --- {module}\n{_shipped(bare, module).strip()}\n")
    return "\n".join(parts)


def _shipped(text: str, module: str = "") -> str:
    """The module without JSDoc, lines of comments, empty lines and indentation, which are for its readers.

    Indentation inside of a template literal would matter, so none may span several lines.

    >>> _shipped('/** One. */\\nif (a) {\\n  b = /** @type {any} */ (1);\\n}\\n\\n// Two.\\nconst c = "//";\\n')
    'if (a) {\\nb = (1);\\n}\\nconst c = "//";\\n'
    """
    bare = _INDENTATION.sub("", _COMMENT.sub("", text))
    if long := next((line for line in bare.splitlines() if line.count("`") % 2), None):
        raise FrontError(f"{module}: a template literal spans lines: {long}")
    return bare


def modules_of(entry: str, folder: Traversable = FOLDER) -> list[str]:
    """The modules that `entry` needs, each after those that it imports; `entry` is the last."""
    done: list[str] = []
    open_: list[str] = []

    def visit(module: str) -> None:
        if module in done:
            return
        if module in open_:
            raise FrontError(f"modules import each other: {' → '.join([*open_, module])}")
        open_.append(module)
        for what, imported in _imports(_read(folder, module)):
            missing = what - _exports(_read(folder, imported))
            if missing:
                raise FrontError(f"{module}: {imported} does not export {', '.join(sorted(missing))}")
            visit(imported)
        done.append(open_.pop())

    visit(entry)
    return done


def style(folder: Traversable = FOLDER) -> str:
    """The style sheet. All rules apply inside of what `mount` draws only."""
    bare = _STYLE_COMMENT.sub("", _read(folder, "explorer.css"))
    return _STYLE_SPACE.sub(lambda found: found[1] or ":", bare).replace("}", "}\n").strip()


def template(folder: Traversable = FOLDER) -> str:
    """The HTML file with its placeholders."""
    return _read(folder, "page.html")


def _imports(text: str) -> list[tuple[set[str], str]]:
    found = []
    for match in _IMPORT.finditer(text):
        what = match["what"].strip()
        names = {name.strip() for name in what.strip("{}").split(",") if name.strip()}
        if not (what.startswith("{") and what.endswith("}")) or any(" " in name for name in names):
            raise FrontError(f"import names in braces, without `as`: {what}")
        found.append((names, match["module"]))
    return found


def _exports(text: str) -> set[str]:
    return {name for match in _DECLARED.finditer(text) if match["exported"] for name in _names(match["names"])}


def _declared(text: str) -> list[str]:
    return [name for match in _DECLARED.finditer(text) for name in _names(match["names"])]


def _names(declared: str) -> list[str]:
    """The names of a declaration; of a pattern such as `{ a, b: c }`, those that it binds."""
    if declared[0] not in "{[":
        return [declared]
    parts = (part.partition("=")[0].rpartition(":")[2].strip(" .") for part in declared[1:-1].split(","))
    return [part for part in parts if part]


def _read(folder: Traversable, name: str) -> str:
    place = folder / name
    if not place.is_file():
        raise FrontError(f"there is no module {name}")
    return place.read_text(encoding="utf-8")
