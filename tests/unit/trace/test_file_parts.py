"""Packed arrays: round trip, precision, size, and the limit of the unpacked size."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from narrowing import present
from safetensors import safe_open
from safetensors.numpy import save_file

from regard import Mask, See, Trace, attend, read_trace
from regard.errors import FileError
from regard.exact_weights import WeightsArray
from regard.trace.file_parts import Packer, Unpacker, codes_of, weights_of

DTYPES = ["<f4", "<f8", "<f2", "<i8", "|u1", "|b1", ">f4"]


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=4, max_side=30))
    )
)
def test_packing_is_lossless(array: np.ndarray) -> None:
    stored, about = Packer().pack(array)
    if about is not None:
        stored = Unpacker(stored.nbytes).unpack(stored, json.loads(json.dumps(about)))
    np.testing.assert_array_equal(stored, array)
    assert stored.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


@given(st.floats(0, 1), st.sampled_from([np.float32, np.float64]))
def test_error_of_16_bit_weights(weight: float, dtype: Any) -> None:
    given_ = np.array([weight, 0.0, 1.0], dtype)
    back = weights_of(codes_of(given_), np.dtype(dtype))
    assert np.abs(back - given_).max() <= 1.6e-5 * max(1e-4, weight) ** 0.5 + 1e-9
    assert (back == 0).tolist() == (given_ == 0).tolist()
    assert back[2] == 1


def attention(H: int, T: int, E: int = 16, seed: int = 0, **options: Any) -> Any:
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, 1, H, T, E)).astype(np.float32)
    return attend(q, k, k, **options)[1]


@pytest.mark.parametrize(("qk", "causal", "most"), [(False, True, 0.28), (True, True, 0.5), (False, False, 0.5)])
def test_file_of_a_short_text_is_smaller_than_its_weights(tmp_path: Path, qk: bool, causal: bool, most: float) -> None:
    """Without packing, the file has all bytes of the weights, and more with q and k; causal weights are half zeros."""
    see, mask = See(qk=True), Mask.causal() if causal else None
    trace = Trace(attention(12, 100, mask=mask, see=see, seed=layer).named(f"h.{layer}.attn") for layer in range(3))
    trace.save(tmp_path / "t", qk=qk)
    assert (tmp_path / "t").stat().st_size < most * 4 * 3 * 12 * 100 * 100
    back = read_trace(tmp_path / "t")
    for found, wanted in zip(back, trace, strict=True):
        np.testing.assert_allclose(found.weights(), wanted.weights(), rtol=0, atol=1e-6 if qk else 1.6e-5)
        assert ((found.weights() == 0) == (wanted.weights() == 0)).all()
    np.testing.assert_allclose(back.measure("sink"), trace.measure("sink"), atol=2e-5)


def test_given_weights_are_stored_once(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(200), size=(1, 2, 200))
    Trace.from_weights(weights).save(tmp_path / "t", qk=True)
    assert (tmp_path / "t").stat().st_size < weights.nbytes
    np.testing.assert_array_equal(read_trace(tmp_path / "t")[0].weights(), weights)


def test_mask_is_stored_without_q_and_k(tmp_path: Path) -> None:
    """The mask shows padding; a visible key may have a weight of 0, too."""
    mask = Mask.causal() & Mask.padding(np.array([[0, 0, 1, 1, 1, 1]]))
    trace = Trace(attention(2, 6, mask=mask, see=See(qk=True)))
    trace.save(tmp_path / "t", qk=True)
    back = read_trace(tmp_path / "t")
    assert isinstance(back[0].exact, WeightsArray)
    assert back[0].exact.weights is back[0].map
    assert present(back[0].exact.known_mask).mask is not None
    np.testing.assert_allclose(back.measure("sink"), trace.measure("sink"), atol=1e-6)
    for pattern, score in trace.heads()[0].scores.items():
        assert back.heads()[0].scores[pattern].value == pytest.approx(score.value, abs=1e-6)
    back.save(tmp_path / "again", qk=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "t").read_bytes()


# --- hostile ----------------------------------------------------------------------------------------------


def changed(path: Path, change: Any) -> Path:
    """A good file with a packed map, changed by `change(about of the map, tensors)`."""
    Trace(attention(4, 40, see=See())).save(path)
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["regard"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    change(about["records"][0]["packed"]["map"], tensors)
    save_file(tensors, path, {"regard": json.dumps(about)})
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda about, tensors: about.update(dtype="|O"),
        lambda about, tensors: about.update(dtype="<c16"),
        lambda about, tensors: about.update(dtype=["<f4"]),
        lambda about, tensors: about.update(dtype="<i8"),
        lambda about, tensors: about.update(bits=8),
        lambda about, tensors: about.update(shape=[1, 4, 40, -40]),
        lambda about, tensors: about.update(shape=[1, 4, 40, 41]),
        lambda about, tensors: about.update(shape=[1, 4, 40, 39]),
        lambda about, tensors: about.update(shape=[2**40, 2**40]),
        lambda about, tensors: about.update(shape=[2**63]),
        lambda about, tensors: about.update(shape=[1] * 1001),
        lambda about, tensors: about.update(shape="all"),
        lambda about, tensors: about.update(more=1),
        lambda about, tensors: tensors.update({"0.map": tensors["0.map"][:-9].copy()}),
        lambda about, tensors: tensors.update({"0.map": tensors["0.map"][::-1].copy()}),
        lambda about, tensors: tensors.update({"0.map": np.zeros((1, 4, 40, 40), np.float32)}),
    ],
)
def test_invalid_packed_array_raises_a_file_error(tmp_path: Path, change: Any) -> None:
    with pytest.raises(FileError, match=r"0\.map makes no sense"):
        read_trace(changed(tmp_path / "t", change))


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """The limit of the unpacked size for these tests."""
    monkeypatch.setattr("regard.trace.file_parts.MOST_BYTES", 2**18)
    return 2**18


def test_unpacked_size_is_limited(limit: int) -> None:
    """A thousand zeros take a byte or two; an array that would fill the memory is refused before it is allocated."""
    zeros, about = Packer().pack(np.zeros(2**12))
    assert about is not None
    unpacker = Unpacker(1000)
    for _ in range(limit // 2**15):
        unpacker.unpack(zeros, about)
    with pytest.raises(ValueError, match="larger than"):
        unpacker.unpack(zeros, about)


def test_array_beyond_the_limit_is_not_packed(limit: int) -> None:
    packer, zeros = Packer(), np.zeros(2**12)
    packed = [packer.pack(zeros)[1] for _ in range(limit // zeros.nbytes + 1)]
    assert packed[-1] is None
    assert None not in packed[:-1]
