"""Int8Weight: a matrix of weights as 8-bit integers with a scale for each row, and products with it.

The numbers are those of `checkpoints.quantise`: W ≈ n · scale, n from −127 to 127. A step of decoding reads every
weight once, so that a quarter of the bytes takes about a quarter of the time. Only weights are rounded: products and
sums are float32. On a CPU the product of a few rows is a function of `decoding.cpp`, which is compiled at first use and
kept in the user's cache; without a C++ compiler, PyTorch's operators compute the same numbers more slowly.
"""

import ctypes
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import which

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import DtypeError, FileError
from regard.files.safe_open import read_file

STEPS = 127
MAX_ROWS = 16
"""The largest number of rows of x for which the compiled product was measured to be faster."""
SOURCE = Path(__file__).with_name("decoding.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC")
COMPILERS = ("c++", "g++", "clang++")
LONGEST_COMPILATION = 120
"""Seconds; it takes about one."""


class Int8Weight(nn.Module):
    """A weight (m, n) as `numbers` (int8) and `scale` (m,); in place of the `weight` of a layer.

    >>> weight = Int8Weight.of(torch.tensor([[254.0, -100.0], [0.0, 0.0]]))
    >>> weight.numbers.tolist(), weight.scale.tolist()
    ([[127, -50], [0, 0]], [2.0, 0.0])
    >>> weight.product(torch.tensor([[1.0, 1.0]])), weight.rows(torch.tensor([0]))
    (tensor([[154.,   0.]]), tensor([[ 254., -100.]]))
    """

    numbers: Tensor
    scale: Tensor

    def __init__(self, numbers: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("numbers", numbers)
        self.register_buffer("scale", scale)

    @classmethod
    def of(cls, weight: Tensor, name: str = "weight") -> "Int8Weight":
        """The weight, rounded. DtypeError if a number is not finite."""
        return cls(*quantised(weight, name))

    @property
    def shape(self) -> torch.Size:
        """(m, n), as of the weight."""
        return self.numbers.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its products."""
        return self.scale.dtype

    def dequantised(self) -> Tensor:
        """The weight as floating-point numbers."""
        return self.numbers.to(self.scale.dtype) * self.scale[:, None]

    def rows(self, ids: Tensor) -> Tensor:
        """Rows by number, as an embedding has them."""
        return F.embedding(ids, self.numbers).to(self.scale.dtype) * self.scale[ids][..., None]

    def product(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """x (…, n) Wᵀ + b: (…, m)."""
        if torch.compiler.is_compiling() and x.numel() == x.shape[-1]:
            out = (self.numbers.to(x.dtype) * x.reshape(-1)).sum(-1)  # inductor reads the integers in one loop
            out = (out * self.scale).reshape(*x.shape[:-1], -1)
        elif (kernel := self._kernel(x)) is not None:
            out = kernel(x, self.numbers, self.scale)
        else:
            out = F.linear(x, self.numbers.to(x.dtype)) * self.scale
        return out if bias is None else out + bias

    def _kernel(self, x: Tensor) -> "Kernel | None":
        """The compiled product where it can be used: few rows of float32 on a CPU, without gradients or tracing."""
        if (
            x.is_cpu
            and 0 < x.numel() <= MAX_ROWS * x.shape[-1]
            and x.dtype == self.scale.dtype == torch.float32
            and not torch.is_grad_enabled()
            and not torch.compiler.is_compiling()
        ):
            return compiled_rows()
        return None


def quantised(weight: Tensor, name: str = "weight") -> tuple[Tensor, Tensor]:
    """The integers and the scale of each row: `checkpoints.quantise` for tensors. DtypeError if one is not finite."""
    scale = (weight.abs().amax(1).double() / STEPS).float()
    if not torch.isfinite(scale).all():
        raise DtypeError("quantise-not-finite", name=name)
    divisor = torch.where(scale > 0, scale, torch.inf)[:, None]  # a row of zeros stays zero
    return (weight / divisor).round_().clamp_(-STEPS, STEPS).to(torch.int8), scale


Kernel = Callable[[Tensor, Tensor, Tensor], Tensor]


@cache
def compiled_rows() -> Kernel | None:
    """The product of `decoding.cpp`; None where there is no C++ compiler."""
    library = compiled_library()
    if library is None:
        return None
    function = library.int8_rows
    function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3 + [ctypes.c_int]
    function.restype = None

    def rows(x: Tensor, numbers: Tensor, scale: Tensor) -> Tensor:
        m, n = numbers.shape
        x = x.contiguous()
        out = x.new_empty(*x.shape[:-1], m)
        pointers = (x.data_ptr(), numbers.data_ptr(), scale.data_ptr(), out.data_ptr())
        function(*pointers, x.numel() // n, m, n, torch.get_num_threads())
        return out

    return rows


@cache
def compiled_library(source: Path = SOURCE) -> ctypes.CDLL | None:
    """The functions of a C++ file, for this processor; None where there is no C++ compiler.

    Not by PyTorch's inductor: importing it takes longer than compiling, and than reading a small model. `torch` is
    imported before, so that both use the same threads of OpenMP.
    """
    names = (os.environ.get("CXX", ""), *COMPILERS)
    compiler = next((found for name in names if name and (found := which(name))), None)
    if compiler is None:
        return None
    try:
        cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return ctypes.CDLL(str(_compiled(source, compiler, cache_home / "regard")))
    except subprocess.SubprocessError:  # it cannot compile this
        return None
    except (OSError, RuntimeError):  # it cannot write there, or the user has no home
        pass
    try:  # a new folder that only this user can write to, removed as soon as the library is loaded
        with tempfile.TemporaryDirectory(prefix="regard-") as folder:
            return ctypes.CDLL(str(_compiled(source, compiler, Path(folder))))
    except (OSError, subprocess.SubprocessError):
        return None


def _compiled(source: Path, compiler: str, folder: Path) -> Path:
    """The shared library in that folder, compiled unless it is there."""
    key = sha256(repr((source.read_text(encoding="utf-8"), compiler, FLAGS, _processor())).encode()).hexdigest()[:24]
    target = folder / f"{source.stem}-{key}.so"
    if not target.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place) / target.name
            command = [compiler, *FLAGS, "-o", str(made), str(source)]
            subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_COMPILATION)
            made.replace(target)
    return target


def _processor() -> str:
    """What `-march=native` depends on: a home folder may serve several machines."""
    try:
        lines = read_file(Path("/proc/cpuinfo"), most=2**24).decode(errors="replace").splitlines()
    except FileError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
