"""Recurrent models in recipes: the same file form, the same run folder, the same commands."""

from pathlib import Path

import pytest

from regard.config import RecurrentConfig
from regard.errors import ArgumentError, FileError
from regard.evaluation.translation import read_trained
from regard.models import RecurrentModel
from regard.recipes.recipe import Recipe, config_of, read_recipe, to_toml
from regard.recipes.running import train
from regard.trace import read_trace

RECIPE = """
task = "synthetic"

[puzzle]
kind = "{puzzle}"
shortest = 2
longest = 4
valid_examples = 8

[data]
max_len = 8
batch_size = 4

[model]
kind = "{cell}"
d_model = 8
d_state = 8
{more}

[training]
steps = 3
lr = 0.003
save_every = 2

[film]
text = "abba"
every = 2
"""


def recipe_of(tmp_path: Path, puzzle: str = "copy", cell: str = "lstm", more: str = "n_encoder_layers = 1") -> Recipe:
    path = tmp_path / "recurrent.toml"
    path.write_text(RECIPE.format(puzzle=puzzle, cell=cell, more=more), encoding="utf-8")
    return read_recipe(path)


def test_kind_selects_a_recurrent_model(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, more='n_encoder_layers = 1\nattention = "bahdanau"\nforget_bias = 1.0')
    config = config_of(recipe, vocab_size=30)
    assert isinstance(config, RecurrentConfig)
    assert (config.cell, config.attention, config.vocab_size, config.max_len) == ("lstm", "bahdanau", 30, 8)
    assert config.forget_bias == 1
    again = tmp_path / "again.toml"
    again.write_text(to_toml(recipe), encoding="utf-8")
    assert config_of(read_recipe(again), vocab_size=30) == config


@pytest.mark.parametrize("attention", ["bahdanau", "luong", "none"])
def test_a_recurrent_translator_is_trained_and_read(attention: str, tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, more=f'n_encoder_layers = 1\nattention = "{attention}"')
    out = tmp_path / "run"
    result = train(recipe, data=None, out=out, film=attention != "none", device="cpu")
    assert result.reason == "steps"
    assert isinstance(read_trained(out).model, RecurrentModel)
    if attention != "none":
        (record,) = read_trace(out / "film" / "step-00000002.safetensors")
        assert record.name == "attention"


def test_a_run_may_start_from_a_model_with_another_forget_bias(tmp_path: Path) -> None:
    train(recipe_of(tmp_path), data=None, out=tmp_path / "first", device="cpu")
    second = recipe_of(tmp_path, more="n_encoder_layers = 1\nforget_bias = 1.0")
    assert train(second, data=None, out=tmp_path / "second", start=tmp_path / "first", device="cpu").reason == "steps"


def test_a_recurrent_language_model_is_trained(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, puzzle="induction", cell="elman", more="")
    result = train(recipe, data=None, out=tmp_path / "run", device="cpu")
    assert result.figures["parameters"] > 0


def test_wrong_kinds_and_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises((ArgumentError, FileError), match=r"model\.kind"):
        recipe_of(tmp_path, cell="gru")
    with pytest.raises((ArgumentError, FileError), match="d_stat"):
        recipe_of(tmp_path, more="d_stat = 3")
    with pytest.raises((ArgumentError, FileError), match="encoder-decoder"):
        recipe_of(tmp_path, more="")
