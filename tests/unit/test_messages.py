"""English and Chinese are equals: every sentence in both, with the same values, each in its own punctuation."""

import ast
import re
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.errors import ArgumentError
from regard.messages import LANGUAGES, Listed, Words, catalogue, language, say, speaking

SOURCE = Path(__file__).parents[2] / "src"
CATALOGUE = catalogue()

CJK = "\u3400-\u9fff"
# What is code in a sentence keeps its own punctuation: {values}, anything in quotes or backticks, (T, S), f(x), a=b.
CODE = re.compile(r"\{[^{}]*\}|`[^`]*`|'[^']*'|\"[^\"]*\"|[\w.]*\([^()（）]*\)|[\w.]+\[[^\[\]]*\]")
HALF_WIDTH = re.compile(rf"[{CJK}][,;:!?]|[,;:] ?[{CJK}]|[!?][{CJK}]|[{CJK}]\.(?!\w)|[（，。；：、）][,;:!?]")


def fields(sentence: str) -> list[tuple[str, str | None, str | None]]:
    """The placeholders, with how they are written."""
    parsed = string.Formatter().parse(sentence)
    return sorted((name, spec, conversion) for _, name, spec, conversion in parsed if name is not None)


def every(judge: Callable[[Words], str | None]) -> None:
    """Judge every entry; all that is wrong is told at once."""
    wrong = [f"{key}: {fault}" for key, words in CATALOGUE.items() if (fault := judge(words))]
    assert not wrong, "\n".join(wrong)


def test_both_languages_say_the_same_values() -> None:
    every(lambda words: f"{words}" if fields(words.en) != fields(words.zh) else None)


def test_values_have_names_that_an_error_can_carry() -> None:
    taken = {"", "key", "self", "lang"}  # no name at all, or a name of RegardError's and say's own arguments
    every(lambda words: "; ".join(sorted({name for name, _, _ in fields(words.en)} & taken)))


def test_neither_language_is_missing_or_copied() -> None:
    def judge(words: Words) -> str | None:
        if not words.en.strip() or not words.zh.strip():
            return "nothing is said"
        if re.search(f"[{CJK}，。；：（）]", CODE.sub("", words.en)):
            return "Chinese in the English sentence"
        wordy = re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", CODE.sub("", words.en))
        return "no Chinese in the Chinese sentence" if wordy and not re.search(f"[{CJK}]", words.zh) else None

    every(judge)


def test_chinese_has_chinese_punctuation() -> None:
    def judge(words: Words) -> str | None:
        bare = CODE.sub("〇", CODE.sub("〇", words.zh))
        slip = HALF_WIDTH.search(bare)
        return None if slip is None else f"half-width near {bare[max(0, slip.start() - 8) : slip.end() + 8]!r}"

    every(judge)


def test_keys_are_written_one_way() -> None:
    assert not [key for key in CATALOGUE if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key)]


# --- who says what ---------------------------------------------------------------------------------------


def _tells(part: ast.expr) -> bool:
    """Whether a piece of an f-string can be a piece of a key, and long enough to mean one."""
    return isinstance(part, ast.Constant) and bool(re.fullmatch(r"-?[a-z0-9-]{3,}", str(part.value)))


def spoken() -> tuple[set[str], list[re.Pattern[str]], dict[str, str]]:
    """All strings in the source outside of words/; patterns of f-strings; keys given to say, with where."""
    strings: set[str] = set()
    patterns: list[re.Pattern[str]] = []
    said: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if SOURCE / "regard" / "words" in path.parents and path.name != "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
            elif isinstance(node, ast.JoinedStr) and any(_tells(part) for part in node.values):
                # A key put together: say(f"step-{name}") speaks for every key that begins so.
                parts = (re.escape(str(v.value)) if isinstance(v, ast.Constant) else r"[a-z0-9-]+" for v in node.values)
                patterns.append(re.compile("".join(parts)))
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
                if called == "say":
                    said[str(node.args[0].value)] = f"{path.relative_to(SOURCE)}:{node.lineno}"
    return strings, patterns, said


def test_everything_that_is_said_is_in_the_catalogue() -> None:
    _, _, said = spoken()
    assert not {key: where for key, where in said.items() if key not in CATALOGUE}


def test_no_sentence_is_left_unsaid() -> None:
    strings, patterns, _ = spoken()
    unsaid = [key for key in CATALOGUE if key not in strings and not any(p.fullmatch(key) for p in patterns)]
    assert not unsaid, f"nobody says: {unsaid}"


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
def test_the_environment_decides(value: str, expected: str, no_language: pytest.MonkeyPatch) -> None:
    no_language.setenv("LANG", value)
    assert language() == expected


def test_the_order_of_the_variables(no_language: pytest.MonkeyPatch) -> None:
    assert language() == "en"
    no_language.setenv("LANG", "zh_CN")
    assert language() == "zh"
    no_language.setenv("LC_MESSAGES", "en_US")
    assert language() == "en"
    no_language.setenv("LC_ALL", "zh_CN")
    assert language() == "zh"
    no_language.setenv("REGARD_LANG", "en")
    assert language() == "en"
    with speaking("zh"):
        assert language() == "zh"


def test_speaking_ends_with_its_block_even_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), speaking("zh"), speaking("en"):
        raise ZeroDivisionError
    assert language() == "en"


def test_say_fills_in_and_chooses() -> None:
    for lang in LANGUAGES:
        assert "torch" in say("missing-package", lang, package="torch", extra="torch", what="x")
    with speaking("zh"):
        assert say("mask-truth") == CATALOGUE["mask-truth"].zh
    assert say("mask-truth") == CATALOGUE["mask-truth"].en


def test_the_punctuation_test_can_fail() -> None:
    for wrong in ("形状不对,请检查", "错误: 形状", "好;坏", "你好.", "（…, 位置）"):
        assert HALF_WIDTH.search(CODE.sub("〇", wrong)), wrong
    for right in ("形状 (B, T, S)，请检查", "请写 mask[:, None]。", "形状：{shape}；完", "用 Mask.window(1, 2)，好"):
        assert not HALF_WIDTH.search(CODE.sub("〇", right)), right


def test_words_need_both_languages() -> None:
    with pytest.raises(TypeError):
        Words(en="only one")  # type: ignore[call-arg]


def test_what_is_listed_is_joined_as_the_language_does() -> None:
    error = ArgumentError("unknown-choice", name="kind", value="x", choices=Listed(["self", "cross"]))
    assert error.text("en").endswith("choose one of: self, cross")
    assert error.text("zh").endswith("可选：self、cross")


def test_of_many_a_few_are_listed() -> None:
    assert Listed.few(range(3), 3) == (0, 1, 2)
    assert Listed.few(range(4), 3) == (0, 1, 2, "…")
    assert not Listed.few([])


def test_no_sentence_is_given_a_list_that_is_already_joined() -> None:
    """A comma between two names is right in one language only."""
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and re.search(r"(Error|\bsay)$", ast.unparse(node.func)):
                given = (one.value for one in node.keywords if isinstance(one.value, ast.Call))
                wrong += [f"{path.name}:{node.lineno}" for one in given if ast.unparse(one.func) == "', '.join"]
    assert not wrong
