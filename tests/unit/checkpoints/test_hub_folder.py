"""Models in Hugging Face's layout: every family as its library writes it, in one file or several, also without head.

A family added by a table alone is read too.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from model_pairs import CASES, MODELS, batch, randomise
from safetensors.torch import load_file, save_file
from tolerances import assert_close
from torch import Tensor, nn
from transformers import AutoModel, GPT2Config, GPT2Model

from regard import reference
from regard.checkpoints import read_model
from regard.checkpoints.families import FAMILIES, ConfigKeys, Family
from regard.checkpoints.hub_folder import HubWeights, write_hub_model
from regard.checkpoints.model_folder import Stored
from regard.config import Learned, Norm, Output, TransformerConfig
from regard.errors import FileError
from regard.models import Transformer

FIRST = {CASES[name]().model_type: name for name in reversed(CASES)}
"""One case of each family."""


def their_model(name: str) -> Any:
    """Hugging Face's model with random weights."""
    settings = CASES[name]()
    settings._attn_implementation = "eager"
    model = MODELS[settings.model_type](settings).eval()
    randomise(model)
    return model


def torch_model(stored: Stored) -> Transformer:
    model = Transformer(stored.config).eval()
    model.load_state_dict({name: torch.from_numpy(x) for name, x in stored.tensors.arrays().items()})
    return model


def assert_equal_logits(stored: Stored, theirs: Any) -> None:
    """In torch and in NumPy."""
    given = batch(stored.config, padded=False)
    with torch.no_grad():
        found = theirs(**given.to_theirs())
        expected = found.logits if stored.config.output is not None else found.last_hidden_state
        assert_close(torch_model(stored)(**given.to_ours(False)), expected, "logits")
    numpy_model = reference.Transformer(stored.config, stored.tensors)
    assert_close(numpy_model(**given.to_ours(False, as_given=Tensor.numpy)), expected, "logits")


# --- as Hugging Face writes it ----------------------------------------------------------------------------


def test_every_family_has_a_case() -> None:
    assert FIRST.keys() == FAMILIES.keys()


@pytest.mark.parametrize("family", FIRST)
@pytest.mark.parametrize("largest", ["1GB", "7KB"], ids=["one file", "several files"])
def test_what_hugging_face_wrote_is_read(family: str, largest: str, tmp_path: Path) -> None:
    theirs = their_model(FIRST[family])
    theirs.save_pretrained(tmp_path, max_shard_size=largest)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1 or largest == "1GB"
    stored = read_model(tmp_path)
    assert isinstance(stored.tensors, HubWeights)
    assert stored.unused == ()
    assert_equal_logits(stored, theirs)
    assert_equal_logits(Stored(stored.config, stored.tensors), theirs)  # weights can be read again


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_an_encoder_without_its_word_predictions(family: str, tmp_path: Path) -> None:
    """As sentence embedding models are stored: names without a prefix, and no head."""
    theirs = AutoModel.from_config(CASES[FIRST[family]](), attn_implementation="eager").eval()
    randomise(theirs)
    theirs.save_pretrained(tmp_path)
    assert not any(name.startswith(family) for name in load_file(tmp_path / "model.safetensors"))
    stored = read_model(tmp_path)
    assert stored.config.output is None
    assert_equal_logits(stored, theirs)


TIED = {"llama": "lm_head.weight", "bert": "cls.predictions.decoder.weight", "t5": "lm_head.weight"}


@pytest.mark.parametrize("family", TIED)
@pytest.mark.parametrize("differs", [True, False])
def test_a_tied_output_with_a_table_in_the_file(family: str, differs: bool, tmp_path: Path) -> None:
    """Another table than that of the embeddings counts, whatever the config says, as in transformers 5."""
    kind: Any = MODELS[family]
    kind(CASES["llama all heads, biases, tied" if family == "llama" else family]()).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert TIED[family] not in tensors
    name = next(
        one for one in tensors if one.endswith(("embed_tokens.weight", "word_embeddings.weight", "shared.weight"))
    )
    table = tensors[name].clone()
    tensors[TIED[family]] = torch.randn_like(table) if differs else table
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    theirs = kind.from_pretrained(tmp_path, attn_implementation="eager").eval()
    assert torch.equal(theirs.get_output_embeddings().weight, tensors[TIED[family]])
    stored = read_model(tmp_path)
    assert stored.config.output is not None
    assert stored.config.output.tied is not differs
    assert_equal_logits(stored, theirs)


