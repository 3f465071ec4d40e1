"""Invalid edits raise one clear message and leave the model unchanged."""

from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_same_bits
from torch import Tensor, nn

import regard
from regard import Mask, See, edit
from regard.errors import ArgumentError, NotKeptError, ShapeError, UnknownNameError
from small_models import ROADS, Model, inputs


@pytest.fixture(params=ROADS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


@pytest.mark.parametrize(
    ("edits", "error", "message"),
    [
        ({"silence": {"layers.2.attn": [0]}}, UnknownNameError, r"did you mean 'layers\.[01]\.attn'"),
        ({"silence": {"h.5.self": [0]}}, UnknownNameError, r"none is similar; .* trace\.names"),
        ({"silence": {"attn": [0]}}, ArgumentError, r"the end of 2 names"),
        ({"silence": {"layers.0.attn": [4]}}, ArgumentError, "has 4 heads, from 0 to 3; head 4"),
        ({"silence": {"layers.0.attn": [-1]}}, ArgumentError, r"whole numbers from 0.*found \[-1\]"),
        ({"silence": {"layers.0.attn": []}}, ArgumentError, "whole numbers from 0"),
        ({"silence": {"layers.0.attn": "3"}}, ArgumentError, "whole numbers from 0"),
        ({"silence": ["layers.0.attn"]}, ArgumentError, r"silence=\{5: \[3\]\}; found list"),
        ({"silence": {"layers.0.attn#x": [0]}}, ArgumentError, "number of one call"),
        ({"silence": {"layers.0.attn#1": [0]}}, UnknownNameError, "or not that call"),
        ({"silence": {"layers.0.attn.out": [0]}}, UnknownNameError, "for example, 'layers.0.attn' computed attention"),
        ({"cut": {"layers.0.attn": [(7, 0)]}}, ArgumentError, r"edge \(7, 0\).*at most 7 queries and 7 keys"),
        ({"cut": {"layers.0.attn": [(1, 2, -8)]}}, ArgumentError, r"edge \(1, 2, -8\)"),
        ({"cut": {"layers.0.attn": [(9, 2, 1)]}}, ArgumentError, "head 9 was requested"),
        ({"cut": {"layers.0.attn": [(-1, 2, 1)]}}, ArgumentError, "whole numbers from 0"),
        ({"cut": {"layers.0.attn": [3]}}, ArgumentError, r"list of \(query, key\)"),
        ({"cut": {"layers.0.attn": Mask.of(np.ones((3, 3), bool))}}, ShapeError, "3"),
        ({"freeze": {"layers.0.attn": np.eye(5)}}, ShapeError, r"\(2, 4, 7, 7\).*has \(1, 1, 5, 5\)"),
        ({"freeze": {"layers.0.attn": np.ones((7, 7))}}, ArgumentError, "sum"),
    ],
)
def test_invalid_edits_raise(model: Model, edits: Any, error: type[Exception], message: str) -> None:
    plain = model(x := inputs())
    with pytest.raises(error, match=message), edit(model, **edits):
        model(x)
    assert_same_bits(model(x), plain)


def test_wrong_models_and_modules_without_attention_raise() -> None:
    with pytest.raises(ArgumentError, match="found str"):
        edit("gpt2", silence={"h.5.attn": [3]})  # type: ignore[arg-type]
    linear = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(UnknownNameError, match="same thread"), edit(linear, silence={"0": [0]}):
        linear(torch.ones(2))


def test_a_record_without_weights_cannot_be_frozen(model: Model) -> None:
    with regard.watch(model, see=See(map=2)) as trace:
        model(inputs())
    with pytest.raises(NotKeptError, match="qk=True"), edit(model, freeze={"layers.0.attn": trace[0]}):
        pass


def test_unknown_layouts_raise() -> None:
    class Turned(nn.Module):
        num_heads = 2

        def forward(self, scores: Tensor, dim: int) -> Tensor:
            return scores.softmax(dim)

    model = Turned()
    with pytest.raises(ArgumentError, match="along axis 1"), edit(model, silence={"attention": [0]}):
        model(torch.randn(1, 2, 3, 3), 1)
    with pytest.raises(ArgumentError, match="with 2 heads"), edit(model, silence={"attention": [0]}):
        model(torch.randn(1, 3, 2, 5), -1)


def test_a_layer_number_selects_its_attention() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_head=2, n_embd=8, vocab_size=9)).eval()
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        with edit(model, silence={"h.2.attn": [1]}):
            named = model(ids).logits
        for number in (2, -1):
            with edit(model, silence={number: [1]}):
                assert torch.equal(model(ids).logits, named)
    with pytest.raises(UnknownNameError, match="3"):
        edit(model, silence={3: [0]})


def test_a_layer_number_with_two_attentions_raises() -> None:
    layer = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, batch_first=True), 1).eval()
    x = torch.ones(1, 3, 8)
    with pytest.raises(ArgumentError, match=r"'layers.0.multihead_attn', 'layers.0.self_attn'"), edit(layer, {0: [0]}):
        layer(x, x)


@pytest.mark.parametrize("name", ["average", "path", "silense"])
def test_an_unknown_keyword_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"edit has no argument '{name}'; its arguments are silence, cut, freeze"):
        edit(nn.MultiheadAttention(8, 2), **{name: {}})
