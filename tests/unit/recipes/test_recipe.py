"""Recipes: writing and reading give the same recipe; errors give the place and a fix."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrowing import of_type

from regard.config import AttentionStyle, Learned, Norm, Rotary, TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError, RegardError, UnknownNameError
from regard.files.json_and_toml import parse_value
from regard.recipes import Recipe, config_of, differences, read_recipe, recipe_names, to_toml

NAMES = list(recipe_names())
COPY = read_recipe("copy")
GERMAN = read_recipe("multi30k-en-de")


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def count_weights(config: TransformerConfig) -> int:
    sizes = (rows * (shape[0] if shape else 1) for rows, *shape in weight_shapes(config).values())
    return sum(sizes)


# --- the catalogue ---------------------------------------------------------------------------------------


def test_all_bundled_recipes_exist() -> None:
    puzzles = {"copy", "reverse", "sort", "addition", "induction"}
    assert set(NAMES) == puzzles | {
        "multi30k-en-de", "multi30k-en-fr", "en-zh", "tang-poet", "shakespeare-char", "gpt2-124m"
    }  # fmt: skip
    assert all(words.en and words.zh for words in recipe_names().values())


@pytest.mark.parametrize("name", NAMES)
def test_toml_round_trip_of_every_recipe(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    again = read_recipe(written(tmp_path, to_toml(recipe)))
    assert again == recipe
    assert to_toml(again) == to_toml(recipe)
    assert differences(recipe, again) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_the_catalogue_has_a_comment(name: str) -> None:
    source = (Path(__file__).parents[3] / "src/regard/recipes/catalogue" / f"{name}.toml").read_text(encoding="utf-8")
    lines = source.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        key = line.partition(" =")[0]
        if " = " in line and not line.startswith(("#", "about.")):
            assert "  # " in line or before.startswith(f"# {key}: "), f"{name}: {key} has no comment"
    assert all(len(line) <= 120 for line in lines)


def transformer_config(recipe: Recipe, vocab_size: int) -> TransformerConfig:
    return of_type(TransformerConfig, config_of(recipe, vocab_size))


def test_published_sizes() -> None:
    tiny = transformer_config(GERMAN, vocab_size=GERMAN.data.vocab_size or 0)
    assert 2_500_000 < count_weights(tiny) < 3_000_000
    letters = transformer_config(read_recipe("shakespeare-char"), vocab_size=65)
    assert count_weights(letters) - 256 * 384 == 10_646_784  # nanoGPT's 10.65 M, without positions
    gpt2 = transformer_config(read_recipe("gpt2-124m"), vocab_size=50_257)
    assert (gpt2.vocab_size, gpt2.max_len, gpt2.n_decoder_layers) == (50_304, 1024, 12)


# --- the model -------------------------------------------------------------------------------------------


def test_vocab_size_and_max_len_have_defaults() -> None:
    config = config_of(COPY, vocab_size=30)
    assert (config.vocab_size, config.max_len) == (30, COPY.data.max_len)
    assert config_of(read_recipe("copy", {"model.max_len": "none"}), vocab_size=30).max_len is None


def test_single_fields_of_a_preset_are_changed() -> None:
    changes = {"model.norm.place": "pre", "model.norm.final": "true", "model.positions": "rotary"}
    config = transformer_config(read_recipe("copy", changes | {"model.attention.window": '[4, "none"]'}), vocab_size=30)
    assert config.norm == Norm(place="pre", final=True)
    assert config.positions == Rotary()
    assert config.attention == AttentionStyle(window=(4, None))
    assert config.embeddings.scaled  # as in the preset
    assert transformer_config(read_recipe("copy", {"model.positions": "none"}), vocab_size=30).positions is None
    based = transformer_config(read_recipe("copy", {"model.positions.base": "100"}), vocab_size=30)
    assert based.positions == replace(TransformerConfig.paper_2017().positions, base=100.0)  # type: ignore[type-var]
    assert isinstance(transformer_config(read_recipe("reverse"), vocab_size=30).positions, Learned)


def test_vocab_size_may_be_larger_but_not_smaller() -> None:
    recipe = read_recipe("copy", {"model.vocab_size": "64"})
    assert config_of(recipe, vocab_size=30).vocab_size == 64
    with pytest.raises(ArgumentError, match=r"model.vocab_size=64 is less than the tokenizer's 65"):
        config_of(recipe, vocab_size=65)


# --- changes ---------------------------------------------------------------------------------------------


def test_changes_are_toml_values() -> None:
    changes = {"training.steps": "7", "training.betas": "[0.8, 0.9]", "training.clip": "none", "data.train": "a.tsv"}
    changed = read_recipe("multi30k-en-de", changes)
    assert (changed.training.steps, changed.training.betas, changed.training.clip) == (7, (0.8, 0.9), None)
    assert changed.data.train == ("a.tsv",)
    assert differences(GERMAN, changed) == ["data.train", "training.steps", "training.betas", "training.clip"]
    assert read_recipe("multi30k-en-de") == GERMAN
    assert read_recipe("copy", {"film": "none"}).film is None


def test_none_is_written_if_it_is_not_the_default(tmp_path: Path) -> None:
    recipe = read_recipe("copy", {"training.clip": "none"})
    assert 'clip = "none"' in to_toml(recipe)
    assert read_recipe(written(tmp_path, to_toml(recipe))) == recipe


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("training.stepz", "1", r"\[training\] has no key 'stepz'; the nearest is 'steps'"),
        ("model.hidden_size", "1", r"\[model\] has no key 'hidden_size'; the nearest is 'd_model'"),
        ("model.norm.placing", "pre", r"\[model.norm\] has no key 'placing'; the nearest is 'place'"),
        ("trainin", "1", r"\[recipe\] has no key 'trainin'; the nearest is 'training'"),
        ("training.steps", "many", r"training.steps must be of type: integer; found 'many'"),
        ("training.steps", "1.5", r"training.steps must be of type: integer; found 1.5"),
        ("training.steps", "true", r"training.steps must be of type: integer; found boolean"),
        ("training.lr", "nan", r"training.lr must be of type: float; found nan"),
        ("training.lr", '"1"', r"training.lr must be of type: float; found '1'"),
        ("training.betas", "[0.9]", r"training.betas must be a list of 2 values; found 1"),
        ("training.betas", '[0.9, "x"]', r"training.betas\[1\] must be of type: float; found 'x'"),
        ("training.clip", "soft", r"training.clip must be of type: float, \"none\"; found 'soft'"),
        ("training", "3", r"training must be of type: table; found integer"),
        ("training.steps.most", "3", r"training.steps is a single value, not a table"),
        ("data.train", "[1]", r"data.train\[0\] must be of type: string; found integer"),
        ("data.max_len", "1", r"data.max_len must be a whole number of at least 2; found 1"),
        ("data.max_len", "9", r"has 11 tokens, more than data.max_len=9"),
        ("data.valid_share", "1.0", r"data.valid_share must be a fraction above 0 and below 1; found 1.0"),
        ("data.batch_size", "0", r"data.batch_size must be a whole number of at least 1; found 0"),
        ("data.tokenizer", "syllables", r"data.tokenizer='syllables'; choose one of: characters, words"),
        ("data.pattern", "{split}.{langue}", r"data.pattern must contain \{split\} and \{lang\}"),
        ("puzzle.longest", "27", r"puzzle.longest is at most 26"),
        ("puzzle.kind", "chess", r"puzzle.kind='chess'; choose one of: copy, reverse"),
        ("model.preset", "gpt5", r"model.preset='gpt5'; choose one of: paper_2017"),
        ("model.size", "huge", r"model.size='huge'; choose one of: base, big"),
        ("model.preset", "gpt2", r"needs a model of kind encoder-decoder"),
        ("model.n_layers", "9999", r"model.n_encoder_layers is larger than 1024"),
        ("model.n_heads", "5", r"64"),
        ("model.positions", "rotry", r"model.positions.is='rotry'; choose one of: sinusoidal"),
        ("model.max_len", "5", r"model.max_len=5 is less than data.max_len=11"),
        ("model.dropout", "1", r"1"),
        ("film.every", "0", r"film.every must be a whole number of at least 1"),
        ("evaluation.beams", "0", r"evaluation.beams must be a whole number of at least 1"),
        ("task", "language", r"task is 'language' also needs: data.train, data.valid"),
    ],
)
def test_invalid_change_raises_with_its_place(place: str, value: str, message: str) -> None:
    with pytest.raises(RegardError, match=message) as caught:
        read_recipe("copy", {place: value})
    assert not isinstance(caught.value, FileError)  # the error is in the command line, not in a file
    assert caught.value.text("zh") != caught.value.text("en")


def test_puzzle_needs_a_synthetic_task() -> None:
    puzzle = {"puzzle.kind": "copy", "puzzle.shortest": "2", "puzzle.longest": "3"}
    with pytest.raises(ArgumentError, match="only for the task 'synthetic'"):
        read_recipe("multi30k-en-de", puzzle)


@given(st.text(max_size=12))
def test_any_value_is_accepted_or_raises_a_regard_error(text: str) -> None:
    parse_value(text)
    for place in ("training.lr", "model.positions", "film", "data.columns"):
        with suppress(RegardError):
            read_recipe("copy", {place: text})


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_toml_round_trip_of_any_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    film = COPY.film
    assert film is not None
    recipe = replace(COPY, film=replace(film, text=text))
    assert read_recipe(written(tmp_path_factory.mktemp("text"), to_toml(recipe))).film == recipe.film


@given(st.floats(1e-300, 1e300), st.integers(1, 2**53))
def test_toml_round_trip_of_any_number(tmp_path_factory: pytest.TempPathFactory, number: float, whole: int) -> None:
    recipe = replace(COPY, evaluation=replace(COPY.evaluation, length_penalty=number, beams=whole))
    again = read_recipe(written(tmp_path_factory.mktemp("numbers"), to_toml(recipe)))
    assert again.evaluation == recipe.evaluation


# --- files -----------------------------------------------------------------------------------------------


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no recipe 'multi30k-en-dee'; the nearest is 'multi30k-en-de'"):
        read_recipe("multi30k-en-dee")
    with pytest.raises(UnknownNameError, match="no recipe 'nope'; known are: ") as caught:
        read_recipe("nope")
    assert "nearest" not in str(caught.value), "no name is similar"
    with pytest.raises(UnknownNameError):
        read_recipe("../catalogue/copy")


def test_name_defaults_to_the_file_name(tmp_path: Path) -> None:
    text = to_toml(COPY)
    assert read_recipe(written(tmp_path, text.replace('name = "copy"\n', ""))).name == "mine"
    assert read_recipe(written(tmp_path, text)).name == "copy"
    assert isinstance(read_recipe(str(tmp_path / "mine.toml")), Recipe)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task = ", "could not be read as TOML"),
        ("task = 'language'\ntask = 'language'", "could not be read as TOML"),
        ("", r"\[recipe\] lacks: task, data, model, training"),
        (to_toml(COPY).replace("steps = 800", ""), r"\[training\] lacks: steps"),
        (to_toml(COPY).replace("[film]", "[movie]"), r"has no key 'movie'"),
    ],
)
def test_invalid_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        read_recipe(written(tmp_path, text))
    assert "mine.toml" in str(caught.value)
    assert caught.value.exit_code == 3


def test_unreadable_files_raise(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file"):
        read_recipe(tmp_path / "absent.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        read_recipe(tmp_path / "folder.toml")
    (tmp_path / "latin.toml").write_bytes(b"task = '\xff'")
    with pytest.raises(FileError, match="could not be read"):
        read_recipe(tmp_path / "latin.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(FileError, match="has 1,048,577 B, but the limit is 1,048,576 B"):
        read_recipe(tmp_path / "large.toml")
