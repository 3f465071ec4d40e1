"""The health of attention at one step of a training: numbers of each head and layer, and what is wrong with them.

`measured` reduces the records of a Trace on their devices, without waiting for them; `Reading.health` then reads the
numbers. Knows nothing of steps, hooks and writers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.messages import say
from regard.records import Record, See
from regard.trace import Trace

SEE = See(map=None, max_score=True, entropy=True, distance=True)
"""What each Record holds for these numbers: nothing T × S."""
SEE_WITHOUT_DISTANCE = replace(SEE, distance=False)
"""The distance takes a pass of its own."""
MEASURES = ("entropy", "sink", "max_score", "distance")
DEAD = 0.95
"""A head is dead if at least this share of its attention goes to the first key or to no key."""
UNIFORM = 0.95
"""A head is uniform if its entropy is at least this share of the entropy of even attention."""
FEWEST_KEYS = 8
"""Entropy is judged where a query sees, in the geometric mean, at least this number of keys."""
_LOWEST = -6e4
"""Below the LSE of any query that is not fully masked."""
_ROWS = 6
"""Numbers of each head: the four measures, the entropy of even attention, the share that goes to no key."""


class LayerHealth(NamedTuple):
    """The numbers of one layer: arrays of its heads, H. Means are over all queries of the batch that are text.

    entropy      of the weights of a query, in nats: the mean
    sink         the share of the first key: the mean
    max_score    the largest score of any query, before the softmax; NaN where it is unknown
    distance     of query and key: the mean over the bins of `See(distance=True)`, each counted at its middle; NaN where
                 it was not measured
    even         the entropy of even attention to all keys that are visible to a query: the mean. Windows and segments
                 are not known and count as visible
    to_no_key    the share that goes to no key (`Record.sink_mass`)
    """

    entropy: np.ndarray
    sink: np.ndarray
    max_score: np.ndarray
    distance: np.ndarray
    even: np.ndarray
    to_no_key: np.ndarray

    @property
    def dead(self) -> np.ndarray:
        """Which heads are dead: at least `DEAD` of the attention goes to the first key or to no key."""
        return np.asarray(self.sink + self.to_no_key >= DEAD)

    @property
    def uniform(self) -> np.ndarray:
        """Which heads are uniform: their entropy is at least `UNIFORM` of `even`."""
        return np.asarray((self.even > 0) & (self.entropy >= UNIFORM * self.even))

    @property
    def is_judged(self) -> bool:
        """Whether its entropy can collapse: several heads, whose queries see enough keys."""
        return len(self.even) > 1 and bool(self.even.mean() >= log(FEWEST_KEYS))


class Health:
    """The health of all layers at one step; `health["h.0.attn"]` is a layer, by its name or the end of it."""

    def __init__(self, layers: Mapping[str, LayerHealth]) -> None:
        self.layers = dict(layers)

    def __repr__(self) -> str:
        numbers = _summary("attention", list(self.layers.values()))
        shown = (f"{name.rpartition('/')[2]}={value:.3g}" for name, value in numbers.items())
        return f"Health({', '.join([f'layers={len(self)}', *shown])})"

    def __getitem__(self, name: str) -> LayerHealth:
        found = [known for known in self.layers if known == name or known.endswith(f".{name}")]
        if len(found) != 1:
            raise KeyError(name)
        return self.layers[found[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def metrics(self, heads: bool = False) -> dict[str, float]:
        """The numbers by name: attention/entropy of the model, attention/LAYER/entropy, with `heads` also of each head.

        Of several heads: the mean, for max_score the largest, for dead and uniform the share of such heads.
        """
        found = _summary("attention", list(self.layers.values()))
        for name, layer in self.layers.items():
            found |= _summary(f"attention/{name}", [layer])
        if heads:
            for name, layer in self.layers.items():
                for head in range(len(layer.entropy)):
                    numbers = ((measure, getattr(layer, measure)[head]) for measure in MEASURES)
                    found |= {f"attention/{name}/{head}/{measure}": float(number) for measure, number in numbers}
        return {name: number for name, number in found.items() if not np.isnan(number)}

    def collapsed(self, floor: float) -> tuple[str, float] | None:
        """The layer of several heads whose mean entropy is lowest, if that is below `floor`; with that entropy."""
        means = {name: float(layer.entropy.mean()) for name, layer in self.layers.items() if layer.is_judged}
        lowest = min(means, key=lambda name: means[name], default=None)
        return None if lowest is None or not means[lowest] < floor else (lowest, means[lowest])

    def exploded(self, limit: float) -> tuple[str, int, float] | None:
        """The layer and head with the largest score, if that is above `limit`; with that score."""
        tops = {name: layer.max_score for name, layer in self.layers.items() if not np.isnan(layer.max_score).all()}
        highest = max(tops, key=lambda name: float(np.nanmax(tops[name])), default=None)
        if highest is None or not np.nanmax(tops[highest]) > limit:
            return None
        head = int(np.nanargmax(tops[highest]))
        return highest, head, float(tops[highest][head])

    def broken(self) -> tuple[str, int] | None:
        """The first layer and head whose attention is NaN."""
        for name, layer in self.layers.items():
            heads = np.flatnonzero(np.isnan(layer.entropy))
            if len(heads):
                return name, int(heads[0])
        return None


def _summary(prefix: str, layers: list[LayerHealth]) -> dict[str, float]:
    joined = {name: np.concatenate([getattr(layer, name) for layer in layers]) for name in MEASURES}
    scores = joined.pop("max_score")
    found = {f"{prefix}/{name}": float(numbers.mean()) for name, numbers in joined.items()}
    found[f"{prefix}/max_score"] = float("nan") if np.isnan(scores).all() else float(np.nanmax(scores))
    for name in ("dead", "uniform"):
        found[f"{prefix}/{name}"] = float(np.concatenate([getattr(layer, name) for layer in layers]).mean())
    return found


class Reading(NamedTuple):
    """The numbers of one step, still on their way from the devices."""

    names: tuple[str, ...]
    numbers: tuple[Tensor, ...]
    """For each record, `_ROWS` by heads, on the CPU; valid once all copies have arrived."""
    arrived: tuple["torch.cuda.Event", ...]

    def health(self) -> Health:
        """The numbers; waits until they have arrived."""
        for event in self.arrived:
            event.synchronize()
        return Health(
            {name: LayerHealth(*one.double().numpy()) for name, one in zip(self.names, self.numbers, strict=True)}
        )


@torch.no_grad()
def measured(trace: Trace) -> Reading:
    """The numbers of all records. They are computed on the devices of the records and copied without waiting."""
    records = [record for record in trace if record.shape[0] and record.shape[1] and record.shape[2]]
    numbers = [_numbers(record) for record in records]
    devices = {one.device for one in numbers if one.is_cuda}
    on_host = tuple(_copied(one) for one in numbers)
    events = []
    for device in devices:
        with torch.cuda.device(device):
            events.append(torch.cuda.Event())
            events[-1].record()
    return Reading(tuple(record.name for record in records), on_host, tuple(events))


def _copied(numbers: Tensor) -> Tensor:
    if not numbers.is_cuda:
        return numbers.cpu()
    on_host = torch.empty(numbers.shape, dtype=numbers.dtype, device="cpu", pin_memory=True)
    return on_host.copy_(numbers, non_blocking=True)


def _numbers(record: Record) -> Tensor:
    """The fields of LayerHealth in their order, 6 H."""
    assert record.entropy is not None
    assert record.sink is not None
    entropy: Tensor = record.entropy
    B, H, T, _ = record.shape
    valid = _counted(record, entropy)  # B H T
    each = valid.sum(-1)  # B H
    count = each.sum(0).clamp_min(1)  # H

    def mean_of_queries(values: Tensor) -> Tensor:
        return torch.where(valid, values, 0).sum((0, 2)) / count

    none = entropy.new_zeros(H)
    distance = none + torch.nan
    if record.distance is not None:
        bins = torch.tensor(_bin_middles(record.distance.shape[-1]), dtype=entropy.dtype, device=entropy.device)
        distance = (torch.mv(record.distance.flatten(0, 1), bins).view(B, H) * each).sum(0) / count
    to_no_key = none if record.sink_mass is None else mean_of_queries(record.sink_mass)
    keys = _visible_keys(record, entropy) + (record.sink_mass is not None)
    return torch.stack([
        mean_of_queries(entropy),
        (record.sink * each).sum(0) / count,
        none + torch.nan if record.max_score is None else record.max_score.amax((0, 2)),
        distance,
        mean_of_queries(keys.clamp_min(1).log()[:, None].expand(B, H, T)),
        to_no_key,
    ])  # fmt: skip


def _counted(record: Record, entropy: Tensor) -> Tensor:
    """Which queries count, B H T: those that are text and not fully masked."""
    if record.lse is not None:
        lse: Tensor = record.lse
        return lse.isnan() | (lse > _LOWEST)  # NaN stays visible in the means
    if record.padding is not None and record.padding.queries is not None:
        return record.padding.queries[:, None].expand_as(entropy)
    return torch.ones_like(entropy, dtype=torch.bool)


def _visible_keys(record: Record, like: Tensor) -> Tensor:
    """The number of keys of the text that are visible to each query, B T: up to its own in a decoder, else all."""
    B, _, T, S = record.shape
    known = None if record.padding is None else record.padding.keys
    if record.kind == "decoder" and T <= S:
        if known is None:
            return torch.arange(S - T + 1, S + 1, dtype=like.dtype, device=like.device).expand(B, T)
        return known.cumsum(1)[:, S - T :].to(like.dtype).expand(B, T)
    total = like.new_full((1, 1), S) if known is None else known.sum(1, keepdim=True).to(like.dtype)
    return total.expand(B, T)


def _bin_middles(count: int) -> list[float]:
    """The middles of the bins of `See(distance=True)`: 0, 1, 2–3, 4–7, …

    >>> _bin_middles(4)
    [0.0, 1.0, 2.5, 5.5]
    """
    return [0.0, *(1.5 * 2**bin - 0.5 for bin in range(count - 1))][:count]


def warnings_of(health: Health, floor: float, limit: float) -> dict[str, str]:
    """What is wrong, as one sentence for each kind of problem."""
    found = {}
    collapse, explosion = health.collapsed(floor), health.exploded(limit)
    broken = health.broken()
    if broken is not None:
        found["nan"] = say("monitor-nan", name=broken[0], head=broken[1])
    if collapse is not None:
        found["entropy"] = say("monitor-entropy", name=collapse[0], entropy=collapse[1], floor=floor)
    if explosion is not None:
        name, head, score = explosion
        found["scores"] = say("monitor-scores", name=name, head=head, score=score, limit=limit)
    return found
