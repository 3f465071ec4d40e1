"""Numbers given as command-line options, parsed and checked: counts, --beams, non-negative numbers."""

import math

from regard.errors import ArgumentError

MOST_BEAMS = 256


def is_count(text: str) -> bool:
    """Whether it is a whole number of at most 18 digits: `int` refuses thousands of digits.

    >>> is_count("12"), is_count("-1"), is_count("9" * 5000)
    (True, False, False)
    """
    return text.isdecimal() and len(text) <= 18


def whole_number(option: str, text: str, least: int) -> int:
    """A whole number of at least `least`.

    >>> whole_number("--beams", "5", least=1)
    5
    """
    if not is_count(text) or int(text) < least:
        raise ArgumentError("count-wanted", name=option, least=least, value=text)
    return int(text)


def beam_count(text: str) -> int:
    """The value of --beams."""
    beams = whole_number("--beams", text, least=1)
    if beams > MOST_BEAMS:
        raise ArgumentError("translate-beams", found=text, most=MOST_BEAMS)
    return beams


def number_from_zero(option: str, text: str) -> float:
    """A finite number of at least 0.

    >>> number_from_zero("--temperature", "0.8"), number_from_zero("--temperature", "0")
    (0.8, 0.0)
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ArgumentError("cli-number-from-zero", option=option, found=text)
    return value
