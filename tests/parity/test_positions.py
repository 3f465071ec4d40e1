"""Explicit positions and scaled rotary positions: reference = functional = Hugging Face, over odd sizes.

Functions of sizes only (T, S, a start) are compared in `test_parts.py`.
"""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import TORCH_DTYPES
from tolerances import assert_close, assert_same_bits
from torch import Tensor
from torch.overrides import TorchFunctionMode
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from regard.config import LinearScaling, Llama3Scaling, NtkScaling, Scaling, YarnScaling
from regard.functional import positions as torchs
from regard.layer_checks import Pairing
from regard.reference import positions as numpys

PAIRINGS: tuple[Pairing, ...] = ("halves", "pairs")
SCALINGS: dict[str, Scaling | None] = {
    "none": None,
    "linear": LinearScaling(factor=4.0),
    "ntk": NtkScaling(factor=2.5),
    "yarn": YarnScaling(factor=8.0, original_len=512),
    "yarn blunt": YarnScaling(factor=3.0, original_len=64, fast=9.0, slow=0.5, sharpness=0.7),
    "llama3": Llama3Scaling(factor=8.0, original_len=1024),
}


def positions(*shape: int, seed: int = 0) -> Tensor:
    """Random integer positions, large enough that float32 angles would be inexact."""
    return torch.randint(0, 5000, shape, generator=torch.Generator().manual_seed(seed))


def normal(*shape: int, dtype: str = "float64") -> Tensor:
    return torch.tensor(np.random.default_rng(0).standard_normal(shape)).to(getattr(torch, dtype))


# --- rotary scalings -------------------------------------------------------------------------------------


def hugging_face(
    kind: str, d_head: int, base: float, seq_len: int | None = None, **parameters: Any
) -> tuple[Tensor, float]:
    """Hugging Face's frequencies and attention factor, for a training length that causes no warning."""
    original = parameters.get("original_max_position_embeddings", 64)
    config = LlamaConfig(
        head_dim=d_head,
        max_position_embeddings=int(original * parameters["factor"]),
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=seq_len)


def assert_frequencies(theirs: Tensor, d_head: int, base: float, scaling: Scaling) -> None:
    """Compare with a tolerance: Hugging Face computes in float32."""
    ours = numpys.rotary_frequencies(d_head, base, scaling)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6)


SHAPES = list(itertools.product((2, 16, 64, 128), (10_000.0, 500_000.0)))


@pytest.mark.parametrize(("d_head", "base"), SHAPES)
def test_linear_equals_hugging_face(d_head: int, base: float) -> None:
    theirs, factor = hugging_face("linear", d_head, base, factor=4.0)
    assert factor == 1.0
    assert_frequencies(theirs, d_head, base, LinearScaling(factor=4.0))


@pytest.mark.parametrize(("d_head", "base"), [(16, 10_000.0), (64, 10_000.0), (128, 500_000.0)])
def test_ntk_equals_dynamic_ntk_of_hugging_face(d_head: int, base: float) -> None:
    # Their factor grows with the text: with factor 1, a text of 3 times the length is scaled by 3.
    theirs, _ = hugging_face("dynamic", d_head, base, seq_len=3 * 64, factor=1.0)
    assert_frequencies(theirs, d_head, base, NtkScaling(factor=3.0))


@pytest.mark.parametrize(("fast", "slow"), [(32.0, 1.0), (8.0, 0.5), (2.0, 1.9)])
@pytest.mark.parametrize(("factor", "original_len"), [(1.0, 512), (4.0, 4096), (40.0, 63), (2.5, 32768)])
@pytest.mark.parametrize(("d_head", "base"), SHAPES)
def test_yarn_equals_hugging_face(
    d_head: int, base: float, factor: float, original_len: int, fast: float, slow: float
) -> None:
    lengths: dict[str, Any] = {"factor": factor, "original_max_position_embeddings": original_len}
    theirs, sharpness = hugging_face("yarn", d_head, base, beta_fast=fast, beta_slow=slow, **lengths)
    scaling = YarnScaling(factor=factor, original_len=original_len, fast=fast, slow=slow)
    assert_frequencies(theirs, d_head, base, scaling)
    cos, sin = numpys.rotations_at(np.array([0, 7]), d_head, base, scaling)
    np.testing.assert_allclose(np.hypot(cos, sin), sharpness, rtol=1e-12)


