"""Small random models that read pictures, and what they read. No download."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

PICTURE, VIDEO = 90, 91
"""The ids of the tokens that stand for patches."""
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SEES = SIZES | {"image_size": 16, "patch_size": 4}
READS = SIZES | {"vocab_size": 99, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
QWEN = {"num_heads": 4, "patch_size": 4, "spatial_merge_size": 2, "depth": 2}
ROPE = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
SHAPES = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]


def ids(*parts: int | list[int]) -> Tensor:
    """One text."""
    return torch.tensor([[one for part in parts for one in (part if isinstance(part, list) else [part])]])


def pictures(*shape: int) -> Tensor:
    """Pixels from 0 to 1, all different."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) * 0.8 + 0.1


@dataclass(frozen=True)
class VisionModel:
    """A model class, its config, and what it reads. `views`: the grids of a text's pictures, in order."""

    name: str
    config: Callable[[], dict[str, Any]]
    inputs: Callable[[], dict[str, Tensor]]
    views: tuple[tuple[int, int], ...] = ()

    def build(self) -> Any:
        import transformers

        model = getattr(transformers, self.name)
        torch.manual_seed(0)
        return model(model.config_class(**self.config())).eval()


def _qwen(vision: dict[str, Any]) -> dict[str, Any]:
    text = READS | {"rope_parameters": ROPE, "head_dim": 8}
    tokens = {
        "image_token_id": PICTURE,
        "video_token_id": VIDEO,
        "vision_start_token_id": 92,
        "vision_end_token_id": 93,
    }
    return {"text_config": text, "vision_config": QWEN | vision, **tokens}


def two_packed() -> dict[str, Tensor]:
    """Two pictures of 24 × 40 and 32 × 16 pixels, in patches of 4, packed."""
    grids = torch.tensor([[1, 6, 10], [1, 8, 4]])
    text = ids(3, 92, [PICTURE] * 15, 93, 5, 92, [PICTURE] * 8, 93, 6, 7)
    more = {"mm_token_type_ids": (text == PICTURE).int(), "attention_mask": torch.ones_like(text)}
    return {"input_ids": text, "pixel_values": pictures(92, 3 * 2 * 4 * 4), "image_grid_thw": grids} | more


def video() -> dict[str, Tensor]:
    """Two steps of a video of 16 × 24 pixels."""
    text = ids(3, 92, [VIDEO] * 12, 93, 6, 7)
    more = {"mm_token_type_ids": 2 * (text == VIDEO).int(), "attention_mask": torch.ones_like(text)}
    grids = torch.tensor([[2, 4, 6]])
    return {"input_ids": text, "pixel_values_videos": pictures(48, 3 * 2 * 4 * 4), "video_grid_thw": grids} | more


def _llava(**more: Any) -> dict[str, Any]:
    vision = SEES | {"model_type": "clip_vision_model"}
    return {
        "vision_config": vision,
        "text_config": READS | {"model_type": "llama"},
        "image_token_index": PICTURE,
    } | more


def _mllama() -> dict[str, Any]:
    vision: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    vision["num_global_layers"] = 1
    vision |= {"attention_heads": 4, "image_size": 16, "patch_size": 4, "max_num_tiles": 4, "vision_output_dim": 64}
    vision |= {"intermediate_layers_indices": [0], "supported_aspect_ratios": SHAPES}
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    text = READS | {"cross_attention_layers": [1], "rope_parameters": rope}
    return {"vision_config": vision, "text_config": text, "image_token_index": PICTURE}


def two_tiles() -> dict[str, Tensor]:
    """Mllama: one picture in two tiles, and two tiles of padding."""
    pixels = pictures(1, 1, 4, 3, 16, 16)
    pixels[:, :, 2:] = 0
    text, tiles = ids(3, PICTURE, 6, 7), torch.tensor([1, 1, 0, 0])
    more = {"aspect_ratio_ids": torch.tensor([[2]]), "aspect_ratio_mask": tiles[None, None]}
    seen = torch.ones(1, 4, 1, 4, dtype=torch.long) * tiles
    return {"input_ids": text, "pixel_values": pixels, "cross_attention_mask": seen} | more


