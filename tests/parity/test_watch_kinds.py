"""Kinds by masks and by the source of queries and keys; labels only for states that come from token ids."""

from typing import Any

import pytest
import torch
import transformers
from architectures import GROUPED, PAIR, PICTURE, SIZES, picture, text
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See

WORDS = SIZES | {"max_position_embeddings": 32}
IMAGE = picture()["pixel_values"]  # 16 patches, and one more if there is a token for the whole image
LXMERT = {"vocab_size": 99, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "l_layers": 1}
LXMERT |= {"x_layers": 1, "r_layers": 1, "visual_feat_dim": 16, "visual_pos_dim": 4}
SOUND = {"input_feat_per_channel": 8, "conv_channels": 16, "conv_kernel_sizes": (3, 3), "max_source_positions": 64}
CTRL = {"vocab_size": 99, "n_embd": 32, "dff": 48, "n_layer": 2, "n_head": 4, "n_positions": 64}
SAM = {
    "vision_config": {
        **PICTURE,
        "image_size": 32,
        "patch_size": 8,
        "output_channels": 16,
        "window_size": 2,
        "global_attn_indexes": [1],
        "mlp_dim": 48,
        "num_pos_feats": 8,
    },
    "prompt_encoder_config": {"hidden_size": 16, "image_size": 32, "patch_size": 8, "mask_input_channels": 4},
    "mask_decoder_config": {"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 16},
}


def ids(T: int) -> Tensor:
    return torch.arange(2 * T).reshape(2, T) % 80 + 5


def spell(some: list[int]) -> list[str]:
    return [f"t{i}" for i in some]


def watched(name: str, sizes: dict[str, Any], inputs: dict[str, Tensor]) -> Any:
    torch.manual_seed(0)
    made = getattr(transformers, name)
    model = made(made.config_class(**sizes)).eval()
    with torch.no_grad(), regard.watch(model, tokenizer=spell, see=See(map=64)) as trace:
        model(**inputs)
    assert len(trace)
    for record in trace:
        torch.testing.assert_close(present(record.map).sum(-1), torch.ones(present(record.map).shape[:-1]))
    return trace


@pytest.mark.parametrize(
    ("name", "sizes", "inputs", "kinds"),
    [
        ("EuroBertModel", GROUPED | {"mask_token_id": 3}, {"input_ids": ids(12)}, ["encoder"] * 2),
        ("CTRLModel", CTRL, {"input_ids": ids(12)}, ["decoder"] * 2),
        ("BertModel", SIZES | {"is_decoder": True}, {"input_ids": ids(12)}, ["decoder"] * 2),
        ("BartForCausalLM", PAIR, {"input_ids": ids(12)}, ["decoder"] * 2),
        ("ModernBertModel", SIZES | {"local_attention": 4, "cls_token_id": 1}, {"input_ids": ids(12)}, ["encoder"] * 2),
        (
            "GitModel",
            SIZES | {"vision_config": PICTURE},
            {"input_ids": ids(12), "pixel_values": IMAGE},
            ["encoder"] * 2 + ["decoder"] * 2,
        ),
        (
            "CLIPModel",
            {"text_config": WORDS, "vision_config": PICTURE},
            {"input_ids": ids(17), "pixel_values": IMAGE},
            ["encoder"] * 2 + ["decoder"] * 2,
        ),
        (
            "LxmertModel",
            LXMERT,
            {"input_ids": ids(12), "visual_feats": torch.ones(2, 12, 16), "visual_pos": torch.ones(2, 12, 4)},
            ["encoder", "encoder", "cross", "cross", "encoder", "encoder"],
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_kinds(name: str, sizes: dict[str, Any], inputs: dict[str, Tensor], kinds: list[str]) -> None:
    assert [record.kind for record in watched(name, sizes, inputs)] == kinds


def test_sam_tokens_attend_to_the_image() -> None:
    points = {"input_points": torch.linspace(0, 30, 8).reshape(2, 1, 2, 2)}
    trace = watched("SamModel", SAM, {"pixel_values": IMAGE.repeat(1, 1, 2, 2), **points})
    for record in trace:
        if "image" in record.name:  # token to image, and image to token
            assert record.kind == "cross", record.name
        elif "mask_decoder" in record.name:
            assert record.kind == "decoder", record.name
    assert "mask_decoder.transformer.final_attn_token_to_image" in trace.names


TWO_TOWERS = {"text_config": WORDS, "vision_config": PICTURE}


@pytest.mark.parametrize(
    ("name", "T"), [("SiglipModel", 16), ("CLIPModel", 17), ("ChineseCLIPModel", 17), ("OwlViTModel", 17)]
)
def test_patches_are_not_labelled_with_the_caption(name: str, T: int) -> None:
    trace = watched(name, TWO_TOWERS, {"input_ids": ids(T), "pixel_values": IMAGE})
    for record in trace:
        if record.name.startswith("vision"):
            assert record.query_tokens is record.key_tokens is record.ids is None
        else:
            assert record.query_tokens == record.key_tokens == tuple(tuple(spell(row)) for row in ids(T).tolist())


def test_each_side_of_cross_modal_attention_has_its_own_labels() -> None:
    inputs = {"input_ids": ids(12), "visual_feats": torch.ones(2, 12, 16), "visual_pos": torch.ones(2, 12, 4)}
    words = tuple(tuple(spell(row)) for row in ids(12).tolist())
    labels = {
        r.name.partition("encoder.")[2]: (r.query_tokens, r.key_tokens) for r in watched("LxmertModel", LXMERT, inputs)
    }
    assert labels == {
        "layer.0.attention.self": (words, words),
        "r_layers.0.attention.self": (None, None),
        "x_layers.0.visual_attention.att": (words, None),
        "x_layers.0.visual_attention.att#1": (None, words),
        "x_layers.0.lang_self_att.self": (words, words),
        "x_layers.0.visn_self_att.self": (None, None),
    }


def test_audio_is_not_labelled_with_its_transcript() -> None:
    trace = watched(
        "Speech2TextModel",
        PAIR | SOUND,
        {"input_features": torch.linspace(0, 9, 2 * 48 * 8).sin().reshape(2, 48, 8), "decoder_input_ids": ids(12)},
    )
    assert {record.shape[2:] for record in trace} == {(12, 12)}
    for record in trace:
        assert (record.query_tokens is None) is (record.kind == "encoder")
        assert (record.key_tokens is None) is (record.kind != "decoder")


class Pair(nn.Module):
    """Two hand-written towers, of a text and of measurements, both of the same length."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.measured = nn.Embedding(99, 8), nn.Linear(3, 8)
        self.left, self.right = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor, features: Tensor) -> Tensor:
        a, b = self.embedding(x), self.measured(features)
        return self.right(b, b, b)[0] + self.left(a, a, a)[0]


def test_two_hand_written_towers() -> None:
    model = Pair()
    with regard.watch(model, tokenizer=spell) as trace:
        model(ids(6), torch.ones(2, 6, 3))
    assert {record.name: record.query_tokens is not None for record in trace} == {"right": False, "left": True}


@pytest.mark.parametrize("lengths", [(9, 4, 6), (5, 4, 3)])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("window", [99, 3])
@pytest.mark.parametrize("path", ["eager", "sdpa", "boolean"])
@pytest.mark.parametrize("declared", [True, None])
@pytest.mark.parametrize("low", [torch.finfo(torch.float32).min, -1e4])
def test_padding_does_not_change_the_kind_of_a_decoder(
    lengths: tuple[int, ...], side: str, window: int, path: str, declared: bool | None, low: float
) -> None:
    """A fully masked padding query has uniform weights, also for later keys: that does not make the text non-causal."""

    class Layer(nn.Module):
        is_causal = declared

        def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
            added = torch.zeros(allowed.shape).masked_fill(~allowed, low)
            if path == "eager":
                return (x @ x.mT + added).softmax(-1) @ x
            mask = allowed if path == "boolean" else added
            return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    T, at = 9, torch.arange(9)
    keep = torch.stack([at >= T - n if side == "left" else at < n for n in lengths])
    band = (at[:, None] >= at) & (at[:, None] - at < window)
    layer = Layer()
    with torch.no_grad(), regard.watch(layer) as trace:
        layer(torch.randn(len(lengths), 2, T, 4), (band & keep[:, None])[:, None])
    assert trace[0].kind == "decoder"
    assert torch.equal(present(present(trace[0].padding).queries), keep)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["LlamaModel", "MistralModel", "CohereModel"])
def test_padded_decoders(name: str, implementation: str, side: str) -> None:
    made = getattr(transformers, name)
    more = {"sliding_window": 4} if name == "MistralModel" else {}
    model = made(made.config_class(**GROUPED | more)).eval()
    model.set_attn_implementation(implementation)
    with torch.no_grad(), regard.watch(model) as trace:
        model(**text(side))
    assert [record.kind for record in trace] == ["decoder", "decoder"]


def test_kind_of_weights_with_two_axes() -> None:
    """A loop over samples and heads computes weights of two axes."""

    class Decoder(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            return torch.stack([(one @ one.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ one for one in x])

    for model in (Decoder(), nn.ModuleDict({"decoder": Decoder()})):
        with torch.no_grad(), regard.watch(model) as trace:
            (model if isinstance(model, Decoder) else model["decoder"])(torch.randn(2, 5, 4))
        assert [(record.kind, record.shape) for record in trace] == [("decoder", (1, 1, 5, 5))] * 2
