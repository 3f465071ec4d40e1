"""ShardedTensors: the tensors of a folder in Hugging Face's layout, from one safetensors file or from several.

model.safetensors.index.json names the file of each tensor. Only files of the folder itself are opened: a name with a
folder in it is refused. Independent of which tensors a model needs.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.axes import Shape
from regard.checkpoints.tensor_file import MOST_TENSORS, TensorFile
from regard.errors import FileError
from regard.files.input import UNLIMITED, check_file, read_file
from regard.files.json_and_toml import JsonError, parse_json
from regard.messages import Listed

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
LARGEST_INDEX = 2**25
MOST_SHARDS = 10_000
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.ckpt", "consolidated.00.pth")
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


def _absent(folder: Path) -> FileError:
    pickles = [name for name in PICKLES if os.path.lexists(folder / name)]
    if pickles:
        return FileError("weights-pickle", path=str(folder), found=Listed(pickles))
    return FileError("weights-absent", path=str(folder))
