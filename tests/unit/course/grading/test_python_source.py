"""Reading a learner's source: silent normalisation, and hints for syntax errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course.grading.python_source import LONGEST_SOURCE, read_source, syntax_hint
from regard.messages import use_language


@pytest.mark.parametrize(
    "raw",
    [
        b"x = 1\ny = 2\n",
        b"\xef\xbb\xbfx = 1\ny = 2\n",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        "\ufeffx = 1\r\ny = 2\n",
        "x = 1\ny = 2\n",
    ],
)
def test_byte_order_marks_and_line_endings_are_normalised(raw: str | bytes) -> None:
    assert read_source(raw).text == "x = 1\ny = 2\n"
    assert not read_source(raw).problem


def test_a_named_encoding_is_read() -> None:
    text = "# -*- coding: gbk -*-\nname = '注意力'\n"
    assert read_source(text.encode("gbk")).text == text


@pytest.mark.parametrize(
    ("raw", "line", "hint"),
    [
        (b"", None, "empty"),
        (b"\xef\xbb\xbf \r\n", None, "empty"),
        ("x = 1\n\ny = '注意力'\n".encode("gbk"), 3, "UTF-8"),
        ("x = 1".encode("utf-16"), 1, "UTF-16"),
        (b"x = 1\n\0", 2, "NUL"),
        ("x = '\ud800'", 1, "UTF-8"),
        (b"# coding: rot13\n", 1, "'rot13'"),
        (b"\n# vim: set fileencoding=unicode_escape :\n", 1, "'unicode_escape'"),
        (b"x" * (LONGEST_SOURCE + 1), None, "1,000,000"),
        (b"x" * (4 * LONGEST_SOURCE + 1), None, "1,000,000"),
    ],
)
def test_input_that_is_not_text_is_reported(raw: str | bytes, line: int | None, hint: str) -> None:
    source = read_source(raw)
    assert hint in source.problem
    assert source.line == line
    assert source.text == ""


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_input_gives_a_text_or_a_problem(raw: str | bytes) -> None:
    source = read_source(raw)
    assert bool(source.text) != bool(source.problem)
    assert "\r" not in source.text
    assert "\0" not in source.text
    source.text.encode("utf-8")


def compiled(text: str) -> tuple[str, str, int]:
    """Python's own error for the text."""
    with pytest.raises(SyntaxError) as caught:
        compile(text, "your file", "exec")
    error = caught.value
    return type(error).__name__, error.msg, error.lineno or 0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("def f（x): pass", "English and type ("),
        ("def f(x）: pass", "English and type )"),
        ("def f(x)： pass", "English and type :"),
        ("f(1， 2)", "English and type ,"),
        ("x = 1；y = 2", "English and type ;"),
        ("x ＝ 1", "English and type ="),
        ("x = “a”", 'line 1 “ → " · line 1 ” → "'),
        ("x = ‘a’", "line 1 ‘ → ' · line 1 ’ → '"),
        ("x = １", "English and type 1"),
        ("x = [1、2]", "English and type ,"),
        ("x = 【1】", "line 1 【 → [ · line 1 】 → ]"),
        ("x = 2 − 1", "English and type -"),
        ("x = 2 × 3", "English and type *"),
        ("x =\u30001", "U+3000"),
        ("x =\u00a01", "U+00A0"),
        ("soft\u200bmax = 1", "U+200B"),
        ("x = 1 ÷ 2", "the character ÷"),
        ("if x:\n    y\n\tz", "mixes tabs"),
        ("def f():\nreturn 1", "indentation of line 2"),
        ("def f():\n    x = 1\n   y = 2", "indentation of line 3"),
        ("if True\n    pass", "needs a colon"),
        ("x = (1, 2", "brackets of line 1"),
        ("x = 1)", "brackets of line 1"),
        ("x = 'a", "is not closed"),
        ("%matplotlib inline\nx = 1", "line 1 begins with % or !"),
        ("x = 1\n!pip install numpy", "line 2 begins with % or !"),
        ("x = = 1", "cannot parse line 1: invalid syntax"),
    ],
)
def test_hints_name_what_to_type(text: str, hint: str) -> None:
    assert hint in syntax_hint(text, *compiled(text))


def test_hints_are_available_in_chinese() -> None:
    with use_language("zh"):
        assert syntax_hint("f（1)", *compiled("f（1)")) == "第 1 行的 （ 是全角字符；请切换到英文输入法，改成 ("


def test_full_width_characters_are_listed_together() -> None:
    text = 'x = 1\ndef f（a）：\n    """文档：（a）\n    ，"""\n    return a  # 注释，\n\ny = f(1， 2)\n'
    hint = syntax_hint(text, *compiled(text))
    assert hint.startswith("full-width characters: line 2 （ → ( · line 2 ） → ) · line 2 ： → : · and 1 more; ")
    with use_language("zh"):
        hint = syntax_hint(text, *compiled(text))
        assert hint.startswith("有全角字符：第 2 行 （ → ( · 第 2 行 ） → ) · 第 2 行 ： → : · 还有 1 处；")


def test_full_width_characters_in_strings_and_comments_are_allowed() -> None:
    text = "x = '（，）' + # （\n = 1"
    assert "full-width" not in syntax_hint("x = '（，）' == = 1  # ：", "SyntaxError", "invalid syntax", 1)
    assert "full-width" not in syntax_hint(text, "SyntaxError", "invalid syntax", 1)
