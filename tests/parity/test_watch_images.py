"""The patches of pictures that `watch` finds, against what the models compute, and overlays against `eager`."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from narrowing import present
from torch import Tensor, nn

import regard
from regard import See
from regard.capture import texts
from regard.capture.torch_internals import dispatch_mode_count
from regard.records import Record
from regard.trace.measures.image_attention import attend_to_images
from vision_models import LANGUAGE_MODELS, MLLAMA, SIZES, TOWERS, VisionModel, ids, pictures, spell, video

WHOLE = See(map=512)
each = pytest.mark.parametrize(
    "made", LANGUAGE_MODELS, ids=lambda one: one.name.removesuffix("ForConditionalGeneration")
)


def without_mixing(model: nn.Module) -> None:
    """Let the layers of the vision tower add nothing, so that a token depends on its own patches alone."""
    for name, module in model.named_modules():
        is_vision = re.search(r"vision|visual", name) and re.search(r"(layers?|blocks)\.\d", name)
        if is_vision and isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def read_by_text(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, Record]:
    """The embeddings that the language model reads, T D, and the record of its first layer."""
    found: list[Tensor] = []
    reader = next(m for n, m in model.named_modules() if re.search(r"(language|text)_model$", n))
    handle = reader.register_forward_pre_hook(
        lambda module, args, given: found.append(given["inputs_embeds"][0]), with_kwargs=True
    )
    with torch.no_grad(), regard.watch(model, spell, see=WHOLE) as trace:
        model(**inputs)
    handle.remove()
    return found[0], next(record for record in trace if re.search(r"(language|text)_model\.layers\.0", record.name))


@each
def test_a_changed_patch_changes_the_token_that_stands_for_it(made: VisionModel) -> None:
    model, inputs = made.build(), made.inputs()
    without_mixing(model)
    before, record = read_by_text(model, inputs)
    assert tuple(image.grid for image in record.images) == made.views
    pixels = inputs["pixel_values"]
    draw = np.random.default_rng(0)
    for _ in range(2):
        changed = pixels.clone()
        if pixels.dim() == 2:
            changed[draw.integers(len(pixels))] = 1
        else:
            views = changed.flatten(0, -4)
            real = [view for view in views if view.any()]
            row, col = (4 * int(draw.integers(side // 4)) for side in pixels.shape[-2:])
            real[draw.integers(len(real))][:, row : row + 4, col : col + 4] = 1
        after, other = read_by_text(model, inputs | {"pixel_values": changed})
        moved = (after != before).any(-1).nonzero().flatten().tolist()
        expected = [
            place
            for image, now in zip(record.images, other.images, strict=True)
            for place, is_changed in zip(image.patches.tolist(), _changed(image, now), strict=True)
            if is_changed
        ]
        assert moved == sorted(expected)


def _changed(image: Any, now: Any) -> np.ndarray:
    """Which patches of a picture differ."""
    rows, cols = image.grid
    differs = (image.pixels != now.pixels).any(-1)
    return differs.reshape(rows, differs.shape[0] // rows, cols, -1).any((1, 3)).reshape(-1)


@each
def test_overlays_are_the_weights_of_eager(made: VisionModel) -> None:
    model, inputs = made.build(), made.inputs()
    with torch.no_grad(), regard.watch(model, spell, see=WHOLE) as trace:
        model(**inputs)
    record = next(record for record in trace if re.search(r"(language|text)_model\.layers\.1", record.name))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(**inputs, output_attentions=True).attentions[1][0]
    last = inputs["input_ids"].shape[1] - 1
    is_patch = inputs["input_ids"][0] == 90
    for head in (2, None):
        found = attend_to_images(trace, "w6", layer=record.name, head=head)
        at = int((inputs["input_ids"][0] == 6).nonzero()[-1])
        row = (weights.mean(0) if head is None else weights[head])[at]
        assert found.positions == (at,)
        for view in found.views:
            np.testing.assert_allclose(view.weights.reshape(-1), row[view.image.patches].numpy(), atol=1e-5)
        patches = np.concatenate([view.image.patches for view in found.views])
        assert len(set(patches)) == len(patches)
        assert is_patch[patches].all()
        np.testing.assert_allclose(found.share, float(row[patches].sum()), atol=1e-5)
    assert attend_to_images(trace, layer=record.name).positions == (last,)


def eager_weights(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    """What the model itself returns for the attention that reads pictures, in call order."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(**inputs, output_attentions=True)
    if hasattr(out, "vision_model_output"):
        out = out.vision_model_output
    if hasattr(out, "cross_attentions"):
        return [*out.encoder_attentions, *out.cross_attentions]
    return list(out.attentions)


