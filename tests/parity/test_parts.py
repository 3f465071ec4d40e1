"""All parts other than attention: reference = functional = PyTorch, over odd sizes and four dtypes.

Each dtype is compared with the reference in float64, on inputs rounded to that dtype. Both packages raise the same
errors for the same calls.
"""

from collections.abc import Callable, Iterable
from inspect import signature
from types import ModuleType
from typing import Any, overload

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import three
from strategies import LAYOUTS, TORCH_DTYPES, as_tensor, lay_out
from tolerances import assert_close, assert_same_bits
from torch import Tensor
from torch.nn import functional as torchs_own

from regard.config import YarnScaling
from regard.errors import RegardError
from regard.functional import position_wise as f_activations
from regard.functional import position_wise as f_feed_forward
from regard.functional import position_wise as f_norms
from regard.functional import positions as f_positions
from regard.layer_checks import Pairing
from regard.reference import norms as r_norms
from regard.reference import position_wise as r_activations
from regard.reference import position_wise as r_feed_forward
from regard.reference import positions as r_positions
from regard.reference.position_wise import ActivationName

COUNTERPARTS = {
    r_activations: f_activations,
    r_feed_forward: f_feed_forward,
    r_norms: f_norms,
    r_positions: f_positions,
}
SHAPES = [(1,), (7,), (1, 1, 1), (2, 63, 5), (3, 1, 127), (2, 3, 13, 4), (0, 3), (2, 0, 3)]
ACTIVATIONS: tuple[ActivationName, ...] = ("relu", "gelu", "gelu_tanh", "silu")


def made(seed: int, *shapes: tuple[int, ...], dtype: str = "float64") -> list[Tensor]:
    """Normal numbers, rounded to a dtype."""
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.standard_normal(shape)).to(getattr(torch, dtype)) for shape in shapes]


Maybe = Tensor | None


@overload
def exactly(a: Tensor, /) -> tuple[Any]: ...
@overload
def exactly(a: Tensor, b: Maybe, /) -> tuple[Any, Any]: ...
@overload
def exactly(a: Tensor, b: Maybe, c: Maybe, /) -> tuple[Any, Any, Any]: ...
@overload
def exactly(a: Tensor, b: Maybe, c: Maybe, d: Maybe, /) -> tuple[Any, Any, Any, Any]: ...
@overload
def exactly(a: Tensor, b: Maybe, c: Maybe, d: Maybe, e: Maybe, /) -> tuple[Any, Any, Any, Any, Any]: ...
def exactly(*tensors: Tensor | None) -> tuple[Any, ...]:
    """The same numbers as float64 NumPy arrays, for the reference."""
    return tuple(None if x is None else x.double().numpy() for x in tensors)


def rounded_weights(seed: int, D: int, F: int, dtype: str) -> list[Tensor]:
    """W_1, W_2, W_up, b_1 and b_2, scaled so that activations keep their size."""
    W_in, W_out, W_up, b_1, b_2 = made(seed, (D, F), (F, D), (D, F), (F,), (D,))
    weights = (W_in / D**0.5, W_out / F**0.5, W_up / D**0.5, b_1, b_2)
    return [w.to(getattr(torch, dtype)) for w in weights]


# --- reference and functional have the same signatures ---------------------------------------------------


@pytest.mark.parametrize("package", COUNTERPARTS, ids=lambda package: package.__name__)
def test_both_packages_have_the_same_names_and_arguments(package: ModuleType) -> None:
    def public(package: ModuleType) -> dict[str, list[tuple[str, Any]]]:
        own = {n: f for n, f in vars(package).items() if getattr(f, "__module__", "") == package.__name__}
        return {
            name: [(p.name, p.default) for p in signature(f).parameters.values()]
            for name, f in own.items()
            if not name.startswith("_") and not isinstance(f, type) and callable(f)
        }

    theirs = public(COUNTERPARTS[package])
    for name, parameters in public(package).items():
        if not name.endswith("_backward"):  # torch uses autograd
            assert theirs[name] == parameters, name


# --- activations -----------------------------------------------------------------------------------------

