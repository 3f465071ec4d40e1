"""Writing a model in Hugging Face's layout: our names and layouts become theirs, by the table of a family.

The inverse of `hub_folder`. What is written is read again first: a model that the family does not describe exactly is
refused, and nothing is written.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.arrays import Array, to_numpy
from regard.checkpoints.families import FAMILIES, ConfigKeys
from regard.checkpoints.families.family import Target
from regard.checkpoints.model_folder import write_model_files
from regard.checkpoints.tensor_file import check_dtypes
from regard.config import TransformerConfig
from regard.config.weights import check_weights, weight_shapes
from regard.errors import ArgumentError, FileError
from regard.messages import Listed

ARCHITECTURES = {
    "bart": "BartForConditionalGeneration",
    "bert": "BertForMaskedLM",
    "distilbert": "DistilBertForMaskedLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "llama": "LlamaForCausalLM",
    "marian": "MarianMTModel",
    "mistral": "MistralForCausalLM",
    "opt": "OPTForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "roberta": "RobertaForMaskedLM",
    "t5": "T5ForConditionalGeneration",
}
"""Hugging Face's class of each family with an output layer; `AutoModel` reads it from config.json."""


@dataclass(frozen=True)
class Source:
    """One of their tensors: our weights that it holds, in order, and its layout."""

    names: tuple[str, ...]
    target: Target


class TheirTensors(Mapping[str, np.ndarray]):
    """Our weights under their names and in their layout, each built on access."""

    def __init__(self, weights: Mapping[str, Array], sources: Mapping[str, Source], config: TransformerConfig) -> None:
        self._weights, self._sources, self._heads = weights, sources, config.n_heads

    def __getitem__(self, name: str) -> np.ndarray:
        source = self._sources[name]
        target, parts = source.target, [to_numpy(self._weights[one]) for one in source.names]
        if target.per_head:
            heads = [part.reshape(self._heads, -1, *part.shape[1:]) for part in parts]
            joined = np.concatenate(heads, axis=1)
            return joined.reshape(-1, *parts[0].shape[1:])
        found = np.concatenate(parts) if len(parts) > 1 else parts[0]
        if target.skip:
            found = np.concatenate((np.zeros((target.skip, *found.shape[1:]), found.dtype), found))
        if target.first_row:
            return found[None]
        return np.ascontiguousarray(found.T) if target.transposed and found.ndim == 2 else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def write_hub_model(
    folder: str | os.PathLike[str],
    family: str,
    config: TransformerConfig,
    tensors: Mapping[str, Array],
    *,
    dtypes: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write config.json and model.safetensors as Hugging Face's models of that family have them.

    tensors   our weights by name, NumPy or torch
    dtypes    the dtype of each weight in the file, as `tensors.dtypes` of a model that was read; default its own
    more      other keys of config.json, such as eos_token_id

    The folder is created if missing. Raises ArgumentError, before anything is written, if the family does not describe
    this model.
    """
    check_dtypes(tensors)
    check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, config)
    settings = hub_settings(family, config)
    sources = _sources(family, config)
    theirs = TheirTensors(tensors, sources, config)
    kept = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in tensors.items()} | dict(dtypes or {})
    stored = {name: kept[source.names[0]] for name, source in sources.items()}
    text = json.dumps(dict(more or {}) | settings, indent=2, allow_nan=False) + "\n"
    write_model_files(folder, text, theirs, stored)


def hub_settings(family: str, config: TransformerConfig) -> dict[str, Any]:
    """The keys of config.json for a model of that family. ArgumentError if they do not describe it exactly."""
    writable = [name for name, known in FAMILIES.items() if known.settings is not None]
    if family not in writable:
        raise ArgumentError("unknown-choice", name="family", value=family, choices=Listed(writable))
    settings = FAMILIES[family].settings
    assert settings is not None
    found = {"model_type": family, **settings(config)}
    if config.output is not None and family in ARCHITECTURES:
        found["architectures"] = [ARCHITECTURES[family]]
    _check_same(family, config, _read_again(family, found, config))
    return found


def _read_again(family: str, settings: dict[str, Any], config: TransformerConfig) -> TransformerConfig:
    try:
        tensors = frozenset(_sources(family, config))
        return FAMILIES[family].config(ConfigKeys(Path("config.json"), settings, tensors))
    except FileError as error:
        raise ArgumentError("export-refused", family=family, reason=error) from error


def _check_same(family: str, config: TransformerConfig, again: TransformerConfig) -> None:
    ours, theirs = _plain(config), _plain(again)
    for field in fields(TransformerConfig):
        found, wanted = getattr(ours, field.name), getattr(theirs, field.name)
        if found != wanted:
            raise ArgumentError("export-config", family=family, name=field.name, found=found, wanted=wanted)


def _plain(config: TransformerConfig) -> TransformerConfig:
    """The config with its defaults written out, and without dropout, which the files do not keep."""
    layers = max(config.n_encoder_layers or 0, config.n_decoder_layers or 0)
    windows = tuple(config.attention.window_of(i) for i in range(layers))
    scale = config.head_width**-0.5 if config.attention.scale is None else config.attention.scale
    attention = replace(config.attention, window=windows, scale=round(scale, 12), dropout=0.0)
    biases = replace(config.biases, norm=config.biases.norm and config.norm.kind == "layer")
    return replace(
        config,
        d_head=config.head_width,
        n_kv_heads=config.key_value_heads,
        attention=attention,
        biases=biases,
        dropout=0.0,
    )


def _sources(family: str, config: TransformerConfig) -> dict[str, Source]:
    """Their tensors by name. Where several of their names stand for one of our weights, the last is used."""
    wanted, last = weight_shapes(config), dict[str, str]()
    found: dict[str, Source] = {}
    copies: dict[str, Source] = {}
    layers = range(max(config.n_encoder_layers or 0, config.n_decoder_layers or 0))
    for pattern, given in FAMILIES[family].names.items():
        target = Target((given,)) if isinstance(given, str) else given
        if target is None or (target.written_if is not None and not target.written_if(config)):
            continue
        # T5 has the table of positions of a stack in its first layer.
        for number in layers if any("#" in name for name in target.names) else (0,):
            module = pattern.replace("#", str(number))
            ours = tuple(name.replace("#", str(number)) for name in target.names)
            for tensor, names in _tensors(module, ours):
                if any(name not in wanted for name in names):
                    continue
                if target.is_copy:
                    copies[tensor] = Source(names, target)
                    continue
                found[tensor] = Source(names, target)
                last |= dict.fromkeys(names, tensor)
    used = {name: source for name, source in found.items() if all(last[one] == name for one in source.names)}
    return used | copies


def _tensors(module: str, ours: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tensors of one of their modules, with our names of them."""
    if ours[0].endswith(".bias"):  # the module is a parameter there
        yield module, ours
    elif ours[0].endswith(".table"):
        yield f"{module}.weight", ours
    else:
        for leaf in ("weight", "bias"):
            yield f"{module}.{leaf}", tuple(f"{name}.{leaf}" for name in ours)
