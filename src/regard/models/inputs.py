"""What is put into a model, read off tensors and handed to the checks that NumPy's model uses too.

Values are looked at only where that is free: on the CPU, outside of a traced graph.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.arrays import is_tensor, to_kind_of
from regard.config import TransformerConfig, inputs
from regard.config.inputs import NumberKind
from regard.errors import DtypeError
from regard.reference.inputs import as_array


def given_ids(config: TransformerConfig, ids: Tensor, *, source: bool = False, like: Tensor | None = None) -> Tensor:
    """Ids (B, T) of the vocabulary, no more than there are positions; vectors, as `like`, where it has none."""
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


def given_segments(config: TransformerConfig, segments: Tensor | None, ids: Tensor) -> Tensor | None:
    """One kind of sentence for each id, where the model tells them apart."""
    if segments is None:
        return None
    segments = _tensor("segments", segments)
    inputs.check_segments(tuple(segments.shape), _kind(segments), segments.dtype, tuple(ids.shape[:2]), config)
    segments = segments.long()
    _check_range("segments", segments, config.embeddings.n_segments or 0)
    return segments


def given_positions(config: TransformerConfig, positions: Tensor | None, x: Tensor) -> Tensor | None:
    """Where each id stands: whole numbers, none beyond what the model has."""
    if positions is None:
        return None
    positions = _tensor("positions", positions)
    inputs.check_positions(tuple(positions.shape), _kind(positions), positions.dtype, tuple(x.shape[:2]))
    positions = positions.long()
    _check_range("positions", positions, config.max_len or torch.iinfo(torch.long).max)
    return positions


def on_device(what: str, x: Any, device: torch.device) -> Tensor:
    """A tensor, or whatever NumPy makes an array of, as a tensor there."""
    if is_tensor(x):
        return x.to(device)
    array = as_array(what, x)
    if array.dtype.kind not in "iufb":
        raise DtypeError("ids-kind", what=what, found=array.dtype)
    array = array.astype(np.int64) if array.dtype.kind == "u" else array  # torch has hardly anything for unsigned ones
    return to_kind_of(array, torch.empty(0, device=device))


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
