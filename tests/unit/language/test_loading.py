"""load: a folder is loaded only if its files match, with NumPy alone or with torch."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf_files import write_model
from model_pairs import CASES, MODELS, randomise
from models import CONFIGS, random_weights
from public_folders import llama
from tiny_language import poet_folder, translator_folder
from transformers import AutoModelForCausalLM, AutoTokenizer

import regard
from regard import load
from regard.checkpoints import read_model, save_model
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError
from regard.language import BUNDLED, LanguageModel, loading
from regard.language.loading import convert
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
    assert name in load_error(folder, "model-no-config" if name == "config.json" else "file-absent")


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


def test_loading_with_torch_does_not_import_its_compiler() -> None:
    code = "import sys, regard; regard.load('poet', backend='torch').see('明月'); print('torch._dynamo' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_a_model_is_named_by_a_text_or_a_path() -> None:
    with pytest.raises(ArgumentError, match="found NoneType; the bundled models are: translator, poet"):
        regard.load(None)  # type: ignore[arg-type]


def test_the_folder_of_a_run_loads_its_model(folder: Path) -> None:
    run = folder.parent
    (run / "recipe.toml").write_text("")
    found = regard.load(run)
    assert (found.name, found.folder) == (run.name, folder)
    assert regard.load(folder).name == "model"
    folder.rename(run / "elsewhere")
    assert "has not finished" in load_error(run, "evaluate-unfinished")


def test_a_file_instead_of_a_folder_is_refused(folder: Path) -> None:
    load_error(folder / "config.json", "model-file")


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


def same_weights(one: Path, other: Path) -> None:
    first, second = read_model(one), read_model(other)
    widths = first.config.head_width, second.config.head_width
    assert replace(first.config, d_head=widths[0]) == replace(second.config, d_head=widths[1])
    assert first.tensors.dtypes == second.tensors.dtypes
    for name, weight in first.tensors.items():
        np.testing.assert_array_equal(weight, second.tensors[name])


def test_a_folder_of_the_hub_there_and_back(tmp_path: Path) -> None:
    source = llama(tmp_path / "source")
    model: Any = AutoModelForCausalLM.from_pretrained(source)
    model.to(torch.bfloat16).save_pretrained(source, max_shard_size="5KB")
    (source / "model.safetensors").unlink(missing_ok=True)
    assert len(list(source.glob("*.safetensors"))) > 1
    done = convert(source, tmp_path / "new")
    assert done.family == "llama"
    assert "tokenizer.json" in done.files
    same_weights(source, tmp_path / "new")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "new", dtype=torch.bfloat16)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name
    assert load(tmp_path / "new").generate("The cat") == load(source).generate("The cat")


@pytest.mark.parametrize("name", ["llama all heads, biases, tied", "gpt2", "qwen3", "gpt_neox"])
def test_a_gguf_file(name: str, tmp_path: Path) -> None:
    settings = CASES[name]()
    theirs = MODELS[settings.model_type](settings).eval()
    randomise(theirs)
    tokens: dict[str, Any] = {"model": "gpt2", "pre": "qwen2", "merges": ["a b"], "bos_token_id": 3, "eos_token_id": 4}
    tokens |= {"tokens": ["a", "b", "ab", "<s>", "</s>"], "token_type": [1, 1, 1, 3, 3]}
    metadata = {f"tokenizer.ggml.{key}": value for key, value in tokens.items()}
    write_model(tmp_path / "model.gguf", theirs, metadata=metadata | {"tokenizer.chat_template": "{{ messages }}"})
    convert(tmp_path / "model.gguf", tmp_path / "new")
    same_weights(tmp_path / "model.gguf", tmp_path / "new")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "new").eval()
    ids = torch.arange(5)[None]
    with torch.no_grad():
        assert (again(ids).logits - theirs(ids).logits).abs().max() <= 3e-5
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "new")
    assert tokenizer("abba").input_ids == [2, 1, 0] == load(tmp_path / "new").tokenizer.encode("abba")
    assert tokenizer.chat_template == "{{ messages }}"
    assert load(tmp_path / "new").special.ends == (4,)


def test_a_folder_of_our_own(tmp_path: Path) -> None:
    config = TransformerConfig.llama(vocab_size=20, d_model=8, n_heads=2, n_kv_heads=1, d_ff=12, n_layers=2, max_len=32)
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in weight_shapes(config).items()}
    save_model(tmp_path / "own", config, weights)
    done = convert(tmp_path / "own", tmp_path / "new")
    assert done.family == "llama"
    same_weights(tmp_path / "own", tmp_path / "new")
    assert convert(tmp_path / "own", tmp_path / "other", family="mistral").family == "mistral"
    assert json.loads((tmp_path / "other" / "config.json").read_text())["model_type"] == "mistral"
    with pytest.raises(ArgumentError, match="bert"):
        convert(tmp_path / "own", tmp_path / "third", family="bert")
    assert not (tmp_path / "third").exists()


def test_what_is_refused(tmp_path: Path) -> None:
    source = llama(tmp_path / "source")
    with pytest.raises(ArgumentError, match="empty"):
        convert(source, source)
    with pytest.raises(FileError, match="nowhere"):
        convert(tmp_path / "nowhere", tmp_path / "new")
    odd = TransformerConfig.gpt2(vocab_size=9, d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=5, activation="swiglu")
    save_model(tmp_path / "odd", odd, {name: np.ones(shape) for name, shape in weight_shapes(odd).items()})
    with pytest.raises(FileError, match="gpt2"):
        convert(tmp_path / "odd", tmp_path / "new")
    assert not (tmp_path / "new").exists()
