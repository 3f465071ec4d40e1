"""One measure of every head of a Trace: layers × heads."""

from collections.abc import Callable

import numpy as np

from regard.errors import ArgumentError, UnknownNameError
from regard.records import Record
from regard.trace.measures.distances import mean_distance
from regard.trace.measures.entropies import mean_entropy
from regard.trace.measures.sight import Sight, sights
from regard.trace.measures.sinks import sink_share
from regard.trace.trace import Trace
from regard.words import Listed

MEASURES: dict[str, Callable[[Record, Sight], np.ndarray]] = {
    "entropy": mean_entropy,
    "sink": sink_share,
    "distance": mean_distance,
}


def measured(trace: Trace, name: str) -> np.ndarray:
    """`entropy`, `sink` or `distance` of each head, L H: the mean over samples of what each sample has by itself.

    NaN where a layer lacks a head.
    """
    if name not in MEASURES:
        raise UnknownNameError("measure-unknown", asked=name, measures=Listed(MEASURES))
    if not len(trace):
        raise ArgumentError("trace-empty")
    found = np.full((len(trace), max(record.shape[1] for record in trace)), np.nan)
    for layer, sight in enumerate(sights(trace)):
        if sight.record.shape[0]:
            found[layer, : sight.record.shape[1]] = MEASURES[name](sight.record, sight).mean(0)
    return found
