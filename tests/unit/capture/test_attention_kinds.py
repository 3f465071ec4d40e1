"""Which side an attention is on: by its module, its name, what is around it; by its mask, where these are silent."""

import pytest
import torch
from torch import nn

from regard.capture.attention_kinds import Kinds, seen_kind, told_kind
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.module_names import Names, Place
from regard.layers import MultiHeadAttention
from regard.masks import Mask


def caught(T: int, S: int, mask: Mask | None = None, bias: torch.Tensor | None = None) -> Caught:
    q, k = torch.ones(1, 2, T, 4), torch.ones(1, 2, S, 4)
    return Caught(q=q, k=k, v=k, scale=1.0, mask=mask, bias=bias)


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
    assert told_kind(name, []) == kind


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
    assert told_kind(name, [with_attributes(**attributes)]) == kind


def test_ours_say_what_they_are() -> None:
    assert told_kind("anything", [MultiHeadAttention(8, 2, kind="cross")]) == "cross"
    assert told_kind("anything", [MultiHeadAttention(8, 2)]) == "self"


def test_classes_around() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 1)
    for model, attention, kind in ((encoder, "self_attn", "encoder"), (decoder, "self_attn", "decoder")):
        name = f"layers.0.{attention}"
        assert told_kind(name, Names(model).around(name)) == kind
    assert told_kind("layers.0.multihead_attn", Names(decoder).around("layers.0.multihead_attn")) == "cross"


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
        (None, 1, 5, "self"),  # a step, with a cache
        (Mask.from_keep(torch.tensor([[1, 1, 1, 0, 0]])), 3, 5, "self"),
    ],
)
def test_masks_and_sizes(mask: Mask | None, T: int, S: int, kind: str) -> None:
    assert seen_kind(caught(T, S, mask), (1, 2, T, S)) == kind
    if mask is not None:
        added = torch.zeros(1, 1, T, S).masked_fill(
            ~mask.dense(T, S, like=torch.ones(1))[None, None].view(1, 1, T, S), -torch.inf
        )
        assert seen_kind(caught(T, S, bias=added), (1, 2, T, S)) == kind
        if T == S:
            weights = added.softmax(-1)
            assert seen_kind(CaughtWeights(weights, weights[..., 0]), (1, 1, T, S)) == kind


def test_a_module_stays_what_it_was() -> None:
    model = nn.Sequential(nn.Identity())
    kinds, place = Kinds(Names(model)), Place("0", model[0])
    assert kinds.of(place, caught(5, 5, Mask.causal()), (1, 2, 5, 5)) == "decoder"
    assert kinds.of(place, caught(1, 6), (1, 2, 1, 6)) == "decoder"


def test_a_module_without_memory_looks_elsewhere_where_sizes_differ() -> None:
    model = nn.MultiheadAttention(8, 2)
    assert Kinds(Names(model)).of(Place("", model), caught(1, 5), (1, 2, 1, 5)) == "cross"
