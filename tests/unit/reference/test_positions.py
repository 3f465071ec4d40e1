"""Position encodings: each compared with a loop over its paper's definition, and its properties."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import LinearScaling, Llama3Scaling, NtkScaling, Scaling, YarnScaling
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.reference.positions import (
    alibi_bias,
    alibi_bias_at,
    alibi_slopes,
    apply_rotations,
    learned_at,
    learned_positions,
    relative_bias,
    relative_bias_at,
    relative_position_buckets,
    rotary_angles,
    rotary_frequencies,
    rotate,
    rotations_at,
    sinusoidal_at,
    sinusoidal_positions,
)

PAIRINGS = ("halves", "pairs")


def refused(kind: type[RegardError], *parts: str, call: Callable[[], Any]) -> None:
    """The call raises, and the message contains these values in both languages."""
    with pytest.raises(kind) as caught:
        call()
    for text in (caught.value.text("en"), caught.value.text("zh")):
        for part in parts:
            assert part in text


# --- sinusoidal ------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.integers(1, 13), st.sampled_from((10000.0, 10.0)), st.integers(0, 100))
def test_sinusoidal_equals_the_paper(length: int, d_model: int, base: float, start: int) -> None:
    table = sinusoidal_positions(length, d_model, base, start)
    assert table.shape == (length, d_model)
    assert table.dtype == np.float64
    for p in range(length):
        for column in range(d_model):
            angle = (start + p) / base ** (2 * (column // 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[p, column] == pytest.approx(expected, abs=1e-12)


def test_a_shift_of_positions_is_a_fixed_rotation() -> None:
    # Section 3.5: PE(p + k) is a linear function of PE(p), the same for every p.
    table = sinusoidal_positions(20, 8)
    rotated = rotate(table[:17, [1, 0, 3, 2, 5, 4, 7, 6]], np.full(17, 3), pairing="pairs")
    np.testing.assert_allclose(rotated[:, [1, 0, 3, 2, 5, 4, 7, 6]], table[3:], atol=1e-12)


def test_start_continues_where_the_last_call_ended() -> None:
    whole = sinusoidal_positions(7, 5)
    np.testing.assert_array_equal(
        np.concatenate([sinusoidal_positions(4, 5), sinusoidal_positions(3, 5, start=4)]), whole
    )


@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_the_sinusoidal_pairings_differ_only_in_the_order_of_columns(d_model: int) -> None:
    pairs, halves = (sinusoidal_positions(9, d_model, pairing=pairing) for pairing in ("pairs", "halves"))
    np.testing.assert_array_equal(np.concatenate([pairs[:, 0::2], pairs[:, 1::2]], axis=1), halves)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_sinusoidal_at_returns_rows_of_the_table(pairing: str) -> None:
    places = np.array([[3, 0, 7], [7, 7, 1]])
    table = sinusoidal_positions(8, 5, pairing=pairing)  # type: ignore[arg-type]
    np.testing.assert_array_equal(sinusoidal_at(places, 5, pairing=pairing), table[places])  # type: ignore[arg-type]
    # A text padded on the left has the same positions as alone.
    padded = sinusoidal_at(np.array([0, 0, 0, 1, 2]), 5, pairing=pairing)  # type: ignore[arg-type]
    np.testing.assert_array_equal(padded[2:], table[:3])


def test_sinusoidal_at_errors() -> None:
    refused(DtypeError, "float16", call=lambda: sinusoidal_at(np.zeros(2, np.float16), 4))
    refused(ArgumentError, "d_model", "0", call=lambda: sinusoidal_at(np.arange(2), 0))
    refused(ArgumentError, "'marian'", call=lambda: sinusoidal_at(np.arange(2), 4, pairing="marian"))  # type: ignore[arg-type]


def test_like_sets_the_dtype_and_angles_are_exact() -> None:
    far = sinusoidal_positions(1, 4, start=3001, like=np.zeros(1, np.float16))
    assert far.dtype == np.float16
    assert far[0, 0] == np.float16(math.sin(3001))  # float16 cannot represent 3001
    assert sinusoidal_positions(1, 4, like=np.array([5])).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"length": -1}, "length"),
        ({"length": 2.0}, "length"),
        ({"length": True}, "length"),
        ({"d_model": 0}, "d_model"),
        ({"start": -1}, "start"),
    ],
)
def test_sinusoidal_sizes_are_integers(arguments: dict[str, Any], said: str) -> None:
    arguments = {"length": 3, "d_model": 4} | arguments
    refused(ArgumentError, said, repr(arguments[said]), call=lambda: sinusoidal_positions(**arguments))


@pytest.mark.parametrize("base", [0.0, -1.0, math.inf, math.nan])
def test_base_is_positive_and_finite(base: float) -> None:
    refused(ArgumentError, repr(base), call=lambda: sinusoidal_positions(3, 4, base=base))
    refused(ArgumentError, repr(base), call=lambda: rotary_angles(np.arange(3), 4, base=base))


# --- learned ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "start"), [(0, 0), (0, 5), (5, 0), (2, 3)])
def test_learned_positions_are_rows_of_the_table(length: int, start: int) -> None:
    table = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(learned_positions(table, length, start), table[start : start + length])


def test_beyond_the_table_is_an_error_with_value_limit_and_fix() -> None:
    table = np.zeros((5, 2))
    refused(ArgumentError, "4", "2", "max_len=5", "6", call=lambda: learned_positions(table, 4, start=2))
    refused(ArgumentError, "max_len=5", call=lambda: learned_positions(table, 0, start=6))
    # A negative start would silently read from the end.
    refused(ArgumentError, "start", "-2", call=lambda: learned_positions(table, 2, start=-2))
    refused(ShapeError, "(max_len, D)", "(5,)", call=lambda: learned_positions(table[:, 0], 2))


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (2, 1, 3)])
def test_learned_at_returns_rows_of_the_table(shape: tuple[int, ...]) -> None:
    table = np.arange(10.0).reshape(5, 2)
    places = np.random.default_rng(0).integers(0, 5, shape)
    np.testing.assert_array_equal(learned_at(table, places), table[places])
    np.testing.assert_array_equal(learned_at(table, np.arange(1, 4)), learned_positions(table, 3, start=1))


@pytest.mark.parametrize(("places", "value"), [([0, 5], 5), ([[4], [9]], 9), ([1, -1], -1)])
def test_a_position_outside_the_table_is_an_error(places: list[Any], value: int) -> None:
    table = np.zeros((5, 2))
    refused(ArgumentError, f" {value} ", "max_len=5", call=lambda: learned_at(table, np.array(places)))


def test_learned_at_errors() -> None:
    refused(ArgumentError, "max_len=0", call=lambda: learned_at(np.zeros((0, 2)), np.array([0])))
    refused(DtypeError, "positions", "float64", call=lambda: learned_at(np.zeros((5, 2)), np.array([0.0])))
    refused(ShapeError, "(max_len, D)", "(5,)", call=lambda: learned_at(np.zeros(5), np.array([0])))


# --- rotary ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_rotate_equals_a_rotation_matrix_per_pair(pairing: str) -> None:
    E, positions = 6, np.array([0, 1, 7])
    x = np.random.default_rng(0).standard_normal((2, 3, E))
    y = rotate(x, positions, base=100.0, pairing=pairing)  # type: ignore[arg-type]
    for t, p in enumerate(positions):
        for i in range(E // 2):
            a, b = (i, i + E // 2) if pairing == "halves" else (2 * i, 2 * i + 1)
            angle = p * 100.0 ** (-2 * i / E)
            rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            np.testing.assert_allclose(y[:, t, [a, b]], x[:, t, [a, b]] @ rotation.T, atol=1e-12)


rotations = st.tuples(st.sampled_from(PAIRINGS), st.sampled_from((2, 4, 10)), st.integers(0, 99))


@given(rotations, st.integers(-50, 3000))
def test_rotations_keep_norms_and_are_invertible(rotation: tuple[str, int, int], p: int) -> None:
    pairing, E, seed = rotation
    x = np.random.default_rng(seed).standard_normal((2, 3, E))
    positions = np.array([p, p + 1, 0])
    y = rotate(x, positions, pairing=pairing)  # type: ignore[arg-type]
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1))
    np.testing.assert_allclose(rotate(y, -positions, pairing=pairing), x, atol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_array_equal(y[:, 2], x[:, 2])  # position 0 is not rotated


@given(rotations, st.integers(0, 500), st.integers(0, 500), st.integers(0, 2000))
def test_scores_depend_on_the_distance_only(rotation: tuple[str, int, int], m: int, n: int, shift: int) -> None:
    pairing, E, seed = rotation
    q, k = np.random.default_rng(seed).standard_normal((2, 1, E))

    def score(at_q: int, at_k: int) -> float:
        rotated = (rotate(x, np.array([p]), pairing=pairing) for x, p in ((q, at_q), (k, at_k)))  # type: ignore[arg-type]
        return (next(rotated) @ next(rotated).T).item()

    assert score(m + shift, n + shift) == pytest.approx(score(m, n), abs=1e-9)
    assert score(m, m) == pytest.approx((q @ k.T).item(), abs=1e-9)


def test_the_two_pairings_differ_only_in_the_order_of_columns() -> None:
    x, order = np.random.default_rng(1).standard_normal((5, 8)), [0, 2, 4, 6, 1, 3, 5, 7]
    halves = rotate(x[:, order], np.arange(5), pairing="halves")
    np.testing.assert_allclose(rotate(x, np.arange(5), pairing="pairs")[:, order], halves)
    assert not np.allclose(rotate(x, np.arange(5), pairing="pairs"), rotate(x, np.arange(5), pairing="halves"))


def test_positions_may_differ_by_sample() -> None:
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 6))
    positions = np.array([[0, 1, 2, 3], [5, 6, 7, 8]])
    y = rotate(x, positions[:, None])
    for b in range(2):
        np.testing.assert_array_equal(y[b], rotate(x[b], positions[b]))


def test_fractional_positions() -> None:
    x = np.random.default_rng(3).standard_normal((1, 4))
    np.testing.assert_allclose(rotate(rotate(x, np.array([0.5])), np.array([0.5])), rotate(x, np.array([1])))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 2, 3, 4), (2, 1, 0, 4)])
def test_empty_x_stays_empty(shape: tuple[int, ...]) -> None:
    assert rotate(np.ones(shape), np.arange(shape[-2])).shape == shape


def test_half_precision_is_rotated_in_float32_by_exact_angles() -> None:
    x = np.random.default_rng(4).standard_normal((2, 8)).astype(np.float16)
    far = np.array([100_000, 3001])
    y = rotate(x, far)
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, rotate(x.astype(np.float32), far).astype(np.float16))
    assert rotate(np.array([[1, 0]]), np.array([1])).dtype == np.float64


def test_nan_affects_only_its_pair() -> None:
    x = np.ones((1, 6))
    x[0, 1] = np.nan
    assert np.isnan(rotate(x, np.array([3]))).nonzero()[1].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("shape", "positions"),
    [
        ((2, 3, 4, 6), (2, 4)),  # one row per sample: would broadcast over heads
        ((4, 4, 4, 6), (4, 4)),  # here without an error
        ((2, 4, 6), (1,)),  # the same position for all
        ((2, 4, 6), (3,)),
        ((2, 4, 6), (2, 1)),
        ((2, 4, 6), (3, 4)),
        ((2, 4, 6), (1, 2, 4)),
        ((2, 4, 6), ()),
    ],
)
def test_positions_that_do_not_fit_are_refused(shape: tuple[int, ...], positions: tuple[int, ...]) -> None:
    refused(
        ShapeError,
        str(positions),
        str(shape),
        "positions[:, None]",
        call=lambda: rotate(np.ones(shape), np.zeros(positions, int)),
    )


def test_rotary_errors() -> None:
    x, positions = np.ones((3, 4)), np.arange(3)
    refused(ShapeError, "5", "4", "6", call=lambda: rotate(np.ones((3, 5)), positions))
    refused(ShapeError, "(4,)", call=lambda: rotate(np.ones(4), np.arange(1)))
    refused(ArgumentError, "'neox'", "halves, pairs", call=lambda: rotate(x, positions, pairing="neox"))  # type: ignore[arg-type]
    for dtype in ("float16", "bool", "complex128"):
        refused(DtypeError, dtype, call=partial(rotate, x, positions.astype(dtype)))
    refused(ArgumentError, "d_head", "-2", call=lambda: rotary_angles(positions, -2))


@given(rotations, st.lists(st.integers(0, 500), min_size=1, max_size=4))
def test_rotate_equals_apply_rotations(rotation: tuple[str, int, int], places: list[int]) -> None:
    pairing, E, seed = rotation
    x, at = np.random.default_rng(seed).standard_normal((3, len(places), E)), np.array(places)
    rotated = apply_rotations(x, rotations_at(at, E), pairing=pairing)  # type: ignore[arg-type]
    np.testing.assert_array_equal(rotated, rotate(x, at, pairing=pairing))  # type: ignore[arg-type]


def test_rotations_may_differ_by_sample() -> None:
    x, places = np.random.default_rng(2).standard_normal((2, 3, 4, 6)), np.array([[0, 0, 0, 1], [5, 6, 7, 8]])
    rotated = apply_rotations(x, rotations_at(places[:, None], 6))
    for b in range(2):
        np.testing.assert_array_equal(rotated[b], apply_rotations(x[b], rotations_at(places[b], 6)))


@pytest.mark.parametrize("shape", [(4, 2), (4, 6), (3, 3), (2, 4, 3), (1, 2, 1, 4, 3), (3,), ()])
def test_rotations_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    x, rotations = np.ones((2, 5, 4, 6)), (np.ones(shape), np.ones(shape))
    refused(ShapeError, str(shape), str(x.shape), "d_head=6", call=lambda: apply_rotations(x, rotations))  # type: ignore[arg-type]
    refused(ShapeError, "(6,)", call=lambda: apply_rotations(np.ones(6), rotations))  # type: ignore[arg-type]


# --- rotary scalings -------------------------------------------------------------------------------------


def test_linear_scaling_divides_positions() -> None:
    scaled = rotary_angles(np.arange(9), 6, scaling=LinearScaling(factor=4.0))
    np.testing.assert_allclose(scaled, rotary_angles(np.arange(9) / 4, 6), rtol=1e-15)


@pytest.mark.parametrize("E", [4, 6, 64])
def test_ntk_scaling_equals_a_larger_base(E: int) -> None:
    scaled = rotary_frequencies(E, 100.0, NtkScaling(factor=3.0))
    np.testing.assert_allclose(scaled, rotary_frequencies(E, 100.0 * 3.0 ** (E / (E - 2))))
    plain = rotary_frequencies(E, 100.0)
    assert scaled[0] == plain[0] == 1.0
    assert scaled[-1] == pytest.approx(plain[-1] / 3)
    assert rotary_frequencies(2, scaling=NtkScaling(factor=3.0)).tolist() == [1.0]  # a single frequency is unchanged


@pytest.mark.parametrize(
    "scaling", [YarnScaling(factor=8.0, original_len=4096), Llama3Scaling(factor=8.0, original_len=8192)]
)
def test_high_frequencies_are_unchanged_and_low_ones_divided(scaling: YarnScaling | Llama3Scaling) -> None:
    plain = rotary_frequencies(128)
    ratio = plain / rotary_frequencies(128, scaling=scaling)
    rounds = scaling.original_len * plain / (2 * math.pi)
    # YaRN rounds its ramp outwards to integers, so the neighbours of its ends belong to the ramp.
    np.testing.assert_allclose(ratio[rounds > 1.2 * scaling.fast], 1.0)
    np.testing.assert_allclose(ratio[rounds < scaling.slow / 1.2], 8.0)
    between = ratio[(rounds < scaling.fast) & (rounds > scaling.slow)]
    assert len(between) > 5
    assert (np.diff(between) > 0).all()
    assert (between > 1).all()
    assert (between < 8).all()


def test_a_ramp_within_one_pair_is_a_step() -> None:
    # Both ends would be pair 0, without 0 / 0.
    frequencies = rotary_frequencies(8, 10_000.0, YarnScaling(factor=2.0, original_len=6, fast=2.0, slow=1.0))
    np.testing.assert_allclose(frequencies, rotary_frequencies(8) / [1, 2, 2, 2])


@pytest.mark.parametrize(("given_sharpness", "expected"), [(None, 0.1 * math.log(4) + 1), (0.5, 0.5)])
def test_yarn_sharpens(given_sharpness: float | None, expected: float) -> None:
    scaling = YarnScaling(factor=4.0, original_len=64, sharpness=given_sharpness)
    x = np.random.default_rng(0).standard_normal((5, 8))
    lengths = np.linalg.norm(rotate(x, np.arange(5), scaling=scaling), axis=-1) / np.linalg.norm(x, axis=-1)
    np.testing.assert_allclose(lengths, expected)


SCALINGS: tuple[Scaling, ...] = (
    LinearScaling(factor=4.0),
    NtkScaling(factor=4.0),
    YarnScaling(factor=4.0, original_len=64),
    Llama3Scaling(factor=4.0, original_len=64),
)


@pytest.mark.parametrize("scaling", SCALINGS)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 2000))
def test_scaled_scores_depend_on_the_distance_only(scaling: Scaling, m: int, n: int, shift: int) -> None:
    q, k = np.random.default_rng(m).standard_normal((2, 1, 8))

    def score(at_q: int, at_k: int) -> float:
        rotated = (rotate(x, np.array([p]), scaling=scaling) for x, p in ((q, at_q), (k, at_k)))
        return (next(rotated) @ next(rotated).T).item()

    assert score(m + shift, n + shift) == pytest.approx(score(m, n), abs=1e-9)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_zero_width_has_no_frequencies(scaling: Scaling) -> None:
    assert rotary_frequencies(0, scaling=scaling).shape == (0,)


def test_scaling_errors() -> None:
    refused(ArgumentError, "scaling", "LinearScaling", "str", call=lambda: rotary_frequencies(4, scaling="linear"))  # type: ignore[arg-type]
    yarn = YarnScaling(factor=2.0, original_len=8)
    refused(ArgumentError, "YarnScaling", "0.5", call=lambda: rotary_frequencies(4, 0.5, yarn))
    half = np.zeros(1, np.float16)
    assert rotary_frequencies(4, like=half).dtype == np.float16


# --- ALiBi -----------------------------------------------------------------------------------------------


def test_slopes_of_powers_of_two_equal_the_paper() -> None:
    np.testing.assert_allclose(alibi_slopes(8), [1 / 2**i for i in range(1, 9)])
    np.testing.assert_allclose(alibi_slopes(16), [2 ** (-i / 2) for i in range(1, 17)])
    assert alibi_slopes(1).tolist() == [2**-8]


@pytest.mark.parametrize("n_heads", [3, 5, 6, 7, 12, 20, 71])
def test_slopes_of_other_numbers_of_heads(n_heads: int) -> None:
    power = max(2**k for k in range(8) if 2**k <= n_heads)
    slopes = alibi_slopes(n_heads)
    np.testing.assert_array_equal(slopes[:power], alibi_slopes(power))
    np.testing.assert_array_equal(slopes[power:], alibi_slopes(2 * power)[0::2][: n_heads - power])
    assert len(set(slopes)) == n_heads


@given(st.integers(1, 5), st.integers(0, 6), st.integers(0, 6))
def test_alibi_decreases_with_the_distance(H: int, T: int, S: int) -> None:
    bias, slopes = alibi_bias(H, T, S), alibi_slopes(H)
    assert bias.shape == (H, T, S)
    for h in range(H):
        for i in range(T):
            for j in range(S):
                assert bias[h, i, j] == -slopes[h] * abs((S - 1 - j) - (T - 1 - i))


def test_decoding_one_token_gives_the_last_row() -> None:
    np.testing.assert_array_equal(alibi_bias(4, 1, 9), alibi_bias(4, 9, 9)[:, -1:])
    np.testing.assert_array_equal(relative_position_buckets(1, 9), relative_position_buckets(9, 9)[-1:])


def test_alibi_dtype_and_errors() -> None:
    half = np.zeros(1, np.float16)
    assert alibi_bias(2, 3, 3, like=half).dtype == alibi_slopes(2, like=half).dtype == np.float16
    assert not np.signbit(alibi_bias(2, 3, 3)[0].diagonal()).any()  # 0, not -0, when printed
    refused(ArgumentError, "n_heads", "0", call=lambda: alibi_slopes(0))
    refused(ArgumentError, "T", "-1", call=lambda: alibi_bias(2, -1, 3))
    refused(ArgumentError, "S", "2.5", call=lambda: alibi_bias(2, 1, 2.5))  # type: ignore[arg-type]


# --- T5 --------------------------------------------------------------------------------------------------


def t5_bucket(step: int, n_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """T5's rule for one offset j − i, without rounding: is (d/exact)^rest ≥ (max_distance/exact)^k?"""
    first = 0
    if bidirectional:
        n_buckets //= 2
        first = n_buckets if step > 0 else 0
        d = abs(step)
    else:
        d = max(-step, 0)
    exact = n_buckets // 2
    if d < exact:
        return first + d
    rest, k = n_buckets - exact, 0
    while k + 1 < rest and d**rest * exact ** (k + 1) >= max_distance ** (k + 1) * exact**rest:
        k += 1
    return first + exact + k


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 20), (8, 9), (4, 3), (14, 100), (40, 512)])
def test_buckets_equal_t5(n_buckets: int, max_distance: int, bidirectional: bool) -> None:
    T, S = 150, 151
    if not bidirectional and max_distance <= n_buckets // 2:
        max_distance = n_buckets  # the same number of buckets per side covers twice the distance
    found = relative_position_buckets(T, S, n_buckets, max_distance, bidirectional)
    assert found.dtype.kind == "i"
    by_step = {step: t5_bucket(step, n_buckets, max_distance, bidirectional) for step in range(-S, T + S)}
    expected = [[by_step[(j - (S - 1)) - (i - (T - 1))] for j in range(S)] for i in range(T)]
    np.testing.assert_array_equal(found, expected)


