"""Our models in Hugging Face's layout: its library computes the same logits, and reading them gives the same bits."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from model_pairs import CASES, MODELS, batch, pair
from models import CONFIGS, random_weights
from safetensors import safe_open
from tolerances import assert_close
from transformers import AutoModel, AutoModelForCausalLM

from hostile_hub import write_valid
from regard.checkpoints import read_model, save_model
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.hub_folder import ARCHITECTURES, write_hub_model
from regard.config import AttentionStyle, Learned, Norm, Output, TransformerConfig
from regard.errors import ArgumentError, FileError, RegardError


@pytest.mark.parametrize("name", CASES)
def test_hugging_face_computes_the_same(name: str, tmp_path: Path) -> None:
    theirs, _, config, weights = pair(name)
    family = theirs.config.model_type
    write_hub_model(tmp_path, family, config, weights, more={"pad_token_id": theirs.config.pad_token_id})
    kind: Any = MODELS[family]
    read, problems = kind.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True, local_files_only=True
    )
    assert not problems["unexpected_keys"]
    assert not problems["mismatched_keys"]
    given = batch(config, padded=True)
    with torch.no_grad():
        expected, found = (model(**given.to_theirs()).logits for model in (theirs, read.eval()))
    assert_close(found[given.keep], expected[given.keep], "logits")


@pytest.mark.parametrize("name", CASES)
def test_there_and_back_is_bit_equal(name: str, tmp_path: Path) -> None:
    theirs, _, config, weights = pair(name)
    write_hub_model(tmp_path / "one", theirs.config.model_type, config, weights)
    stored = read_model(tmp_path / "one")
    assert stored.unused == ()
    assert stored.tensors.keys() == weights.keys()
    for weight, array in stored.tensors.items():
        np.testing.assert_array_equal(array, weights[weight].numpy(), strict=True)
    write_hub_model(tmp_path / "two", theirs.config.model_type, stored.config, stored.tensors)
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_every_family_is_written() -> None:
    assert {family for family, table in FAMILIES.items() if table.settings is not None} == FAMILIES.keys()
    assert {family: MODELS[family].__name__ for family in FAMILIES} == ARCHITECTURES


def test_bfloat16_stays_bfloat16(tmp_path: Path) -> None:
    _, _, config, weights = pair("phi3")
    rounded = {name: weight.bfloat16() for name, weight in weights.items()}
    write_hub_model(tmp_path / "one", "phi3", config, rounded)
    stored = read_model(tmp_path / "one")
    assert set(stored.tensors.dtypes.values()) == {"bfloat16"}
    write_hub_model(tmp_path / "two", "phi3", config, stored.tensors, dtypes=stored.tensors.dtypes)
    one, two = ((tmp_path / folder / "model.safetensors").read_bytes() for folder in ("one", "two"))
    assert one == two


def test_an_encoder_without_a_head_loads_as_a_base_model(tmp_path: Path) -> None:
    _, ours, config, weights = pair("bert")
    bare = replace(config, output=None, biases=replace(config.biases, output=False))
    body = {name: weight for name, weight in weights.items() if not name.startswith("output.")}
    write_hub_model(tmp_path, "bert", bare, body)
    theirs = AutoModel.from_pretrained(tmp_path, attn_implementation="eager", local_files_only=True).eval()
    given = batch(bare, padded=False)
    with torch.no_grad():
        expected = theirs(**given.to_theirs()).last_hidden_state
        assert_close(ours.encode(given.ids, segments=given.segments), expected, "logits")


def test_a_model_of_ours_opens_there(tmp_path: Path) -> None:
    """A model that was trained here, with what the tokenizer says beside it."""
    config = TransformerConfig.gpt2(vocab_size=31, d_model=16, n_heads=2, d_ff=40, n_layers=2, max_len=29, dropout=0.1)
    write_hub_model(tmp_path, "gpt2", config, random_weights(config), more={"eos_token_id": 7})
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path, local_files_only=True)
    assert (theirs.config.eos_token_id, type(theirs).__name__) == (7, "GPT2LMHeadModel")
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.get_tensor("transformer.h.1.attn.c_attn.weight").shape == (16, 48)


REFUSED: dict[str, tuple[str, TransformerConfig, str]] = {
    "an unknown family": ("mamba", CONFIGS["gpt2"], "no family='mamba'; choose one of: bart, bert"),
    "another kind of model": ("gpt2", CONFIGS["paper_2017"], "cannot be written as gpt2"),
    "another norm": (
        "gpt2",
        replace(CONFIGS["gpt2"], norm=Norm(kind="rms", place="pre", final=True)),
        "cannot be written as gpt2: its norm is .*kind='rms'.* would be .*kind='layer'",
    ),
    "other positions": (
        "llama",
        replace(CONFIGS["llama"], positions=Learned(), max_len=40),
        "its positions is Learned.* would be Rotary",
    ),
    "no length": ("llama", replace(CONFIGS["llama"], max_len=None), "its max_len is None"),
    "two windows": (
        "mistral",
        replace(CONFIGS["llama"], attention=AttentionStyle(window=(3, 4)), max_len=64),
        "its attention is",
    ),
    "a bounded output": ("llama", replace(CONFIGS["llama"], output=Output(softcap=3.0)), "its output is"),
    "an activation that it does not have": ("gpt2", replace(CONFIGS["gpt2"], activation="swiglu"), "activation"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_the_family_does_not_describe_is_refused(name: str, tmp_path: Path) -> None:
    family, config, message = REFUSED[name]
    with pytest.raises(ArgumentError, match=message):
        write_hub_model(tmp_path / "model", family, config, random_weights(config))
    assert not (tmp_path / "model").exists()


def test_errors_of_files_and_weights(tmp_path: Path) -> None:
    config = CONFIGS["gpt2"]
    weights = random_weights(config)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file"):
        write_hub_model(tmp_path / "file", "gpt2", config, weights)
    with pytest.raises(FileError, match="absent"):
        write_hub_model(tmp_path / "absent" / "model", "gpt2", config, weights)
    del weights["decoder.norm.weight"]
    with pytest.raises(RegardError, match=r"decoder\.norm\.weight"):
        write_hub_model(tmp_path / "model", "gpt2", config, weights)
    assert not (tmp_path / "model").exists()


def test_from_our_format_to_theirs(tmp_path: Path) -> None:
    write_valid(tmp_path)
    stored = read_model(tmp_path)
    save_model(tmp_path / "ours", stored.config, stored.tensors.arrays())
    ours = read_model(tmp_path / "ours")
    write_hub_model(tmp_path / "theirs", "llama", ours.config, ours.tensors)
    again = read_model(tmp_path / "theirs")
    assert again.config == replace(stored.config, d_head=4)  # the width is written out
    for name, array in again.tensors.items():
        np.testing.assert_array_equal(array, stored.tensors[name], strict=True)
