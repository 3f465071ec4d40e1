"""The functions that the grader calls in the sandbox: load a learner's program, read weights, and run a model with it.

The weights are read from the bytes of a file, without the `safetensors` package.
"""

import contextlib
import json
import os
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from regard.course.learner_model.program.models import compose, translate
from regard.course.learner_model.program.our_parts import FUNCTIONS, STAND_INS
from regard.course.learner_model.program.part_calls import PartError, Parts, TooSlowError, error_data, file_name
from regard.course.learner_model.program.sublayers import Layer, normalised

TASKS: dict[str, Callable[..., dict[str, Any]]] = {"translation": translate, "text": compose}
CLOCK = 12.0
"""Seconds after which a running part is interrupted; the sandbox ends the process a few seconds later."""


class _Silent:
    """Discards what a learner's program prints: a print in softmax would print thousands of lines."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


_STATE: dict[str, Any] = {"functions": {}, "helpers": [], "entered": ""}
MARK = "\x1e"
"""Written to stderr with the letter of the part that runs next; if the process is killed, the last one is its part."""


def letter_of(part: str) -> str:
    return chr(ord("a") + list(FUNCTIONS).index(part))


def load_part(part: str, source: np.ndarray, helpers: list[str]) -> dict[str, Any]:
    """Load a learner's program and keep its functions; {} or what went wrong.

    `helpers` are the functions that the task gave for use and the learner left as they were: parts take their place.
    """
    sys.stdout = _Silent()
    _enter(part)
    module = ModuleType(part.replace("-", "_"))
    sys.modules[module.__name__] = module
    try:
        with _clock(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source.tobytes().decode(), file_name(part), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        return {"part": part, **error_data(error, part)}
    for name in FUNCTIONS[part]:
        if not callable(module.__dict__.get(name)):
            return {"part": part, "why": "missing-name", "name": name}
        _STATE["functions"][name] = module.__dict__[name]
    _STATE["helpers"].append((part, module.__dict__, helpers))
    return {}


def use_parts(parts: Parts, part: str, namespace: dict[str, Any], helpers: list[str]) -> None:
    """Put parts in the place of helper functions of a learner's program."""
    by_name: dict[str, Callable[..., Any]] = {name: getattr(parts, name) for name in STAND_INS}
    if part in ("encoder-block", "decoder-block"):  # there the weights of a norm are given by name
        by_name["layer_norm"] = lambda x, weights, name: normalised(parts, x, weights, name)
        by_name["attention"] = lambda q, k, v, mask: parts.scaled_dot_product_attention(q, k, v, mask)[0]
    namespace.update({name: by_name[name] for name in helpers})


def run_task(task: str, weights: np.ndarray, options: dict[str, Any]) -> dict[str, Any]:
    """Run the model with the loaded parts; a failed part gives {"failed": …}."""
    parts = Parts(_STATE["functions"], _enter)
    for helped in _STATE["helpers"]:
        use_parts(parts, *helped)
    try:
        with _clock(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = TASKS[task](parts, model_weights(weights), **options)
    except PartError as error:
        return {"failed": error.data}
    except TooSlowError:
        return {"failed": {"part": _STATE["entered"], "why": "too-slow"}}
    except BaseException as error:
        return {"failed": {"part": _STATE["entered"], **error_data(error, "")}}
    return found | {"differences": parts.differences, "calls": parts.calls}


def _enter(part: str) -> None:
    if _STATE["entered"] != part:
        _STATE["entered"] = part
        os.write(2, (MARK + letter_of(part)).encode())


@contextlib.contextmanager
def _clock() -> Any:
    """Interrupt the block after CLOCK seconds, where the system has such a timer."""

    def interrupt(*_: Any) -> None:
        raise TooSlowError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, CLOCK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read_weights(data: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, given as bytes; 8-bit matrices are multiplied by their scales."""
    content = memoryview(data.tobytes())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(bytes(content[8 : 8 + length]))
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I8": np.int8}
    stored = {}
    for name, about in header.items():
        start, stop = (8 + length + offset for offset in about["data_offsets"])
        stored[name] = np.frombuffer(content[start:stop], dtype=kinds[about["dtype"]]).reshape(about["shape"])
    return {
        name: np.multiply(array, stored[f"{name}.scale"][:, None], dtype=np.float64)
        if array.dtype == np.int8
        else array.astype(np.float64)
        for name, array in stored.items()
        if not name.endswith(".scale")
    }


def _layers(tensors: Mapping[str, np.ndarray], side: str) -> list[Layer]:
    """The weights of each layer by their names without the layer."""
    found: list[Layer] = []
    while own := _below(tensors, f"{side}.layers.{len(found)}."):
        found.append(own)
    return found


def _below(tensors: Mapping[str, np.ndarray], start: str) -> Layer:
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def model_weights(data: np.ndarray) -> dict[str, Any]:
    """The weights of a bundled model: the embedding, the layers of both stacks, their final norms."""
    tensors = read_weights(data)
    weights: dict[str, Any] = {"embedding": tensors["embedding.weight"]}
    for side in ("encoder", "decoder"):
        if f"{side}.norm.weight" in tensors:
            weights[side] = _layers(tensors, side)
            weights[f"{side}_norm"] = (tensors[f"{side}.norm.weight"], tensors[f"{side}.norm.bias"])
    return weights