def test_some_buckets_by_hand() -> None:
    # 16 buckets a side: 0 … 7 alone, then 8·16^(k/8) = 8, 11.3, 16, 22.6, 32, 45.3, 64, 90.5.
    row = relative_position_buckets(1, 200)[0][::-1]  # by distance, keys before the query
    assert row[[0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 63, 64, 90, 91, 127, 128, 199]].tolist() == [
        *(0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 13, 14, 14, 15, 15, 15, 15)
    ]
    ahead = relative_position_buckets(9, 9)[0]
    assert ahead.tolist() == [0, 17, 18, 19, 20, 21, 22, 23, 24]


def test_an_integer_edge_belongs_to_the_bucket_above() -> None:
    # 5·32^(k/5) is 5·2^k. In float64, ln(10/5) / ln(160/5) · 5 is 0.9999999999999999, which floors to 0.
    row = relative_position_buckets(1, 161, n_buckets=10, max_distance=160, bidirectional=False)[0][::-1]
    assert row[[5, 9, 10, 19, 20, 39, 40, 79, 80, 160]].tolist() == [5, 5, 6, 6, 7, 7, 8, 8, 9, 9]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_indexes_the_table_by_bucket(bidirectional: bool) -> None:
    table = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    bias = relative_bias(table, 5, 7, max_distance=10, bidirectional=bidirectional)
    assert bias.shape == (3, 5, 7)
    assert bias.dtype == np.float32
    buckets = relative_position_buckets(5, 7, 8, 10, bidirectional)
    for h in range(3):
        for i in range(5):
            for j in range(7):
                assert bias[h, i, j] == table[buckets[i, j], h]


