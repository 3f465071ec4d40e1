"""The model folder: config.json holds the model's configuration, model.safetensors its weights.

    config.json   {"format": "regard-model", "version": 1, "config": {…}}, where … is from `regard.config.to_tree`

No other file is opened. Each file is written atomically. The weights are checked against the configuration before any
is read. A run folder holds its model in a subfolder. A config.json with a `model_type` is in Hugging Face's layout,
which `hub_folder` reads. Independent of model code.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.arrays import Array
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.gguf_file import is_gguf
from regard.checkpoints.gguf_model import read_gguf
from regard.checkpoints.hub_folder import ADAPTER, HubWeights, adapter_error, of_family, read_hub_model
from regard.checkpoints.tensor_file import CONFIG, TENSORS, Weights, check_dtypes, quantise, write_model_files
from regard.config import RecurrentConfig, TransformerConfig, from_tree, recurrent_from_tree, to_tree
from regard.config.weights import ModelConfig, check_weights
from regard.errors import FileError, RegardError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.safe_open import UNLIMITED, check_file, check_file_format, check_inside, read_file
from regard.messages import Listed

FORMAT, VERSION = "regard-model", 1
LARGEST_CONFIG, DEEPEST_CONFIG = 2**20, 64
RUN_MODEL, RUN_RECIPE = "model", "recipe.toml"
"""A run folder's subfolder with the model, and the file that marks a run folder."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A model on disk: `tensors` by name, each read on access; `tensors.arrays()` reads all."""

    config: TransformerConfig
    tensors: Weights | HubWeights
    unused: tuple[str, ...] = ()
    """Keys of a config.json in Hugging Face's layout that change nothing here."""
    other_tasks: tuple[str, ...] = ()
    """Tensors of an output layer for another task, such as a classifier: they are not used."""


def save_model(
    folder: str | os.PathLike[str], config: ModelConfig, tensors: Mapping[str, Array], *, int8: bool = False
) -> None:
    """Write a model: its config, and its weights by name, NumPy or torch, each in the dtype it has.

    int8   store large matrices as 8-bit integers with a scale per row (`quantise`): a quarter of float32's size

    The folder is created if missing. Raises before anything is written if weights are missing, unexpected, of another
    shape or not floating-point; FileError if writing fails.
    """
    check_dtypes(tensors)
    check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, config)
    tensors = quantise(tensors) if int8 else tensors
    tree = to_tree(config)
    _config_from_tree(tree)  # never write a config that cannot be read
    about = {"format": FORMAT, "version": VERSION, "config": tree}
    text = json.dumps(about, indent=2, allow_nan=False) + "\n"
    write_model_files(folder, text, tensors)


def read_model(folder: str | os.PathLike[str]) -> Stored:
    """A model that `save_model` wrote, one in Hugging Face's layout, or one in a GGUF file.

    Raises FileError for an invalid folder or file, before any weight is read.

    >>> import numpy as np, tempfile
    >>> from regard.config.weights import weight_shapes
    >>> config = TransformerConfig.gpt2(vocab_size=9, d_model=4, n_heads=2, d_ff=8, n_layers=1, max_len=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(folder, config, {name: np.ones(shape) for name, shape in weight_shapes(config).items()})
    ...     stored = read_model(folder)
    >>> stored.config == config, stored.tensors["embedding.weight"].shape
    (True, (9, 4))
    """
    source = Path(folder)
    if (file := gguf_of(source)) is not None:
        _, described, found = read_gguf(file)
        return Stored(*of_family(file, described, lambda: found))
    about = _about(source)
    if is_hub_folder(source):
        return Stored(*read_hub_model(source, about))
    config, tensors = _read(source, about)
    if isinstance(config, RecurrentConfig):
        raise FileError("model-recurrent", path=str(folder), cell=config.cell)
    return Stored(config, tensors)


def read_recurrent(folder: str | os.PathLike[str]) -> tuple[RecurrentConfig, Weights]:
    """The config and the weights of a recurrent model that `save_model` wrote. FileError for any other model."""
    config, tensors = _read(Path(folder), _about(Path(folder)))
    if not isinstance(config, RecurrentConfig):
        raise FileError("model-not-recurrent", path=str(folder))
    return config, tensors


def is_recurrent(folder: str | os.PathLike[str]) -> bool:
    """Whether a model folder holds a recurrent model. FileError for an invalid folder."""
    source = Path(folder)
    return not is_hub_folder(source) and isinstance(_read(source, _about(source))[0], RecurrentConfig)


