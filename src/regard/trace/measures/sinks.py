"""The sink: how much attention rests on the first key."""

import numpy as np

from regard.kinds import to_numpy
from regard.records import Record
from regard.trace.measures.blocks import Sight, blocks


def sink_share(record: Record) -> np.ndarray:
    """The mean weight of the first key over the queries that see anything, B H: 0 to 1.

    Heads with nothing to look for rest on the first token, whatever it is (Xiao et al. 2024, "Efficient streaming
    language models with attention sinks", section 3.1). The first key is the first of the text: padding before it is
    passed over where the mask was kept. Else what the record says of its first column.

    >>> from regard.trace import Trace
    >>> sink_share(Trace.from_weights(np.array([[1, 0], [0.5, 0.5]]))[0])
    array([[0.75]])
    """
    first = Sight(record).first() if record.kept.get("mask") is not None else np.zeros(record.shape[0], int)
    if record.sink is not None and not first.any():
        return np.asarray(to_numpy(record.sink))
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    if not record.shape[-1]:
        return total
    for block in blocks(record):
        total += block.weights[np.arange(B), :, :, first].sum(-1)
        count += block.looking.sum(-1)
    share: np.ndarray = total / np.maximum(count, 1)
    return share
