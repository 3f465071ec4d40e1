"""`load_by_transformers`: the model of a folder, built by the package `transformers` after its files were checked.

Only safetensors are read, only local files, and never code of the model's author. The config is checked and cleaned
before the package sees it. The model is built without memory first, and must not be much larger than the stored
weights. A weight that the files lack is refused: the package would fill it with random numbers.
"""

import os
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from regard.arrays import is_integer
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.families.config_keys import MOST_LAYERS
from regard.checkpoints.hub_folder import ADAPTER, ShardedTensors, check_not_quantised
from regard.errors import FileError, require_package
from regard.files.output import reason_of
from regard.language.by_transformers import TransformersModel, quiet
from regard.language.hub_files import HubFiles, SpecialIds, Task, read_tokenizer, report_unused
from regard.language.model import ModelBackend
from regard.messages import Listed, say
from regard.text.tokenizer import IdTokenizer, Tokenizer

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_LAYERS = re.compile(r"(num|n)_(\w+_)?layers?|(\w+_)?layers|depth|num_(local_)?experts|n_routed_experts")
"""Keys that say how many modules of a kind there are."""
_SIZES = re.compile(
    r"\w*(vocab|hidden|intermediate|inner|embed\w*|ffn|model|state|projection)_(size|dim)|d_\w+|n_embd|n_inner"
)
"""Keys that are an axis of a weight."""
_ZEROES = re.compile(r"(first|last|nextn|predict|shared|dense|skip|mtp|window|dropout|layer_id)\w*")
_FOLLOWED = ("auto_map", "trust_remote_code", "custom_pipelines", "use_kernels", "dtype", "torch_dtype")
LARGEST_NUMBER, MOST_POSITIONS, LARGEST_BUFFERS, SPARE = 2**40, 2**24, 2**28, 2**20
"""Files may hold a table once that a model has twice, and no table that is computed, as of sinusoidal positions."""
POOLER = re.compile(r"(^|\.)pooler\.|position_ids$|final_logits_bias$")
"""What a file may lack: it changes neither attention nor texts."""


def load_by_transformers(
    name: str, files: HubFiles, *, asked: bool = False, refusal: FileError | None = None
) -> TransformersModel:
    """The model of a folder. Raises FileError where `transformers` is not installed or cannot read it.

    asked     whether the caller asked for `transformers`
    refusal   why our own Transformer does not compute a model of one of our families
    """
    kind, path = files.config["model_type"], str(files.config_path)
    if not isinstance(kind, str):
        raise FileError("family-missing", path=path)
    check_not_quantised(Path(path), files.config)
    tensors = ShardedTensors(files.folder)  # refuses pickles, damaged files and names that lead out of the folder
    cleaned = _checked(path, files.config, tensors)
    try:
        require_package("transformers", "regard.load")
        import transformers as package
    except ImportError as error:
        if asked:
            raise
        raise FileError("family-unknown", path=path, found=kind[:80], names=Listed(FAMILIES)) from error
    adapter = files.folder / ADAPTER
    if os.path.lexists(adapter) and find_spec("peft") is not None:
        # transformers would read the adapter, and with it files that were not checked.
        raise FileError("adapter-with-peft", path=str(adapter))
    if kind not in package.CONFIG_MAPPING:
        key = "family-code" if files.config.get("auto_map") else "family-nowhere"
        raise FileError(key, path=path, found=kind[:80], version=package.__version__)
    try:
        package.utils.logging.disable_progress_bar()
        with quiet():
            config = package.CONFIG_MAPPING[kind].from_dict(cleaned)
            task, loader = _loader(package, config, path)
            attention = _check_size(loader, config, tensors, path)
            model, about = loader.from_pretrained(
                files.folder,
                config=config,
                use_safetensors=True,
                attn_implementation=attention,
                output_loading_info=True,
                **_LOCAL,
            )
    except FileError:
        raise
    except Exception as error:  # the package raises many kinds
        raise FileError("transformers-cannot", path=path, reason=reason_of(error)) from error
    absent = sorted(name for name in about["missing_keys"] if not POOLER.search(name))
    absent += sorted(str(one[0] if isinstance(one, tuple) else one) for one in about["mismatched_keys"])
    if absent:
        raise FileError("transformers-missing", path=path, count=len(absent), names=Listed.few(absent))
    model = model.eval().float()
    model.requires_grad_(False)
    vocab_size = int(getattr(config.get_text_config(), "vocab_size", 0) or 1)
    tokenizer = _tokenizer(package, files, vocab_size)
    before, after = tokenizer.surrounding_ids()
    start = files.special_id("decoder_start_token_id", vocab_size)
    special = SpecialIds(
        start=start[0] if start else None,
        ends=files.special_id("eos_token_id", vocab_size),
        before_prompt=before,
        before=before,
        after=after,
    )
    settings, template = files.settings(task), files.template()
    report_unused(files, task, (), sorted(about["unexpected_keys"]))
    backend = ModelBackend("transformers", _reason(kind, asked, refusal))
    return TransformersModel(name, files.folder, model, tokenizer, settings, special, backend, template=template)


def _reason(kind: str, asked: bool, refusal: FileError | None) -> str:
    if refusal is not None:
        return say("backend-refused", reason=refusal)
    return say("backend-asked") if asked else say("backend-other-family", found=kind)


