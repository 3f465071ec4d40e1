"""load: a folder is loaded only if its files match, with NumPy alone or with torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from models import CONFIGS, random_weights
from tiny_language import poet_folder, translator_folder

import regard
from regard.checkpoints import save_model
from regard.errors import ArgumentError, FileError
from regard.language import BUNDLED, LanguageModel, loading
from regard.models import Transformer as TorchTransformer
from regard.reference import Transformer
from regard.text import learn_tokenizer


def load_error(folder: Path, key: str) -> str:
    with pytest.raises(FileError) as caught:
        regard.load(folder)
    assert caught.value.key == key, str(caught.value)
    return str(caught.value)


def test_a_folder_is_a_model_with_its_tokenizer_and_settings(folder: Path) -> None:
    model = regard.load(str(folder))
    assert isinstance(model, LanguageModel)
    assert (model.name, model.folder, model.config.kind) == ("model", folder, "encoder-decoder")
    assert isinstance(model.model, Transformer)
    assert (model.settings.beams, model.settings.target_language) == (3, "zh")
    assert model.longest == 64  # its positions; the settings allow 256
    assert repr(model) == f"LanguageModel('model', encoder-decoder, translation, '{folder}')"


def test_settings_are_optional(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    assert regard.load(folder).settings.beams == 5


def test_the_backend_can_be_torch(folder: Path) -> None:
    assert isinstance(regard.load(folder, backend="torch").model, TorchTransformer)
    with pytest.raises(ArgumentError, match="numpy, torch"):
        regard.load(folder, backend="jax")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in load_error(folder, "file-absent")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "generation_config.json"])
def test_links_out_of_the_folder_are_not_followed(folder: Path, name: str) -> None:
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)
    assert name in load_error(folder, "model-outside")


def test_a_broken_link_to_settings_is_refused(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    (folder / "generation_config.json").symlink_to("nowhere")
    load_error(folder, "file-absent")


def test_a_tokenizer_of_another_size_is_refused(folder: Path) -> None:
    tokenizer = learn_tokenizer(["other letters"], "characters")
    tokenizer.save(folder / "tokenizer.json")
    assert f"has {tokenizer.vocab_size} tokens and the model" in load_error(folder, "language-vocabulary")


def test_a_translator_needs_bos_and_eos(folder: Path) -> None:
    path = folder / "tokenizer.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    for token in tree["added_tokens"]:
        token["special"] = token["content"] != "<bos>"
    path.write_text(json.dumps(tree), encoding="utf-8")
    load_error(folder, "language-marks")


def test_an_encoder_alone_is_refused(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIGS["bert"], random_weights(CONFIGS["bert"]))
    assert "encoder" in load_error(tmp_path, "language-kind")


@pytest.mark.parametrize("name", ["translater", "", "runs/none/model"])
def test_a_missing_folder_lists_the_bundled_models(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=f"no folder '{name}'; the bundled models are: translator, poet"):
        regard.load(name)


def test_the_folder_of_a_run_loads_its_model(folder: Path) -> None:
    run = folder.parent
    (run / "recipe.toml").write_text("")
    found = regard.load(run)
    assert (found.name, found.folder) == (run.name, folder)
    assert regard.load(folder).name == "model"
    folder.rename(run / "elsewhere")
    assert "has not finished" in load_error(run, "evaluate-unfinished")


def test_a_file_instead_of_a_folder_is_refused(folder: Path) -> None:
    load_error(folder / "config.json", "model-not-folder")


def test_names_of_bundled_models_take_precedence(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "ASSETS", tmp_path / "assets")
    with pytest.raises(FileError, match="lacks its model 'poet'"):
        regard.load("poet")
    (tmp_path / "assets").mkdir()
    poet_folder(tmp_path / "assets" / "poet")
    translator_folder(tmp_path / "poet")
    monkeypatch.chdir(tmp_path)
    assert set(BUNDLED) == {"translator", "poet"}
    assert regard.load("poet").settings.task == "text"
    assert regard.load("./poet").settings.task == "translation"


def test_torch_is_not_imported(folder: Path) -> None:
    code = f"""
import sys, regard
model = regard.load({str(folder)!r})
model.translate("I love you."), model.see("I love you.")
assert "torch" not in sys.modules
import regard.language.handmade
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_handmade_does_not_import_tokenizers() -> None:
    code = "import sys, regard.language.handmade; assert 'tokenizers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
