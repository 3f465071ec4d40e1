"""The pieces of a lesson: nothing is lost, code and headings are kept apart."""

import pytest

from regard.course.lessons import Lesson, lessons
from regard.course.lessons.markdown import LessonPart, code_and_output, fence_indented_blocks, pieces
from regard.messages import LANGUAGES, Language

TEXT = """# 1 · Title

First.

## Heading
Text.

```text
# no heading
```

After.

```python
x = 1  # one

print(x)
# 1
```

![A picture](pictures/two-heads.en.svg)

```bash
regard see
```
"""


def test_each_piece_has_its_kind() -> None:
    assert list(pieces(TEXT)) == [
        LessonPart("prose", "# 1 · Title\n\nFirst."),
        LessonPart("prose", "## Heading\nText.\n\n```text\n# no heading\n```\n\nAfter."),
        LessonPart("python", "x = 1  # one\n\nprint(x)\n# 1"),
        LessonPart("picture", "A picture", "two-heads.en.svg"),
        LessonPart("bash", "regard see"),
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_no_line_of_a_lesson_is_lost(lesson: Lesson, lang: Language) -> None:
    def source(piece: LessonPart) -> str:
        match piece.kind:
            case "prose":
                return piece.text
            case "picture":
                return f"![{piece.text}](pictures/{piece.file})"
        return f"```{piece.kind}\n{piece.text}\n```"

    joined = "\n".join(map(source, pieces(lesson.text(lang))))
    assert [line for line in joined.splitlines() if line] == [line for line in lesson.text(lang).splitlines() if line]


@pytest.mark.parametrize(
    ("block", "code", "printed"),
    [
        ("print(1)\n# 1", "print(1)", "1\n"),
        ("print()\nprint(2)\n#\n# 2", "print()\nprint(2)", "\n2\n"),
        ("print([[1],\n       [2]])\n# [[1]\n#  [2]]", "print([[1],\n       [2]])", "[[1]\n [2]]\n"),
        ("x = 1  # a comment", "x = 1  # a comment", ""),
    ],
)
def test_comments_on_their_own_lines_are_the_output(block: str, code: str, printed: str) -> None:
    assert code_and_output(block) == (code, printed)


def test_indented_blocks_of_a_task_are_fenced() -> None:
    task = "\nWrite\n\n    f(n) -> float\n\n- n is large;\n  at least 1.\n   \n"
    task += "    >>> f(1)\n    array([[1.],\n           [2.]])\n"
    assert fence_indented_blocks(task) == (
        "Write\n\n```text\nf(n) -> float\n```\n\n- n is large;\n  at least 1.\n\n"
        "```python\n>>> f(1)\narray([[1.],\n       [2.]])\n```"
    )
