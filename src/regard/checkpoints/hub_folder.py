"""Models in Hugging Face's layout: config.json with a `model_type`, and safetensors. Names and layouts become ours.

The table of a family says how. Everything is checked before a weight is read, and each weight is read on access.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.axes import Shape
from regard.checkpoints.families import FAMILIES, ConfigKeys, Place
from regard.checkpoints.gguf_model import GgufTensors
from regard.checkpoints.shards import ShardedTensors
from regard.checkpoints.tensor_file import DTYPES
from regard.config import TransformerConfig, from_tree, to_tree
from regard.config.weights import check_weights
from regard.errors import FileError, RegardError
from regard.messages import Listed

FLOATS = tuple(name for name in DTYPES if name.endswith(("16", "32", "64")))


HubTensors = ShardedTensors | GgufTensors


class HubWeights(Mapping[str, np.ndarray]):
    """The weights under our names, each read on access from the tensors of the folder."""

    def __init__(self, tensors: HubTensors, places: Mapping[str, Place]) -> None:
        self.path = tensors.path
        self._tensors, self._places = tensors, dict(places)

    def __getitem__(self, name: str) -> np.ndarray:
        place = self._places[name]
        found: np.ndarray = place.of(self._tensors[place.tensor])
        return found

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
        """All weights, copied into memory; in one dtype if given."""
        return {name: np.array(array, dtype or array.dtype, order="C") for name, array in self.items()}


def read_hub_model(folder: Path, about: Mapping[str, Any]) -> tuple[TransformerConfig, HubWeights, tuple[str, ...]]:
    """The config, the weights and the keys of config.json that are not used. `about` is its content.

    Raises FileError with the file, the place, the reason and the fix.
    """
    return of_family(folder / "config.json", about, lambda: ShardedTensors(folder))


def of_family(
    path: Path, about: Mapping[str, Any], open_tensors: Callable[[], HubTensors]
) -> tuple[TransformerConfig, HubWeights, tuple[str, ...]]:
    """The same for tensors of any kind of file, which are opened once the family is known; `path` is for messages."""
    kind = about.get("model_type")
    if not isinstance(kind, str):
        raise FileError("family-missing", path=str(path))
    if kind not in FAMILIES:
        raise FileError("family-unknown", path=str(path), found=kind[:80], names=Listed(FAMILIES))
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
        weights = HubWeights(tensors, family.places(tensors.shapes, config))
        check_weights(weights.shapes, config)
    except RegardError as error:
        raise FileError("model-weights", path=str(tensors.path), reason=error) from error
    for name, dtype in weights.dtypes.items():
        if dtype not in FLOATS:
            raise FileError(
                "model-tensor-dtype", path=str(tensors.path), tensor=name, found=dtype, choices=Listed(FLOATS)
            )
    return config, weights, unused