@pytest.mark.parametrize("made", TOWERS, ids=lambda one: one.name)
def test_overlays_of_towers_are_the_weights_of_eager(made: VisionModel) -> None:
    model, inputs = made.build(), made.inputs()
    with torch.no_grad(), regard.watch(model, see=WHOLE) as trace:
        model(**inputs)
    with_pictures = regard.Trace(record for record in trace if record.images and record.shape[2] > 1)
    rows, cols = made.views[0]
    for record, weights in zip(with_pictures, eager_weights(model, inputs), strict=True):
        before = record.shape[3] - rows * cols  # the class token
        for sample, head in ((0, 2), (1, None)):
            each = weights[sample].mean(0) if head is None else weights[sample, head]
            query = 3 if record.kind == "cross" else (1, 2)  # an object query of DETR, or a patch
            row = each[3 if query == 3 else before + cols + 2]
            found = attend_to_images(trace, query, layer=record.name, head=head, sample=sample)
            (view,) = found.views
            assert view.weights.shape == (rows, cols)
            np.testing.assert_allclose(view.weights.reshape(-1), row[before:].numpy(), atol=1e-5)
            np.testing.assert_allclose(found.share, float(row[before:].sum()), atol=1e-5)


def test_a_learned_query_that_pools_the_patches() -> None:
    made = next(one for one in TOWERS if one.name == "SiglipModel")
    model: Any = made.build()
    with torch.no_grad(), regard.watch(model, see=WHOLE) as trace:
        model(**made.inputs())
    record = trace["head.attention"]
    assert [(one.grid, one.side, one.sample) for one in record.images] == [((4, 4), "keys", 0), ((4, 4), "keys", 1)]
    head = model.vision_model.head
    with torch.no_grad():
        x = model.vision_model(made.inputs()["pixel_values"]).last_hidden_state
        probe = head.probe.expand(2, -1, -1)
        _, weights = head.attention(probe, x, x, average_attn_weights=False)
    found = attend_to_images(trace, 0, layer=record.name, head=1, sample=1)
    np.testing.assert_allclose(found.views[0].weights.reshape(-1), weights[1, 1, 0].numpy(), atol=1e-5)


def test_pictures_and_crops_are_numbered() -> None:
    found = {}
    for made in LANGUAGE_MODELS:
        if made.name.startswith(("InternVL", "SmolVLM", "LlavaNext")):
            record = read_by_text(made.build(), made.inputs())[1]
            found[made.name[:6]] = [(image.number, image.crop) for image in record.images]
    assert found["Intern"] == [(0, 0), (0, 1), (0, 2), (1, None)]
    assert found["SmolVL"] == [(0, 0), (0, 1), (0, None), (1, None)]
    assert found["LlavaN"] == [(0, None), (0, 0)]


def test_windows_hold_the_patches_that_attend_to_each_other() -> None:
    made = LANGUAGE_MODELS[1]
    model, inputs = made.build(), made.inputs()
    with torch.no_grad(), regard.watch(model, see=WHOLE) as trace:
        model(**inputs)
    windows = [record for record in trace if record.module == "model.visual.blocks.0.attn"]
    assert [record.shape[2] for record in windows] == [16, 16, 8, 8, 8, 4, 16, 16]
    seen = np.zeros((6, 10), int)
    for record in windows[:6]:
        (image,) = record.images
        places = image.patches.reshape(6, 10)
        rows, cols = np.nonzero(places >= 0)
        assert max(np.ptp(rows), np.ptp(cols)) < 4  # a window of 2 × 2 tokens
        assert sorted(places[places >= 0].tolist()) == list(range(record.shape[2]))
        seen[places >= 0] += 1
    assert (seen == 1).all()
    chosen = attend_to_images(trace, (5, 9), layer="model.visual.blocks.0.attn", image=0)
    assert chosen.record is windows[5]
    assert np.isnan(chosen.views[0].weights).sum() == 56
    assert chosen.share == pytest.approx(1)


def test_frames_of_a_video_are_distinguished() -> None:
    model = LANGUAGE_MODELS[1].build()
    with torch.no_grad(), regard.watch(model, see=WHOLE) as trace:
        model(**video())
    images = trace["language_model.layers.1"].images
    assert [(image.grid, image.frame, image.first) for image in images] == [((2, 3), 0, 2), ((2, 3), 1, 8)]
    assert images[0].size == (24, 16)
    assert {image.frame for record in trace for image in record.images} == {0, 1}


