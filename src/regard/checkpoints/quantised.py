"""Weights as eight-bit whole numbers: a matrix X is written as X, I8, and X.scale, one float32 for each row.

    x ≈ n · scale,  n = round(x / scale) from −127 to 127,  scale = the row's largest |x| / 127

so that no weight is off by more than half a scale. Who reads a model sees neither: `Weights` gives float32 under X's
own name. Which tensors a model needs is not known here.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from regard.arrays import Array, to_numpy
from regard.axes import Shape
from regard.checkpoints.tensor_file import TensorFile
from regard.errors import DtypeError, FileError

STEPS = 127
SCALE = ".scale"
LARGE = 4096
"""A matrix of fewer numbers stays as it is: next to nothing would be saved."""


def quantise(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The same weights with each large matrix as two tensors, whole numbers and scales; the others as they are.

    DtypeError where a number is not finite, or so large that no float32 is its scale.

    >>> found = quantise({"W": np.tile([[254.0, -100.0]], (2, 1024)), "b": np.ones(3)})
    >>> found["W"].dtype.name, found["W"][0, :2].tolist(), found["W.scale"].tolist(), sorted(found)
    ('int8', [127, -50], [2.0, 2.0], ['W', 'W.scale', 'b'])
    """
    found: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if len(tensor.shape) != 2 or tensor.shape[0] * tensor.shape[1] < LARGE:
            found[name] = tensor
            continue
        exact = to_numpy(tensor).astype(np.float64)
        with np.errstate(over="ignore"):
            scale = (np.abs(exact).max(1) / STEPS).astype(np.float32)
        if not np.isfinite(scale).all():
            raise DtypeError("quantise-not-finite", name=name)
        # A row of zeros has scale 0, and so may one of numbers below float32's; in both, 0 is the nearest.
        steps = np.divide(exact, scale[:, None], out=np.zeros_like(exact), where=scale[:, None] > 0)
        found[name] = steps.round().clip(-STEPS, STEPS).astype(np.int8)
        found[name + SCALE] = scale
    return found


class Weights(TensorFile):
    """The weights of a file by name: where any are whole numbers with a scale, all come as float32.

    Raises FileError where a matrix lacks its scale, or the scale does not fit it or is no scale.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        stored, shapes = super().dtypes, super().shapes
        self._whole = {name for name, dtype in stored.items() if dtype == "int8"}
        for name in sorted(self._whole):
            scale, shape = name + SCALE, shapes[name]
            if len(shape) != 2 or stored.get(scale) != "float32" or shapes[scale] != shape[:1]:
                raise FileError("model-garbled", path=str(path), place=scale)
            values = super().__getitem__(scale)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise FileError("model-garbled", path=str(path), place=scale)
        scales = {name + SCALE for name in self._whole}
        self._names = {name: None for name in stored if name not in scales}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        tensor = super().__getitem__(name)
        if name in self._whole:
            return np.multiply(tensor, super().__getitem__(name + SCALE)[:, None], dtype=np.float32)
        return tensor.astype(np.float32, copy=False) if self._whole else tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Read off the header; no weight is touched."""
        found = super().shapes
        return {name: found[name] for name in self._names}

    @property
    def dtypes(self) -> dict[str, str]:
        """What each weight comes as."""
        found = super().dtypes
        return {name: "float32" if self._whole else found[name] for name in self._names}

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All of them, read now into memory of their own; in one dtype if given."""
        # What was multiplied is memory of its own already.
        return {name: np.array(x, dtype, copy=None if name in self._whole else True) for name, x in self.items()}