def is_hub_folder(folder: Path) -> bool:
    """Whether config.json is in Hugging Face's layout: it has a `model_type` and not our `format`."""
    about = _about(folder)
    return isinstance(about, dict) and "format" not in about and "model_type" in about


def gguf_of(source: Path) -> Path | None:
    """The GGUF file: the source itself, or the only one of a folder without a config.json. None for other sources."""
    if is_gguf(source):
        return source
    if not source.is_dir() or os.path.lexists(source / CONFIG):
        return None
    found = sorted(one.name for one in source.iterdir() if is_gguf(one))
    if len(found) > 1:
        raise FileError("gguf-several", path=str(source), count=len(found), names=Listed.few(found))
    return file_in_folder(source, found[0]) if found else None


def is_known_family(about: Mapping[str, Any]) -> bool:
    """Whether our Transformer computes models of this config.json."""
    kind = about.get("model_type")
    return isinstance(kind, str) and kind in FAMILIES


def _about(source: Path) -> Any:
    """The content of config.json."""
    if not source.is_dir():
        key = "model-file" if source.exists() else "model-no-folder"
        raise FileError(key, path=str(source), folder=str(source.parent))
    if not os.path.lexists(source / CONFIG):
        raise _without_config(source)
    return read_json(file_in_folder(source, CONFIG))


def _without_config(source: Path) -> FileError:
    """The error for a folder without config.json: what it is instead, or where the model is."""
    if os.path.lexists(source / ADAPTER):
        return adapter_error(source)
    found = sorted(one.name for one in source.iterdir() if os.path.lexists(one / CONFIG))
    if found:
        return FileError("model-in-subfolder", path=str(source), names=Listed.few(found))
    return FileError("model-no-config", path=str(source))


def _read(source: Path, about: Any) -> tuple[ModelConfig, Weights]:
    """The config and the weights of our format, checked against each other."""
    config = _config(source / CONFIG, about)
    tensors = Weights(file_in_folder(source, TENSORS))
    try:
        check_weights(tensors.shapes, config)
    except RegardError as error:
        raise FileError("model-weights", path=str(tensors.path), reason=error) from error
    return config, tensors


def model_folder_of(folder: Path) -> Path:
    """The model folder: for a run folder its subfolder, else the folder itself. FileError for an unfinished run."""
    if not os.path.lexists(folder / RUN_RECIPE):
        return folder
    if not (folder / RUN_MODEL).is_dir():
        raise FileError("evaluate-unfinished", path=str(folder))
    check_inside(folder / RUN_MODEL, folder)
    return folder / RUN_MODEL


def run_folder_of(folder: Path) -> Path | None:
    """The run folder of a run folder or of its model folder; None for a model without a run."""
    if os.path.lexists(folder / RUN_RECIPE):
        return folder
    place = folder.resolve()
    return place.parent if place.name == RUN_MODEL and os.path.lexists(place.parent / RUN_RECIPE) else None


def file_in_folder(folder: Path, name: str) -> Path:
    """The path of a regular file in the folder. FileError if it is missing or a link out of the folder."""
    path = folder / name
    check_file(path, most=UNLIMITED, within=folder)
    return path


def _config(path: Path, about: Any) -> ModelConfig:
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        is_other = isinstance(about, dict) and "format" not in about
        raise FileError("family-missing" if is_other else "model-not-ours", path=str(path))
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise FileError("model-garbled", path=str(path), place="version")
    if version > VERSION:
        raise FileError("model-newer", path=str(path), found=version, known=VERSION)
    if set(about) != {"format", "version", "config"}:
        raise FileError("model-garbled", path=str(path), place=", ".join(sorted(about))[:80])
    try:
        return _config_from_tree(about["config"])
    except RegardError as error:
        raise FileError("model-config", path=str(path), reason=error) from error


def _config_from_tree(tree: Any) -> ModelConfig:
    """The config of either kind: only recurrent models have a cell."""
    is_cell = isinstance(tree, dict) and "cell" in tree
    return recurrent_from_tree(tree) if is_cell else from_tree(tree)


def read_json(path: Path, most: int = LARGEST_CONFIG) -> Any:
    """The value of a small JSON file of the folder, parsed strictly."""
    try:
        check_file_format(path, "json")
        return parse_json(read_file(path, most=most), deepest=DEEPEST_CONFIG)
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=str(error)) from error