@pytest.mark.parametrize(("T", "S"), [(0, 3), (3, 0), (0, 0)])
def test_no_queries_or_no_keys(T: int, S: int) -> None:
    assert relative_position_buckets(T, S).shape == (T, S)
    assert relative_bias(np.ones((32, 2)), T, S).shape == (2, T, S)


def test_bucket_errors() -> None:
    refused(ArgumentError, "n_buckets", "2", call=lambda: relative_position_buckets(3, 3, n_buckets=2))
    refused(ArgumentError, "31", "30", "32", call=lambda: relative_position_buckets(3, 3, n_buckets=31))
    refused(ArgumentError, "max_distance=8", call=lambda: relative_position_buckets(3, 3, max_distance=8))
    refused(
        ArgumentError,
        "=16",
        call=lambda: relative_position_buckets(3, 3, max_distance=16, bidirectional=False),
    )
    refused(ArgumentError, "T", "-1", call=lambda: relative_position_buckets(-1, 3))
    refused(ShapeError, "(n_buckets, H)", "(32,)", call=lambda: relative_bias(np.ones(32), 3, 3))


# --- biases at given positions ------------------------------------------------------------------------------

several = st.lists(st.integers(0, 300), max_size=5)


@given(several, several)
def test_a_bias_at_given_positions_is_a_part_of_the_full_bias(queries: list[int], keys: list[int]) -> None:
    table, at = np.random.default_rng(0).standard_normal((8, 3)), (np.array(queries, int), np.array(keys, int))
    cut = np.ix_(range(3), queries, keys)
    np.testing.assert_array_equal(alibi_bias_at(3, *at), alibi_bias(3, 301, 301)[cut])
    for bidirectional in (True, False):
        whole = relative_bias(table, 301, 301, 50, bidirectional)
        np.testing.assert_array_equal(relative_bias_at(table, *at, 50, bidirectional), whole[cut])


