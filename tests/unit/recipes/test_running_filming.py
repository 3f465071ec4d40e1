"""The film of a run: frames labelled with what the model reads, layers by pattern, texts that cannot be filmed."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.errors import ArgumentError, FileError
from regard.models import Transformer
from regard.recipes.puzzles import puzzle_tokenizer
from regard.recipes.recipe import Recipe, config_of, read_recipe
from regard.recipes.running import Scene, camera, continued, scene_of, translated
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import learn_tokenizer
from regard.trace import read_trace

SMALL = {"model.d_model": "16", "model.n_heads": "2", "model.d_ff": "16"}
LETTERS = "abcdefghijklmnopqrstuvwxyz ."


def scene(recipe: Recipe, tokenizer: Tokenizer) -> Scene:
    assert recipe.film is not None
    return scene_of(recipe, recipe.film, tokenizer)


def shoot(name: str, folder: Path, changes: Mapping[str, str], *steps: int) -> None:
    recipe = read_recipe(name, {**SMALL, **changes})
    assert recipe.puzzle is not None
    tokenizer = puzzle_tokenizer(recipe.puzzle.kind)
    torch.manual_seed(0)
    model = Transformer(config_of(recipe, tokenizer.vocab_size)).eval()
    forward = translated if model.config.kind == "encoder-decoder" else continued
    look = camera(recipe, model, forward, tokenizer, folder)
    with torch.no_grad():
        for step in steps:
            look(step)


# --- frames ----------------------------------------------------------------------------------------------


def test_frames_are_traces_with_words(tmp_path: Path) -> None:
    shoot("copy", tmp_path / "film", {}, 0, 20)
    assert sorted(path.name for path in (tmp_path / "film").iterdir()) == [
        "step-00000000.safetensors",
        "step-00000020.safetensors",
    ]
    trace = read_trace(tmp_path / "film" / "step-00000020.safetensors")
    assert trace.names == ["decoder.layers.0.cross_attention"]  # the recipe's choice
    record = trace[0]
    assert list((record.queries or ((),))[0]) == ["<bos>", *"attention"]
    assert list((record.keys or ((),))[0]) == [*"attention", "<eos>"]
    weights = np.asarray(record.weights())
    assert weights.shape == (1, 2, 10, 10)
    assert np.allclose(weights.sum(-1), 1, atol=1e-4)  # a file keeps 16 bits of each


def test_a_decoder_alone(tmp_path: Path) -> None:
    shoot("induction", tmp_path / "film", {"film.text": "abc"}, 0)
    trace = read_trace(tmp_path / "film" / "step-00000000.safetensors")
    assert trace.names == ["decoder.layers.0.self_attention", "decoder.layers.1.self_attention"]
    assert list((trace[1].queries or ((),))[0]) == [*"abcab"]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (
            "[]",
            ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"],
        ),
        ('["encoder.*"]', ["encoder.layers.0.self_attention"]),
        ('["*cross*", "encoder.layers.?.*"]', ["encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"]),
    ],
)
def test_layers_are_chosen_by_patterns(tmp_path: Path, patterns: str, names: list[str]) -> None:
    shoot("copy", tmp_path / "film", {"film.layers": patterns}, 3)
    assert read_trace(tmp_path / "film" / "step-00000003.safetensors").names == names


def test_a_pattern_that_fits_no_layer(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"names no layer of this model: crosss; there are encoder\.layers\.0"):
        shoot("copy", tmp_path / "film", {"film.layers": "crosss"}, 0)


def test_the_same_look_twice_is_the_same_film(tmp_path: Path) -> None:
    shoot("copy", tmp_path / "film", {}, 1, 2)
    one, two = ((tmp_path / "film" / f"step-0000000{i}.safetensors").read_bytes() for i in (1, 2))
    assert one == two


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "film").touch()
    with pytest.raises(FileError, match="film"):
        shoot("copy", tmp_path / "film", {}, 0)


# --- what is read ----------------------------------------------------------------------------------------


def test_a_translators_two_sides() -> None:
    recipe = read_recipe("en-zh", {"film.text": "a cat.", "film.target": "a dog"})
    shown = scene(recipe, learn_tokenizer([LETTERS], "characters"))
    assert (shown.source, shown.tokens) == ([*"a cat.", "<eos>"], ["<bos>", *"a dog"])


def test_a_language_model_reads_the_text_as_it_is() -> None:
    shown = scene(read_recipe("tang-poet", {"film.text": "明月"}), learn_tokenizer(["床前明月光"], "characters"))
    assert (shown.source, shown.tokens) == (None, ["明", "月"])


def test_what_the_tokenizer_does_not_know() -> None:
    recipe = read_recipe("tang-poet", {"film.text": "明日"})
    assert scene(recipe, learn_tokenizer(["床前明月光"], "characters")).tokens == ["明", "<unk>"]
    with pytest.raises(ArgumentError, match=r"film\.text cannot be filmed: .* '日' .*--set film\.text="):
        scene(recipe, learn_tokenizer(["床前明月光"], "characters", specials=()))
    assert scene(read_recipe("copy", {"film.text": "aÜ"}), puzzle_tokenizer("copy")).source == ["a", "<unk>", "<eos>"]


@pytest.mark.parametrize("text", ["12", "a+b", "+", "1+", "-1+2", "1 + 2", "１+2"])
def test_an_addition_that_is_none(text: str) -> None:
    recipe = read_recipe("addition", {"film.text": f'"{text}"'})
    with pytest.raises(ArgumentError, match="an addition is two numbers with a plus between them"):
        scene(recipe, puzzle_tokenizer("addition"))


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [("copy", "abcdefghijk", 12), ("induction", "abcdefghijklm", 25), ("addition", "1234+1234", 10), ("sort", "", 0)],
)
def test_a_text_longer_than_the_model(name: str, text: str, found: int) -> None:
    recipe = read_recipe(name, {"film.text": f'"{text}"'})
    with pytest.raises(ArgumentError, match=rf"makes {found} tokens, its marks included, and the model reads 1 to"):
        scene(recipe, puzzle_tokenizer(name))  # type: ignore[arg-type]


def test_a_recipe_without_a_film(tmp_path: Path) -> None:
    recipe = read_recipe("copy")
    model = Transformer(config_of(recipe, 30))
    bare = Recipe(**{name: getattr(recipe, name) for name in recipe.__dataclass_fields__ if name != "film"})
    with pytest.raises(ArgumentError, match=r"the recipe copy has no \[film\]"):
        camera(bare, model, translated, puzzle_tokenizer("copy"), tmp_path / "film")
    assert not (tmp_path / "film").exists()
