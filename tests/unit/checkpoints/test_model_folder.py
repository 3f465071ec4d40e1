"""The model folder: save and read give the same model, and an invalid folder is always a FileError."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import CONFIGS, random_weights
from tolerances import assert_same_bits

from regard.checkpoints import read_model, save_model
from regard.config import AttentionStyle, TransformerConfig, to_tree
from regard.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    RegardError,
    ShapeError,
    TooLargeError,
    UnknownNameError,
)

CONFIG = CONFIGS["gpt2"]
WEIGHTS = random_weights(CONFIG)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a valid model."""
    save_model(tmp_path / "model", CONFIG, WEIGHTS)
    return tmp_path / "model"


def refused(folder: Path, key: str) -> str:
    """Assert that reading raises FileError with this key. Returns the English message."""
    with pytest.raises(FileError) as caught:
        read_model(folder)
    assert caught.value.key == key, str(caught.value)
    assert caught.value.text("zh") != caught.value.text("en")
    return caught.value.text("en")


def rewrite(folder: Path, **changes: Any) -> None:
    """Change top-level values of config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind_of_model_is_saved_and_read(tmp_path: Path, name: str) -> None:
    weights = random_weights(CONFIGS[name], dtype="float16")
    save_model(tmp_path, CONFIGS[name], weights)
    stored = read_model(str(tmp_path))
    assert stored.config == CONFIGS[name]
    assert set(stored.tensors) == set(weights)
    for name, weight in weights.items():
        assert_same_bits(stored.tensors[name], weight)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_config_is_readable_json(folder: Path) -> None:
    text = (folder / "config.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"format": "regard-model", "version": 1, "config": to_tree(CONFIG)}
    assert '\n    "d_model": 16,\n' in text


def test_tensors_keep_their_dtype(tmp_path: Path) -> None:
    dtypes = ("bfloat16", "float16", "float32", "float64")
    tensors = {name: torch.from_numpy(weight) for name, weight in WEIGHTS.items()}
    for number, name in enumerate(tensors):
        tensors[name] = tensors[name].to(getattr(torch, dtypes[number % 4])).requires_grad_()
    save_model(tmp_path, CONFIG, tensors)
    stored = read_model(tmp_path)
    for name, tensor in tensors.items():
        assert stored.tensors.dtypes[name] == str(tensor.dtype).removeprefix("torch.")
        found = stored.tensors[name]
        assert found.dtype == (np.float32 if tensor.dtype == torch.bfloat16 else tensor.detach().numpy().dtype)
        np.testing.assert_array_equal(found, tensor.detach().double().numpy())


def test_model_can_be_replaced_while_it_is_read(folder: Path) -> None:
    old = read_model(folder)
    other = random_weights(CONFIG, seed=1)
    save_model(folder, CONFIG, other)
    assert_same_bits(old.tensors["embedding.weight"], WEIGHTS["embedding.weight"])
    assert_same_bits(read_model(folder).tensors["embedding.weight"], other["embedding.weight"])


# --- writing ---------------------------------------------------------------------------------------------


def test_wrong_weights_raise_before_anything_is_written(tmp_path: Path) -> None:
    name = "embedding.weight"
    wrong: list[tuple[type[RegardError], dict[str, Any]]] = [
        (UnknownNameError, {key: weight for key, weight in WEIGHTS.items() if key != name}),
        (UnknownNameError, WEIGHTS | {"more": WEIGHTS[name]}),
        (ShapeError, WEIGHTS | {name: WEIGHTS[name].T}),
        (DtypeError, WEIGHTS | {name: WEIGHTS[name].astype(int)}),
        (DtypeError, WEIGHTS | {name: WEIGHTS[name].tolist()}),
        (DtypeError, WEIGHTS | {name: WEIGHTS[name].astype(np.longdouble)}),
    ]
    for error, weights in wrong:
        with pytest.raises(error):
            save_model(tmp_path / "model", CONFIG, weights)
    assert list(tmp_path.iterdir()) == []


def test_config_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    config = replace(CONFIG, attention=AttentionStyle(window=2**40))
    with pytest.raises(ArgumentError, match=r"config\.attention\.window is larger than"):
        save_model(tmp_path / "model", config, WEIGHTS)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TooLargeError, match="No space left on device"):
        save_model(folder, CONFIG, random_weights(CONFIG, seed=1))
    assert len(list(folder.iterdir())) == 2
    assert_same_bits(read_model(folder).tensors["embedding.weight"], WEIGHTS["embedding.weight"])


def test_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for where, key in (
        ("file", "model-not-folder"),
        ("absent/model", "file-no-folder"),
        ("file/model", "file-no-folder"),
    ):
        with pytest.raises(FileError, match=where) as caught:
            save_model(tmp_path / where, CONFIG, WEIGHTS)
        assert caught.value.key == key


# --- invalid folders -------------------------------------------------------------------------------------


def test_absent_files_are_named(folder: Path) -> None:
    assert "no folder" in refused(folder / "none", "model-no-folder")
    assert "is a file" in refused(folder / "config.json", "model-file")
    (folder / "model.safetensors").unlink()
    assert "model.safetensors" in refused(folder, "file-absent")
    (folder / "config.json").unlink()
    assert "config.json" in refused(folder, "model-no-config")
    (folder / "config.json").mkdir()
    refused(folder, "file-is-folder")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_out_of_the_folder_are_not_followed(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    assert str(outside) in refused(folder, "model-outside")
    outside.rename(folder / "inside")
    (folder / name).unlink()
    (folder / name).symlink_to("inside")
    assert read_model(folder).config == CONFIG


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "{",
        '{"format": "regard-model", "version": 1, "version": 1, "config": {}}',
        '{"format": "regard-model", "version": NaN}',
        '{"format": "regard-model", "version": -Infinity}',
        "[" * 100_000,
        "1" * 5000,
        "\ufeff{}",
    ],
    ids=["empty", "cut", "key twice", "NaN", "Infinity", "deep", "digits", "BOM"],
)
def test_invalid_json_raises(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    assert "config.json is damaged" in refused(folder, "model-garbled")


def test_other_content_raises(folder: Path) -> None:
    path = folder / "config.json"
    path.write_bytes(b'{"format": "\xff"}')
    refused(folder, "model-garbled")
    for text in ("[]", '"regard-model"', '{"format": ["regard-model"]}'):
        path.write_text(text, encoding="utf-8")
        refused(folder, "model-not-ours")
    path.write_text("{}", encoding="utf-8")
    assert "add its model_type" in refused(folder, "family-missing")
    path.write_text(" " * 2_000_000, encoding="utf-8")
    assert "1.9 MiB" in refused(folder, "file-too-large")


def test_versions(folder: Path) -> None:
    for version in (0, -1, "1", 1.0, True, None):
        rewrite(folder, version=version)
        refused(folder, "model-garbled")
    rewrite(folder, version=2)
    assert "pip install --upgrade regard" in refused(folder, "model-newer")
    rewrite(folder, version=1, auto_map="evil.py")
    assert "auto_map" in refused(folder, "model-garbled")


def test_invalid_config_raises_with_the_place(folder: Path) -> None:
    tree = to_tree(CONFIG)
    rewrite(folder, config=tree | {"d_model": "16"})
    assert "config.d_model must be one of: int; found '16'" in refused(folder, "model-config")
    rewrite(folder, config=tree | {"n_heads": 3})
    assert "n_heads=3 must divide d_model=16" in refused(folder, "model-config")
    rewrite(folder, config=tree | {"n_decoder_layers": 10**9})
    assert "config.n_decoder_layers is larger than 1024" in refused(folder, "model-config")
    rewrite(folder, config=None)
    refused(folder, "model-config")


def test_weights_of_another_model_raise_before_reading(folder: Path) -> None:
    for config in (replace(CONFIG, d_ff=41), replace(CONFIG, n_decoder_layers=3), replace(CONFIG, n_decoder_layers=1)):
        rewrite(folder, config=to_tree(config))
        assert "decoder.layers." in refused(folder, "model-weights")


def test_flipped_byte_raises_only_file_errors(folder: Path) -> None:
    path = folder / "config.json"
    whole = path.read_bytes()
    seen = set()
    for place in range(0, len(whole), 3):
        for flip in (0x01, 0x04, 0x80):
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            try:
                config = read_model(folder).config
            except FileError as error:
                seen.add(error.key)
            else:
                assert isinstance(config, TransformerConfig)
    assert seen >= {"model-garbled", "model-config", "model-weights"}
