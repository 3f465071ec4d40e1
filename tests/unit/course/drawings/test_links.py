"""Links between words: long sentences in tight order, and one query as bars in the terminal."""

import re

import numpy as np

from regard.course.drawings.blocks import Drawing, Links
from regard.course.drawings.svg import to_svg
from regard.course.drawings.terminal import drawing_lines
from regard.messages import Message

WORDS = ["he", "went", "to", "the", "store", "and", "went", "home"]


def drawing_of(links: Links) -> Drawing:
    return Drawing(title=Message("Links", "连线"), blocks=(links,))


def width_of(tight: bool) -> int:
    weights = np.full((len(WORDS), len(WORDS)), 1 / len(WORDS))
    svg = to_svg(
        drawing_of(Links(queries=WORDS * 2, keys=WORDS * 2, weights=np.tile(weights, (2, 2)), tight=tight)), "en"
    )
    found = re.search(r'width="(\d+)"', svg)
    assert found is not None
    return int(found[1])


def test_tight_words_take_less_width() -> None:
    assert width_of(tight=True) < 0.85 * width_of(tight=False)


def test_one_query_becomes_bars_in_the_terminal_even_with_repeated_keys() -> None:
    weights = np.array([[0.5, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]])
    lines = drawing_lines(drawing_of(Links(queries=["he"], keys=WORDS, weights=weights)), "en", 60, None)
    plain = [line.plain for line in lines]
    assert "he" in plain
    assert [line.split()[0] for line in plain if "█" in line] == WORDS
    assert plain[3].endswith(" 0.50")
