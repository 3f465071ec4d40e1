"""The front end: the ES modules of `front/` joined into one script, and its style sheet.

Modules import one another by `import { name, … } from "./module.js"` and export by `export` before a declaration. They
are joined in the order of their dependencies, without these lines, so their top-level names must be unique. A mistake
in the modules raises a FrontError, which no input of a person can cause.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

FOLDER = files("regard.views.explorer") / "front"
_IMPORT = re.compile(r'^import\s*(?P<what>[^;]*?)\s*from\s*"\./(?P<module>[\w.]+)";[ \t]*\n?', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_DECLARED = re.compile(
    r"^(?P<exported>export )?(?:async )?(?:function\*?|class|const|let|var)\s+(?P<names>[\w$]+|\{[^}]*\}|\[[^\]]*\])",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*|/\*.*?\*/)+)
    | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<word>(?:[\w$]|[^\x00-\x7f])+)
    | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_BEFORE_PATTERN = re.compile(r"[(,=:\[!&|?{};>+*%<~^-]|return|typeof|case|of|in|")
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
BEFORE_BLOCK = (")", "else", "try", "finally", "do")
"""What stands before a brace that opens a block, not a value."""
SUPERFLUOUS = {(";", "}"), (",", "}"), (",", "]"), (",", ")")}
"""Signs that may be left out before others."""
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_SPACE = re.compile(r"\s*([{};,>])\s*|(?<=[\w-]):\s+")
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
        parts.append(f"{shipped(bare)}\n")
    return "".join(parts)


def shipped(text: str) -> str:
    r"""The module without comments and without what is for its readers only. Names stay as they are.

    Declarations that follow each other become one, and constants variables: `make check-js` has seen that nothing
    assigns them. A line break stays where a statement may end without a semicolon.

    >>> shipped('/* One */\nif (a) {\n  b = /** @type {any} */ (1);\n}\n// Two.\nconst c = `// ${a}`;\nlet d = / +/;\n')
    'if(a){b=(1)}let c=`// ${a}`,d=/ +/;'
    >>> shipped("for (const a of b) c((d) => d * 0.5);")
    'for(let a of b)c(d=>d*.5);'
    """
    parts = [""]
    for token, space in _shortened(text):
        parts += [_space_between(parts[-1], token, space), token]
    return "".join(parts)


def _shortened(text: str) -> list[tuple[str, str]]:
    """The tokens of a module that are shipped, each with the space before it."""
    found = [("", "")]
    brackets: list[tuple[bool, bool]] = []  # for each open one: is it a block, and was it opened by a declaration
    declares = ends_block = False
    space = ""
    for token, is_space in _tokens(text):
        if is_space:
            space = token
            continue
        if (found[-1][0], token) in SUPERFLUOUS:  # an empty statement, `while (x);`, would be a syntax error then
            found.pop()
        last, is_declaration = found[-1][0], token in ("const", "let")
        if is_declaration and declares and last == ";":
            found[-1] = (",", "")
            space = ""
            continue
        if is_declaration or last == ";":
            declares = is_declaration
        if (last, token) == ("=", ">") and _is_one_parameter(found[-5:-1]):
            found[-4:-1] = [(found[-3][0], found[-4][1])]
        if token == "." and last == "0":
            space = found.pop()[1]
        found.append(("let" if is_declaration else token, "" if ends_block else space))
        space, ends_block = "", False
        if token in OPENING:
            brackets.append((token == "{" and last in BEFORE_BLOCK, declares))
            declares = False
        elif token in CLOSING:
            ends_block, declares = brackets.pop()
    return found


def _is_one_parameter(found: list[tuple[str, str]]) -> bool:
    """Whether four tokens end with a name in brackets, without a word before that could call it."""
    before, opening, name, closing = (token for token, _ in [("", ""), *found][-4:])
    return opening == "(" and closing == ")" and _is_word(name[0]) and not _is_word(before[-1:])


def _space_between(last: str, token: str, space: str) -> str:
    """The part of the space between two tokens that has a meaning."""
    before, after = last[-1:], token[:1]
    if not space or not before:
        return ""
    if (_is_word(before) and _is_word(after)) or (before == after and after in "+-/"):
        return "\n" if "\n" in space else " "
    ends = (_is_word(before) or before in "\"'`)]}") and after not in ")]},;:.?&|=<>*%"
    return "\n" if ends and "\n" in space else ""


def _is_word(sign: str) -> bool:
    return bool(sign) and (sign.isalnum() or sign in "_$" or not sign.isascii())


def _tokens(text: str, at: int = 0) -> Iterator[tuple[str, bool]]:
    """The tokens of a module, and whether each is space or comments; a template literal is one token."""
    last = ""
    while match := _TOKEN.match(text, at):
        token = match[0]
        if token == "`":
            token = text[at : _end_of_template(text, at)]
        elif token == "/" and _BEFORE_PATTERN.fullmatch(last) and (pattern := _PATTERN.match(text, at)):
            token = pattern[0]
        is_space = match.lastgroup == "space"
        yield token, is_space
        at += len(token)
        last = last if is_space else token


def _end_of_template(text: str, at: int) -> int:
    """The position after the template literal that begins at a position."""
    at += 1
    while text[at] != "`":
        if not text.startswith("${", at):
            at += 2 if text[at] == "\\" else 1
            continue
        at, depth = at + 2, 1
        for token, _ in _tokens(text, at):
            depth += (token == "{") - (token == "}")
            at += len(token)
            if not depth:
                break
    return at + 1


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
    return _STYLE_SPACE.sub(lambda found: found[1] or ":", bare).replace(";}", "}").strip()


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
