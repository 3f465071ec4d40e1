"""Mean entropy: how widely a head spreads its attention."""

import numpy as np

from regard.errors import NotKeptError
from regard.kinds import to_numpy
from regard.records import Record
from regard.reference.statistics import entropy
from regard.trace.measures.blocks import sees_anything
from regard.trace.measures.sight import Sight


def mean_entropy(record: Record, sight: Sight | None = None) -> np.ndarray:
    """−Σ w ln w in nats, the mean over the queries that see anything, B H (Clark et al. 2019, section 3.3).

    What went to no key (`Record.sink_mass`) counts as one key more.

    0: always one key; ln n: evenly n keys. Padding is no query (`Sight`). From the entropies where they were kept with
    the LSE, else from exact weights. NotKeptError where there are neither.

    >>> from regard.trace import Trace
    >>> mean_entropy(Trace.from_weights(np.full((3, 4), 0.25))[0]).round(3)
    array([[1.386]])
    """
    sight = sight or Sight(record)
    if record.entropy is not None and record.lse is not None:
        looking = sees_anything(record.lse) & sight.queries[:, None]
        return _mean(np.where(looking, to_numpy(record.entropy), 0).sum(-1), looking.sum(-1))
    if not record.has_weights:
        raise NotKeptError("entropy-not-kept", name=record.name)
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in sight.blocks():
        sink = None if record.sink_mass is None else to_numpy(record.sink_mass[:, :, block.rows])
        total += np.where(block.looking, entropy(block.weights, sink), 0).sum(-1)
        count += block.looking.sum(-1)
    return _mean(total, count)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean
