"""`load(…, weights="int8")`: which models it takes, what it says about them, and what it refuses."""

from pathlib import Path
from typing import Any

import public_folders
import pytest
import tiny_language

from regard import load
from regard.errors import ArgumentError
from regard.language import loading
from regard.models.cpu_decoding import rounded_names


@pytest.mark.filterwarnings("ignore::regard.language.hub_files.UnusedKeysWarning")
def test_a_folder_of_the_hub(tmp_path: Path) -> None:
    folder = public_folders.llama(tmp_path / "llama")
    exact, rounded = load(folder, backend="torch"), load(folder, weights="int8")
    assert rounded_names(rounded.model)
    assert not rounded_names(exact.model)
    assert rounded.backend.name == "torch"
    assert "8" in rounded.backend.reason
    assert rounded.generate("The cat", max_new_tokens=8, temperature=0).startswith("The cat")
    assert len(rounded.see("The cat").trace) == len(exact.see("The cat").trace)


def test_a_folder_of_our_own(tmp_path: Path) -> None:
    folder = tiny_language.translator_folder(tmp_path / "translator", int8=True)
    exact, rounded = load(folder), load(folder, weights="int8")
    assert rounded.translate("I love you.") == exact.translate("I love you.")


def test_the_reason_names_the_missing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.functional.int8_weight.compiled_rows", lambda: None)
    model = load(tiny_language.poet_folder(tmp_path / "poet"), weights="int8")
    assert "g++" in model.backend.reason
    assert model.generate("床前", form="5x4", max_new_tokens=4)


@pytest.mark.parametrize("backend", ["numpy", "transformers"])
def test_other_backends_are_refused(backend: Any, tmp_path: Path) -> None:
    folder = tiny_language.poet_folder(tmp_path / "poet")
    with pytest.raises(ArgumentError, match=backend) as error:
        load(folder, backend=backend, weights="int8")
    assert error.value.key == "int8-backend"


def test_models_of_other_families_are_refused(tmp_path: Path) -> None:
    from transformers import OlmoConfig, OlmoForCausalLM

    config = OlmoConfig(**public_folders.SMALL, vocab_size=300)
    folder = public_folders.saved(tmp_path / "olmo", OlmoForCausalLM(config), public_folders.byte_tokenizer())
    with pytest.raises(ArgumentError, match="transformers"):
        load(folder, weights="int8")


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="float32, int8"):
        load(tiny_language.poet_folder(tmp_path / "poet"), weights="int4")  # type: ignore[arg-type]
    assert loading.Asked() == (None, False)
