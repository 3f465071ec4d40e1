"""The sink: how much attention rests on the first key."""

import numpy as np

from regard.kinds import to_numpy
from regard.records import Record
from regard.trace.measures.sight import Sight


def sink_share(record: Record, sight: Sight | None = None) -> np.ndarray:
    """The mean weight of the first key over the queries that see anything, B H: 0 to 1.

    Heads with nothing to look for rest on the first token, whatever it is (Xiao et al. 2024, "Efficient streaming
    language models with attention sinks", section 3.1). The first key is the first of the text, and padding is no
    query (`Sight`). What `See(sink=True)` kept will do, except where the record did not know of its padding: then it
    needs exact weights.

    >>> from regard.trace import Trace
    >>> sink_share(Trace.from_weights(np.array([[1, 0], [0.5, 0.5]]))[0])
    array([[0.75]])
    """
    sight = sight or Sight(record)
    if record.sink is not None and (record.padding is not None or not sight.padded.any()):
        return np.asarray(to_numpy(record.sink))
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    if not record.shape[-1]:
        return total
    for block in sight.blocks():
        total += block.weights[np.arange(B), :, :, sight.first].sum(-1)
        count += block.looking.sum(-1)
    share: np.ndarray = total / np.maximum(count, 1)
    return share
