"""The front end: the ES modules of `front/` joined into one script, and its style sheet.

Modules import one another by `import { name, … } from "./module.js"` and export by `export` before a declaration. They
are joined in the order of their dependencies, without these lines, so their top-level names must be unique. A mistake
in the modules raises a FrontError, which no input of a person can cause.

Variables get short names, each name the same one wherever it stands and no two names the same one, so every use still
means what it meant. Properties, what no module declares, such as `document`, and most functions, which are named where
an error in the user's browser is reported, keep their names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise

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
BEFORE_BLOCK = (")", "else", "try", "catch", "finally", "do")
"""What stands before a brace that opens a block, not a value."""
SUPERFLUOUS = {(";", "}"), (",", "}"), (",", "]"), (",", ")")}
"""Signs that may be left out before others."""
KEYWORDS = set(
    re.findall(
        r"\w+",
        "as async await break case catch class const continue debugger default delete do else export extends false "
        "finally for from function get if import in instanceof let new null of return set static super switch this "
        "throw true try typeof undefined var void while with yield",
    )
)
NOT_PARAMETERS = ("if", "for", "while", "switch")
"""Words before brackets that hold no parameters, though a block follows."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"
SHORT = 2
"""The length of most short names; names that are no longer stay."""
COSTLY = 60
"""Bytes that the name of a function may cost."""
Tokens = list[tuple[str, str]]
"""Tokens of a module, each with the space before it."""
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_SPACE = re.compile(r"\s*([{};,>])\s*|(?<=[\w-]):\s+")
_OTHER = re.compile(r"^(?:import\b|export\s*[{*]).*", re.MULTILINE)


class FrontError(Exception):
    """A module of the front end cannot be joined with the others."""


def script(entry: str, folder: Traversable = FOLDER) -> str:
    """The module `entry` and all that it imports as one module without imports; only `export default` is left."""
    names: dict[str, str] = {}
    parts: list[Tokens] = []
    for module in modules_of(entry, folder):
        text = _read(folder, module)
        bare = _IMPORT.sub("", text)
        if left := _OTHER.search(bare):
            raise FrontError(f"{module}: cannot join {left[0]!r}")
        bare = _EXPORT.sub("", bare)
        part = _shortened(bare)
        for name in _top_names([token for token, _ in part]):
            if name in names:
                raise FrontError(f"{module}: {name} is also declared in {names[name]}")
            names[name] = module
        parts.append(part)
    short = _short_names(parts)
    return "".join(f"{_joined(_renamed(part, short))}\n" for part in parts)


def shipped(text: str) -> str:
    r"""The module without comments and without what is for its readers only; its names stay as they are.

    Declarations that follow each other become one, and constants variables: `make check-js` has seen that nothing
    assigns them. A line break stays where a statement may end without a semicolon.

    >>> shipped('/* One */\nif (a) {\n  b = /** @type {any} */ (1);\n}\n// Two.\nconst c = `// ${a}`;\nlet d = / +/;\n')
    'if(a){b=(1)}let c=`// ${a}`,d=/ +/;'
    >>> shipped("for (const a of b) c((d) => d * 0.5);")
    'for(let a of b)c(d=>d*.5);'
    """
    return _joined(_shortened(text))


def _joined(tokens: Tokens) -> str:
    parts = [""]
    for token, space in tokens:
        parts += [_space_between(parts[-1], token, space), token]
    return "".join(parts)


def _shortened(text: str) -> Tokens:
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


# --- short names ------------------------------------------------------------------------------------------


def _short_names(parts: Iterable[Tokens]) -> dict[str, str]:
    """New names of the variables that become shorter by it, the most frequent first."""
    plain: Counter[str] = Counter()
    beside: Counter[str] = Counter()
    bound: set[str] = set()
    functions: set[str] = set()
    for part in parts:
        for tokens in _with_templates(part):
            names = [token for token, _ in tokens]
            places = _places(names)
            plain.update(name for name, place in zip(names, places, strict=True) if place == "variable")
            beside.update(name for name, place in zip(names, places, strict=True) if place == "both")
            bound |= _bound(names, places)
            functions |= {name for last, name in pairwise(names) if last == "function"}
    # `{ name }` becomes `{ name: a }`, which is longer.
    saved = {name: plain[name] * (len(name) - SHORT) - beside[name] * (SHORT + 1) for name in bound | functions}
    chosen = sorted(
        (name for name in saved if saved[name] > (COSTLY if name in functions else 0)),
        key=lambda name: (-plain[name] - beside[name], name),
    )
    taken = (plain.keys() | beside.keys() | KEYWORDS) - set(chosen)
    free = (name for name in _all_names() if name not in taken)
    return dict(zip(chosen, free, strict=False))


def _renamed(tokens: Tokens, short: dict[str, str]) -> Tokens:
    """The same tokens with the new names."""
    found = []
    places = _places([token for token, _ in tokens])
    for (token, space), place in zip(tokens, places, strict=True):
        new = token
        if token.startswith("`"):
            parts = _template_parts(token)
            parts[1::2] = [_joined(_renamed(_shortened(code), short)) for code in parts[1::2]]
            new = "".join(parts)
        elif place:
            new = short.get(token, token)
            new = f"{token}:{new}" if place == "both" and new != token else new
        found.append((new, space))
    return found