def test_cross_attention_to_tiles() -> None:
    model, inputs = MLLAMA.build(), MLLAMA.inputs()
    with torch.no_grad(), regard.watch(model, see=WHOLE) as trace:
        model(**inputs)
    (record,) = trace.select(kind="cross")
    assert [(image.first, image.crop, image.extra) for image in record.images] == [
        (1, 0, ("[CLS]",)),
        (18, 1, ("[CLS]",)),
    ]
    tower = trace["vision_model.transformer.layers.0"]
    assert [image.first for image in tower.images] == [1, 25]  # 17 tokens of each tile are padded to 24
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(**inputs, output_attentions=True).attentions[1][0]
    found = attend_to_images(trace, 2, layer=record.name, head=3)
    np.testing.assert_allclose(found.views[1].weights.reshape(-1), weights[3, 2, 18:34].numpy(), atol=1e-5)


@pytest.mark.parametrize("beams", [1, 2])
def test_generated_words_look_at_the_same_picture(beams: int) -> None:
    made = LANGUAGE_MODELS[1]
    model, inputs = made.build(), made.inputs()
    with torch.no_grad(), regard.watch(model, spell, see=WHOLE) as trace:
        written = model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, num_beams=beams, do_sample=False)
    length = inputs["input_ids"].shape[1]
    step = trace["language_model.layers.0.self_attn#2"]
    assert {image.side for image in step.images} == {"keys"}
    whole = trace.stitched(written)["language_model.layers.0.self_attn"]
    assert [(image.first, image.side) for image in whole.images] == [(2, "both"), (20, "both")]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        types = nn.functional.pad(inputs["mm_token_type_ids"], (0, written.shape[1] - length))
        again = inputs | {"input_ids": written, "attention_mask": torch.ones_like(written), "mm_token_type_ids": types}
        weights = model(**again, output_attentions=True).attentions[0][0]
    found = attend_to_images(regard.Trace([whole]), length + 1)
    np.testing.assert_allclose(
        found.views[1].weights.reshape(-1), weights[:, length + 1, 20:28].mean(0).numpy(), atol=1e-5
    )
    assert present(whole.map).shape[-1] >= length + 3


def tokens_of(made: VisionModel, generates: bool) -> tuple[list[Any], list[int]]:
    """What is known of the texts of all records; and how many dispatch modes each forward of a layer saw."""
    model, inputs, modes = made.build(), made.inputs(), list[int]()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.Embedding):
            module.register_forward_hook(lambda *_: modes.append(dispatch_mode_count()))
    with torch.no_grad(), regard.watch(model, spell) as trace:
        if generates:
            model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)
        else:
            model(**inputs)
    kept = ("name", "kind", "step", "query_tokens", "key_tokens", "written")
    found = [
        ([getattr(one, name) for name in kept], None if one.ids is None else one.ids.tolist(), len(one.images))
        for one in trace
    ]
    return found, modes


WHISPER = VisionModel(
    "WhisperForConditionalGeneration",
    lambda: (
        SIZES
        | {"vocab_size": 99, "d_model": 32, "num_mel_bins": 8, "max_source_positions": 12, "pad_token_id": 0}
        | {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
        | {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "bos_token_id": 1, "eos_token_id": 2}
        | {"decoder_start_token_id": 1}
    ),
    lambda: {"input_features": pictures(2, 8, 24), "decoder_input_ids": ids(1, 5, 6, 7).expand(2, -1)},
)


READERS = (*LANGUAGE_MODELS, MLLAMA)


@pytest.mark.parametrize(
    ("made", "generates"),
    [(one, False) for one in (*READERS, *TOWERS, WHISPER)] + [(one, True) for one in READERS],
    ids=lambda one: one.name if isinstance(one, VisionModel) else "",
)
def test_text_and_images_in_stacks_of_their_own(
    made: VisionModel, generates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No operator is followed, and the tokens are those that following all of them shows."""
    found, modes = tokens_of(made, generates)
    monkeypatch.setattr(texts, "text_stacks", lambda names, tables: None)
    wanted, followed = tokens_of(made, generates)
    assert found == wanted
    assert modes[0] == 0
    assert 1 not in modes or made.name == "SiglipModel"  # the head of its tower computes a softmax
    assert {*followed} == {1}