@pytest.mark.parametrize("own", [True, False])
def test_t5_that_does_not_scale(own: bool, tmp_path: Path) -> None:
    """With and without a table of its own for the output."""
    kind: Any = MODELS["t5"]
    theirs = kind(CASES["t5 gated, untied"]()).eval()
    if own:
        theirs.lm_head.weight = nn.Parameter(torch.randn_like(theirs.lm_head.weight))
    theirs.save_pretrained(tmp_path)
    assert ("lm_head.weight" in load_file(tmp_path / "model.safetensors")) is own
    stored = read_model(tmp_path)
    assert stored.config.output == Output(tied=not own, scaled=False)
    assert_equal_logits(stored, theirs)
    again = tmp_path / "again"
    write_hub_model(again, "t5", stored.config, stored.tensors, more={"decoder_start_token_id": 0})
    assert read_model(again).config.output == stored.config.output
    assert kind.from_pretrained(again).config.scale_decoder_outputs is False


def test_two_tables_of_embeddings_are_refused(tmp_path: Path) -> None:
    theirs = their_model("bart")
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.decoder.embed_tokens.weight"] = tensors["model.shared.weight"].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    assert_equal_logits(read_model(tmp_path), theirs)
    tensors["model.decoder.embed_tokens.weight"][0] += 1
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(FileError, match="different embeddings"):
        read_model(tmp_path)


def test_gpt2_under_its_first_names(tmp_path: Path) -> None:
    """The files of 2019: without a prefix, with the causal mask as a tensor, without an output layer."""
    theirs = their_model("gpt2")
    theirs.transformer.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert "h.0.attn.c_attn.weight" in tensors
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 40, 40, dtype=torch.uint8).tril()
    tensors["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, tmp_path / "model.safetensors")
    assert_equal_logits(read_model(tmp_path), theirs)


def test_old_names_of_norms(tmp_path: Path) -> None:
    theirs = their_model("bert")
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
        for name, x in tensors.items()
    }
    assert renamed.keys() != tensors.keys()
    save_file(renamed, tmp_path / "model.safetensors")
    assert_equal_logits(read_model(tmp_path), theirs)


@pytest.mark.parametrize("value", ["default", 3, [], True])
def test_a_kind_of_layer_whose_rotation_is_no_object(value: Any) -> None:
    """Of a mutated config.json: it ended in a TypeError."""
    keys = ConfigKeys(Path("config.json"), {"rope_parameters": {"full_attention": value}})
    with pytest.raises(FileError, match=r"rope_parameters\.full_attention"):
        FAMILIES["gemma3_text"].config(keys)


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "gpt_neox", "opt"])
def test_a_decoder_without_its_output_layer_is_read_where_it_is_tied(family: str, tmp_path: Path) -> None:
    settings = CASES[FIRST[family]]()
    settings.tie_word_embeddings = True
    theirs = MODELS[family](settings).eval()
    randomise(theirs)
    theirs.base_model.save_pretrained(tmp_path)
    assert_equal_logits(read_model(tmp_path), theirs)


def test_bfloat16_is_read_as_float32_and_remembered(tmp_path: Path) -> None:
    theirs = their_model("llama")
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.copy_(weight.bfloat16())
    theirs.save_pretrained(tmp_path, state_dict={name: x.bfloat16() for name, x in theirs.state_dict().items()})
    stored = read_model(tmp_path)
    assert set(stored.tensors.dtypes.values()) == {"bfloat16"}
    assert_equal_logits(stored, theirs)


# --- what is wrong is named -------------------------------------------------------------------------------


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def drop_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors")


