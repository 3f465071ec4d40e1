"""Strict JSON: one type of error, with the place, for any invalid bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.files.json_and_toml import JsonError, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_json_round_trip(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "1:1"),
        (b'{"a": 1,\n "b" 2}', "2:6"),
        (b'{"a": {"b": 1, "b": 1}}', "b"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b"\xff", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"9" * 5000, "JSON"),
        (b"\xef\xbb\xbf{}", "1:1"),
    ],
    ids=["nothing", "colon", "key twice", "NaN", "infinity", "no UTF-8", "deep", "digits", "BOM"],
)
def test_error_gives_the_place(content: bytes, place: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse_json(content)
    assert str(caught.value) == place


@given(st.binary(max_size=20))
def test_any_bytes_give_a_value_or_json_error(content: bytes) -> None:
    try:
        parse_json(content)
    except JsonError as error:
        str(error)
