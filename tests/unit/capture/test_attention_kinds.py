"""The kind of an attention: by its module, its name and its parents; by its mask if these are not enough."""

import pytest
import torch
from torch import nn

from regard.capture.attention_kinds import Kinds, kind_by_call, kind_by_name
from regard.capture.module_names import ModuleNames, Place
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.layers import MultiHeadAttention
from regard.masks import Mask


def captured(T: int, S: int, mask: Mask | None = None, bias: torch.Tensor | None = None) -> CapturedCall:
    q, k = torch.ones(1, 2, T, 4), torch.ones(1, 2, S, 4)
    return CapturedCall(q=q, k=k, v=k, scale=1.0, mask=mask, bias=bias)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("encoder.layer.0.attention.self", "encoder"),
        ("model.decoder.layers.0.self_attn", "decoder"),
        ("model.decoder.layers.0.encoder_attn", "cross"),
        ("decoder.block.0.layer.1.EncDecAttention", "cross"),
        ("decoder.layers.2.multihead_attn", "cross"),
        ("decoder.bert.encoder.layer.0.attention.self", "decoder"),
        ("text_decoder.bert.encoder.layer.0.crossattention.self", "cross"),
        ("vision_encoder.blocks.3.attn", "encoder"),
        ("transformer.h.5.attn", "self"),
        ("encodec.attn", "self"),
        ("", "self"),
    ],
)
def test_names(name: str, kind: str) -> None:
    assert kind_by_name(name, []) == kind


def with_attributes(**attributes: object) -> nn.Module:
    module = nn.Identity()
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


@pytest.mark.parametrize(
    ("attributes", "name", "kind"),
    [
        ({"is_cross_attention": True}, "h.0.attn", "cross"),
        ({"is_cross_attention": False}, "h.0.crossing", "self"),
        ({"is_causal": True}, "h.0.attn", "decoder"),
        ({"is_causal": False}, "blocks.0.attn", "encoder"),
        ({"is_decoder": True}, "bert.encoder.layer.0", "decoder"),
        ({"is_decoder": False}, "bert.encoder.layer.0", "encoder"),
    ],
)
def test_attributes(attributes: dict[str, object], name: str, kind: str) -> None:
    assert kind_by_name(name, [with_attributes(**attributes)]) == kind


def test_our_layers_state_their_kind() -> None:
    assert kind_by_name("anything", [MultiHeadAttention(8, 2, kind="cross")]) == "cross"
    assert kind_by_name("anything", [MultiHeadAttention(8, 2)]) == "self"


def test_classes_of_ancestors() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 1)
    for model, attention, kind in ((encoder, "self_attn", "encoder"), (decoder, "self_attn", "decoder")):
        name = f"layers.0.{attention}"
        assert kind_by_name(name, ModuleNames(model).ancestors(name)) == kind
    assert kind_by_name("layers.0.multihead_attn", ModuleNames(decoder).ancestors("layers.0.multihead_attn")) == "cross"


@pytest.mark.parametrize(
    ("mask", "T", "S", "kind"),
    [
        (None, 5, 5, "self"),
        (Mask.causal(), 5, 5, "decoder"),
        (Mask.causal(align="first"), 5, 5, "decoder"),
        (Mask.causal(), 3, 5, "decoder"),
        (Mask.window(2, 0), 9, 9, "decoder"),
        (Mask.window(2, 2), 9, 9, "self"),
        (Mask.from_keep(torch.tensor([[1, 1, 1, 0, 0]])), 5, 5, "self"),
        (Mask.causal() & Mask.from_keep(torch.tensor([[0, 0, 1, 1, 1]])), 5, 5, "decoder"),
        (None, 3, 5, "cross"),
        (None, 1, 5, "self"),  # a decoding step with a cache
        (Mask.from_keep(torch.tensor([[1, 1, 1, 0, 0]])), 3, 5, "self"),
    ],
)
def test_masks_and_sizes(mask: Mask | None, T: int, S: int, kind: str) -> None:
    assert kind_by_call(captured(T, S, mask), (1, 2, T, S)) == kind
    if mask is not None:
        added = torch.zeros(1, 1, T, S).masked_fill(
            ~mask.dense(T, S, like=torch.ones(1))[None, None].view(1, 1, T, S), -torch.inf
        )
        assert kind_by_call(captured(T, S, bias=added), (1, 2, T, S)) == kind
        if T == S:
            weights = added.softmax(-1)
            assert kind_by_call(CapturedWeights(weights, weights[..., 0]), (1, 1, T, S)) == kind


def test_a_known_kind_stays() -> None:
    model = nn.Sequential(nn.Identity())
    kinds, place = Kinds(ModuleNames(model)), Place("0", model[0])
    assert kinds.of(place, captured(5, 5, Mask.causal()), (1, 2, 5, 5)) == "decoder"
    assert kinds.of(place, captured(1, 6), (1, 2, 1, 6)) == "decoder"


def test_multihead_attention_with_different_sizes_is_cross_attention() -> None:
    model = nn.MultiheadAttention(8, 2)
    assert Kinds(ModuleNames(model)).of(Place("", model), captured(1, 5), (1, 2, 1, 5)) == "cross"
