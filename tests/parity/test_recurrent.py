"""Recurrent layers and their attention: reference = functional = layers = PyTorch's own nn.RNN and nn.LSTM."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close
from torch import nn

from regard import functional, reference
from regard.errors import ShapeError
from regard.layers import LSTM, AdditiveAttention, Elman, MultiplicativeAttention
from regard.masks import Mask
from regard.trace import Recorder

SIZES = st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 7, 13]), st.integers(1, 5), st.integers(1, 5))
DTYPES = ("float64", "float32")


def numbers(seed: int, dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def recurrent_inputs(sizes: tuple[int, int, int, int], n_gates: int, seed: int, dtype: str) -> list[np.ndarray]:
    """x, states, W_x, W_h, b_x and b_h; two states for four gates, one for one."""
    B, T, D, F = sizes
    states = [(B, F)] * (2 if n_gates == 4 else 1)
    return numbers(seed, dtype, (B, T, D), *states, (D, n_gates * F), (F, n_gates * F), (n_gates * F,), (n_gates * F,))


def load(module: nn.Module, weights: list[np.ndarray], names: tuple[str, ...]) -> None:
    W_x, W_h, b_x, b_h = weights
    values = (W_x.T, W_h.T, b_x, b_h)
    module.load_state_dict({name: torch.tensor(value) for name, value in zip(names, values, strict=True)})


TORCH_NAMES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
OUR_NAMES = ("weight_x", "weight_h", "bias_x", "bias_h")


@given(SIZES, st.integers(0, 99), st.sampled_from(DTYPES))
def test_elman_equals_nn_rnn(sizes: tuple[int, int, int, int], seed: int, dtype: str) -> None:
    x, h, *weights = recurrent_inputs(sizes, 1, seed, dtype)
    expected = reference.elman(x, h, *weights)
    tensors = [torch.tensor(each) for each in (x, h, *weights)]
    assert_close(functional.elman(*tensors), expected, "output")
    theirs, ours = nn.RNN(sizes[2], sizes[3], batch_first=True), Elman(sizes[2], sizes[3])
    for module, names in ((theirs, TORCH_NAMES), (ours, OUR_NAMES)):
        load(module.to(tensors[0].dtype), weights, names)
    assert_close(theirs(tensors[0], tensors[1][None])[0], expected, "output")
    assert_close(ours(*tensors[:2]), expected, "output")


@given(SIZES, st.integers(0, 99), st.sampled_from(DTYPES))
def test_lstm_equals_nn_lstm(sizes: tuple[int, int, int, int], seed: int, dtype: str) -> None:
    x, h, c, *weights = recurrent_inputs(sizes, 4, seed, dtype)
    output, last = reference.lstm(x, h, c, *weights)
    tensors = [torch.tensor(each) for each in (x, h, c, *weights)]
    theirs, ours = nn.LSTM(sizes[2], sizes[3], batch_first=True), LSTM(sizes[2], sizes[3])
    for module, names in ((theirs, TORCH_NAMES), (ours, OUR_NAMES)):
        load(module.to(tensors[0].dtype), weights, names)
    found, (h_n, c_n) = theirs(tensors[0], (tensors[1][None], tensors[2][None]))
    state = functional.LSTMState(*tensors[1:3])
    for actual, (h_last, c_last) in (
        (found, (h_n[0], c_n[0])),
        functional.lstm(*tensors),
        ours(tensors[0], state),
    ):
        assert_close(actual, output, "output")
        assert_close(h_last, last.h, "output")
        assert_close(c_last, last.c, "output")


@given(SIZES, st.integers(0, 99))
def test_cells_of_torch_equal_the_reference(sizes: tuple[int, int, int, int], seed: int) -> None:
    x, h, c, *weights = recurrent_inputs(sizes, 4, seed, "float64")
    expected = reference.lstm_cell(x[:, 0], h, c, *weights)
    found = functional.lstm_cell(*map(torch.tensor, (x[:, 0], h, c, *weights)))
    assert_close(found.h, expected.h, "output")
    assert_close(found.c, expected.c, "output")
    x, h, *weights = recurrent_inputs(sizes, 1, seed, "float64")
    found_h = functional.elman_cell(*map(torch.tensor, (x[:, 0], h, *weights)))
    assert_close(found_h, reference.elman_cell(x[:, 0], h, *weights), "output")


def test_states_default_to_zeros_and_biases_to_none() -> None:
    x, h, _c, W_x, W_h, *_ = recurrent_inputs((2, 3, 4, 5), 4, 0, "float64")
    zeros = np.zeros_like(h)
    expected, _ = reference.lstm(x, zeros, zeros, W_x, W_h)
    assert_close(reference.lstm(x, None, None, W_x, W_h)[0], expected, "output")
    tensors = map(torch.tensor, (x, W_x, W_h))
    x_t, W_x_t, W_h_t = tensors
    assert_close(functional.lstm(x_t, None, None, W_x_t, W_h_t)[0], expected, "output")


def test_a_text_without_words_leaves_the_state() -> None:
    x, h, c, *weights = recurrent_inputs((2, 1, 4, 5), 4, 0, "float64")
    output, last = reference.lstm(x[:, :0], h, c, *weights)
    found, state = functional.lstm(*map(torch.tensor, (x[:, :0], h, c, *weights)))
    assert output.shape == tuple(found.shape) == (2, 0, 5)
    assert_close(state.c, last.c, "output")
    assert_close(last.c, c, "output")


@pytest.mark.parametrize("package", [reference, functional])
def test_shapes_that_do_not_fit_are_named(package: Any) -> None:
    inputs: Any = recurrent_inputs((2, 3, 4, 5), 4, 0, "float64")
    x, h, c, *weights = map(torch.tensor, inputs) if package is functional else inputs
    with pytest.raises(ShapeError, match=r"W_x must have shape \(4, 20\); found \(4, 19\)"):
        package.lstm(x, h, c, weights[0][:, :-1], *weights[1:])
    with pytest.raises(ShapeError, match=r"h must have shape \(2, 5\); found \(2, 4\)"):
        package.lstm(x, h[:, :-1], c, *weights)
    with pytest.raises(ShapeError, match="w must have shape"):
        package.additive_attention(x, x, x, x[0].T, x[0].T, x[0])
    with pytest.raises(ShapeError, match=r"W must have shape \(4, 4\)"):
        package.multiplicative_attention(x, x, x, x[0])


def masks(T: int, S: int) -> dict[str, Any]:
    raw = np.random.default_rng(0).random((T, S)) < 0.5
    raw[0] = False
    return {"none": None, "nothing visible to the first query": raw, "all masked": np.zeros((T, S), bool)}


@pytest.mark.parametrize(("T", "S"), [(1, 1), (3, 7), (5, 1)])
@pytest.mark.parametrize("which", masks(1, 1))
def test_attention_of_both_kinds(T: int, S: int, which: str) -> None:
    q, k, v, W_q, W_k, w, W = numbers(0, "float64", (2, T, 3), (2, S, 4), (2, S, 5), (3, 6), (4, 6), (6,), (3, 4))
    mask = masks(T, S)[which]
    visible = np.ones((T, S), bool) if mask is None else mask
    for name, extra in (("additive_attention", (W_q, W_k, w)), ("multiplicative_attention", (W,))):
        output, weights = getattr(reference, name)(q, k, v, *extra, mask)
        mask_t = None if mask is None else torch.tensor(mask)
        tensors = map(torch.tensor, (q, k, v, *extra))
        found, found_weights = getattr(functional, name)(*tensors, mask_t)
        assert_close(found, output, "output")
        assert_close(found_weights, weights, "weights")
        assert_close(weights.sum(-1), np.broadcast_to(visible.any(-1), (2, T)).astype(float), "weights")
        assert not output[:, ~visible.any(-1)].any()


def test_attention_layers_equal_the_reference_and_can_be_recorded() -> None:
    arrays = numbers(1, "float64", (2, 3, 4), (2, 5, 6))
    qkv = arrays[0], arrays[1], arrays[1]
    q, memory = (torch.tensor(each) for each in arrays)
    keep = torch.tensor([[True] * 5, [True, True, False, False, False]])
    mask = Mask.from_keep(keep)
    additive, general = AdditiveAttention(4, 6, 8).double(), MultiplicativeAttention(4, 6).double()
    W_q, W_k = (each.weight.T.detach().numpy() for each in (additive.q_proj, additive.k_proj))
    raw = np.broadcast_to(keep.numpy()[:, None], (2, 3, 5))
    cases: list[tuple[nn.Module, Any]] = [
        (additive, reference.additive_attention(*qkv, W_q, W_k, additive.score.detach().numpy(), raw)),
        (
            general,
            reference.multiplicative_attention(*qkv, general.q_proj.weight.T.detach().numpy(), raw),
        ),
    ]
    for layer, (output, weights) in cases:
        assert_close(layer(q, memory, mask=mask), output, "output")
        recorder = Recorder()
        assert_close(layer(q, memory, mask=mask, attend=recorder), output, "output")
        (record,) = recorder.trace
        assert record.kind == "cross"
        assert_close(record.weights()[:, 0], weights, "weights")
