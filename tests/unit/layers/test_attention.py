"""MultiHeadAttention equals the reference, passes its arguments on, and refuses invalid sizes."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard import Mask, reference
from regard.arrays import to_numpy
from regard.dispatch import attend_in_model
from regard.errors import IndivisibleError, ShapeError
from regard.layer_checks import Projections
from regard.layers import LayerNorm, MultiHeadAttention, RMSNorm, RotaryPositions
from regard.layers.attention import NO_CACHE, GrowingCache, KeysAndValues, StaticCache, WritePosition


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def made(*args: Any, **options: Any) -> MultiHeadAttention:
    """A layer with random weights and nonzero biases."""
    layer = MultiHeadAttention(*args, **options).double()
    for i, weight in enumerate(layer.parameters()):
        weight.data = vectors(*weight.shape, seed=i) / 2
    return layer


def projections(layer: MultiHeadAttention) -> Projections:
    """Its weights in the layout of the paper: x @ W."""
    parts = (layer.q_proj, layer.k_proj, layer.v_proj, layer.o_proj)
    matrices = [to_numpy(part.weight).T for part in parts]
    return Projections(*matrices, *(None if part.bias is None else to_numpy(part.bias) for part in parts))


class Spy:
    """An attention function that stores its arguments."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        self.q, self.k, self.v, self.options = q, k, v, options
        return attend_in_model(q, k, v, **options)


# --- computation ------------------------------------------------------------------------------------


@given(
    heads=st.sampled_from([(1, 1), (4, 4), (6, 2), (6, 1), (3, 3)]),
    d_head=st.integers(1, 5),
    sizes=st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 7]), st.sampled_from([1, 3, 9])),
    bias=st.booleans(),
    cross=st.booleans(),
)
def test_it_equals_the_reference(
    heads: tuple[int, int], d_head: int, sizes: tuple[int, int, int], bias: bool, cross: bool
) -> None:
    (H, G), (B, T, S), D = heads, sizes, 7
    layer = made(D, H, n_kv_heads=G, d_head=d_head, bias=bias)
    x, memory = vectors(B, T, D, seed=1), vectors(B, S, D, seed=2)
    seen = memory if cross else x
    mask = None if cross else Mask.causal()
    inputs = (to_numpy(x), to_numpy(seen), to_numpy(seen))
    expected = reference.multi_head_attention(*inputs, projections(layer), H, G, mask=mask)[0]
    assert_close(layer(x, memory if cross else None, mask=mask).detach(), expected)


def test_a_key_value_head_serves_neighbouring_query_heads() -> None:
    """Grouped heads equal separate heads with repeated keys and values."""
    grouped, full = made(8, 4, n_kv_heads=2), made(8, 4)
    weights = grouped.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        first, second = weights[name].chunk(2)
        weights[name] = torch.cat([first, first, second, second])
    full.load_state_dict(weights)
    x = vectors(2, 5, 8)
    assert_close(grouped(x).detach(), full(x).detach())


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_queries_and_keys_are_normed_before_rotation(norm: type[nn.Module]) -> None:
    layer, x, spy = made(8, 2, norm=norm), vectors(1, 3, 8), Spy()
    rotate = RotaryPositions(4)
    layer(x, rotate=rotate, attend=spy)
    plain, bare = made(8, 2), Spy()
    plain.load_state_dict(layer.state_dict(), strict=False)
    plain(x, attend=bare)
    assert layer.q_norm is not None
    assert layer.k_norm is not None
    assert_close(spy.q.detach(), rotate(layer.q_norm(bare.q)).detach())
    assert_close(spy.k.detach(), rotate(layer.k_norm(bare.k)).detach())
    assert_same_bits(spy.v.detach(), bare.v.detach())


