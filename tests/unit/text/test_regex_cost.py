"""How long regular expressions search: those of public models are linear, by analysis too; ambiguous ones refused."""

import pytest
from tokenizers import Regex, normalizers

import hostile_tokenizers as files
from regard.text import regex_cost
from regard.text.regex_cost import Cost, judge, shortest
from regard.text.regex_parse import PatternError, SlowPatternError, parse


def search(regex: str):
    return normalizers.Replace(Regex(regex), "").normalize_str


PUBLIC = sorted(
    {pattern for name in files.GOOD_PATTERNS for pattern in files.GOOD_PATTERNS[name] if "}+|" not in pattern}
)


@pytest.mark.parametrize("pattern", PUBLIC)
def test_patterns_of_public_models_are_linear_without_being_known(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_cost, "KNOWN", frozenset())
    assert judge(pattern, search) is Cost.LINEAR


@pytest.mark.parametrize("pattern", files.SLOW_PATTERNS)
def test_ambiguous_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(SlowPatternError):
        judge(pattern, search)


@pytest.mark.parametrize("pattern", files.UNSUPPORTED_PATTERNS)
def test_what_is_malformed_or_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        parse(pattern)


def test_an_escape_names_one_character() -> None:
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
        assert judge(pattern, search) is Cost.LINEAR, pattern
        assert shortest(pattern) == 1


def test_switches_last_to_the_end_of_their_group() -> None:
    with pytest.raises(SlowPatternError):
        judge("(?i)(A|a)+!", search)
    assert judge("(?:(?i)A)|(A|a)+b?", search) is Cost.LINEAR
