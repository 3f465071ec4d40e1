"""Errors for files of another format instead of weights, JSON, a tokenizer or a trace name the actual format."""

import gzip
import io
import json
import pickle
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_tensors
from tiny_language import translator_folder

from regard import load, read_trace
from regard.checkpoints import read_model
from regard.errors import FileError
from regard.files.safe_open import HEAD, format_of
from regard.text import Tokenizer


def written(write: Any) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def zipped(name: str) -> bytes:
    def write(buffer: io.BytesIO) -> None:
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(name, "x" * 1000)

    return written(write)


def tarred(buffer: io.BytesIO) -> None:
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.safetensors"), io.BytesIO())


STATE = {"weight": torch.ones(3)}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n"
FILES: dict[str, tuple[str, bytes]] = {
    "nothing": ("empty", b""),
    "zeros": ("zeros", bytes(4096)),
    "pickle 2": ("pickle", pickle.dumps({"a": 1}, 2)),
    "pickle 5": ("pickle", pickle.dumps({"a": 1}, 5)),
    "torch.save": ("torch", written(lambda buffer: torch.save(STATE, buffer))),
    "torch.save of old": (
        "pickle",
        written(lambda buffer: torch.save(STATE, buffer, _use_new_zipfile_serialization=False)),
    ),
    "npy": ("numpy", written(lambda buffer: np.save(buffer, np.eye(3)))),
    "npz": ("numpy", written(lambda buffer: np.savez(buffer, a=np.eye(3)))),
    "zip": ("compressed", zipped("model/config.json")),
    "gzip": ("compressed", gzip.compress(b"{}")),
    "tar": ("compressed", written(tarred)),
    "gguf": ("gguf", b"GGUF\x03\0\0\0" + bytes(100)),
    "hdf5": ("hdf5", b"\x89HDF\r\n\x1a\n" + bytes(100)),
    "onnx": ("graph", b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\x80\x08\n"),
    "sentencepiece": ("sentencepiece", b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>"),
    "web page": ("page", b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>"),
    "error of a server": ("page", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'),
    "pointer": ("lfs", LFS),
    "png": ("picture", b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "jpeg": ("picture", b"\xff\xd8\xff\xe0" + bytes(100)),
    "pdf": ("pdf", b"%PDF-1.7\n" + bytes(100)),
    "program": ("program", b"\x7fELF\x02\x01\x01" + bytes(100)),
    "parquet": ("table", b"PAR1" + bytes(100)),
    "utf-16": ("utf-16", '{"a": 1}'.encode("utf-16")),
}
OF_JSON = {"safetensors": ("safetensors", save_tensors({"x": np.ones(3)}))}
OF_TENSORS = {
    "json": ("json", json.dumps({"weight_map": {"a": "b" * 100}}).encode()),
    "text": ("text", b"Not Found. Repository or file is private."),
}


@pytest.mark.parametrize("name", [*FILES, *OF_JSON, *OF_TENSORS])
def test_format_is_recognised_by_the_first_bytes(name: str) -> None:
    kind, content = (FILES | OF_JSON | OF_TENSORS)[name]
    assert format_of(content[:HEAD]) == kind


def test_unknown_bytes_and_safetensors_headers() -> None:
    assert format_of(b"\xf1\xf2\xf3\xf4 something \x01\x02") is None
    for count in range(1, 60):  # headers of any length: one of 640 bytes begins like a pickle
        tensors = save_tensors({"x" * (11 * count): np.ones(3)})
        assert format_of(tensors[:HEAD]) == "safetensors"
    assert int.from_bytes(b"\x80\x02", "little") == 640
    assert format_of((640).to_bytes(8, "little") + b'{"x":') == "safetensors"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return translator_folder(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("wanted", "file"),
    [("weights", "model.safetensors"), ("json", "config.json"), ("tokenizer", "tokenizer.json"), ("trace", "trace")],
)
def test_error_names_the_actual_format(model: Path, tmp_path: Path, wanted: str, file: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    readers: dict[str, Any] = {
        "weights": lambda: read_model(folder),
        "json": lambda: read_model(folder),
        "tokenizer": lambda: Tokenizer.read(folder / file),
        "trace": lambda: read_trace(folder / file),
    }
    others = OF_JSON if wanted in ("json", "tokenizer") else OF_TENSORS
    for name, (kind, content) in (FILES | others).items():
        (folder / file).write_bytes(content)
        for read in (readers[wanted], *([lambda: load(folder)] if wanted != "trace" and name == "pointer" else [])):
            with pytest.raises(FileError) as caught:
                read()
            assert caught.value.key == f"other-{wanted}", name
            assert caught.value.values["reason"].key == f"kind-{kind}", name
            for message in (caught.value.text("en"), caught.value.text("zh")):
                assert str(folder / file) in message


def test_message_gives_a_fix() -> None:
    found = FileError("other-weights", path="m.safetensors", reason=FileError("kind-lfs"))
    assert found.text("en").startswith(
        "m.safetensors should be a safetensors file with the weights of a model, but it is"
    )
    assert "git lfs pull" in found.text("en")
    assert "Git LFS 指针" in found.text("zh")