def test_arguments_are_passed_to_attend() -> None:
    layer = made(8, 2, scale=0.3, softcap=4.0, dropout=0.25, name="encoder.layers.0.self_attention", kind="encoder")
    spy, mask, bias = Spy(), Mask.causal(), vectors(1, 2, 3, 3)
    layer(vectors(1, 3, 8), mask=mask, bias=bias, attend=spy)
    assert spy.options == {
        "name": "encoder.layers.0.self_attention",
        "kind": "encoder",
        "mask": mask,
        "bias": bias,
        "scale": 0.3,
        "softcap": 4.0,
        "dropout": 0.25,
    }
    layer.eval()(vectors(1, 3, 8), attend=spy)
    assert spy.options["dropout"] == 0


def test_the_output_projection_may_have_no_bias() -> None:
    assert made(8, 2, output_bias=False).o_proj.bias is None
    assert made(8, 2, bias=False, output_bias=True).q_proj.bias is None
    assert made(8, 2, bias=False, output_bias=True).o_proj.bias is not None
    assert made(8, 2, bias=False).o_proj.bias is None


# --- cached decoding -------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [(5,), (1, 1, 1, 1, 1), (2, 3), (4, 1)], ids=str)
def test_a_growing_cache_continues_a_text(pieces: tuple[int, ...]) -> None:
    layer, x, cache = made(8, 4, n_kv_heads=2), vectors(2, 5, 8), GrowingCache()
    parts = [layer(part, mask=Mask.causal(), cache=cache) for part in x.split(pieces, dim=1)]
    assert_close(torch.cat(parts, dim=1).detach(), layer(x, mask=Mask.causal()).detach())


@torch.no_grad()
def test_a_static_cache_continues_a_text() -> None:
    layer, x, place = made(8, 4, n_kv_heads=2), vectors(2, 5, 8), WritePosition(torch.arange(0))
    cache, out = StaticCache(place, max_len=7), []
    for at in torch.arange(5).split((3, 1, 1)):
        place.columns = at
        out.append(layer(x[:, at], mask=torch.arange(7) <= at[:, None], cache=cache))
    assert_close(torch.cat(out, dim=1), layer(x, mask=Mask.causal()))


def test_memory_may_be_given_as_keys_and_values() -> None:
    layer, x, memory = made(8, 2), vectors(2, 3, 8), vectors(2, 5, 8, seed=1)
    assert_same_bits(layer(x, layer.keys_and_values(memory)).detach(), layer(x, memory).detach())


# --- errors -----------------------------------------------------------------------------------


def test_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(IndivisibleError) as caught:
        MultiHeadAttention(770, n_heads=12)
    assert str(caught.value) == (
        "n_heads=12 must divide d_model=770; nearest widths are 768 and 780, nearest numbers of heads 10, 11, 14; "
        "did you swap layers and heads?"
    )
    assert "是不是把层数和头数写反了" in caught.value.text("zh")
    assert MultiHeadAttention(770, n_heads=12, d_head=64).q_proj.out_features == 768


def test_key_value_heads_that_do_not_divide_the_heads() -> None:
    with pytest.raises(ShapeError, match=r"n_kv_heads=4 must divide n_heads=6.*possible: 1, 2, 3, 6"):
        MultiHeadAttention(12, 6, n_kv_heads=4)


@pytest.mark.parametrize("sizes", [{"n_heads": 0}, {"n_heads": -2}, {"n_heads": 2.0}, {"n_heads": 2, "n_kv_heads": 0}])
def test_invalid_sizes(sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="heads"):
        MultiHeadAttention(12, **sizes)


def columns(start: int, count: int, samples: int = 2, width: int = 3) -> KeysAndValues:
    """Keys (B, 1, count, width) that encode sample and column; values are their negatives."""
    sample, column = torch.arange(samples)[:, None], torch.arange(start, start + count)
    k = (100 * sample + column).double()[:, None, :, None].expand(samples, 1, count, width)
    return k, -k


