"""`edit` against the same change by hand; modules that are not named stay bit-equal."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import regard
from regard import Mask, See, edit
from regard.errors import ArgumentError
from small_models import ROADS, D, H, Model, gradients, inputs


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(params=ROADS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


# --- against doing it by hand ----------------------------------------------------------------------------


def test_a_silenced_head_adds_nothing(model: Model) -> None:
    x = inputs()
    with edit(model, silence={"layers.1.attn": [2]}):
        edited = model(x)
    edited_gradients = gradients(model, edited)
    out = model.attention(1).out
    keep = torch.ones(D)
    keep[2 * D // H : 3 * D // H] = 0
    weight = out.weight
    columns = weight.detach() * keep
    with torch.no_grad():
        weight.copy_(columns)
    by_hand = model(x)
    assert_close(edited, by_hand)
    wanted = gradients(model, by_hand)
    names = [name for name, _ in model.named_parameters()]
    for name, found, expected in zip(names, edited_gradients, wanted, strict=True):
        assert_close(found, expected * keep if name == "layers.1.attn.out.weight" else expected, "gradient")


def test_cut_edges_are_a_mask(model: Model) -> None:
    x = inputs()
    with edit(model, cut={"layers.0.attn": [(5, 2), (-1, 0), (3, -4)]}):
        edited = model(x)
    cut = torch.ones(7, 7, dtype=torch.bool)
    cut[5, 2] = cut[6, 0] = cut[3, 3] = False
    found = gradients(model, edited)
    model.attention(0).cut = cut
    by_hand = model(x)
    assert_close(edited, by_hand)
    for one, other in zip(found, gradients(model, by_hand), strict=True):
        assert_close(one, other, "gradient")


def test_cut_with_a_mask_keeps_its_visible_edges(model: Model) -> None:
    x = inputs()
    with edit(model, cut={"layers.0.attn": Mask.window(1, 0)}):
        edited = model(x)
    model.attention(0).cut = torch.as_tensor(Mask.window(1, 0).dense(7, 7))
    assert_close(edited, model(x))


@pytest.mark.parametrize("mask", [Mask.padding(torch.tensor([[1, 0, 1, 1, 1, 0, 1]] * 2)), Mask.prefix(3)])
def test_a_mask_of_keys(model: Model, mask: Mask) -> None:
    x = inputs()
    with edit(model, cut={"layers.0.attn": mask}):
        edited = model(x)
    dense = torch.as_tensor(mask.dense(7, 7))
    model.attention(0).cut = dense[0, 0] if dense.dim() == 4 else dense
    assert_close(edited, model(x))


def test_an_edge_of_one_head(model: Model) -> None:
    x = inputs()
    with regard.watch(model, see=See(qk=True)) as before:
        model(x)
    with edit(model, cut={"layers.0.attn": [(1, 5, 2)]}), regard.watch(model, see=See(qk=True)) as after:
        model(x)
    was, now = (trace["layers.0.attn"].weights().detach() for trace in (before, after))
    wanted = was.clone()
    wanted[:, 1, 5, 2] = 0
    wanted[:, 1, 5] /= wanted[:, 1, 5].sum(-1, keepdim=True)
    assert_close(now, wanted, "weights")


def test_a_query_whose_last_edge_is_cut_gets_zero_and_finite_gradients(model: Model) -> None:
    x = inputs()
    with edit(model, cut={"layers.0.attn": [(0, 0)]}):
        first = model.attention(0)(x)
    assert_same_bits(first[:, 0], model.attention(0).out.bias.expand(2, -1))
    assert torch.autograd.grad(first.sum(), x)[0].isfinite().all()


def test_keys_masked_by_a_large_negative_number_stay_masked() -> None:
    class Adding(nn.Module):
        def forward(self, q: Tensor, added: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, q, q, added)

    added = torch.zeros(3, 3).masked_fill(torch.ones(3, 3).triu(1) > 0, torch.finfo(torch.float32).min)
    model, q = Adding(), torch.randn(1, 2, 3, 4)
    with edit(model, cut={"attention": [(0, 0)]}):
        out = model(q, added)
    assert_same_bits(out[:, :, 0], torch.zeros(1, 2, 4))
    assert_close(out[:, :, 1:], model(q, added)[:, :, 1:])


def test_a_row_that_the_model_masks_fully_is_unchanged() -> None:
    class Padded(nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            return scores.softmax(-1)

    model, scores = Padded(), torch.randn(1, 2, 4, 4)
    scores[:, :, 1] = torch.finfo(scores.dtype).min
    scores[:, :, 2] = -torch.inf
    with edit(model, cut={"attention": [(3, 0)]}):
        assert_same_bits(model(scores)[:, :, :3], scores.softmax(-1)[:, :, :3])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(model: Model, dtype: torch.dtype) -> None:
    x = inputs().detach()
    edits: dict[str, Any] = {"cut": {"0.attn": [(5, 2)]}, "silence": {"1.attn": [0]}, "freeze": {"1.attn": np.eye(7)}}
    with edit(model, **edits):
        expected = model(x)
    with edit(model.to(dtype), **edits):
        found = model(x.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16), edit(model.float(), **edits):
        torch.testing.assert_close(model(x), expected, atol=0.05, rtol=0.05)


def test_a_frozen_pattern_replaces_the_weights(model: Model) -> None:
    x, other = inputs(), inputs()
    with regard.watch(model, see=See(qk=True)) as trace:
        expected = model(x)
    with edit(model, freeze={"layers.0.attn": trace[0], "layers.1.attn": trace[1].weights().numpy()}):
        again, moved = model(x), model(other)
    assert_close(again, expected)
    attention = model.attention(0)
    v = attention.qkv(other).chunk(3, -1)[2].unflatten(-1, (H, -1)).transpose(1, 2)
    first = other + attention.out((trace[0].weights() @ v).transpose(1, 2).flatten(2))
    with edit(model, freeze={"layers.1.attn": trace[1]}):
        assert_close(moved, first + model.attention(1)(first))


def test_a_frozen_row_of_zeros_gives_zero(model: Model) -> None:
    eye = np.eye(7)
    eye[3] = 0
    with edit(model, freeze={"layers.0.attn": eye}):
        out = model.attention(0)(inputs())
    assert_same_bits(out[:, 3], model.attention(0).out.bias.expand(2, -1))
    assert (out[:, 2] != model.attention(0).out.bias).any()


def test_a_frozen_pattern_can_be_cut(model: Model) -> None:
    x, pattern = inputs(), np.tril(np.ones((7, 7))) / np.arange(1, 8)[:, None]
    left = pattern.copy()
    left[6, 1] = left[0, 0] = 0
    left[6] /= left[6].sum()
    with edit(model, freeze={"0.attn": left}):
        expected = model(x)
    with edit(model, freeze={"0.attn": pattern}, cut={"0.attn": [(6, 1), (0, 0)]}):
        assert_close(model(x), expected)
    with edit(model, freeze={"0.attn": np.eye(7)}), edit(model, freeze={"0.attn": left}):  # the inner edit applies
        assert_close(model(x), expected)


def test_edits_of_one_module_are_combined(model: Model) -> None:
    x = inputs()
    with edit(model, cut={"layers.0.attn": [(5, 2)]}, silence={"layers.0.attn": [0, 3]}):
        at_once = model(x)
    with edit(model, silence={"0.attn": 0}), edit(model, cut={"0.attn": [(5, 2)]}), edit(model, silence={"0.attn": 3}):
        nested = model(x)
    assert_same_bits(at_once, nested)
    assert not torch.allclose(at_once, model(x))


def test_a_name_pattern_selects_all_matching_modules(model: Model) -> None:
    x = inputs()
    with edit(model, silence={"layers.*.attn": [1]}):
        all_of_them = model(x)
    with edit(model, silence={"layers.0.attn": [1], "layers.1.attn": [1]}):
        assert_same_bits(model(x), all_of_them)


# --- later queries, several calls ------------------------------------------------------------------------


def test_positions_continue_with_a_cache(model: Model) -> None:
    x = inputs()
    edges = [(2, 1), (5, 3), (6, 6)]
    with edit(model, cut={"layers.0.attn": edges}):
        whole = model(x)
    for number in range(2):
        model.attention(number).cache = [torch.zeros(2, H, 0, D // H)] * 2
    with edit(model, cut={"layers.0.attn": edges}):
        steps = [model(x[:, :4]), *(model(x[:, t : t + 1]) for t in range(4, 7))]
    assert_close(torch.cat(steps, 1), whole)


def test_a_cache_with_unused_positions_raises(model: Model) -> None:
    class Roomy(nn.Module):
        num_heads, is_causal = 2, True

        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            see = torch.ones(1, 6, dtype=torch.bool)
            see[:, 4:] = False
            if model.attention(0).road == "sdpa":
                return F.scaled_dot_product_attention(q, k, k, see)
            return (q @ k.mT).masked_fill(~see, -torch.inf).softmax(-1) @ k

    roomy = Roomy()
    with pytest.raises(ArgumentError, match="unused positions"), edit(roomy, cut={"attention": [(3, 0)]}):
        roomy(torch.randn(1, 2, 1, 4), torch.randn(1, 2, 6, 4))


def test_a_number_selects_one_call(model: Model) -> None:
    x = inputs()
    plain = model(x)
    with edit(model, silence={"layers.0.attn#1": [0]}):
        calls = [model(x) for _ in range(3)]
    assert_same_bits(calls[0], plain)
    assert_same_bits(calls[2], plain)
    assert not torch.equal(calls[1], plain)


# --- nothing else ----------------------------------------------------------------------------------------


def test_no_edits_change_nothing() -> None:
    layer = nn.TransformerEncoderLayer(D, H, batch_first=True).eval()
    x = torch.randn(2, 5, D)
    with torch.no_grad():
        plain = layer(x)  # the fused path, which a mode would disable
        with edit(layer), edit(layer, silence={}, cut=None):
            assert_same_bits(layer(x), plain)


def test_other_modules_stay_bit_equal(model: Model) -> None:
    x = inputs()
    first, plain = model.attention(0)(x), model(x)
    with edit(model, silence={"layers.1.attn": [0]}):
        model.attention(1)(x)
        assert_same_bits(model.attention(0)(x), first)
        assert_same_bits(Model(model.attention(0).road)(x).isfinite(), torch.ones(2, 7, D, dtype=torch.bool))
    assert_same_bits(model(x), plain)


def test_an_exception_ends_the_edit(model: Model) -> None:
    x = inputs()
    plain = model(x)
    with pytest.raises(KeyError), edit(model, silence={"layers.0.attn": [0]}):
        raise KeyError("the block's own")
    assert_same_bits(model(x), plain)


def test_other_threads_are_not_edited(model: Model) -> None:
    x = inputs().detach()
    plain, found = model(x), []
    with edit(model, silence={"layers.0.attn": [0]}):
        model(x)
        thread = threading.Thread(target=lambda: found.append(model(x)))
        thread.start()
        thread.join()
    assert_same_bits(found[0].detach(), plain.detach())
