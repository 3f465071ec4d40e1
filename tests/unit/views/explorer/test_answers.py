"""The binary form of answers: what is written is read back, and half floats keep masked apart from small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from regard.views.explorer.answers import Answer, half_floats, read_answer, read_compressed

DTYPES = st.sampled_from([np.float64, np.float32, np.float16, np.int32, np.uint8])
NAMES = st.text("abcdef_", min_size=1, max_size=6)
ARRAYS = DTYPES.flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))


@given(st.dictionaries(NAMES, ARRAYS, max_size=4), st.dictionaries(NAMES, st.text() | st.integers(), max_size=3))
def test_an_answer_is_read_back_as_written(held: dict[str, np.ndarray], about: dict[str, str | int]) -> None:
    found = read_compressed(Answer(about, held).compressed())
    assert found.about == about
    assert list(found.arrays) == list(held)
    for name, array in held.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_arrays_start_at_multiples_of_eight() -> None:
    binary = Answer({"a": "字"}, {"one": np.ones(3, np.uint8), "two": np.array([1.5, 2.5])}).binary()
    assert read_answer(binary).arrays["two"].tolist() == [1.5, 2.5]
    assert binary.index(np.array([1.5, 2.5]).tobytes()) % 8 == 0


def test_big_endian_arrays_become_little_endian() -> None:
    (buffer,) = Answer({}, {"x": np.array([1, 2], ">i4")}).buffers()
    assert buffer == np.array([1, 2], "<i4").tobytes()


def test_a_dtype_that_the_front_end_cannot_read_is_refused() -> None:
    with pytest.raises(AssertionError, match="int64"):
        Answer({}, {"x": np.arange(3, dtype=np.int64)}).buffers()


def test_a_small_weight_is_not_masked() -> None:
    cells = half_floats(np.array([0.0, 1e-30, 0.25, np.nan]))
    assert cells[0] == 0
    assert cells[1] > 0
    assert cells[2] == 0.25
    assert np.isnan(cells[3])
