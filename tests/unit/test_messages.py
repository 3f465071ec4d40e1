"""Untrusted text: control characters become visible, and nothing is hidden.

Every message exists in English and Chinese, with the same values and the punctuation of its language.
"""

import ast
import json
import re
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError, FileError
from regard.messages import (
    LANGUAGES,
    Listed,
    Message,
    catalogue,
    escaped_json,
    is_control,
    language,
    one_line,
    printable,
    say,
    use_language,
)

CONTROLS = (
    "\x00\x07\x08\x0b\x0c\r\x0e\x1b\x1c\x7f\x84\x85\x90\x9b\x9d\u061c\u200b\u200e\u202e\u2028\u2029\u2066\ufeff\ud800"
)
ANY_TEXT = st.text(st.characters(categories=None, codec=None) | st.sampled_from(CONTROLS + "\n\t注👨\u200d👩é"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 注意 é 👨\u200d👩", "plain 注意 é 👨\u200d👩"),
        ("lines\n\tand tabs\r\nstay", "lines\n\tand tabs\nstay"),
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("done\rfake", "done␍fake"),
        ("\x9b31m\x9d0;t\x9c", "⟨9B⟩31m⟨9D⟩0;t⟨9C⟩"),
        ("a\x08b\x00c\x7f", "a␈b␀c␡"),
        ("\u202egpj.exe\u2069", "⟨202E⟩gpj.exe⟨2069⟩"),
        ("\ud800", "⟨D800⟩"),
    ],
)
def test_control_characters_are_shown_as_signs(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_no_control_character_remains(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    shown.encode()
    assert not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in shown if sign not in "\n\t")
    assert not any(
        unicodedata.bidirectional(sign) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for sign in shown
    )
    assert "\n" not in one_line(text)


@given(ANY_TEXT)
def test_escaped_json_has_the_same_content(text: str) -> None:
    written = escaped_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(written) == {text: [text]}
    assert not any(map(is_control, written))


def test_values_in_messages_are_printable() -> None:
    name = "a\x1b]0;x\x07\u202e\x9b"
    for value in (name, FileError("file-absent", path=name), Listed([name, 1]), OSError(2, "no", name)):
        for lang in ("en", "zh"):
            assert not any(map(is_control, say("model-config", lang, path=name, reason=value)))
    assert not any(map(is_control, str(FileError("file-absent", path=name))))


SOURCE = Path(__file__).parents[2] / "src"
CATALOGUE = catalogue()

CJK = "\u3400-\u9fff"
# Code in a message keeps its own punctuation: {values}, anything in quotes or backticks, (T, S), f(x), a=b.
CODE = re.compile(r"\{[^{}]*\}|`[^`]*`|'[^']*'|\"[^\"]*\"|[\w.]*\([^()（）]*\)|[\w.]+\[[^\[\]]*\]")
HALF_WIDTH = re.compile(rf"[{CJK}][,;:!?]|[,;:] ?[{CJK}]|[!?][{CJK}]|[{CJK}]\.(?!\w)|[（，。；：、）][,;:!?]")


def fields(sentence: str) -> list[tuple[str, str | None, str | None]]:
    """The placeholders with their format and conversion."""
    parsed = string.Formatter().parse(sentence)
    return sorted((name, spec, conversion) for _, name, spec, conversion in parsed if name is not None)


def check_all(find_fault: Callable[[Message], str | None]) -> None:
    """Check every message and report all faults at once."""
    wrong = [f"{key}: {fault}" for key, message in CATALOGUE.items() if (fault := find_fault(message))]
    assert not wrong, "\n".join(wrong)


def test_both_languages_have_the_same_placeholders() -> None:
    check_all(lambda message: f"{message}" if fields(message.en) != fields(message.zh) else None)


def test_placeholder_names_are_not_reserved() -> None:
    reserved = {"", "key", "self", "lang"}  # no name at all, or an argument of RegardError or say
    # Texts of the explorer are filled by its scripts.
    own = {name: message for name, message in CATALOGUE.items() if not name.startswith("explorer-")}
    found = {name: {field for field, _, _ in fields(message.en)} & reserved for name, message in own.items()}
    assert not {name: names for name, names in found.items() if names}


def test_no_language_is_missing_or_copied() -> None:
    def find_fault(message: Message) -> str | None:
        if not message.en.strip() or not message.zh.strip():
            return "empty text"
        if re.search(f"[{CJK}，。；：（）]", CODE.sub("", message.en)):
            return "Chinese in the English text"
        is_sentence = re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", CODE.sub("", message.en))
        return "no Chinese in the Chinese text" if is_sentence and not re.search(f"[{CJK}]", message.zh) else None

    check_all(find_fault)


def test_chinese_texts_use_chinese_punctuation() -> None:
    def find_fault(message: Message) -> str | None:
        bare = CODE.sub("〇", CODE.sub("〇", message.zh))
        found = HALF_WIDTH.search(bare)
        return None if found is None else f"half-width near {bare[max(0, found.start() - 8) : found.end() + 8]!r}"

    check_all(find_fault)


def test_keys_are_lower_case_with_hyphens() -> None:
    assert not [key for key in CATALOGUE if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key)]


# --- use of the messages ---------------------------------------------------------------------------------


def _is_part_of_a_key(part: ast.expr) -> bool:
    """Whether a constant part of an f-string can be part of a key and is long enough to identify one."""
    return isinstance(part, ast.Constant) and bool(re.fullmatch(r"-?[a-z0-9-]{3,}", str(part.value)))


