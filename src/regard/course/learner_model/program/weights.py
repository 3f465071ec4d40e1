"""The weights of a bundled model, read from the bytes of its file without the `safetensors` package."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.course.learner_model.program.sublayers import Layer


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
