"""Tensor files: compatible with the safetensors package; a header that does not match the data is refused."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.torch import load, save_file
from tolerances import assert_same_bits

from regard.checkpoints import tensor_file
from regard.checkpoints.tensor_file import TensorFile, write_tensors
from regard.errors import FileError

DTYPES = ("float16", "float32", "float64", "bfloat16")


def written(tensors: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    write_tensors(file, tensors)
    return file.getvalue()


def opened(path: Path, header: Any, size: int) -> TensorFile:
    """A file with this header and `size` bytes of data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    return TensorFile(path)


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


@given(st.data())
def test_compatible_with_the_safetensors_package(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    shapes = data.draw(st.lists(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5), max_size=4))
    tensors = {}
    for number, shape in enumerate(shapes):
        dtype = getattr(torch, data.draw(st.sampled_from(DTYPES)))
        tensors[f"层.{number}"] = torch.randn(shape, generator=torch.Generator().manual_seed(number)).to(dtype)
    theirs = load(written(tensors))
    path = tmp_path_factory.mktemp("tensors") / "t.safetensors"
    save_file(tensors, path, {"metadata": "is left alone"})
    ours = TensorFile(path)
    assert set(theirs) == set(ours) == set(tensors)
    for name, tensor in tensors.items():
        assert theirs[name].dtype == tensor.dtype
        assert torch.equal(theirs[name], tensor)
        assert (ours.shapes[name], ours.dtypes[name]) == (tuple(tensor.shape), str(tensor.dtype)[6:])
        np.testing.assert_array_equal(ours[name], tensor.double().numpy())


def test_bfloat16_keeps_every_bit(tmp_path: Path) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.bfloat16)
    (tmp_path / "t").write_bytes(written({"x": every}))
    found = TensorFile(tmp_path / "t")["x"]
    np.testing.assert_array_equal(found.view(np.uint32), every.float().numpy().view(np.uint32))


