"""Calls of a part: the learner's function if there is one, with a check of its result, otherwise ours."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from regard.course.learner_model.program.our_parts import OURS, PART_OF

TOLERANCE = 1e-5
"""Largest difference from our part, relative to the largest number of its result, that is not reported: float32 stays
below a tenth of it."""
FEW = {"transformer": 2, "encoder_block": 6, "decoder_block": 6}
"""How many calls of a slow function are compared with ours; of the others the first 12, and then every seventh."""


class PartError(Exception):
    """A learner's function failed: it raised, or returned something else than its task says."""

    def __init__(self, part: str, why: str, **details: Any) -> None:
        super().__init__(part)
        self.data = {"part": part, "why": why, **details}


class TooSlowError(BaseException):
    """A learner's program was interrupted. Not an Exception, so that the program does not catch it by accident."""


class Parts:
    """The parts of a model: `parts.softmax(x)` calls the learner's function if there is one, otherwise ours."""

    def __init__(self, learner: Mapping[str, Callable[..., Any]], enter: Callable[[str], None] | None = None) -> None:
        self.learner, self._enter = dict(learner), enter
        self.calls: dict[str, int] = {}
        """How often each function of the learner was called."""
        self.differences: dict[str, float] = {}
        """Largest difference of each function of the learner from ours, of the calls that were compared."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in OURS:
            raise AttributeError(name)
        if name not in self.learner:
            return lambda *args: OURS[name](self, *args)
        return lambda *args: self._call(name, *args)

    def _call(self, name: str, *args: Any) -> Any:
        part, count = PART_OF[name], self.calls.get(name, 0)
        self.calls[name] = count + 1
        if self._enter is not None:
            self._enter(part)
        try:
            result = self.learner[name](*map(_read_only, args))
        except PartError:
            raise  # of a part inside the learner's transformer
        except BaseException as error:
            raise PartError(part, **error_data(error, part)) from None
        result = _checked(name, part, result, args)
        if count < FEW.get(name, 12) or (name not in FEW and count % 7 == 0):
            without = {other: f for other, f in self.learner.items() if name == "transformer" and other != name}
            expected = OURS[name](Parts(without), *args)
            self.differences[name] = max(self.differences.get(name, 0.0), difference(expected, result))
        return result


def error_data(error: BaseException, part: str) -> dict[str, Any]:
    """An exception of a learner's program as plain data; `line` is the last line of that program."""
    if isinstance(error, TooSlowError):
        return {"why": "too-slow"}
    try:
        message = str(error)[:300]
    except BaseException:
        message = ""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file_name(part):
            line = trace.tb_lineno
        trace = trace.tb_next
    line = error.lineno if isinstance(error, SyntaxError) else line
    why = "too-much-memory" if isinstance(error, MemoryError) else "raises"
    return {"why": why, "raised": type(error).__name__[:100], "message": message, "line": line}


def file_name(part: str) -> str:
    return f"<{part}.py>"


def _read_only(value: Any) -> Any:
    """The value for a learner's function, which may not change it: it is used again."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, list | tuple):
        return type(value)(map(_read_only, value))
    return {key: _read_only(part) for key, part in value.items()} if isinstance(value, dict) else value


def _checked(name: str, part: str, result: Any, args: Sequence[Any]) -> Any:
    """The result of a learner's function as plain NumPy and Python values. PartError if it has another form."""
    if name == "pick":
        size = len(args[0])
        if not isinstance(result, int | np.integer) or not 0 <= result < size:
            raise PartError(part, "value", wanted=f"0 … {size - 1}", found=_described(result))
        return int(result)
    if name == "beam_search":
        return _checked_path(part, result, len(args[0]))
    shapes = _SHAPES[name](*args)
    if name == "attend_with_cache" and isinstance(result, list | tuple) and len(result) == 2:
        if not isinstance(result[1], list | tuple) or len(result[1]) != 2:
            raise PartError(part, "value", wanted="(out, (K, V))", found=_described(result))
        out, keys, values = (_checked_array(part, *pair) for pair in zip((result[0], *result[1]), shapes, strict=True))
        return out, (keys, values)
    if len(shapes) == 1:
        return _checked_array(part, result, shapes[0])
    if not isinstance(result, list | tuple) or len(result) != len(shapes):
        raise PartError(part, "value", wanted=f"({', '.join(map(str, shapes))})", found=_described(result))
    return tuple(_checked_array(part, *pair) for pair in zip(result, shapes, strict=True))


def _checked_array(part: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except Exception:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "bifu" or array.shape != shape:
        raise PartError(part, "shape", wanted=str(shape), found=_described(value))
    return array if array.dtype.kind == "b" else array.astype(np.float64, copy=False)


def _checked_path(part: str, result: Any, size: int) -> tuple[list[int], float]:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        tokens, score = result
        path = [int(token) for token in tokens]
        if all(0 <= token < size for token in path):
            return path, float(score)
    raise PartError(part, "value", wanted="(tokens, score)", found=_described(result))


def _described(value: Any) -> str:
    """A short description of an untrusted value: its type, and the shape of an array."""
    if type(value) is np.ndarray:
        return f"{value.dtype} {value.shape}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}[{len(value)}]"
    return repr(value) if type(value) in (int, float, bool, type(None)) else type(value).__name__[:100]


_SHAPES: dict[str, Callable[..., tuple[tuple[int, ...], ...]]] = {
    "softmax": lambda x, axis=-1: (x.shape,),
    "scaled_dot_product_attention": lambda Q, K, V, mask=None: (
        (*Q.shape[:-1], V.shape[-1]),
        (*Q.shape[:-1], K.shape[-2]),
    ),
    "split_heads": lambda x, n: ((x.shape[0], n, x.shape[1], x.shape[2] // n),),
    "merge_heads": lambda x: ((x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),),
    "layer_norm": lambda x, gamma, beta, eps=0.0: (x.shape,),
    "feed_forward": lambda x, W_1, b_1, W_2, b_2: ((*x.shape[:-1], W_2.shape[1]),),
    "gelu_feed_forward": lambda x, W_1, b_1, W_2, b_2: ((*x.shape[:-1], W_2.shape[1]),),
    "positional_encoding": lambda length, d_model: ((length, d_model),),
    "rope": lambda x, positions, base=0.0: (x.shape,),
    "create_causal_mask": lambda n: ((n, n),),
    "create_padding_mask": lambda seq, pad_token=0: ((seq.shape[0], 1, seq.shape[1]),),
    "attend_with_cache": lambda q, k, v, cache=None: (
        (len(q), v.shape[1]),
        *((len(new) + (0 if cache is None else len(cache[at])), new.shape[1]) for at, new in enumerate((k, v))),
    ),
    "encoder_block": lambda x, *rest: (x.shape,),
    "decoder_block": lambda x, *rest: (x.shape,),
    "transformer": lambda source, target, weights, *rest: ((*target.shape, len(weights["embedding"])),),
    "next_probabilities": lambda logits, *rest: (logits.shape,),
}


def difference(expected: Any, found: Any) -> float:
    """The largest difference of two results of the same form, relative to the largest number; NaN counts as inf."""
    if isinstance(expected, list | tuple):
        if len(expected) != len(found):
            return math.inf
        return max((difference(*pair) for pair in zip(expected, found, strict=True)), default=0.0)
    a, b = np.asarray(expected, dtype=np.float64), np.asarray(found, dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    largest = np.abs(a[np.isfinite(a)]).max(initial=1e-6)
    return float(np.nan_to_num(gap, nan=math.inf).max() / largest)
