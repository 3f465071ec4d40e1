"""Numbers of a text that its translation lacks. A small model drops digits of long numbers, and that must be said.

A number in the translation may be written in digits, in Chinese characters or in both: 3, 三, 100000, 10万.
"""

import re
import unicodedata
from collections import Counter
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DIGITS = {
    sign: value
    for value, signs in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"))
    for sign in signs
}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_GREAT = {"万": 10**4, "亿": 10**8}
_CHINESE = re.compile(rf"[{''.join(_DIGITS)}{''.join(_UNITS)}{''.join(_GREAT)}]+")
# Begun only at the first digit, and never tried again with fewer: a million digits must not take a million tries.
_MIXED = re.compile(r"(?<!\d)(\d++(?:\.\d++)?+)([十百千万亿]+)")
LONGEST = 40
"""Digits that are compared as a value; longer numbers as they are written."""


def lost_numbers(text: str, output: str) -> list[str]:
    """The numbers of a text, as they stand there, that are not in its translation.

    >>> lost_numbers("Call 12345 at 10:45", "125在10点45分打电话")
    ['12345']
    >>> lost_numbers("3 cats and 100,000 dogs", "三只猫和10万只狗")
    []
    """
    there = _values(output)
    lost = []
    for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)):
        value = _value(number)
        if there[value]:
            there[value] -= 1
        elif not _in_parts(number, there):
            lost.append(number)
    return lost


def _in_parts(number: str, there: "Counter[object]") -> bool:
    """Whether each part of 3.30 or 1,5 stands there by itself: a time, a list; then these are taken."""
    parts = [_value(part) for part in re.split(r"[.,]", number)]
    if len(parts) < 2 or any(there[part] < count for part, count in Counter(parts).items()):
        return False
    there.subtract(parts)
    return True


def _value(number: str) -> object:
    """The value of a number in digits: 1,000 is 1000, and 3.50 is 3.5."""
    plain = number.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number) else number
    try:
        return Decimal(plain).normalize() if len(plain) <= LONGEST else plain
    except InvalidOperation:
        return plain


def _values(output: str) -> "Counter[object]":
    """Every number in a translation, in whichever way it is written. A number may be read in several ways."""
    plain = unicodedata.normalize("NFKC", output)
    found: Counter[object] = Counter(_value(number) for number in _NUMBER.findall(plain))
    for number, units in _MIXED.findall(plain):
        value = Decimal(number) if len(number) <= LONGEST else Decimal(0)
        for unit in units:
            value *= (_UNITS | _GREAT)[unit]
        found[value.normalize()] += 1
    for written in _CHINESE.findall(plain):
        found.update(_chinese(written[:LONGEST]))
    return found


def _chinese(written: str) -> list[object]:
    """The values that Chinese characters may write: 二〇二四 digit by digit, 一百零五 by units, 十 also within 十一.

    >>> sorted(_chinese("二十三")), sorted(_chinese("二〇二四"))
    ([Decimal('23')], [Decimal('2024')])
    """
    if all(sign in _DIGITS for sign in written):
        values = [int("".join(str(_DIGITS[sign]) for sign in written))]
        # 三四 is also "three or four".
        values += [_DIGITS[sign] for sign in written] if 1 < len(written) < 4 else []
    else:
        total = part = 0
        digit: int | None = None
        for sign in written:
            if sign in _DIGITS:
                digit = _DIGITS[sign]
            elif sign in _UNITS:
                part += (1 if digit is None else digit) * _UNITS[sign]
                digit = None
            else:
                section, great = part + (digit or 0), _GREAT[sign]
                # 一亿零五万: 万 counts what stands after 亿 alone.
                total = total + section * great if total >= 10**8 > great else (total + section) * great
                part, digit = 0, None
        values = [total + part + (digit or 0)]
    return [Decimal(value).normalize() for value in values]