TORCHS_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torchs_own.relu,
    "gelu": torchs_own.gelu,
    "gelu_tanh": lambda x: torchs_own.gelu(x, approximate="tanh"),
    "silu": torchs_own.silu,
}


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: ActivationName, dtype: str) -> None:
    x = (3 * torch.tensor(np.random.default_rng(0).standard_normal((5, 127)))).to(getattr(torch, dtype))
    expected = r_activations.get_activation(name).forward(*exactly(x))
    ours = f_activations.get_activation(name)(x)
    assert ours.dtype == x.dtype
    assert_close(ours, expected)
    assert_close(TORCHS_ACTIVATIONS[name](x), expected)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_integers(name: ActivationName) -> None:
    x = np.arange(-3, 4)
    expected = r_activations.get_activation(name).forward(x)
    ours = f_activations.get_activation(name)(torch.tensor(x))
    assert str(ours.dtype) == f"torch.{expected.dtype}"
    assert_close(ours, expected, dtype="float64")


# --- feed-forward ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biases", [(True, True), (False, False), (True, False)], ids=["b1b2", "none", "b1"])
def test_feed_forward(activation: ActivationName, biases: tuple[bool, bool], dtype: str) -> None:
    (x,) = made(1, (3, 13, 7), dtype=dtype)
    W_1, W_2, _, b_1, b_2 = rounded_weights(2, 7, 31, dtype)
    parts = (W_1, W_2, b_1 if biases[0] else None, b_2 if biases[1] else None)
    expected = r_feed_forward.feed_forward(*exactly(x, *parts), activation=activation)
    ours = f_feed_forward.feed_forward(x, *parts, activation=activation)
    assert ours.dtype == x.dtype
    assert_close(ours, expected)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gated_feed_forward(activation: ActivationName, dtype: str) -> None:
    (x,) = made(3, (3, 13, 7), dtype=dtype)
    W_gate, W_down, W_up, *_ = rounded_weights(4, 7, 31, dtype)
    expected = r_feed_forward.gated_feed_forward(*exactly(x, W_gate, W_up, W_down), activation=activation)
    ours = f_feed_forward.gated_feed_forward(x, W_gate, W_up, W_down, activation=activation)
    assert ours.dtype == x.dtype
    assert_close(ours, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_feed_forward_equals_two_linear_layers(shape: tuple[int, ...]) -> None:
    D = shape[-1]
    module = torch.nn.Sequential(torch.nn.Linear(D, 11), torch.nn.ReLU(), torch.nn.Linear(11, D)).double()
    up, down = module[0], module[2]
    assert isinstance(up, torch.nn.Linear)
    assert isinstance(down, torch.nn.Linear)
    (x,) = made(5, shape)
    parts = (up.weight.T.detach(), down.weight.T.detach(), up.bias.detach(), down.bias.detach())
    expected = module(x).detach()
    assert_close(f_feed_forward.feed_forward(x, *parts), expected)
    assert_close(r_feed_forward.feed_forward(*exactly(x, *parts)), expected)


def test_gated_feed_forward_equals_llama() -> None:
    gate, up, down = (torch.nn.Linear(*sizes, bias=False).double() for sizes in ((5, 7), (5, 7), (7, 5)))
    (x,) = made(6, (2, 3, 5))
    expected = down(torchs_own.silu(gate(x)) * up(x)).detach()
    weights = three(layer.weight.detach().T for layer in (gate, up, down))
    assert_close(f_feed_forward.gated_feed_forward(x, *weights), expected)
    assert_close(r_feed_forward.gated_feed_forward(*exactly(x, *weights)), expected)


# --- norms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm(shape: tuple[int, ...], dtype: str) -> None:
    x, weight, bias = made(7, shape, shape[-1:], shape[-1:], dtype=dtype)
    for w, b in ((None, None), (weight, None), (weight, bias)):
        expected = r_norms.layer_norm(*exactly(x, w, b))
        ours = f_norms.layer_norm(x, w, b)
        assert ours.dtype == x.dtype
        assert_close(ours, expected)
        assert_close(torchs_own.layer_norm(x, shape[-1:], w, b), expected)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rms_norm(shape: tuple[int, ...], dtype: str) -> None:
    x, weight = made(8, shape, shape[-1:], dtype=dtype)
    for w in (None, weight):
        expected = r_norms.rms_norm(*exactly(x, w))
        ours = f_norms.rms_norm(x, w)
        assert ours.dtype == x.dtype
        assert_close(ours, expected)
        assert_close(torchs_own.rms_norm(x, shape[-1:], w, eps=1e-6), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rms_norm_equals_llama_bit_for_bit(dtype: str) -> None:
    x, weight = made(9, (50, 64), (64,), dtype=dtype)
    wide = x.float()
    normalised = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    assert_same_bits(f_norms.rms_norm(x, weight), weight * normalised.to(x.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float32_norms_of_half_precision_inputs(dtype: str) -> None:
    (x,) = made(10, (3, 7), dtype=dtype)
    weight, bias = made(11, (7,), (7,), dtype="float32")
    for ours, expected in (
        (f_norms.layer_norm(x, weight, bias), r_norms.layer_norm(*exactly(x, weight, bias))),
        (f_norms.layer_norm(x, bias=bias), r_norms.layer_norm(exactly(x)[0], bias=exactly(bias)[0])),
        (f_norms.rms_norm(x, weight), r_norms.rms_norm(*exactly(x, weight))),
    ):
        assert ours.dtype == x.dtype
        assert_close(ours, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_norms_agree_if_both_packages_compute_in_the_same_dtype(dtype: str) -> None:
    x, weight = made(12, (3, 7), (7,), dtype=dtype)
    for name in ("layer_norm", "rms_norm"):
        theirs = getattr(r_norms, name)(x.numpy(), weight.numpy())
        assert theirs.dtype == x.numpy().dtype
        assert_close(getattr(f_norms, name)(x, weight), theirs)


# --- positions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize(("length", "d_model", "start"), [(0, 4, 0), (1, 1, 0), (63, 7, 5), (127, 8, 3000)])
def test_sinusoidal_positions(length: int, d_model: int, start: int, dtype: str) -> None:
    like = torch.zeros(1, dtype=getattr(torch, dtype))
    ours = f_positions.sinusoidal_positions(length, d_model, start=start, like=like)
    expected = r_positions.sinusoidal_positions(length, d_model, start=start)
    assert ours.dtype == like.dtype
    assert_close(ours, expected)
    assert f_positions.sinusoidal_positions(length, d_model).dtype == torch.get_default_dtype()


def test_learned_positions_equal_an_embedding() -> None:
    module = torch.nn.Embedding(9, 4)
    expected = module(torch.arange(2, 7)).detach()
    assert_same_bits(f_positions.learned_positions(module.weight, 5, start=2), expected)
    assert_same_bits(r_positions.learned_positions(module.weight.detach().numpy(), 5, start=2), expected)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("pairing", ["halves", "pairs"])
@pytest.mark.parametrize(
    ("shape", "positions"),
    [((1, 2), (1,)), ((63, 6), (63,)), ((2, 3, 7, 10), (7,)), ((2, 3, 7, 10), (2, 1, 7)), ((2, 0, 4), (0,))],
    ids=str,
)
def test_rotate(shape: tuple[int, ...], positions: tuple[int, ...], pairing: Pairing, dtype: str) -> None:
    (x,) = made(13, shape, dtype=dtype)
    at = torch.randint(0, 5000, positions, generator=torch.Generator().manual_seed(0))
    expected = r_positions.rotate(*exactly(x), at.numpy(), pairing=pairing)
    ours = f_positions.rotate(x, at, pairing=pairing)
    assert ours.dtype == x.dtype
    assert_close(ours, expected)


@pytest.mark.parametrize("pairing", ["halves", "pairs"])
def test_rotate_equals_complex_multiplication(pairing: Pairing) -> None:
    (x,) = made(14, (2, 5, 8))
    at = torch.tensor([0, 1, 2, 50, 1000])
    pairs = x.unflatten(-1, (2, 4)).transpose(-1, -2) if pairing == "halves" else x.unflatten(-1, (4, 2))
    rotations = torch.polar(torch.ones(5, 4, dtype=torch.float64), f_positions.rotary_angles(at, 8))
    rotated = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * rotations)
    expected = (rotated.transpose(-1, -2) if pairing == "halves" else rotated).flatten(-2)
    assert_close(f_positions.rotate(x, at, pairing=pairing), expected)
    assert_close(r_positions.rotate(*exactly(x), at.numpy(), pairing=pairing), expected)


def test_rotary_angles() -> None:
    at = torch.tensor([[0.0, 0.5], [3.0, 131071.0]])
    ours = f_positions.rotary_angles(at, 6, base=500000.0)
    assert ours.dtype == torch.float64
    assert_close(ours, r_positions.rotary_angles(at.numpy(), 6, base=500000.0))


def test_angles_are_float32_only_on_devices_without_float64() -> None:
    assert f_positions._exact(torch.device("mps")) == torch.float32
    assert f_positions._exact(torch.device("cuda")) == torch.float64


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize(("H", "T", "S"), [(1, 1, 1), (8, 5, 5), (12, 1, 63), (7, 13, 3), (3, 0, 4), (3, 4, 0)])
def test_alibi(H: int, T: int, S: int, dtype: str) -> None:
    like = torch.zeros(1, dtype=getattr(torch, dtype))
    bias = f_positions.alibi_bias(H, T, S, like=like)
    assert bias.dtype == like.dtype
    assert_close(bias, r_positions.alibi_bias(H, T, S))
    assert_close(f_positions.alibi_slopes(H, like=like), r_positions.alibi_slopes(H))


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([(32, 128), (8, 9), (4, 2), (10, 160)]), st.booleans())
def test_relative_positions(T: int, S: int, sizes: tuple[int, int], bidirectional: bool) -> None:
    n_buckets, max_distance = sizes
    max_distance = max_distance if bidirectional else max(max_distance, n_buckets)
    options = (max_distance, bidirectional)
    ours = f_positions.relative_position_buckets(T, S, n_buckets, *options)
    np.testing.assert_array_equal(
        ours.numpy(), r_positions.relative_position_buckets(T, S, n_buckets, *options), strict=True
    )
    (table,) = made(15, (n_buckets, 3), dtype="float32")
    assert_same_bits(
        f_positions.relative_bias(table, T, S, *options),
        r_positions.relative_bias(table.numpy(), T, S, *options),
    )


# --- memory, compile, autocast ---------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layouts_change_nothing(layout: str) -> None:
    def all_parts(packages: tuple[Any, Any, Any], arrays: Iterable[Any], at: Any) -> Any:
        norms, feed_forward, positions = packages
        x, W_1, W_2, W_up = arrays
        yield norms.layer_norm(x)
        yield norms.rms_norm(x)
        yield positions.rotate(x, at)
        yield feed_forward.feed_forward(x, W_1, W_2)
        yield feed_forward.gated_feed_forward(x, W_1, W_up, W_2)

    (x,), (W_1, W_2, W_up, *_) = made(16, (2, 5, 6)), rounded_weights(17, 6, 11, "float64")
    arrays = [lay_out(a.numpy(), layout) for a in (x, W_1, W_2, W_up)]
    packages, torch_versions = (r_norms, r_feed_forward, r_positions), (f_norms, f_feed_forward, f_positions)
    expected = all_parts(packages, (np.ascontiguousarray(a) for a in arrays), np.arange(5))
    ours = all_parts(packages, arrays, np.arange(5))
    torchs = all_parts(torch_versions, (as_tensor(a) for a in arrays), torch.arange(5))
    for plain, array, tensor in zip(expected, ours, torchs, strict=True):
        assert_close(array, plain)
        assert_close(tensor, plain)


def test_everything_compiles_as_one_graph() -> None:
    def block(x: Tensor, W_1: Tensor, W_2: Tensor, weight: Tensor, table: Tensor) -> Tensor:
        T, D = x.shape[-2:]
        x = x + f_positions.sinusoidal_positions(T, D, like=x) + f_positions.learned_positions(table, T)
        x = f_positions.rotate(f_norms.layer_norm(x, weight), torch.arange(T))
        x = x + f_positions.alibi_bias(1, T, D, like=x)[0] + f_positions.relative_bias(table[:8, :1], T, D)[0]
        return f_norms.rms_norm(f_feed_forward.feed_forward(x, W_1, W_2, activation="gelu_tanh"), weight)

    arguments = made(18, (2, 5, 6), (6, 7), (7, 6), (6,), (9, 6), dtype="float32")
    compiled = torch.compile(block, backend="eager", fullgraph=True)
    assert_close(compiled(*arguments), block(*arguments))


def test_autocast_keeps_norms_and_angles_exact() -> None:
    x, weight = made(19, (2, 5, 6), (6,), dtype="float32")
    W_1, W_2, *_ = rounded_weights(20, 6, 7, "float32")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(f_norms.rms_norm(x, weight), r_norms.rms_norm(*exactly(x, weight)))
        assert_close(f_positions.rotate(x, torch.arange(5)), r_positions.rotate(*exactly(x), np.arange(5)))
        narrow = f_feed_forward.feed_forward(x, W_1, W_2)
    assert narrow.dtype == torch.bfloat16
    assert_close(narrow, r_feed_forward.feed_forward(*exactly(x, W_1, W_2)))


# --- both packages raise the same errors -----------------------------------------------------------------------------

SIZES = [(), (2, 0), (3,), (2, 3), (3, 5), (5, 3), (5,), (4, 4, 4, 6), (2, 4, 5), (4, 2), (4, 4, 3)]
ONES = {shape: np.ones(shape) for shape in SIZES}
WRONG_CALLS: dict[str, tuple[ModuleType, str, tuple[Any, ...], dict[str, Any]]] = {
    "activation": (r_activations, "get_activation", ("swish",), {}),
    "approximate": (r_activations, "gelu", (ONES[3,], "erf"), {}),
    "no width": (r_feed_forward, "feed_forward", (ONES[2, 0], ONES[3, 5], ONES[5, 3]), {}),
    "no axis": (r_norms, "layer_norm", (ONES[()],), {}),
    "W_1": (r_feed_forward, "feed_forward", (ONES[2, 3], ONES[5, 3], ONES[5, 3]), {}),
    "W_2": (r_feed_forward, "feed_forward", (ONES[2, 3], ONES[3, 5], ONES[3, 5]), {}),
    "b_1": (r_feed_forward, "feed_forward", (ONES[2, 3], ONES[3, 5], ONES[5, 3], ONES[3,]), {}),
    "b_2": (r_feed_forward, "feed_forward", (ONES[2, 3], ONES[3, 5], ONES[5, 3], None, ONES[5,]), {}),
    "W_gate": (r_feed_forward, "gated_feed_forward", (ONES[2, 3], ONES[5, 3], ONES[3, 5], ONES[5, 3]), {}),
    "W_up": (r_feed_forward, "gated_feed_forward", (ONES[2, 3], ONES[3, 5], ONES[5, 3], ONES[5, 3]), {}),
    "W_down": (r_feed_forward, "gated_feed_forward", (ONES[2, 3], ONES[3, 5], ONES[3, 5], ONES[3, 5]), {}),
    "norm weight": (r_norms, "rms_norm", (ONES[2, 3], ONES[5,]), {}),
    "norm bias": (r_norms, "layer_norm", (ONES[2, 3], None, ONES[5,]), {}),
    "eps": (r_norms, "rms_norm", (ONES[2, 3],), {"eps": -1.0}),
    "length": (r_positions, "sinusoidal_positions", (-1, 4), {}),
    "d_model": (r_positions, "sinusoidal_positions", (3, 0), {}),
    "start": (r_positions, "sinusoidal_positions", (3, 4), {"start": -1}),
    "base": (r_positions, "sinusoidal_positions", (3, 4), {"base": 0.0}),
    "beyond the table": (r_positions, "learned_positions", (ONES[5, 3], 4, 2), {}),
    "not a table": (r_positions, "learned_positions", (ONES[5,], 4), {}),
    "odd width": (r_positions, "rotate", (ONES[2, 4, 5], np.arange(4)), {}),
    "one axis": (r_positions, "rotate", (ONES[3,], np.arange(1)), {}),
    "pairing": (r_positions, "rotate", (ONES[4, 4, 4, 6], np.arange(4)), {"pairing": "neox"}),
    "positions shape": (r_positions, "rotate", (ONES[4, 4, 4, 6], np.zeros((4, 4), int)), {}),
    "positions length": (r_positions, "rotate", (ONES[4, 4, 4, 6], np.zeros(1, int)), {}),
    "heads": (r_positions, "alibi_slopes", (0,), {}),
    "position after the table": (r_positions, "learned_at", (ONES[5, 3], np.array([[0, 4], [5, 1]])), {}),
    "position before the table": (r_positions, "learned_at", (ONES[5, 3], np.array([0, -1])), {}),
    "no table": (r_positions, "learned_at", (ONES[5,], np.arange(3)), {}),
    "sinusoidal pairing": (r_positions, "sinusoidal_at", (np.arange(3), 4), {"pairing": "marian"}),
    "sinusoidal width": (r_positions, "sinusoidal_at", (np.arange(3), 0), {}),
    "scaling": (r_positions, "rotary_frequencies", (4,), {"scaling": "linear"}),
    "yarn base": (r_positions, "rotary_frequencies", (4, 1.0, YarnScaling(factor=2.0, original_len=8)), {}),
    "rotations width": (r_positions, "apply_rotations", (ONES[4, 4, 4, 6], (ONES[4, 2], ONES[4, 2])), {}),
    "rotations axes": (r_positions, "apply_rotations", (ONES[4, 4, 4, 6], (ONES[4, 4, 3], ONES[4, 4, 3])), {}),
    "rotations of one axis": (r_positions, "apply_rotations", (ONES[3,], (ONES[5, 3], ONES[5, 3])), {}),
    "places samples": (r_positions, "alibi_bias_at", (2, np.zeros((2, 3), int), np.zeros((4, 3), int)), {}),
    "places axes": (r_positions, "relative_bias_at", (ONES[4, 2], np.zeros((1, 2, 3), int), np.arange(3)), {}),
    "T": (r_positions, "alibi_bias", (2, -1, 3), {}),
    "buckets": (r_positions, "relative_position_buckets", (3, 3, 2), {}),
    "odd buckets": (r_positions, "relative_position_buckets", (3, 3, 31), {}),
    "distance": (r_positions, "relative_position_buckets", (3, 3, 32, 8), {}),
    "table": (r_positions, "relative_bias", (ONES[3,], 3, 3), {}),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_both_packages_raise_the_same_message(case: str) -> None:
    package, name, arguments, options = WRONG_CALLS[case]
    tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
    with pytest.raises(RegardError) as theirs:
        getattr(package, name)(*arguments, **options)
    with pytest.raises(RegardError) as ours:
        getattr(COUNTERPARTS[package], name)(*tensors, **options)
    assert type(ours.value) is type(theirs.value)
    for language in ("en", "zh"):
        assert ours.value.text(language) == theirs.value.text(language)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "complex64"])
def test_half_precision_positions_are_refused(dtype: str) -> None:
    at = torch.arange(4).to(getattr(torch, dtype))
    with pytest.raises(
        RegardError, match=f"positions must be whole numbers, or float32 or float64; found torch.{dtype}"
    ):
        f_positions.rotate(torch.ones(4, 6), at)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_query_and_key_positions_must_be_integers(dtype: str) -> None:
    at, whole, table = np.zeros(3, dtype), np.arange(3), np.ones((8, 2))
    for package, made, spelled in ((r_positions, np.asarray, dtype), (f_positions, torch.tensor, f"torch.{dtype}")):
        for name, call in (
            ("positions", lambda f, a: f.learned_at(a(table), a(at))),
            ("queries", lambda f, a: f.alibi_bias_at(2, a(at), a(whole))),
            ("keys", lambda f, a: f.relative_bias_at(a(table), a(whole), a(at))),
        ):
            with pytest.raises(RegardError, match=f"^{name} must be whole numbers.* found {spelled}$"):
                call(package, made)
