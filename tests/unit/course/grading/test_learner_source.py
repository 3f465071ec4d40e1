"""A learner's text: what is made plain in silence, and what gets a friendly hint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course.grading.learner_source import LONGEST, look, syntax_hint
from regard.messages import speaking


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
def test_marks_and_line_ends_are_made_plain(raw: str | bytes) -> None:
    assert look(raw).text == "x = 1\ny = 2\n"
    assert not look(raw).problem


def test_a_named_encoding_is_read() -> None:
    text = "# -*- coding: gbk -*-\nname = '注意力'\n"
    assert look(text.encode("gbk")).text == text


@pytest.mark.parametrize(
    ("raw", "line", "said"),
    [
        (b"", None, "empty"),
        (b"\xef\xbb\xbf \r\n", None, "empty"),
        ("x = 1\n\ny = '注意力'\n".encode("gbk"), 3, "UTF-8"),
        ("x = 1".encode("utf-16"), 1, "UTF-16"),
        (b"x = 1\n\0", 2, "NUL"),
        ("x = '\ud800'", 1, "UTF-8"),
        (b"# coding: rot13\n", 1, "'rot13'"),
        (b"\n# vim: set fileencoding=unicode_escape :\n", 1, "'unicode_escape'"),
        (b"x" * (LONGEST + 1), None, "1,000,000"),
        (b"x" * (4 * LONGEST + 1), None, "1,000,000"),
    ],
)
def test_what_is_no_text_is_told(raw: str | bytes, line: int | None, said: str) -> None:
    looked = look(raw)
    assert said in looked.problem
    assert looked.line == line
    assert looked.text == ""


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_anything_is_a_text_or_a_problem(raw: str | bytes) -> None:
    looked = look(raw)
    assert bool(looked.text) != bool(looked.problem)
    assert "\r" not in looked.text
    assert "\0" not in looked.text
    looked.text.encode("utf-8")


def compiled(text: str) -> tuple[str, str, int]:
    """What Python itself says about the text."""
    with pytest.raises(SyntaxError) as caught:
        compile(text, "your file", "exec")
    error = caught.value
    return type(error).__name__, error.msg, error.lineno or 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f（x): pass", "type ( instead"),
        ("def f(x）: pass", "type ) instead"),
        ("def f(x)： pass", "type : instead"),
        ("f(1， 2)", "type , instead"),
        ("x = 1；y = 2", "type ; instead"),
        ("x ＝ 1", "type = instead"),
        ("x = “a”", 'line 1 “ → " · line 1 ” → "'),
        ("x = ‘a’", "line 1 ‘ → ' · line 1 ’ → '"),
        ("x = １", "type 1 instead"),
        ("x = [1、2]", "type , instead"),
        ("x = 【1】", "line 1 【 → [ · line 1 】 → ]"),
        ("x = 2 − 1", "type - instead"),
        ("x = 2 × 3", "type * instead"),
        ("x =\u30001", "U+3000"),
        ("x =\u00a01", "U+00A0"),
        ("soft\u200bmax = 1", "U+200B"),
        ("x = 1 ÷ 2", "the sign ÷"),
        ("if x:\n    y\n\tz", "mixes tabs"),
        ("def f():\nreturn 1", "indentation of line 2"),
        ("def f():\n    x = 1\n   y = 2", "indentation of line 3"),
        ("if True\n    pass", "needs a colon"),
        ("x = (1, 2", "brackets of line 1"),
        ("x = 1)", "brackets of line 1"),
        ("x = 'a", "does not end"),
        ("x = = 1", "cannot read line 1: invalid syntax"),
    ],
)
def test_hints_name_what_to_type(text: str, said: str) -> None:
    assert said in syntax_hint(text, *compiled(text))


def test_hints_speak_chinese() -> None:
    with speaking("zh"):
        assert syntax_hint("f（1)", *compiled("f（1)")) == "第 1 行的 （ 是全角符号；请切换到英文输入法，改成 ("


def test_full_width_signs_are_named_together() -> None:
    text = 'x = 1\ndef f（a）：\n    """文档：（a）\n    ，"""\n    return a  # 注释，\n\ny = f(1， 2)\n'
    said = syntax_hint(text, *compiled(text))
    assert said.startswith("full-width signs: line 2 （ → ( · line 2 ） → ) · line 2 ： → : · and 1 more; ")
    with speaking("zh"):
        said = syntax_hint(text, *compiled(text))
        assert said.startswith("有全角符号：第 2 行 （ → ( · 第 2 行 ） → ) · 第 2 行 ： → : · 还有 1 处；")


def test_full_width_signs_in_strings_and_comments_are_nobodys_business() -> None:
    text = "x = '（，）' + # （\n = 1"
    assert "full-width" not in syntax_hint("x = '（，）' == = 1  # ：", "SyntaxError", "invalid syntax", 1)
    assert "full-width" not in syntax_hint(text, "SyntaxError", "invalid syntax", 1)