@pytest.mark.parametrize(("fast", "slow"), [(4.0, 1.0), (32.0, 0.5)])
@pytest.mark.parametrize(("factor", "original_len"), [(8.0, 8192), (32.0, 1000)])
@pytest.mark.parametrize(("d_head", "base"), SHAPES)
def test_llama3_equals_hugging_face(
    d_head: int, base: float, factor: float, original_len: int, fast: float, slow: float
) -> None:
    lengths: dict[str, Any] = {"factor": factor, "original_max_position_embeddings": original_len}
    theirs, _ = hugging_face("llama3", d_head, base, high_freq_factor=fast, low_freq_factor=slow, **lengths)
    scaling = Llama3Scaling(factor=factor, original_len=original_len, fast=fast, slow=slow)
    assert_frequencies(theirs, d_head, base, scaling)


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
@pytest.mark.parametrize("d_head", [0, 2, 6, 64])
def test_rotary_frequencies_and_angles(d_head: int, scaling: Scaling | None) -> None:
    double = torch.zeros(1, dtype=torch.float64)
    expected = numpys.rotary_frequencies(d_head, 500.0, scaling)
    assert_close(torchs.rotary_frequencies(d_head, 500.0, scaling, like=double), expected)
    assert torchs.rotary_frequencies(d_head, 500.0, scaling).dtype == torch.get_default_dtype()
    at = positions(2, 5)
    angles = torchs.rotary_angles(at, d_head, 500.0, scaling)
    assert angles.dtype == torch.float64
    assert_close(angles, numpys.rotary_angles(at.numpy(), d_head, 500.0, scaling))


# --- rotation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("shape", [(7,), (2, 1, 7), (1, 1, 7), (2, 3, 7)], ids=str)
@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
def test_apply_rotations(scaling: Scaling | None, shape: tuple[int, ...], pairing: Pairing, dtype: str) -> None:
    x, at = normal(2, 3, 7, 10, dtype=dtype), positions(*shape)
    rotations = torchs.rotations_at(at, 10, scaling=scaling, like=x)
    exact = numpys.rotations_at(at.numpy(), 10, scaling=scaling)
    assert {part.dtype for part in rotations} == {torch.float64 if dtype == "float64" else torch.float32}
    for ours, theirs in zip(rotations, exact, strict=True):
        assert_close(ours, theirs, "weights")
    rotated = torchs.apply_rotations(x, rotations, pairing)
    assert rotated.dtype == x.dtype
    assert_close(rotated, numpys.apply_rotations(x.double().numpy(), exact, pairing))
    assert_same_bits(rotated, torchs.rotate(x, at, pairing=pairing, scaling=scaling))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_reference_rotates_in_the_same_dtypes(dtype: str) -> None:
    x, at = normal(3, 5, 8, dtype=dtype), positions(5)
    theirs = numpys.rotations_at(at.numpy(), 8, like=x.numpy())
    assert theirs.cos.dtype == theirs.sin.dtype == np.float32
    for ours, part in zip(torchs.rotations_at(at, 8, like=x), theirs, strict=True):
        assert_close(ours, part, "weights")
    assert_close(torchs.rotate(x, at), numpys.rotate(x.numpy(), at.numpy()))
    assert numpys.rotations_at(at.numpy(), 8).cos.dtype == np.float64
    assert torchs.rotations_at(at, 8).cos.dtype == torch.get_default_dtype()


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_inverse_rotation_is_the_gradient(pairing: Pairing) -> None:
    x, upstream, at = normal(2, 3, 4, 6).requires_grad_(), normal(2, 3, 4, 6).flip(0), positions(4)
    torchs.apply_rotations(x, torchs.rotations_at(at, 6, like=x), pairing).backward(upstream)
    assert x.grad is not None
    assert_close(x.grad, numpys.rotate(upstream.numpy(), -at.numpy(), pairing=pairing), "gradient")


# --- added to the input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("pairing", PAIRINGS)
@given(st.lists(st.integers(0, 4), max_size=3), st.integers(1, 9))
def test_sinusoidal_at(pairing: Pairing, dtype: str, shape: list[int], d_model: int) -> None:
    at, like = positions(*shape), torch.zeros(1, dtype=getattr(torch, dtype))
    ours = torchs.sinusoidal_at(at, d_model, pairing=pairing, like=like)
    assert ours.dtype == like.dtype
    assert_close(ours, numpys.sinusoidal_at(at.numpy(), d_model, pairing=pairing))
    if dtype == "float32":
        theirs = numpys.sinusoidal_at(at.numpy(), d_model, pairing=pairing, like=like.numpy())
        assert theirs.dtype == np.float32
        assert_close(ours, theirs)


@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_halves_equals_marian(d_model: int) -> None:
    module = MarianSinusoidalPositionalEmbedding(20, d_model)
    expected = module.create_weight()
    for package in (torchs, numpys):
        assert_close(package.sinusoidal_positions(20, d_model, pairing="halves"), expected, dtype="float32")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3), (2, 1, 3)], ids=str)
