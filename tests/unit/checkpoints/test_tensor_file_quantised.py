"""8-bit weights: the error is at most half a scale, and a file with invalid scales is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import random_ids, random_weights
from tolerances import assert_same_bits

from regard.checkpoints import Weights, quantise, read_model, save_model
from regard.checkpoints.tensor_file import LARGE, STEPS, write_tensors
from regard.config import TransformerConfig
from regard.errors import DtypeError, FileError
from regard.models import Transformer as TorchTransformer
from regard.reference import Transformer

CONFIG = TransformerConfig.paper_2017(vocab_size=150, d_model=64, n_heads=4, d_ff=128, n_layers=1)
WEIGHTS = random_weights(CONFIG)


def written(path: Path, tensors: dict[str, Any]) -> Weights:
    with path.open("wb") as file:
        write_tensors(file, tensors)
    return Weights(path)


@given(
    rows=st.integers(1, 70),
    exponents=st.tuples(st.integers(-30, 30), st.integers(-30, 30)),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    seed=st.integers(0, 99),
)
def test_error_is_at_most_half_a_scale(rows: int, exponents: tuple[int, int], dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = sorted(exponents)
    powers = np.clip(rng.integers(low, high, endpoint=True, size=rows), -4 if dtype == "float16" else -30, 30)
    x = (rng.standard_normal((rows, LARGE)) * 2.0 ** powers[:, None]).clip(-6e4, 6e4).astype(dtype)
    x[0] = 0
    found = quantise({"x": x})
    whole, scale = found["x"], found["x.scale"]
    assert (whole.dtype, scale.dtype, scale.shape) == (np.int8, np.float32, (rows,))
    assert np.abs(whole.astype(int)).max() <= STEPS
    wrong = np.abs(whole * scale[:, None].astype(np.float64) - x)
    assert (wrong <= scale[:, None] * 0.50001).all()
    assert scale[0] == 0
    assert not whole[0].any()


def test_only_large_matrices_are_quantised() -> None:
    kept = {"b": np.ones(LARGE), "small": np.ones((2, 3)), "cube": np.ones((2, 2, LARGE))}
    found = quantise(kept | {"W": torch.ones(2, LARGE)})
    assert found.keys() == kept.keys() | {"W", "W.scale"}
    assert all(found[name] is kept[name] for name in kept)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e41])
def test_non_finite_weights_raise(bad: float) -> None:
    x = np.ones((2, LARGE))
    x[1, 3] = bad
    with pytest.raises(DtypeError, match="W holds NaN, infinities"):
        quantise({"W": x})


def test_both_models_read_the_same_weights(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, WEIGHTS, int8=True)
    stored = read_model(tmp_path)
    assert set(stored.tensors) == set(WEIGHTS)
    assert len(stored.tensors) == len(WEIGHTS)
    assert set(stored.tensors.dtypes.values()) == {"float32"}
    assert stored.tensors.shapes == {name: weight.shape for name, weight in WEIGHTS.items()}
    with pytest.raises(KeyError):
        stored.tensors["embedding.weight.scale"]
    arrays = stored.tensors.arrays()
    whole = quantise(WEIGHTS)
    assert_same_bits(arrays["embedding.weight"], whole["embedding.weight"] * whole["embedding.weight.scale"][:, None])
    assert_same_bits(
        arrays["encoder.layers.0.self_attention.q_proj.bias"], WEIGHTS["encoder.layers.0.self_attention.q_proj.bias"]
    )
    for name, tensor in TorchTransformer.read(tmp_path).state_dict().items():
        assert_same_bits(tensor.numpy(), arrays[name])
    ids, source = random_ids(CONFIG, (2, 5)), random_ids(CONFIG, (2, 7), seed=1)
    ours = Transformer(stored.config, arrays)(ids, source)
    plain = Transformer(CONFIG, WEIGHTS)(ids, source)
    assert 0 < np.abs(ours - plain).max() < 0.1 * np.abs(plain).max()


def test_quantised_folder_is_smaller(tmp_path: Path) -> None:
    for int8 in (False, True):
        save_model(tmp_path / str(int8), CONFIG, WEIGHTS, int8=int8)
    large, small = ((tmp_path / str(int8) / "model.safetensors").stat().st_size for int8 in (False, True))
    assert small < 0.4 * large  # not a quarter: norms and biases are a large part of this small model


def test_quantising_twice_changes_nothing(tmp_path: Path) -> None:
    save_model(tmp_path / "one", CONFIG, WEIGHTS, int8=True)
    once = read_model(tmp_path / "one").tensors.arrays()
    save_model(tmp_path / "two", CONFIG, once, int8=True)
    for name, array in read_model(tmp_path / "two").tensors.items():
        np.testing.assert_allclose(array, once[name], rtol=1e-6)


def test_half_precision_beside_int8_is_read_as_float32(tmp_path: Path) -> None:
    weights = written(tmp_path / "t", quantise({"W": np.ones((2, LARGE), np.float16), "b": np.ones(3, np.float16)}))
    assert {name: array.dtype.name for name, array in weights.items()} == {"W": "float32", "b": "float32"}
    assert weights.arrays("float64")["W"].dtype == np.float64
    assert weights.arrays()["b"].flags.writeable
    plain = written(tmp_path / "p", {"b": np.ones(3, np.float16)})
    assert plain["b"].dtype == np.float16


GOOD = {"W": np.ones((3, 2), np.int8), "W.scale": np.ones(3, np.float32)}


@pytest.mark.parametrize(
    "changes",
    [
        {"W.scale": None},
        {"W.scale": np.ones(2, np.float32)},
        {"W.scale": np.ones((3, 1), np.float32)},
        {"W.scale": np.ones(3, np.float64)},
        {"W.scale": np.ones(3, np.int8)},
        {"W.scale": np.array([1, -1, 1], np.float32)},
        {"W.scale": np.array([1, np.nan, 1], np.float32)},
        {"W.scale": np.array([1, np.inf, 1], np.float32)},
        {"W": np.ones(3, np.int8)},
        {"W": np.ones((3, 2, 1), np.int8)},
    ],
)
def test_invalid_scales_raise(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert_same_bits(written(tmp_path / "good", GOOD)["W"], np.ones((3, 2), np.float32))
    tensors = {name: tensor for name, tensor in (GOOD | changes).items() if tensor is not None}
    with pytest.raises(FileError, match=r"W\.scale is not valid"):
        written(tmp_path / "t", tensors)


def test_scale_without_its_matrix_raises(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, WEIGHTS)
    more = WEIGHTS | {"embedding.weight.scale": np.ones(150, np.float32)}
    written(tmp_path / "model.safetensors", more)
    with pytest.raises(FileError, match=r"embedding\.weight\.scale") as caught:
        read_model(tmp_path)
    assert caught.value.key == "model-weights"


def test_int8_weights_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(DtypeError):
        save_model(tmp_path / "m", CONFIG, WEIGHTS | {"embedding.weight": np.ones((150, 64), np.int8)})
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == "[]"
