"""Cost of regular expressions: those of public models are linear by analysis, ambiguous ones are refused."""

from collections.abc import Callable

import pytest
from tokenizers import Regex, normalizers

import hostile_tokenizers as files
from regard.text import regex_cost
from regard.text.regex_cost import Cost, search_cost, shortest_match
from regard.text.regex_parse import PatternError, SlowPatternError, parse


def search(regex: str) -> Callable[[str], str]:
    return normalizers.Replace(Regex(regex), "").normalize_str


PUBLIC = sorted(
    {pattern for name in files.GOOD_PATTERNS for pattern in files.GOOD_PATTERNS[name] if "}+|" not in pattern}
)


@pytest.mark.parametrize("pattern", PUBLIC)
def test_patterns_of_public_models_are_linear_by_analysis(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_cost, "KNOWN_PATTERNS", frozenset())
    assert search_cost(pattern, search) is Cost.LINEAR


@pytest.mark.parametrize("pattern", files.SLOW_PATTERNS)
def test_ambiguous_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(SlowPatternError):
        search_cost(pattern, search)


@pytest.mark.parametrize("pattern", files.UNSUPPORTED_PATTERNS)
def test_malformed_and_unsupported_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        parse(pattern)


def test_an_escape_matches_one_character() -> None:
    for pattern in (
        r"\x{4e00}+",
        r"\u4e00+",
        r"\x41+",
        r"\p{^L}+",
        r"\P{L}+",
        r"[[:alpha:]_]+",
        r"\.",
        r"\0+",
        "(?m).+",
    ):
        assert search_cost(pattern, search) is Cost.LINEAR, pattern
        assert shortest_match(pattern) == 1


def test_flags_last_to_the_end_of_their_group() -> None:
    with pytest.raises(SlowPatternError):
        search_cost("(?i)(A|a)+!", search)
    assert search_cost("(?:(?i)A)|(A|a)+b?", search) is Cost.LINEAR
