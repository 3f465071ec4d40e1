"""Every key of every family's config.json, changed one at a time: our logits follow Hugging Face's, or we refuse.

A change is a value of the same type that Hugging Face's model accepts. The model that it builds gets random weights,
its tensors are written to a folder beside the changed config.json, and our model reads that folder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from model_pairs import CASES, MODELS, randomise
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.checkpoints import read_model
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.model_folder import Stored
from regard.errors import FileError
from regard.models import Transformer

BASES = {
    "bart": ["bart"],
    "bert": ["bert"],
    "distilbert": ["distilbert"],
    "gemma2": ["gemma2 biases, untied, tight bounds, all heads"],
    "gemma3_text": ["gemma3 untied, biases, linear"],
    "gpt2": ["gpt2"],
    "gpt_neox": ["gpt_neox"],
    "llama": ["llama llama3", "llama yarn, its own numbers", "llama linear"],
    "marian": ["marian", "marian two vocabularies"],
    "mistral": ["mistral"],
    "opt": ["opt"],
    "phi3": ["phi3 half rotated, one key head"],
    "qwen2": ["qwen2 window in one layer"],
    "qwen3": ["qwen3"],
    "roberta": ["roberta"],
    "t5": ["t5", "t5 gated, untied"],
}
"""The cases of each family that are changed; several where keys depend on each other."""

ROPE = {"rope_type": "linear", "factor": 3.0}
MORE: dict[str, dict[str, list[Any]]] = {
    "": {
        "add_cross_attention": [True],
        "chunk_size_feed_forward": [1],
        "is_decoder": [True],
        "is_encoder_decoder": [True],
        "pruned_heads": [{"0": [1]}],
        "quantization_config": [{"quant_method": "gptq", "bits": 4}],
        "tie_encoder_decoder": [True],
        "cross_attention_hidden_size": [12],
        "trust_remote_code": [True],
        "auto_map": [{"AutoModel": "elsewhere--model.Model"}],
        "_attn_implementation_internal": ["kernels/evil"],
    },
    "bert": {"position_embedding_type": ["relative_key", "relative_key_query"]},
    "roberta": {"position_embedding_type": ["relative_key"]},
    "gpt2": {"n_ctx": [20], "hidden_size": [12], "num_attention_heads": [2]},
    "llama": {
        "rope_theta": [50.0],
        "rope_scaling": [ROPE, {"type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}],
        "partial_rotary_factor": [0.5],
        "original_max_position_embeddings": [30],
        "head_dim": [6, 10],
        "sliding_window": [3],
        "layer_types": [["sliding_attention", "full_attention"]],
    },
    "mistral": {"rope_theta": [50.0], "rope_scaling": [ROPE], "partial_rotary_factor": [0.5], "head_dim": [8]},
    "qwen2": {"rope_theta": [50.0], "rope_scaling": [ROPE], "head_dim": [8], "attention_bias": [False]},
    "qwen3": {"rope_theta": [50.0], "rope_scaling": [ROPE], "partial_rotary_factor": [0.6]},
    "phi3": {
        "rope_theta": [50.0],
        "rope_scaling": [
            {"type": kind, "short_factor": [1.5] * 4, "long_factor": [2.0] * 4} for kind in ("su", "yarn", "longrope")
        ],
        "partial_rotary_factor": [0.75],
        "head_dim": [6],
        "original_max_position_embeddings": [20],
        "attention_bias": [True],
    },
    "gemma2": {"rope_theta": [50.0], "rope_scaling": [ROPE], "hidden_act": ["relu"], "query_pre_attn_scalar": [3.5]},
    "gemma3_text": {
        "rope_theta": [50.0],
        "rope_local_base_freq": [50.0],
        "rope_scaling": [ROPE],
        "sliding_window_pattern": [2],
        "hidden_act": ["relu"],
    },
    "gpt_neox": {"rotary_pct": [0.5], "rotary_emb_base": [50.0], "rope_scaling": [ROPE], "head_dim": [16]},
    "opt": {"num_key_value_heads": [2]},
    "t5": {"head_dim": [4]},
}
"""Keys that `to_dict` does not list, by family and for all: of older files, or of other models."""

STRINGS: dict[str, list[Any]] = {
    "feed_forward_proj": ["gelu", "gated-silu", "gated-relu", "tanh"],
    "rope_type": ["default", "linear", "llama3", "yarn", "dynamic", "longrope"],
    "summary_type": ["last"],
    "transformers_version": ["4.30.0"],
    "_name_or_path": ["elsewhere"],
}
ACTIVATIONS = ["relu", "gelu", "gelu_new", "silu", "tanh", "quick_gelu", "gelu_fast"]
OF_NONE: dict[str, list[Any]] = {
    "architectures": [["LlamaModel"]],
    "dtype": ["bfloat16"],
    "problem_type": ["regression"],
    "n_inner": [10],
    "head_dim": [8],
    "layer_types": [["full_attention", "sliding_attention"]],
    "sliding_window": [3],
    "use_bidirectional_attention": [True],
    "attn_logit_softcapping": [1.5],
    "final_logit_softcapping": [1.5],
    "classifier_dropout": [0.3],
    "summary_activation": ["tanh"],
    "num_decoder_layers": [3],
}
"""Other values of keys that are null."""
NEEDED: dict[str, dict[str, Any]] = {
    "linear": {"factor": 2.0},
    "dynamic": {"factor": 2.0},
    "longrope": {"short_factor": [1.5] * 2, "long_factor": [2.0] * 2, "original_max_position_embeddings": 16},
    "yarn": {"factor": 2.0, "original_max_position_embeddings": 16},
    "llama3": {
        "factor": 2.0,
        "original_max_position_embeddings": 16,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
}
"""What a kind of scaling needs beside its name."""
LENGTHS = ("max_position_embeddings", "n_positions")
"""Hugging Face's rotary models read beyond their length, and ours say that the text is too long."""
ILLEGAL = {
    "add_cross_attention",
    "return_dict",
    "rope_parameters.partial_rotary_factor",
    "rope_parameters.full_attention.partial_rotary_factor",
}
"""Keys that Hugging Face's models accept with no other value."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_family_is_changed() -> None:
    assert BASES.keys() == FAMILIES.keys()
    for family, names in BASES.items():
        assert {CASES[name]().model_type for name in names} == {family}


@pytest.mark.filterwarnings("ignore")  # of Hugging Face, about unusual values
@pytest.mark.parametrize(
    ("name", "every_number"),
    [
        *((names[0], False) for names in BASES.values()),
        *(pytest.param(name, True, marks=pytest.mark.long) for names in BASES.values() for name in names),
    ],
)
def test_no_key_is_ignored(name: str, every_number: bool, tmp_path: Path) -> None:
    """Every key, with every string and list; with the first number that Hugging Face accepts, or with all of them."""
    base = CASES[name]()
    followed: dict[str, float] = {}
    refused, illegal = set(), set()
    for key, changed in changes(base.to_dict()):
        tried = key in followed or key in refused
        if tried and not every_number and isinstance(value_at(changed, key), int | float):
            continue
        built = their_model(base, changed)
        if built is None:
            illegal.add(key)
            continue
        theirs, given, expected = built
        try:
            stored = written_and_read(tmp_path, changed, theirs)
        except FileError as error:
            if key.split(".")[-1] not in str(error):
                pytest.fail(f"the message does not name {key}: {error}")
            refused.add(key)
            continue
        difference = (our_logits(stored, given) - expected).abs().max().item()
        assert difference <= 1e-4, f"{key} = {value_at(changed, key)!r}: {difference}"
        followed[key] = difference
    untested = illegal - followed.keys() - refused
    assert untested <= ILLEGAL, f"Hugging Face accepts no change of {sorted(untested)}"
    assert len(followed) > 15


Tree = dict[str, Any]


def changes(tree: Tree, place: str = "") -> Iterator[tuple[str, Tree]]:
    """The name of a key and the tree with another value for it, for every key; nested tables key by key."""
    family = tree["model_type"]
    for key, value in tree.items():
        if key == "model_type":
            continue
        if key == "rope_parameters":
            for path, table in table_changes(value, key):
                yield path, tree | {key: table}
            continue
        for other in other_values(key, value):
            # The kinds of layers are computed from these keys where they are not listed.
            unlisted = "layer_types" in tree and key in ("num_hidden_layers", "use_sliding_window", "sliding_window")
            yield key, tree | {key: other} | ({"layer_types": None} if unlisted else {})
    for key, values in (MORE[""] | MORE.get(family, {})).items():
        for other in values:
            # As in older files, which have this key instead of the table.
            kept = {name: value for name, value in tree.items() if name != "rope_parameters" or not is_old_key(key)}
            yield key, kept | {key: other}


def is_old_key(key: str) -> bool:
    return key.startswith(("rope_", "rotary_", "partial_rotary"))


def table_changes(table: Tree, place: str) -> Iterator[tuple[str, Tree]]:
    for key, value in table.items():
        if isinstance(value, dict):
            for path, changed in table_changes(value, f"{place}.{key}"):
                yield path, table | {key: changed}
            continue
        for other in other_values(key, value):
            needed = NEEDED.get(other, {}) if key == "rope_type" else {}
            yield f"{place}.{key}", table | {key: other} | needed
    for key, other in (("attention_factor", 0.7), ("mscale", 0.5), ("truncate", False), ("partial_rotary_factor", 0.5)):
        if table.get("rope_type") and key not in table:
            yield f"{place}.{key}", table | {key: other}


def other_values(key: str, value: Any) -> list[Any]:
    if value is None:
        return OF_NONE.get(key, [3])
    if isinstance(value, bool):
        return [not value]
    if key in LENGTHS:
        return [value + 1, 2 * value]
    if isinstance(value, int):
        return [value + 1, 2 * value, max(value // 2, 1), 0 if value == 1 else 1]
    if isinstance(value, float):
        return [value * 1.7 + 0.1, 0.5]
    if isinstance(value, list):
        return [value[::-1]]
    if isinstance(value, dict):
        return [{}]
    if key in STRINGS:
        return [other for other in STRINGS[key] if other != value]
    return [other for other in ACTIVATIONS if other != value]


def value_at(tree: Tree, key: str) -> Any:
    for name in key.split("."):
        tree = tree[name]
    return tree


def their_model(base: Any, changed: Tree) -> tuple[Any, dict[str, Tensor], Tensor] | None:
    """Hugging Face's model of that config with random weights, inputs and its logits; None if it does not run."""
    draw = torch.Generator().manual_seed(3)
    ids, source = torch.randint(2, 17, (2, 2, 11), generator=draw)
    try:
        settings = type(base).from_dict(json.loads(json.dumps(changed)))
        settings._attn_implementation = "eager"
        model = MODELS[settings.model_type](settings).eval()
        if settings.model_type == "t5" and not settings.scale_decoder_outputs:
            model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))
        randomise(model)
        given = {"ids": ids} if base.model_type not in ("bart", "marian", "t5") else {"ids": ids, "source": source}
        names = {"ids": "decoder_input_ids" if "source" in given else "input_ids", "source": "input_ids"}
        with torch.no_grad():
            found = model(**{names[name]: part for name, part in given.items()}, use_cache=False, return_dict=True)
    except Exception:  # of whatever kind: the value is not legal there
        return None
    return (model, given, found.logits) if found.logits.isfinite().all() else None


def written_and_read(folder: Path, changed: Tree, theirs: Any) -> Stored:
    (folder / "config.json").write_text(json.dumps(changed))
    save_file({name: x.clone().contiguous() for name, x in theirs.state_dict().items()}, folder / "model.safetensors")
    return read_model(folder)


def our_logits(stored: Stored, given: dict[str, Tensor]) -> Tensor:
    ours = Transformer(stored.config).eval()
    ours.load_state_dict({name: torch.from_numpy(x) for name, x in stored.tensors.arrays().items()})
    with torch.no_grad():
        found: Tensor = ours(**given)
    return found