def test_any_memory_layout_is_written(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    odd = {"t": x.T, "reversed": x[::-1], "foreign": x.astype(">f4"), "torch": torch.from_numpy(x).T[1:]}
    (tmp_path / "t").write_bytes(written(odd))
    file = TensorFile(tmp_path / "t")
    for name, array in odd.items():
        np.testing.assert_array_equal(file[name], np.asarray(array))
        assert file[name].dtype.isnative
        assert file[name].flags.aligned


def test_unaligned_data_is_returned_aligned(tmp_path: Path) -> None:
    file = opened(tmp_path / "t", {"h": entry("F16", [1], [0, 2]), "x": entry("F64", [2], [2, 18])}, 18)
    assert file["x"].flags.aligned
    assert file["x"].tolist() == [0, 0]


def test_reading_is_lazy_and_read_only(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(written({"x": np.ones(3, np.float32), "h": np.ones(2, np.float16)}))
    file = TensorFile(tmp_path / "t")
    assert np.shares_memory(file["x"], file["x"])  # a view of the file
    with pytest.raises(ValueError, match="read-only"):
        file["x"][0] = 2
    with pytest.raises(KeyError):
        file["absent"]
    mine = file.arrays()
    mine["x"][0] = 2
    assert_same_bits(file["x"], np.ones(3, np.float32))
    assert {name: array.dtype.name for name, array in mine.items()} == {"x": "float32", "h": "float16"}
    assert {array.dtype.name for array in file.arrays("float32").values()} == {"float32"}


def test_asking_for_a_name_reads_no_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of a sharded model asks for every name: converting bfloat16 each time took a third of the load."""
    (tmp_path / "t").write_bytes(written({"a": np.ones(3, np.float32)}))
    file = TensorFile(tmp_path / "t")
    monkeypatch.setattr(TensorFile, "raw", lambda self, name: pytest.fail(f"{name} was read"))
    assert ("a" in file, "b" in file) == (True, False)


# --- invalid files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "size", "key"),
    [
        (b"", 0, "model-garbled"),
        (b"\xff\xff", 0, "model-garbled"),
        (b"[]", 0, "model-garbled"),
        (b'{"x": 1, "x": 2}', 0, "model-garbled"),
        ({"x": 5}, 8, "model-garbled"),
        ({"x": entry(more=1)}, 8, "model-garbled"),
        ({"x": entry(shape=[2.0])}, 8, "model-garbled"),
        ({"x": entry(shape=[True, 2])}, 8, "model-garbled"),
        ({"x": entry(shape=[-1, -2])}, 8, "model-garbled"),
        ({"x": entry(shape="2")}, 8, "model-garbled"),
        ({"x": entry(shape=[1] * 8 + [2])}, 8, "model-garbled"),
        ({"x": entry(shape=[3])}, 8, "model-garbled"),
        ({"x": entry(shape=[2**40, 2**40])}, 8, "model-garbled"),
        ({"x": entry(offsets=[8, 0])}, 8, "model-garbled"),
        ({"x": entry(offsets=[0, 8, 9])}, 8, "model-garbled"),
        ({"x": entry(offsets=[4, 12])}, 12, "model-garbled"),
        ({"x": entry(), "y": entry()}, 8, "model-garbled"),
        ({"x": entry(), "y": entry(offsets=[12, 20])}, 20, "model-garbled"),
        ({"x": entry()}, 7, "model-cut"),
        ({"x": entry()}, 9, "model-cut"),
        ({}, 1, "model-cut"),
        ({"x": entry("I64", [1])}, 8, "model-tensor-dtype"),
        ({"x": entry("evil", [1])}, 8, "model-tensor-dtype"),
        ({"x": entry(["F32"], [1])}, 8, "model-garbled"),
    ],
)
def test_invalid_header_raises(tmp_path: Path, header: Any, size: int, key: str) -> None:
    with pytest.raises(FileError) as caught:
        opened(tmp_path / "t", header, size)
    assert caught.value.key == key
    assert caught.value.exit_code == 3
    assert str(tmp_path / "t") in str(caught.value)


def test_the_helper_writes_valid_files(tmp_path: Path) -> None:
    assert opened(tmp_path / "t", {"x": entry(), "y": entry(offsets=[8, 16])}, 16)["y"].tolist() == [0, 0]
    assert len(opened(tmp_path / "t", {}, 0)) == 0


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"", "other-weights"),
        (b"1234567", "model-garbled"),
        (b"\xff" * 100, "model-part-large"),
        (b"version https://git-lfs", "other-weights"),
        (b"\x80\x04pickle..", "other-weights"),
    ],
)
def test_other_files_raise(tmp_path: Path, content: bytes, key: str) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(FileError) as caught:
        TensorFile(tmp_path / "t")
    assert caught.value.key == key


HEADERS = {
    "empty objects": b'{"x":[' + b"{}," * 10**6 + b"{}]}",
    "empty lists": b'{"x":[' + b"[]," * 10**6 + b"[]]}",
    "numbers": b'{"x":[' + b"0," * 5 * 10**6 + b"0]}",
    "strings": b'{"x":[' + b'"",' * 3 * 10**6 + b'""]}',
    "no more than brackets": b"[" * 10**6,
}


@pytest.mark.parametrize("name", HEADERS)
def test_header_limits_are_checked_before_parsing(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limit, such a header of 32 MB took 10 s and gigabytes of memory."""
    header = HEADERS[name]
    parsed: list[bytes] = []
    monkeypatch.setattr(tensor_file, "parse_json", parsed.append)
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2 * len(header)))
    with pytest.raises(FileError) as caught:
        TensorFile(tmp_path / "t")
    assert not parsed
    assert caught.value.key in ("model-part-large", "model-garbled", "other-weights")


@pytest.mark.parametrize("header", [b'{"' + b"{" * 10**6, b'{"' + b'\\"{' * 10**6], ids=["braces", "escapes"])
def test_string_without_end_raises(tmp_path: Path, header: bytes) -> None:
    """Braces in a string are text, so they do not count towards the limit."""
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2 * len(header)))
    with pytest.raises(FileError) as caught:
        TensorFile(tmp_path / "t")
    assert caught.value.key == "model-garbled"


def test_header_length_is_limited_by_the_file_size(tmp_path: Path) -> None:
    header = b'{"__metadata__":{"x":"' + b"a" * 2**22 + b'"}}'
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FileError, match=r"its header takes 4\.0 MiB; the maximum is 3\.0 MiB"):
        TensorFile(tmp_path / "t")


def test_too_large_axis_raises(tmp_path: Path) -> None:
    for shape in ([2**62, 0], [2**63, 0], [10**30, 0], [0] * 9):
        with pytest.raises(FileError) as caught:
            opened(tmp_path / "t", {"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}, 0)
        assert caught.value.key == "model-garbled"


def test_truncated_or_changed_file_raises_or_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    whole = written({"a.b": np.ones((2, 3)), "c": torch.ones(5).bfloat16()})
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            TensorFile(path)
    refused = 0
    for place in range(len(whole) - 58):
        for flip in (0x01, 0x80):
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            try:
                TensorFile(path).arrays()
            except FileError:
                refused += 1
    assert refused > len(whole) // 2
