"""Which queries and keys are patches: vision transformers, feature maps, given pictures, and pixels made visible."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import regard
from regard import See, Trace
from regard.capture.image_grids import visible
from regard.errors import ArgumentError
from vision_models import SEES, SIZES, DiffusionLike, TorchvisionLike, pictures

OBLONG = SIZES | {"image_size": (16, 24), "patch_size": 4}
SMALL_RESNET = {"embedding_size": 8, "hidden_sizes": [8] * 4, "depths": [1] * 4, "out_features": ["stage4"]}


def watched(model: Any, *args: Any, images: Any = None, **inputs: Any) -> Trace:
    with torch.no_grad(), regard.watch(model.eval(), see=See(map=512), images=images) as trace:
        model(*args, **inputs)
    return trace


def built(name: str, **config: Any) -> Any:
    model = getattr(transformers, name)
    torch.manual_seed(0)
    return model(model.config_class(**config))


@pytest.mark.parametrize(
    ("name", "config", "extra"),
    [
        ("ViTModel", OBLONG, ("[CLS]",)),
        ("DeiTModel", OBLONG, ("[CLS]", "[DIST]")),
        ("YolosModel", OBLONG | {"num_detection_tokens": 5, "image_size": [16, 24]}, ("[CLS]",)),
        ("Dinov2WithRegistersModel", SEES | {"num_register_tokens": 2}, ("[CLS]", "[REG 1]", "[REG 2]")),
        ("SiglipVisionModel", SEES, ()),
        ("CLIPVisionModel", SEES, ("[CLS]",)),
    ],
)
def test_tokens_before_the_patches_are_named(name: str, config: dict[str, Any], extra: tuple[str, ...]) -> None:
    high, wide = (16, 16) if config["image_size"] == 16 else (16, 24)
    pixels = pictures(2, 3, high, wide)
    record = watched(built(name, **config), pixel_values=pixels)[0]
    assert [(one.sample, one.grid, one.first, one.extra) for one in record.images] == [
        (sample, (4, wide // 4), len(extra), extra) for sample in (0, 1)
    ]
    shown = np.asarray(record.images[1].pixels)
    np.testing.assert_array_equal(shown, (255 * pixels[1].permute(1, 2, 0)).round().to(torch.uint8).numpy())


def test_the_layers_of_one_forward_share_a_picture() -> None:
    trace = watched(built("ViTModel", **OBLONG), pixel_values=pictures(1, 3, 16, 24))
    assert trace[0].images is trace[1].images


def test_feature_maps_of_a_convolutional_network() -> None:
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_queries": 5}
    backbone = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    options: Any = SMALL_RESNET
    config = transformers.ResNetConfig(**options)
    trace = watched(
        built("DetrModel", backbone_config=config, **backbone, **sizes), pixel_values=pictures(1, 3, 96, 130)
    )
    assert [[(one.grid, one.side) for one in record.images] for record in trace] == [
        [((3, 5), "both")],
        [],
        [((3, 5), "keys")],
    ]


def test_the_structure_of_torchvision() -> None:
    torch.manual_seed(0)
    trace = watched(TorchvisionLike(), pictures(2, 3, 16, 24))
    assert trace.names[0] == "encoder.layers.encoder_layer_0.self_attention"
    assert [(one.grid, one.first, one.extra) for one in trace[1].images] == [((4, 6), 1, ("[CLS]",))] * 2


def test_latents_that_attend_to_a_text() -> None:
    torch.manual_seed(0)
    (record,) = watched(DiffusionLike(), torch.randn(1, 4, 6, 10), torch.randn(1, 7, 16))
    assert [(one.grid, one.first, one.side, one.pixels) for one in record.images] == [((6, 10), 0, "queries", None)]


def test_queries_that_are_no_patches_get_no_picture() -> None:
    reads = SIZES | {"vocab_size": 99, "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    model = built("Blip2QFormerModel", **reads)
    (own, cross) = watched(model, query_embeds=torch.randn(1, 4, 32), encoder_hidden_states=torch.randn(1, 17, 32))[:2]
    assert own.images == cross.images == ()


def test_a_text_model_has_no_pictures() -> None:
    sizes = {"vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 1}
    trace = watched(built("GPT2Model", **sizes), torch.ones(1, 4, dtype=torch.long))
    assert trace[0].images == ()
    with pytest.raises(ArgumentError, match=r"none of the 1 records has a picture.*images="):
        trace.image("cat")


class Embedded(torch.nn.Module):
    """A transformer whose patches were embedded elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_a_given_picture_and_grid(tmp_path: Path) -> None:
    picture = np.zeros((30, 40, 3), np.uint8)
    Image.fromarray(picture).save(tmp_path / "cat.jpg")
    for given in (picture, Image.fromarray(picture), tmp_path / "cat.jpg", str(tmp_path / "cat.jpg")):
        (image,) = watched(Embedded(), torch.randn(1, 13, 8), images=(given, (3, 4)))[0].images
        assert (image.size, image.grid, image.first, image.extra) == ((40, 30), (3, 4), 1, ("[0]",))
    (image,) = watched(Embedded(), torch.randn(1, 12, 8), images=(3, 4))[0].images
    assert (image.pixels, image.grid, image.first) == (None, (3, 4), 0)


def test_a_given_picture_replaces_the_pixels_that_the_model_read() -> None:
    large = np.full((160, 240, 3), 7, np.uint8)
    (image,) = watched(built("ViTModel", **OBLONG), pixel_values=pictures(1, 3, 16, 24), images=large)[0].images
    assert (image.size, image.grid) == ((240, 160), (4, 6))


def test_a_grid_that_does_not_fit_is_one_sentence() -> None:
    with pytest.warns(UserWarning, match=r"a grid of 7 × 7 has 49 patches, but the model read 13"):
        trace = watched(Embedded(), torch.randn(1, 13, 8), images=(7, 7))
    assert trace[0].images == ()
    own = r"given grid is 9 × 9, but by its inputs the model's own is 4 × 6, which was used"
    with pytest.warns(UserWarning, match=own):
        trace = watched(built("ViTModel", **OBLONG), pixel_values=pictures(1, 3, 16, 24), images=(9, 9))
    assert trace[0].images[0].grid == (4, 6)


def test_the_grid_that_the_inputs_tell_may_be_given() -> None:
    clip, pixels = built("CLIPVisionModel", **SEES), pictures(1, 3, 16, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (image,) = watched(clip, pixel_values=pixels, images=(4, 4))[0].images
    assert (image.grid, image.first) == ((4, 4), 1)
    with pytest.warns(UserWarning, match="given grid is 2 × 8, but .* own is 4 × 4"):
        assert watched(clip, pixel_values=pixels, images=(2, 8))[0].images[0].grid == (4, 4)


@pytest.mark.parametrize("given", [(0, 3), (1, 2, 3), ("x", "y", "z"), 7])
def test_other_images_are_refused(given: Any) -> None:
    with pytest.raises(ArgumentError):
        regard.watch(Embedded(), images=given)


@pytest.mark.parametrize(
    ("mean", "std"),
    [((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5,) * 3, (0.5,) * 3), ((0.0,) * 3, (1.0,) * 3)],
)
def test_the_usual_normalisations_are_undone(mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    picture = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0))
    picture[:, 0, 0], picture[:, 0, 1] = 0, 1
    pixels = (picture - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    wanted = (255 * picture.permute(1, 2, 0)).round().numpy()
    for normal in (None, (list(mean), list(std))):
        found = visible(pixels, normal)
        assert found is not None
        assert np.abs(found.astype(float) - wanted).max() <= 1
