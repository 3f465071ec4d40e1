"""Models in GGUF files: the logits equal those of the Hugging Face model that was written."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize
from gguf_files import ARCHITECTURES, add_value, finish, write_model
from model_pairs import CASES, DECODER, MODELS, batch, gemma2, gemma3, llama, neox, phi3, randomise, rope, t5
from tolerances import assert_close
from transformers import Qwen2Config

from regard.checkpoints import read_model
from regard.checkpoints.gguf_file import QUANTISED, GgufFile
from regard.checkpoints.gguf_model import ARCHITECTURES as OURS
from regard.config import LinearScaling, Llama3Scaling
from regard.errors import FileError
from regard.models import Transformer

LLAMA3 = {"factor": 8.0, "original_max_position_embeddings": 8192, "high_freq_factor": 4.0, "low_freq_factor": 1.0}
FILES: dict[str, Callable[[], Any]] = {
    # Without settings that a GGUF file has no key for: there they have the values of the published models.
    **{name: CASES[name] for name in ("bert", "gpt2", "gpt2 untied, one head, narrow")},
    **{name: CASES[name] for name in ("gpt_neox", "mistral", "llama", "llama all heads, biases, tied")},
    **{name: CASES[name] for name in ("llama one key head, wide heads", "llama linear", "llama yarn")},
    **{name: CASES[name] for name in ("phi3", "phi3 longrope", "qwen3")},
    "llama llama3": lambda: llama(head_dim=8, rope_parameters={"rope_type": "llama3", "rope_theta": 5e5} | LLAMA3),
    "gpt_neox one after the other": lambda: neox(use_parallel_residual=False),
    "phi3 window, tied": lambda: phi3(sliding_window=3, tie_word_embeddings=True),
    "phi3 part rotated": lambda: phi3(hidden_size=32, rope_parameters=rope("default", partial_rotary_factor=0.5)),
    "qwen2": lambda: Qwen2Config(**DECODER),
    "gemma2": lambda: gemma2(query_pre_attn_scalar=8),
    "gemma3": lambda: gemma3(query_pre_attn_scalar=8, num_hidden_layers=6),
    "gemma3 linear": lambda: gemma3(
        query_pre_attn_scalar=8,
        num_hidden_layers=6,
        rope_parameters={"full_attention": rope("linear", factor=4.0), "sliding_attention": rope("default")},
    ),
    "t5": t5,
    "t5 gated, untied": partial(t5, feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=3),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def their_model(name: str) -> Any:
    settings = FILES[name]()
    settings._attn_implementation = "eager"
    model = MODELS[settings.model_type](settings).eval()
    if settings.model_type == "t5" and not settings.scale_decoder_outputs:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    randomise(model)
    return model


def test_every_architecture_is_tested() -> None:
    written = {ARCHITECTURES[make().model_type] for make in FILES.values()}
    assert written == OURS.keys()


@pytest.mark.parametrize("name", FILES)
def test_logits(name: str, tmp_path: Path) -> None:
    theirs = their_model(name)
    write_model(tmp_path / "model.gguf", theirs)
    stored = read_model(tmp_path / "model.gguf")
    ours = Transformer.read(tmp_path / "model.gguf")
    given = batch(stored.config, padded=False)
    with torch.no_grad():
        if theirs.config.model_type == "bert":
            expected = theirs.bert(**given.to_theirs()).last_hidden_state
        else:
            expected = theirs(**given.to_theirs()).logits
        assert_close(ours(**given.to_ours(False)), expected, "logits")


# --- every type of number ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUANTISED)
def test_dequantised_as_by_the_package(name: str, tmp_path: Path) -> None:
    kind = Kind[name]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows = 40_000 * 32 // block  # more than are dequantised at a time
    raw = np.random.default_rng(3).integers(0, 256, (rows, size), dtype=np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tensor("x", raw, raw_dtype=kind)
    writer.add_tensor("y", raw[:33], raw_dtype=kind)
    finish(writer)
    file = GgufFile(tmp_path / "x.gguf")
    assert file.shapes == {"x": (rows, block), "y": (33, block)}
    with np.errstate(all="ignore"):
        expected = dequantize(raw, kind)
    np.testing.assert_array_equal(file["x"], expected)
    np.testing.assert_array_equal(file["y"], expected[:33])


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1])
def test_a_model_of_each_type(kind: Kind, tmp_path: Path) -> None:
    settings = llama(hidden_size=64, intermediate_size=32, vocab_size=32)
    theirs = MODELS["llama"](settings).eval()
    randomise(theirs)
    written = write_model(tmp_path / "model.gguf", theirs, kind)
    stored = read_model(tmp_path / "model.gguf")
    names = {Kind.F16: "float16", Kind.BF16: "bfloat16"}
    assert stored.tensors.dtypes["decoder.layers.0.feed_forward.up.weight"] == names.get(kind, "float32")
    found = stored.tensors["decoder.layers.0.feed_forward.up.weight"].astype(np.float32)
    error = {Kind.F32: 0.0, Kind.F16: 1e-3, Kind.BF16: 8e-3, Kind.Q8_0: 8e-3}.get(kind, 0.15)
    wanted = written["blk.0.ffn_up.weight"]
    assert np.abs(found - wanted).max() <= error * np.abs(wanted).max()


def test_the_reader_of_the_package_finds_the_same(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "tokenizer__ggml__tokens": ["a", "猫", "", "\x00"],
        "general__flag": True,
        "general__scores": [0.5, -2.0],
    }
    write_model(tmp_path / "model.gguf", their_model("llama"), metadata=more)
    ours, theirs = GgufFile(tmp_path / "model.gguf"), gguf.GGUFReader(tmp_path / "model.gguf")
    for name, field in theirs.fields.items():
        if not name.startswith("GGUF."):
            found = ours.metadata[name]
            assert (found.tolist() if isinstance(found, np.ndarray) else found) == field.contents(), name
    assert set(ours) == {tensor.name for tensor in theirs.tensors}
    for tensor in theirs.tensors:
        np.testing.assert_array_equal(ours[tensor.name], dequantize(tensor.data, tensor.tensor_type))


# --- what is refused --------------------------------------------------------------------------------------


def refused(tmp_path: Path, name: str = "llama", **metadata: Any) -> str:
    """The message for the file of a model with other metadata."""
    model = their_model(name)
    write_model(tmp_path / "model.gguf", model, metadata=metadata)
    with pytest.raises(FileError) as error:
        read_model(tmp_path / "model.gguf")
    return str(error.value)


def test_metadata_that_is_not_computed(tmp_path: Path) -> None:
    assert "llama.expert_count = 8" in refused(tmp_path, llama__expert_count=8)
    assert "llama.rope.scaling.type = 'other'" in refused(tmp_path, llama__rope__scaling__type="other")
    assert "3 parts" in refused(tmp_path, split__count=3)


def test_an_architecture_that_is_not_known(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "mamba")
    writer.add_tensor("x", np.zeros(3, np.float32))
    finish(writer)
    with pytest.raises(FileError, match=r"'mamba'.*qwen3"):
        read_model(tmp_path / "model.gguf")


def test_factors_of_llama_3_are_recognised(tmp_path: Path) -> None:
    write_model(tmp_path / "model.gguf", their_model("llama llama3"))
    positions: Any = read_model(tmp_path / "model.gguf").config.positions
    assert positions.scaling == Llama3Scaling(factor=8.0, original_len=8192)
    write_model(tmp_path / "linear.gguf", their_model("llama linear"))
    positions = read_model(tmp_path / "linear.gguf").config.positions
    assert positions.scaling == LinearScaling(factor=3.0)


def test_other_factors_are_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    values = {"context_length": 9, "embedding_length": 8, "block_count": 1, "feed_forward_length": 8}
    for key, value in (values | {"attention.head_count": 1, "attention.layer_norm_rms_epsilon": 1e-5}).items():
        add_value(writer, f"llama.{key}", value)
    writer.add_tensor("rope_freqs.weight", np.array([1, 5, 2, 8], np.float32))
    writer.add_tensor("token_embd.weight", np.zeros((9, 8), np.float32))
    finish(writer)
    with pytest.raises(FileError, match=r"rope_freqs\.weight"):
        read_model(tmp_path / "model.gguf")


def test_a_folder_with_one_file_and_with_two(tmp_path: Path) -> None:
    write_model(tmp_path / "b.gguf", their_model("llama"))
    assert read_model(tmp_path).config == read_model(tmp_path / "b.gguf").config
    write_model(tmp_path / "a.gguf", their_model("gpt2"))
    with pytest.raises(FileError, match=r"2 GGUF files \(a\.gguf, b\.gguf\)"):
        read_model(tmp_path)