def test_learned_at_equals_an_embedding(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    module, at = torch.nn.Embedding(9, 4), positions(*shape).remainder(9)
    expected = module(at).detach()
    assert_same_bits(torchs.learned_at(module.weight, at.to(dtype)), expected)
    assert_same_bits(numpys.learned_at(module.weight.detach().numpy(), at.to(dtype).numpy()), expected)


def test_the_learned_table_gets_its_gradient() -> None:
    table = normal(5, 2).requires_grad_()
    torchs.learned_at(table, torch.tensor([[1, 1], [4, 0]])).sum().backward()
    assert table.grad is not None
    assert table.grad[:, 0].tolist() == [1, 2, 0, 0, 1]


# --- added to the scores ---------------------------------------------------------------------------------

sized = st.sampled_from([(), (1,), (3,)])


@given(sized, sized, st.integers(0, 5), st.integers(0, 5), st.sampled_from(TORCH_DTYPES))
def test_alibi_bias_at(many: tuple[int, ...], kept: tuple[int, ...], T: int, S: int, dtype: str) -> None:
    queries, keys, like = positions(*many, T), positions(*kept, S, seed=1), torch.zeros(1, dtype=getattr(torch, dtype))
    ours = torchs.alibi_bias_at(6, queries, keys, like)
    assert ours.dtype == like.dtype
    assert ours.shape == (*np.broadcast_shapes(many, kept), 6, T, S)
    assert_close(ours, numpys.alibi_bias_at(6, queries.numpy(), keys.numpy()))


@given(sized, sized, st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_relative_bias_at(many: tuple[int, ...], kept: tuple[int, ...], T: int, S: int, bidirectional: bool) -> None:
    queries, keys, table = positions(*many, T).remainder(60), positions(*kept, S, seed=1).remainder(60), normal(8, 3)
    ours = torchs.relative_bias_at(table, queries, keys, 40, bidirectional)
    assert ours.shape == (*np.broadcast_shapes(many, kept), 3, T, S)
    assert_same_bits(ours, numpys.relative_bias_at(table.numpy(), queries.numpy(), keys.numpy(), 40, bidirectional))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_at_equals_t5(bidirectional: bool) -> None:
    queries, keys = torch.tensor([150, 3, 60]), torch.arange(300)
    buckets = T5Attention._relative_position_bucket(keys - queries[:, None], bidirectional=bidirectional)
    table = normal(32, 3)
    expected = table[buckets].movedim(-1, 0)
    assert_same_bits(torchs.relative_bias_at(table, queries, keys, bidirectional=bidirectional), expected)


# --- compile, capture ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scaling",
    [
        pytest.param(scaling, id=name, marks=() if name in ("none", "yarn") else pytest.mark.long)
        for name, scaling in SCALINGS.items()
    ],
)
def test_rotation_compiles_as_one_graph(scaling: Scaling | None) -> None:
    def layers(x: Tensor, at: Tensor) -> Tensor:
        rotations = torchs.rotations_at(at[:, None], x.shape[-1], scaling=scaling, like=x)
        return torchs.apply_rotations(torchs.apply_rotations(x, rotations, "halves"), rotations, "pairs")

    torch.compiler.reset()
    compiled = torch.compile(layers, backend="eager", fullgraph=True)
    for T in (3, 4, 5):  # from the second length on, torch traces a symbolic size
        x, at = normal(2, 3, T, 6, dtype="float32"), positions(2, T)
        assert_close(compiled(x, at), layers(x, at))


def added(table: Tensor, queries: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
    """All positions that are added to the input or to the scores."""
    return (
        torchs.sinusoidal_at(queries, 5, pairing="halves", like=table),
        torchs.learned_at(table, queries),
        torchs.alibi_bias_at(6, queries, keys, like=table),
        torchs.relative_bias_at(table, queries, keys),
    )


def test_added_positions_compile_as_one_graph() -> None:
    torch.compiler.reset()
    compiled = torch.compile(added, backend="eager", fullgraph=True)
    table = normal(32, 4, dtype="float32")
    for T in (3, 4, 5):
        queries, keys = positions(2, T).remainder(32), positions(2, T + 1, seed=1)
        for ours, expected in zip(compiled(table, queries, keys), added(table, queries, keys), strict=True):
            assert_close(ours, expected)


class NoCopyFromPython(TorchFunctionMode):
    """Raises for tensors made from Python numbers: each is a copy to the GPU, which a CUDA graph cannot capture."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func is torch.tensor or (func is torch.as_tensor and not isinstance(args[0], Tensor))
        assert not made, "a tensor is made of Python's numbers"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
def test_nothing_is_copied_from_python(scaling: Scaling | None) -> None:
    x, at, table = normal(3, 7, 6), torch.arange(7), normal(32, 6)
    with pytest.raises(AssertionError, match="Python"), NoCopyFromPython():
        torch.tensor([1.0])
    with NoCopyFromPython():
        torchs.rotate(x, at, scaling=scaling)
        added(table, at, at)
