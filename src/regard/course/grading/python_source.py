"""Values and calls written as Python, so that a learner can read them and paste them.

Few digits where few tell two results apart, more where they are needed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.course.exercise import Call, Track
from regard.course.grading.serialisation import ARRAY_OF, Other
from regard.course.grading.verdict import plain
from regard.messages import say

WIDTH = 100
SMALL = 64
"""An array of more numbers than this is told by its shape."""
LONGEST, MOST = 300, 20
"""Characters of a text or a number, and parts of a list or dict, that are shown of a learner's result."""


def written(value: Any, digits: int | None = None, track: Track = "numpy") -> str:
    """A value as Python text; `digits` after the point, or as many as it takes to paste it exactly.

    >>> written((np.array([0.5, 0.25]), True)), written(np.array([1, 2]), track="torch")
    ('(np.array([0.5, 0.25]), True)', 'torch.tensor([1, 2])')
    """
    if isinstance(value, np.ndarray):
        return _array(value, digits, track)
    if isinstance(value, np.generic):
        return written(value.item(), digits)
    if isinstance(value, float) and digits is not None:
        return _number(value, digits)
    if isinstance(value, list | tuple):
        parts = [written(part, digits, track) for part in value]
        return (
            _joined("[", parts, "]")
            if isinstance(value, list)
            else _joined("(", parts, ",)" if len(parts) == 1 else ")")
        )
    if isinstance(value, Mapping):
        return _joined("{", [f"{key!r}: {written(part, digits, track)}" for key, part in value.items()], "}")
    return f"<{plain(value.type)}>" if isinstance(value, Other) else repr(value)


def shown(value: Any, digits: int | None = None, track: Track = "numpy") -> str:
    """A result as text for a verdict: as `written`, but long texts and long lists are cut, with how long they are.

    >>> shown("a" * 1000)[-28:]
    "aaaaaaa' … (1000 characters)"
    """
    return _cut(written(_fewer(value, [MOST]), digits, track), 10 * LONGEST)


class _Text(str):
    """What stands for a part that was cut, written as it is."""

    __slots__ = ()

    __repr__ = str.__str__


def _fewer(value: Any, left: list[int]) -> Any:
    """The value with only so many parts in all, and no long ones."""
    left[0] -= 1
    if isinstance(value, list | tuple | Mapping):
        parts = list(value.items() if isinstance(value, Mapping) else value)
        kept = [
            (_key(part[0]), _fewer(part[1], left)) if isinstance(value, Mapping) else _fewer(part, left)
            for part in parts[: max(left[0], 0)]
        ]
        more = _Text(say("verdict-parts-more", count=len(parts) - len(kept)))
        if isinstance(value, Mapping):
            return dict(kept) | ({_Text("…"): more} if len(kept) < len(parts) else {})
        return type(value)([*kept, more] if len(kept) < len(parts) else kept)
    if isinstance(value, str) and len(value) > LONGEST:
        return _Text(say("verdict-text-more", text=repr(value[:LONGEST]), count=len(value)))
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        return _Text(say("verdict-number-more", bits=value.bit_length()))
    return value


def _key(key: Any) -> Any:
    return _Text(f"{key[:40]!r}…") if isinstance(key, str) and len(key) > LONGEST else key


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} …"


def pair(expected: Any, got: Any, track: Track = "numpy") -> tuple[str, str]:
    """Two results with just enough digits to see that they differ: at least four.

    >>> pair(0.123456, 0.123457)
    ('0.123456', '0.123457')
    """
    for digits in (4, 6, 8, 12):
        left, right = shown(expected, digits, track), shown(got, digits, track)
        if left != right:
            return left, right
    return shown(expected, track=track), shown(got, track=track)


def written_call(call: Call, track: Track) -> str:
    """The call as it would be typed.

    >>> written_call(Call("softmax", (np.array([1.0, 2.0]),), {"axis": -1}), "numpy")
    'softmax(np.array([1.0, 2.0]), axis=-1)'
    """
    name = call.target
    if call.made is not None:
        name = _joined(f"{name}(", _arguments(call.made.args, call.made.kwargs, track), ")")
    return _joined(f"{name}(", _arguments(call.args, call.kwargs, track), ")")


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any], track: Track) -> list[str]:
    named = [f"{name}={written(value, track=track)}" for name, value in kwargs.items()]
    return [*(written(value, track=track) for value in args), *named]


def _joined(opening: str, parts: list[str], closing: str) -> str:
    """On one line where there is room, else each part on its own."""
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inside = ",\n".join(parts).replace("\n", "\n    ")
    return f"{opening}\n    {inside},\n{closing.lstrip(',')}"


def _array(array: np.ndarray, digits: int | None, track: Track) -> str:
    """As NumPy or PyTorch would write it; there no float tells its kind: float64 of ours is handed in as float32."""
    package, make, usual = ("torch", "tensor", (np.float32,)) if track == "torch" else ("np", "array", ())
    if array.size > SMALL:
        return f"<{make} {array.shape}, {array.dtype}>"
    if array.size == 0:
        kind = f"torch.{array.dtype}" if track == "torch" else f"'{array.dtype}'"
        return f"{package}.zeros({array.shape}, dtype={kind})"
    kind = "" if array.dtype in (np.float64, np.int64, np.bool_, *usual) else f", dtype={package}.{array.dtype}"
    text = _filled(f"{package}.{make}(", array, digits, f"{kind})")
    return text.replace("nan", f"{package}.nan").replace("inf", f"{package}.inf")


def _filled(opening: str, array: np.ndarray, digits: int | None, closing: str) -> str:
    """The numbers in their brackets, each row under the one before."""
    inside = np.array2string(
        array,
        separator=", ",
        max_line_width=WIDTH,
        formatter={"float_kind": lambda x: str(x) if digits is None else _number(float(x), digits)},
    )
    return opening + inside.replace("\n", "\n" + " " * len(opening)) + closing


def _number(value: float, digits: int | None) -> str:
    """Shortest text that gives the number back, or so many digits after the point; tiny and huge ones as powers."""
    if digits is None or not np.isfinite(value):
        return repr(value)
    return repr(round(value, digits)) if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.{digits}g}"


def kind_of(value: Any) -> str:
    """The kind of a number: its dtype, or its type.

    >>> kind_of(np.zeros(2)), kind_of(1)
    ('float64', 'int')
    """
    if isinstance(value, Other):
        return plain(value.type.removeprefix(ARRAY_OF).removesuffix("]"))
    return str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__


def type_of(value: Any, track: Track) -> str:
    """What a learner calls the type of a value; in the torch track arrays stand for tensors.

    >>> type_of(np.zeros(2), "torch"), type_of([1], "torch")
    ('torch.Tensor', 'list')
    """
    if isinstance(value, Other):
        name = plain(value.type)
        return say("verdict-large", type=name) if value.about == "large" else name
    if isinstance(value, np.ndarray):
        return "torch.Tensor" if track == "torch" else "np.ndarray"
    return type(value).__name__
