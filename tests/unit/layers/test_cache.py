"""Caches return all keys and values in order, after growth, reordering and cropping."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_same_bits

from regard.layers.cache import NO_CACHE, GrowingCache, KeysAndValues, StaticCache, WritePosition


def columns(start: int, count: int, samples: int = 2, width: int = 3) -> KeysAndValues:
    """Keys (B, 1, count, width) that encode sample and column; values are their negatives."""
    sample, column = torch.arange(samples)[:, None], torch.arange(start, start + count)
    k = (100 * sample + column).double()[:, None, :, None].expand(samples, 1, count, width)
    return k, -k


def read(keys_and_values: KeysAndValues) -> list[list[int]]:
    """The columns encoded in the keys, one list per sample; the values must agree."""
    k, v = keys_and_values
    assert_same_bits(v, -k)
    assert_same_bits(k, k[..., :1].expand_as(k))
    return k[:, 0, :, 0].long().tolist()


def test_no_cache_returns_the_newest() -> None:
    assert read(NO_CACHE.update(*columns(4, 2))) == [[4, 5], [104, 105]]


# --- growing ---------------------------------------------------------------------------------------------


@given(pieces=st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_growing_keeps_the_order(pieces: list[int]) -> None:
    cache, length = GrowingCache(), 0
    for count in pieces:
        found = read(cache.update(*columns(length, count)))
        length += count
        assert found == [list(range(length)), list(range(100, 100 + length))]
        assert cache.length == length


def test_growing_reallocates_rarely() -> None:
    """Doubling: 64 columns one by one cause at most 7 allocations."""
    cache, places = GrowingCache(), []
    for i in range(64):
        places.append(cache.update(*columns(i, 1))[0].data_ptr())
    moves = sum(one != other for one, other in pairwise(places))
    assert 1 <= moves <= 7


def test_growing_with_values_of_another_width() -> None:
    cache = GrowingCache()
    k, v = cache.update(columns(0, 2)[0], columns(0, 2, width=5)[1])
    assert (k.shape[-1], v.shape[-1]) == (3, 5)


def test_growing_crops_and_overwrites() -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 5))
    cache.crop(2)
    assert cache.length == 2
    assert read(cache.update(*columns(70, 2)))[0] == [0, 1, 70, 71]
    cache.crop(0)
    assert read(cache.update(*columns(7, 1)))[0] == [7]


@pytest.mark.parametrize("rows", [[1, 0], [0, 0, 1], [1], [1, 1]], ids=str)
def test_growing_selects_rows(rows: list[int]) -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 2))
    cache.select(torch.tensor(rows))
    found = read(cache.update(*columns(2, 1, samples=len(rows))))
    assert found == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]


def test_repeated_samples_are_independent() -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 1))
    cache.select(torch.tensor([0, 0]))
    assert [row[-1] for row in read(cache.update(*columns(5, 1)))] == [5, 105]


# --- static ----------------------------------------------------------------------------------------------


def test_static_writes_at_the_given_columns_at_a_fixed_address() -> None:
    position = WritePosition(torch.arange(0))
    cache = StaticCache(position, max_len=5)
    places = set()
    for start, count, expected in ((0, 2, [0, 1, 0, 0, 0]), (2, 1, [0, 1, 2, 0, 0]), (1, 3, [0, 1, 2, 3, 0])):
        position.columns = torch.arange(start, start + count)
        k, v = cache.update(*columns(start, count))
        assert read((k, v))[0] == expected
        places.add((k.data_ptr(), v.data_ptr()))
    assert len(places) == 1


@pytest.mark.parametrize("rows", [[1, 0], [0, 0], [1], [1, 0, 1]], ids=str)
def test_static_selects_rows_in_place_if_possible(rows: list[int]) -> None:
    position = WritePosition(torch.arange(0))
    cache = StaticCache(position, max_len=3)
    position.columns = torch.arange(2)
    before = cache.update(*columns(0, 2))[0].data_ptr()
    cache.select(torch.tensor(rows))
    position.columns = torch.tensor([2])
    k, v = cache.update(*columns(2, 1, samples=len(rows)))
    assert read((k, v)) == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]
    assert (k.data_ptr() == before) == (len(rows) == 2)


# --- both ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cache", [GrowingCache(), StaticCache(WritePosition(torch.arange(0)), 3)], ids=lambda cache: type(cache).__name__
)
def test_selecting_rows_of_an_empty_cache(cache: GrowingCache | StaticCache) -> None:
    cache.select(torch.tensor([0]))