@pytest.mark.parametrize(("T", "S"), [(3, 3), (2, 5), (4, 2), (0, 3)])
def test_a_bias_at_the_default_positions(T: int, S: int) -> None:
    table, at = np.random.default_rng(0).standard_normal((8, 3)), (np.arange(T) + S - T, np.arange(S))
    np.testing.assert_array_equal(alibi_bias_at(3, *at), alibi_bias(3, T, S))
    np.testing.assert_array_equal(relative_bias_at(table, *at), relative_bias(table, T, S))


def test_query_and_key_positions_may_differ_by_sample() -> None:
    queries, keys = np.array([[4, 5], [1, 2]]), np.array([[0, 3, 4, 5], [0, 0, 1, 2]], np.uint8)
    table = np.random.default_rng(0).standard_normal((8, 3))
    for bias in (lambda q, k: alibi_bias_at(3, q, k), lambda q, k: relative_bias_at(table, q, k)):
        both, shared = bias(queries, keys), bias(queries, keys[0])
        assert both.shape == shared.shape == (2, 3, 2, 4)
        for b in range(2):
            np.testing.assert_array_equal(both[b], bias(queries[b], keys[b]))
            np.testing.assert_array_equal(shared[b], bias(queries[b], keys[0]))
        # The second text is padded on the left: its two tokens have the same bias as alone.
        np.testing.assert_array_equal(both[1, :, :, 2:], bias(np.arange(2), np.arange(2)))


@pytest.mark.parametrize(("queries", "keys"), [((), (3,)), ((1, 2, 3), (3,)), ((2, 3), (4, 3)), ((2,), ())])
def test_query_and_key_positions_that_do_not_fit_are_refused(queries: tuple[int, ...], keys: tuple[int, ...]) -> None:
    at = np.zeros(queries, int), np.zeros(keys, int)
    refused(ShapeError, str(queries), str(keys), call=lambda: alibi_bias_at(2, *at))
    refused(ShapeError, str(queries), str(keys), call=lambda: relative_bias_at(np.ones((8, 2)), *at))


def test_query_and_key_positions_must_be_integers() -> None:
    whole = np.arange(3)
    refused(DtypeError, "queries", "float64", call=lambda: alibi_bias_at(2, whole / 2, whole))
    refused(DtypeError, "keys", "bool", call=lambda: relative_bias_at(np.ones((8, 2)), whole, whole > 1))
