"""Sizes are read from the shapes, and an error for shapes that do not fit contains the numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import call_sizes, samples_of

from regard.axes import Sizes, attention_sizes, bin_count, bin_width, head_width, split_lead
from regard.errors import IndivisibleError, ShapeError


@given(call_sizes())
def test_sizes_are_read_from_shapes(sizes: Sizes) -> None:
    kv_lead = (*samples_of(sizes), sizes.G) if sizes.has_heads else sizes.lead
    q = (*sizes.lead, sizes.T, sizes.E)
    k, v = (*kv_lead, sizes.S, sizes.E), (*kv_lead, sizes.S, sizes.Ev)
    found = attention_sizes(q, k, v)
    assert found == sizes
    assert found.scores == (*sizes.lead, sizes.T, sizes.S)
    assert split_lead(sizes.lead) == (sizes.B, sizes.H)
    assert math.prod(found.scores) == found.B * found.H * found.T * found.S


def test_torch_sizes_are_accepted() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(2, 3, 4, 5)
    assert attention_sizes(x.shape, x.shape, x.shape).scores == (2, 3, 4, 4)


@pytest.mark.parametrize(
    ("q", "k", "v", "key"),
    [
        ((), (), (), "axes-differ"),
        ((5,), (5,), (5,), "axes-differ"),
        ((2, 5), (3, 2, 5), (3, 2, 5), "axes-differ"),
        ((2, 5), (2, 5), (1, 2, 5), "axes-differ"),
        ((2, 5), (2, 6), (2, 6), "widths-differ"),
        ((2, 0), (2, 0), (2, 0), "width-zero"),
        ((2, 5), (3, 5), (4, 5), "key-value-lengths-differ"),
        ((2, 3, 4, 5), (2, 3, 4, 5), (2, 1, 4, 5), "key-value-heads-differ"),
        ((3, 2, 5), (1, 2, 5), (1, 2, 5), "batches-differ"),
        ((3, 2, 4, 5), (1, 2, 4, 5), (1, 2, 4, 5), "batches-differ"),
        ((3, 1, 2, 4, 5), (3, 2, 2, 4, 5), (3, 2, 2, 4, 5), "batches-differ"),
        ((2, 6, 4, 5), (2, 4, 4, 5), (2, 4, 4, 5), "heads-not-grouped"),
        ((2, 2, 4, 5), (2, 4, 4, 5), (2, 4, 4, 5), "heads-not-grouped"),
        ((2, 2, 4, 5), (2, 0, 4, 5), (2, 0, 4, 5), "heads-not-grouped"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], key: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        attention_sizes(q, k, v)
    assert caught.value.key == key
    for lang in ("en", "zh"):
        assert str(k) in caught.value.text(lang)


def test_value_width_of_zero_is_valid() -> None:
    assert attention_sizes((2, 3), (4, 3), (4, 0)).Ev == 0


@pytest.mark.parametrize(("D", "H", "E"), [(768, 12, 64), (1, 1, 1), (7, 7, 1), (8, 1, 8)])
def test_head_width(D: int, H: int, E: int) -> None:
    assert head_width(D, H) == E


@given(st.integers(1, 300), st.integers(1, 40))
def test_error_suggests_the_nearest_divisible_widths(D: int, H: int) -> None:
    if D % H == 0:
        return
    with pytest.raises(IndivisibleError) as caught:
        head_width(D, H)
    below, above = caught.value.values["below"], caught.value.values["above"]
    assert below % H == above % H == 0
    assert 0 < below < above == below + H
    assert above > D
    assert below < D or D < H  # below H, only the first multiple is near


@pytest.mark.parametrize(("D", "H"), [(8, 0), (8, -2), (0, 2), (-8, 2)])
def test_error_for_a_count_below_one_suggests_no_widths(D: int, H: int) -> None:
    """`n_heads=0 must divide d_model=8; nearest widths are 8 and 9` blames the wrong one."""
    with pytest.raises(IndivisibleError) as caught:
        head_width(D, H)
    text = caught.value.text("en")
    assert f"{H}" in text
    assert f"{D}" in text
    if H < 1:
        assert "nearest widths" not in text


def test_error_uses_the_argument_names_of_the_caller() -> None:
    with pytest.raises(IndivisibleError, match="num_heads=3 must divide embed_dim=10; nearest widths are 9 and 12"):
        head_width(10, 3, width_name="embed_dim", heads_name="num_heads")


@given(st.integers(0, 500), st.integers(1, 300))
def test_bins_cover_everything_and_none_is_empty(length: int, bins: int) -> None:
    width, count = bin_width(length, bins), bin_count(length, bins)
    assert width == max(1, math.ceil(length / bins))
    assert count <= bins
    assert count * width >= length
    assert (count - 1) * width < length or length == 0
    if length <= bins:
        assert (width, count) == (1, length)
