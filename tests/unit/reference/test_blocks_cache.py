"""The NumPy cache, compared with a list of columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_same_bits

from regard.reference.blocks import Cache


def columns(rng: np.random.Generator, B: int, T: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((B, 2, T, 3)), rng.standard_normal((B, 2, T, 5))


@given(moves=st.lists(st.tuples(st.sampled_from(["read", "crop", "select"]), st.integers(0, 6)), max_size=12))
def test_it_equals_a_list_of_columns(moves: list[tuple[str, int]]) -> None:
    rng, cache = np.random.default_rng(0), Cache()
    whole_k, whole_v = columns(rng, 2, 0)
    for move, n in moves:
        if move == "read":
            k, v = columns(rng, len(whole_k), n + 1)
            whole_k, whole_v = np.concatenate((whole_k, k), 2), np.concatenate((whole_v, v), 2)
            found_k, found_v = cache.update(k, v)
            assert_same_bits(found_k, whole_k)
            assert_same_bits(found_v, whole_v)
        elif move == "select":
            rows = rng.integers(0, len(whole_k), 1 + n % 3).tolist()
            whole_k, whole_v = whole_k[rows], whole_v[rows]
            cache.select(rows)
        else:
            length = min(n, cache.length)
            whole_k, whole_v = whole_k[:, :, :length], whole_v[:, :, :length]
            cache.crop(length)
        assert cache.length == whole_k.shape[2]


def test_buffers_are_reallocated_rarely() -> None:
    cache, column, buffers = Cache(), np.zeros((1, 1, 1, 1)), set()
    for _ in range(1000):
        k, _ = cache.update(column, column)
        assert k.base is not None
        buffers.add(id(k.base))
    assert len(buffers) <= 12
