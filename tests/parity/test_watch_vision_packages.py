"""The patches that `watch` finds in models of timm, torchvision, open_clip and diffusers: change one, see what moves.

The packages are optional: docs/skips.md.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard import See
from regard.records import Record
from vision_models import pictures

TINY: dict[str, Any] = {"embed_dim": 32, "num_heads": 4, "depth": 2, "pretrained": False}
OBLONG = TINY | {"img_size": (32, 48), "patch_size": 8}


def moved_tokens(model: nn.Module, block: nn.Module, inputs: Callable[[Tensor], tuple[Any, ...]], x: Tensor) -> Any:
    """The first record, and a function from a change of x to the tokens that differ before `block`."""
    seen: list[Tensor] = []
    block.register_forward_pre_hook(lambda _module, args: seen.append(args[0][0].detach()))
    with torch.no_grad(), regard.watch(model, see=See(map=512)) as trace:
        model(*inputs(x))

    def moved(changed: Tensor) -> list[int]:
        with torch.no_grad():
            model(*inputs(changed))
        return [int(at) for at in (seen[-1] != seen[0]).any(-1).nonzero()]

    return trace, moved


def assert_patches_are_right(record: Record, moved: Callable[[Tensor], list[int]], x: Tensor, side: int) -> None:
    """Change a pixel of three patches: exactly the token at the patch's position differs."""
    (image,) = record.images
    rows, cols = image.grid
    assert (rows * side, cols * side) == tuple(x.shape[-2:])
    for row, col in ((0, 0), (rows - 1, 0), (1, cols - 1)):
        changed = x.clone()
        changed[0, :, row * side + 1, col * side + 1] += 0.5
        assert moved(changed) == [image.patches[row * cols + col]]


@pytest.mark.parametrize(
    ("name", "options", "extra"),
    [
        ("vit_tiny_patch16_224", OBLONG, ("[CLS]",)),
        ("deit_tiny_distilled_patch16_224", OBLONG, ("[CLS]", "[DIST]")),
        ("vit_small_patch14_reg4_dinov2", OBLONG, ("[CLS]", "[REG 1]", "[REG 2]", "[REG 3]", "[REG 4]")),
        ("eva02_tiny_patch14_224", OBLONG, ("[CLS]",)),
        ("vit_base_patch16_siglip_224", OBLONG, ()),
    ],
)
def test_timm(name: str, options: dict[str, Any], extra: tuple[str, ...]) -> None:
    timm: Any = pytest.importorskip("timm")
    torch.manual_seed(0)
    model, x = timm.create_model(name, **options).eval(), pictures(1, 3, 32, 48)
    trace, moved = moved_tokens(model, model.blocks[0], lambda x: (x,), x)
    assert trace[0].images[0].extra == extra
    assert_patches_are_right(trace[0], moved, x, 8)
    if "siglip" in name:
        assert [(one.grid, one.side) for one in trace["attn_pool"].images] == [((4, 6), "keys")]


def test_torchvision() -> None:
    vision: Any = pytest.importorskip("torchvision.models.vision_transformer")
    torch.manual_seed(0)
    model, x = vision.VisionTransformer(32, 8, 2, 4, 32, 48).eval(), pictures(1, 3, 32, 32)
    trace, moved = moved_tokens(model, model.encoder.layers[0], lambda x: (x,), x)
    assert trace[1].images[0].extra == ("[CLS]",)
    assert_patches_are_right(trace[1], moved, x, 8)


def test_open_clip() -> None:
    clip: Any = pytest.importorskip("open_clip.model")
    torch.manual_seed(0)
    seen = {"image_size": (32, 48), "layers": 2, "width": 32, "head_width": 8, "patch_size": 8}
    read = {"context_length": 10, "vocab_size": 50, "width": 32, "heads": 4, "layers": 2}
    model, x = clip.CLIP(embed_dim=32, vision_cfg=seen, text_cfg=read).eval(), pictures(1, 3, 32, 48)
    ids = torch.arange(10)[None]
    trace, moved = moved_tokens(model, model.visual.transformer.resblocks[0], lambda x: (x, ids), x)
    assert trace[0].images[0].extra == ("[CLS]",)
    assert_patches_are_right(trace[0], moved, x, 8)
    assert not trace[-1].images  # the text


def test_patches_of_latents_in_diffusers() -> None:
    diffusers: Any = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    sizes = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2, "cross_attention_dim": 16}
    sizes |= {"in_channels": 4, "out_channels": 4, "sample_size": 8, "patch_size": 2, "caption_channels": 16}
    model = diffusers.PixArtTransformer2DModel(**sizes, norm_num_groups=4).eval()
    text, x = torch.randn(1, 7, 16), torch.randn(1, 4, 8, 8)
    more = {"resolution": None, "aspect_ratio": None}
    first = model.transformer_blocks[0]
    trace, moved = moved_tokens(model, first, lambda x: (x, text, torch.tensor([1]), more), x)
    assert_patches_are_right(trace[0], moved, x, 2)
    cross = trace.select(kind="cross")[0]
    assert [(one.grid, one.side) for one in cross.images] == [((4, 4), "queries")]


def test_feature_maps_in_diffusers() -> None:
    diffusers: Any = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    model = diffusers.UNet2DConditionModel(
        sample_size=(8, 12),
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        layers_per_block=1,
        norm_num_groups=8,
    ).eval()
    with torch.no_grad(), regard.watch(model, see=See(map=512)) as trace:
        model(torch.randn(1, 4, 8, 12), 1, torch.randn(1, 7, 16))
    assert [(r.kind, r.images[0].grid, r.images[0].side) for r in trace[:4]] == [
        ("encoder", (8, 12), "both"),
        ("cross", (8, 12), "queries"),
        ("encoder", (4, 6), "both"),
        ("cross", (4, 6), "queries"),
    ]
