"""`convert`: a model in any format that `load` reads, written in Hugging Face's layout with its tokenizer."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from regard.checkpoints import read_model, write_hub_model
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.gguf_model import read_gguf
from regard.checkpoints.hub_folder import hub_settings, of_family
from regard.checkpoints.model_folder import Stored, file_in_folder, gguf_of, is_hub_folder
from regard.checkpoints.tensor_file import CONFIG
from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.output import write_bytes
from regard.language.hub_files import LARGEST_TOKENIZER_CONFIG, SETTINGS, TOKENIZER_CONFIG, GgufFiles, HubFiles
from regard.language.hub_files import read_tokenizer as read_tokenizer_of
from regard.language.loading import TOKENIZER, find_model
from regard.messages import Listed
from regard.text.tokenizer import LARGEST_FILE, Tokenizer

COPIED = (
    TOKENIZER,
    TOKENIZER_CONFIG,
    SETTINGS,
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "tokenizer.model",
    "spiece.model",
    "source.spm",
    "target.spm",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
"""The files beside the weights that a folder of the hub may have."""


class Converted(NamedTuple):
    """What was written."""

    family: str
    folder: Path
    files: tuple[str, ...]


def convert(source: str | os.PathLike[str], folder: str | os.PathLike[str], family: str | None = None) -> Converted:
    """Write a model in Hugging Face's layout: config.json, model.safetensors and its tokenizer.

    source   a GGUF file, a folder of the hub, a folder that this package wrote, or a bundled model's name
    family   the `model_type` to write a model of our own format as; by default the first that describes it

    Numbers are written as they are stored; quantised ones as float32. Raises FileError and ArgumentError.
    """
    found, target = find_model(source), Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArgumentError("convert-not-empty", path=str(target))
    if (file := gguf_of(found)) is not None:
        name = _from_gguf(file, target)
    elif is_hub_folder(found):
        name = _from_hub(found, target)
    else:
        name = _from_own(found, target, family)
    return Converted(name, target, tuple(sorted(path.name for path in target.iterdir())))


def _write(target: Path, family: str, stored: Stored, more: Mapping[str, Any]) -> None:
    tensors = stored.tensors
    dtypes = {name: dtype for name, dtype in tensors.dtypes.items() if dtype == "bfloat16"}
    write_hub_model(target, family, stored.config, tensors, dtypes=dtypes, more=more)


def _from_gguf(path: Path, target: Path) -> str:
    file, about, tensors = read_gguf(path)
    stored = Stored(*of_family(path, about, lambda: tensors))
    files = GgufFiles(path, about, file.metadata)
    assert stored.config.vocab_size is not None
    tokenizer = read_tokenizer_of(files, stored.config.vocab_size)
    ends = files.special_id("eos_token_id", stored.config.vocab_size)
    more = {name: value for name, value in about.items() if name.endswith("_token_id")}
    _write(target, about["model_type"], stored, more)
    if isinstance(tokenizer, Tokenizer):
        tokenizer.save(target / TOKENIZER)
        template = dict(files.tokenizer_config) | {"tokenizer_class": "PreTrainedTokenizerFast"}
        _write_json(target / TOKENIZER_CONFIG, {name: one for name, one in template.items() if one is not None})
    if ends:
        _write_json(target / SETTINGS, more | {"eos_token_id": list(ends) if len(ends) > 1 else ends[0]})
    return str(about["model_type"])


def _from_hub(source: Path, target: Path) -> str:
    """The weights under the usual names in one file; every other file as it is."""
    files, stored = HubFiles(source), read_model(source)
    family = str(files.config["model_type"])
    _write(target, family, stored, files.config)
    # The keys as their author wrote them: they describe the same model.
    write_bytes(target / CONFIG, read_file(source / CONFIG, most=LARGEST_TOKENIZER_CONFIG, within=source))
    _copy(source, target, COPIED)
    return family


def _from_own(source: Path, target: Path, family: str | None) -> str:
    stored = read_model(source)
    tokenizer = Tokenizer.read(file_in_folder(source, TOKENIZER)) if (source / TOKENIZER).exists() else None
    chosen = family_of(stored.config, source) if family is None else family
    marks = {} if tokenizer is None else {"bos": tokenizer.bos, "eos": tokenizer.eos, "pad": tokenizer.pad}
    more: dict[str, Any] = {f"{name}_token_id": number for name, number in marks.items() if number is not None}
    if stored.config.kind == "encoder-decoder" and "bos_token_id" in more:
        more["decoder_start_token_id"] = more["bos_token_id"]
    _write(target, chosen, stored, more)
    if tokenizer is not None:
        _copy(source, target, (TOKENIZER,))
        names = dict(zip(marks, tokenizer.raw_tokens(one or 0 for one in marks.values()), strict=True))
        about = {f"{name}_token": names[name] for name, number in marks.items() if number is not None}
        _write_json(target / TOKENIZER_CONFIG, about | {"tokenizer_class": "PreTrainedTokenizerFast"})
    return chosen


def family_of(config: TransformerConfig, path: Path) -> str:
    """The first family that describes a model exactly. FileError where none does."""
    reasons = []
    for name, family in FAMILIES.items():
        if family.settings is None:
            continue
        try:
            hub_settings(name, config)
        except (ArgumentError, AttributeError, TypeError, ValueError, KeyError) as error:
            reasons.append(str(error) if isinstance(error, ArgumentError) else name)
            continue
        return name
    raise FileError("convert-no-family", path=str(path), names=Listed(FAMILIES), reason=min(reasons, key=len))


def _copy(source: Path, target: Path, names: tuple[str, ...]) -> None:
    for name in names:
        if os.path.lexists(source / name):
            content = read_file(source / name, most=LARGEST_FILE, within=source)
            (target / name).parent.mkdir(exist_ok=True)
            write_bytes(target / name, content)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
