"""Values to bytes and back, for the pipe between the grader and a learner's program; without pickle.

Only exact types are supported: None, bool, int, float, str, arrays, NumPy scalars, and lists, tuples and dicts of them.
Anything else arrives as `Other`, which equals nothing, so an object with a forged `__eq__` cannot pass. Both processes
use this module; it imports no other module of ours, which the learner's process must not find.
"""

import json
import math
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy import dtype, frombuffer, generic, ndarray

_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "complex": (64, 128)}
DTYPES = frozenset({"bool", *(f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths)})
"""Supported dtypes; no object dtype."""
DEPTH, NODES, TEXT, BYTES = 32, 20_000, 10_000, 16 << 20
"""Limits of one value: nesting depth, number of parts, characters of a string, bytes of arrays."""
TREE = 1 << 20
"""Limit for the JSON tree of one value, in bytes. Parsed JSON takes a hundred times the memory, so the size is checked
before parsing."""
PARTS = 4
"""The number of such values in a message: a result, gradients, digests, and one spare."""

NONCE = 16
"""Bytes of the nonce of a run."""
HEADER = struct.Struct(f"!{NONCE}sIQ")
"""Header of each message: the nonce of the run, the message number, the length."""
LENGTH = struct.Struct("!Q")
"""Header of each request: its length."""


def framed(request: bytes) -> bytes:
    """A request after its length."""
    return LENGTH.pack(len(request)) + request


ARRAY_OF = "ndarray["
"""Prefix of `Other.type` for an array without numbers, such as strings or objects."""


@dataclass(frozen=True, eq=False)
class Other:
    """Placeholder for an unsupported value: the name of its type, and "large" if its size is the reason."""

    type: str
    about: str = ""


class _TooLargeError(Exception):
    pass


def encode(value: Any, track: str = "numpy") -> bytes:
    """The value as bytes. In the torch track tensors are sent as arrays, and NumPy arrays become `Other`.

    >>> decode(encode({"a": (1, 2.5, None)}))
    {'a': (1, 2.5, None)}
    """
    writer = _Writer(track)
    if type(value) is dict:  # a message: an oversized part does not affect the others
        tree = {"d": [[key, writer.part(part)] for key, part in value.items() if type(key) is str]}
    else:
        tree = writer.part(value)
    header = json.dumps({"tree": tree, "arrays": writer.shapes}).encode("ascii")
    return b"".join((struct.pack("!I", len(header)), header, *writer.buffers))