def _checked(path: str, given: Mapping[str, Any], tensors: ShardedTensors) -> dict[str, Any]:
    """The keys of config.json without those that lead elsewhere. FileError for a number that no model has."""
    shapes = tensors.shapes
    elements = sum(map(prod, shapes.values()))
    for place, name, value in _numbers(given):
        if abs(value) > LARGEST_NUMBER:
            raise _number_error(path, place, value, f"≤ {LARGEST_NUMBER:,}")
        if _LAYERS.fullmatch(name) and not _ZEROES.search(name):
            most = min(MOST_LAYERS, len(shapes)) if "layer" in name or name == "depth" else elements
            if not (is_integer(value) and (0 <= value <= most)):
                raise _number_error(path, place, value, f"0, 1, … {most:,}")
        elif _SIZES.fullmatch(name) and not 0 <= value <= elements:
            raise _number_error(path, place, value, f"0, 1, … {elements:,}")
        elif "position" in name and value > MOST_POSITIONS:
            raise _number_error(path, place, value, f"≤ {MOST_POSITIONS:,}")
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"):
        if given.get(name) is not None and (not is_integer(given[name]) or given[name] < 1):
            raise _number_error(path, name, given[name], "1, 2, …")
    return dict(_cleaned(given))


def _number_error(path: str, name: str, value: Any, wanted: str) -> FileError:
    return FileError("config-key-value", path=path, name=name, value=repr(value)[:40], wanted=wanted)


def _numbers(tree: Any, place: str = "", name: str = "") -> Iterator[tuple[str, str, float]]:
    """Every number of a tree with its place and the key that it belongs to."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _numbers(value, f"{place}.{key}" if place else str(key), str(key))
    elif isinstance(tree, list):
        for value in tree:
            yield from _numbers(value, place, name)
    elif isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield place, name, tree


def _cleaned(tree: Any) -> Any:
    """The tree without keys that name code, kernels or other files; such keys are never followed."""
    if isinstance(tree, Mapping):
        return {
            key: _cleaned(value)
            for key, value in tree.items()
            if not (key.startswith("_") or "attn_implementation" in key or "experts_implementation" in key)
            and key not in _FOLLOWED
            and not key.endswith(("_plan", "quantization_config"))
        }
    return [_cleaned(value) for value in tree] if isinstance(tree, list) else tree


def _loader(package: Any, config: Any, path: str) -> tuple[Task, Any]:
    """The task of a model, and the class of `transformers` that loads it. FileError for one that reads no text."""
    names = getattr(config, "architectures", None) or [""]
    name = names[0] if isinstance(names, list) and isinstance(names[0], str) else ""
    base = _class_of(package.AutoModel, config)
    reads = "input_ids" if base is None else base.main_input_name
    writes_of_images = _class_of(package.AutoModelForImageTextToText, config)
    has_image = hasattr(config, "vision_config") or hasattr(config, "audio_config")
    if reads != "input_ids" or (has_image and writes_of_images is None):
        raise FileError("transformers-input", path=path, found=config.model_type, name=name or config.model_type)
    if config.is_encoder_decoder:
        return "translation", package.AutoModelForSeq2SeqLM
    if has_image and writes_of_images is not None:
        return "text", package.AutoModelForImageTextToText
    if name.endswith("ForMaskedLM"):
        return "encoding", package.AutoModelForMaskedLM
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "text", package.AutoModelForCausalLM
    return "encoding", package.AutoModel


def _class_of(loader: Any, config: Any) -> Any:
    """The class of a model that a loader builds for a config; None where it has none."""
    table = loader._model_mapping
    found = table[type(config)] if type(config) in table.keys() else None  # noqa: SIM118 - a lazy mapping
    return found[0] if isinstance(found, tuple) else found


def _check_size(loader: Any, config: Any, tensors: ShardedTensors, path: str) -> str:
    """Build the model without memory; its kind of attention. FileError where the files hold fewer numbers than it."""
    import torch

    made = _class_of(loader, config)
    attention = "sdpa" if getattr(made, "_supports_sdpa", False) else "eager"
    with torch.device("meta"):
        model = loader.from_config(config, attn_implementation=attention)
    wanted, found = sum(one.numel() for one in model.parameters()), sum(map(prod, tensors.shapes.values()))
    if wanted > 2 * found + SPARE:
        raise FileError("transformers-size", path=path, wanted=wanted, found=found)
    computed = sum(one.numel() * one.element_size() for one in model.buffers())
    if computed > max(LARGEST_BUFFERS, 4 * found):
        raise FileError("transformers-size", path=path, wanted=computed // 4, found=found)
    return attention


SENTENCE_PIECES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "source.spm")
"""Vocabularies that only another package reads."""


def _tokenizer(package: Any, files: HubFiles, vocab_size: int) -> Tokenizer | IdTokenizer:
    """The tokenizer of the folder; from a sentencepiece model by way of `transformers`."""
    found = read_tokenizer(files, vocab_size)
    if isinstance(found, Tokenizer) or not any(os.path.lexists(files.folder / name) for name in SENTENCE_PIECES):
        return found
    try:
        with quiet():
            return Tokenizer(package.AutoTokenizer.from_pretrained(files.folder, **_LOCAL).backend_tokenizer)
    except Exception as error:  # the package raises many kinds
        raise FileError("transformers-cannot", path=str(files.folder), reason=reason_of(error)) from error
