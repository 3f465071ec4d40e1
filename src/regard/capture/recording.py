"""From what was caught to its Record, whichever road it came."""

from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.caught import Caught, CaughtWeights
from regard.capture.heads import by_heads
from regard.dispatch.observing import answered, observed
from regard.functional.statistics import statistics_of
from regard.padding import Padding, without_rows
from regard.records import Record, See, Statistics, Top

AT_ONCE = 2**22
"""Weights up to which statistics are made of all heads together; beyond, head by head, to need little room."""


def recorded(caught: Caught | CaughtWeights, module: nn.Module, see: See, padding: Padding | None = None) -> Record:
    """The Record of what `module` computed, or has us compute; with `see.qk`, copies of what weights come from."""
    if isinstance(caught, CaughtWeights):
        return record_of_weights(caught, module, see, padding)
    options: dict[str, Any] = {"mask": caught.mask, "bias": caught.bias, "scale": caught.scale}
    options |= {"softcap": caught.softcap, "see": see, "padding": padding}
    if caught.output is not None:
        ours = answered(caught.q, caught.k, caught.v, **options)
        if ours is not None:
            caught.output.out, caught.output.lse = ours.out, ours.lse
            return ours.record
    return observed(caught.q, caught.k, caught.v, lse=caught.lse, **options)


@torch.no_grad()
def record_of_weights(caught: CaughtWeights, module: nn.Module, see: See, padding: Padding | None = None) -> Record:
    """What can be read off the weights now; they themselves, copied, with `see.qk`."""
    weights = by_heads(caught.weights, module)
    lse = weights.new_zeros(weights.shape[:-1]) if caught.lse is None else caught.lse.reshape(weights.shape[:-1])
    sink = None if caught.sink is None else caught.sink.reshape(weights.shape[:-1]).float()
    found = _statistics(weights, lse, see, padding, sink)
    if not see.lse or caught.lse is None:
        found = found._replace(lse=None)
    kept = without_rows(weights, None if padding is None else padding.queries, 0, axes=1).clone() if see.qk else None
    return Record(
        shape=tuple(weights.shape),
        rectangle=None if kept is None else lambda rows, cols: kept[..., rows, cols],
        kept={} if kept is None else {"weights": kept},
        padding=padding,
        **found._asdict(),
    )


def _statistics(weights: Tensor, lse: Tensor, see: See, padding: Padding | None, sink: Tensor | None) -> Statistics:
    exact = torch.promote_types(weights.dtype, torch.float32)
    if weights.numel() <= AT_ONCE:
        return _fresh(statistics_of(weights.to(exact), lse, see, padding=padding, sink_mass=sink), weights)
    sinks = [None] * weights.shape[1] if sink is None else sink.split(1, 1)
    heads = [
        statistics_of(one.to(exact), its_lse, see, padding=padding, sink_mass=its_sink)
        for one, its_lse, its_sink in zip(weights.split(1, 1), lse.split(1, 1), sinks, strict=True)
    ]
    return Statistics(*map(_joined, zip(*heads, strict=True)))


def _joined(parts: tuple[Any, ...]) -> Any:
    """One field of several Statistics, heads side by side."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], Top):
        return Top(*(torch.cat(halves, 1) for halves in zip(*parts, strict=True)))
    return torch.cat(parts, 1)


def _fresh(found: Statistics, weights: Tensor) -> Statistics:
    """A map of one bin per weight may be the model's own tensor, which it may write over."""
    if found.map is not None and found.map.untyped_storage().data_ptr() == weights.untyped_storage().data_ptr():
        return found._replace(map=found.map.clone())
    return found