class _Writer:
    """Encodes one value: a JSON tree, and the arrays separately."""

    def __init__(self, track: str) -> None:
        self.torch = sys.modules.get("torch") if track == "torch" else None
        self.shapes: list[tuple[str, list[int]]] = []
        self.buffers: list[bytes] = []
        self.nodes = self.bytes = self.text = 0

    def part(self, value: Any) -> Any:
        kept, self.nodes, self.bytes, self.text = len(self.shapes), 0, 0, 0
        try:
            tree = self.tree(value, 0)
            if self.nodes > 1 and len(json.dumps(tree)) > TREE:  # one node is short: text has its own limit
                raise _TooLargeError
            return tree
        except (_TooLargeError, RecursionError):
            del self.shapes[kept:], self.buffers[kept:]
            return {"o": [type_name(value), "large"]}

    def tree(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > DEPTH or self.nodes > NODES or self.text > TREE:
            raise _TooLargeError
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            if len(value) > TEXT:
                return {"o": ["str", "large"]}
            self.text += len(value)
            return value
        if kind is int:
            return value if value.bit_length() <= 1024 else {"o": ["int", "large"]}
        if kind is float:
            return {"f": value.hex()}
        if kind is list or kind is tuple:
            return {"l" if kind is list else "t": [self.tree(part, depth + 1) for part in value]}
        if kind is dict and all(type(key) in (str, int) for key in value):
            return {"d": [[key, self.tree(part, depth + 1)] for key, part in value.items()]}
        if kind is Other:
            return {"o": [value.type, value.about]}
        return self.array(value)

    def array(self, value: Any) -> Any:
        if self.torch is not None and type(value) in (self.torch.Tensor, self.torch.nn.Parameter):
            try:
                plain = value.detach().cpu().resolve_conj().resolve_neg().to_dense()
                array = (plain.float() if plain.dtype == self.torch.bfloat16 else plain).numpy()
            except Exception:  # a tensor without numbers, such as one on the meta device
                return {"o": [type_name(value), str(value.device)[:20]]}
            return self.keep(array, "a")
        if type(value) is ndarray and self.torch is None:
            return self.keep(value, "a")
        if isinstance(value, generic) and type(value).__module__ == "numpy":
            return self.keep(value.reshape(()), "s")  # a method of NumPy's own type, which cannot be replaced
        return {"o": [type_name(value), ""]}

    def keep(self, array: Any, tag: str) -> Any:
        name = _dtype_name(array.dtype)
        if name not in DTYPES:
            return {"o": [f"{ARRAY_OF}{name[:40]}]", ""]}
        self.bytes += array.size * array.dtype.itemsize  # before copying: a broadcast view may claim terabytes
        if self.bytes > BYTES:
            raise _TooLargeError
        self.text += 20 * (1 + array.ndim)
        self.shapes.append((name, list(array.shape)))
        self.buffers.append(array.astype(name).tobytes())
        return {tag: len(self.shapes) - 1}


@lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:
    """The name of a dtype without its byte order; float64 for longer floats. Cached: NumPy builds the name anew."""
    native = dtype.newbyteorder("=")
    return "float64" if native.kind == "f" and native.itemsize > 8 else native.name


def decode(data: bytes) -> Any:
    """The value from its bytes; ValueError if they are not exactly what `encode` writes.

    Lengths and counts are validated first: decoding any bytes takes less than a second.
    """
    try:
        (length,) = struct.unpack_from("!I", data)
        if length > PARTS * TREE:
            raise ValueError("the tree is too large")
        header = json.loads(data[4 : 4 + length].decode("ascii"))
        arrays, at = [], 4 + length
        if len(header) != 2 or len(header["arrays"]) > PARTS * NODES:
            raise ValueError("too many arrays")
        for name, shape in header["arrays"]:
            if len(shape) > DEPTH or name not in DTYPES or not all(type(size) is int and size >= 0 for size in shape):
                raise ValueError("invalid array")
            end = at + math.prod(shape) * dtype(name).itemsize
            if end > len(data):
                raise ValueError("truncated array")
            arrays.append(frombuffer(data[at:end], dtype=name).reshape(shape).copy())
            at = end
        if at != len(data):
            raise ValueError("trailing bytes")
        return _value(header["tree"], arrays, iter(range(PARTS * NODES)))
    except (struct.error, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not a message: {type(error).__name__}") from None


def _value(tree: Any, arrays: list[Any], left: Iterator[int]) -> Any:
    """The value of a tree; `left` limits the number of parts."""
    if next(left, None) is None:
        raise ValueError("too many parts")
    if not isinstance(tree, dict):
        if tree is not None and type(tree) not in (bool, int, str):
            raise ValueError("unknown tag")
        return tree
    ((tag, inside),) = tree.items()
    if tag == "f":
        return float.fromhex(inside)
    if tag == "l":
        return [_value(part, arrays, left) for part in inside]
    if tag == "t":
        return tuple(_value(part, arrays, left) for part in inside)
    if tag == "d":
        return {key: _value(part, arrays, left) for key, part in inside}
    if tag == "o":
        name, about = inside
        return Other(str(name)[:100], str(about)[:100])
    if tag not in ("a", "s") or type(inside) is not int or inside < 0:
        raise ValueError("unknown tag")
    return arrays[inside] if tag == "a" else arrays[inside][()]


def type_name(value: Any) -> str:
    """The name of a value's true type, independent of its `__class__`.

    >>> type_name(3.5), type_name(n for n in ())
    ('float', 'generator')
    """
    return name_of(type(value))


def name_of(kind: type) -> str:
    """The name of a type, independent of its metaclass; types of NumPy and PyTorch with their module."""
    name, module = type.__dict__["__name__"].__get__(kind), type.__dict__["__module__"].__get__(kind)
    return f"{module}.{name}"[:100] if module in ("numpy", "torch", "numpy.ma") else str(name)[:100]
