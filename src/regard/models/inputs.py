"""Checks of a model's input tensors, by the rules of `config.inputs`.

Values are checked only where reading them is free: on the CPU, outside of a traced graph.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.arrays import convert_like, is_tensor
from regard.config import TransformerConfig, inputs
from regard.config.inputs import NumberKind
from regard.errors import DtypeError
from regard.reference.inputs import as_array


def checked_ids(config: TransformerConfig, ids: Tensor, *, source: bool = False, like: Tensor | None = None) -> Tensor:
    """Ids (B, T), checked against the vocabulary and max_len; without a vocabulary vectors, in the dtype of `like`."""
    what = "source" if source else "ids"
    ids = _tensor(what, ids)
    inputs.check_ids(what, tuple(ids.shape), _kind(ids), ids.dtype, config)
    inputs.check_length(what, ids.shape[1], config)
    if config.vocab_size is None:
        return ids if like is None else ids.to(like.dtype)
    ids = ids.long()
    own = config.embeddings.source_vocab_size if source else None
    _check_range(what, ids, config.vocab_size if own is None else own)
    return ids


def checked_segments(config: TransformerConfig, segments: Tensor | None, ids: Tensor) -> Tensor | None:
    """Segments (B, T), checked; or None."""
    if segments is None:
        return None
    segments = _tensor("segments", segments)
    inputs.check_segments(tuple(segments.shape), _kind(segments), segments.dtype, tuple(ids.shape[:2]), config)
    segments = segments.long()
    _check_range("segments", segments, config.embeddings.n_segments or 0)
    return segments


def checked_positions(config: TransformerConfig, positions: Tensor | None, x: Tensor) -> Tensor | None:
    """Positions (T,) or (B, T), checked against max_len; or None."""
    if positions is None:
        return None
    positions = _tensor("positions", positions)
    inputs.check_positions(tuple(positions.shape), _kind(positions), positions.dtype, tuple(x.shape[:2]))
    positions = positions.long()
    _check_range("positions", positions, config.max_len or torch.iinfo(torch.long).max)
    return positions


def on_device(what: str, x: Any, device: torch.device) -> Tensor:
    """A tensor or array-like as a tensor on that device."""
    if is_tensor(x):
        return x.to(device)
    array = as_array(what, x)
    if array.dtype.kind not in "iufb":
        raise DtypeError("ids-kind", what=what, found=array.dtype)
    array = (
        array.astype(np.int64) if array.dtype.kind == "u" else array
    )  # torch supports few operations on unsigned integers
    return convert_like(array, torch.empty(0, device=device))


def _tensor(what: str, x: Any) -> Tensor:
    if not is_tensor(x):
        raise DtypeError("ids-tensor", what=what, found=type(x).__name__)
    return x


def _check_range(what: str, x: Tensor, size: int) -> None:
    if x.device.type != "cpu" or torch.compiler.is_compiling() or not x.numel():
        return
    lowest, highest = x.aminmax()
    inputs.check_range(what, int(lowest), int(highest), size, lambda value: tuple((x == value).nonzero()[0].tolist()))


def _kind(x: Tensor) -> NumberKind:
    if x.dtype == torch.bool:
        return "bool"
    if x.is_floating_point():
        return "float"
    return "other" if x.is_complex() else "whole"
