"""The film of a run: frames labelled with tokens, layers by pattern, and invalid film texts."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from narrowing import of_type

from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError
from regard.evaluation.scores import translation_logits
from regard.models import Transformer
from regard.recipes.puzzles import puzzle_tokenizer
from regard.recipes.recipe import Recipe, config_of, read_recipe
from regard.recipes.running import FilmInput, decoder_logits, film_input_of, film_saver
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import learn_tokenizer
from regard.trace import read_trace

SMALL = {"model.d_model": "16", "model.n_heads": "2", "model.d_ff": "16"}
LETTERS = "abcdefghijklmnopqrstuvwxyz ."


def film_input(recipe: Recipe, tokenizer: Tokenizer) -> FilmInput:
    assert recipe.film is not None
    return film_input_of(recipe, recipe.film, tokenizer)


def film(name: str, folder: Path, changes: Mapping[str, str], *steps: int) -> None:
    recipe = read_recipe(name, {**SMALL, **changes})
    assert recipe.puzzle is not None
    tokenizer = puzzle_tokenizer(recipe.puzzle.kind)
    torch.manual_seed(0)
    model = Transformer(of_type(TransformerConfig, config_of(recipe, tokenizer.vocab_size))).eval()
    forward = translation_logits if model.config.kind == "encoder-decoder" else decoder_logits
    save_frame = film_saver(recipe, model, forward, tokenizer, folder)
    with torch.no_grad():
        for step in steps:
            save_frame(step)


# --- frames ----------------------------------------------------------------------------------------------


def test_frames_are_labelled_traces(tmp_path: Path) -> None:
    film("copy", tmp_path / "film", {}, 0, 20)
    assert sorted(path.name for path in (tmp_path / "film").iterdir()) == [
        "step-00000000.safetensors",
        "step-00000020.safetensors",
    ]
    trace = read_trace(tmp_path / "film" / "step-00000020.safetensors")
    assert trace.names == ["decoder.layers.0.cross_attention"]  # the layers of the recipe
    record = trace[0]
    assert list((record.query_tokens or ((),))[0]) == ["<bos>", *"attention"]
    assert list((record.key_tokens or ((),))[0]) == [*"attention", "<eos>"]
    weights = np.asarray(record.weights())
    assert weights.shape == (1, 2, 10, 10)
    assert np.allclose(weights.sum(-1), 1, atol=1e-4)  # a file stores 16 bits per weight


def test_decoder_only_model(tmp_path: Path) -> None:
    film("induction", tmp_path / "film", {"film.text": "abc"}, 0)
    trace = read_trace(tmp_path / "film" / "step-00000000.safetensors")
    assert trace.names == ["decoder.layers.0.self_attention", "decoder.layers.1.self_attention"]
    assert list((trace[1].query_tokens or ((),))[0]) == [*"abcab"]


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
    film("copy", tmp_path / "film", {"film.layers": patterns}, 3)
    assert read_trace(tmp_path / "film" / "step-00000003.safetensors").names == names


def test_pattern_without_a_match_raises(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"matches no layer of this model: crosss; available: encoder\.layers\.0"):
        film("copy", tmp_path / "film", {"film.layers": "crosss"}, 0)


def test_same_model_gives_the_same_frame(tmp_path: Path) -> None:
    film("copy", tmp_path / "film", {}, 1, 2)
    one, two = ((tmp_path / "film" / f"step-0000000{i}.safetensors").read_bytes() for i in (1, 2))
    assert one == two


def test_unwritable_folder_raises(tmp_path: Path) -> None:
    (tmp_path / "film").touch()
    with pytest.raises(FileError, match="film"):
        film("copy", tmp_path / "film", {}, 0)


# --- film input ------------------------------------------------------------------------------------------


def test_translator_has_source_and_target() -> None:
    recipe = read_recipe("en-zh", {"film.text": "a cat.", "film.target": "a dog"})
    shown = film_input(recipe, learn_tokenizer([LETTERS], "characters"))
    assert (shown.source, shown.tokens) == ([*"a cat.", "<eos>"], ["<bos>", *"a dog"])


def test_language_model_reads_the_plain_text() -> None:
    shown = film_input(read_recipe("tang-poet", {"film.text": "明月"}), learn_tokenizer(["床前明月光"], "characters"))
    assert (shown.source, shown.tokens) == (None, ["明", "月"])


def test_unknown_characters() -> None:
    recipe = read_recipe("tang-poet", {"film.text": "明日"})
    assert film_input(recipe, learn_tokenizer(["床前明月光"], "characters")).tokens == ["明", "<unk>"]
    with pytest.raises(ArgumentError, match=r"film\.text cannot be filmed: .* '日' .*--set film\.text="):
        film_input(recipe, learn_tokenizer(["床前明月光"], "characters", specials=()))
    assert film_input(read_recipe("copy", {"film.text": "aÜ"}), puzzle_tokenizer("copy")).source == [
        "a",
        "<unk>",
        "<eos>",
    ]


@pytest.mark.parametrize("text", ["12", "a+b", "+", "1+", "-1+2", "1 + 2", "１+2"])
def test_invalid_addition_raises(text: str) -> None:
    recipe = read_recipe("addition", {"film.text": f'"{text}"'})
    with pytest.raises(ArgumentError, match="an addition is two numbers with a plus between them"):
        film_input(recipe, puzzle_tokenizer("addition"))


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [("copy", "abcdefghijk", 12), ("induction", "abcdefghijklm", 25), ("addition", "1234+1234", 10), ("sort", "", 0)],
)
def test_too_long_text_raises(name: str, text: str, found: int) -> None:
    recipe = read_recipe(name, {"film.text": f'"{text}"'})
    with pytest.raises(ArgumentError, match=rf"makes {found} tokens, its marks included, and the model reads 1 to"):
        film_input(recipe, puzzle_tokenizer(name))  # type: ignore[arg-type]


def test_recipe_without_film_raises(tmp_path: Path) -> None:
    recipe = read_recipe("copy")
    model = Transformer(of_type(TransformerConfig, config_of(recipe, 30)))
    bare = Recipe(**{name: getattr(recipe, name) for name in recipe.__dataclass_fields__ if name != "film"})
    with pytest.raises(ArgumentError, match=r"the recipe copy has no \[film\]"):
        film_saver(bare, model, translation_logits, puzzle_tokenizer("copy"), tmp_path / "film")
    assert not (tmp_path / "film").exists()
