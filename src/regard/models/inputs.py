"""What is put into a model, read off tensors and handed to the checks that NumPy's model uses too.

Values are looked at only where that is free: on the CPU, outside of a traced graph.
"""

import torch
from torch import Tensor

from regard.config import TransformerConfig, inputs
from regard.config.inputs import NumberKind


def check_ids(config: TransformerConfig, ids: Tensor, *, source: bool = False) -> None:
    """Ids (B, T) of the vocabulary, no more than there are positions; vectors where there is no vocabulary."""
    what = "source" if source else "ids"
    inputs.check_ids(what, tuple(ids.shape), _kind(ids), ids.dtype, config)
    inputs.check_length(what, ids.shape[1], config)
    if config.vocab_size is not None:
        own = config.embeddings.source_vocab_size if source else None
        _check_range(what, ids, config.vocab_size if own is None else own)


def check_segments(config: TransformerConfig, segments: Tensor | None, ids: Tensor) -> None:
    """One kind of sentence for each id, where the model tells them apart."""
    if segments is not None:
        inputs.check_segments(tuple(segments.shape), _kind(segments), segments.dtype, tuple(ids.shape), config)
        _check_range("segments", segments, config.embeddings.n_segments or 0)


def check_positions(config: TransformerConfig, positions: Tensor | None, ids: Tensor) -> None:
    """Where each id stands: whole numbers, none beyond what the model has."""
    if positions is not None:
        inputs.check_places(tuple(positions.shape), _kind(positions), positions.dtype, tuple(ids.shape))
        if config.max_len is not None:
            _check_range("positions", positions, config.max_len)


def check_keep(keep: Tensor | None, ids: Tensor) -> None:
    """One boolean for each id."""
    if keep is not None:
        inputs.check_keep(tuple(keep.shape), _kind(keep), keep.dtype, tuple(ids.shape[:2]))


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
