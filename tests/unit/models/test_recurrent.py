"""RecurrentModel: padding, decoding, attention, and its folder."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tolerances import assert_close

from regard.checkpoints import read_model
from regard.config import RecurrentConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError
from regard.generation.beams import search_many
from regard.masks import Mask
from regard.models import RecurrentModel, Transformer, read_any_model
from regard.trace import Recorder

SIZES: dict[str, Any] = {"vocab_size": 11, "d_model": 6, "d_state": 8, "max_len": 20}
CONFIGS = {
    "elman": RecurrentConfig(cell="elman", **SIZES),
    "lstm of two layers": RecurrentConfig(cell="lstm", n_decoder_layers=2, **SIZES),
    "no attention": RecurrentConfig(cell="lstm", n_encoder_layers=1, **SIZES),
    "elman with luong": RecurrentConfig(cell="elman", n_encoder_layers=1, attention="luong", **SIZES),
    "luong": RecurrentConfig(cell="lstm", n_encoder_layers=2, n_decoder_layers=2, attention="luong", **SIZES),
    "bahdanau": RecurrentConfig(
        cell="lstm", n_encoder_layers=2, n_decoder_layers=2, attention="bahdanau", forget_bias=1.5, **SIZES
    ),
}
IDS = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])
SOURCE = torch.tensor([[4, 5, 6, 2, 0], [9, 8, 2, 0, 0]])


def model_of(name: str) -> RecurrentModel:
    torch.manual_seed(0)
    return RecurrentModel(CONFIGS[name]).eval()


def inputs(model: RecurrentModel) -> dict[str, Any]:
    if model.encoder is None:
        return {}
    return {"source": SOURCE, "source_mask": Mask.from_keep(SOURCE > 0)}


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_have_the_names_and_shapes_of_the_config(name: str) -> None:
    found = {key: tuple(value.shape) for key, value in model_of(name).state_dict().items()}
    assert found == weight_shapes(CONFIGS[name])


def test_a_forget_bias_is_set_in_every_layer_and_in_no_other_gate() -> None:
    drawn = RecurrentModel(CONFIGS["bahdanau"]).state_dict()
    biases = [name for name in drawn if name.endswith("bias_x")]
    assert len(biases) == 6
    for name in biases:
        i, f, g, o = drawn[name].chunk(4)
        assert (f == 1.5).all()
        assert all(gate.abs().max() <= 1 for gate in (i, g, o))
        i, f, g, o = drawn[name.replace("bias_x", "bias_h")].chunk(4)
        assert not f.any()
        assert all(gate.any() for gate in (i, g, o))


@pytest.mark.parametrize("name", CONFIGS)
def test_later_words_do_not_change_earlier_logits(name: str) -> None:
    model = model_of(name)
    whole, shorter = (model(ids, **inputs(model)) for ids in (IDS, IDS[:, :2]))
    assert whole.shape == (2, 4, 11)
    assert_close(shorter, whole[:, :2], "logits")


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if config.kind == "encoder-decoder"])
def test_padding_of_the_source_has_no_effect(name: str) -> None:
    model = model_of(name)
    padded = model(IDS, **inputs(model))
    alone = model(IDS[1:], SOURCE[1:, :3])
    assert_close(padded[1:], alone, "logits")
    other = SOURCE.masked_fill(SOURCE == 0, 10)
    assert_close(model(IDS, other, source_mask=Mask.from_keep(SOURCE > 0)), padded, "logits")


@pytest.mark.parametrize("name", CONFIGS)
def test_decoding_step_by_step_equals_the_whole_text(name: str) -> None:
    model = model_of(name)
    expected = model(IDS, **inputs(model))
    decoding = model.begin(**inputs(model))
    assert decoding.vocab_size == 11
    assert_close(decoding.step(IDS[:, :2].numpy()), expected[:, 1], "logits")
    decoding.select([1, 0])
    assert_close(decoding.step(IDS[[1, 0], 2:3]), expected[[1, 0], 2], "logits")
    with pytest.raises(ArgumentError, match="cannot drop a part"):
        decoding.crop(1)
    decoding.crop(0)
    assert decoding.length == 0
    assert_close(decoding.step(IDS), expected[:, -1], "logits")
    with pytest.raises(ArgumentError, match="padding"):
        decoding.step(IDS, keep=IDS > 1)


@pytest.mark.parametrize("name", ["luong", "bahdanau", "elman with luong"])
def test_attention_is_recorded_without_changing_the_logits(name: str) -> None:
    model, recorder = model_of(name), Recorder()
    logits = model(IDS, **inputs(model), attend=recorder)
    assert_close(logits, model(IDS, **inputs(model)), "logits")
    (record,) = recorder.trace
    weights = record.weights()
    assert weights.shape == (2, 1, 4, 5)
    assert record.kind == "cross"
    assert_close(weights.sum(-1), torch.ones(2, 1, 4), "weights")
    assert not weights[1, :, :, 3:].any()


def test_beam_search_translates() -> None:
    found = search_many(model_of("bahdanau"), [[4, 5, 2], [6, 2]], bos=1, eos=2, beams=2)
    assert len(found) == 2


@pytest.mark.parametrize("name", ["elman", "bahdanau"])
def test_the_folder_is_read_as_it_was_written(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    model.save(tmp_path / "model")
    found = read_any_model(tmp_path / "model")
    assert isinstance(found, RecurrentModel)
    assert found.config == model.config
    assert_close(found(IDS, **inputs(model)), model(IDS, **inputs(model)), "logits")
    with pytest.raises(FileError, match=r"RecurrentModel\.read"):
        read_model(tmp_path / "model")
    with pytest.raises(FileError, match=r"RecurrentModel\.read"):
        Transformer.read(tmp_path / "model")


def test_configs_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ArgumentError, match="needs an encoder"):
        RecurrentConfig(cell="lstm", attention="luong", **SIZES)
    with pytest.raises(ArgumentError, match="must be even"):
        RecurrentConfig(cell="lstm", n_encoder_layers=1, **SIZES | {"d_state": 7})
    with pytest.raises(ArgumentError, match=r"forget_bias=1\.0 .* found cell='elman'"):
        RecurrentConfig(cell="elman", forget_bias=1.0, **SIZES)
    with pytest.raises(ArgumentError, match="forget_bias=nan must be a finite number"):
        RecurrentConfig(cell="lstm", forget_bias=float("nan"), **SIZES)
    with pytest.raises(ArgumentError, match="cell"):
        RecurrentConfig(cell="gru", **SIZES)  # type: ignore[arg-type]


def test_a_source_is_for_translators_only() -> None:
    with pytest.raises(ArgumentError, match="takes no source"):
        model_of("elman")(IDS, SOURCE)
    with pytest.raises(ArgumentError, match="pass source"):
        model_of("luong")(IDS)