def keys_in_source() -> tuple[set[str], list[re.Pattern[str]], dict[str, str]]:
    """All strings in the source outside of messages/; patterns of f-strings; keys passed to say, with their places."""
    strings: set[str] = set()
    patterns: list[re.Pattern[str]] = []
    used: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if SOURCE / "regard" / "messages" in path.parents and path.name != "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
            elif isinstance(node, ast.JoinedStr) and any(_is_part_of_a_key(part) for part in node.values):
                # say(f"step-{name}") uses every key that matches.
                parts = (re.escape(str(v.value)) if isinstance(v, ast.Constant) else r"[a-z0-9-]+" for v in node.values)
                patterns.append(re.compile("".join(parts)))
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
                if called == "say":
                    used[str(node.args[0].value)] = f"{path.relative_to(SOURCE)}:{node.lineno}"
    return strings, patterns, used


def keys_in_front_end() -> tuple[set[str], set[str]]:
    """Keys in the scripts of the explorer, which leave out their prefix: strings, and starts of template strings."""
    folder = SOURCE / "regard" / "views" / "explorer" / "front"
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.js"))
    # create("h3.class#key") makes an element with the text of a key.
    whole = re.findall(r"""["'`](?:[a-z0-9.-]+#)?([a-z0-9-]+)["'`]""", text)
    starts = re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)*-)\$\{", text)
    # A control for a name of the state has a text for each of its values.
    controls = " ".join(re.findall(r"(?:segments|chooser)\(explorer, ([^)]*)\)", text))
    starts += [f"{name}-" for name in re.findall(r'"([a-z-]+)"', controls)]
    return {f"explorer-{key}" for key in whole}, {f"explorer-{key}" for key in starts}


def test_every_key_in_the_source_has_a_message() -> None:
    _, _, used = keys_in_source()
    assert not {key: where for key, where in used.items() if key not in CATALOGUE}


def test_every_message_is_used() -> None:
    strings, patterns, _ = keys_in_source()
    in_front, beginnings = keys_in_front_end()
    strings |= in_front
    patterns += [re.compile(rf"{re.escape(start)}[a-z0-9-]+") for start in beginnings]
    unused = [key for key in CATALOGUE if key not in strings and not any(p.fullmatch(key) for p in patterns)]
    assert not unused, f"no code uses: {unused}"


# --- choosing a language ---------------------------------------------------------------------------------


@pytest.fixture
def no_language(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in ("REGARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("zh", "zh"),
        ("zh_CN.UTF-8", "zh"),
        ("zh-CN", "zh"),
        ("ZH", "zh"),
        ("zh_TW", "zh"),
        ("en_GB.UTF-8", "en"),
        ("C", "en"),
        ("C.UTF-8", "en"),
        ("de_DE", "en"),
        ("", "en"),
    ],
)
def test_language_from_the_environment(value: str, expected: str, no_language: pytest.MonkeyPatch) -> None:
    no_language.setenv("LANG", value)
    assert language() == expected


def test_precedence_of_the_variables(no_language: pytest.MonkeyPatch) -> None:
    assert language() == "en"
    no_language.setenv("LANG", "zh_CN")
    assert language() == "zh"
    no_language.setenv("LC_MESSAGES", "en_US")
    assert language() == "en"
    no_language.setenv("LC_ALL", "zh_CN")
    assert language() == "zh"
    no_language.setenv("REGARD_LANG", "en")
    assert language() == "en"
    with use_language("zh"):
        assert language() == "zh"


def test_language_is_restored_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), use_language("zh"), use_language("en"):
        raise ZeroDivisionError
    assert language() == "en"


def test_say_fills_in_and_chooses() -> None:
    for lang in LANGUAGES:
        assert "torch" in say("missing-package", lang, package="torch", extra="torch", what="x")
    with use_language("zh"):
        assert say("mask-truth") == CATALOGUE["mask-truth"].zh
    assert say("mask-truth") == CATALOGUE["mask-truth"].en


def test_punctuation_check_finds_mistakes() -> None:
    for wrong in ("形状不对,请检查", "错误: 形状", "好;坏", "你好.", "（…, 位置）"):
        assert HALF_WIDTH.search(CODE.sub("〇", wrong)), wrong
    for right in ("形状 (B, T, S)，请检查", "请写 mask[:, None]。", "形状：{shape}；完", "用 Mask.window(1, 2)，好"):
        assert not HALF_WIDTH.search(CODE.sub("〇", right)), right


def test_message_requires_both_languages() -> None:
    with pytest.raises(TypeError):
        Message(en="only one")  # type: ignore[call-arg]


def test_lists_are_joined_as_in_the_language() -> None:
    error = ArgumentError("unknown-choice", name="kind", value="x", choices=Listed(["self", "cross"]))
    assert error.text("en").endswith("choose one of: self, cross")
    assert error.text("zh").endswith("可选：self、cross")


def test_long_lists_are_shortened() -> None:
    assert Listed.few(range(3), 3) == (0, 1, 2)
    assert Listed.few(range(4), 3) == (0, 1, 2, "…")
    assert not Listed.few([])


def test_no_message_gets_a_joined_list() -> None:
    """Names joined with a comma are correct in English only."""
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and re.search(r"(Error|\bsay)$", ast.unparse(node.func)):
                given = (one.value for one in node.keywords if isinstance(one.value, ast.Call))
                wrong += [f"{path.name}:{node.lineno}" for one in given if ast.unparse(one.func) == "', '.join"]
    assert not wrong
