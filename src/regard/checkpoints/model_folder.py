"""A model's folder: config.json says which Transformer, model.safetensors holds its weights. Nothing else is opened.

    config.json   {"format": "regard-model", "version": 1, "config": {…}}, where … is what `regard.config.to_tree` gives

Each file is written aside and renamed, so that a stopped write leaves the old one. Both are held against each other
before a number is read. A run's folder holds its model in a folder of its own. What runs the model, and how other
people's folders look, is not known here.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.arrays import Array
from regard.checkpoints.quantised import Weights, quantise
from regard.checkpoints.strict_json import JsonError, parse
from regard.checkpoints.tensor_file import check_dtypes, write_tensors
from regard.config import TransformerConfig, from_tree, to_tree
from regard.config.weights import check_weights
from regard.errors import FileError, RegardError
from regard.files.formats import refuse_other_file
from regard.files.input import UNLIMITED, check_file, check_inside, read_file
from regard.files.output import refusal, write_aside

FORMAT, VERSION = "regard-model", 1
CONFIG, TENSORS = "config.json", "model.safetensors"
LARGEST_CONFIG = 2**20
RUN_MODEL, RUN_RECIPE = "model", "recipe.toml"
"""What a run's folder is known by."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A model as it lies on disk: `tensors` by name, each read when it is asked for; `tensors.arrays()` for all."""

    config: TransformerConfig
    tensors: Weights


def save_model(
    folder: str | os.PathLike[str], config: TransformerConfig, tensors: Mapping[str, Array], *, int8: bool = False
) -> None:
    """Write a model: its config, and its weights by name, NumPy or torch, each in the dtype it has.

    int8   large matrices as whole numbers with a scale for each row (`quantised.py`): a quarter of float32's size

    The folder is made where there is none. Raises before anything is written where weights are missing, unexpected, of
    another shape or no floating-point numbers; FileError where the disk refuses.
    """
    check_dtypes(tensors)
    check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, config)
    tensors = quantise(tensors) if int8 else tensors
    tree = to_tree(config)
    from_tree(tree)  # what could not be read again is not written
    about = {"format": FORMAT, "version": VERSION, "config": tree}
    text = json.dumps(about, indent=2, allow_nan=False) + "\n"
    if not str(folder):
        raise FileError("model-no-name")
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise FileError("model-not-folder", path=str(target))
    if not target.parent.is_dir():
        raise FileError("file-no-folder", path=str(target), folder=str(target.parent))
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise refusal(error, target, 0) from error

    def numbers(aside: Path) -> None:
        with aside.open("wb") as file:
            write_tensors(file, tensors)

    write_aside(target / TENSORS, numbers, need=sum(tensor.nbytes for tensor in tensors.values()))
    write_aside(target / CONFIG, lambda aside: aside.write_bytes(text.encode()), need=len(text))


def read_model(folder: str | os.PathLike[str]) -> Stored:
    """The model that `save_model` wrote. Raises FileError with what was found and what to do, before a weight is read.

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
    if not source.is_dir():
        raise FileError("model-not-folder" if source.exists() else "model-no-folder", path=str(source))
    config = _config(inside(source, CONFIG))
    tensors = Weights(inside(source, TENSORS))
    try:
        check_weights(tensors.shapes, config)
    except RegardError as error:
        raise FileError("model-weights", path=str(tensors.path), reason=error) from error
    return Stored(config, tensors)


def model_of(folder: Path) -> Path:
    """The folder itself, or of a run the one that holds its model. FileError where the run has not finished."""
    if not os.path.lexists(folder / RUN_RECIPE):
        return folder
    if not (folder / RUN_MODEL).is_dir():
        raise FileError("evaluate-unfinished", path=str(folder))
    check_inside(folder / RUN_MODEL, folder)
    return folder / RUN_MODEL


def run_of(folder: Path) -> Path | None:
    """The run that a folder is, or whose model it is; None for a model that stands alone."""
    if os.path.lexists(folder / RUN_RECIPE):
        return folder
    place = folder.resolve()
    return place.parent if place.name == RUN_MODEL and os.path.lexists(place.parent / RUN_RECIPE) else None


def inside(folder: Path, name: str) -> Path:
    """A regular file of the folder; FileError where a link leads out of it, or there is no such file."""
    path = folder / name
    check_file(path, most=UNLIMITED, within=folder)
    return path


def _config(path: Path) -> TransformerConfig:
    about = read_json(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("model-not-ours", path=str(path))
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise FileError("model-garbled", path=str(path), place="version")
    if version > VERSION:
        raise FileError("model-newer", path=str(path), found=version, known=VERSION)
    if set(about) != {"format", "version", "config"}:
        raise FileError("model-garbled", path=str(path), place=", ".join(sorted(about))[:80])
    try:
        return from_tree(about["config"])
    except RegardError as error:
        raise FileError("model-config", path=str(path), reason=error) from error


def read_json(path: Path) -> Any:
    """What a small JSON file of the folder holds, read strictly."""
    try:
        refuse_other_file(path, "json")
        return parse(read_file(path, most=LARGEST_CONFIG))
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=str(error)) from error
