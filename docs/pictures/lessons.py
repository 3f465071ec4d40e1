"""python docs/pictures/lessons.py [NAME ...]: draws the pictures of the lessons as SVG files, in both languages.

`tests/unit/course/drawings/test_lesson_drawings.py` compares the files with what this writes.
"""

import sys
from pathlib import Path

from regard.course.drawings import drawing, drawings
from regard.course.drawings.svg import to_svg
from regard.messages import LANGUAGES

FOLDER = Path(__file__).parents[2] / "src/regard/course/lessons/pictures"


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or drawings():
        for lang in LANGUAGES:
            (FOLDER / f"{name}.{lang}.svg").write_text(to_svg(drawing(name), lang), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