def five_crops() -> dict[str, Tensor]:
    """SmolVLM: two crops and the whole of a first picture, a second picture, and padding."""
    pixels = pictures(1, 5, 3, 16, 16)
    pixels[:, 4] = 0
    crops = (20, 21, [PICTURE] * 4, 20, 22, [PICTURE] * 4, 20, 23, [PICTURE] * 4)
    return {"input_ids": ids(3, *crops, 20, 5, 20, 23, [PICTURE] * 4, 6, 7), "pixel_values": pixels}


CROP_NAMES = {21: "<row_1_col_1>", 22: "<row_1_col_2>", 23: "<global-img>"}


def spell(tokens: list[int]) -> list[str]:
    return [CROP_NAMES.get(one, f"w{one}") for one in tokens]


def _reads(text: Tensor, pixels: Tensor, **more: Any) -> dict[str, Any]:
    return {"input_ids": text, "pixel_values": pixels} | more


TILED = {"image_grid_pinpoints": [[16, 32], [32, 16], [32, 32]]}
LANGUAGE_MODELS = (
    VisionModel("Qwen2VLForConditionalGeneration", lambda: _qwen({"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}),
                two_packed, ((3, 5), (4, 2))),
    VisionModel("Qwen2_5_VLForConditionalGeneration",
                lambda: _qwen({"hidden_size": 32, "intermediate_size": 48, "window_size": 16, "out_hidden_size": 32,
                               "fullatt_block_indexes": [1]}), two_packed, ((3, 5), (4, 2))),
    VisionModel("Qwen3VLForConditionalGeneration",
                lambda: _qwen({"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32,
                               "num_position_embeddings": 64, "deepstack_visual_indexes": [0]}),
                two_packed, ((3, 5), (4, 2))),
    VisionModel("LlavaForConditionalGeneration", _llava,
                lambda: _reads(ids(3, [PICTURE] * 16, 5, [PICTURE] * 16, 6, 7), pictures(2, 3, 16, 16)),
                ((4, 4), (4, 4))),
    VisionModel("LlavaNextForConditionalGeneration", lambda: _llava(**TILED),
                lambda: _reads(ids(3, [PICTURE] * 34, 6, 7), pictures(1, 3, 3, 16, 16),
                               image_sizes=torch.tensor([[20, 60]])), ((4, 4), (2, 8))),
    VisionModel("LlavaOnevisionForConditionalGeneration",
                lambda: _llava(**TILED, vision_aspect_ratio="anyres_max_9", video_token_index=VIDEO)
                | {"vision_config": SEES | {"model_type": "siglip_vision_model", "vision_use_head": False},
                   "text_config": READS | {"model_type": "qwen2"}},
                lambda: _reads(ids(3, [PICTURE] * 34, 6, 7), pictures(1, 3, 3, 16, 16),
                               image_sizes=torch.tensor([[20, 60]])), ((4, 4), (2, 8))),
    VisionModel("InternVLForConditionalGeneration",
                lambda: {"vision_config": SIZES | {"image_size": [16, 16], "patch_size": [4, 4]},
                         "text_config": READS | {"model_type": "qwen2"}, "image_token_id": PICTURE},
                lambda: _reads(ids(3, [PICTURE] * 12, 5, [PICTURE] * 4, 6, 7), pictures(4, 3, 16, 16)), ((2, 2),) * 4),
    VisionModel("SmolVLMForConditionalGeneration",
                lambda: {"vision_config": SEES, "text_config": READS | {"model_type": "llama"},
                         "image_token_id": PICTURE, "scale_factor": 2}, five_crops, ((2, 2),) * 4),
    VisionModel("Idefics3ForConditionalGeneration",
                lambda: {"vision_config": SEES, "text_config": READS | {"model_type": "llama"},
                         "image_token_id": PICTURE, "scale_factor": 2}, five_crops, ((2, 2),) * 4),
    VisionModel("Mistral3ForConditionalGeneration",
                lambda: {"vision_config": SIZES | {"image_size": 32, "patch_size": 4, "model_type": "pixtral",
                                                   "head_dim": 8},
                         "text_config": READS | {"model_type": "mistral", "head_dim": 8},
                         "image_token_index": PICTURE, "spatial_merge_size": 2},
                lambda: _reads(ids(3, [PICTURE] * 3, 94, [PICTURE] * 3, 95, 4, [PICTURE] * 2, 94, [PICTURE] * 2, 95, 6),
                               pictures(2, 3, 16, 24), image_sizes=torch.tensor([[16, 24], [16, 16]])),
                ((2, 3), (2, 2))),
)  # fmt: skip
MLLAMA = VisionModel("MllamaForConditionalGeneration", _mllama, two_tiles)


def _two_towers() -> dict[str, Any]:
    text = SIZES | {"vocab_size": 99, "max_position_embeddings": 8, "pad_token_id": 0}
    return {"text_config": text | {"bos_token_id": 1, "eos_token_id": 2}, "vision_config": SEES, "projection_dim": 16}


def _pair() -> dict[str, Any]:
    return {"input_ids": ids(1, 5, 6, 2), "pixel_values": pictures(2, 3, 16, 16)}


def detr() -> dict[str, Any]:
    """The config of a small DETR with a ResNet, whose last feature map has a 32nd of the picture's side."""
    from transformers import ResNetConfig

    resnet: dict[str, Any] = {
        "embedding_size": 8,
        "hidden_sizes": [8] * 4,
        "depths": [1] * 4,
        "out_features": ["stage4"],
    }
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_queries": 5}
    config = ResNetConfig(**resnet)
    backbone = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    return backbone | sizes | {"backbone_config": config}


TOWERS = (
    VisionModel("ViTModel", lambda: SIZES | {"image_size": (16, 24), "patch_size": 4},
                lambda: {"pixel_values": pictures(2, 3, 16, 24)}, ((4, 6),)),
    VisionModel("CLIPVisionModel", lambda: SEES, lambda: {"pixel_values": pictures(2, 3, 16, 16)}, ((4, 4),)),
    VisionModel("CLIPModel", _two_towers, _pair, ((4, 4),)),
    VisionModel("SiglipModel", _two_towers, _pair, ((4, 4),)),
    VisionModel("DetrModel", detr, lambda: {"pixel_values": pictures(2, 3, 96, 130)}, ((3, 5),)),
)  # fmt: skip


class EncoderBlock(nn.Module):
    """A layer of torchvision's VisionTransformer, with its names."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """The layers of torchvision's VisionTransformer, by name."""

    def __init__(self, width: int, heads: int, layers: int, patches: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, patches + 1, width))
        self.layers = nn.ModuleDict({f"encoder_layer_{i}": EncoderBlock(width, heads) for i in range(layers)})

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pos_embedding
        for layer in self.layers.values():
            x = layer(x)
        return x


class TorchvisionLike(nn.Module):
    """torchvision's VisionTransformer: the same parts and names, because torchvision cannot be installed everywhere."""

    def __init__(self, patch: int = 4, width: int = 32, heads: int = 4, layers: int = 2, patches: int = 24) -> None:
        super().__init__()
        self.patch_size, self.hidden_dim = patch, width
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, width))
        self.encoder = Encoder(width, heads, layers, patches)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        return self.encoder(torch.cat([self.class_token.expand(len(x), -1, -1), x], 1))[:, 0]


class CrossAttention(nn.Module):
    """diffusers' cross-attention of a feature map, B C h w, to the tokens of a text."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, hidden_states: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, x in (
                (self.to_q, hidden_states),
                (self.to_k, encoder_hidden_states),
                (self.to_v, encoder_hidden_states),
            )
        )
        return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class DiffusionLike(nn.Module):
    """A step of a diffusion model: latents of four channels, a feature map, and attention to a text."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_in = nn.Conv2d(4, 16, 3, padding=1)
        self.attn2 = CrossAttention()

    def forward(self, sample: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        x = self.conv_in(sample)
        return self._attend(x, encoder_hidden_states)

    def _attend(self, hidden_states: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        flat = hidden_states.flatten(2).transpose(1, 2)
        return self.attn2(flat, encoder_hidden_states)