def add_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"model.layers.1.mlp.router.weight": torch.ones(3)}, folder / "model.safetensors")


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "unknown family": (lambda f: change_config(f, model_type="mamba"), "no models of type 'mamba'; supported: bart, "),
    "family as a number": (lambda f: change_config(f, model_type=7), "nor a model_type"),
    "other sizes": (lambda f: change_config(f, intermediate_size=29), "differ in shape from the config"),
    "one layer more": (lambda f: change_config(f, num_hidden_layers=3), "missing.*: decoder.layers.2"),
    "one layer less": (lambda f: change_config(f, num_hidden_layers=1), "belong to no part of this model"),
    "a missing tensor": (drop_tensor, "missing.*: decoder.layers.1.feed_forward.up.weight"),
    "an unknown tensor": (add_tensor, "1 weights belong to no part .*: model.layers.1.mlp.router.weight"),
    "quantised": (
        lambda f: change_config(f, quantization_config={"quant_method": "gptq"}),
        "quantization_config .'gptq'.: the weights are stored in a form",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    their_model("llama").save_pretrained(tmp_path)
    change, message = WRONG[name]
    change(tmp_path)
    with pytest.raises(FileError, match=message) as caught:
        read_model(tmp_path)
    assert str(tmp_path) in str(caught.value)


LAYOUTS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "rows that are not heads": ("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight", (97, 32)),
    "a number for rows of heads": ("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.bias", ()),
    "two rows for one": ("marian", "final_logits_bias", (2, 36)),
    "too few fused rows": ("phi3", "model.layers.0.self_attn.qkv_proj.weight", (47, 24)),
    "too many fused rows": ("phi3", "model.layers.0.mlp.gate_up_proj.weight", (58, 24)),
    "a number for positions": ("opt", "model.decoder.embed_positions.weight", ()),
    "a cube for a matrix": ("gpt2", "transformer.h.0.attn.c_proj.weight", (24, 24, 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_tensor_of_another_layout_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    family, tensor, shape = LAYOUTS[name]
    their_model(FIRST[family]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert tensor in tensors
    save_file(tensors | {tensor: torch.zeros(shape)}, tmp_path / "model.safetensors")
    with pytest.raises(FileError, match="1 weights differ in shape from the config"):
        read_model(tmp_path)


# --- a new family -----------------------------------------------------------------------------------------


def minigpt_config(keys: ConfigKeys) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=keys.count("words"),
        d_model=keys.count("width"),
        n_heads=keys.count("heads"),
        d_ff=4 * keys.count("width"),
        n_decoder_layers=keys.count("layers"),
        max_len=keys.count("length"),
        activation="gelu_tanh",
        positions=Learned(),
        norm=Norm(place="pre", final=True),
        output=Output(),
    )


MINIGPT = Family(
    config=minigpt_config,
    names={
        "words": "embedding",
        "places": "decoder.positions.table",
        "blocks.#.norm_a": "decoder.layers.#.self_attention_norm",
        **{f"blocks.#.{part}": f"decoder.layers.#.self_attention.{part}_proj" for part in "qkvo"},
        "blocks.#.norm_b": "decoder.layers.#.feed_forward_norm",
        "blocks.#.wide": "decoder.layers.#.feed_forward.up",
        "blocks.#.narrow": "decoder.layers.#.feed_forward.down",
        "last": "decoder.norm",
    },
)


def minigpt_tensors(theirs: Any) -> dict[str, Tensor]:
    """The weights of a GPT-2 under the names of the new family."""
    found = {"words.weight": theirs.wte.weight, "places.weight": theirs.wpe.weight}
    found |= {f"last.{name}": x for name, x in theirs.ln_f.named_parameters()}
    for i, block in enumerate(theirs.h):
        parts: dict[str, nn.Module] = {"norm_a": block.ln_1, "norm_b": block.ln_2}
        found |= {f"blocks.{i}.{part}.{name}": x for part, norm in parts.items() for name, x in norm.named_parameters()}
        for part, weight, bias in zip(
            "qkv", block.attn.c_attn.weight.T.chunk(3), block.attn.c_attn.bias.chunk(3), strict=True
        ):
            found |= {f"blocks.{i}.{part}.weight": weight, f"blocks.{i}.{part}.bias": bias}
        for part, layer in {"o": block.attn.c_proj, "wide": block.mlp.c_fc, "narrow": block.mlp.c_proj}.items():
            found |= {f"blocks.{i}.{part}.weight": layer.weight.T, f"blocks.{i}.{part}.bias": layer.bias}
    return {name: x.detach().contiguous() for name, x in found.items()}


def test_a_table_adds_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = GPT2Config(vocab_size=31, n_embd=24, n_head=3, n_layer=2, n_positions=40)
    theirs: Any = GPT2Model(settings).eval()
    randomise(theirs)
    save_file(minigpt_tensors(theirs), tmp_path / "model.safetensors")
    about = {"model_type": "minigpt", "words": 31, "width": 24, "heads": 3, "layers": 2, "length": 40, "mood": "good"}
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(FileError, match="no models of type 'minigpt'"):
        read_model(tmp_path)
    monkeypatch.setitem(FAMILIES, "minigpt", MINIGPT)
    stored = read_model(tmp_path)
    assert stored.unused == ("mood",)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        expected = theirs(ids).last_hidden_state @ theirs.wte.weight.T
        assert_close(torch_model(stored)(ids), expected, "logits")
    assert_close(reference.Transformer(stored.config, stored.tensors)(ids.numpy()), expected, "logits")
    np.testing.assert_array_equal(stored.tensors["embedding.weight"], theirs.wte.weight.detach().numpy())
