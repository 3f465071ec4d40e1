"""Caches: what was put in comes out, in order, whatever was grown, reordered or forgotten in between."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_same_bits

from regard.layers.cache import UNCACHED, Growing, KeysAndValues, Place, Static


def columns(start: int, count: int, samples: int = 2, width: int = 3) -> KeysAndValues:
    """Keys (B, 1, count, width) that say their sample and column; values are their negatives."""
    sample, column = torch.arange(samples)[:, None], torch.arange(start, start + count)
    k = (100 * sample + column).double()[:, None, :, None].expand(samples, 1, count, width)
    return k, -k


def read(keys_and_values: KeysAndValues) -> list[list[int]]:
    """What the keys say, one list per sample; the values must say the same."""
    k, v = keys_and_values
    assert_same_bits(v, -k)
    assert_same_bits(k, k[..., :1].expand_as(k))
    return k[:, 0, :, 0].long().tolist()


def test_uncached_is_what_is_newest() -> None:
    assert read(UNCACHED.extended(*columns(4, 2))) == [[4, 5], [104, 105]]


# --- growing ---------------------------------------------------------------------------------------------


@given(pieces=st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_growing_holds_all_in_order(pieces: list[int]) -> None:
    cache, length = Growing(), 0
    for count in pieces:
        found = read(cache.extended(*columns(length, count)))
        length += count
        assert found == [list(range(length)), list(range(100, 100 + length))]
        assert cache.length == length


def test_growing_makes_room_seldom() -> None:
    """Doubling: 64 columns one by one move at most 7 times."""
    cache, places = Growing(), []
    for i in range(64):
        places.append(cache.extended(*columns(i, 1))[0].data_ptr())
    moves = sum(one != other for one, other in pairwise(places))
    assert 1 <= moves <= 7


def test_growing_takes_values_of_another_width() -> None:
    cache = Growing()
    k, v = cache.extended(columns(0, 2)[0], columns(0, 2, width=5)[1])
    assert (k.shape[-1], v.shape[-1]) == (3, 5)


def test_growing_forgets_and_writes_over() -> None:
    cache = Growing()
    cache.extended(*columns(0, 5))
    cache.crop(2)
    assert cache.length == 2
    assert read(cache.extended(*columns(70, 2)))[0] == [0, 1, 70, 71]
    cache.crop(0)
    assert read(cache.extended(*columns(7, 1)))[0] == [7]


@pytest.mark.parametrize("rows", [[1, 0], [0, 0, 1], [1], [1, 1]], ids=str)
def test_growing_reorders_repeats_and_drops(rows: list[int]) -> None:
    cache = Growing()
    cache.extended(*columns(0, 2))
    cache.select(torch.tensor(rows))
    found = read(cache.extended(*columns(2, 1, samples=len(rows))))
    assert found == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]


def test_a_repeated_sample_goes_its_own_way() -> None:
    cache = Growing()
    cache.extended(*columns(0, 1))
    cache.select(torch.tensor([0, 0]))
    assert [row[-1] for row in read(cache.extended(*columns(5, 1)))] == [5, 105]


# --- static ----------------------------------------------------------------------------------------------


def test_static_writes_where_it_is_told_and_never_moves() -> None:
    pen = Place(torch.arange(0))
    cache = Static(pen, max_len=5)
    places = set()
    for start, count, expected in ((0, 2, [0, 1, 0, 0, 0]), (2, 1, [0, 1, 2, 0, 0]), (1, 3, [0, 1, 2, 3, 0])):
        pen.columns = torch.arange(start, start + count)
        k, v = cache.extended(*columns(start, count))
        assert read((k, v))[0] == expected
        places.add((k.data_ptr(), v.data_ptr()))
    assert len(places) == 1


@pytest.mark.parametrize("rows", [[1, 0], [0, 0], [1], [1, 0, 1]], ids=str)
def test_static_reorders_in_place_where_it_can(rows: list[int]) -> None:
    pen = Place(torch.arange(0))
    cache = Static(pen, max_len=3)
    pen.columns = torch.arange(2)
    before = cache.extended(*columns(0, 2))[0].data_ptr()
    cache.select(torch.tensor(rows))
    pen.columns = torch.tensor([2])
    k, v = cache.extended(*columns(2, 1, samples=len(rows)))
    assert read((k, v)) == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]
    assert (k.data_ptr() == before) == (len(rows) == 2)


# --- kept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cache", [Growing(), Static(Place(torch.arange(0)), 3)], ids=lambda cache: type(cache).__name__
)
def test_reordering_nothing_is_nothing(cache: Growing | Static) -> None:
    cache.select(torch.tensor([0]))