def _with_templates(tokens: Tokens) -> Iterator[Tokens]:
    """The tokens, and those of every expression inside of a template literal."""
    yield tokens
    for token, _ in tokens:
        if token.startswith("`"):
            for code in _template_parts(token)[1::2]:
                yield from _with_templates(_shortened(code))


def _places(tokens: list[str]) -> list[str]:
    """What each token names: a "variable", "both" a property and a variable as in `{ a }`, or "" for neither."""
    places, open_ = [], [""]
    for at, token in enumerate(tokens):
        before, last, after = (tokens[i] if 0 <= i < len(tokens) else "" for i in (at - 2, at - 1, at + 1))
        place = ""
        if _is_word(token[:1]) and not token[0].isdigit() and token not in KEYWORDS:
            if last == "." and before != ".":
                pass  # a property; `...a` spreads a variable
            elif open_[-1] == "object" and last in ("{", ","):
                if after not in (",", "}", "=", ":", "("):
                    raise FrontError(f"cannot read {token} {after}: is it in an object or in a block?")
                place = "both" if after in (",", "}", "=") else ""
            else:
                place = "variable"
        elif token in OPENING:
            is_block = last in (*BEFORE_BLOCK, ";", "}") or (before, last) == ("=", ">")
            open_.append(token if token != "{" else "block" if is_block else "object")
        elif token in CLOSING:
            open_.pop()
        places.append(place)
    return places


def _bound(tokens: list[str], places: list[str]) -> set[str]:
    """The names that are declared, or to which something is assigned; what only the browser declares is not found."""
    padded = ["", *tokens, "", ""]
    found = set()
    open_: list[int] = []
    for at, place in enumerate(places):
        last, token, after, then = padded[at : at + 4]
        if place:
            is_declared = last in ("let", "class")
            is_set = after == "=" and then != "="
            ends = last == "," and after in (",", ";") and (not open_ or tokens[open_[-1]] == "{")
            if is_declared or is_set or ends:
                found.add(token)
        elif token in OPENING:
            open_.append(at)
        elif token in CLOSING:
            start = open_.pop()
            is_pattern = token != ")" and ((after == "=" and then not in ("=", ">")) or after == "of")
            has_body = (after, then) == ("=", ">") or (token == ")" and after == "{")
            if is_pattern or (has_body and padded[start] not in NOT_PARAMETERS):
                found |= _bound_in(tokens, places, range(start + 1, at))
    return found


def _bound_in(tokens: list[str], places: list[str], span: range) -> set[str]:
    """The names that a pattern, or a list of parameters, declares."""
    return {
        tokens[at]
        for at in span
        if places[at] and tokens[at - 1] in (*OPENING, ",", ".", ":") and tokens[at + 1] in (*CLOSING, ",", "=")
    }


def _all_names() -> Iterator[str]:
    """a, b, …, aa, ab, …"""
    yield from LETTERS
    for name in _all_names():
        yield from (name + letter for letter in LETTERS)


def _template_parts(text: str) -> list[str]:
    """A template literal as text, code, text, code, …, text.

    >>> _template_parts("`a${b}c${`${d}`}`")
    ['`a${', 'b', '}c${', '`${d}`', '}`']
    """
    parts, start, at = [], 0, 1
    while text[at] != "`":
        if not text.startswith("${", at):
            at += 2 if text[at] == "\\" else 1
            continue
        end = _end_of_code(text, at + 2)
        parts += [text[start : at + 2], text[at + 2 : end]]
        start = at = end
    return [*parts, text[start:]]


def _end_of_code(text: str, at: int) -> int:
    """The position of the brace that closes the code of a template literal."""
    depth = 0
    for token, _ in _tokens(text, at):
        depth += (token == "{") - (token == "}")
        if depth < 0:
            break
        at += len(token)
    return at


def _end_of_template(text: str, at: int) -> int:
    """The position after the template literal that begins at a position."""
    at += 1
    while text[at] != "`":
        if not text.startswith("${", at):
            at += 2 if text[at] == "\\" else 1
            continue
        at = _end_of_code(text, at + 2) + 1
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


def _top_names(tokens: list[str]) -> list[str]:
    """What a module declares outside of all functions."""
    places, found = _places(tokens), []
    depth = opened = 0
    declares = False
    for at, token in enumerate(tokens):
        last = tokens[at - 1] if at else ""
        if token in OPENING:
            depth += 1
            opened = at if depth == 1 else opened
        elif token in CLOSING:
            depth -= 1
            if not depth and declares and tokens[opened - 1] in ("let", ","):
                found += sorted(_bound_in(tokens, places, range(opened + 1, at)))
        elif not depth:
            declares = token == "let" or (declares and token != ";")
            is_name = places[at] and last in ("function", "*", "class", *(("let", ",") if declares else ()))
            found += [token] if is_name else []
    return found


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
