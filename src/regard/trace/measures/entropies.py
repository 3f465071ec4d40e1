"""Mean entropy: how widely a head spreads its attention."""

import numpy as np

from regard.kinds import to_numpy
from regard.records import Record
from regard.reference.statistics import entropy
from regard.trace.measures.blocks import blocks


def mean_entropy(record: Record) -> np.ndarray:
    """−Σ w ln w in nats, the mean over the queries that see anything, B H (Clark et al. 2019, section 3.3).

    0: always one key; ln n: evenly n keys. From the entropies where they were kept with the LSE, else exactly from the
    weights, which it then needs.

    >>> from regard.trace import Trace
    >>> mean_entropy(Trace.from_weights(np.full((3, 4), 0.25))[0]).round(3)
    array([[1.386]])
    """
    if record.entropy is not None and record.lse is not None:
        looking = np.isfinite(to_numpy(record.lse))
        return _mean(np.where(looking, to_numpy(record.entropy), 0).sum(-1), looking.sum(-1))
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in blocks(record):
        total += entropy(block.weights).sum(-1)
        count += block.looking.sum(-1)
    return _mean(total, count)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean
