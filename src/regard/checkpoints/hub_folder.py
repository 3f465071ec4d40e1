"""Models in Hugging Face's layout, read and written: config.json with a `model_type`, and safetensors.

The table of a family says how their names and layouts become ours, and ours theirs. Everything is checked before a
weight is read, and each weight is read on access. What is written is read again first: a model that the family does
not describe exactly is refused, and nothing is written.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np

from regard.arrays import Array, to_numpy
from regard.axes import Shape
from regard.checkpoints.families import FAMILIES, ConfigKeys, TensorPlace
from regard.checkpoints.families.family import Family, Target
from regard.checkpoints.gguf_model import GgufTensors
from regard.checkpoints.tensor_file import CONFIG, DTYPES, MOST_TENSORS, TensorFile, check_dtypes, write_model_files
from regard.config import TransformerConfig, from_tree, to_tree
from regard.config.weights import check_weights, weight_shapes
from regard.errors import ArgumentError, FileError, RegardError, UnknownNameError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.safe_open import UNLIMITED, check_file, read_file
from regard.messages import Listed

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
LARGEST_INDEX = 2**25
MOST_SHARDS = 10_000
ADAPTER, LARGEST_ADAPTER = "adapter_config.json", 2**20
QUANTISED = ("quantize_config.json", "quant_config.json")
"""Files beside the weights of GPTQ and AWQ that say how they are packed."""
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.ckpt", "consolidated.00.pth")
WEIGHT_ENDINGS = (
    ".safetensors",
    ".gguf",
    ".h5",
    ".msgpack",
    ".onnx",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".npz",
    ".incomplete",
)
"""Of files with weights that are not where `transformers` has them."""
_SHARD_NUMBER = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_SHARD_NAME = re.compile(r"(?!(?i:con|prn|aux|nul|com\d|lpt\d)\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.safetensors")
"""A file name in any system: no folder, no drive, no device of Windows."""


class ShardedTensors(Mapping[str, np.ndarray]):
    """The tensors by name, each read on access. Raises FileError for an invalid folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        if os.path.lexists(folder / WHOLE):
            self._files = [self._open(WHOLE)]
            self._where = dict.fromkeys(self._files[0], 0)
        elif os.path.lexists(folder / INDEX):
            self._read_index(_weight_map(folder / INDEX))
        else:
            raise _absent(folder)
        packed = next((name for name in self._where if name.endswith(".qweight")), None)
        if packed is not None:
            raise FileError("weights-quantised", path=str(folder), found=packed[:80])

    def _open(self, name: str) -> TensorFile:
        check_file(self.path / name, most=UNLIMITED, within=self.path)
        return TensorFile(self.path / name, others=True)

    def _read_index(self, weight_map: Mapping[str, str]) -> None:
        index = self.path / INDEX
        shards = sorted(set(weight_map.values()))
        absent = [name for name in shards if not os.path.lexists(self.path / name)]
        if absent:
            raise FileError("index-shard-absent", path=str(index), count=len(absent), found=absent[0])
        self._files = [self._open(name) for name in shards]
        numbers = {name: number for number, name in enumerate(shards)}
        self._where = {tensor: numbers[shard] for tensor, shard in weight_map.items()}
        for tensor, number in self._where.items():
            if tensor not in self._files[number]:
                raise FileError("index-tensor", path=str(index), tensor=tensor[:80], shard=shards[number])
        for number, file in enumerate(self._files):
            strange = [tensor for tensor in file if self._where.get(tensor) != number]
            if strange:
                raise FileError("index-tensor", path=str(index), tensor=strange[0][:80], shard=shards[number])

    def __getitem__(self, name: str) -> np.ndarray:
        return self._files[self._where[name]][name]

    def raw(self, name: str) -> np.ndarray:
        """A tensor as it is stored, bfloat16 as uint16; writing to it does not change the file."""
        return self._files[self._where[name]].raw(name)

    def release(self, name: str) -> None:
        """Free the memory that reading a tensor took; it is read again on access."""
        self._files[self._where[name]].release(name)

    def __contains__(self, name: object) -> bool:
        return name in self._where  # Mapping would read the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the headers; no data is read."""
        found = [file.shapes for file in self._files]
        return {name: found[number][name] for name, number in self._where.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """The stored dtype of each tensor."""
        found = [file.dtypes for file in self._files]
        return {name: found[number][name] for name, number in self._where.items()}


def _weight_map(path: Path) -> dict[str, str]:
    """The file of each tensor, from an index whose names are checked."""
    try:
        about: Any = parse_json(read_file(path, most=LARGEST_INDEX, within=path.parent))
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=str(error)) from error
    found = about.get("weight_map") if isinstance(about, dict) else None
    if not isinstance(found, dict) or not found or len(found) > MOST_TENSORS:
        raise FileError("model-garbled", path=str(path), place="weight_map")
    for shard in found.values():
        if not isinstance(shard, str) or not _SHARD_NAME.fullmatch(shard):
            raise FileError("index-shard-name", path=str(path), found=str(shard)[:80])
    if len(set(found.values())) > MOST_SHARDS:
        raise FileError("model-garbled", path=str(path), place="weight_map")
    return found


def adapter_error(folder: Path) -> FileError:
    """The error for a folder with only the changes of a model by peft; the name of that model is data, never a path."""
    content = read_file(folder / ADAPTER, most=LARGEST_ADAPTER, within=folder)
    try:
        about: Any = parse_json(content)
    except JsonError as error:
        return FileError("model-garbled", path=str(folder / ADAPTER), place=str(error))
    base = about.get("base_model_name_or_path") if isinstance(about, dict) else None
    return FileError("weights-adapter", path=str(folder), base=str(base)[:80])


def _absent(folder: Path) -> FileError:
    if os.path.lexists(folder / ADAPTER):
        return adapter_error(folder)
    quantised = next((name for name in QUANTISED if os.path.lexists(folder / name)), None)
    if quantised is not None:
        return FileError("weights-quantised", path=str(folder), found=quantised)
    pickles = [name for name in PICKLES if os.path.lexists(folder / name)]
    if pickles:
        return FileError("weights-pickle", path=str(folder), found=Listed(pickles))
    others = sorted(one.name for one in folder.iterdir() if one.name.endswith(WEIGHT_ENDINGS))
    if others:
        is_shard = any(_SHARD_NUMBER.search(name) for name in others)
        key = "weights-without-index" if is_shard else "weights-other"
        return FileError(key, path=str(folder), names=Listed.few(others))
    return FileError("weights-absent", path=str(folder))


# --- reading ---------------------------------------------------------------------------------------------

FLOATS = tuple(name for name in DTYPES if name.endswith(("16", "32", "64")))
HubTensors = ShardedTensors | GgufTensors


class HubWeights(Mapping[str, np.ndarray]):
    """The weights under our names, each read on access from the tensors of the folder."""

    def __init__(self, tensors: HubTensors, places: Mapping[str, TensorPlace]) -> None:
        self.path = tensors.path
        self._tensors, self._places = tensors, dict(places)

    def __getitem__(self, name: str) -> np.ndarray:
        place = self._places[name]
        found: np.ndarray = place.of(self._tensors[place.tensor])
        return found

    def raw(self, name: str) -> np.ndarray:
        """A weight as it is stored, bfloat16 as uint16; writing to it does not change the file."""
        place = self._places[name]
        found: np.ndarray = place.of(self._tensors.raw(place.tensor))
        if place.rows is not None and isinstance(self._tensors, GgufTensors):
            return found.copy()  # the view would keep all rows of a dequantised tensor in memory
        return found

    def release(self, name: str) -> None:
        """Free the memory that reading a weight took; it is read again on access."""
        self._tensors.release(self._places[name].tensor)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the headers; no weight is read."""
        found = self._tensors.shapes
        return {name: place.shape_of(found[place.tensor]) for name, place in self._places.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtype in which each weight is stored."""
        found = self._tensors.dtypes
        return {name: found[place.tensor] for name, place in self._places.items()}

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All weights, copied into memory one after the other; in one dtype if given."""
        found = {}
        for name, array in self.items():
            found[name] = np.array(array, dtype or array.dtype, order="C")
            self.release(name)
        return found


Described = tuple[TransformerConfig, HubWeights, tuple[str, ...], tuple[str, ...]]
"""The config, the weights, the keys of config.json that are not used, and the tensors of other tasks."""


def read_hub_model(folder: Path, about: Mapping[str, Any]) -> Described:
    """A model in Hugging Face's layout; `about` is the content of its config.json.

    Raises FileError with the file, the place, the reason and the fix.
    """
    return of_family(folder / CONFIG, about, lambda: ShardedTensors(folder))


def check_not_quantised(path: Path, about: Mapping[str, Any]) -> None:
    """FileError for weights that another package packed: those of GPTQ, AWQ, bitsandbytes and the like."""
    found = about.get("quantization_config")
    if found is not None:
        method = found.get("quant_method") if isinstance(found, dict) else None
        raise FileError("config-quantised", path=str(path), method=shortened(method))


def of_family(path: Path, about: Mapping[str, Any], open_tensors: Callable[[], HubTensors]) -> Described:
    """The same for tensors of any kind of file, which are opened once the family is known; `path` is for messages."""
    kind = about.get("model_type")
    if not isinstance(kind, str):
        raise FileError("family-missing", path=str(path))
    if kind not in FAMILIES:
        raise FileError("family-unknown", path=str(path), found=kind[:80], names=Listed(FAMILIES))
    check_not_quantised(path, about)
    family, tensors = FAMILIES[kind], open_tensors()
    keys = ConfigKeys(path, about, frozenset(tensors))
    try:
        config = family.config(keys)
        from_tree(to_tree(config))  # refuses sizes that no model has
        unused = keys.unused()
    except FileError:
        raise
    except RegardError as error:
        numbers = Listed(f"{name} = {value}" for name, value in keys.numbers.items())
        raise FileError("config-numbers", path=str(path), reason=error, numbers=numbers) from error
    try:
        config = _untied_if_different(family, config, tensors)
        weights = HubWeights(tensors, family.places(tensors.shapes, config))
        check_weights(weights.shapes, config)
    except RegardError as error:
        raise FileError("model-weights", path=str(tensors.path), reason=error) from error
    for name, dtype in weights.dtypes.items():
        if dtype not in FLOATS:
            raise FileError(
                "model-tensor-dtype", path=str(tensors.path), tensor=name, found=dtype, choices=Listed(FLOATS)
            )
    return config, weights, unused, family.unused(tensors)


def _untied_if_different(family: Family, config: TransformerConfig, tensors: HubTensors) -> TransformerConfig:
    """The config without a tied output, where the files hold another table for it; as transformers 5 decides.

    Raises UnknownNameError where they hold several different tables of embeddings, which our model does not have.
    """
    tables = family.tables(tensors.shapes, config)
    if not tables["embedding"]:  # they may hold the table under the name of the output only
        return config
    first, *others = tables["embedding"]
    if any(not _is_same(tensors, first, one) for one in others):
        raise UnknownNameError("weights-tables", names=Listed(tables["embedding"]))
    if config.output is None or all(_is_same(tensors, first, one) for one in tables.get("output", ())):
        return config
    return replace(config, output=replace(config.output, tied=False))


def _is_same(tensors: HubTensors, one: str, other: str) -> bool:
    """Whether two tensors hold the same numbers; the memory of reading them is freed."""
    if tensors.shapes[one] != tensors.shapes[other] or tensors.dtypes[one] not in FLOATS:
        return tensors.shapes[one] != tensors.shapes[other]  # a wrong shape or dtype has its own error
    found = bool(np.array_equal(tensors.raw(one), tensors.raw(other)))
    for name in (one, other):
        tensors.release(name)
    return found


# --- writing ---------------------------------------------------------------------------------------------

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
    elif family == "t5":
        found["architectures"] = ["T5EncoderModel"]
    _check_same(family, config, _read_again(family, found, config))
    return found


def _read_again(family: str, settings: dict[str, Any], config: TransformerConfig) -> TransformerConfig:
    try:
        tensors = frozenset(_sources(family, config))
        return FAMILIES[family].config(ConfigKeys(Path(CONFIG), settings, tensors))
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
