"""MultiHeadAttention equals the reference, passes its arguments on, and refuses invalid sizes."""

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
from regard.layer_rules import Projections
from regard.layers import LayerNorm, MultiHeadAttention, RMSNorm, RotaryPositions
from regard.layers.cache import GrowingCache, StaticCache, WritePosition


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
