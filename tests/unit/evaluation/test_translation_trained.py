"""`read_trained`: a model in a run folder, in its model folder, or in any model folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from models import CONFIGS, random_weights, torch_model
from tiny_language import translator_folder

from regard.errors import FileError
from regard.evaluation.translation import read_trained
from regard.text.tokenizer_training import learn_tokenizer


def a_model(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    torch_model(CONFIGS["gpt2"], random_weights(CONFIGS["gpt2"])).save(folder)
    learn_tokenizer(["abc"], "characters").save(folder / "tokenizer.json")
    return folder


def test_folders_that_hold_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    inside = a_model(run / "model")
    assert read_trained(inside).run is None
    (run / "recipe.toml").write_text("")
    assert read_trained(run).run == run
    assert read_trained(inside).run == run
    monkeypatch.chdir(inside)
    assert read_trained(".").run == run
    found = read_trained(run)
    assert found.model.config == CONFIGS["gpt2"]
    assert not found.model.training
    assert found.tokenizer.decode(found.tokenizer.encode("cab")) == "cab"


def test_model_beside_an_unrelated_recipe(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("")
    assert read_trained(a_model(tmp_path / "other")).run is None


def test_target_language_of_a_model(tmp_path: Path) -> None:
    place = translator_folder(tmp_path / "model")
    assert read_trained(place).language == "zh"
    settings = place / "generation_config.json"
    others: tuple[Any, ...] = ({"target_language": 3}, {}, [])
    for other in others:
        settings.write_text(json.dumps(other))
        assert read_trained(place).language is None
    settings.unlink()
    assert read_trained(place).language is None
    (tmp_path / "outside.json").write_text("{}")
    settings.symlink_to(tmp_path / "outside.json")
    with pytest.raises(FileError, match="outside of its folder"):
        read_trained(place)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no folder .*nowhere"):
        read_trained(tmp_path / "nowhere")
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(FileError, match=r"has not finished.*regard train command again"):
        read_trained(tmp_path)
    with pytest.raises(FileError, match="is a file; a model is a folder"):
        read_trained(tmp_path / "recipe.toml")
    (a_model(tmp_path / "model") / "tokenizer.json").unlink()
    with pytest.raises(FileError, match=r"there is no file .*tokenizer\.json"):
        read_trained(tmp_path)