def read(keys_and_values: KeysAndValues) -> list[list[int]]:
    """The columns encoded in the keys, one list per sample; the values must agree."""
    k, v = keys_and_values
    assert_same_bits(v, -k)
    assert_same_bits(k, k[..., :1].expand_as(k))
    return k[:, 0, :, 0].long().tolist()


def test_no_cache_returns_the_newest() -> None:
    assert read(NO_CACHE.update(*columns(4, 2))) == [[4, 5], [104, 105]]


# --- growing ---------------------------------------------------------------------------------------------


@given(pieces=st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_growing_keeps_the_order(pieces: list[int]) -> None:
    cache, length = GrowingCache(), 0
    for count in pieces:
        found = read(cache.update(*columns(length, count)))
        length += count
        assert found == [list(range(length)), list(range(100, 100 + length))]
        assert cache.length == length


def test_growing_reallocates_rarely() -> None:
    """Doubling: 64 columns one by one cause at most 7 allocations."""
    cache, places = GrowingCache(), []
    for i in range(64):
        places.append(cache.update(*columns(i, 1))[0].data_ptr())
    moves = sum(one != other for one, other in pairwise(places))
    assert 1 <= moves <= 7


def test_growing_with_values_of_another_width() -> None:
    cache = GrowingCache()
    k, v = cache.update(columns(0, 2)[0], columns(0, 2, width=5)[1])
    assert (k.shape[-1], v.shape[-1]) == (3, 5)


def test_growing_crops_and_overwrites() -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 5))
    cache.crop(2)
    assert cache.length == 2
    assert read(cache.update(*columns(70, 2)))[0] == [0, 1, 70, 71]
    cache.crop(0)
    assert read(cache.update(*columns(7, 1)))[0] == [7]


@pytest.mark.parametrize("rows", [[1, 0], [0, 0, 1], [1], [1, 1]], ids=str)
def test_growing_selects_rows(rows: list[int]) -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 2))
    cache.select(torch.tensor(rows))
    found = read(cache.update(*columns(2, 1, samples=len(rows))))
    assert found == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]


def test_repeated_samples_are_independent() -> None:
    cache = GrowingCache()
    cache.update(*columns(0, 1))
    cache.select(torch.tensor([0, 0]))
    assert [row[-1] for row in read(cache.update(*columns(5, 1)))] == [5, 105]


# --- static ----------------------------------------------------------------------------------------------


def test_static_writes_at_the_given_columns_at_a_fixed_address() -> None:
    position = WritePosition(torch.arange(0))
    cache = StaticCache(position, max_len=5)
    places = set()
    for start, count, expected in ((0, 2, [0, 1, 0, 0, 0]), (2, 1, [0, 1, 2, 0, 0]), (1, 3, [0, 1, 2, 3, 0])):
        position.columns = torch.arange(start, start + count)
        k, v = cache.update(*columns(start, count))
        assert read((k, v))[0] == expected
        places.add((k.data_ptr(), v.data_ptr()))
    assert len(places) == 1


@pytest.mark.parametrize("rows", [[1, 0], [0, 0], [1], [1, 0, 1]], ids=str)
def test_static_selects_rows_in_place_if_possible(rows: list[int]) -> None:
    position = WritePosition(torch.arange(0))
    cache = StaticCache(position, max_len=3)
    position.columns = torch.arange(2)
    before = cache.update(*columns(0, 2))[0].data_ptr()
    cache.select(torch.tensor(rows))
    position.columns = torch.tensor([2])
    k, v = cache.update(*columns(2, 1, samples=len(rows)))
    assert read((k, v)) == [[100 * row, 100 * row + 1, 100 * i + 2] for i, row in enumerate(rows)]
    assert (k.data_ptr() == before) == (len(rows) == 2)


# --- both ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cache", [GrowingCache(), StaticCache(WritePosition(torch.arange(0)), 3)], ids=lambda cache: type(cache).__name__
)
def test_selecting_rows_of_an_empty_cache(cache: GrowingCache | StaticCache) -> None:
    cache.select(torch.tensor([0]))
