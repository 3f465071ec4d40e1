"""`regard convert`: what is written loads in `transformers`, and there and back is bit-equal."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf_files import write_model
from model_pairs import CASES, MODELS, randomise
from public_folders import llama
from transformers import AutoModelForCausalLM, AutoTokenizer

from regard import load
from regard.checkpoints import read_model, save_model
from regard.config import TransformerConfig
from regard.config.weights import weight_shapes
from regard.errors import ArgumentError, FileError
from regard.language.conversion import convert


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
