"""Weights as 8-bit integers: matrix X is stored as int8 with a float32 scale for each row, X.scale.

    x ≈ n · scale,  n = round(x / scale) from −127 to 127,  scale = the row's largest |x| / 127

The error of a weight is at most half a scale. `Weights` hides this: it returns float32 under the name X. Independent
of which tensors a model needs.
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
"""Smaller matrices, with fewer numbers, are not quantised: it would save almost nothing."""


def quantise(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The weights with each large matrix replaced by int8 numbers and scales; the others are unchanged.

    Raises DtypeError if a number is not finite, or if its scale overflows float32.

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
        # A row of zeros has scale 0, and so may a row of numbers too small for float32; 0 is nearest in both.
        steps = np.divide(exact, scale[:, None], out=np.zeros_like(exact), where=scale[:, None] > 0)
        found[name] = steps.round().clip(-STEPS, STEPS).astype(np.int8)
        found[name + SCALE] = scale
    return found


class Weights(TensorFile):
    """The weights of a file by name. If any are quantised, all are returned as float32.

    Raises FileError if a quantised matrix has no valid scale.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        stored, shapes = super().dtypes, super().shapes
        self._quantised = {name for name, dtype in stored.items() if dtype == "int8"}
        for name in sorted(self._quantised):
            scale, shape = name + SCALE, shapes[name]
            if len(shape) != 2 or stored.get(scale) != "float32" or shapes[scale] != shape[:1]:
                raise FileError("model-garbled", path=str(path), place=scale)
            values = super().__getitem__(scale)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise FileError("model-garbled", path=str(path), place=scale)
        scales = {name + SCALE for name in self._quantised}
        self._names = {name: None for name in stored if name not in scales}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        tensor = super().__getitem__(name)
        if name in self._quantised:
            return np.multiply(tensor, super().__getitem__(name + SCALE)[:, None], dtype=np.float32)
        return tensor.astype(np.float32, copy=False) if self._quantised else tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the header; no weight is read."""
        found = super().shapes
        return {name: found[name] for name in self._names}

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtype in which each weight is returned."""
        found = super().dtypes
        return {name: "float32" if self._quantised else found[name] for name in self._names}

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All weights, copied into memory; in one dtype if given."""
        # A dequantised weight is a new array already.
        return {name: np.array(x, dtype, copy=None if name in self._quantised else True) for name, x in self.items()}
